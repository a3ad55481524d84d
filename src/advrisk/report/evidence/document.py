"""The JSON files of an evidence pack, field by field: whatever somebody hands us is checked before it is believed."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from advrisk.core.errors import RiskError
from advrisk.report.evidence.clauses import Degree, Owner

Sha256 = Field(pattern="^[0-9a-f]{64}$")
Count = Field(ge=0)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FileEntry(_Strict):
    path: str
    bytes: int = Count
    sha256: str = Sha256


class ManifestDocument(_Strict):
    """`manifest.json`"""

    advrisk: Literal["evidence-pack"]
    version: Literal[2]
    run: str
    made: str
    program: str
    ledger: str = Sha256
    files: list[FileEntry]
    signer: str | None = None
    signature: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _once(self) -> Self:
        paths = [one.path for one in self.files]
        if len(set(paths)) < len(paths) or "manifest.json" in paths:
            raise ValueError("a file is listed twice, or the manifest itself")
        return self


class TableEntry(_Strict):
    rows: int = Count
    columns: list[str]
    sha256: str = Sha256


class _Rows(_Strict):
    sha256: str = Sha256
    tables: dict[str, TableEntry]


class _Files(_Strict):
    sha256: str = Sha256
    entries: list[FileEntry]


class LedgerDigestDocument(_Strict):
    """`ledger-digest.json`"""

    advrisk: Literal["ledger-digest"]
    version: Literal[2]
    rows: _Rows
    files: _Files


class _Estimate(_Strict):
    value: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    method: str


class _Number(_Strict):
    what: str
    model: str
    estimate: _Estimate | None
    exact: int | float | str | None
    unit: str
    note: str
    quantity: str = ""  # packs from before have none of these three
    loss: str = ""
    than: str = ""


class _ClauseName(_Strict):
    text: str
    clause: str


class _Topic(_Strict):
    id: str
    title: str
    how: str
    where: str
    headline: str
    numbers: list[_Number]
    why_none: str
    clauses: list[_ClauseName]


class _Absent(_Strict):
    numbers: str
    why: str


class _Clause(_Strict):
    id: str
    asks: str
    degree: Degree
    owner: Owner
    gives: str
    numbers: list[str]
    not_in_this_run: list[_Absent]
    needed: str


class _Text(_Strict):
    id: str
    title: str
    edition: str
    clauses: list[_Clause]


class _Summary(_Strict):
    text: str
    clauses: int
    counts: dict[Degree, int]


class _PackFile(FileEntry):
    what: str


class IndexDocument(_Strict):
    """`index.json`"""

    advrisk: Literal["evidence-index"]
    version: Literal[2]
    run: str
    made: str
    program: str
    notice: str
    unfinished: str
    ship: str
    cautions: list[str]
    degrees: dict[Degree, str]
    owners: dict[Owner, str]
    summary: _Summary
    ledger: str = Sha256
    texts: list[_Text]
    numbers: list[_Topic]
    files: list[_PackFile]

    @model_validator(mode="after")
    def _known(self) -> Self:
        topics = {topic.id for topic in self.numbers}
        clauses = [clause for text in self.texts for clause in text.clauses]
        named = {name for clause in clauses for name in clause.numbers}
        named |= {one.numbers for clause in clauses for one in clause.not_in_this_run}
        if not named <= topics or len(topics) < len(self.numbers):
            raise ValueError("clauses name numbers that do not stand there, or stand there twice")
        if not set(self.degrees) == set(self.summary.counts) >= {clause.degree for clause in clauses}:
            raise ValueError("its degrees are not those of its clauses")
        if not {clause.owner for clause in clauses} <= set(self.owners):
            raise ValueError("a clause names an owner that the index does not list")
        return self


_DOCUMENTS: Mapping[str, type[_Strict]] = {
    "manifest.json": ManifestDocument,
    "ledger-digest.json": LedgerDigestDocument,
    "index.json": IndexDocument,
}


def check_document(name: str, content: Any) -> None:
    """Refuse what is not built as the file of that name is, and name the first field that is not."""
    try:
        _DOCUMENTS[name].model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise RiskError(f"{name} is not built as that of a pack: {place}: {first['msg']}") from None
    except RecursionError:
        raise RiskError(f"{name} is not built as that of a pack: it is too deep") from None
