"""What two runs say of certificates: one that searched for the worst settings, and one of a stronger attack."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from advrisk import Run
from advrisk.assess.certificate.records import CertificateAssessment, ListCertificate
from advrisk.core.errors import RunError
from advrisk.ledger.searches import SearchRecord
from advrisk.risk.certificate import CertifiedSizes, certified_sizes
from advrisk.risk.certificate.verdict import Certificate

_SPENT = """
    SELECT split, sum(n_forward + coalesce(n_backward, 0))::BIGINT AS passes FROM outcomes JOIN samples USING (sample)
    WHERE split IN ('tune', 'calibrate') GROUP BY split
"""
_BUSY = "SELECT sum(process_s) AS seconds FROM cells"


@dataclass(frozen=True)
class Spent:
    """What a run took: passes on the samples of each split, and seconds in which a core was busy."""

    tuning: int
    calibrating: int
    busy_s: float


@dataclass(frozen=True, eq=False)
class Attacked:
    """One run: what is certified of every model, and what that took."""

    name: str  # of the study
    family: str  # of the attacks
    found: CertificateAssessment
    searches: tuple[SearchRecord, ...]
    spent: Spent

    @property
    def models(self) -> list[str]:
        return [one.model for one in self.found.models]

    def lists(self, model: str) -> tuple[ListCertificate, ...]:
        """Those of a model, in ascending eps."""
        return self.found.of(model).lists

    def largest(self, model: str) -> float | None:
        """The largest eps within which the attacks are certified."""
        (sizes,) = self.found.of(model).sizes.values()
        return sizes.largest

    @property
    def right(self) -> dict[str, CertifiedSizes]:
        """The same procedure, asked another question: answers that are wrong, with or without an attack."""
        return certified_sizes(
            {model: {one.eps: _p_of_wrong(one) for one in self.lists(model)} for model in self.models}, self.found.zeta
        )


@dataclass(frozen=True, eq=False)
class Findings:
    """Both runs, on the same models and samples."""

    searched: Attacked
    stronger: Attacked
    training: Mapping[str, str]  # model -> how it was trained

    @property
    def both(self) -> tuple[Attacked, Attacked]:
        return self.searched, self.stronger


def findings(searched: Path, stronger: Path) -> Findings:
    """Read both; they must be about the same models and the same samples to calibrate."""
    first, second = _attacked(searched), _attacked(stronger)
    if not first.searches:
        raise RunError(f"{searched}: has no search; name the run of a study with `search` first")
    if first.found.calibration.fingerprint != second.found.calibration.fingerprint:
        raise RunError(
            f"{searched} and {stronger} have different samples to calibrate; give both studies the same data"
        )
    if _sized(first) != _sized(second):
        raise RunError(f"{searched} and {stronger} have different models or sizes; give both studies the same ones")
    tags = {row["model"]: json.loads(row["tags"] or "{}") for row in Run.open(searched).models()}
    return Findings(first, second, {model: str(own.get("training", "")) for model, own in tags.items()})


def _attacked(folder: Path) -> Attacked:
    run = Run.open(folder)
    found = run.certificate()
    if not found.finished:
        raise RunError(f"{folder}: is not finished; run its study again")
    if any(len(model.sizes) != 1 for model in found.models):
        raise RunError(f"{folder}: has attacks in several norms, and the tables have room for one; leave one out")
    families = {str(attack.family) for one in found.lists for attack in one.attacks}
    return Attacked(run.name, " and ".join(sorted(families)).upper(), found, tuple(run.searches()), _spent(run))


def _sized(one: Attacked) -> set[tuple[str, str, float]]:
    return {(each.model, each.norm, each.eps) for each in one.found.lists}


def _spent(run: Run) -> Spent:
    passes = {row["split"]: int(row["passes"]) for row in run.query(_SPENT).to_pylist()}
    (busy,) = run.query(_BUSY).to_pylist()
    return Spent(passes.get("tune", 0), passes.get("calibrate", 0), float(busy["seconds"] or 0.0))


def _p_of_wrong(one: ListCertificate) -> float:
    wrong = tested(one).wrong
    return 1.0 if wrong is None else wrong.p


def tested(one: ListCertificate) -> Certificate:
    """The test of a list by itself."""
    if one.certificate is None:
        raise RunError(f"{one.model}, {one.norm} {one.eps:g}: is not finished; run the study again")
    return one.certificate
