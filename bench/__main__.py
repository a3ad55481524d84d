"""Run every benchmark, or those named: `python -m bench ledger passes`."""

import importlib
import sys

# Not among them, as they take longer: `autoattack`, `strength` (half an hour each), `hopskipjump`, `features`,
# `labelling`, `fitting`, `detection_coverage`, `indicator_coverage`, `survival_coverage`, `certificate_validity`,
# `ledger_size`, `looks`, and `coverage` (more than an hour).
ALL = (
    *("startup", "ledger", "passes", "attacks", "distances", "workers", "scaling"),
    *("damage", "detection", "corruptions", "indicators", "survival", "certificate", "search", "budget"),
)

for name in sys.argv[1:] or ALL:
    module = importlib.import_module(f"bench.{name}")
    print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
    module.main()
