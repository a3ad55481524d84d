"""A model whose answers depend on the batch is named before the run, in `status` and in the report."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from advrisk import Run, Study
from advrisk.parts.models.small import SmallCnn
from advrisk.run.progress import Progress


class Mixing(nn.Module):
    """Subtracts the mean of the batch."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            self.net = SmallCnn(size=8, width=4)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.net(x - x.mean())
        return answer


def done(folder: Path, **settings: Any) -> tuple[Run, Progress]:
    content = {
        "name": "mixing",
        "data": {"source": "digits", "evaluate": 8},
        "models": {"mixing": {"source": "object", "expect_accuracy": 0} | settings},
        "defences": {"squeezed": {"of": "mixing", "name": "feature-squeezing", "bits": 4}},
        "success": "prediction",
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    }
    told: list[Progress] = []
    run = Study.from_dict(content).run(folder, modules={"mixing": Mixing()}, on_progress=told.append)
    return run, told[0]


def test_it_is_flagged_with_its_defences_and_named(tmp_path: Path) -> None:
    run, first = done(tmp_path / "run")
    (doubt,) = [text for text in first.doubts if "batch-dependent" in text]
    assert doubt.startswith(
        "<study>: models.mixing: batch-dependent: the answer to an input depends on the others in its batch"
    )
    assert run.status().flags["batch-dependent"] == 4, "clean and attacked, with and without the defence"
    flagged = {row["model"] for row in run.flags() if row["flag"] == "batch-dependent"}
    assert flagged == {"mixing", "squeezed"}
    assert "batch-dependent" in run.report(tmp_path / "page.html").read_text()


def test_asked_one_by_one_it_is_not(tmp_path: Path) -> None:
    run, first = done(tmp_path / "run", batch=1)
    assert not any("batch-dependent" in text for text in first.doubts)
    assert "batch-dependent" not in run.status().flags
    (row,) = run.query("SELECT count(*) AS n FROM outcomes WHERE outcome = 'error'").to_pylist()
    assert row["n"] == 0
