"""Which attacks earn their passes, and whether one without gradients does better than those with."""
