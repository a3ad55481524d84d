"""An assessment as another package would bring it, in one file: how often arms change a model's prediction.

It stands outside the tree on purpose: a test installs it by its entry point, and asks for it everywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from advrisk.assess.context import Context
from advrisk.assess.protocol import Assessment
from advrisk.core.errors import StudyError
from advrisk.core.estimate import Estimate, NamedEstimate
from advrisk.core.sections import Column, Figure, Headline, Section, Table, Text, Unanswered
from advrisk.risk.proportion import proportion
from advrisk.study import AssessmentTraits, Quantity, StudySpec, assessments
from advrisk.study.fields import Strict

_ROWS = """
    SELECT model, count(*) FILTER (flipped) AS flips, count(*) AS n FROM (
        SELECT model, sample, bool_or(prediction <> clean_prediction) AS flipped FROM evaluated
        WHERE kind <> 'clean' AND prediction IS NOT NULL AND coalesce(eps, 0) <= $largest GROUP BY model, sample
    ) GROUP BY model ORDER BY model
"""


class FlipRateSpec(Strict):
    """How often a perturbation changes what a model answers."""

    largest: Annotated[float, Field(ge=0, description="Count perturbations up to this eps only.")] = 1.0
    detail: Annotated[bool, Field(description="Show the counts, too.")] = False


@dataclass(frozen=True)
class FlipRates:
    rates: Mapping[str, Estimate]
    counts: Mapping[str, int]
    detail: bool


@assessments.register(
    "flip-rate",
    traits=AssessmentTraits(
        title="How often answers flip",
        spec=FlipRateSpec,
        quantities={"flips": Quantity("share of samples whose prediction some perturbation changes", "share")},
        use_when="labels are not to be trusted",
    ),
)
class FlipRate(Assessment):
    """How often arms change a model's prediction, right or wrong."""

    def check(self, study: StudySpec, spec: FlipRateSpec) -> None:
        if spec.largest == 0 and all(arm.corruption is None for arm in study.arms):
            raise StudyError("flip-rate: found `largest: 0` and no corruption, so nothing could be counted")

    def assess(self, context: Context, spec: FlipRateSpec) -> FlipRates | Unanswered:
        rows = context.ledger.query(_ROWS, {"largest": spec.largest}).to_pylist()
        if not rows:
            return Unanswered(f"no perturbation had an eps up to {spec.largest:g}", "raise `largest`")
        return FlipRates(
            {row["model"]: proportion(row["flips"], row["n"], level=context.level) for row in rows},
            {row["model"]: row["n"] for row in rows},
            spec.detail,
        )

    def sections(self, result: FlipRates, models: Sequence[str]) -> Iterator[Section]:
        worst = max(result.rates, key=lambda model: result.rates[model].value)
        yield Headline(f"{worst} changes its answer most often, on {result.rates[worst].in_percent()} of samples.")
        columns = (Column("model"), Column("flip rate", "share"), Column("samples", "count"))
        rows = [(model, rate, result.counts[model]) for model, rate in result.rates.items()]
        yield Table("Flip rate of every model", columns, tuple(rows))
        bars = {"type": "bar", "x": list(result.rates), "y": [rate.value for rate in result.rates.values()]}
        yield Figure("Flip rates", {"data": [bars], "layout": {"height": 300}}, "Flip rate of each model.")
        if result.detail:
            yield Text(tuple(f"{model}: {n} samples were perturbed." for model, n in result.counts.items()), "Counts")

    def quantities(self, result: FlipRates) -> Iterator[NamedEstimate]:
        return (NamedEstimate("flips", model, rate) for model, rate in result.rates.items())
