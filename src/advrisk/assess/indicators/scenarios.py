"""Scenarios from trees or files, selected by name, with variants under changed weights."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from advrisk.core.errors import StudyError
from advrisk.core.names import did_you_mean
from advrisk.risk.indicators import NoBranchError, Scenario, what_if
from advrisk.study import read_yaml

AnyScenarios = Mapping[str, Any] | Sequence[Scenario] | Path | str  # trees by name, or a YAML file of them
WHAT_IF = "what if"


def stated_scenarios(scenarios: AnyScenarios) -> list[Scenario]:
    """Scenarios from trees by name; a file has them at the top level or under `scenarios`."""
    if isinstance(scenarios, str | Path):
        if not Path(scenarios).is_file():
            raise StudyError(
                f"{scenarios}: there is no such file; give a file that maps names to trees, as in `town: {{rain: 0.3}}`"
            )
        content, source = read_yaml(Path(scenarios))
        trees = content.get("scenarios", content)
        if not isinstance(trees, Mapping) or not trees:
            raise source.error(("scenarios",), f"a mapping of names to trees of likelihoods is needed, found {trees!r}")
        try:
            return stated_scenarios(trees)
        except StudyError as error:
            raise StudyError(f"{scenarios}: {error}") from None
    if isinstance(scenarios, Mapping):
        return [Scenario.from_mapping(str(name), tree) for name, tree in scenarios.items()]
    return list(scenarios)


def chosen_scenarios(
    stated: Sequence[Scenario], names: Sequence[str] | None, changes: Mapping[str, Any]
) -> list[Scenario]:
    """The scenarios of these names, by default all, each followed by its variant under changed weights, if any.

    Weights change in every chosen scenario that has all these branches; at least one must.
    """
    by_name = {scenario.name: scenario for scenario in stated}
    for name in names or ():
        if name not in by_name:
            hint = did_you_mean(name, by_name) if by_name else "this run's study has none; give a file with some"
            raise StudyError(f"no scenario is called {name!r}; {hint}")
    chosen = [by_name[name] for name in dict.fromkeys(names or by_name)]
    if not changes:
        return chosen
    if not chosen:
        raise StudyError("weights can be changed where there is a scenario, and there is none; state one")
    weights = ", ".join(f"{path} = {weight}" for path, weight in changes.items())
    scenarios: list[Scenario] = []
    errors: list[NoBranchError] = []
    for scenario in chosen:
        scenarios.append(scenario)
        try:
            scenarios.append(what_if(scenario, changes).renamed(f"{scenario.name}, {WHAT_IF} {weights}"))
        except NoBranchError as error:
            errors.append(error)
    if len(errors) == len(chosen):
        raise errors[0]
    return scenarios
