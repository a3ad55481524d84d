"""Studies of real models that do not come with advrisk, and what is read from their runs; not installed."""
