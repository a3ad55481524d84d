"""How risky models are in the scenarios of a study, and what drives that."""
