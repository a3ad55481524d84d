"""Do studies with different arms name opposite models? Every two classifiers of a data set, under several sets of arms.

    python -m studies.agreement [--samples 100] [--out runs/agreement] [--page docs/damage-method.md]

The classifiers are those of $ADVRISK_ZOO on the images of $ADVRISK_DATA; `--data mnist-5k` takes the demo's instead.
Each set of arms is a study of its own. Every two models are compared by themselves, as a user with two models would.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from advrisk import Run, Study
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.core.errors import AdvriskError
from studies.page import fenced, fill
from studies.text import NOTHING, table, wrapped
from studies.zoo import registered

_README = {"attack": ["fgsm", "pgd"], "norm": "linf", "eps": ["1/16", "2/16", "3/16"]}
_DISTANCE = {"preset": "minimal-distance", "norm": "linf"}
# The usual sizes of each data set, one PGD arm each; the arms of the README; and arms that measure distances.
_DIGITS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "pgd 0.1": [{"attack": "pgd", "norm": "linf", "eps": 0.1}],
    "pgd 0.3": [{"attack": "pgd", "norm": "linf", "eps": 0.3}],
    "README": [_README],
    "minimal-distance": [_DISTANCE],
}
ARMS: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "cifar10": {
        "pgd 2/255": [{"attack": "pgd", "norm": "linf", "eps": "2/255"}],
        "pgd 8/255": [{"attack": "pgd", "norm": "linf", "eps": "8/255"}],
        "README": [_README],
        "minimal-distance": [_DISTANCE],
    },
    "mnist": _DIGITS,
    "mnist-5k": _DIGITS,
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
    if data == "mnist-5k":
        return {
            name: {"source": "demo", "name": name} for name in ("noise-augmented", "pgd-trained", "plain", "trades")
        }
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
    names = sorted(run.damage().distances.by_model)
    return {(a, b): run.damage(models=[a, b]) for a, b in combinations(names, 2)}


def agreement(data: str, folder: Path, n: int) -> Agreement:
    """Run every set of arms of a data set, and compare what they say of every pair."""
    models, pairs = classifiers(data), {}
    for name, arms in ARMS[data].items():
        run = study(data, models, arms, n).run(folder / data / name.replace("/", "-").replace(" ", "-"))
        for pair, found in verdicts(run).items():
            pairs.setdefault(pair, {})[name] = found.least_bad
    return Agreement(pairs)


def lines_of(data: str, found: Agreement) -> list[str]:
    """One row per pair: which of the two models each set of arms names."""
    names = list(ARMS[data])
    rows = [[" / ".join(pair), *(_place(pair, named[name]) for name in names)] for pair, named in found.pairs.items()]
    decided = ", ".join(f"{name} {sum(named[name] is not None for named in found.pairs.values())}" for name in names)
    opposite = ": " + ", ".join(" / ".join(pair) for pair in found.opposite) if found.opposite else ""
    return [
        *table([data, *names], rows),
        "",
        *wrapped(
            [
                f"{len(found.pairs)} pairs; decided by {decided}. "
                f"Opposite models are named for {len(found.opposite)} pairs{opposite}."
            ]
        ),
    ]


def _place(pair: tuple[str, str], named: str | None) -> str:
    return NOTHING if named is None else ("first", "second")[pair.index(named)]


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, run, print; a user's mistake is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m studies.agreement", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=100, help="images of each data set")
    parser.add_argument("--out", type=Path, default=Path("runs/agreement"), help="where the runs go")
    parser.add_argument("--data", nargs="+", choices=list(ARMS), default=["mnist", "cifar10"], help="which data sets")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables into this page")
    given = parser.parse_args(words)
    lines: list[str] = []
    try:
        for data in given.data:
            own = lines_of(data, agreement(data, given.out, given.samples))
            print("\n".join([*own, ""]), flush=True)
            lines += [*([""] if lines else []), *own]
        if given.page:
            fill(given.page, {"agreement": fenced(lines)})
    except AdvriskError as error:
        print(f"studies.agreement: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
