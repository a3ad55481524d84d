"""The language of stopping targets: the precision or decision at which a run may stop.

    damage ±0.02                  every model's damage, to two hundredths either way
    broken.hardened at 8/255 ±2 % the share broken of one model
    risk[rainy-town] +-0.05       the risk under a scenario
    decided                       which model to ship
    gate                          every requirement of the study

The part before the sign has the syntax of requirements (`study.gate`); without a model, it means all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from advrisk.core.digest import digest
from advrisk.core.errors import StudyError
from advrisk.core.names import did_you_mean, nearest, one_or_many
from advrisk.study.gate import EVERY, Requirement, Term, parse_requirement
from advrisk.study.ground import Ground, expanded
from advrisk.study.registered import CERTIFIED, built_in_quantities
from advrisk.study.spec import StudySpec

DECIDED, GATE = "decided", "gate"
MARGIN = "margin"  # the kind of targets with a margin
PRECISE = ("damage", "broken", "robust_accuracy", "clean_accuracy", "clean_rejection", "cost", "risk", "survival")
SCORED = ("auroc", "fpr")  # from detector scores, which exist only once the cells are done
NOT_ANALYSED = (*CERTIFIED, "error_rows", "flagged")  # more samples to evaluate decide none of them

_SIGN = re.compile(r"±|\+\s*/?\s*-")
_OF_THESE = f"a margin is possible for {', '.join(PRECISE)}, of one model or of all"
_COMPARED = re.compile(r"<|>|==")
_WORD = re.compile(r"\s*([^\W\d]\w*)")
_FIRST_WORD = re.compile(r"\s*([^\W\d]\w*)(?![\w.])")
_EXAMPLE = "write `damage ±0.02`, `broken.MODEL at 8/255 ±2 %`, `decided` or `gate`"


@dataclass(frozen=True)
class StoppingTarget:
    """A target at which a run may stop: a decision, or a quantity within a margin."""

    text: str
    term: Term | None = None  # None: a decision
    margin: float = 0.0

    @property
    def decides(self) -> bool:
        return self.term is None


def parse_target(text: str) -> StoppingTarget:
    """Parse a target; StudyError with the text to write instead."""
    if not isinstance(text, str):
        raise StudyError(f"a target is text: {_EXAMPLE}; found {text!r}")
    if (word := text.strip()) in (DECIDED, GATE):
        return StoppingTarget(word)
    parts = _SIGN.split(text, maxsplit=1)
    if len(parts) < 2:
        raise StudyError(f"the target {text!r} {_without_margin(word)}")
    quantity, margin = parts
    _check_quantity(text, quantity)
    first = _FIRST_WORD.match(quantity)
    if first:  # without a model
        quantity = f"{first[1]}.{EVERY}{quantity[first.end() :]}"
    written = f"{quantity.strip()} <= {margin.strip()}"
    try:
        read = parse_requirement(written)
    except StudyError as error:
        reason = str(error).removeprefix(f"{written!r}: ")  # the user did not write this text
        reason = _EXAMPLE if "<=" in reason else reason
        raise StudyError(f"the target {text!r} cannot be read: {reason}") from None
    _check(text, read)
    return StoppingTarget(f"{parts[0].strip()} ±{read.limit_text}", read.left, read.limit)


def _without_margin(word: str) -> str:
    """The message for a target without a margin, with the probable intention."""
    if _COMPARED.search(word):
        return f'is a requirement: write it under `gate` in the study, `gate: ["{word}"]`, and give the target `{GATE}`'
    close = nearest(word, (DECIDED, GATE))
    return f"is unknown; did you mean {close!r}?" if close else f"has no margin: {_EXAMPLE}"


def parse_targets(targets: Sequence[str] | str | None) -> tuple[StoppingTarget, ...]:
    """Parse targets, without duplicates; None means none."""
    texts = [] if targets is None else one_or_many(targets)
    if not isinstance(texts, Sequence):
        raise StudyError(f"`target` is text, or a list of texts: {_EXAMPLE}; found {targets!r}")
    return tuple(dict.fromkeys(parse_target(text) for text in texts))


def target_kind(text: str) -> str:
    """The kind of a target: `decided`, `gate` or `margin`."""
    return text if text in (DECIDED, GATE) else MARGIN


def target_level(text: str, study: StudySpec) -> float:
    """The level of all interim analyses of a target together."""
    assess = study.assess
    if text != GATE:
        return assess.damage.level
    return max(assess.damage.level, assess.indicators.level, assess.survival.level)


def target_digests(study: StudySpec, curve: str = "") -> dict[str, str]:
    """A digest of the question behind each kind of target: it changes with the settings that decide the answer.

    `curve` is the text of the file with the evasion curve, if the study names one.
    """
    damage = study.assess.damage.model_dump(mode="json", exclude={"thresholds", "resamples"})
    damage |= {"evasion": curve} if curve else {}
    others = study.assess.model_dump(mode="json", include={"indicators", "survival"})
    others |= {"losses": study.loss_entries(), "scenarios": study.model_dump(mode="json", include={"scenarios"})}
    return {
        DECIDED: digest(damage),
        MARGIN: digest([damage, others]),
        GATE: digest([damage, others, list(study.gate)]),
    }


def _check_quantity(text: str, quantity: str) -> None:
    """Refuse quantities without a margin, or without interim analyses."""
    name = match[1] if (match := _WORD.match(quantity)) else ""
    if name in SCORED:
        raise StudyError(
            f"the target {text!r}: detectors score once the cells are done, too late for interim analyses; remove it"
        )
    quantities = built_in_quantities()
    if name and name not in quantities:
        raise StudyError(f"the target {text!r}: unknown quantity {name!r}; {did_you_mean(name, PRECISE)}")
    if name not in PRECISE:
        raise StudyError(f"the target {text!r}: {_OF_THESE}")
    if quantities[name].size == "needed" and " at " not in quantity:
        raise StudyError(f"the target {text!r}: {name} needs a size, as in `{quantity.strip()} at 8/255 ±0.02`")


def _check(text: str, read: Requirement) -> None:
    if read.right is not None:
        raise StudyError(f"the target {text!r}: {_OF_THESE}")
    if read.limit <= 0:
        raise StudyError(f"the target {text!r}: a margin is above 0; found {read.limit_text}")


def target_terms(target: StoppingTarget, ground: Ground) -> list[Term]:
    """The terms that need the margin, one for each model; refuses those that cannot be answered."""
    assert target.term is not None  # decisions have none
    required = Requirement(target.term, "<=", target.margin, f"{target.margin:g}")
    try:
        requirements = expanded(required, replace(ground, relative=ground.relative and target.term.quantity == "cost"))
    except StudyError as error:
        _, _, reason = str(error).partition("`: ")  # without the requirement, which the user did not write
        raise StudyError(f"the target `{target.text}`: {reason or error}") from None
    return [one.left for one in requirements]


def refuse_decision(target: StoppingTarget, ground: Ground, requirements: list[Requirement]) -> None:
    """Refuse a decision that this study does not need, or that allows no interim analyses."""
    if target.text == DECIDED and len(ground.models) < 2:
        raise StudyError(f"the target `{DECIDED}`: {ground.models[0]} is the only model, so there is nothing to decide")
    if target.text != GATE:
        return
    if not [one for one in requirements if one.left.quantity not in NOT_ANALYSED]:
        raise StudyError(
            f"the target `{GATE}`: the study has no requirement that more samples decide; write one under `gate`, as "
            'in `gate: ["broken.MODEL at 8/255 <= 0.2"]`'
        )
    for one in requirements:
        if one.left.quantity in SCORED:
            raise StudyError(
                f"the target `{GATE}`: `{one}` needs scores, which detectors give once the cells are done; remove the "
                "target, or that requirement"
            )
