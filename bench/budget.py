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
from advrisk.api.study import interim_analysis
from advrisk.assess.interim import shard_order
from advrisk.ledger import Ledger
from advrisk.ledger.stopping import Stopping
from advrisk.risk.interim import interim_schedule
from advrisk.run.interim import analyse_targets
from advrisk.study import parse_target
from bench.cells import here

FAR, NEAR = "broken.trades at 0.1 <= 15 %", "broken.noise-augmented at 0.1 <= 31 %"
NEAREST = "broken.noise-augmented at 0.1 <= 30 %"
TARGETS = (
    *(("decided", ()), ("gate", (FAR,)), ("gate", (NEAR,)), ("gate", (FAR, NEAR)), ("gate", (NEAREST,))),
    *((text, ()) for text in ("damage ±0.05", "damage ±0.03", "damage ±0.02")),
    *((text, ()) for text in ("broken at 0.1 ±0.1", "broken at 0.1 ±0.06", "broken.trades at 0.1 ±0.03")),
)
TINY_ARM = {"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.3]}
_PASSES = """
    SELECT coalesce(sum(n_forward + n_backward + n_judge), 0)::BIGINT AS n FROM outcomes
    WHERE sample IN (SELECT sample FROM samples WHERE split = 'evaluate')
"""


def main(*, tiny: bool = False) -> None:
    """Run, replay every target, and run one; `tiny` leaves two models, one attack and eight samples."""
    with tempfile.TemporaryDirectory() as place, as_file(files("advrisk.demo")) as demo:
        content = yaml.safe_load((demo / "study.yaml").read_text())
        content["data"]["evaluate"], modules = 500, None
        if tiny:
            models, modules = here({name: content["models"][name] for name in ("noise-augmented", "trades")})
            content |= {"models": models, "arms": [TINY_ARM], "shard": 4}
            content["data"]["evaluate"] = 8
        study = Study.from_dict(content)
        whole = study.run(Path(place) / "whole", modules=modules)
        n_all = _passes(whole.ledger)
        print(
            f"{'target':28}{'samples':>12}{'passes':>12}  full / passes  what is known then; the full grid's decision"
        )
        for text, gate in TARGETS:
            _replay(whole, text, gate, n_all)
        early = study.run(Path(place) / "early", target="decided", modules=modules)
        same = early.damage().least_bad == whole.damage().least_bad
        n_early, n_samples = _passes(early.ledger), early.status().n_samples_run
        print(f"run for `decided`: {n_samples} samples, {n_early:,} of {n_all:,} passes; the same decision: {same}")


def _replay(run: Run, text: str, gate: Sequence[str], n_all: int) -> None:
    """Analyse as a run would: at the same places, with the same shares; then everything, at the study's level."""
    assert run.study is not None
    study = run.study.model_copy(update={"gate": list(gate)})
    target, analyse = parse_target(text), interim_analysis(study, run.folder)
    rows = run.query("SELECT shard, count(*) AS n FROM samples WHERE split = 'evaluate' GROUP BY ALL").to_pylist()
    sizes = {row["shard"]: row["n"] for row in rows}
    order = shard_order(sizes, (), seed=run.seed)
    places = interim_schedule([sizes[name] for name in order])
    state = Stopping({}, order, sum(sizes.values()), len(places))
    for place in places:
        (seen,) = analyse_targets(state, place, [target], folder=run.folder, sizes=sizes, analyse=analyse)
        state = state.with_looks(seen)
        if seen.met:
            break
    final = analyse(target, run.ledger, 1.0)
    n_passes = _passes(Ledger.open(run.folder).of_shards(order[: seen.n_shards]))
    of = f"{seen.n_samples} of {state.n_samples}"
    decision = f"; {'the same' if final.said == seen.said else final.said}" if target.decides else ""
    print(f"{text:28}{of:>12}{n_passes:>12,}{n_all / n_passes:>14.2f}x  {seen.said}{decision}")


def _passes(ledger: Ledger) -> int:
    return int(ledger.query(_PASSES)["n"][0].as_py())


if __name__ == "__main__":
    main()
