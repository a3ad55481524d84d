"""Pages over a run: people are shown pictures and say whether these were changed."""
