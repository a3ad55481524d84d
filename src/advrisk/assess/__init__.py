"""From the ledger to results: one package for each question. Reads rows, calls `risk`, and says what came of it."""
