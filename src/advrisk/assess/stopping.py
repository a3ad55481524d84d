"""Sentences on early stopping: whether a run stopped, why, and at which level it decides. See `ledger.stopping`."""

from advrisk.core.numbers import level_text
from advrisk.ledger.stopping import Look, Stopping
from advrisk.study import StudySpec, target_level


def stopping_words(
    stopping: Stopping | None, study: StudySpec | None = None, *, level: float | None = None
) -> list[str]:
    """Sentences on early stopping: whether and why the run stopped, and which level its interim analyses allow.

    `level` is that of the displayed verdicts and intervals, if another one was requested.
    """
    if stopping is None:
        return []
    words = [f"Stopped early, {rest_words(stopping)} {_how_to_resume(stopping)}"] if stopping.rests else []
    words += [_on_analysis(analysis, stopping) for analysis in stopping.latest]
    return [*words, *level_words(stopping, study, level=level)]


def rest_words(stopping: Stopping) -> str:
    """`after 32 of 320 samples: its target is reached.`"""
    return f"after {stopping.n_samples_run:,} of {stopping.n_samples:,} samples: {_why(stopping)}."


def level_words(stopping: Stopping, study: StudySpec | None = None, *, level: float | None = None) -> list[str]:
    """The level of verdicts and intervals, and why; empty without an interim analysis of a decision."""
    own = stopping.decision_level
    if own is None:
        return []
    strictest = next(
        analysis for analysis in (*stopping.latest, *stopping.looks) if analysis.decides and analysis.level == own
    )
    promised = f"the study's {level_text(target_level(strictest.target, study)) if study else 'level'}"
    most = f"up to {n} interim analyses" if (n := _at_most(strictest, stopping)) > 1 else "one interim analysis"
    share = f"so that all together keep {promised}, whichever the run stopped at."
    if level is not None and level != own:
        return [
            f"Verdicts and intervals here are at {level_text(level)}, as requested, which the interim analyses do not "
            f"guarantee: with {most}, each uses {level_text(own)}, {share}"
        ]
    spent = "" if strictest in stopping.told else " Interim analyses of other samples spent a part of that."
    return [
        f"Verdicts and intervals here are at {level_text(own)}: as there are {most}, each uses that level, "
        f"{share}{spent}"
    ]


def _why(stopping: Stopping) -> str:
    if stopping.max_passes is not None:
        return f"another shard would probably have gone beyond {stopping.max_passes:,} passes"
    return "its target is reached" if stopping.latest else "its earlier target was reached"


def _how_to_resume(stopping: Stopping) -> str:
    if stopping.max_passes is not None:
        return "Run the same command again to resume, or without `--max-passes` for the full grid."
    again = "" if stopping.latest else "Run the study again for its present target. "
    return f"{again}Run the same command without `--target` for the full grid."


def _on_analysis(analysis: Look, stopping: Stopping) -> str:
    after = f"after {analysis.n_samples:,} of {stopping.n_samples:,} samples"
    number = sum(one.target == analysis.target for one in stopping.looks)
    level = f"at {level_text(analysis.level)}, at interim analysis {number} of at most {_at_most(analysis, stopping)}"
    if not analysis.met:
        at = f" ({level})" if analysis.decides else ""
        return f"The target `{analysis.target}` is not reached {after}{at}: {analysis.said}."
    if not analysis.decides:
        return f"The target `{analysis.target}` was reached {after}: {analysis.said}."
    return f"Decided {after} ({analysis.said}) {level}."


def _at_most(analysis: Look, stopping: Stopping) -> int:
    """The largest number of interim analyses of a target: those planned now, and those before samples were added."""
    own = [one for one in stopping.looks if one.target == analysis.target]
    before = sum(one.plan != stopping.plan for one in own)
    return max(len(own), before + stopping.n_looks_planned)
