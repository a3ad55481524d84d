"""Evaluation of a scenario on a tensor: the mean of every leaf, and the influence of each sample.

Every result of a scenario is a linear combination of leaves, so estimates and intervals need only the leaves' means and
two small matrices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import counted, did_you_mean
from advrisk.risk.indicators.matching import MatchedScenario
from advrisk.risk.indicators.tensor import Flags, Floats, Integers, RiskTensor

ALONE = 1 - 1e-9  # with a higher leverage, the mean is the value of this sample alone
_ROUNDS, _CLOSE = 1000, 1e-10  # limits of raking


@dataclass(frozen=True, eq=False)
class LeafValues:
    """Loss of each sample under each leaf, (leaves, samples), for all samples of the tensor."""

    values: Floats
    members: Flags  # where the leaf applies
    complete: Flags  # (samples,): every leaf that applies has a value, and the weight is not 0
    n_unfinished: int
    n_without_verdict: int


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over some samples, by leaf or by group."""

    parts: Floats  # (leaves,): their contribution to the mean
    share: Floats  # (groups,): their total weight
    covariance: Floats  # (leaves, leaves)
    overlap: Floats  # (groups, groups): products of shares; 1/n for a group with itself, if n samples weigh the same
    free: Floats  # (groups, groups): the same, reduced by leverage
    alone: Floats  # (groups, groups): the same for samples that are the only ones of their kind


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Means of leaves, and the influence of each sample on them."""

    mean: Floats  # (leaves,); nan where a leaf has no samples
    parts: Floats  # (leaves, n): contribution of each sample to the mean
    influence: Floats  # (leaves, n): their sums of squares and products are variances and covariances
    share: Floats  # (groups, n): weight of each sample in the mean of a leaf of that group; sums to 1
    leverage: Floats  # (groups, n): leverage of each sample on the mean; 1/n with equal weights
    group: Integers  # (leaves,): leaves with the same samples are one group
    n: Integers  # (leaves,) samples
    bounds: tuple[float, float]  # of the loss

    @cached_property
    def limit_cache(self) -> dict[tuple[bytes, float, bool], tuple[float, float]]:
        """Computed limits, which a branch and its contribution share up to a factor."""
        return {}

    @cached_property
    def _sums(self) -> dict[bytes, Sums]:
        return {}

    def sums(self, columns: Flags | None) -> Sums:
        """Cached sums over these samples, or all."""
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
        """Influences before the leverage correction, (leaves, n), with sum 0."""
        return np.asarray(self.influence * np.sqrt(np.maximum(1 - self.leverage, 0.0))[self.group])

    @cached_property
    def of_group(self) -> Floats:
        """Indicator of the group of each leaf, (leaves, groups)."""
        return np.asarray(self.group[:, None] == np.arange(len(self.share)), dtype=np.float64)

    def n_under(self, coefficients: Floats) -> int:
        """Number of samples with weight under these leaf weights."""
        groups = np.unique(self.group[coefficients > 0])
        return int((self.share[groups] > 0).any(axis=0).sum())


def leaf_values(tensor: RiskTensor, matched: MatchedScenario, loss: str) -> LeafValues:
    """Aggregate the arms of each leaf, sample by sample."""
    _refuse_unasked(tensor, matched, loss)
    of_arm = tensor.by_arm(loss)
    values = np.empty((len(matched.leaves), len(tensor.samples)))
    for row, leaf in enumerate(matched.leaves):
        arms = list(leaf.arms)
        if leaf.aggregate == "max":
            values[row] = tensor.worst(loss, arms)
        else:
            values[row] = of_arm.mean[arms].sum(axis=0) / len(arms)
    members = np.stack(matched.members)
    missing = np.isnan(values) & members
    weighs = tensor.weight > 0
    left_out = missing.any(axis=0) & weighs
    arms = sorted({arm for leaf in matched.leaves for arm in leaf.arms})
    failed = left_out & tensor.failed[:, arms].any(axis=1)
    return LeafValues(values, members, weighs & ~left_out, int((left_out & ~failed).sum()), int(failed.sum()))


def _refuse_unasked(tensor: RiskTensor, matched: MatchedScenario, loss: str) -> None:
    """Refuse attacks that skipped samples which this loss needs, rather than count these as unharmed."""
    used = {tensor.arms[arm] for leaf in matched.leaves for arm in leaf.arms}
    if missing := sorted(used & set(tensor.unasked.get(loss, ()))):
        raise RiskError(
            f"the loss {loss} compares answers with the clean ones, but {missing[0]} did not attack samples that "
            "were wrong already, as the run has `success: label` or a target; run the study with `success: prediction`"
        )


def evaluate(
    tensor: RiskTensor,
    matched: MatchedScenario,
    loss: str,
    of_leaf: LeafValues,
    *,
    used: Flags,
    domain: Flags | None = None,
) -> Evaluated:
    """Compute means over the used samples, with sample weights and the scenario's shares of strata.

    With weights w_i and the samples S of a leaf, V = sum_S w_i v_i / sum_S w_i, and the influence of sample i is
    w_i (v_i - V) / sum_S w_i. If the scenario states shares of strata, weights are raked to them, and the part of the
    influences that the strata explain is removed, since it no longer varies. The leverage h_i draws V towards v_i, so
    the influence is divided by sqrt(1 - h_i) (MacKinnon and White, 1985). With n equal samples, that is n/(n-1) for the
    variance, in every group separately. `domain` restricts the means to some samples.
    """
    strata = matched.scenario.strata
    weight = raked(tensor, strata, used, matched.scenario.name)
    columns = used & (weight > 0)
    inside = columns if domain is None else columns & domain
    if not strata:
        columns = inside
    of_column = inside[columns]
    weight = weight[columns]
    members = of_leaf.members[:, columns] & of_column
    wheres = list(dict.fromkeys(leaf.where for leaf in matched.leaves))
    group = np.array([wheres.index(leaf.where) for leaf in matched.leaves])
    groups = np.stack([members[int(np.argmax(group == number))] for number in range(len(wheres))])
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
    """Sample weights raked to the stated shares of strata; 0 for unused samples.

    One stratum needs a single step; several are adjusted in turn until all match.
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
    margins = []
    for value, share in shares.items():
        mask = (column == value) & used
        if share > 0 and not (mask & (tensor.weight > 0)).any():
            values = sorted(set(column[used].tolist()) - {""})
            raise RiskError(
                f"{name}.strata.{stratum}.{value}: has the share {share:g}, but none of "
                f"{counted(int(used.sum()), 'sample')}; {did_you_mean(value, values)}"
            )
        margins.append((mask, share))
    return margins


def _outside(tensor: RiskTensor, stratum: str, shares: Mapping[str, float]) -> Flags:
    """Samples whose value of a stratum has no share."""
    return ~np.isin(tensor.all_strata[stratum], list(shares))


def _dummies(tensor: RiskTensor, strata: Mapping[str, Mapping[str, float]], columns: Flags) -> Floats:
    """Indicator columns for each value of each stratum, (n, values)."""
    rows = [tensor.all_strata[stratum][columns] == value for stratum, shares in strata.items() for value in shares]
    return np.column_stack(rows).astype(np.float64)


def _explained(influence: Floats, weight: Floats, dummies: Floats) -> Floats:
    """The part of the influences that the strata explain: a regression with the sample weights."""
    normal = dummies.T @ (weight[:, None] * dummies)
    coefficients = np.linalg.pinv(normal, rcond=1e-12) @ (dummies.T @ influence.T)
    return np.asarray(weight * (dummies @ coefficients).T)


def _leverage(weight: Floats, dummies: Floats) -> Floats:
    """Leverage of each sample in the regression on strata: the diagonal of its projection."""
    inverse = np.linalg.pinv(dummies.T @ (weight[:, None] * dummies), rcond=1e-12)
    return np.asarray(np.clip(weight * ((dummies @ inverse) * dummies).sum(axis=1), 0.0, 1.0))
