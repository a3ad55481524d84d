"""Whether a run stopped early, why, and at which level it decides, in sentences; `ledger.stopping` holds the data."""

from advrisk.core.numbers import level_text
from advrisk.ledger.stopping import Look, Stopping
from advrisk.study import StudySpec, target_level


def stopping_words(found: Stopping | None, study: StudySpec | None = None, *, level: float | None = None) -> list[str]:
    """What whoever reads the run must know: that it rests, why, and what the looks allow to be said.

    `level` is that of the verdicts and intervals beside these words, if another one was asked for.
    """
    if found is None:
        return []
    words = [f"Stopped early, {rest_words(found)} {_how_to_go_on(found)}"] if found.rests else []
    words += [_looked(look, found) for look in found.latest]
    return [*words, *level_words(found, study, level=level)]


def rest_words(found: Stopping) -> str:
    """`after 32 of 320 samples: what was asked for is known.`"""
    return f"after {found.n_samples_run:,} of {found.n_samples:,} samples: {_why(found)}."


def level_words(found: Stopping, study: StudySpec | None = None, *, level: float | None = None) -> list[str]:
    """At which level everything is told, and why; nothing where nobody looked at a decision."""
    own = found.decision_level
    if own is None:
        return []
    strictest = next(look for look in (*found.latest, *found.looks) if look.decides and look.level == own)
    promised = f"the study's {level_text(target_level(strictest.target, study)) if study else 'level'}"
    most = f"up to {n} looks" if (n := _at_most(strictest, found)) > 1 else "a look"
    share = f"so that all together keep {promised}, whichever the run stopped at."
    if level is not None and level != own:
        return [
            f"Verdicts and intervals here are at {level_text(level)}, as was asked for, which is not what the looks "
            f"promise: with {most}, each is held to {level_text(own)}, {share}"
        ]
    spent = "" if strictest in found.told else " Looks at other samples than these have spent a part of that."
    return [
        f"Verdicts and intervals here are at {level_text(own)}: as there are {most}, each is held to that level, "
        f"{share}{spent}"
    ]


def _why(found: Stopping) -> str:
    if found.max_passes is not None:
        return f"another shard would probably have gone beyond {found.max_passes:,} passes"
    return "what was asked for is known" if found.latest else "what was asked for then was known"


def _how_to_go_on(found: Stopping) -> str:
    if found.max_passes is not None:
        return "Run the same command again to go on, or without `--max-passes` for the full grid."
    again = "" if found.latest else "Run the study again to know it now. "
    return f"{again}Run the same command without `--target` for the full grid."


def _looked(look: Look, found: Stopping) -> str:
    after = f"after {look.n_samples:,} of {found.n_samples:,} samples"
    number = sum(one.target == look.target for one in found.looks)
    level = f"at {level_text(look.level)}, at look {number} of at most {_at_most(look, found)}"
    if not look.met:
        return f"The target `{look.target}` is not reached {after}{f' ({level})' if look.decides else ''}: {look.said}."
    if not look.decides:
        return f"The target `{look.target}` was reached {after}: {look.said}."
    return f"Decided {after} ({look.said}) {level}."


def _at_most(look: Look, found: Stopping) -> int:
    """Looks at its target: those that are planned now, and those that were taken before samples were added."""
    own = [one for one in found.looks if one.target == look.target]
    before = sum(one.plan != found.plan for one in own)
    return max(len(own), before + found.n_looks_planned)
