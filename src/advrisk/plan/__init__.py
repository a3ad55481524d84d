"""Study + registries -> cells. Pure functions: no file, no torch, no clock."""

from advrisk.plan.arms import entry_for, expand_arms
from advrisk.plan.card import ModelCard
from advrisk.plan.cells import Cell, Plan, example_cell, make_plan, outline_plan
from advrisk.plan.certification import calibrate_plan
from advrisk.plan.certified import certified_arms
from advrisk.plan.defences import DefendedModel, expand_defences, model_names, tags_of
from advrisk.plan.detectors import ConfiguredDetector, detector_id, expand_detectors, names_of
from advrisk.plan.measures import ConfiguredMeasure, expand_measures
from advrisk.plan.samples import (
    RecordedSample,
    Shard,
    choose_splits,
    cut_shards,
    dropped_from,
    in_interim_order,
    refuse_moved,
    samples_left,
)
from advrisk.plan.search import Search, SearchAxis, Setting, expand_searches, search_recipe
from advrisk.plan.sizes import refuse_sizes, size_doubts

__all__ = [
    "Cell",
    "ConfiguredDetector",
    "ConfiguredMeasure",
    "DefendedModel",
    "ModelCard",
    "Plan",
    "RecordedSample",
    "Search",
    "SearchAxis",
    "Setting",
    "Shard",
    "calibrate_plan",
    "certified_arms",
    "choose_splits",
    "cut_shards",
    "detector_id",
    "dropped_from",
    "entry_for",
    "example_cell",
    "expand_arms",
    "expand_defences",
    "expand_detectors",
    "expand_measures",
    "expand_searches",
    "in_interim_order",
    "make_plan",
    "model_names",
    "names_of",
    "outline_plan",
    "refuse_moved",
    "refuse_sizes",
    "samples_left",
    "search_recipe",
    "size_doubts",
    "tags_of",
]
