"""The shards of the long tests, by file. A shard takes at most half an hour on two cores: `make slow-NAME`.

A test checks that every file with a test that is marked `slow` is in exactly one of them.
"""

from collections.abc import Mapping

SLOW: Mapping[str, tuple[str, ...]] = {
    "damage": (
        "tests/validity/test_certificate_validity.py",
        "tests/validity/test_damage_coverage.py",
        "tests/validity/test_detection_coverage.py",
        "tests/validity/test_gate_validity.py",
        "tests/validity/test_looks_validity.py",
        "tests/unit/risk/test_paired_share.py",
    ),
    "evasion": (
        "tests/validity/test_evasion_coverage.py",
        "tests/unit/risk/evasion/test_crossed.py",
        "tests/unit/risk/evasion/test_effects.py",
    ),
    "indicators": ("tests/validity/test_indicator_coverage.py",),
    "survival": ("tests/validity/test_survival_coverage.py", "tests/golden/test_survival.py"),
    "attacks": (
        "tests/conformance/test_attacks.py",
        "tests/conformance/test_peers.py",
        "tests/unit/run/search/test_loop.py",
        "tests/unit/run/search/test_surrogate.py",
    ),
    "runs": (
        "tests/e2e/test_adaptive.py",
        "tests/e2e/test_detection.py",
        "tests/e2e/test_faults.py",
        "tests/e2e/test_label.py",
        "tests/e2e/test_random_zoo.py",
        "tests/e2e/test_ray.py",
        "tests/e2e/test_report_page.py",
        "tests/e2e/test_same_rows.py",
        "tests/e2e/test_search.py",
        "tests/e2e/test_targets.py",
        "tests/e2e/test_wheel.py",
        "tests/unit/ledger/maintenance/test_compacting.py",
        "tests/unit/ledger/sync/test_remote.py",
        "tests/unit/studies/test_report_picture.py",
        "tests/unit/studies/test_zoo.py",
    ),
    "pages": ("tests/unit/docs/test_run_pages.py",),
    "faults": ("tests/faults/test_faults.py",),
    "fuzz": ("tests/fuzz/test_fuzz.py",),
}


def shard_of(path: str) -> str | None:
    """The shard of a file, relative to the project's folder; conftest files belong to none and are always read."""
    return next((name for name, files in SLOW.items() if path in files), None)
