"""The sentences of a certificate: the claim, its assumptions, what it does not claim, and what it would need.

These words are part of a certificate and are checked when it is verified: to change them is a new version of the
document (`document.VERSION`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from advrisk.assess.certificate.assessment import samples_needed, too_small
from advrisk.assess.certificate.records import (
    BETTING,
    CertificateAssessment,
    ListCertificate,
    ModelCertificates,
    of_counts,
)
from advrisk.assess.certificate.words import LATER, fallible_test, percent, rate, tolerated
from advrisk.core.numbers import size_text
from advrisk.core.values import number_text
from advrisk.risk.certificate.p_values import most_failures

_NAMED = 10  # classes whose target a sentence names
_BREAKS = {
    "label": "turns more than {alpha} of the inputs to {model} from correct to incorrect",
    "prediction": "changes a correct answer of {model} for more than {alpha} of inputs",
    "target": "makes {model} read more than {alpha} of inputs, which it reads correctly otherwise, as {target}",
}


def headline(found: CertificateAssessment, model: ModelCertificates, lists: Sequence[ListCertificate]) -> str:
    """Whether it is certified, in part, or not; then the bound on the risk, or the size that fails."""
    held, pending = [one for one in in_the_end(lists) if one[0].certified], _pending(lists)
    why = failing(lists)
    if not held and not why:
        return f"{model.model} is not decided yet: not finished {pending}"
    caveats = ", with caveats" if model.caveats else ""
    told = [f"{model.model} is not certified {why}"]
    if held:
        how = f"{' in part' if why else ' so far' if pending else ''}{caveats}"
        within = _within([one for one, _ in held])
        told = [f"{model.model} is certified{how}{',' if how else ''} {within}: {_in_the_end(found, held)}"]
        told += [f"Not certified {why}"] if why else []
    told += [f"Not finished {pending}"] if pending else []
    return ". ".join([*told, _on_clean(model)])


def _in_the_end(found: CertificateAssessment, held: Sequence[tuple[ListCertificate, float]]) -> str:
    """The bound on the share incorrect clean or attacked, at the largest certified sizes."""
    bounds = " and ".join(f"{rate(bound)}{f' ({one.norm})' if len(held) > 1 else ''}" for one, bound in held)
    return (
        f"under these attacks it is wrong on at most {bounds} of inputs, a bound wrong at most {percent(found.zeta)} "
        "of the time, by itself"
    )


def _on_clean(model: ModelCertificates) -> str:
    return f"Clean error: {rate(model.clean_error.value)} on the {model.clean_error.n:,} calibration samples"


def failing(lists: Sequence[ListCertificate]) -> str:
    """`within linf 0.1, 0.3: …`: the sizes of each norm that fail, and why the first and the largest do."""
    norms: dict[str, list[ListCertificate]] = {}
    for one in lists:
        if one.certificate is not None and not one.certified and not one.pending:
            norms.setdefault(one.norm, []).append(one)
    return "; ".join(_why(sorted(own, key=lambda one: one.eps)) for own in norms.values())


def _why(lists: Sequence[ListCertificate]) -> str:
    first, last = lists[0], lists[-1]
    at, then = "", ""
    if len(lists) > 1:
        at, then = f" at {size_text(first.eps)}", f" and {_broken(last)} at {size_text(last.eps)}"
    p, level = number_text(first.p, "p-value"), number_text(first.level, "p-value")
    return (
        f"{_within(lists)}: the worst attack breaks {_broken(first)} samples{at} (p = {p}, above its share of zeta, "
        f"{level}){then}"
    )


def _broken(one: ListCertificate) -> str:
    count = None if one.certificate is None else one.certificate.worst.count
    return "none" if count is None else f"{count.failures:,} of {count.n:,}"


def in_the_end(lists: Sequence[ListCertificate]) -> list[tuple[ListCertificate, float]]:
    """The list of each norm with the largest certified eps, or else with the smallest eps."""
    leading: dict[str, tuple[ListCertificate, float]] = {}
    for one in lists:
        if (
            one.certificate is not None
            and one.certificate.wrong is not None
            and (one.certified or one.norm not in leading)
        ):
            leading[one.norm] = one, one.certificate.wrong.certified_risk
    return list(leading.values())


def claim(found: CertificateAssessment, model: ModelCertificates, lists: Sequence[ListCertificate]) -> str:
    """What is claimed, in one sentence; then what is not certified or not finished, if anything."""
    alpha, test = tolerated(found.alpha), fallible_test(found.zeta)
    held, fell = _held(lists), _fell(lists)
    pending = _pending(lists)
    if not held and not fell:
        return (
            f"It is not decided yet whether each attack listed here breaks at most {alpha} of the inputs to "
            f"{model.model}, by {test}: the run is not finished.{looked_at(lists)}"
        )
    if not held:
        return (
            f"It is not certified that each attack listed here breaks at most {alpha} of the inputs to {model.model}: "
            f"on {found.calibration.n:,} calibration samples there were too many failures for {test}, which does not "
            f"show that an attack breaks more.{looked_at(lists)}"
        )
    breaks = _BREAKS.get(model.criterion, _BREAKS["label"])
    breaks = breaks.format(alpha=alpha, model=model.model, target=target_text(model.targets))
    rest = f" This is not certified {fell}." if fell else ""
    rest += f" It is not decided yet {pending}: the run is not finished." if pending else ""
    return (
        f"{held[0].upper()}{held[1:]}, no attack listed here {breaks}, where inputs are drawn {_like(found)}; "
        f"this is the result of {test}.{rest}{looked_at(lists)}"
    )


def looked_at(lists: Sequence[ListCertificate]) -> str:
    """For betting: the number of samples so far, if the run is not finished."""
    told = [
        f"{one.certificate.n:,} of {one.n_total:,} samples looked at within {one.norm} {size_text(one.eps)}"
        for one in lists
        if one.certificate is not None and one.certificate.n < one.n_total
    ]
    return f" The run is not finished: {', '.join(told)}." if told else ""


def target_text(targets: Mapping[Any, Sequence[int]]) -> str:
    """The target of an attack: one class for all inputs, or one for each class."""
    wanted = {target for found in targets.values() for target in found}
    if len(wanted) == 1:
        return f"class {wanted.pop()}"
    if all(len(found) == 1 for found in targets.values()) and 0 < len(targets) <= _NAMED:
        told = ", ".join(f"{label} as {found[0]}" for label, found in targets.items())
        return f"another class that was chosen beforehand (class {told})"
    return "another class that was chosen beforehand"


def _held(lists: Sequence[ListCertificate]) -> str:
    """`within linf up to eps = 4/255, l2 up to eps = 1`: the certified sizes."""
    largest: dict[str, float] = {}
    for one in lists:
        if one.certified:
            largest[one.norm] = max(one.eps, largest.get(one.norm, 0.0))
    told = [f"{norm} up to eps = {size_text(eps)}" for norm, eps in largest.items()]
    return f"within {' and '.join(told)}" if told else ""


def _fell(lists: Sequence[ListCertificate]) -> str:
    """`within linf 8/255, 16/255`: the sizes that fail."""
    return _within([one for one in lists if not one.certified and not one.pending])


def _pending(lists: Sequence[ListCertificate]) -> str:
    """`within linf 16/255`: the sizes that are open so far."""
    return _within([one for one in lists if one.pending])


def _within(lists: Sequence[ListCertificate]) -> str:
    sizes: dict[str, list[str]] = {}
    for one in lists:
        sizes.setdefault(one.norm, []).append(size_text(one.eps))
    told = [f"{norm} {', '.join(found)}" for norm, found in sizes.items()]
    return f"within {' and '.join(told)}" if told else ""


def _like(found: CertificateAssessment) -> str:
    how = f"like the {found.calibration.n:,} calibration samples"
    if found.calibration.population == "balanced":
        return f"{how}, from a population in which every {_evened(found)} is equally frequent"
    return how


def _evened(found: CertificateAssessment) -> str:
    names = ["class" if name == "class" else f"value of {name}" for name in found.calibration.evened]
    return " and every ".join(names)


def shared(found: CertificateAssessment, n_claims: int, n_sequences: int) -> str:
    """The number of claims that share zeta, and how."""
    zeta = percent(found.zeta)
    if any(LATER in text for model in found.models for text in model.caveats):
        return (
            f"alpha was chosen after the results: each claim is wrong at most {zeta} of the time, taken by itself only."
        )
    if n_claims == 1:
        return f"One claim is made, and wrongly so at most {zeta} of the time."
    how = "in ascending eps, each only if all smaller ones are certified"
    if n_sequences > 1:
        how += f"; the {n_sequences} pairs of a model and a norm share {zeta} as in Holm's procedure"
    return f"All {n_claims} claims of this run together are wrong at most {zeta} of the time: they are tested {how}."


def on_each_attack(n_claims: int, zeta: float) -> str:
    """What claims about single attacks mean, and the price of several."""
    several = (
        f" Of {n_claims} such claims, one or more are wrong at most {percent(min(1.0, n_claims * zeta))} of the time."
    )
    return (
        f"A claim about one attack, over its sizes in ascending order, is wrong at most {percent(zeta)} of the time, "
        f"taken by itself; it says nothing of the other attacks.{several if n_claims > 1 else ''}"
    )


def assumptions(found: CertificateAssessment, model: ModelCertificates, *, order: str = "shuffled") -> list[str]:
    """The assumptions of the claim, and which were verified."""
    drawn = "the population that the model will meet"
    if found.calibration.population == "balanced":
        drawn = f"a population in which every {_evened(found)} is equally frequent, whatever the model will meet"
    told = [
        f"The {found.calibration.n:,} samples to calibrate are independent draws from {drawn}.",
        "None of them was used to train the model, to tune the attacks, or to choose among models. Checked: none is "
        "also among the samples that the study trains or tunes on, by id or content. What the model learned from "
        "elsewhere is not known here.",
        "The list of attacks, the sizes, the method, alpha and zeta were frozen before these samples were looked at. "
        "Checked: they are those in the ledger, and nothing else that it knows of met these samples, but for what the "
        "caveats name.",
        _looked(found),
        _draws(model),
        "The model in use is the one with the digest given here.",
    ]
    if order == "file":
        told.append("The samples were taken in the order of their file, so that order must mean nothing.")
    return told


def _looked(found: CertificateAssessment) -> str:
    if found.method == BETTING:
        return (
            "Samples were looked at in an order that their contents decide and nobody chose, and the p-value is the "
            "one by betting, which holds whenever one stops."
        )
    return "They were looked at once, when all attacks had been run on all of them."


def _draws(model: ModelCertificates) -> str:
    most = max(attack.tries for one in model.lists for attack in one.attacks)
    if most == 1:
        return "The attacker draws the attack's random numbers once; they were drawn from the seed of the study."
    return (
        "The attacker draws an attack's random numbers as often as its number of tries says, and a sample fails if any "
        "try breaks it; they were drawn from the seed of the study."
    )


def not_claimed(found: CertificateAssessment, model: ModelCertificates) -> list[str]:
    """What the claim does not cover."""
    zeta, alpha = percent(found.zeta), percent(found.alpha)
    return [
        "Nothing is claimed about attacks, settings, norms or sizes that are not listed here. A better attack may "
        "break more.",
        "Nothing is claimed about a single input: which ones break is not known beforehand.",
        f"{zeta} is not the probability that the risk is above {alpha}. It is how often, at most, this procedure "
        "certifies what it should not.",
        "Nothing is claimed about inputs of another kind than those sampled, nor about a time when they have changed.",
        "Inputs that are read wrongly without any attack do not count in the risk. This clean error is "
        f"{rate(model.clean_error.value)} here ({model.n_wrong} of {model.clean_error.n:,} samples). How many are "
        "wrong with or without an attack stands beside every list.",
        *_on_refused(model),
        "It does not say that the model is fit for a purpose, or that it conforms to a law or a norm.",
    ]


def _on_refused(model: ModelCertificates) -> list[str]:
    if not model.n_refused:
        return []
    return [
        f"The model refuses to answer {model.n_refused} of these clean samples. To refuse is no failure, but what is "
        "refused, clean or attacked, counts among those that are wrong with or without an attack."
    ]


def left_out(lists: Sequence[ListCertificate], told: Sequence[ListCertificate]) -> list[str]:
    """A note on larger tested sizes than those of the claims."""
    most = {norm: max(one.eps for one in told if one.norm == norm) for norm in {one.norm for one in told}}
    larger = [one for one in lists if one.eps > most.get(one.norm, one.eps)]
    if not larger:
        return []
    ends = {"not certified": "fails", "not finished": "is not finished", "certified": "is certified"}
    named = ", ".join(f"{one.norm} {size_text(one.eps)} {ends[one.verdict]}" for one in larger)
    return [f"Larger sizes were tested and are left out: {named}."]


def would_take(found: CertificateAssessment, one: ListCertificate) -> str | None:
    """What would certify a list; None if it is certified, or may be once the run is finished."""
    if one.certified or one.pending or one.certificate is None:
        return None
    n, level = one.certificate.n, one.level
    if found.calibration.n < found.smallest_n:
        return too_small(found.calibration.n, found.alpha, found.zeta, found.smallest_n)
    worst = one.certificate.worst
    if one.certificate.p <= level:
        return "Its own p-value is small enough, but a smaller eps is not certified, and none is skipped."
    told = [f"{worst.name} broke {worst.count.failures} of {n:,} samples."]
    if found.method != BETTING:
        most = int(most_failures(n, found.alpha, level, method=of_counts(found.method)))
        told.append(f"At most {most} would have been few enough." if most >= 0 else "Even none would be too many.")
    seen = rate(worst.risk.value)
    needed = samples_needed(worst.risk.value, found.alpha, level, found.method)
    if needed is None:
        told.append(
            f"That is {seen}, not below {percent(found.alpha)}, so more samples are not likely to "
            "help: a more robust model, a smaller eps or a larger alpha would."
        )
    else:
        other = " by the exact test; bets take more" if found.method == BETTING else ""
        told.append(
            f"If {seen} is the true risk, {needed:,} new samples would certify it nine times out of ten{other}."
        )
    told.append(f"What these samples certify, taken by itself, is a risk of at most {rate(worst.certified_risk)}.")
    return " ".join(told)
