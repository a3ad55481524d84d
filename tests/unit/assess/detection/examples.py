"""Assessments of detectors made from arrays, small enough to know what they must say."""

import numpy as np

from advrisk.assess.detection.assessment import DetectionAssessment, DetectorPair, DetectorTable
from advrisk.core.estimate import Estimate
from advrisk.risk.detection.arms import defeats
from advrisk.risk.detection.entries import Scored, Settings
from advrisk.risk.detection.groups import ScoredArm
from advrisk.risk.detection.table import detection_table

HOSTILE = "[red]eye[/red]@1"
NET = "[bold]net"
N = 80


def table(scored: Scored, detector: str, *, model: str = "net", threshold: float = 1.0) -> DetectorTable:
    """Every arm that knows this detector or none tried every sample, at seven passes."""
    places = [place for place, arm in enumerate(scored.arms) if arm.against in (None, detector)]
    attacked = np.ones(scored.success.shape, dtype=bool)
    return DetectorTable(
        model=model,
        detector=detector,
        n=scored.clean.size,
        table=detection_table(scored, detector, Settings(0.95, 0.95, 20, 0)),
        defeat=defeats(scored, places, np.full(attacked.shape, 7.0), attacked, threshold=threshold, level=0.95),
    )


def assessed(
    *tables: DetectorTable, pairs: tuple[DetectorPair, ...] = (), notes: tuple[str, ...] = ()
) -> DetectionAssessment:
    return DetectionAssessment(tables, {tables[0].model: pairs}, 0.95, 0.95, {"false_alarms": 0.05}, notes)


def hostile(ace: str = "ace", kl: str = "kl") -> DetectionAssessment:
    """A model called by markup, two objectives, an attack without a size that breaks nothing, and an adaptive arm."""
    draw = np.random.default_rng(0)
    arms = (
        ScoredArm("pgd-linf-0.1-ace", family="pgd", norm="linf", eps=0.1, objective=ace),
        ScoredArm("pgd-linf-0.1-kl", family="pgd", norm="linf", eps=0.1, objective=kl),
        ScoredArm("deepfool-l2", family="deepfool", norm="l2"),
        ScoredArm("adaptive-linf-0.1", family="adaptive", norm="linf", eps=0.1, objective=ace, against=HOSTILE),
    )
    success = draw.random((4, N)) < 0.7
    success[2] = False
    scored = Scored(arms, success, draw.normal([[2.0], [1.0], [3.0], [0.2]], 1, (4, N)), draw.normal(size=N))
    pair = DetectorPair(HOSTILE, "ear@2", Estimate(0.1, -0.1, 0.3, 0.95, N, "paired"))
    return assessed(table(scored, HOSTILE, model=NET), pairs=(pair,), notes=("A note.",))


def knowing(n_broken: int, *, against: str = "eye@1", usual: bool = False) -> DetectorTable:
    """Ten samples, an arm that knows a detector and broke the first so many, and maybe another that broke none."""
    arms = [ScoredArm("adaptive-linf-0.1", family="adaptive", norm="linf", eps=0.1, against=against)]
    arms += [ScoredArm("pgd-linf-0.1", family="pgd", norm="linf", eps=0.1)] * usual
    success = np.zeros((len(arms), 10), dtype=bool)
    success[0, :n_broken] = True
    scored = Scored(tuple(arms), success, np.zeros((len(arms), 10)), np.arange(10.0))
    return table(scored, "eye@1", threshold=5.0)


def against_many(n_arms: int, *, model: str = "net") -> DetectionAssessment:
    """Two detectors with the same worst group, whose arms broke different numbers of samples."""
    draw = np.random.default_rng(0)
    arms = tuple(ScoredArm(f"pgd #{k}", family="pgd", norm="linf", eps=0.1) for k in range(n_arms))
    success = draw.random((n_arms, 50)) < 0.6
    tables = []
    for name in ("eye@1", "ear@2"):
        scored = Scored(arms, success, draw.normal(1, size=(n_arms, 50)), draw.normal(size=50))
        tables.append(table(scored, name, model=model))
    return assessed(*tables)


def two_sizes() -> DetectionAssessment:
    """The AUROC is lower at the first size, but so is chance; the second is hardly above it. In l2 nothing broke."""
    arms = [ScoredArm(f"pgd {k}", family="pgd", norm="linf", eps=8 / 255) for k in range(5)]
    arms += [ScoredArm("fgsm", family="fgsm", norm="linf", eps=0.2), ScoredArm("cw", family="cw", norm="l2")]
    success = np.ones((7, 100), dtype=bool)
    success[6] = False
    score = np.vstack([np.full((5, 100), 49.5), np.full((2, 100), 59.5)])
    return assessed(table(Scored(tuple(arms), success, score, np.arange(100.0)), "eye@1", threshold=99.0))
