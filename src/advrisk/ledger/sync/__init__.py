"""Runs on object storage: what is pulled to a local copy, and pushed from one. Knows nothing of what rows mean."""
