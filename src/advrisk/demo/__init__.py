"""The demo's study, recipe, starter and weights: files, no code."""
