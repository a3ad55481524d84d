"""`advrisk ledger replay`, and what `advrisk verify` asks of models: are these the certified ones, do rows replay?"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advrisk.cli import DONE, FAILED
from advrisk.cli.options import AsJson, Device, RunFolder
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.plain import json_text, plain_fields

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.assess.certificate.verification import Verification

OfStudy = Annotated[
    Path | None, typer.Option("--study", help="A study that says where models and data are (default: the run's).")
]
ReplaySeed = Annotated[
    int | None, typer.Option("--replay-seed", help="Draw the samples with this seed (default: a new one, printed).")
]


_NOT_COMPARED = "No model and no row was compared with it: it cannot be read as a certificate."


def replay(
    folder: RunFolder,
    k: Annotated[int, typer.Argument(min=1, help="How many samples.")],
    study: OfStudy = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Draw the samples with this seed (default: a new one, printed).")
    ] = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Attack K random samples again, and compare the rows.

    Rows that were written by hand are not given again, whatever their digests are. Models and data are those of the
    study, and nothing is written. Exit code 1: rows differ.

    Example: advrisk ledger replay runs/signs 20 --study study.yaml
    """
    from advrisk.api import Run

    found = Run.open(folder).replay(k, study=study, seed=seed, device=device)
    verified = found.verification()
    print(json_text(plain_fields(verified) | found.as_dict())) if as_json else _print(verified)
    raise typer.Exit(DONE if verified.holds else FAILED)


def _print(found: "Verification") -> None:
    from advrisk.render.terminal import Terminal, indented

    console = Terminal()
    for sentence in (*found.problems, *found.held, *found.notes):
        indented(console, f"· {sentence}", by=0)


@dataclass(frozen=True)
class Further:
    """What `verify` is asked beyond the document: a model to compare, samples to replay."""

    model: str | None
    replay: int | None
    seed: int | None
    study: Path | None

    def refuse_alone(self, run: str | None) -> None:
        """Refuse options that do nothing without the one that they belong to."""
        if self.replay is not None and run is None:
            raise StudyError("--replay attacks samples of a run again: say which one, with --run RUN")
        if self.seed is not None and self.replay is None:
            raise StudyError("--replay-seed says how the samples of --replay are drawn: add --replay K")

    def refuse_for_pack(self) -> None:
        """Refuse these options with an evidence pack, which may hold certificates of several models."""
        if self.model is not None or self.replay is not None:
            raise StudyError(
                "--model and --replay are about one certificate: unpack the pack and give one of its certificates; "
                "`advrisk ledger replay RUN K` replays a whole run"
            )

    def checked(
        self, found: "Verification", content: Mapping[str, Any], run: "Run | None"
    ) -> tuple["Verification", dict[str, Any]]:
        """The verification with these checks, and what JSON says of them."""
        facts: dict[str, Any] = {}
        if self.model is None and (self.replay is None or run is None):
            return found, facts
        from advrisk.api.verifying import deployed_model, joined, replay_run
        from advrisk.assess.certificate.document import parsed
        from advrisk.assess.certificate.verification import Verification

        try:
            parsed(content)
        except RiskError:  # the verification says why
            return joined(found, Verification((), (), (_NOT_COMPARED,))), facts
        if self.model is not None:
            model = deployed_model(content, self.model, run=run, study=self.study)
            found, facts["model"] = joined(found, model.verification()), model.as_dict()
        if self.replay is not None and run is not None:
            again = replay_run(run, self.replay, certificate=content, study=self.study, seed=self.seed)
            found, facts["replay"] = joined(found, again.verification()), again.as_dict()
        return found, facts
