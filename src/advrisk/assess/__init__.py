"""One package for each question: it reads the ledger, calls `risk`, and yields sections for people and numbers for
machines."""
