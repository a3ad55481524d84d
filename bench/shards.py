"""Every benchmark, in the shard that runs it. A test checks that no file of this folder is forgotten.

A shard takes at most half an hour on two cores. `python -m bench NAME …` runs benchmarks by name.
"""

from collections.abc import Mapping

SHARDS: Mapping[str, tuple[str, ...]] = {
    "engine": (
        "startup",
        "ledger",
        "passes",
        "attacks",
        "workers",
        "scaling",
        "corruptions",
        "ledger_size",
        "import_rows",
    ),
    "distances": ("distances", "walk_back", "strength", "features", "confirmation"),
    "autoattack": ("autoattack",),
    "peers": ("hopskipjump", "square"),
    "risk": (
        *(
            "damage",
            "detection",
            "indicators",
            "survival",
            "certificate",
            "search",
            "budget",
            "fitting",
            "labelling",
            "questions",
        ),
        *("paired_share", "evasion_limits", "gate_validity", "certificate_validity"),
    ),
    "validity": (
        *("looks", "rare_failures", "evasion_shape", "detection_coverage", "indicator_coverage"),
        *("survival_coverage", "coverage"),
    ),
}
SUPPORT = ("cells", "nets", "peers", "shards", "timing", "zoo")  # what benchmarks share


def benchmarks() -> tuple[str, ...]:
    """All of them, in the order in which they run."""
    return tuple(name for names in SHARDS.values() for name in names)
