"""Study + registries -> cells. Pure: no file, no torch, no clock."""

from advrisk.plan.arms import expand_arms
from advrisk.plan.cells import Cell, ModelCard, Plan, make_plan, outline_plan
from advrisk.plan.samples import KnownSample, Shard, choose_splits, cut_shards, refuse_moved

__all__ = [
    "Cell",
    "KnownSample",
    "ModelCard",
    "Plan",
    "Shard",
    "choose_splits",
    "cut_shards",
    "expand_arms",
    "make_plan",
    "outline_plan",
    "refuse_moved",
]
