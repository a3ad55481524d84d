"""Crossed random effects of labellers and images: posterior draws by Markov chain Monte Carlo.

log threshold of an answer = t(labeller) + b(image), t ~ N(log threshold, spread of labellers), b ~ N(0, spread of
images). Labellers share images, so their likelihoods cannot be tabulated separately. Many short chains run in parallel.
They start from draws of the posterior without random effects and use their own generator, so the same answers give the
same draws. They run until R-hat shows convergence, or up to a limit, and then report non-convergence.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from advrisk.risk.evasion.answers import Answers
from advrisk.risk.evasion.curve import Flags, Floats
from advrisk.risk.evasion.grid import Indices
from advrisk.risk.evasion.priors import MOST_RATE, NO_RATE, RATE_POWER, SPREAD, AnswerModel, log_prior, log_spread_prior
from advrisk.risk.evasion.psychometric import fall

_CHAINS = (8, 16)  # minimum and maximum number
_CELLS = 16_000  # chains times answers
_BURN_IN = 160  # sweeps that are dropped, in which step lengths adapt
_APART = 4  # sweeps between two recorded states
_STATES = (80, 160, 320, 640)  # recorded states in total; chains that have not converged continue to the next number
_LEFT_OUT = 0.25  # share of recorded states, the first ones, that are dropped
_KEPT = 1600  # approximate number of draws; more would add little
_CONVERGED = 1.05  # `r_hat` at which chains stop
_TOLERATED = 1.1  # the usual limit of `r_hat`; draws beyond are unreliable
_CONSTANT = 1e-20  # variance of a constant, up to rounding
_ACCEPTED = 0.4  # target acceptance rate
_FARTHEST = 300.0  # clip of log thresholds: larger proposals are never accepted and would overflow exp
_SPREAD_STEPS = 3  # moves of a spread in each sweep; they need no likelihood and are cheap
_IMAGE_STEPS = 2  # moves of image effects in each sweep, which limit how fast the width mixes
_RATE_POWERS = (RATE_POWER, 80.0)  # proposals of rates: from the prior, and from nearer to 0, where most mass is
_LONGEST = 2.4  # longest step of an effect, in spreads; longer ones are rarely accepted
_WIDEST = 3.0  # log of the largest factor of a spread and its effects
_FIRST = (0.5, 2.0)  # initial spreads relative to their prior's scale: not near 0, where chains mix slowly
_SPREADS = ("of_labellers", "of_images")


@dataclass(frozen=True, eq=False)
class State:
    """Parameters and effects of each chain."""

    threshold: Floats  # (chains,), log, as is width
    width: Floats
    guess: Floats
    lapse: Floats
    of_labellers: Floats  # the two spreads
    of_images: Floats
    labellers: Floats  # (chains, labellers): log thresholds
    images: Floats  # (chains, images): offsets of log thresholds


def chains_for(n_answers: int) -> int:
    """Number of parallel chains."""
    return int(np.clip(_CELLS // max(n_answers, 1), *_CHAINS))


def start(parameters: Floats, n_labellers: int, n_images: int, rng: np.random.Generator) -> State:
    """Initial state from draws of log threshold, log width, guess and lapse without random effects, (chains, 4)."""
    of_labellers, of_images = SPREAD * np.exp(rng.uniform(np.log(_FIRST[0]), np.log(_FIRST[1]), (2, len(parameters))))
    threshold, width, guess, lapse = parameters.T
    labellers = threshold[:, None] + of_labellers[:, None] * rng.standard_normal((len(parameters), n_labellers))
    images = of_images[:, None] * rng.standard_normal((len(parameters), n_images))
    return State(threshold, width, guess, lapse, of_labellers, of_images, labellers, images)


@dataclass(frozen=True, eq=False)
class Draws:
    """Recorded states of all chains after burn-in, in order."""

    threshold: Floats  # (draws,), as in `State`
    width: Floats
    guess: Floats
    lapse: Floats
    of_labellers: Floats
    of_images: Floats
    labellers: Floats  # (draws, labellers)
    r_hat: float  # the largest of all quantities

    @property
    def converged(self) -> bool:
        """Whether the draws no longer depend on the initial states; if not, intervals are unreliable."""
        return self.r_hat <= _TOLERATED


def crossed_draws(chains: "Chains") -> Draws:
    """Run the chains until they converge, or up to the limit of recorded states."""
    for _ in range(_BURN_IN):
        chains.sweep(adapt=True)
    states: list[State] = []
    for n in _STATES:
        states += _recorded(chains, n - len(states))
        draws = _draws(states[round(_LEFT_OUT * n) :])
        if draws.r_hat <= _CONVERGED:
            break
    return draws


def _recorded(chains: "Chains", n: int) -> Iterator[State]:
    for _ in range(n):
        for _ in range(_APART):
            chains.sweep(adapt=False)
        # there may be thousands of images, and their effects are not reported
        yield replace(chains.state, images=np.empty((0, 0)))


def _draws(states: list[State]) -> Draws:
    names = [name for name in Draws.__dataclass_fields__ if name != "r_hat"]
    by_name = {name: np.stack([getattr(state, name) for state in states]) for name in names}
    thin = max(1, round(len(states) * len(states[0].width) / _KEPT))
    draws = {name: values[::thin].reshape(-1, *values.shape[2:]) for name, values in by_name.items()}
    return Draws(**draws, r_hat=max(r_hat(values) for values in by_name.values()))


def r_hat(values: Floats) -> float:
    """Split R-hat: the variance between chains relative to that within; 1 at convergence; the largest of several.

    Gelman and Rubin (1992), "Inference from iterative simulation using multiple sequences", with the halves of each
    chain as separate chains. `values` has the shape (states, chains) or (states, chains, quantities).
    """
    half = len(values) // 2
    parts = np.stack([values[:half], values[-half:]], axis=1)
    parts = parts.reshape(half, 2 * values.shape[1], -1)
    within = parts.var(axis=0, ddof=1).mean(axis=0)
    between = parts.mean(axis=0).var(axis=0, ddof=1)
    varies, differs = within > _CONSTANT, between > _CONSTANT
    ratio = np.divide(between, within, out=np.where(differs, np.inf, 1 / half), where=varies)
    return float(np.sqrt((half - 1) / half + ratio).max())


class Chains:
    """Parallel Markov chains whose moves leave the posterior invariant.

    The effects of labellers are independent given those of images and vice versa, so each set moves in one vectorised
    step. Spreads move with fixed effects, and with effects in proportion: the first mixes fast if answers are
    informative about the effects, the second if they are not. Steps of effects are short in a chain with a small
    spread; otherwise none would be accepted, and the spread could not grow.
    """

    def __init__(
        self, answers: Answers, of_labeller: Indices, of_image: Indices, model: AnswerModel, state: State,
        learned: tuple[bool, bool], rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._answers, self._of_labeller, self._of_image, self._model = answers, of_labeller, of_image, model
        self._learned, self._rng = learned, rng
        self._step = {
            "labellers": np.full(state.labellers.shape[1], 0.3),
            "images": np.full(state.images.shape[1], 0.3),
            **{name: np.array(0.3) for name in ("threshold", "width", "guess", "lapse", *_SPREADS)},
        }
        self.state = state
        self._fallen = self._fall(state)
        self._log = self._log_likelihood(state, self._fallen)

    def sweep(self, *, adapt: bool) -> None:
        taken = {"labellers": self._move_labellers()}
        for _ in range(_IMAGE_STEPS):
            taken["images"] = self._move_images()
        self._draw_threshold()
        self._draw_shift()
        taken["threshold"] = self._move_thresholds()
        for power in _RATE_POWERS:  # twice, since width and rates are correlated
            taken["width"] = self._move_width()
            for name, learned in zip(("guess", "lapse"), self._learned, strict=True):
                if learned:
                    self._redraw_rate(name, power)
                    taken[name] = self._move_rate(name)
        for name in _SPREADS:
            self._move_spread(name)
            taken[name] = self._scale_effects(name)
        if adapt:
            for name, flags in taken.items():
                self._step[name] = self._step[name] * np.exp(flags.mean(axis=0) - _ACCEPTED)

    # Effects

    def _move_labellers(self) -> Flags:
        now = self.state
        tried = now.labellers + self._effect_walk("labellers", now.of_labellers)
        new = replace(now, labellers=tried)
        log = self._log_likelihood(new, fallen := self._fall(new))
        off, tried_off = now.labellers - now.threshold[:, None], tried - now.threshold[:, None]
        prior = (off**2 - tried_off**2) / (2 * now.of_labellers[:, None] ** 2)
        taken = self._taken(_sums(log - self._log, self._of_labeller, now.labellers.shape[1]) + prior)
        self.state = replace(now, labellers=np.where(taken, tried, now.labellers))
        self._take_answers(taken[:, self._of_labeller], log, fallen)
        return taken

    def _move_images(self) -> Flags:
        now = self.state
        tried = now.images + self._effect_walk("images", now.of_images)
        new = replace(now, images=tried)
        log = self._log_likelihood(new, fallen := self._fall(new))
        prior = (now.images**2 - tried**2) / (2 * now.of_images[:, None] ** 2)
        taken = self._taken(_sums(log - self._log, self._of_image, now.images.shape[1]) + prior)
        self.state = replace(now, images=np.where(taken, tried, now.images))
        self._take_answers(taken[:, self._of_image], log, fallen)
        return taken

    def _draw_threshold(self) -> None:
        """Draw the threshold from its normal distribution given those of the labellers."""
        now = self.state
        mean, deviation = self._model.threshold
        precision = deviation**-2 + now.labellers.shape[1] * now.of_labellers**-2
        centre = (mean * deviation**-2 + now.labellers.sum(axis=1) * now.of_labellers**-2) / precision
        self.state = replace(now, threshold=centre + self._rng.standard_normal(centre.size) / np.sqrt(precision))

    def _draw_shift(self) -> None:
        """Draw a shift from thresholds to images, which leaves the likelihood unchanged and is normal."""
        now = self.state
        mean, deviation = self._model.threshold
        precision = deviation**-2 + now.images.shape[1] * now.of_images**-2
        centre = ((mean - now.threshold) * deviation**-2 + now.images.sum(axis=1) * now.of_images**-2) / precision
        shift = centre + self._rng.standard_normal(centre.size) / np.sqrt(precision)
        self.state = replace(
            now,
            threshold=now.threshold + shift,
            labellers=now.labellers + shift[:, None],
            images=now.images - shift[:, None],
        )

    def _move_thresholds(self) -> Flags:
        """Shift all thresholds together, which mixes fast if labellers differ little."""
        now = self.state
        shift = self._walk("threshold", now.threshold.shape)
        tried = replace(now, threshold=now.threshold + shift, labellers=now.labellers + shift[:, None])
        return self._try(tried, np.zeros(shift.shape))

    # Parameters

    def _move_width(self) -> Flags:
        now = self.state
        return self._try(
            replace(now, width=now.width + self._walk("width", now.width.shape)), np.zeros(now.width.shape)
        )

    def _redraw_rate(self, name: str, power: float) -> None:
        """Propose a rate of 0, or one with density (power + 1) (1 - rate)^power below its largest value."""
        old = getattr(self.state, name)
        new = _rates(old.size, power, self._rng)
        gain = _log_rates(old, power) - _log_rates(new, power)
        self._try(replace(self.state, **{name: new}), gain, self._fallen)

    def _move_rate(self, name: str) -> Flags:
        """Move a rate that is not 0."""
        old = getattr(self.state, name)
        new = old + self._walk(name, old.shape)
        possible = (old > 0) & (new > 0) & (new < MOST_RATE)
        tried = replace(self.state, **{name: np.where(possible, new, old)})
        return self._try(tried, np.where(possible, 0.0, -np.inf), self._fallen)

    def _move_spread(self, name: str) -> None:
        """Move a spread with fixed effects."""
        for _ in range(_SPREAD_STEPS):
            effects, old = self._effects(name), getattr(self.state, name)
            new = old * np.exp(self._rng.standard_normal(old.size))
            squares, count = (effects**2).sum(axis=1), effects.shape[1]
            gain = (count - 1) * np.log(old / new) + squares * (old**-2 - new**-2) / 2
            taken = self._taken(gain + log_spread_prior(new) - log_spread_prior(old))
            self.state = replace(self.state, **{name: np.where(taken, new, old)})

    def _scale_effects(self, name: str) -> Flags:
        """Scale a spread and its effects together."""
        effects, old = self._effects(name), getattr(self.state, name)
        # heavy-tailed steps, since answers are more informative about effects with a large spread
        steps = self._step[name] * self._rng.standard_t(2, old.shape)
        factor = np.exp(np.clip(steps, -_WIDEST, _WIDEST))
        scaled = effects * factor[:, None]
        tried = (
            replace(self.state, of_labellers=old * factor, labellers=self.state.threshold[:, None] + scaled)
            if name == "of_labellers"
            else replace(self.state, of_images=old * factor, images=scaled)
        )
        return self._try(tried, log_spread_prior(old * factor) - log_spread_prior(old) + np.log(factor))

    def _effects(self, name: str) -> Floats:
        now = self.state
        return now.images if name == "of_images" else now.labellers - now.threshold[:, None]

    # What moves have in common

    def _try(self, tried: State, gain: Floats, fallen: Floats | None = None) -> Flags:
        """Accept each chain's new state by Metropolis-Hastings with the log proposal ratio `gain`.

        Pass `fallen` if the move does not change it.
        """
        fallen = self._fall(tried) if fallen is None else fallen
        log = self._log_likelihood(tried, fallen)
        change = (log - self._log).sum(axis=1) + self._prior(tried) - self._prior(self.state)
        taken = self._taken(change + gain)
        self._take_answers(taken[:, None], log, fallen)
        self.state = State(
            *(
                old if new is old else np.where(taken if new.ndim == 1 else taken[:, None], new, old)
                for new, old in zip(vars(tried).values(), vars(self.state).values(), strict=True)
            )
        )
        return taken

    def _take_answers(self, taken: Flags, log: Floats, fallen: Floats) -> None:
        self._log = np.where(taken, log, self._log)
        self._fallen = fallen if fallen is self._fallen else np.where(taken, fallen, self._fallen)

    def _prior(self, state: State) -> Floats:
        return log_prior(self._model, state.threshold, state.width, state.guess, state.lapse)

    def _fall(self, state: State) -> Floats:
        """F of each answer, without rates, (chains, answers)."""
        threshold = state.labellers.take(self._of_labeller, axis=1) + state.images.take(self._of_image, axis=1)
        threshold = np.clip(threshold, -_FARTHEST, _FARTHEST)
        return fall(self._answers.sizes, threshold, state.width[:, None], self._model.scale)

    def _log_likelihood(self, state: State, fallen: Floats) -> Floats:
        """Log likelihood of each answer, (chains, answers)."""
        p = fallen
        if state.guess.any() or state.lapse.any():
            p = state.lapse[:, None] + (1 - state.guess - state.lapse)[:, None] * p
        p = p * self._model.share if self._model.forced_choice else p
        return np.asarray(np.log(np.maximum(np.where(self._answers.undetected, p, 1 - p), 1e-300)))

    def _walk(self, name: str, shape: tuple[int, ...]) -> Floats:
        return np.asarray(self._step[name] * self._rng.standard_normal(shape))

    def _effect_walk(self, name: str, spread: Floats) -> Floats:
        """Steps of effects, (chains, effects), limited by the chain's spread."""
        longest = _LONGEST * spread[:, None]
        step = self._step[name] * longest / np.hypot(self._step[name], longest)
        return np.asarray(step * self._rng.standard_normal(step.shape))

    def _taken(self, gain: Floats) -> Flags:
        return np.asarray(np.log(self._rng.random(gain.shape)) < gain)


def _sums(values: Floats, of_answer: Indices, n: int) -> Floats:
    """Sums of (chains, answers) over the answers of each of n groups, (chains, n)."""
    rows = np.arange(len(values))[:, None] * n
    sums = np.bincount((rows + of_answer).ravel(), values.ravel(), minlength=len(values) * n)
    return sums.astype(float).reshape(-1, n)


def _rates(n: int, power: float, rng: np.random.Generator) -> Floats:
    drawn = 1 - (1 - _below(power) * rng.random(n)) ** (1 / (power + 1))
    return np.where(rng.random(n) < NO_RATE, 0.0, drawn)


def _log_rates(rates: Floats, power: float) -> Floats:
    """Log density of `_rates` relative to that of 0."""
    slab = (1 - NO_RATE) * (power + 1) / _below(power)
    return np.where(rates > 0, np.log(slab / NO_RATE) + power * np.log1p(-rates), 0.0)


def _below(power: float) -> float:
    """Probability of a rate below its largest value."""
    return float(1 - (1 - MOST_RATE) ** (power + 1))
