"""A part of a run: some of its models, and the samples of some classes and strata."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advrisk.core.errors import RiskError, StudyError
from advrisk.core.names import counted, did_you_mean, nearest, one_or_many
from advrisk.ledger.ledger import Ledger

AnyWhere = str | Sequence[str] | Mapping[str, Any]  # `class=3,site=a`, several of these, or {"class": 3, "site": "a"}
CLASS = "class"  # the label, unless a stratum has that name
_SHOWN = 12  # values of a stratum that an error lists
_MODELS = """
    SELECT DISTINCT model FROM arms WHERE origin IN ('study', 'import') AND kind IS DISTINCT FROM 'clean' ORDER BY model
"""
_SAMPLES = "SELECT sample, label, strata FROM samples WHERE split = 'evaluate' ORDER BY sample"


@dataclass(frozen=True)
class View:
    """Which models and samples of a run are assessed; None and nothing: all of them."""

    models: tuple[str, ...] | None = None
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # stratum -> values, of which a sample has one
    n_models: int = 0  # of the run
    n_samples: int = 0  # that are left
    n_samples_of: int = 0  # of the run

    def __bool__(self) -> bool:
        return self.models is not None or bool(self.where)

    @property
    def where_text(self) -> str:
        """`class = 3 or 5, site = a`."""
        return ", ".join(f"{name} = {' or '.join(values)}" for name, values in self.where.items())

    def sentences(self) -> list[str]:
        """What is left out, for everything that shows numbers of this part."""
        lines = []
        if self.where:
            lines.append(
                f"Only samples with {self.where_text}: {self.n_samples:,} of {counted(self.n_samples_of, 'sample')}."
            )
        if self.models is not None:
            lines.append(
                f"Only {', '.join(self.models)}: {len(self.models)} of {counted(self.n_models, 'model')}. Relative "
                "damage depends on which models are compared."
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `null` where nothing was left out."""
        return {
            "models": None if self.models is None else list(self.models),
            "where": {name: list(values) for name, values in self.where.items()} or None,
            "n_samples": self.n_samples if self.where else None,
            "n_samples_of": self.n_samples_of if self.where else None,
        }


ALL = View()


def restricted(
    ledger: Ledger, models: Sequence[str] | str | None = None, where: AnyWhere | None = None
) -> tuple[Ledger, View]:
    """The part of a ledger, and what it is a part of; names and values that the run does not hold are refused.

    What names every model, or leaves no sample out, restricts nothing.
    """
    chosen = None if models is None else _chosen_models(ledger, one_or_many(models))
    asked = {} if where is None else parse_where(where)
    samples, n_all = (None, 0) if not asked else _chosen_samples(ledger, asked)
    known = _models(ledger)
    if chosen is not None and len(chosen) == len(known):
        chosen = None
    if samples is not None and len(samples) == n_all:
        asked, samples = {}, None
    view = View(chosen, asked, len(known), len(samples or ()), n_all)
    return ledger.restricted(models=chosen, samples=samples), view


def parse_where(given: AnyWhere) -> dict[str, tuple[str, ...]]:
    """Stratum -> values. In text, `class=3,5,site=a` is class 3 or 5, at site a."""
    found: dict[str, list[str]] = {}
    for name, value in _pairs(given):
        found.setdefault(name, []).append(value)
    if not found:
        raise StudyError("a filter of samples is empty; write STRATUM=VALUE, as in class=3,site=a")
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}


def _pairs(given: AnyWhere) -> Iterable[tuple[str, str]]:
    if isinstance(given, Mapping):
        for name, values in given.items():
            several = values if isinstance(values, Sequence | set) and not isinstance(values, str) else [values]
            yield from ((str(name), str(value)) for value in several)
        return
    for text in one_or_many(given):
        name = ""
        for part in text.split(","):
            before, sign, value = part.partition("=")
            name = before.strip() if sign else name
            value = value.strip() if sign else part.strip()
            if not name or not value:
                raise StudyError(f"a filter of samples is STRATUM=VALUE, as in class=3,site=a; found {text!r}")
            yield name, value


def _models(ledger: Ledger) -> list[str]:
    return [str(name) for name in ledger.query(_MODELS)["model"].to_pylist()]


def _chosen_models(ledger: Ledger, models: Sequence[str]) -> tuple[str, ...]:
    known = _models(ledger)
    for model in models:
        if model not in known:
            raise RiskError(f"no model called {model!r} in this run; {did_you_mean(model, known)}")
    return tuple(dict.fromkeys(models))


def _chosen_samples(ledger: Ledger, where: Mapping[str, tuple[str, ...]]) -> tuple[list[str], int]:
    """The samples to evaluate that have one of the values of each stratum, and how many there are in all."""
    rows = ledger.query(_SAMPLES).to_pylist()
    strata = [json.loads(row["strata"] or "{}") for row in rows]
    for row, own in zip(rows, strata, strict=True):
        if row["label"] is not None:
            own.setdefault(CLASS, str(row["label"]))
    for name, values in where.items():
        _refuse_unknown(name, values, strata)
    left = [
        row["sample"]
        for row, own in zip(rows, strata, strict=True)
        if all(own.get(name) in values for name, values in where.items())
    ]
    if not left:
        asked = ", ".join(f"{name} = {' or '.join(values)}" for name, values in where.items())
        raise RiskError(f"no sample has {asked} at the same time; leave out one of these")
    return left, len(rows)


def _refuse_unknown(name: str, values: Sequence[str], strata: Sequence[Mapping[str, str]]) -> None:
    names = {one for own in strata for one in own}
    if name not in names:
        raise RiskError(f"samples have no stratum {name!r}; {did_you_mean(name, names)}")
    known = {own[name] for own in strata if name in own}
    for value in values:
        if value not in known:
            raise RiskError(f"no sample has {name} = {value!r}; {_hint(value, known)}")


def _hint(value: str, known: set[str]) -> str:
    """The nearest value, or the first ones there are."""
    if close := nearest(value, known):
        return f"did you mean {close!r}?"
    order = sorted(known, key=lambda one: (not one.isdigit(), int(one) if one.isdigit() else 0, one))
    more = f" and {len(order) - _SHOWN} more" if len(order) > _SHOWN else ""
    return f"known: {', '.join(order[:_SHOWN])}{more}"
