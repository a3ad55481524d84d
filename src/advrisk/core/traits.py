"""What a part of each kind says about itself, so that a study can be checked without running it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Norm = Literal["l0", "l1", "l2", "linf"]
Keep = Literal["first", "smallest", "strongest", "last"]
Capability = Literal["labels", "scores", "gradients"]
Precision = Literal["float64", "float32", "bfloat16", "float16", "int8"]  # what a model computes in
Accounting = Literal["sample", "batch", "none"]
DETECTOR = "detector"  # the parameter of an arm that names the detector it knows
TRANSFER = "transfer"  # the attack that takes over what another crafted against another model
CAPABILITIES: tuple[Capability, ...] = ("labels", "scores", "gradients")  # each gives all before it


@dataclass(frozen=True)
class Resolved:
    """What is known of an attack once its parameters are: these, completed, what it needs, and where it can lead.

    `away`: it can make a sample lose its class; `towards`: it can make it become a given one.
    """

    params: Mapping[str, Any]
    needs: Capability
    away: bool = True
    towards: bool = True


@dataclass(frozen=True)
class Watch:
    """What is known of a detector that an attack knows: how often it asks a model about a point, beside the attack.

    `follows_score`, `follows_model`: whether torch can follow the score, and the model's answer, back to the point.
    """

    passes: int
    follows_score: bool
    follows_model: bool


@dataclass(frozen=True)
class Box:
    """Between which values a parameter of an attack is worth searching.

    `log`: by ratios rather than differences; `of_eps`: `low` and `high` are shares of the arm's eps; `start`: values to
    begin with, where the literature names some; `usual`: what is used where the parameter is left at None, from the
    other parameters and eps.
    """

    low: float
    high: float
    log: bool = True
    of_eps: bool = False
    start: tuple[float, ...] = ()
    usual: Callable[[Mapping[str, Any], float], float] | None = None


@dataclass(frozen=True)
class AttackTraits:
    """What an attack needs of a model, and how it behaves.

    - `norms` is empty for an attack whose changes no norm limits: its arms have neither norm nor eps.
    - `passes` gives the most forward and backward passes per sample, for the bound parameters and a number of classes;
      None where nobody knows before it runs.
    - `within_eps` promises that no proposed point lies beyond eps, in all norms or in those it names; the probe checks.
    - `needs_eps` is false for attacks that look for the smallest perturbation and take a limit only if one is given.
    - `aims` is true for those that climb towards classes of their own choice, with objectives that can.
    - `exhaustive` is true for those that try all there is: they cannot gain by going on.
    - `images` is true for those that need images: inputs of channels × height × width.
    - `accounting` is `batch` where passes cannot be told apart by sample, as in attacks of other libraries, and `none`
      where the model is not asked.
    - `watches` is true for those that know a detector, whose name their arms give; `passes` finds a `Watch` under
      "watch", beside the parameters.
    - `box` says which parameters a search varies where the study does not say: those that may make the attack stronger
      or weaker at the same cost, such as the length of a step. More steps are no search.
    - `resolve` is for attacks whose needs depend on their parameters: it checks these for a norm and an eps.
    """

    needs: Capability
    norms: tuple[Norm, ...]
    passes: Callable[[Mapping[str, Any], int], tuple[int, int]] | None
    use_when: str
    objective: str | None = None
    keep: Keep = "first"
    within_eps: bool | tuple[Norm, ...] = True
    needs_eps: bool = True
    random: bool = False
    aims: bool = False
    images: bool = False
    exhaustive: bool = False
    accounting: Accounting = "sample"
    watches: bool = False
    box: Mapping[str, Box] = field(default_factory=dict)
    resolve: Callable[[Mapping[str, Any], Norm | None, float | None], Resolved] | None = None

    def resolved(self, params: Mapping[str, Any], norm: Norm | None, eps: float | None) -> Resolved:
        """What is known of the attack with these parameters."""
        return Resolved(params, self.needs) if self.resolve is None else self.resolve(params, norm, eps)

    def stays_within_eps(self, norm: Norm | None) -> bool:
        """Whether the attack promises to, in that norm."""
        return self.within_eps if isinstance(self.within_eps, bool) else norm in self.within_eps


@dataclass(frozen=True)
class ObjectiveTraits:
    """What an objective can be used for, and what it needs.

    `targeted`: it can also be climbed towards a given class; `from_clean`: it measures from the clean prediction;
    `logits`: log-probabilities will not do; `classes`: the fewest a model must know, without and with a target.
    """

    use_when: str
    targeted: bool = False
    from_clean: bool = False
    logits: bool = False
    classes: tuple[int, int] = (2, 2)


@dataclass(frozen=True)
class CorruptionTraits:
    """Where a corruption comes from, and how it behaves.

    - `cause` is the branch of the tree of risks that it belongs to: sensor, noise, weather, table, or a word of yours.
    - `random` says whether two draws differ.
    - `inputs` says what it is for: `images` are channels × height × width, `tables` rows of features.
    - `levels` gives a parameter its values at the levels 1, 2, 3, … (one parameter or more, equally many values).
    """

    use_when: str
    cause: str
    random: bool = True
    inputs: Literal["any", "images", "tables"] = "any"
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def n_levels(self) -> int:
        return max(map(len, self.levels.values()), default=0)


@dataclass(frozen=True)
class DefenceTraits:
    """What a defence needs of the model it is put around, and how it behaves.

    - `random` says that it draws: the same input may be answered differently the next time.
    - `rejects` says that it may refuse to answer.
    - `images` is true for those that are for images only.
    - `levels` gives parameters the values that were studied, for people to choose from.
    """

    use_when: str
    needs: Capability = "labels"
    random: bool = False
    rejects: bool = False
    images: bool = False
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class DetectorTraits:
    """What a detector needs of a model: `labels` also for one that does not ask it.

    - `images` is true for those that are for images only.
    - `learns` says what it must be fitted to before it can score: clean inputs alone, or successful attacks as well.
    - `inside` is true for those that look at the hidden layers of a torch module, `dropout` for those that need some.
    - `differentiable`: torch can follow the score back to the input, wherever it can follow the model's answer.
    """

    use_when: str
    needs: Capability = "labels"
    images: bool = False
    learns: Literal["clean", "attacks"] | None = None
    inside: bool = False
    dropout: bool = False
    differentiable: bool = True


@dataclass(frozen=True)
class LossTraits:
    """What a loss needs of a model's stored answers, and between which numbers it lies.

    `range` is None where it is not known; a function of the bound parameters where it depends on them. `of_change`: it
    asks whether the answer stays as it was, so attacks must be judged against the clean prediction.
    """

    use_when: str
    needs: Literal["labels", "scores"] = "labels"
    of_change: bool = False
    range: tuple[float, float] | Callable[[Mapping[str, Any]], tuple[float, float]] | None = None

    def bounds(self, params: Mapping[str, Any]) -> tuple[float, float]:
        """The least and the greatest value with these parameters, infinite where it is not known."""
        if self.range is None:
            return -math.inf, math.inf
        return self.range(params) if callable(self.range) else self.range


@dataclass(frozen=True)
class MeasureTraits:
    """What a measure, a number about a model at a clean input, needs of the model.

    `passes` gives the forward and backward passes that a sample takes, for the bound parameters and a number of
    classes; None where nobody knows.
    """

    use_when: str
    needs: Capability = "gradients"
    passes: Callable[[Mapping[str, Any], int], tuple[int, int]] | None = None


@dataclass(frozen=True)
class SourceTraits:
    """A source of models or data: when to use it."""

    use_when: str


@dataclass(frozen=True)
class TrainingTraits:
    """What a training method needs of the data.

    `perturbs`: it moves inputs within [0, 1], so the data must have these bounds; `classes`: the fewest there must be.
    """

    use_when: str
    perturbs: bool = False
    classes: int = 2


def gives(capability: Capability, needed: Capability) -> bool:
    """Whether a model of that capability can answer what is needed."""
    return CAPABILITIES.index(capability) >= CAPABILITIES.index(needed)
