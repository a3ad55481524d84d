"""What is to be run for scenarios that ask for more than a run holds."""

from advrisk.core.names import counted
from advrisk.ledger import Ledger
from advrisk.risk.indicators import MissingArmsError


def what_to_run(error: MissingArmsError, ledger: Ledger) -> str:
    """Which cells a scenario still needs, and how to have them."""
    from advrisk.parts import REGISTRIES
    from advrisk.plan import entry_for

    found = [entry for name in error.names if (entry := entry_for(name, REGISTRIES))]
    entries = f": {' and '.join(entry for entry, _ in found)}" if found else ""
    command = f"`advrisk run STUDY.yaml --out {ledger.path.parent}`"
    told = f"add them to `arms` of the study{entries}; then {command} runs what is new, and nothing else"
    return f"Nothing of this was run; {told}{_cells(sum(n for _, n in found), ledger)}"


def _cells(n_arms: int, ledger: Ledger) -> str:
    """`: 24 cells (3 arms × 4 models × 2 shards)`; nothing where the arms are not known."""
    counts = ledger.query(
        "SELECT (SELECT count(DISTINCT model) FROM arms WHERE origin = 'study') AS n_models, "
        "(SELECT count(DISTINCT shard) FROM samples WHERE split = 'evaluate') AS n_shards"
    ).to_pylist()[0]
    n_models, n_shards = counts["n_models"], counts["n_shards"]
    if not n_arms * n_models * n_shards:
        return ""
    factors = " × ".join([counted(n_arms, "arm"), counted(n_models, "model"), counted(n_shards, "shard")])
    return f": {counted(n_arms * n_models * n_shards, 'cell')} ({factors})"
