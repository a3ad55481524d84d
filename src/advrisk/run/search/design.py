"""Settings that are chosen before anything is known: grids, random points, and what a surrogate begins with."""

import itertools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from advrisk.core.seeds import generator, key
from advrisk.plan import Search, SearchAxis, Setting

_TRIES = 50  # random points for each that is new, where whole numbers leave little choice


def first_settings(search: Search, seed: int) -> list[Setting]:
    """What a surrogate begins with: the product of the values that the literature names, or a few Sobol points."""
    if all(axis.start for axis in search.axes):
        names = [axis.name for axis in search.axes]
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*(a.start for a in search.axes))]
    n = max(4, 2 * (len(search.axes) + 1))
    return unlike(
        [search.setting(point) for point in sobol(len(search.axes), n, key("design", seed, search.name)).tolist()], ()
    )


def grid_settings(search: Search) -> list[Setting]:
    """As many values of each parameter as rounds × batch points allow, evenly spread, both ends among them."""
    n = math.floor((search.rounds * search.batch) ** (1 / len(search.axes)) + 1e-9)
    values = [_spread(axis, n) for axis in search.axes]
    names = [axis.name for axis in search.axes]
    return [dict(zip(names, point, strict=True)) for point in itertools.product(*values)]


def random_settings(search: Search, seed: int) -> list[Setting]:
    """rounds × batch points drawn evenly from the box, each once; fewer where there are no more."""
    rng = generator("random search", seed, search.model, search.name)
    wanted = search.rounds * search.batch
    drawn = (search.setting(rng.uniform(size=len(search.axes)).tolist()) for _ in range(_TRIES * wanted))
    distinct: dict[tuple[float, ...], Setting] = {}
    for setting in drawn:
        distinct.setdefault(tuple(setting.values()), setting)
        if len(distinct) == wanted:
            break
    return list(distinct.values())


def unlike(settings: Iterable[Setting], known: Iterable[Setting]) -> list[Setting]:
    """Each setting once, and none that is known."""
    seen = {tuple(setting.values()) for setting in known}
    distinct = {tuple(setting.values()): setting for setting in settings}
    return [setting for values, setting in distinct.items() if values not in seen]


def sobol(n_axes: int, n: int, seed: int) -> NDArray[np.float64]:
    """Points of the unit cube that leave no large gap."""
    from torch.quasirandom import SobolEngine

    engine = SobolEngine(n_axes, scramble=True, seed=seed % 2**63)  # type: ignore[no-untyped-call]
    return np.asarray(engine.draw(n).double().numpy(), dtype=np.float64)


def _spread(axis: SearchAxis, n: int) -> list[float]:
    return list(dict.fromkeys(axis.value(position) for position in np.linspace(0, 1, n)))
