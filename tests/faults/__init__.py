"""Faults, injected at random moments of a small study; after each the finished ledger must be that of a run without."""
