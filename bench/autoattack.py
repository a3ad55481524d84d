"""AutoAttack beside its authors' own: verdicts and time; and what Square costs beside the passes that it asks for.

Ours runs as a cell: attacked, judged, made into rows. The other is `pyautoattack`, which packages the authors' code.
Both have one thread and all samples in one batch.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from advrisk.plan import Cell
from advrisk.run.rows import CellResult
from advrisk.testing import toys
from bench.cells import Shop, shop
from bench.nets import SURE_LENET
from bench.peers import pyautoattack_standard
from bench.timing import seconds

SAMPLES, QUERIES = 100, 1000
EPS = {"linf": 0.2, "l2": 1.6, "l1": 8.0}
TRIALS = [("pgd-trained", EPS), ("trades", EPS), ("plain", {"linf": 0.06})]


def main() -> None:
    """Print how often verdicts agree and how the times compare, then Square's overhead."""
    print(f"AutoAttack, standard version; {SAMPLES} samples")
    print("                          left unbroken     same       broken by one only      seconds     time")
    print("                          ours   theirs     verdict    ours   theirs           of ours     theirs / ours")
    for model, sizes in TRIALS:
        for norm, eps in sizes.items():
            try:
                _compare(model, norm, eps)
            except ImportError as error:
                print(f"  pyautoattack is not installed ({error})")
                break
    print(f"\nSquare, {QUERIES} queries: a cell's seconds / seconds of the same batches through the module alone")
    for name, model, sizes in (
        ("small CNN", _demo("trades"), EPS),
        ("LeNet-5", SURE_LENET, EPS),
    ):
        for norm, eps in sizes.items():
            _measure_square(name, model, norm, eps)


def _demo(name: str) -> dict[str, Any]:
    return {"source": "demo", "name": name}


def _compare(model: str, norm: str, eps: float) -> None:
    with shop([_arm("autoattack", norm, eps)], samples=SAMPLES, shard=SAMPLES, model=_demo(model)) as place:
        (cell,) = place.cells
        x, y = place.samples(cell)
        theirs = pyautoattack_standard(place.module(frozen=False), norm=norm, eps=eps)
        answers: list[Tensor] = []
        wall_theirs = seconds(lambda: answers.append(theirs(x, y)[0]))
        with torch.no_grad():
            broken_theirs = place.module(frozen=True)(answers[0]).argmax(1) != y
        results: list[CellResult] = []
        wall = seconds(lambda: results.append(place.carry_out(cell)))
        broken = torch.tensor(
            [outcome == "success" for outcome in results[0].tables["outcomes"]["outcome"].to_pylist()]
        )
    ours_only, theirs_only = (int(column.sum()) for column in (broken & ~broken_theirs, broken_theirs & ~broken))
    print(
        f"  {model:12} {norm:4} {eps:5g} {int((~broken).sum()):5} {int((~broken_theirs).sum()):8} "
        f"{100 * float((broken == broken_theirs).double().mean()):9.1f} % {ours_only:8} {theirs_only:8} "
        f"{wall:17.1f} {wall_theirs / wall:13.2f}",
        flush=True,
    )


def _measure_square(name: str, model: dict[str, Any], norm: str, eps: float) -> None:
    arm = _arm("square", norm, eps) | {"queries": QUERIES}
    with shop([arm], samples=SAMPLES, shard=SAMPLES, model=model) as place:
        (cell,) = place.cells
        batches = list(_batches(place, cell))
        raw = wall = 0.0
        for _ in range(2):
            raw += seconds(lambda: _ask_all(place, batches))
            wall += seconds(lambda: place.carry_out(cell))
    size = sum(len(batch) for batch in batches) / len(batches)
    print(f"  {name:12} {norm:4} {eps:6g} {wall / raw:9.2f}   (batches of {size:.0f} on average)", flush=True)


def _batches(place: Shop, cell: Cell) -> Iterator[Tensor]:
    """What goes through the model for a cell, padding and the judge's passes included."""
    model, record = toys.recorded(place.model)
    place.carry_out_on(model, cell)
    for x, _ in record.passes:
        yield x


def _ask_all(place: Shop, batches: list[Tensor]) -> None:
    with torch.no_grad():
        for x in batches:
            place.model.answer(x)


def _arm(attack: str, norm: str, eps: float) -> dict[str, Any]:
    return {"attack": attack, "norm": norm, "eps": eps}


if __name__ == "__main__":
    main()
