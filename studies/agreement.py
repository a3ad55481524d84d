"""Do studies with different arms name opposite models? Every two classifiers of a data set, under several sets of arms.

    python -m studies.agreement [--samples 100] [--out runs/agreement]

The classifiers are those of $ADVRISK_ZOO, the images those of $ADVRISK_DATA. Each set of arms is a study of its own;
every two models are compared by themselves, as a user with two models would, and the verdicts are laid side by side.
Prints the table of docs/damage.md.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from advrisk import Run, Study
from advrisk.core.seeds import generator
from advrisk.risk.assessment import DamageAssessment, assess_distances
from advrisk.risk.distances import Distances, smallest_distances
from advrisk.study import DamageSpec
from studies.text import table
from studies.zoo import registered

_SOURCES = {"cifar10": "cifar10", "mnist": "mnist"}
_README = {"attack": ["fgsm", "pgd"], "norm": "linf", "eps": ["1/16", "2/16", "3/16"]}
_DISTANCE = {"preset": "minimal-distance", "norm": "linf"}
# The usual sizes of each data set, one PGD arm each; the arms of the README; and arms that measure distances.
ARMS: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "cifar10": {
        "pgd 2/255": [{"attack": "pgd", "norm": "linf", "eps": "2/255"}],
        "pgd 8/255": [{"attack": "pgd", "norm": "linf", "eps": "8/255"}],
        "README": [_README],
        "minimal-distance": [_DISTANCE],
    },
    "mnist": {
        "pgd 0.1": [{"attack": "pgd", "norm": "linf", "eps": 0.1}],
        "pgd 0.3": [{"attack": "pgd", "norm": "linf", "eps": 0.3}],
        "README": [_README],
        "minimal-distance": [_DISTANCE],
    },
}


@dataclass(frozen=True)
class Agreement:
    """The model that each set of arms names for each pair; None where it is undecided."""

    pairs: Mapping[tuple[str, str], Mapping[str, str | None]]

    @property
    def opposite(self) -> list[tuple[str, str]]:
        """The pairs for which two sets of arms name opposite models."""
        return [pair for pair, named in self.pairs.items() if len({one for one in named.values() if one}) > 1]


def study(data: str, models: Mapping[str, Mapping[str, Any]], arms: Sequence[Mapping[str, Any]], n: int) -> Study:
    """One set of arms against all models of a data set."""
    return Study.from_dict(
        {
            "name": f"agreement-{data}",
            "device": "cpu",
            "data": {"source": data, "evaluate": n, "order": "file"},
            "models": dict(models),
            "arms": [dict(arm) for arm in arms],
            "keep_inputs": "none",
        }
    )


def classifiers(data: str) -> dict[str, dict[str, Any]]:
    """The classifiers of a data set, as a study has them."""
    return {
        name.removeprefix(f"{data}_").replace("_", "-"): {
            "source": "torch",
            "factory": "studies.zoo:net",
            "args": {"name": name},
        }
        for name, entry in registered().items()
        if entry["dataset"] == data
    }


def verdicts(run: Run) -> dict[tuple[str, str], DamageAssessment]:
    """Every two models of a run, each pair assessed by itself."""
    distances = smallest_distances(run.ledger, norm="linf")
    sizes = run.query("SELECT DISTINCT eps FROM arms WHERE eps > 0 ORDER BY eps")["eps"].to_pylist()
    measured = len(run.query("SELECT 1 FROM arms WHERE keep = 'smallest'")) > 0
    own: dict[str, Any] = {"sizes": tuple(sizes), "fixed_eps": not measured}
    return {pair: _assessed(distances, pair, own) for pair in combinations(distances.by_model, 2)}


def _assessed(distances: Distances, pair: tuple[str, str], stated: dict[str, Any]) -> DamageAssessment:
    own = replace(distances, by_model={model: distances.by_model[model] for model in pair})
    return assess_distances(own, DamageSpec(norm="linf"), **stated, rng=generator("damage", 0))


def agreement(data: str, folder: Path, n: int) -> Agreement:
    """Run every set of arms of a data set, and compare what they say of every pair."""
    models, pairs = classifiers(data), {}
    for name, arms in ARMS[data].items():
        run = study(_SOURCES[data], models, arms, n).run(folder / data / name.replace("/", "-").replace(" ", "-"))
        for pair, found in verdicts(run).items():
            pairs.setdefault(pair, {})[name] = found.ship
    return Agreement(pairs)


def report(data: str, found: Agreement) -> list[str]:
    """One row per pair: the model that each set of arms names."""
    names = list(ARMS[data])
    rows = [[" / ".join(pair), *(named[name] or "undecided" for name in names)] for pair, named in found.pairs.items()]
    decided = {name: sum(named[name] is not None for named in found.pairs.values()) for name in names}
    counts = ", ".join(f"{name} {n}" for name, n in decided.items())
    return [
        *table(["pair", *names], rows),
        "",
        f"{len(found.pairs)} pairs; decided: {counts}. Opposite models are named for {len(found.opposite)} pairs"
        f"{': ' + ', '.join(' / '.join(pair) for pair in found.opposite) if found.opposite else ''}.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("runs/agreement"))
    parser.add_argument("--data", nargs="*", default=list(ARMS))
    given = parser.parse_args()
    for data in given.data:
        print(f"### {data}\n")
        print("\n".join(report(data, agreement(data, given.out, given.samples))))


if __name__ == "__main__":
    main()
