"""Arrays in, estimates out: the numeric core. It knows no ledger, no study, no model and no torch."""
