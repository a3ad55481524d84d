"""Evidence packs of imported rows: what is in them, the same bytes twice, and that every kind of tampering is found."""

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk import Run
from advrisk.api.evidence import pack as evidence_pack
from advrisk.api.evidence.verification import verify_pack
from advrisk.assess.certificate.signature import new_key
from advrisk.core.errors import RunError
from advrisk.core.plain import json_text
from advrisk.ledger import Ledger
from advrisk.ledger.exchange.importing import import_outcomes
from advrisk.report.evidence.index import evidence_index
from advrisk.report.evidence.page import clause_names, index_markdown, index_page, others_by_owner, supported_texts

NAMES = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "a|b`c`",
    "{{ 7 * 7 }}",
    "مرحبا",
    "n" * 10_000,
]
FILES = [
    *("index.html", "index.json", "index.md", "ledger-digest.json", "manifest.json"),
    *("report.html", "report.json", "report.md"),
]


def imported(folder: Path, models: list[str], factor: float = 1.0) -> Run:
    rows = [
        {"model": model, "sample": str(n), "d_linf": factor * n / (10 + place)}
        for place, model in enumerate(models)
        for n in range(1, 9)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "theirs.parquet")
    import_outcomes(folder / "theirs.parquet", folder / "run", norm="linf")
    return Run.open(folder / "run")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return imported(tmp_path_factory.mktemp("imported"), ["plain", "hardened"])


def small_report(folder: Path, ledger: object, study: object, target: Path, found: object) -> Path:
    """Stands in for the report, which takes longer than all the rest and has tests of its own."""
    target.write_text('<section id="table"></section><section id="curves"></section>')
    return target


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence_pack, "write_report", small_report)
        yield


@pytest.fixture(scope="module")
def written(run: Run, quick: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run.evidence(tmp_path_factory.mktemp("written") / "pack")


@pytest.fixture
def pack(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "pack"))


def manifest_of(pack: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((pack / "manifest.json").read_text())
    return found


def remade(pack: Path) -> None:
    """What a forger does who has no key: digests and pages that fit the changed files."""
    index = json.loads((pack / "index.json").read_text())
    (pack / "index.json").write_text(json_text(index) + "\n")
    (pack / "index.html").write_text(index_page(index))
    (pack / "index.md").write_text(index_markdown(index))
    manifest = manifest_of(pack)
    for one in manifest["files"]:
        content = (pack / one["path"]).read_bytes()
        one |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (pack / "manifest.json").write_text(json_text(manifest) + "\n")


def test_a_pack_holds_what_its_manifest_says(written: Path, run: Run) -> None:
    assert sorted(path.name for path in written.iterdir()) == FILES
    manifest = manifest_of(written)
    assert [one["path"] for one in manifest["files"]] == [name for name in FILES if name != "manifest.json"]
    for one in manifest["files"]:
        content = (written / one["path"]).read_bytes()
        assert (one["bytes"], one["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    digest = json.loads((written / "ledger-digest.json").read_text())
    for one in digest["files"]["entries"]:
        assert hashlib.sha256((run.folder / one["path"]).read_bytes()).hexdigest() == one["sha256"]
    assert digest["rows"]["tables"]["outcomes"]["rows"] == run.outcomes().num_rows == 16
    assert manifest["ledger"] == digest["rows"]["sha256"]


def test_links_lead_to_files_and_sections(written: Path) -> None:
    page = (written / "index.html").read_text()
    ids = set(re.findall(r' id="([^"]+)"', page))
    in_report = set(re.findall(r' id="([^"]+)"', (written / "report.html").read_text()))
    links = re.findall(r'href="([^"]+)"', page)
    assert len(links) > 50
    for link in links:
        file, _, section = link.partition("#")
        assert not file or (written / file).is_file()
        assert not section or section in (in_report if file else ids)


def test_what_a_run_does_not_hold_answers_nothing(written: Path) -> None:
    index = json.loads((written / "index.json").read_text())
    clauses = {clause["id"]: clause for text in index["texts"] for clause in text["clauses"]}
    assert clauses["Art. 15(3)"]["degree"] == "left to others"  # no clean rows were imported
    assert (
        clauses["Art. 15(3)"]["not_in_this_run"][0]["why"] == "the ledger holds no clean rows of samples with a label"
    )
    assert clauses["MEASURE 2.1"]["degree"] == "contributes"  # and no study says how they were made
    assert clauses["Art. 15(5)"]["degree"] == "contributes"
    assert clauses["Art. 15(5)"]["numbers"] == ["success"]
    absent = {one["numbers"] for one in clauses["Art. 15(5)"]["not_in_this_run"]}
    assert absent == {"damage", "detection", "survival", "certificates"}
    every = [clause["degree"] for text in index["texts"] for clause in text["clauses"]]
    counts = {name: every.count(name) for name in index["degrees"]}
    assert index["summary"]["counts"] == counts
    assert counts["answers"] == 0
    assert index["summary"]["text"] == (
        f"Of {len(every)} clauses, this run answers 0 for what it tested and contributes figures to "
        f"{counts['contributes']}. The other {counts['left to others']} are for a study that asks for more (8), the "
        "developers of the model (7), the operator (3), the provider's risk management (5), the owners and labellers "
        "of the data (1), no one (the clause asks for no figure) (2)."
    )


def test_clauses_left_to_others_stand_last_and_by_who_can_answer_them(written: Path) -> None:
    index = json.loads((written / "index.json").read_text())
    groups = others_by_owner(index)
    assert [one["id"] for one in groups["the operator"]] == ["Art. 9(2)(c)", "Art. 9(7)", "MEASURE 2.4"]
    assert clause_names(groups["the operator"]) == (
        "EU AI Act, Article 9: Art. 9(2)(c), Art. 9(7); NIST AI Risk Management Framework, MEASURE 2: MEASURE 2.4"
    )
    assert "Art. 15(3)" in [one["id"] for one in groups["a study that asks for more"]]
    n_supported = sum(len(text["clauses"]) for text in supported_texts(index))
    assert n_supported + sum(map(len, groups.values())) == index["summary"]["clauses"]
    page = (written / "index.html").read_text()
    body = page[page.index('<main id="content">') :]
    assert body.index("◐ contributes") < body.index('<section id="others">') < body.index("<h3>For the operator</h3>")
    assert "left to others" not in body[: body.index('<section id="others">')]


def test_the_same_run_gives_the_same_bytes(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first, second = (Run.open(run.folder).evidence(tmp_path / name) for name in ("a.zip", "b.zip"))
    assert first.read_bytes() == second.read_bytes()
    assert "2023-11-14" in zipfile.ZipFile(first).read("index.md").decode()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(RunError, match="SOURCE_DATE_EPOCH must be whole seconds since 1970, found 'yesterday'"):
        run.evidence(tmp_path / "c.zip")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "b.zip"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0, 0.31, 0.77, -1])
def test_a_changed_byte_is_found(pack: Path, name: str, place: float) -> None:
    content = bytearray((pack / name).read_bytes())
    at = place if place in (0, -1) else int(place * len(content))
    content[int(at)] ^= 1
    (pack / name).write_bytes(content)
    assert not verify_pack(pack).holds


@pytest.mark.parametrize("name", FILES)
def test_missing_added_and_renamed_files_are_found(pack: Path, name: str) -> None:
    (pack / name).rename(pack / f"other-{name}")
    if name == "manifest.json":
        with pytest.raises(RunError, match=r"holds no manifest\.json and is no evidence pack"):
            verify_pack(pack)
    else:
        added = "is not in the manifest, and was put there later"
        assert verify_pack(pack).problems == (f"{name}: is missing.", f"other-{name}: {added}.")
    shutil.copyfile(pack / f"other-{name}", pack / name)
    assert not verify_pack(pack).holds
    (pack / f"other-{name}").unlink()
    assert verify_pack(pack).holds
    (pack / "notes" / "deep").mkdir(parents=True)
    (pack / "notes" / "deep" / "more.txt").write_text("more")
    assert "notes/deep/more.txt: is not in the manifest" in verify_pack(pack).problems[0]


def test_without_a_key_a_forger_is_found_by_the_run_alone(pack: Path, run: Run, tmp_path: Path) -> None:
    index = json.loads((pack / "index.json").read_text())
    topic = next(topic for topic in index["numbers"] if topic["id"] == "success")
    topic["numbers"][0]["estimate"]["value"] *= 1.01
    (pack / "index.json").write_text(json_text(index) + "\n")
    remade(pack)
    assert verify_pack(pack).holds
    found = verify_pack(pack, run=run)
    assert not found.holds
    assert "index.json: the run says otherwise: numbers.success.numbers[0].estimate.value is" in found.problems[0]
    _, public = new_key(tmp_path / "key.pem")
    assert "it is not signed" in verify_pack(pack, key=public).problems[0]


def test_degrees_and_words_are_counted_again(pack: Path, run: Run) -> None:
    text = (pack / "index.json").read_text()
    (pack / "index.json").write_text(text.replace('"degree": "left to others"', '"degree": "answers"', 1))
    remade(pack)
    found = verify_pack(pack, run=run)
    assert "texts[0].clauses[0].degree is 'answers', and should be 'left to others'" in found.problems[0]


def test_a_page_that_nobody_made_is_found_though_the_manifest_names_it(pack: Path, run: Run) -> None:
    (pack / "certificates").mkdir()
    page = pack / "certificates" / "plain.html"
    page.write_text("<h1>plain is certified</h1>")
    manifest = manifest_of(pack)
    digest = hashlib.sha256(page.read_bytes()).hexdigest()
    manifest["files"].append({"path": "certificates/plain.html", "bytes": page.stat().st_size, "sha256": digest})
    (pack / "manifest.json").write_text(json_text(manifest) + "\n")
    assert "certificates/plain.html: is not named in index.json" in verify_pack(pack).problems[0]


def test_the_report_for_machines_is_made_again(pack: Path, run: Run) -> None:
    assert "The report for machines, report.json, says what the run says." in verify_pack(pack, run=run).held
    record = json.loads((pack / "report.json").read_text())
    record["damage"]["models"][0]["model"] = "another"
    (pack / "report.json").write_text(json_text(record) + "\n")
    index = json.loads((pack / "index.json").read_text())
    for one in index["files"]:
        if one["path"] == "report.json":
            content = (pack / "report.json").read_bytes()
            one |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (pack / "index.json").write_text(json_text(index) + "\n")
    remade(pack)
    assert verify_pack(pack).holds
    assert "damage.models[0].model is 'another'" in verify_pack(pack, run=run).problems[0]


def test_pages_that_say_something_else_are_found(pack: Path) -> None:
    page = pack / "index.html"
    page.write_text(page.read_text().replace("left to others", "answers"))
    manifest = manifest_of(pack)
    for one in manifest["files"]:
        if one["path"] == "index.html":
            one |= {"bytes": page.stat().st_size, "sha256": hashlib.sha256(page.read_bytes()).hexdigest()}
    (pack / "manifest.json").write_text(json_text(manifest) + "\n")
    assert verify_pack(pack).problems == ("index.html: does not say what index.json says.",)


def test_a_signature_names_who_made_it(run: Run, tmp_path: Path) -> None:
    key, public = new_key(tmp_path / "key.pem")
    other, other_public = new_key(tmp_path / "other.pem")
    pack = run.evidence(tmp_path / "pack", key=key, signer="Ada Example")
    found = verify_pack(pack, key=public, run=run)
    assert found.holds
    assert "The files of the pack fit together: index, pages and digests." in found.held  # without a study
    assert found.held[0].startswith("The manifest was signed in the name of Ada Example with that key (")
    assert "signed with another key" in verify_pack(pack, key=other_public).problems[0]
    remade(pack)
    manifest = manifest_of(pack)
    (pack / "manifest.json").write_text(json_text(manifest | {"made": "2020-01-01 00:00:00 UTC"}) + "\n")
    assert "something was changed after it was signed" in verify_pack(pack, key=public).problems[0]
    run.evidence(pack, key=other)
    assert "signed with another key" in verify_pack(pack, key=public).problems[0]


def test_another_ledger_is_found_and_a_compacted_one_is_not(written: Path, run: Run, tmp_path: Path) -> None:
    assert verify_pack(written, run=run).holds
    other = imported(tmp_path / "other", ["plain", "hardened"], factor=1.5)
    found = verify_pack(written, run=other)
    assert "The rows of outcomes are others: 16 now, 16 then." in found.problems
    assert len(found.problems) + len(found.held) + len(found.notes) <= 10
    assert not any("{" in sentence for sentence in (*found.problems, *found.notes))
    assert "This is not the run that the pack was made from" in found.notes[-1]
    assert not any("no row with them" in note for note in found.notes)
    compacted = tmp_path / "compacted" / "run"
    tables = {name: run.query(f"FROM {name}") for name in ("outcomes", "cells", "arms", "models", "samples")}
    ledger = Ledger.open(compacted, create=True)
    from advrisk.ledger import TABLES

    ledger.append({name: table.cast(TABLES[name]) for name, table in tables.items()})
    found = verify_pack(written, run=Run.open(compacted))
    assert found.problems == ()
    assert "Files of the run were rewritten, added or deleted, and no row with them" in " ".join(found.notes)


def test_a_study_that_was_put_there_later_is_found(written: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / "evasion.json").write_text("{}")
    changed = Run.open(tmp_path / "run")
    assert verify_pack(written, run=changed).problems == ("evasion.json: new since.",)


def test_only_packs_are_replaced(run: Run, pack: Path, tmp_path: Path) -> None:
    assert verify_pack(run.evidence(pack), run=run).holds
    (pack / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match=r"holds mine\.txt, which is no part of an evidence pack; choose another name"):
        run.evidence(pack)
    assert (pack / "mine.txt").read_text() == "mine"
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("cat")
    (tmp_path / "letters.zip").write_text("not a zip")
    (tmp_path / "file").write_text("a file")
    (tmp_path / "link").symlink_to(pack)
    for name in ("photos", "letters.zip", "file", "link"):
        with pytest.raises(RunError, match=rf"{name}: is there already, and no evidence pack; choose another name"):
            run.evidence(tmp_path / name)
    (tmp_path / "empty").mkdir()
    assert verify_pack(run.evidence(tmp_path / "empty")).holds
    with pytest.raises(RunError, match="the evidence pack cannot be written"):
        run.evidence(tmp_path / "file" / "pack")


@pytest.mark.parametrize("name", ["pack", "pack.zip"])
def test_nothing_is_left_half_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def broken(index: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(evidence_pack, "index_page", broken)
        with pytest.raises(RunError, match="the evidence pack cannot be written: No space left on device"):
            run.evidence(tmp_path / "new" / name)
        assert list((tmp_path / "new").iterdir()) == []
    earlier = run.evidence(tmp_path / name)
    with monkeypatch.context() as patch:
        patch.setattr(evidence_pack, "index_page", broken)
        with pytest.raises(RunError):
            run.evidence(tmp_path / name)
    assert verify_pack(earlier).holds
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", name]


def test_a_wrong_key_is_refused_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(RunError, match="holds no private key in PEM form"):
        run.evidence(tmp_path / "pack", key=tmp_path / "key.pem")
    assert not (tmp_path / "pack").exists()


def test_strings_from_outside_are_text(tmp_path: Path) -> None:
    hostile = imported(tmp_path, NAMES)
    pack = hostile.evidence(tmp_path / "pack")
    assert verify_pack(pack, run=hostile).holds
    page = (pack / "index.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}" in page
    markdown = (pack / "index.md").read_text()
    assert "<script" not in markdown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {6, 9, 5}
    assert any(r"a\|b\`c\`" in row for row in rows)


@pytest.fixture
def forge(written: Path, tmp_path: Path) -> Callable[..., Path]:
    """A zip of the pack, and whatever is written into it besides."""

    def make(*extra: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
        with zipfile.ZipFile(tmp_path / "forged.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(written.iterdir()):
                archive.write(path, path.name)
            for name, content in extra:
                archive.writestr(name, content)
        return tmp_path / "forged.zip"

    return make


def test_a_zip_made_by_others_holds(forge: Callable[..., Path], run: Run) -> None:
    assert verify_pack(forge(), run=run).holds
    assert verify_pack(forge((zipfile.ZipInfo("certificates/"), b""))).holds  # some write folders, too


def entry(name: str, *, mode: int = 0o100644, **fields: Any) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    for field, value in fields.items():
        setattr(made, field, value)
    return made


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../../etc/passwd", "leads out of the pack"),
        ("/etc/passwd", "leads out of the pack"),
        ("a/../../b", "leads out of the pack"),
        ("a//b", "leads out of the pack"),
        ("C:\\x", "is no name that a file of a pack can have"),
        ("..\\..\\x", "is no name that a file of a pack can have"),
        ("a\nb", "is no name that a file of a pack can have"),
        ("x" * 600, "is no name that a file of a pack can have"),
        (entry("none", filename="\0none"), "is no name that a file of a pack can have"),
        ("INDEX.html", "stands there twice"),
        (entry("link", mode=0o120777), "is neither a file nor a folder, but a link or a device"),
        (entry("pipe", mode=0o010644), "is neither a file nor a folder, but a link or a device"),
        (entry("packed", compress_type=zipfile.ZIP_LZMA), "is compressed in a way that packs do not use"),
    ],
)
def test_hostile_names_in_a_zip_are_refused(
    forge: Callable[..., Path], name: zipfile.ZipInfo | str, problem: str, tmp_path: Path
) -> None:
    found = verify_pack(forge((name, b"/etc/passwd")))
    assert len(found.problems) == 1
    assert f"{problem}; nothing was unpacked." in found.problems[0]
    assert [path.name for path in tmp_path.iterdir()] == ["forged.zip"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_there_twice_is_refused(forge: Callable[..., Path]) -> None:
    assert "'index.json' stands there twice" in verify_pack(forge(("index.json", b"{}"))).problems[0]


def test_zips_that_are_too_large_are_refused_unread(
    forge: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = forge(("zeros", bytes(20_000_000)))
    assert bomb.stat().st_size < 100_000
    with monkeypatch.context() as patch:
        patch.setattr("advrisk.api.evidence.files.MAX_BYTES", 15_000_000)
        assert "holds more than the 15,000,000 bytes that a pack may have" in verify_pack(bomb).problems[0]
    monkeypatch.setattr("advrisk.api.evidence.files.MAX_FILES", 6)
    assert "lists more files than the 6 that a pack may have" in verify_pack(bomb).problems[0]


def test_a_file_that_is_larger_than_it_says_is_found(forge: Callable[..., Path]) -> None:
    path = forge((entry("zeros"), bytes(1000)))
    content = path.read_bytes()
    small = content.replace((1000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert small != content
    path.write_bytes(small)
    assert not verify_pack(path).holds


def test_damaged_encrypted_and_foreign_zips_are_told(forge: Callable[..., Path], tmp_path: Path) -> None:
    whole = forge().read_bytes()
    for n in (10, 100, len(whole) // 2, len(whole) - 30, len(whole) - 5):
        (tmp_path / "cut.zip").write_bytes(whole[:n])
        found = verify_pack(tmp_path / "cut.zip")
        assert len(found.problems) == 1
        assert "is no whole zip: its end is missing" in found.problems[0] or "cannot be read" in found.problems[0]
    (tmp_path / "text.zip").write_text("hello")
    with pytest.raises(RunError, match="is no evidence pack: neither a folder nor a zip"):
        verify_pack(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(RunError, match=r"holds no manifest\.json and is no evidence pack"):
        verify_pack(tmp_path / "other.zip")
    locked = bytearray(whole)
    locked[locked.find(b"PK\1\2") + 8] |= 1  # the flag of encryption, in the list at the end
    (tmp_path / "locked.zip").write_bytes(locked)
    assert "is encrypted; nothing was unpacked" in verify_pack(tmp_path / "locked.zip").problems[0]
    with pytest.raises(RunError, match="the evidence pack cannot be read: No such file"):
        verify_pack(tmp_path / "nothing.zip")


@pytest.mark.parametrize("more", [b"\n", b"<script>", b"PK\5\6" + bytes(18)])
def test_bytes_after_a_signed_zip_are_refused(run: Run, tmp_path: Path, more: bytes) -> None:
    path = run.evidence(tmp_path / "pack.zip")
    assert verify_pack(path).holds
    path.write_bytes(path.read_bytes() + more)
    (problem,) = verify_pack(path).problems
    assert "bytes follow the archive" in problem or "belong to no file" in problem or "cannot be read" in problem


def test_a_comment_of_a_zip_is_refused(run: Run, tmp_path: Path) -> None:
    path = run.evidence(tmp_path / "pack.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"certified up to 0.9"
    assert "19 bytes follow the archive, and no signature covers them" in verify_pack(path).problems[0]


@pytest.mark.parametrize("place", ["before", "between", "behind"])
def test_bytes_that_belong_to_no_file_of_a_zip_are_refused(run: Run, tmp_path: Path, place: str) -> None:
    path = run.evidence(tmp_path / "pack.zip")
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    at = {"before": 0, "between": 1, "behind": len(files)}[place]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for n, (name, content) in enumerate(files.items()):
            if n == at:
                _write_raw(made, b"PK: smuggled")
            made.writestr(name, content)
        if at == len(files):
            _write_raw(made, b"PK: smuggled")
    (problem,) = verify_pack(path).problems
    assert "12 bytes in it belong to no file; nothing was unpacked" in problem


def _write_raw(archive: zipfile.ZipFile, content: bytes) -> None:
    """Write bytes where the next file, or the list of files, would begin."""
    archive.fp.seek(archive.start_dir)
    archive.fp.write(content)
    archive.start_dir = archive.fp.tell()
    archive._didModify = True


def test_whatever_byte_of_a_zip_is_changed_a_message_tells(run: Run, tmp_path: Path) -> None:
    whole = run.evidence(tmp_path / "pack.zip").read_bytes()
    unchanged = verify_pack(tmp_path / "pack.zip").held
    rng = np.random.default_rng(0)
    n_found = 0
    for place in [*range(len(whole) - 40, len(whole)), *rng.integers(0, len(whole), 160).tolist()]:
        content = bytearray(whole)
        content[place] ^= int(rng.integers(1, 256))
        (tmp_path / "changed.zip").write_bytes(content)
        found = verify_pack(tmp_path / "changed.zip")
        assert not found.holds or found.held == unchanged  # times and attributes of entries are not read
        n_found += not found.holds
    assert n_found > 100


def test_links_in_a_folder_are_not_followed(pack: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (pack / "link").symlink_to(tmp_path / "secret")
    assert "'link' is neither a file nor a folder, but a link or a device" in verify_pack(pack).problems[0]


def test_a_folder_without_a_manifest_is_no_pack_whatever_links_it_holds(pack: Path, tmp_path: Path) -> None:
    (pack / "link").symlink_to(tmp_path)
    (pack / "manifest.json").unlink()
    with pytest.raises(RunError, match=r"holds no manifest\.json and is no evidence pack"):
        verify_pack(pack)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        "not json",
        "[" * 100_000,
        '{"advrisk": "evidence-pack", "version": 3}',
        '{"advrisk": "evidence-pack", "version": 2}',
        '{"advrisk": "evidence-pack", "version": 2, "files": [{"path": "../x", "bytes": 1}]}',
        '{"advrisk": "evidence-pack", "version": 2, "files": [], "files": []}',
    ],
)
def test_any_manifest_is_answered_with_a_message(pack: Path, content: str) -> None:
    (pack / "manifest.json").write_text(content)
    assert len(verify_pack(pack).problems) == 1


@pytest.mark.parametrize("name", ["index.json", "ledger-digest.json"])
@pytest.mark.parametrize("change", [{"rows": 1}, {"numbers": {}}, {"files": None}, {"ledger": []}, {"texts": 3}])
def test_any_index_is_answered_with_a_message(pack: Path, run: Run, name: str, change: dict[str, Any]) -> None:
    content = json.loads((pack / name).read_text())
    if not change.keys() <= content.keys():
        return
    (pack / name).write_text(json_text(content | change) + "\n")
    manifest = manifest_of(pack)
    for one in manifest["files"]:
        raw = (pack / one["path"]).read_bytes()
        one |= {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    (pack / "manifest.json").write_text(json_text(manifest) + "\n")
    assert not verify_pack(pack, run=run).holds


def test_few_samples_answer_nothing_and_the_index_says_so_on_top(pack: Path) -> None:
    index = json.loads((pack / "index.json").read_text())
    caution = "Only 8 samples to evaluate: with fewer than 30, a run wholly answers no clause."
    assert index["cautions"] == [caution]
    assert (pack / "index.md").read_text().splitlines()[4] == f"**{caution}**"
    page = (pack / "index.html").read_text()
    assert page.index(caution) < page.index('class="degrees"')


def test_an_unfinished_run_says_so_first(run: Run) -> None:
    index = evidence_index(
        *(run.ledger, run.study, run.findings()),
        name="signs",
        made=datetime(2026, 1, 1, tzinfo=UTC),
        rows="0" * 64,
        unfinished="4 of 15 cells are done",
        files=[],
        sections=[],
    )
    assert index["cautions"][0] == "The run is not finished: 4 of 15 cells are done. The numbers are those so far."
    assert index["summary"]["counts"]["answers"] == 0
    assert index_markdown(index).splitlines()[4] == f"**{index['cautions'][0]}**"


def test_the_dates_of_files_say_nothing(run: Run, written: Path, tmp_path: Path) -> None:
    shutil.copytree(run.folder, tmp_path / "run", copy_function=shutil.copyfile)  # with other dates
    assert "written" not in json.loads((written / "report.json").read_text())["provenance"]
    assert verify_pack(written, run=Run.open(tmp_path / "run")).holds
