"""Survival as text for a terminal: how long each model survives, what that depends on, and what breaking it costs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from advrisk.cli.lines import show_result
from advrisk.core.estimate import Estimate
from advrisk.core.values import estimate_text
from advrisk.render.terminal import indented, print_fitting
from advrisk.report.survival import (
    ON_CONCORDANCE,
    ON_PROBABILITY,
    ON_RATES,
    calibration_words,
    cost_words,
    extrapolated_text,
    median_text,
    number_text,
    probabilities,
    probability_columns,
    refusing,
    standing_text,
    survival_headline,
    survival_words,
    verdict_text,
)
from advrisk.report.survival_laws import coefficient_table, factor_names

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.assess.survival.assessment import SurvivalAssessment
    from advrisk.assess.survival.models import ModelSurvival
    from advrisk.risk.survival.families_table import FamilyRow
    from advrisk.risk.survival.records import AccelerationFactor


def show_survival(run: "Run", *, out_csv: str | None, as_json: bool, **asked: Any) -> None:
    """`advrisk show survival RUN`."""
    found = run.survival(**asked)
    show_result(found, found.as_dict, lambda: print_survival(found), out_csv=out_csv, as_json=as_json)


def print_survival(found: "SurvivalAssessment") -> None:
    """The models, what explains them, the laws, the costs, and the Pareto front."""
    console = Console()
    _say(console, [survival_headline(found)])
    _print_models(console, found)
    _print_probabilities(console, found)
    _print_factors(console, found)
    _print_coefficients(console, found)
    _print_families(console, found)
    _print_costs(console, found)
    if found.pareto:
        _print_pareto(console, found)
    _say(console, [f"· {sentence}" for sentence in survival_words(found)])


def _print_models(console: Console, found: "SurvivalAssessment") -> None:
    columns = ["model", f"mean up to {found.until:.4g}", "median", "broken", "held", "at zero"]
    columns += [*_clean_columns(found), "f_ben", "f_adv"]
    rows = [
        [
            one.model,
            _stacked(one.mean),
            median_text(one).replace(" [", "\n["),
            str(one.tally.events),
            str(one.tally.censored),
            str(one.tally.at_zero),
            *_clean_shares(found, one),
            _stacked(None if one.benign is None else one.benign.estimate),
            _stacked(None if one.adversarial is None else one.adversarial.estimate),
        ]
        for one in found.models
    ]
    print_fitting(console, columns, rows)


def _clean_columns(found: "SurvivalAssessment") -> list[str]:
    return ["clean accuracy", *(["clean inputs refused"] if refusing(found) else [])]


def _clean_shares(found: "SurvivalAssessment", one: "ModelSurvival") -> list[str]:
    """Clean accuracy and, if any model refuses inputs, how many clean ones this one refuses."""
    shares = [one.clean_accuracy, *([one.clean_rejection] if refusing(found) else [])]
    return [estimate_text(share, "share") for share in shares]


def _print_probabilities(console: Console, found: "SurvivalAssessment") -> None:
    """The rates as probabilities, over stated times."""
    if not any(one.benign or one.adversarial for one in found.models):
        return
    console.print("Rates as probabilities of at least one failure:", markup=False, highlight=False)
    rows = [[one.model, *map(_stacked, probabilities(one))] for one in found.models]
    print_fitting(console, ["model", *probability_columns(found)], rows)
    _say(console, [f"· {ON_PROBABILITY}", f"· {ON_RATES}"])


def _print_pareto(console: Console, found: "SurvivalAssessment") -> None:
    console.print("Pareto front:", markup=False, highlight=False)
    rows = [
        [one.model, *_clean_shares(found, found.of(one.model)), standing_text(one, found.criteria)]
        for one in found.pareto
    ]
    print_fitting(console, ["model", *_clean_columns(found), "standing"], rows)


def _print_factors(console: Console, found: "SurvivalAssessment") -> None:
    """What covariates do, where the law holds; else why nothing is said of them."""
    factors = () if found.law is None else found.law.acceleration_factors()
    if not factors:
        return
    console.print("What makes it survive longer (above 1) or shorter:", markup=False, highlight=False)
    names = factor_names(found)
    rows = [[names[one.name], _stacked(one.per_range), *_per_unit(one)] for one in factors]
    print_fitting(console, ["covariate", "times as long, whole range", "for one unit", "unit"], rows)


def _per_unit(one: "AccelerationFactor") -> list[str]:
    """The factor of one unit and that unit; of names there is none."""
    return ["–", "–"] if "=" in one.name else [_stacked(one.per_unit), one.unit_text]


def _print_coefficients(console: Console, found: "SurvivalAssessment") -> None:
    """All laws side by side."""
    rows = [[row.name, *map(_stacked, row.effects)] for row in coefficient_table(found)]
    if not rows:
        return
    console.print("Coefficients of all laws, on the log of time, whole range:", markup=False, highlight=False)
    families = [f"{one.family}{' (taken)' if one.chosen else ''}" for one in found.families]
    print_fitting(console, ["coefficient", *families], rows)


def _print_families(console: Console, found: "SurvivalAssessment") -> None:
    if not found.families:
        return
    columns = ["law", "AIC", "BIC", "log-likelihood", "concordance", "behind"]
    columns += ["mean", "extrapolated", "median"] if found.law is not None else []
    rows = [
        [
            f"{one.family}{' (taken)' if one.chosen else ''}",
            *(f"{value:.1f}" for value in (one.aic, one.bic, one.log_likelihood)),
            f"{one.concordance:.3f}",
            "–" if one.behind is None else f"{one.behind:.1f}",
            *_law_times(found, one),
        ]
        for one in found.families
    ]
    print_fitting(console, columns, rows)
    said = [f"· {ON_CONCORDANCE}"]
    if (checked := found.calibrated) is not None:
        said.append(f"· {calibration_words(checked)}")
    _say(console, said)


def _law_times(found: "SurvivalAssessment", one: "FamilyRow") -> list[str]:
    """What a law says of all rows together; nothing where no law is quoted."""
    if found.law is None:
        return []
    return [_timed(one.mean), _stacked(one.endless_mean), _timed(one.median)]


def _print_costs(console: Console, found: "SurvivalAssessment") -> None:
    costs = [one.cost for one in found.models if one.cost is not None]
    if not costs:
        return
    console.print("\nWhat breaking costs beside training:", markup=False, highlight=False)
    columns = ["model", "cheap to break", "seconds to break", "ratio, attacked", "ratio, extrapolated", "ratio, benign"]
    columns += ["ratio, clean"]
    rows = [
        [
            one.model,
            verdict_text(one),
            *map(_stacked, (one.break_s, one.adversarial, one.extrapolated, one.benign, one.benign_rate)),
        ]
        for one in costs
    ]
    if found.hardware is not None:
        columns += ["cost to break", "cost of training"]
        rows = [
            [*row, _stacked(one.break_cost), number_text(one.train_cost)] for row, one in zip(rows, costs, strict=True)
        ]
    print_fitting(console, columns, rows)
    _say(console, [f"· {sentence}" for sentence in cost_words(found)])


def _say(console: Console, sentences: Sequence[str]) -> None:
    for sentence in sentences:
        indented(console, sentence, by=0)


def _timed(estimate: Estimate | None) -> str:
    """A time, or a ratio of times, which may go beyond what was seen."""
    marks = [mark] if (mark := extrapolated_text(estimate)) else []
    return "\n".join([_stacked(estimate), *marks])


def _stacked(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return f"{number_text(estimate.value)}\n[{number_text(estimate.low)}, {number_text(estimate.high)}]"
