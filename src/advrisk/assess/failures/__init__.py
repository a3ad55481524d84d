"""The branches of a scenario that hurt a model most, and the samples that they hurt."""
