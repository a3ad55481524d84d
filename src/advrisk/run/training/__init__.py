"""Training the models of a recipe file: `models` reads the recipe, `loop` runs the epochs."""
