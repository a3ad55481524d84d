"""Loaders held against files that somebody damaged, or made up: a clear error or success, never anything else."""
