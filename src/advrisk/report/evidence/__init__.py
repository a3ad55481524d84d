"""Evidence packs: the index that says which numbers of a run speak to which clauses of regulation."""
