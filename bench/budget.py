"""Passes that a run saves when it stops once it knows enough, against the full grid and with the same decision.

Run: python -m bench budget. The study is that of `advrisk demo`: four models, 500 samples in shards of 64. The full
grid is run once; rows do not depend on how many others there are, so where each target would have stopped is read from
its ledger. One target is run in a folder of its own, to see that it stops there and holds the same rows.
"""

import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import yaml

from advrisk.api import Run, Study
from advrisk.api.targets import looker
from advrisk.core.seeds import key
from advrisk.ledger import Ledger
from advrisk.risk.looks import look_places
from advrisk.study import parse_target

FAR, NEAR = "broken.trades at 0.1 <= 15 %", "broken.noise-augmented at 0.1 <= 30 %"
TARGETS = (
    *(("decided", ()), ("gate", (FAR,)), ("gate", (NEAR,)), ("gate", (FAR, NEAR))),
    *((text, ()) for text in ("damage ±0.05", "damage ±0.03", "damage ±0.02")),
    *((text, ()) for text in ("broken at 0.1 ±0.1", "broken at 0.1 ±0.06", "broken.trades at 0.1 ±0.03")),
)
_PASSES = """
    SELECT coalesce(sum(n_forward + n_backward + n_judge), 0)::BIGINT AS n FROM outcomes
    WHERE sample IN (SELECT sample FROM samples WHERE split = 'evaluate')
"""


def main(evaluate: int = 500) -> None:
    """Run, replay every target, and run one."""
    with tempfile.TemporaryDirectory() as place, as_file(files("advrisk.demo")) as demo:
        content = yaml.safe_load((demo / "study.yaml").read_text())
        content["data"]["evaluate"] = evaluate
        study = Study.from_dict(content)
        whole = study.run(Path(place) / "whole")
        n_all = _passes(whole.ledger)
        print(
            f"{'target':28}{'samples':>12}{'passes':>12}  full / passes  what is known then; the full grid's decision"
        )
        for text, gate in TARGETS:
            _replay(whole, text, gate, n_all)
        early = study.run(Path(place) / "early", target="decided")
        same = early.damage().ship == whole.damage().ship
        n_early, n_samples = _passes(early.ledger), early.status().n_samples
        print(f"run for `decided`: {n_samples} samples, {n_early:,} of {n_all:,} passes; the same decision: {same}")


def _replay(run: Run, text: str, gate: Sequence[str], n_all: int) -> None:
    """Look as a run would."""
    assert run.study is not None
    study = run.study.model_copy(update={"gate": list(gate)})
    target, look = parse_target(text), looker(study, run.folder)
    rows = run.query("SELECT shard, count(*) AS n FROM samples WHERE split = 'evaluate' GROUP BY ALL").to_pylist()
    rows.sort(key=lambda row: key("round", run.seed, row["shard"]))
    places = look_places([row["n"] for row in rows])
    for number in places:
        ledger = Ledger.open(run.folder).of_shards(row["shard"] for row in rows[:number])
        seen = look(target, ledger, 1 / len(places) if target.decides else 1.0)
        if seen.met or number == places[-1]:
            break
    final = look(target, run.ledger, 1.0)
    n, n_passes = sum(row["n"] for row in rows[:number]), _passes(ledger)
    of = f"{n} of {sum(row['n'] for row in rows)}"
    decision = f"; {'the same' if final.said == seen.said else final.said}" if target.decides else ""
    print(f"{text:28}{of:>12}{n_passes:>12,}{n_all / n_passes:>14.2f}x  {seen.said}{decision}")


def _passes(ledger: Ledger) -> int:
    return int(ledger.query(_PASSES)["n"][0].as_py())


if __name__ == "__main__":
    main()
