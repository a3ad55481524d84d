"""Benchmarks: ratios measured side by side in one run, because machines are noisy. `make bench` runs all."""
