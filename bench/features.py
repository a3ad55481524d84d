"""feature-search beside HopSkipJump on tables, trees and forests: how many features change, and by how much.

Half of a table of scikit-learn fits the model; of the other half, 40 samples that it has right are attacked. Units are
standard deviations of the columns. Both attacks see labels alone and have as many queries.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from advrisk.engine import Goal, Model, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks
from advrisk.study import Norm

WALK = {"initial_evaluations": 20}  # nearer here than its default


def main(*, tiny: bool = False) -> None:
    """Print means over the samples and seeds."""
    samples, seeds, each_queries = (2, 1, (40,)) if tiny else (40, 2, (200, 1000))
    from sklearn.datasets import load_breast_cancer, load_wine
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    classifiers = {
        "tree": DecisionTreeClassifier(random_state=0),
        "forest of 50": RandomForestClassifier(5 if tiny else 50, random_state=0),
    }
    print("                                         feature-search              HopSkipJump (l2)")
    print("  table, model                 queries   features (l0)   l1          features   l1      without a success")
    for table, load in {"breast cancer": load_breast_cancer, "wine": load_wine}.items():
        for name, classifier in classifiers.items():
            model, x0, space = _fitted(*load(return_X_y=True), classifier, samples)
            for queries in each_queries:
                few = _found(model, x0, space, "l0", "feature-search", {}, queries, seeds)
                near = _found(model, x0, space, "l1", "feature-search", {}, queries, seeds)
                walk = _found(model, x0, space, "l2", "hopskipjump", WALK, queries, seeds)
                lost = [int(part["l0"].isinf().sum()) for part in (few, near, walk)]
                means = [_mean(few["l0"]), _mean(near["l1"]), _mean(walk["l0"]), _mean(walk["l1"])]
                shown = "{:10.2f} {:10.2f} {:15.2f} {:7.2f}".format(*means)
                print(f"  {table + ', ' + name:28} {queries:7} {shown}     {lost}", flush=True)


def _fitted(x: Any, y: Any, classifier: Any, samples: int) -> tuple[Model, Tensor, Space]:
    x = x.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[: len(x) // 2], order[len(x) // 2 :]
    classifier.fit(x[train], y[train])
    right = test[classifier.predict(x[test]) == y[test]][:samples]
    space = Space(*(torch.tensor(column) for column in (x.min(0), x.max(0), x.std(0))))

    def answer(z: Tensor) -> Tensor:
        return torch.from_numpy(classifier.predict(z.numpy())).long()

    model = Model("table", answer, "labels", (x.shape[1],), len(classifier.classes_), (0, 1), digest="table")
    return model, torch.tensor(x[right]), space


def _found(
    model: Model, x0: Tensor, space: Space, norm: Norm, name: str, params: dict[str, Any], queries: int, seeds: int
) -> dict[str, Tensor]:
    """Distances in l0 and l1 of what was found, all seeds together; inf where nothing was."""
    part = attacks.get(name)
    found: dict[str, list[Tensor]] = {"l0": [], "l1": []}
    for seed in range(seeds):
        task = Task(x0, Goal(model.ask(x0)), space, norm, None, keep="smallest", max_queries=queries, within_eps=False)
        probe = Probe(model, task, Noise([1000 * seed + row for row in range(len(x0))]))
        part.function(probe, **part.bind(params))
        for each in ("l0", "l1"):
            distance = space.distance(probe.memory.kept.double(), x0.double(), each)  # type: ignore[arg-type]
            found[each].append(distance.masked_fill(~probe.memory.success, torch.inf))
    return {each: torch.cat(parts) for each, parts in found.items()}


def _mean(distances: Tensor) -> float:
    return float(distances[distances.isfinite()].mean())


if __name__ == "__main__":
    main()
