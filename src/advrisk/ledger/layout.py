"""Names of the files that lie beside the ledger in a run's folder."""

STUDY_FILE = "study.yaml"  # the study as it was understood
EVASION_FILE = "evasion.json"  # a copy of the evasion curve that the study names
