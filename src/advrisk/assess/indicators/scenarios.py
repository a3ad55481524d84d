"""Scenarios as users hand them over, and those of them that are chosen, with other weights beside."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advrisk.core.errors import StudyError
from advrisk.core.names import did_you_mean
from advrisk.risk.indicators import NoBranchError, Scenario, what_if
from advrisk.study import read_yaml

AnyScenarios = Mapping[str, Any] | Sequence[Scenario] | Path | str  # trees by name, or a YAML file that holds them
WHAT_IF = "what if"


def stated_scenarios(given: AnyScenarios) -> list[Scenario]:
    """Scenarios from trees by name, which a file may hold by themselves or as `scenarios`."""
    if isinstance(given, str | Path):
        if not Path(given).is_file():
            raise StudyError(
                f"{given}: there is no such file; it is to map names to trees, as in `town: {{rain: 0.3}}`"
            )
        content, source = read_yaml(Path(given))
        trees = content.get("scenarios", content)
        if not isinstance(trees, Mapping) or not trees:
            raise source.error(("scenarios",), f"a mapping of names to trees of likelihoods is needed, found {trees!r}")
        try:
            return stated_scenarios(trees)
        except StudyError as error:
            raise StudyError(f"{given}: {error}") from None
    if isinstance(given, Mapping):
        return [Scenario.from_mapping(str(name), tree) for name, tree in given.items()]
    return list(given)


def chosen_scenarios(
    stated: Sequence[Scenario], names: Sequence[str] | None, changes: Mapping[str, Any]
) -> list[Scenario]:
    """Those of these names (all, if none is given); each followed by what it is with other weights, if some are given.

    Weights are changed in every chosen scenario that has all these branches; one at least must.
    """
    known = {scenario.name: scenario for scenario in stated}
    for name in names or ():
        if name not in known:
            hint = did_you_mean(name, known) if known else "this run's study has none; give a file with some"
            raise StudyError(f"no scenario is called {name!r}; {hint}")
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    if not changes:
        return chosen
    if not chosen:
        raise StudyError("weights can be changed where there is a scenario, and there is none; state one")
    weights = ", ".join(f"{path} = {weight}" for path, weight in changes.items())
    found: list[Scenario] = []
    unlike: list[NoBranchError] = []
    for scenario in chosen:
        found.append(scenario)
        try:
            found.append(what_if(scenario, changes).renamed(f"{scenario.name}, {WHAT_IF} {weights}"))
        except NoBranchError as error:
            unlike.append(error)
    if len(unlike) == len(chosen):
        raise unlike[0]
    return found
