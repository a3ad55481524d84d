"""Is a model the one whose rows the ledger holds? Digests, source files, and answers to the study's own samples."""
