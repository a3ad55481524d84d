"""How likely damage is and which model has the least, from the ledger; with a detector or people in front, too."""
