"""Is an evidence pack what it says it is? Its files and signature, how they fit together, and what a run says of it."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.api.certificates import FOLDER as CERTIFICATES
from advrisk.api.certificates import verify_certificate
from advrisk.api.evidence.files import MANIFEST, Pack, open_pack
from advrisk.api.evidence.pack import INDEX, INDEX_MARKDOWN, INDEX_PAGE, LEDGER_DIGEST, RECORD, made_index
from advrisk.assess.certificate.document import document_of, strict_json
from advrisk.assess.certificate.verification import Verification, differences, verify_signature
from advrisk.core.errors import LedgerError, RiskError
from advrisk.core.names import counted
from advrisk.core.plain import json_text
from advrisk.core.version import VERSION as PROGRAM
from advrisk.ledger import Ledger
from advrisk.ledger.digests import files_digest, rows_digest, run_files, table_digest
from advrisk.ledger.layout import EVASION_FILE, STUDY_FILE
from advrisk.ledger.storage import Storage
from advrisk.report.certificate_page import certificate_page
from advrisk.report.evidence.page import index_markdown, index_page
from advrisk.report.records import lasting

if TYPE_CHECKING:
    from advrisk.api.run import Run

_MOST = 4  # problems of a kind that are told
_MADE_FROM_ROWS = ("inputs/", "detectors/")  # kept beside the rows, and may be deleted
_OTHER_RUN = (
    "This is not the run that the pack was made from, or it was changed since: its numbers were not counted again."
)
_NO_RUN = "The numbers were not counted again: --run RUN does that."
_AS_IT_STANDS = "The report as a page and in short is taken as it stands: its digest was checked, not its sentences."


def verify_pack(path: str | Path, *, key: str | Path | None = None, run: "Run | None" = None) -> Verification:
    """Check a pack in a folder or a zip. A damaged one does not hold; what is none at all raises RunError."""
    try:
        with open_pack(Path(path)) as pack:
            return _joined(_checks(pack, key, run))
    except RiskError as error:
        return Verification((), (f"{error}.",))


def pack_summary(path: str | Path) -> str:
    """What the index of a pack says of the clauses, in a sentence."""
    with open_pack(Path(path)) as pack:
        index = pack.json(INDEX)
        return " ".join((index["summary"]["text"], *index["cautions"]))


def _checks(pack: Pack, key: str | Path | None, run: "Run | None") -> Iterator[Verification]:
    manifest = pack.json(MANIFEST)
    yield verify_signature(manifest, key=key, what="The manifest")
    files = _check_files(pack, manifest)
    yield files
    if not files.holds:
        return  # what is not as it was written is not worth reading
    yield _check_fit(pack, manifest)
    if run is None:
        yield from _check_certificates(pack, None)
        yield Verification((), (), (_NO_RUN, _AS_IT_STANDS))
        return
    rows = _check_rows(pack, run.ledger)
    yield rows
    if not rows.holds:
        yield Verification((), (), (_OTHER_RUN,))  # whatever it says would differ, number by number
        return
    yield from _check_certificates(pack, run)
    yield _check_index(pack, run)
    yield _check_record(pack, run)
    yield Verification((), (), (_AS_IT_STANDS,))


def _check_files(pack: Pack, manifest: Mapping[str, Any]) -> Verification:
    """Every file that the manifest names is there, as it was, and no other one is."""
    listed = {one["path"]: one for one in manifest["files"]}
    held = pack.sizes.keys() - {MANIFEST}
    problems = [f"{name}: is missing" for name in sorted(listed.keys() - held)]
    problems += [f"{name}: is not in the manifest, and was put there later" for name in sorted(held - listed.keys())]
    for name in sorted(held & listed.keys()):
        found = pack.digest(name)
        if (found.bytes, found.sha256) != (listed[name]["bytes"], listed[name]["sha256"]):
            problems.append(f"{name}: is not as it was when the pack was made")
    if problems:
        return Verification((), _told(problems))
    return Verification((f"All {counted(len(held), 'file')} are there as the manifest says, and no other.",), ())


def _check_fit(pack: Pack, manifest: Mapping[str, Any]) -> Verification:
    """Digests agree, the pages say what the index says, and study and curve are those of the ledger."""
    index, digest = pack.json(INDEX), pack.json(LEDGER_DIGEST)
    rows, files = digest["rows"], digest["files"]
    of_tables = {name: table["sha256"] for name, table in rows["tables"].items()}
    of_files = {one["path"]: one["sha256"] for one in files["entries"]}
    problems = _manifest_problems(pack, manifest, index)
    if rows_digest(of_tables) != rows["sha256"] or files_digest(of_files) != files["sha256"]:
        problems.append(f"{LEDGER_DIGEST}: its digests do not follow from each other")
    if index["ledger"] != rows["sha256"]:
        problems.append("Index and ledger digest name different ledgers")
    for name in (STUDY_FILE, EVASION_FILE):
        if (pack.digest(name).sha256 if name in pack.sizes else None) != of_files.get(name):
            problems.append(f"{name}: is not that of the run")
    for one in index["files"]:
        if one["path"] not in pack.sizes or pack.digest(one["path"]).sha256 != one["sha256"]:
            problems.append(f"{INDEX}: names another {one['path']} than the one in the pack")
    named = {one["path"] for one in index["files"]} | {INDEX, INDEX_PAGE, INDEX_MARKDOWN, MANIFEST}
    problems += [f"{name}: is not named in {INDEX}" for name in sorted(pack.sizes.keys() - named)]
    return _and_pages(pack, index, problems)


def _manifest_problems(pack: Pack, manifest: Mapping[str, Any], index: Mapping[str, Any]) -> list[str]:
    """Without a signature, the manifest must say nothing that no other file says."""
    known = ("run", "made", "program", "ledger")
    problems = [f"{MANIFEST}: says another {name} than {INDEX}" for name in known if manifest[name] != index[name]]
    if pack.read(MANIFEST) != f"{json_text(manifest)}\n".encode():
        problems.append(f"{MANIFEST}: is not written as advrisk writes it")
    return problems


def _and_pages(pack: Pack, index: Mapping[str, Any], problems: list[str]) -> Verification:
    if index["program"] != PROGRAM:
        note = f"advrisk {index['program']} made it, and this is {PROGRAM}: whether the pages fit was not checked."
        return _found("The files of the pack fit together.", problems, (note,))
    for name, made in ((INDEX_PAGE, index_page), (INDEX_MARKDOWN, index_markdown)):
        if pack.read(name) != made(index).encode("utf-8"):
            problems.append(f"{name}: does not say what {INDEX} says")
    problems += _page_problems(pack)
    study = ", study" if STUDY_FILE in pack.sizes else ""
    return _found(f"The files of the pack fit together: index, pages{study} and digests.", problems)


def _page_problems(pack: Pack) -> list[str]:
    """Certificates as pages must say what those for machines say."""
    problems = []
    for name in sorted(pack.sizes):
        if name.startswith(f"{CERTIFICATES}/") and name.endswith(".html"):
            record = f"{name.removesuffix('.html')}.json"
            if record not in pack.sizes:
                problems.append(f"{name}: is no page of a certificate in the pack")
            elif pack.read(name) != certificate_page(document_of(pack.read(record), record)).encode("utf-8"):
                problems.append(f"{name}: does not say what {record} says")
    return problems


def certificate_caveats(pack: Pack) -> list[str]:
    """The caveats of every certificate in a pack, each with the name of its file."""
    every = _certificates(pack)
    return [f"{name}: {caveat}" for name, content in every for caveat in content["claim"]["caveats"]]


def certificate_notes(pack: Pack) -> list[str]:
    """The notes of every certificate in a pack, each with the name of its file."""
    return [f"{name}: {note}" for name, content in _certificates(pack) for note in content["notes"]]


def _certificates(pack: Pack) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in sorted(pack.sizes):
        if name.startswith(f"{CERTIFICATES}/") and name.endswith(".json"):
            yield name, document_of(pack.read(name), name)


def _check_certificates(pack: Pack, run: "Run | None") -> Iterator[Verification]:
    for name, content in _certificates(pack):
        if run is None:
            found = verify_certificate(content)
        else:
            found = verify_certificate(content, ledger=run.ledger, study=run.study, name=run.name)
        yield Verification(
            (f"{name}: it holds.",) if found.holds else (),
            tuple(f"{name}: {problem}" for problem in found.problems),
            caveats=tuple(f"{name}: {caveat}" for caveat in found.caveats),
            stated=tuple(f"{name}: {note}" for note in found.stated),
        )


def _check_rows(pack: Pack, ledger: Ledger) -> Verification:
    """The run's rows are those of the pack, and its files, but for how rows are cut into segments."""
    digest = pack.json(LEDGER_DIGEST)
    problems = []
    for name, table in digest["rows"]["tables"].items():
        try:
            again = table_digest(ledger, name, table["columns"])
        except LedgerError as error:
            raise RiskError(f"{LEDGER_DIGEST}: {error}") from None
        if (again.rows, again.sha256) != (table["rows"], table["sha256"]):
            problems.append(f"The rows of {name} are others: {again.rows:,} now, {table['rows']:,} then")
    notes = []
    for path, change in _changes(digest["files"]["entries"], ledger.storage):
        kept = path.startswith(_MADE_FROM_ROWS)
        if path.startswith("ledger/") or (kept and change != "changed"):
            notes.append(f"{path}: {change}")
        else:
            problems.append(f"{path}: {change} since")
    return _found(
        "The rows of the run are those that the pack was made from.",
        problems,
        _on_files(notes) if notes and not problems else (),
    )


def _on_files(changes: list[str]) -> tuple[str, ...]:
    some = "; ".join(changes[:3])
    more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
    return (f"Files of the run were rewritten, added or deleted, and no row with them: {some}{more}.",)


def _changes(entries: Iterable[Mapping[str, Any]], storage: Storage) -> Iterator[tuple[str, str]]:
    then = {one["path"]: one["sha256"] for one in entries}
    now = {one.path: one.sha256 for one in run_files(storage)}
    for path in sorted(then.keys() | now.keys()):
        if path not in now:
            yield path, "gone"
        elif path not in then:
            yield path, "new"
        elif then[path] != now[path]:
            yield path, "changed"


def _check_index(pack: Pack, run: "Run") -> Verification:
    """Every number, counted again."""
    index = pack.json(INDEX)
    again = made_index(run, index["ledger"], run.findings())
    wrong = list(differences(_counted(index), _counted(again)))
    notes: tuple[str, ...] = ()
    if index["program"] == PROGRAM:
        names = ("texts", "summary", "notice", "degrees", "owners")
        wrong += differences({name: index[name] for name in names}, {name: again[name] for name in names})
    else:
        notes = ("Which clauses the numbers speak to is taken as it stands: another version said it.",)
    n = sum(len(topic["numbers"]) for topic in index["numbers"])
    problems = [f"{INDEX}: the run says otherwise: {text}" for text in wrong]
    return _found(f"All {n:,} numbers of the index were counted again in the run, and are the same.", problems, notes)


def _check_record(pack: Pack, run: "Run") -> Verification:
    """The report for machines, made again."""
    try:
        record = strict_json(pack.read(RECORD)) if RECORD in pack.sizes else None
    except (ValueError, RecursionError) as error:
        return _found("", [f"{RECORD}: cannot be read as JSON ({error})"])
    again = run.record()
    if not isinstance(record, dict) or not isinstance(record.get("provenance"), dict):
        return _found("", [f"{RECORD}: is not the report of a run"])
    made_by = record["provenance"].get("versions")
    if not isinstance(made_by, dict) or made_by.get("advrisk") != PROGRAM:
        return Verification((), (), (f"Another version made {RECORD}: what it says was not checked.",))
    wrong = differences(lasting(record), lasting(again))
    problems = [f"{RECORD}: the run says otherwise: {text}" for text in wrong]
    return _found(f"The report for machines, {RECORD}, says what the run says.", problems)


def _counted(index: Mapping[str, Any]) -> dict[str, Any]:
    """What an index says of a run, without where it stands in which file."""
    kept = ("id", "headline", "numbers", "why_none")
    numbers = {topic["id"]: {name: topic[name] for name in kept} for topic in index["numbers"]}
    return {name: index[name] for name in ("run", "unfinished", "ship", "cautions")} | {"numbers": numbers}


def _found(held: str, problems: list[str], notes: tuple[str, ...] = ()) -> Verification:
    return Verification(() if problems else (held,), _told(problems), notes)


def _told(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - _MOST
    rest = (f"And {more} more of that kind.",) if more > 0 else ()
    return (*(f"{problem}." for problem in problems[:_MOST]), *rest)


def _joined(found: Iterable[Verification]) -> Verification:
    every = list(found)
    return Verification(
        tuple(text for one in every for text in one.held),
        tuple(text for one in every for text in one.problems),
        tuple(dict.fromkeys(text for one in every for text in one.notes)),
        tuple(text for one in every for text in one.caveats),
        tuple(text for one in every for text in one.stated),
    )
