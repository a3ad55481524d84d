"""How long models survive, and what breaking them costs beside training."""
