"""Whether what `--target` asked for is known, for the exit code of `advrisk run`."""

from collections.abc import Sequence

from advrisk.ledger.stopping import Look
from advrisk.study import parse_targets


def targets_met(given: Sequence[str] | None, looks: Sequence[Look]) -> bool:
    """Whether the last look at each target that was given saw that it is met."""
    met = {look.target: look.met for look in looks}
    return all(met.get(target.text, False) for target in parse_targets(given))
