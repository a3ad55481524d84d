"""The verbs `certify` and `verify`: certificates as documents, and whether they hold."""

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from advrisk.cli import DONE, FAILED, UNDECIDED
from advrisk.cli.completion import run_folders
from advrisk.cli.options import AsJson, OfNorm, OfSigner, rate_of, sizes_of
from advrisk.cli.replaying import Further, OfStudy, ReplaySeed
from advrisk.core.errors import RiskError, RunError, StudyError
from advrisk.core.files import regular

OfAlpha = Annotated[
    str | None,
    typer.Option("--alpha", metavar="RATE", help="The risk to certify: 0.1, or 10 % (default: the study's, or 0.1)."),
]
OfZeta = Annotated[
    str | None,
    typer.Option(
        "--zeta", metavar="RATE", help="How often the procedure may certify wrongly (default: the study's, or 0.05)."
    ),
]


def certify(
    folder: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="The folder of a run.", autocompletion=run_folders)
    ] = None,
    alpha: OfAlpha = None,
    zeta: OfZeta = None,
    model: Annotated[list[str] | None, typer.Option(help="Certify this model only; repeat for more.")] = None,
    norm: OfNorm = None,
    eps: Annotated[str | None, typer.Option(help="Make claims up to this size only, as in 8/255.")] = None,
    out: Annotated[str | None, typer.Option(help="Where the files go (default: certificates in RUN).")] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign with the private key in this file.")
    ] = None,
    signer: OfSigner = None,
    new_key: Annotated[
        Path | None, typer.Option("--new-key", metavar="KEY", help="Make a key to sign with, and do nothing else.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace signed certificates, whatever the new ones answer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a certificate of each model, to be signed and shared.

    It states that the model's attacks break at most alpha of inputs, or that this is not certified: a page for people
    and a JSON file for machines. Exit code 0: all is certified, 1: it is not, 4: it is, with caveats that weaken it.
    All models of a run share zeta, also those that --model leaves out.

    Example: advrisk certify runs/signs --alpha 0.1 --zeta 0.05 --sign key.pem --signer "Ada Example"
    """
    if new_key is not None:
        _make_key(new_key, alone=folder is None)
        return
    if folder is None:
        raise StudyError("say which run to certify: `advrisk certify RUN`; or `advrisk certify --new-key KEY`")
    from advrisk.api import Run
    from advrisk.cli.certificates import print_written

    sizes = sizes_of([eps]) if eps is not None else None
    written = Run.open(folder).certify(
        out,
        alpha=rate_of("--alpha", alpha),
        zeta=rate_of("--zeta", zeta),
        models=model,
        norm=norm,
        eps=sizes[0] if sizes else None,
        key=sign,
        signer=signer,
        replace=replace,
    )
    print_written(written, as_json=as_json)
    if all(one.certified for one in written):
        raise typer.Exit(DONE)
    weakened = all(one.certified or one.weakened for one in written)
    raise typer.Exit(UNDECIDED if weakened else FAILED)


def verify(
    certificate: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The JSON file of a certificate, or an evidence pack (a folder or a zip); or its URL."
        ),
    ],
    key: Annotated[Path | None, typer.Option("--key", help="The signer's public key.")] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Count again in this run, and compare.", autocompletion=run_folders),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="STUDY[:MODEL]", help="Compare this model, or a FILE of weights, with the certified one."
        ),
    ] = None,
    replay: Annotated[
        int | None,
        typer.Option("--replay", metavar="K", min=1, help="Attack K random samples of the run again, and compare."),
    ] = None,
    replay_seed: ReplaySeed = None,
    study: OfStudy = None,
    as_json: AsJson = False,
) -> None:
    """Verify a certificate or an evidence pack.

    Of a certificate, its signature, its numbers and words, and with a run all that it was made from. Of an evidence
    pack, that every file is as it was, that none is missing or was added, the signature, and with a run every digest
    and number. Exit code 0: it holds (whatever it says: a certificate may also say that nothing is certified, or name
    caveats), 1: it does not, 2: it is neither a certificate nor a pack.

    With --model, also whether a model that you have is the certified one; with --replay, whether attacks give the rows
    that the run holds. Both load models and data as the run's study says, or that of --study.

    Example: advrisk verify certificates/plain.json --key signer.pub.pem --run runs/signs --replay 20
    """
    from advrisk.api.evidence.files import is_pack
    from advrisk.cli.evidence import verify_evidence
    from advrisk.ledger.sync.files import input_file

    further = Further(model, replay, replay_seed, study)
    further.refuse_alone(run)
    with input_file(certificate) as path:
        if is_pack(path):
            further.refuse_for_pack()
            raise typer.Exit(verify_evidence(path, key, run, place=certificate, as_json=as_json))
        _verify_certificate(path, key, run, further, place=certificate, as_json=as_json)


def _verify_certificate(
    path: Path, key: Path | None, run: str | None, further: Further, *, place: str, as_json: bool
) -> NoReturn:
    from advrisk.api import Run
    from advrisk.api.certificates import verify_certificate
    from advrisk.assess.certificate.document import read_document
    from advrisk.assess.certificate.verification import Verification
    from advrisk.cli.certificates import claim_text, print_verification

    opened = Run.open(run) if run is not None else None
    _refuse_other(path)
    what = "certificate"
    try:
        content = read_document(path)
    except RiskError as error:
        print_verification(Verification((), (f"{error}.",)).calling(path, place), None, what=what, as_json=as_json)
        raise typer.Exit(FAILED) from None
    if opened is None:
        found = verify_certificate(content, key=key)
    else:
        found = verify_certificate(content, key=key, ledger=opened.ledger, study=opened.study, name=opened.name)
    found, facts = further.checked(found, content, opened)
    says = claim_text(content) if found.holds else None
    print_verification(found, says, what=what, as_json=as_json, facts=facts)
    raise typer.Exit(DONE if found.holds else FAILED)


def _refuse_other(path: Path) -> None:
    """A file that is no JSON, as one that was cut off, or is another kind of JSON, is the user's mistake."""
    from advrisk.assess.certificate.document import KIND, MAX_BYTES, strict_json

    try:
        with regular(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError:
        return  # said where it is read
    why = ""
    try:
        found = None if len(content) > MAX_BYTES else strict_json(content)
        known = isinstance(found, dict) and found.get("advrisk") == KIND
    except (json.JSONDecodeError, UnicodeDecodeError):
        known, why = False, " (JSON that is cut off or damaged)" if content.lstrip()[:1] == b"{" else ""
    except (ValueError, RecursionError):
        known = True  # JSON that somebody altered: it does not hold
    if not known:
        raise RunError(
            f"{path}: is neither a certificate nor an evidence pack{why}; `advrisk certify RUN` and "
            "`advrisk evidence RUN` write them"
        )


def _make_key(path: Path, *, alone: bool) -> None:
    from advrisk.assess.certificate.signature import new_key

    if not alone:
        raise StudyError(
            "--new-key makes a key and certifies nothing; leave out the run, and sign with --sign KEY then"
        )
    private, public = new_key(path)
    print(f"{private} written: keep it to yourself, and sign with it: advrisk certify RUN --sign {private}")
    print(f"{public} written: give it to those who verify: advrisk verify FILE.json --key {public}")
