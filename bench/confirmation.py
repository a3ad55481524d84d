"""How should an attack on a model that answers at random come by its successes? `python -m bench confirmation`

PGD's steps are taken once, and every point that looked like a success is remembered. Then rules choose among them: the
first one (one lucky draw); the first one that so many of 11 more draws confirm, or else the last (the probe wants 9);
all of the last five candidates. The judge draws 11 times and wants 6; the truth is more than half of 201 draws.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.core.seeds import key
from advrisk.engine import Draw, Goal, Model, Noise
from advrisk.engine.objectives import value
from advrisk.engine.threads import one_thread
from advrisk.parts.data import data
from advrisk.parts.defences import defences, defended_model
from advrisk.parts.models import checked_model, models

EPS, CANDIDATES = 0.1, 5
NEEDED = (6, 8, 9, 10, 11)  # of 11 draws, to believe in a success
CASES = [("gauss-out", 0.1), ("gauss-out", 0.3), ("gauss-out", 0.5), ("gauss-at-input", 0.3)]


@dataclass(frozen=True)
class Size:
    """How much is drawn."""

    samples: int = 100
    steps: int = 20
    truth: int = 201  # draws, more than half of which are the truth


TINY = Size(samples=8, steps=2, truth=11)


def main(*, tiny: bool = False) -> None:
    """Print what each rule would be granted."""
    with one_thread():
        measure(TINY if tiny else Size())


def measure(size: Size) -> None:
    """Print a line for each defence."""
    digits = data.get("mnist-5k").function()
    plain = checked_model("plain", models.get("demo").function(name="plain"), digits)
    x, y = torch.from_numpy(digits.x[::50][: size.samples]), torch.from_numpy(digits.y[::50][: size.samples])
    rules = " | ".join(f"{needed} of 11" for needed in NEEDED)
    print(f"defence, sigma | looked like a success | truth | lucky draw | {rules} | five candidates")
    print(
        "(of samples that the model mostly has right: successes granted by the judge, in brackets those that are none)"
    )
    for name, sigma in CASES:
        part = defences.get(name)
        model = defended_model(name, plain, part, part.bind({"sigma": sigma}))
        right = rates(model, x, y, size.truth, "clean") <= 0.5
        print(f"{name}, {sigma} |", " | ".join(compared(model, x[right], y[right], size)))


def rates(model: Model, x: Tensor, y: Tensor, draws: int, word: str) -> Tensor:
    """The share of draws in which each point is read wrongly."""
    noise, rows = Noise([key(word, row) for row in range(len(x))]), torch.arange(len(x))
    with torch.no_grad():
        return torch.stack([model.drawn(Draw(noise, rows)).ask(x).argmax(1) != y for _ in range(draws)]).float().mean(0)


def compared(model: Model, x: Tensor, y: Tensor, size: Size) -> list[str]:
    """What each rule would be granted, as text."""
    seen = steps(model, x, y, size.steps)
    points, label = torch.cat(seen), torch.cat([y[row].repeat(len(some)) for row, some in enumerate(seen)])
    sizes = [len(some) for some in seen]
    truth, judged = (
        torch.split(rates(model, points, label, draws, word) > 0.5, sizes)
        for draws, word in ((size.truth, "truth"), (11, "judge"))
    )
    hits = torch.split((11 * rates(model, points, label, 11, "confirm")).round(), sizes)
    found = {rule: [0, 0] for rule in ("lucky", *NEEDED, "candidates")}
    for row, some in enumerate(seen):
        places = list(range(len(some)))
        chosen_by = {"lucky": places[:1], "candidates": places[-CANDIDATES:]}
        for needed in NEEDED:
            chosen_by[needed] = [place for place in places if hits[row][place] >= needed][:1] or places[-1:]
        for rule, chosen in chosen_by.items():
            granted = [place for place in chosen if judged[row][place]]
            found[rule][0] += bool(granted)
            found[rule][1] += bool(granted) and not any(bool(truth[row][place]) for place in granted)
    n = f"{sum(bool(len(some)) for some in seen)} of {len(x)}"
    broken = sum(bool(one.any()) for one in truth)
    return [n, str(broken), *(f"{granted} ({wrong})" for granted, wrong in found.values())]


def steps(model: Model, x: Tensor, y: Tensor, n: int) -> list[Tensor]:
    """For each sample the points of PGD that were read wrongly when they were asked about, in order."""
    noise, rows = Noise([key("steps", row) for row in range(len(x))]), torch.arange(len(x))
    point, seen = x.clone(), [[] for _ in x]
    for _ in range(n):
        leaf = point.clone().requires_grad_(True)
        answer = model.drawn(Draw(noise, rows)).ask(leaf)
        for row in (answer.argmax(1) != y).nonzero().flatten().tolist():
            seen[row].append(point[row])
        (slope,) = torch.autograd.grad(value("ace", answer, Goal(y)).sum(), leaf)
        point = (x + (point + 2.5 * EPS / n * slope.sign() - x).clamp(-EPS, EPS)).clamp(0, 1)
    return [torch.stack(points) if points else x[:0] for points in seen]


if __name__ == "__main__":
    main()
