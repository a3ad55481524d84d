"""What `--target` and `--max-passes` leave to be said: whether targets are met, and that a run stopped early."""

from collections.abc import Sequence

from advrisk.ledger import Ledger
from advrisk.ledger.stopping import Look, read_stopping
from advrisk.render.terminal import Terminal, indented
from advrisk.study import parse_targets


def targets_met(given: Sequence[str] | None, looks: Sequence[Look]) -> bool:
    """Whether the last look at each target that was given saw that it is met, for the exit code of `advrisk run`."""
    met = {look.target: look.met for look in looks}
    return all(met.get(target.text, False) for target in parse_targets(given))


def tell_stopped(words: str) -> None:
    """Why a run stopped early and what looks saw, beside what is printed for machines."""
    if words:
        indented(Terminal(stderr=True), words, by=0)


def hint_at_rest(ledger: Ledger) -> None:
    """Rows are told as they are, also those beyond where a run rests: whoever counts them should know."""
    found = read_stopping(ledger.path.parent)
    if found is not None and found.rests:
        tell_stopped(
            f"advrisk: this run stopped early, after {found.n_samples_run:,} of {found.n_samples:,} samples, which is "
            "all that `advrisk show` and the report count; here are all rows that the ledger holds"
        )
