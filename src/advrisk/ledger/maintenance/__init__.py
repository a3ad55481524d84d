"""Looking after ledgers: check, repair, compact, compare and merge them, and delete stored inputs."""
