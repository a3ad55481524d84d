"""Which picture a labeller is shown next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advrisk.answers.records import Design, Shown, Trials
from advrisk.assess.damage.people import walk_order
from advrisk.core.errors import RunError
from advrisk.core.names import did_you_mean
from advrisk.core.seeds import generator
from advrisk.web.history import LabellerHistory
from advrisk.web.stimuli import Pool

_NEAR = 0.10  # a kept example this near to the wanted size is shown as it is
_ABOUT = 0.25  # where to look for one: rounding to 8 bits moves sizes
_TRIES = 6
_SHARED = 0.5  # how often a picture is taken that somebody else was shown, if there is one: to see whether they agree
_RECENT = 12  # originals not to be shown again so soon


@dataclass(frozen=True)
class Asking:
    """How questions are chosen."""

    design: Design
    trials: Trials = "adaptive"
    model: str | None = None  # whose samples are walked, with random trials
    catch: float = 1 / 6  # share of trials that keep a labeller awake

    def checked(self, pool: Pool) -> "Asking":
        """The same, or an error if it cannot be asked."""
        models = list(pool.distances.by_model)
        if self.trials == "adaptive":
            if self.model is not None:
                raise RunError("--model belongs to --trials random; adaptive trials are about all models together")
            return self
        if self.design == "forced-choice":
            raise RunError(
                "random trials ask of each picture whether its change is noticed, and a forced choice does not say "
                "that of one picture; use --design yes-no or side-by-side"
            )
        model = self.model or (models[0] if len(models) == 1 else None)
        if model is None:
            raise RunError(f"--trials random needs --model, one of {', '.join(models)}")
        if model not in models:
            raise RunError(f"no model is called {model!r}; {did_you_mean(model, models)}")
        _refuse_missing(pool, model)
        return replace(self, model=model)


def next_shown(
    pool: Pool,
    asking: Asking,
    sizes: NDArray[np.float64],
    *,
    labeller: int,
    place: int,
    seen: LabellerHistory,
) -> Shown | None:
    """The next question to a labeller, adaptively about one of these sizes; None when a random walk is at its end."""
    rng = generator("label", pool.seed, labeller, place)
    if is_catch(asking.catch, pool.seed, labeller, place):
        shown = _catch(pool, asking, seen, rng)
    elif asking.trials == "random":
        walked = next_of_walk(pool, asking, seen)
        if walked is None:
            return None
        shown = walked
    else:
        shown = at_size(pool, float(rng.choice(sizes)), seen, rng)
    first = asking.design == "forced-choice" and bool(rng.random() < 0.5)
    return replace(shown, trials=asking.trials, changed_first=first)


def is_catch(share: float, seed: int, labeller: int, place: int) -> bool:
    """One trial of each block is a catch trial, at a random place of the block."""
    if share <= 0:
        return False
    length = max(2, round(1 / share))
    block, at = divmod(place, length)
    return int(generator("catch", seed, labeller, block).integers(length)) == at


def _catch(pool: Pool, asking: Asking, seen: LabellerHistory, rng: np.random.Generator) -> Shown:
    """An unchanged picture; in a forced choice one whose change is hard to miss."""
    if asking.design == "forced-choice":
        return replace(at_size(pool, float(pool.sizes[-1]), seen, rng), catch=True)
    if shared := _shared(0.0, seen, rng):
        return replace(shared, catch=True, model=None)
    samples = sorted({example.sample for example in pool.examples})
    return Shown(_least_seen(samples, seen, rng), 0.0, catch=True)


def at_size(pool: Pool, size: float, seen: LabellerHistory, rng: np.random.Generator) -> Shown:
    """A picture changed by about this size, of an original that the labeller has seen least.

    A kept example if there is one, else one whose perturbation is scaled.
    """
    if shared := _shared(size, seen, rng):
        return replace(shared, catch=False)
    # An original that was shown just now counts as shown often.
    counts = seen.example_counts() + 1000 * seen.recent_examples(_RECENT)
    away = np.abs(pool.log_distances - np.log(size))
    about = np.flatnonzero((away <= _ABOUT) & (counts <= counts.min() + 1))
    for place in _in_turn(about, counts, rng):
        shown = pool.as_it_is(pool.examples[place])
        if abs(shown.size - size) <= _NEAR * size:
            return shown
    least = np.flatnonzero(counts == counts.min())
    few = least[np.argsort(away[least], kind="stable")[:20]]
    return pool.scaled(pool.examples[int(rng.choice(few))], size)


def _shared(size: float, seen: LabellerHistory, rng: np.random.Generator) -> Shown | None:
    """Often, a picture of about this size that somebody else was shown and this labeller was not."""
    if rng.random() >= _SHARED:
        return None
    fit = seen.of_others(size, within=_NEAR * size, recent=_RECENT)
    return seen.shown(int(fit[rng.integers(len(fit))])) if len(fit) else None


def _in_turn(places: NDArray[np.intp], seen: NDArray[np.int64], rng: np.random.Generator) -> list[int]:
    """Examples to try, those of the least seen originals first."""
    shuffled = rng.permutation(places)
    return [int(place) for place in shuffled[np.argsort(seen[shuffled], kind="stable")][:_TRIES]]


def _least_seen(samples: Sequence[str], seen: LabellerHistory, rng: np.random.Generator) -> str:
    counts = seen.counts(samples)
    return str(rng.choice([samples[int(place)] for place in np.flatnonzero(counts == counts.min())]))


def next_of_walk(pool: Pool, asking: Asking, seen: LabellerHistory) -> Shown | None:
    """The next sample of the walk that the model did not resist: its nearest success as it is, or the original if
    that is wrong already."""
    assert asking.model is not None
    done = seen.walked(asking.model)
    distance = dict(zip(pool.distances.samples, pool.distances.by_model[asking.model].tolist(), strict=True))
    for sample in walk_order(pool.distances.samples, seed=pool.seed):
        if sample in done or np.isinf(distance[sample]):
            continue
        if distance[sample] == 0:
            return Shown(sample, 0.0, asking.model)
        return pool.as_it_is(pool.nearest[asking.model, sample])
    return None


def _refuse_missing(pool: Pool, model: str) -> None:
    """A walk needs every nearest success: leaving out what was not kept would leave out some samples only."""
    for sample, distance in zip(pool.distances.samples, pool.distances.by_model[model].tolist(), strict=True):
        example = pool.nearest.get((model, sample))
        if 0 < distance < np.inf and (example is None or example.distance > distance * (1 + 1e-9)):
            raise RunError(
                f"{pool.folder}: the nearest success of {model} on {sample} was not kept, or was deleted; run the "
                "study into a new folder with `keep_inputs: successful`, or use --trials adaptive"
            )


def n_to_walk(pool: Pool, model: str) -> int:
    """How many samples of a walk are shown; the others resisted."""
    return int(np.isfinite(pool.distances.by_model[model]).sum())
