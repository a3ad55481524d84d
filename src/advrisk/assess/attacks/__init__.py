"""The usefulness of each attack, and whether one without gradients outperforms those with gradients."""
