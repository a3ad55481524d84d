"""Which model the evidence names: scenarios, damage and requirements, taken together."""
