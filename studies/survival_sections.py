"""The sections of `studies.survival`: each takes a run's findings and gives lines of text."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from advrisk.assess.survival.rows import choice_text
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.risk.proportion import proportion
from advrisk.risk.survival import SurvivalFit, choose_family
from advrisk.risk.survival.checks import FEWEST_CLUSTERS
from advrisk.risk.survival.cost import BROKEN_FACTOR, broken, cost_ratio
from studies.survival_clock import kind_of
from studies.survival_findings import (
    BARE,
    LAYERS,
    PASSES,
    SECONDS,
    Findings,
    Reading,
    correlation,
    depth_factor,
    noise_of,
)
from studies.survival_nets import spread
from studies.survival_networks import (
    arm_survival,
    depth_by_noise,
    kinds_of,
    network_survival,
    network_trend,
    noise_trends,
    per_pass,
    spent_per_pass,
)
from studies.text import NOTHING, band_text, number_text, p_text, table, wrapped

_ON_BROKEN = (
    "A model is called broken where training on one sample took at least {factor:g} times as long as breaking one "
    "does, also if the fitted law is followed beyond where attacks gave up, and both intervals say so."
)
_TITLES = {PASSES: "forward passes", SECONDS: "processor seconds"}
READINGS = (Reading(PASSES, unit="sample"), Reading(SECONDS, unit="sample"), Reading(SECONDS, True, "sample"))


def rows(found: Findings) -> list[str]:
    """What was fitted, and what not."""
    durations = found.durations[PASSES]
    tallies = durations.tallies.values()
    total = {name: sum(getattr(one, name) for one in tallies) for name in ("events", "censored", "at_zero", "error")}
    fitted = total["events"] + total["censored"]
    sentence = (
        f"{found.name}: {counted(len(found.models), 'model')}, {counted(len(durations.samples), 'sample')}, "
        f"{counted(len(durations.arms), 'arm')} with a duration: {fitted:,} rows, {total['events']:,} broken and "
        f"{total['censored']:,} censored. Beside them {total['at_zero']:,} rows at zero (wrong from the start) and "
        f"{total['error']:,} errors. All cells took {_minutes(found):.0f} minutes of the processor. Not fitted: "
        + ("; ".join(f"{arm_text(arm)}, as {why}" for arm, why in durations.left_out.items()) or "none")
        + "."
    )
    return wrapped([sentence])


def _minutes(found: Findings) -> float:
    (row,) = found.run.query("SELECT sum(process_s) / 60 AS minutes FROM cells").to_pylist()
    return float(row["minutes"])


def families(found: Findings) -> list[str]:
    """AIC, BIC, concordance, mean and median of all families, in both measures, with and without inference time."""
    lines = []
    for reading in READINGS:
        fits = found.fits(reading)
        also = ", and the seconds of a clean pass" if reading.inference else ""
        lines += [f"In {_TITLES[reading.measure]}; covariates depth, {', '.join(found.beside)}{also}:"]
        longest = next(iter(fits.values())).longest
        head = ["family", "AIC", "BIC", "concordance", f"mean up to {longest:.3g}", "mean extrapolated"]
        lines += [*table(head, [_family_row(fit) for fit in fits.values()])]
    return lines + _chosen(found)


def _family_row(fit: SurvivalFit) -> list[str]:
    restricted, mean = fit.mean(until=fit.longest), fit.mean()
    whole = "infinite" if not math.isfinite(mean.value) else _short(mean)
    scores = [f"{fit.aic:.0f}", f"{fit.bic:.0f}", f"{fit.concordance:.3f}"]
    return [fit.family, *scores, _short(restricted), whole]


def _chosen(found: Findings) -> list[str]:
    choice = choose_family(
        found.frames[PASSES],
        duration="duration",
        event="event",
        lower="lower",
        covariates=["depth", *found.beside],
        cluster="sample",
        rng=np.random.default_rng(0),
    )
    return wrapped([f"On samples that a fit has not seen, in {_TITLES[PASSES]}: {choice_text(choice)}."])


def factors(found: Findings) -> list[str]:
    """How many times as long a covariate lets models last."""
    named = factors_of(found)
    lines = [
        f"Times as long until broken, in {_TITLES[PASSES]} and in {_TITLES[SECONDS]} (errors by {unit_of(found)}):"
    ]
    rows = [[name, *(band_text(one.value, one.low, one.high) for one in pair)] for name, pair in named.items()]
    return lines + table(["", _TITLES[PASSES], _TITLES[SECONDS]], rows)


def factors_of(found: Findings) -> dict[str, tuple[Estimate, Estimate]]:
    """Covariate, without arms -> its factor in passes and in seconds, by the family that fits passes best."""
    fits = [found.fit(Reading(measure, unit=unit_of(found)), best_family(found)) for measure in (PASSES, SECONDS)]
    named = {f"{LAYERS:g} layers more": (depth_factor(fits[0]), depth_factor(fits[1]))}
    for coefficient in fits[0].coefficients:
        if coefficient.part == "scale" and coefficient.covariate in ("noise", "defence"):
            word = "trained with noise " if coefficient.covariate == "noise" else ""
            name = word + coefficient.name.partition("=")[2]
            named[name] = (_factor(fits[0], coefficient.name), _factor(fits[1], coefficient.name))
    return named


def unit_of(found: Findings) -> str:
    """What counts once where models are compared: networks where there are enough of them, else samples."""
    return "model" if len(found.models) >= FEWEST_CLUSTERS and "defence" not in found.beside else "sample"


def best_family(found: Findings) -> str:
    """The family with the least AIC in passes."""
    return next(iter(found.fits(READINGS[0])))


def _factor(fit: SurvivalFit, name: str) -> Estimate:
    own = fit.coefficient(name).natural.estimate
    return Estimate(
        math.exp(own.value), math.exp(own.low), math.exp(own.high), own.level, own.n, f"acceleration, {own.method}"
    )


def depth(found: Findings) -> list[str]:
    """What the rows say of depth, in each way to read them."""
    family = best_family(found)
    units = list(dict.fromkeys([None, "sample", unit_of(found)]))
    unit_names = {None: "none: rows count as independent", "sample": "sample", "model": "network"}
    entries = []
    for measure, inference in ((PASSES, False), (SECONDS, False), (SECONDS, True)):
        for unit in units:
            fit = found.fit(Reading(measure, inference, unit), family)
            own = depth_factor(fit)
            p = p_text(fit.coefficient("depth").natural.p_value)
            words = _TITLES[measure] + (", inference time known" if inference else "")
            entries.append([words, unit_names[unit], band_text(own.value, own.low, own.high), p])
    head = ["measured in", "errors by", f"{LAYERS:g} layers more: times as long", "p"]
    return [f"What the {family} fit says of depth:", *table(head, entries), *_inference(found)]


def _inference(found: Findings) -> list[str]:
    depths = [float(found.tag(model, "depth")) for model in found.models]
    seconds = [found.inference[model] for model in found.models]
    sentence = (
        f"Seconds of a clean pass and depth: correlation {correlation(depths, seconds):.2f} over "
        f"{counted(len(found.models), 'model')}."
    )
    return wrapped([sentence])


def parts(found: Findings) -> list[str]:
    """Of what depth adds in seconds: how much is more passes, and how much is slower passes."""
    family = best_family(found)
    passes, seconds = (depth_factor(found.fit(reading, family)).value for reading in READINGS[:2])
    slower = per_pass(found)
    sentence = (
        f"{LAYERS:g} layers more: a pass takes {slower:.2f} times as long, the attacker needs {passes:.2f} times as "
        f"many; {slower:.2f} · {passes:.2f} = {slower * passes:.2f}. The fit in seconds says {seconds:.2f}."
    )
    return wrapped([sentence])


def defences(found: Findings) -> list[str]:
    """What each defence does to clean inputs, and how long it holds."""
    factor = factors_of(found)
    frame = found.frames[PASSES]
    entries = []
    for name in [BARE, *(name for name in factor if not name.endswith("more"))]:
        own = [model for model in found.models if found.label(model) == name]
        if not own:
            continue
        facts = [found.durations[PASSES].facts[model] for model in own]
        right = [flag for one in facts for flag in (one.right or {}).values()]
        rejected = sum(one.n_clean_rejected for one in facts)
        mine = np.isin(frame["model"], own)
        one_step = [row["share"] for row in found.run.arms() if row["model"] in own and row["arm"].startswith("fgsm")]
        held = factor.get(name)
        entries.append(
            [
                name,
                f"{np.mean(right):.1%}",
                f"{rejected / len(right):.1%}",
                f"{np.mean(one_step):.1%}" if one_step else NOTHING,
                f"{frame['event'][mine].mean():.1%}",
                NOTHING if held is None else band_text(held[0].value, held[0].low, held[0].high),
            ]
        )
    head = ["defence", "clean right", "clean refused", "wrong by FGSM", "attempts that broke", "passes, times bare"]
    return ["Behind each defence, all depths together:", *table(head, entries), *_broken_by_arm(found)]


def _broken_by_arm(found: Findings) -> list[str]:
    """The share of attempts that broke a sample, and the mean passes of these."""
    frame, arms = found.frames[PASSES], found.durations[PASSES].arms
    rows = []
    for name in sorted(set(frame["defence"]), key=lambda name: (name != BARE, name)):
        cells = []
        for arm in arms:
            mine = (frame["defence"] == name) & (frame["arm"] == arm)
            event, duration = frame["event"][mine].astype(bool), frame["duration"][mine]
            cells.append(f"{event.mean():.0%}" + (f" ({duration[event].mean():.1f})" if event.any() else ""))
        rows.append([name, *cells])
    head = ["defence", *(arm_text(arm).removesuffix("-ace") for arm in arms)]
    return ["Attempts that broke, and their mean passes, in each arm:", *table(head, rows)]


def one_step(found: Findings) -> list[str]:
    """What a single step of the gradient's sign does."""
    arms = sorted({row["arm"] for row in found.run.arms() if row["arm"].startswith("fgsm")})
    shares = {(row["arm"], row["model"]): row for row in found.run.arms()}
    kinds = kinds_of(found)
    entries = []
    for kind, models in kinds.items():
        cells = []
        for arm in arms:
            counts = [(round(row["share"] * row["n"]), row["n"]) for m in models if (row := shares.get((arm, m)))]
            wrong, n = (sum(column) for column in zip(*counts, strict=True))
            cells.append(f"{proportion(wrong, n).value:.1%}")
        entries.append([kind, *cells])
    return ["Wrong after one step of the gradient's sign (FGSM):", *table(["models", *arms], entries)]


def networks(found: Findings) -> list[str]:
    """Every network counts once."""
    survival = network_survival(found)
    kinds = kinds_of(found)
    entries = []
    for kind, models in kinds.items():
        own = [survival[model] for model in models]
        facts = [found.durations[PASSES].facts[model] for model in models]
        accuracy = [one.clean_accuracy or 0.0 for one in facts]
        clean = [1e3 * found.inference[model] for model in models]
        entries.append(
            [
                kind,
                f"{np.mean(accuracy):.1%}",
                number_text(float(np.median(clean))),
                " ".join(f"{value:.1f}" for value in sorted(own)),
                f"{math.exp(np.mean(np.log(own))):.1f}",
            ]
        )
    head = ["networks", "clean right", "clean pass ms", "passes until broken, each network", "mean"]
    logs = [math.log(survival[model]) for models in kinds.values() for model in models]
    varied = spread(logs, [kind for kind, models in kinds.items() for _ in models])
    sentence = (
        f"Networks that differ in nothing but their seed: the standard deviation of ln passes is {varied.within:.3f}, "
        f"a factor of {math.exp(varied.within):.2f}; between the {len(kinds)} kinds it is {varied.between:.3f}."
    )
    lines = ["Passes until broken: mean up to the end of the attack, then the geometric mean over arms."]
    return [*lines, *table(head, entries), *wrapped([sentence]), *_trends(found, survival)]


def _trends(found: Findings, survival: Mapping[str, float]) -> list[str]:
    trends = {f"{LAYERS:g} layers more": network_trend(found, survival)}
    trends |= {f"{name} against none": one for name, one in noise_trends(found, survival).items()}
    for arm, own in arm_survival(found).items():
        trends[f"{LAYERS:g} layers more, {arm_text(arm)}"] = network_trend(found, own)
    rows = [[name, _short(one.slope), p_text(one.p_value)] for name, one in trends.items()]
    first = "Networks as units: times as many passes, and how often depths (or noise) dealt out anew do as much:"
    return [first, *table(["", "times as many", "p"], rows), *_without(found)]


def _without(found: Findings) -> list[str]:
    """Depth over all networks and by noise, from all attacks and from all but one."""
    known = found.durations[PASSES].arms
    attacks = sorted({str(own["family"]) for own in known.values()})
    chosen = {"all attacks": list(known)}
    if len(attacks) > 1:
        chosen |= {f"without {name}": [arm for arm, own in known.items() if own["family"] != name] for name in attacks}
    rows, head = [], [f"{LAYERS:g} layers more", "all networks", "p"]
    for words, arms in chosen.items():
        survival = network_survival(found, arms)
        whole, parts = network_trend(found, survival), depth_by_noise(found, survival)
        head = [*head[:3], *parts]
        rows.append([words, _short(whole.slope), p_text(whole.p_value), *(_short(one.slope) for one in parts.values())])
    return ["The same, from all attacks and from all but one:", *table(head, rows)]


def arm_text(arm: str) -> str:
    """An arm without its smaller settings."""
    return arm.partition(",")[0]


def costs(found: Findings) -> list[str]:
    """Training seconds for each sample, over the mean seconds until a sample breaks."""
    kinds = {kind: models for kind, models in kinds_of(found).items() if training_s(found, models)}
    if not kinds:
        return wrapped([f"{found.name}: nobody says how long its networks were trained, so no cost can be told."])
    fit, speed = found.fit(READINGS[0], best_family(found)), spent_per_pass(found)
    rows = []
    for kind, models in kinds.items():
        own, pass_s = training_s(found, models), float(np.mean([speed[model] for model in models]))
        at: dict[str, float | str] = {"depth": float(found.tag(models[0], "depth"))}
        if "noise" in found.beside:
            at["noise"] = noise_of(found.tag(models[0], "noise"))
        mean = fit.mean(at=at, until=fit.longest)
        ratio, beyond = (
            cost_ratio(own, fit, at=at, extrapolated=far, seconds_per_unit=pass_s) for far in (False, True)
        )
        milli = [f"{1e3 * own:.3g}", _short(mean), f"{1e3 * pass_s:.3g}"]
        rows.append([kind, *milli, _short(ratio), _short(beyond), broken(ratio, extrapolated=beyond)])
    head = ["networks", "training ms", "passes until broken", "ms of a pass", "ratio", "extrapolated", "verdict"]
    lines = [
        "Training for each sample, against breaking one: mean passes by the fit, up to the longest attack, times the",
        "processor time of a pass; and the same with the law beyond that limit.",
    ]
    return lines + table(head, rows) + wrapped([_ON_BROKEN.format(factor=BROKEN_FACTOR)])


def training_s(found: Findings, models: Sequence[str]) -> float:
    """Seconds of training for each sample: of the processor where they were measured, else by the clock."""
    measured = found.trained.get(kind_of(models[0]))
    facts = [found.durations[SECONDS].facts[model].train_s_per_sample or 0.0 for model in models]
    return float(np.mean(facts)) if measured is None else measured


def _short(estimate: Estimate) -> str:
    return band_text(estimate.value, estimate.low, estimate.high)
