"""Arrays in, estimates out: the numeric core. It knows no ledger, no model and no torch."""
