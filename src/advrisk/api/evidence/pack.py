"""Writing an evidence pack: report, certificates, study, digests of the ledger, the index and a manifest of it all."""

import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.api.certificates import FOLDER as CERTIFICATES
from advrisk.api.certificates import verify_certificate
from advrisk.api.evidence.files import KIND, MANIFEST, VERSION, open_pack
from advrisk.assess.certificate.document import read_document
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.certificate.signature import check_signer, signed
from advrisk.core.clock import time_of_making
from advrisk.core.errors import LedgerError, RiskError, RunError
from advrisk.core.files import unfinished_folder, whole_file, whole_folder
from advrisk.core.plain import json_text
from advrisk.core.version import VERSION as PROGRAM
from advrisk.ledger.digests import LedgerDigest, file_digest, ledger_digest
from advrisk.ledger.frozen import has_lost_question
from advrisk.ledger.layout import EVASION_FILE, STUDY_FILE
from advrisk.ledger.sync.files import output_file, output_folder
from advrisk.report import Findings, write_report
from advrisk.report.certificate_page import certificate_page
from advrisk.report.evidence.index import REPORT, PackFile, evidence_index
from advrisk.report.evidence.page import index_markdown, index_page

if TYPE_CHECKING:
    from advrisk.api.run import Run

FOLDER = "evidence"  # of a run
RECORD, MARKDOWN = "report.json", "report.md"
INDEX, INDEX_PAGE, INDEX_MARKDOWN = "index.json", "index.html", "index.md"
LEDGER_DIGEST = "ledger-digest.json"
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can name
_FILE_MODE = 0o100644 << 16
_WHAT = {
    REPORT: "the report: every number, with figures",
    RECORD: "the same for machines: every number",
    MARKDOWN: "the same in short: the summary and the main tables",
    STUDY_FILE: "the study as it was understood: the question",
    EVASION_FILE: "the evasion curve that the study names",
    LEDGER_DIGEST: "SHA-256 of the run's rows and files",
}


@dataclass(frozen=True)
class Sign:
    """A private key to sign with, and the name that the signer states."""

    key: Path | None = None
    name: str | None = None


def write_pack(run: "Run", out: str | Path | None, *, key: Path | None = None, signer: str | None = None) -> Path:
    """A folder, or a zip where the name says so; an earlier pack there is replaced, anything else is refused."""
    check_signer(key, signer)  # before anything is written
    sign = Sign(key, signer)
    if run.url and out is None:
        raise LedgerError(f"{run.url}: an evidence pack of several files cannot be written there; say where, as a .zip")
    place = out or run.folder / FOLDER
    if not str(place).partition("?")[0].lower().endswith(".zip"):
        return _written(run, output_folder(place, "an evidence pack that is no .zip"), sign)
    with output_file(place, keep=True, earlier=True) as file:
        return _written(run, file, sign)


def _written(run: "Run", out: Path, sign: "Sign") -> Path:
    target = out.absolute()
    _refuse_foreign(target)
    try:
        if target.suffix.lower() != ".zip":
            with whole_folder(target) as folder:
                _fill(run, folder, sign)
            return out
        with unfinished_folder(target.with_suffix("")) as folder, whole_file(target) as file:
            _fill(run, folder, sign)
            _zip(folder, file)
    except OSError as error:
        raise RunError(f"{target}: the evidence pack cannot be written: {error.strerror or error}") from None
    return out


def made_index(run: "Run", rows: str, found: Findings, folder: Path | None = None) -> dict[str, Any]:
    """The index of a pack whose other files are in that folder; without one, of the run's numbers alone."""
    files = [] if folder is None else _files(folder)
    page = (folder / REPORT).read_text(encoding="utf-8") if folder is not None else ""
    status = run.status()
    return evidence_index(
        run.ledger,
        run.study,
        found,
        name=run.name,
        made=time_of_making(),
        rows=rows,
        unfinished="" if status.done else f"{status.so_far} are done",
        files=files,
        sections=set(re.findall(r'<section id="([a-z-]+)"', page)),
    )


def _fill(run: "Run", folder: Path, sign: "Sign") -> None:
    found, digest = run.findings(), ledger_digest(run.ledger)
    write_report(run.folder, run.ledger, run.study, folder / REPORT, found)
    run.report(folder / RECORD, form="json")
    run.report(folder / MARKDOWN, form="markdown")
    for name in (STUDY_FILE, EVASION_FILE):
        if (run.folder / name).is_file():
            shutil.copyfile(run.folder / name, folder / name)
    _put_certificates(run, found, folder / CERTIFICATES, sign)
    _put_json(folder / LEDGER_DIGEST, {"advrisk": "ledger-digest", "version": VERSION, **digest.as_dict()})
    index = made_index(run, digest.rows, found, folder)
    _put_json(folder / INDEX, index)
    (folder / INDEX_PAGE).write_text(index_page(index), encoding="utf-8")
    (folder / INDEX_MARKDOWN).write_text(index_markdown(index), encoding="utf-8")
    manifest = _manifest(run.name, index["made"], digest, folder)
    _put_json(folder / MANIFEST, signed(manifest, sign.key, name=sign.name) if sign.key else manifest)


def _manifest(name: str, made: str, digest: LedgerDigest, folder: Path) -> dict[str, Any]:
    files = [vars(file_digest(path, path.relative_to(folder).as_posix())) for path in _paths(folder)]
    return {
        "advrisk": KIND,
        "version": VERSION,
        "run": name,
        "made": made,
        "program": PROGRAM,
        "ledger": digest.rows,
        "files": files,
    }


def _put_certificates(run: "Run", found: Findings, target: Path, sign: "Sign") -> None:
    """Those that lie in the run, if they still follow from it; else new ones, where there is something to certify.

    None where the run lost its question: nothing can be checked any more, and the index says why.
    """
    if has_lost_question(run.ledger):
        return
    held = sorted((run.folder / CERTIFICATES).glob("*.json"))
    if not held:
        if found.result(CertificateAssessment):
            run.certify(target, key=sign.key, signer=sign.name)
        return
    target.mkdir()
    for path in held:
        try:
            content = read_document(path)
        except RiskError as error:
            raise RunError(f"{error}; move it elsewhere, or write it anew: advrisk certify {run.folder}") from None
        checked = verify_certificate(content, ledger=run.ledger, study=run.study, name=run.name)
        if not checked.holds:
            raise RunError(
                f"{path}: does not hold any more. {checked.problems[0]} Write it anew: advrisk certify {run.folder}"
            )
        shutil.copyfile(path, target / path.name)
        (target / path.name).with_suffix(".html").write_text(certificate_page(content), encoding="utf-8")


def _files(folder: Path) -> list[PackFile]:
    found = []
    for path in _paths(folder):
        name = path.relative_to(folder).as_posix()
        if name.startswith(f"{CERTIFICATES}/"):
            what = "a certificate, as a page" if path.suffix == ".html" else "a certificate, for machines"
        else:
            what = _WHAT[name]
        found.append(PackFile(what=what, **vars(file_digest(path, name))))
    return found


def _paths(folder: Path) -> list[Path]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(paths, key=lambda path: path.relative_to(folder).as_posix())


def _put_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(f"{json_text(content)}\n", encoding="utf-8")


def _zip(folder: Path, target: Path) -> None:
    """Same files, same bytes: no times, no owners, one order."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _paths(folder):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _BEGINNING)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, _FILE_MODE
            archive.writestr(entry, path.read_bytes(), compresslevel=6)


def _refuse_foreign(target: Path) -> None:
    """What is there already must be an evidence pack, and nothing but one: it will be replaced."""
    if not target.exists() and not target.is_symlink():
        return
    wants_zip = target.suffix.lower() == ".zip"
    if target.is_symlink() or target.is_dir() == wants_zip:
        raise RunError(f"{target}: is there already, and no evidence pack; choose another name")
    if target.is_dir() and not any(target.iterdir()):
        return
    try:
        with open_pack(target) as pack:
            known = {one["path"] for one in pack.json(MANIFEST)["files"]} | {MANIFEST}
            foreign = sorted(pack.sizes.keys() - known)
    except (RiskError, RunError):
        raise RunError(f"{target}: is there already, and no evidence pack; choose another name") from None
    if foreign:
        raise RunError(f"{target}: holds {foreign[0]}, which is no part of an evidence pack; choose another name")
