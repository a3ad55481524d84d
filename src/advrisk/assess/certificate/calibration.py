"""The calibration samples of a certificate, and the reasons to refuse them.

A p-value speaks of a population only if the samples were drawn from it independently of each other, of training and of
the search for attacks. What can be seen of that is checked here; the rest is an assumption that a certificate states.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from advrisk.core.digest import digest
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger
from advrisk.risk.certificate.betting import calibration_order
from advrisk.risk.certificate.counts import probability_of_even_counts

Population = Literal["as-sampled", "balanced"]

_TOO_EVEN = 0.05  # largest probability that chance makes groups this even
_NAMED = 3  # samples named in a message
_SAMPLES = "SELECT sample, hash, label, weight, strata FROM samples WHERE split = 'calibrate'"
_TAINTED = """
    SELECT c.sample, o.sample AS other, o.split FROM samples c JOIN samples o ON c.hash = o.hash
    WHERE c.split = 'calibrate' AND o.split IN ('train', 'tune', 'dropped-train', 'dropped-tune') ORDER BY ALL
"""
_EVALUATED = """
    SELECT count(DISTINCT c.sample) AS n FROM samples c JOIN samples o ON c.hash = o.hash
    WHERE c.split = 'calibrate' AND o.split IN ('evaluate', 'dropped', 'dropped-calibrate')
"""


@dataclass(frozen=True)
class CalibrationSet:
    """Samples on which a frozen list of attacks is tested once, in the order of the interim analyses."""

    samples: tuple[str, ...]
    fingerprint: str  # of ids and contents, in any order
    classes: Mapping[int, int]  # class -> number of samples; -1: unknown class
    population: Population
    evened: tuple[str, ...]  # what is equally frequent by design: `class`, or the name of a stratum
    notes: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.samples)


def read_calibration(ledger: Ledger, *, population: Population | None = None) -> CalibrationSet:
    """The calibration split of a run; refused if it cannot support a certificate.

    `population` says what they were drawn from: `as-sampled`, whatever it is that deployment meets, or `balanced`, one
    in which all classes (or values of a stratum) are equally frequent. Where nothing is said, samples so even that
    chance hardly makes them are refused.
    """
    rows = ledger.query(_SAMPLES).to_pylist()
    if not rows:
        raise RiskError(
            "this run holds no sample to calibrate, and a certificate rests on those alone; give the study some, as in "
            "`data: {…, calibrate: 1000}`, and run it again"
        )
    _refuse_tainted(ledger)
    _refuse_weights(rows)
    evened = _evened(rows)
    if evened and population is None:
        raise RiskError(_on_evened(rows, evened))
    if population == "balanced" and not evened:
        raise RiskError(
            "the study says `population: balanced`, but neither the classes nor any stratum of the samples to "
            f"calibrate are equally frequent ({_frequencies(rows, 'class')}); say `population: as-sampled`"
        )
    return CalibrationSet(
        samples=calibration_order({row["sample"]: row["hash"] or "" for row in rows}),
        fingerprint=digest(sorted([row["sample"], row["hash"] or ""] for row in rows)),
        classes=dict(sorted(Counter(_label(row) for row in rows).items())),
        population=population or "as-sampled",
        evened=evened if population == "balanced" else (),
        notes=tuple(_notes(rows, evened, population)),
        caveats=(*_on_copies(rows), *_on_attacked_copies(ledger)),
    )


def _evened(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Classes or strata whose values are as equally frequent as possible, which chance rarely produces.

    What is another value for every sample, such as the number of a frame, names samples and makes no group.
    """
    found = []
    for name in ("class", *_strata(rows)):
        counts = list(_counts(rows, name).values())
        named = name != "class" and max(counts) == 1
        even = len(counts) > 1 and max(counts) - min(counts) <= 1
        if even and not named and probability_of_even_counts(counts) < _TOO_EVEN:
            found.append(name)
    return tuple(found)


def _counts(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    values = [str(_label(row)) if name == "class" else str(_strata_of(row).get(name)) for row in rows]
    return dict(sorted(Counter(values).items()))


def _frequencies(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    counts = _counts(rows, name)
    return f"between {min(counts.values())} and {max(counts.values())} samples by {name}"


def _strata(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in _strata_of(row)))


def _strata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["strata"] or "{}")
    return found


def _label(row: Mapping[str, Any]) -> int:
    return -1 if row["label"] is None else int(row["label"])


def _on_evened(rows: Sequence[Mapping[str, Any]], evened: Sequence[str]) -> str:
    counts = _counts(rows, evened[0])
    sizes = sorted(set(counts.values()))
    each = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} or {sizes[-1]}"
    what = "every class" if evened[0] == "class" else f"every value of {evened[0]}"
    return (
        f"{what} has {each} samples to calibrate, which chance hardly makes: they seem to be chosen that way, and then "
        "they stand for another population than the one that deployment meets. Draw them at random; or say "
        "`population: balanced` in assess.certificate, and the certificate names that population; or `population: "
        "as-sampled` if all are equally frequent in deployment, too"
    )


def _refuse_weights(rows: Sequence[Mapping[str, Any]]) -> None:
    weights = [1.0 if row["weight"] is None else row["weight"] for row in rows]
    if min(weights) != max(weights):
        raise RiskError(
            f"the samples to calibrate have weights from {min(weights):g} to {max(weights):g}, but a certificate "
            "counts every sample once; draw samples as often as their weights say, and leave the weights out"
        )


def _refuse_tainted(ledger: Ledger) -> None:
    """Refuse samples from training or tuning: they are no evidence about new ones."""
    found = ledger.query(_TAINTED).to_pylist()
    if not found:
        return
    named = [f"{row['sample']} (to {row['split']}: {row['other']})" for row in found[:_NAMED]]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    raise RiskError(
        f"samples to calibrate have the same content as samples to train or tune: {', '.join(named)}{more}; a "
        "certificate needs samples that neither saw; take the copies out of the data"
    )


def _on_copies(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A caveat on duplicate samples, which violate the independence that a certificate assumes."""
    twice = len(rows) - len({row["hash"] or row["sample"] for row in rows})
    if not twice:
        return []
    return [
        f"Samples to calibrate with the same content as another one: {twice}. They count, though they are hardly "
        "independent draws: take the copies out of the data, and certify on new samples in a new folder."
    ]


def _on_attacked_copies(ledger: Ledger) -> list[str]:
    """A caveat on samples that this run attacked under another name, so that results were visible before the test."""
    (n,) = ledger.query(_EVALUATED)["n"].to_pylist()
    if not n:
        return []
    return [
        f"Samples to calibrate with the content of a sample that this run attacks, or attacked, under another name: "
        f"{n}. What is asked may have been chosen after those results: take the copies out of the data, and certify on "
        "new samples in a new folder."
    ]


def _notes(rows: Sequence[Mapping[str, Any]], evened: Sequence[str], population: Population | None) -> list[str]:
    notes = []
    if evened and population == "as-sampled":
        notes.append(
            f"Samples to calibrate are equally frequent by {' and '.join(evened)}; the study says that they are so in "
            "deployment, too."
        )
    if any(row["hash"] is None for row in rows):
        notes.append("The contents of samples are not known here, so nobody checked that none was used before.")
    return notes
