"""`advrisk evidence`: a pack of files for those who ask for evidence; and what `advrisk verify` says of one."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from advrisk.cli import DONE, FAILED
from advrisk.cli.options import AsJson, OfSigner, RunFolder


def evidence(
    folder: RunFolder,
    out: Annotated[
        str | None, typer.Option(help="A folder, or a zip if the name ends so (default: evidence in RUN).")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign with the private key in this file.")
    ] = None,
    signer: OfSigner = None,
    as_json: AsJson = False,
) -> None:
    """Pack report, certificates, study and digests for an audit.

    An index says which clauses the numbers speak to, of the EU AI Act (Art. 9 and 15), NIST AI RMF (MEASURE 2) and
    ISO/IEC 24029, and who can answer the others. This is no legal advice. `advrisk certify --new-key KEY` makes
    a key; `advrisk verify PACK` checks a pack.

    Example: advrisk evidence runs/signs --out signs-evidence.zip --sign key.pem
    """

    from advrisk.api import Run
    from advrisk.api.evidence.files import MANIFEST, open_pack
    from advrisk.api.evidence.pack import INDEX, INDEX_PAGE
    from advrisk.api.evidence.verification import certificate_caveats, certificate_notes
    from advrisk.render.terminal import Terminal, indented
    from advrisk.report.evidence.clauses import OTHERS
    from advrisk.report.evidence.page import MARKS, clause_names, others_by_owner, supported_texts

    target = Run.open(folder).evidence(out, key=sign, signer=signer)
    place = str(out or target)
    with open_pack(target) as pack:
        index, manifest = json.loads(pack.read(INDEX)), json.loads(pack.read(MANIFEST))
        n_files = len(pack.sizes)
        caveats, notes = certificate_caveats(pack), certificate_notes(pack)
    if as_json:
        facts = {"path": place, "files": n_files, "ledger": manifest["ledger"], "signed": "signature" in manifest}
        said = {"summary": index["summary"], "cautions": index["cautions"], "caveats": caveats, "notes": notes}
        print(json.dumps(facts | said, indent=2, ensure_ascii=False))
        return
    console = Terminal()
    for caution in index["cautions"]:
        console.print(caution, style="bold yellow")
    console.print(index["summary"]["text"], style="bold")
    for caveat in caveats:
        indented(console, f"Caveat: {caveat}", by=0)
    for note in notes:
        indented(console, f"Note: {note}", by=0)
    for text in supported_texts(index):
        named = ", ".join(f"{MARKS[clause['degree']]} {clause['id']}" for clause in text["clauses"])
        indented(console, f"{text['title'].partition(':')[0]}: {named}", by=2)
    for owner, clauses in others_by_owner(index).items():
        indented(console, f"{MARKS[OTHERS]} For {owner}: {clause_names(clauses)}", by=2)
    indented(console, f"· {index['notice']}", by=0)
    begin = f"unpack it, and open {INDEX_PAGE}" if target.is_file() else f"open {INDEX_PAGE} in it"
    signed = ", signed" if "signature" in manifest else ""
    check = f"advrisk verify {shlex.quote(place)}"
    print(f"{place} written ({n_files} files{signed}); {begin} in a browser. Check it: {check}")


def verify_evidence(pack: Path, key: Path | None, run: str | None, *, place: str, as_json: bool) -> int:
    """Print whether a pack holds, which lies at that place or is a copy of what does; the exit code."""
    from advrisk.api import Run
    from advrisk.api.evidence.verification import pack_summary, verify_pack
    from advrisk.cli.certificates import print_verification

    found = verify_pack(pack, key=key, run=Run.open(run) if run is not None else None).calling(pack, place)
    says = pack_summary(pack) if found.holds else None
    print_verification(found, says, what="evidence pack", as_json=as_json)
    return DONE if found.holds else FAILED
