"""A scenario evaluated on a tensor: the mean of every leaf, and what each sample contributes to its error.

Everything that a scenario says is a linear combination of leaves, so their means and two small matrices hold all that
estimates and intervals need.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean
from advrisk.risk.indicators.matching import Laid
from advrisk.risk.indicators.tensor import Flags, Floats, Integers, RiskTensor

ALONE = 1 - 1e-9  # a leverage above it: the mean is the value of this sample alone
_ROUNDS, _CLOSE = 1000, 1e-10  # of raking


@dataclass(frozen=True, eq=False)
class LeafValues:
    """What happens to each sample under each leaf, (leaves, samples); all samples of the tensor."""

    values: Floats
    members: Flags  # where the leaf can happen
    complete: Flags  # (samples,): every leaf that can happen to it has a value, and its weight is not 0
    n_unfinished: int
    n_without_verdict: int


@dataclass(frozen=True, eq=False)
class Sums:
    """Over some samples: all that estimates need of them, by leaf or by group."""

    parts: Floats  # (leaves,): what they add to the mean
    share: Floats  # (groups,): what they weigh together
    covariance: Floats  # (leaves, leaves)
    overlap: Floats  # (groups, groups): of shares; 1/n for a group with itself, if its n samples weigh alike
    free: Floats  # (groups, groups): the same, less what leverage takes
    alone: Floats  # (groups, groups): of samples that are the only ones of their kind


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Means of leaves, and the influence of each sample on them."""

    mean: Floats  # (leaves,); nan where a leaf has no samples
    parts: Floats  # (leaves, n): what each sample adds to the mean
    influence: Floats  # (leaves, n): their sums of squares and products are variances and covariances
    share: Floats  # (groups, n): what each sample weighs in the mean of a leaf of that group; sums to 1
    leverage: Floats  # (groups, n): how far each sample draws the mean that it is held against; 1/n, if all weigh alike
    group: Integers  # (leaves,): leaves with the same samples are one group
    n: Integers  # (leaves,) samples
    bounds: tuple[float, float]  # between which the loss lies

    @cached_property
    def held_limits(self) -> dict[tuple[bytes, float, bool], tuple[float, float]]:
        """Limits that were computed: a branch and its contribution have the same but for a factor."""
        return {}

    @cached_property
    def _sums(self) -> dict[bytes, Sums]:
        return {}

    def sums(self, columns: Flags | None) -> Sums:
        """Over these samples, or all: computed once."""
        key = b"" if columns is None else columns.tobytes()
        if key not in self._sums:
            some: Any = slice(None) if columns is None else columns
            share, leverage, influence = self.share[:, some], self.leverage[:, some], self.influence[:, some]
            free, alone = share * np.sqrt(1 - leverage), share * (leverage > ALONE)
            self._sums[key] = Sums(
                parts=self.parts[:, some].sum(axis=1),
                share=share.sum(axis=1),
                covariance=influence @ influence.T,
                overlap=share @ share.T,
                free=free @ free.T,
                alone=alone @ alone.T,
            )
        return self._sums[key]

    @cached_property
    def residual(self) -> Floats:
        """The influences before they are divided by what leverage leaves, (leaves, n): their sum is 0."""
        return np.asarray(self.influence * np.sqrt(np.maximum(1 - self.leverage, 0.0))[self.group])

    @cached_property
    def of_group(self) -> Floats:
        """(leaves, groups): 1 where the leaf is of the group."""
        return np.asarray(self.group[:, None] == np.arange(len(self.share)), dtype=np.float64)

    def n_under(self, coefficients: Floats) -> int:
        """Samples that matter where leaves have these weights."""
        groups = np.unique(self.group[coefficients > 0])
        return int((self.share[groups] > 0).any(axis=0).sum())


def leaf_values(tensor: RiskTensor, found: Laid, loss: str) -> LeafValues:
    """Arms put together sample by sample."""
    _refuse_unasked(tensor, found, loss)
    of_arm = tensor.by_arm(loss)
    values = np.empty((len(found.leaves), len(tensor.samples)))
    for place, leaf in enumerate(found.leaves):
        arms = list(leaf.arms)
        if leaf.aggregate == "max":
            values[place] = tensor.worst(loss, arms)
        else:
            values[place] = of_arm.mean[arms].sum(axis=0) / len(arms)
    members = np.stack(found.members)
    missing = np.isnan(values) & members
    weighs = tensor.weight > 0
    left_out = missing.any(axis=0) & weighs
    arms = sorted({arm for leaf in found.leaves for arm in leaf.arms})
    failed = left_out & tensor.failed[:, arms].any(axis=1)
    return LeafValues(values, members, weighs & ~left_out, int((left_out & ~failed).sum()), int(failed.sum()))


def _refuse_unasked(tensor: RiskTensor, found: Laid, loss: str) -> None:
    """Attacks that left samples alone which this loss asks about: counting them as unharmed would be wrong."""
    used = {tensor.arms[arm] for leaf in found.leaves for arm in leaf.arms}
    if missing := sorted(used & set(tensor.unasked.get(loss, ()))):
        raise RiskError(
            f"the loss {loss} asks whether the answer stays as it was, but {missing[0]} did not attack samples that "
            "were wrong already, as the run has `success: label` or a target; run the study with `success: prediction`"
        )


def evaluate(
    tensor: RiskTensor, found: Laid, loss: str, of_leaf: LeafValues, *, used: Flags, domain: Flags | None = None
) -> Evaluated:
    """Means over the samples used, with sample weights and the shares of strata that the scenario states.

    With weights w_i and the samples S of a leaf, V = sum_S w_i v_i / sum_S w_i, and the influence of sample i is
    w_i (v_i - V) / sum_S w_i. Where the scenario states shares of strata, weights are raked to them, and what the
    strata explain of the influences is taken out: it no longer varies. As V leans towards v_i by its leverage h_i, the
    influence is divided by sqrt(1 - h_i) (MacKinnon and White, 1985): of n samples alike, that is n/(n-1) for the
    variance, in every group by itself. `domain` restricts the means to some samples.
    """
    strata = found.scenario.strata
    weight = raked(tensor, strata, used, found.scenario.name)
    columns = used & (weight > 0)
    inside = columns if domain is None else columns & domain
    if not strata:
        columns = inside
    of_column = inside[columns]
    weight = weight[columns]
    members = of_leaf.members[:, columns] & of_column
    wheres = list(dict.fromkeys(leaf.where for leaf in found.leaves))
    group = np.array([wheres.index(leaf.where) for leaf in found.leaves])
    groups = np.stack([members[int(np.argmax(group == place))] for place in range(len(wheres))])
    share = groups * weight
    total = share.sum(axis=1, keepdims=True)
    share = np.divide(share, total, out=np.zeros_like(share), where=total > 0)
    values = np.where(members, of_leaf.values[:, columns], 0.0)
    mean = np.einsum("ln,ln->l", values, share[group])
    n = members.sum(axis=1)
    influence = share[group] * (values - mean[:, None])
    leverage = share
    if strata:
        dummies = _dummies(tensor, strata, columns)
        influence -= _explained(influence, weight, dummies)
        leverage = np.stack(
            [np.where(inside, _leverage(weight * inside, dummies), _leverage(weight, dummies)) for inside in groups]
        )
    influence *= np.divide(1, np.sqrt(1 - leverage), out=np.zeros_like(leverage), where=leverage <= ALONE)[group]
    mean = np.where(n > 0, mean, np.nan)
    return Evaluated(mean, values * share[group], influence, share, leverage, group, n, tensor.range_of(loss))


def raked(tensor: RiskTensor, strata: Mapping[str, Mapping[str, float]], used: Flags, name: str) -> Floats:
    """Sample weights, 0 for samples that are not used, scaled until the strata have the shares stated.

    Of one stratum that is exact at once; of several, each is put right in turn until all are.
    """
    weight: Floats = np.where(used, tensor.weight, 0.0)
    weight = np.asarray(weight / weight.sum())
    if not strata:
        return weight
    margins = [margin for stratum, shares in strata.items() for margin in _margins(tensor, stratum, shares, used, name)]
    others = [_outside(tensor, stratum, shares) for stratum, shares in strata.items()]
    for outside in others:
        weight[outside] = 0.0
    for _ in range(_ROUNDS):
        for mask, share in margins:
            now = weight[mask].sum()
            if now == 0 and share > 0:
                raise RiskError(f"{name}.strata: no samples are left once all shares are to hold together")
            weight[mask] *= share / now if now > 0 else 0.0
        if max(abs(weight[mask].sum() - share) for mask, share in margins) < _CLOSE:
            return weight
    raise RiskError(f"{name}.strata: there are no sample weights that give all strata these shares together")


def _margins(
    tensor: RiskTensor, stratum: str, shares: Mapping[str, float], used: Flags, name: str
) -> list[tuple[Flags, float]]:
    if stratum not in tensor.all_strata:
        raise RiskError(
            f"{name}.strata: the samples have no stratum {stratum!r}; {did_you_mean(stratum, tensor.all_strata)}"
        )
    column = tensor.all_strata[stratum]
    found = []
    for value, share in shares.items():
        mask = (column == value) & used
        if share > 0 and not (mask & (tensor.weight > 0)).any():
            known = sorted(set(column[used].tolist()) - {""})
            raise RiskError(
                f"{name}.strata.{stratum}.{value}: has the share {share:g}, but none of "
                f"{counted(int(used.sum()), 'sample')}; {did_you_mean(value, known)}"
            )
        found.append((mask, share))
    return found


def _outside(tensor: RiskTensor, stratum: str, shares: Mapping[str, float]) -> Flags:
    """Samples whose value has no share."""
    return ~np.isin(tensor.all_strata[stratum], list(shares))


def _dummies(tensor: RiskTensor, strata: Mapping[str, Mapping[str, float]], columns: Flags) -> Floats:
    """One column for each value of each stratum, (n, values)."""
    rows = [tensor.all_strata[stratum][columns] == value for stratum, shares in strata.items() for value in shares]
    return np.column_stack(rows).astype(np.float64)


def _explained(influence: Floats, weight: Floats, dummies: Floats) -> Floats:
    """The part of the influences that the strata explain: a regression with the sample weights."""
    normal = dummies.T @ (weight[:, None] * dummies)
    coefficients = np.linalg.pinv(normal, rcond=1e-12) @ (dummies.T @ influence.T)
    return np.asarray(weight * (dummies @ coefficients).T)


def _leverage(weight: Floats, dummies: Floats) -> Floats:
    """Of each sample on what the strata say of it: the diagonal of that regression's projection."""
    inverse = np.linalg.pinv(dummies.T @ (weight[:, None] * dummies), rcond=1e-12)
    return np.asarray(np.clip(weight * ((dummies @ inverse) * dummies).sum(axis=1), 0.0, 1.0))
