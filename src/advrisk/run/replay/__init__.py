"""Replaying samples of a finished run from the stored seeds: rows that nobody's attack made are not made again."""
