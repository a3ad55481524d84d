"""The example of two Gaussians runs, is the same each time, and shows what the docs say it shows."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from studies import two_gaussians
from studies.plane import plane
from studies.two_gaussians import MULTI, TESTED, measured
from studies.two_gaussians_example import EPS, LEARNED, MEANS, Example, drawn, example


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return example(1, tmp_path_factory.mktemp("two-gaussians"))


def test_points_are_300_of_each_class_and_70_percent_are_for_training() -> None:
    points = drawn(3)
    for label, mean in enumerate(MEANS):
        mine = points.y == label
        assert (mine.sum(), (mine & points.train).sum()) == (300, 210)
        assert points.x[mine].mean(0) == pytest.approx(mean, abs=0.25)  # more than four standard errors
        assert np.cov(points.x[mine].T) == pytest.approx(np.eye(2), abs=0.35)
    assert not np.array_equal(points.x, drawn(4).x)


def test_attacks_stay_within_their_size(found: Example) -> None:
    for kind, eps in EPS.items():
        sizes = found.run.query(
            "SELECT max(d_linf) AS d FROM outcomes WHERE objective = $kind AND outcome = 'success'", {"kind": kind}
        )["d"].to_pylist()
        assert 0.8 * eps < sizes[0] <= eps * (1 + 1e-6)


def test_scores_are_those_of_the_detectors(found: Example) -> None:
    x = found.points.x[~found.points.train]
    for kind, detector in found.detectors.items():
        assert found.clean[kind] == pytest.approx(detector.score(x))
        for place, name in enumerate(EPS):
            won = found.success[place]
            assert won.sum() == len(found.adversarial[name])
            expected = np.sort(detector.score(found.adversarial[name]))
            assert np.sort(found.attacked[kind][place, won]) == pytest.approx(expected)
            assert np.isnan(found.attacked[kind][place, ~won]).all()


def test_the_worst_case_is_the_least_score_of_each_broken_point(found: Example) -> None:
    for kind in LEARNED:
        scores = np.where(found.success, found.attacked[kind], np.inf).min(0)
        least = scores[found.success.any(0)]
        sides = np.repeat([0, 1], [len(found.clean[kind]), len(least)])
        result = measured(found, kind, MULTI)
        assert result.auroc.value == pytest.approx(roc_auc_score(sides, [*found.clean[kind], *least]))
        assert result.seen.value == pytest.approx((least > 0).mean())


def test_on_points_that_both_broke_the_worst_case_is_below_either_attack(found: Example) -> None:
    for kind in LEARNED:
        *single, multi = (measured(found, kind, against, common=True).auroc.value for against in TESTED)
        assert multi < min(single)


def test_a_detector_falls_where_it_meets_what_it_did_not_learn(found: Example) -> None:
    seen = {(kind, against): measured(found, kind, against).seen.value for kind in LEARNED for against in TESTED}
    auroc = {(kind, against): measured(found, kind, against).auroc.value for kind in LEARNED for against in TESTED}
    assert seen["ace", "gini"] < seen["gini", "gini"]
    assert seen["gini", "ace"] < seen["ace", "ace"]
    assert seen["gini", "ace"] < seen["gini", "gini"] - 0.2
    assert auroc["ace", "gini"] < auroc["gini", "gini"] - 0.05
    assert auroc["gini", "ace"] < auroc["gini", "gini"] - 0.1
    assert seen["ace", MULTI] < min(seen["ace", kind] for kind in EPS)


def test_it_prints_the_same_tables_again_and_writes_them_into_a_page(
    found: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- two-gaussians -->\n<!-- /two-gaussians -->\nAfter.\n")
    assert two_gaussians.main(["--seed", "1", "--draws", "2", "--page", str(page)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("\n".join(two_gaussians.lines_of(found)))
    assert "of 2 draws" in said
    tables = said.removesuffix(f"\nwrote {page}\n")
    assert f"<!-- two-gaussians -->\n```text\n{tables}\n```\n<!-- /two-gaussians -->" in page.read_text()


def test_shaded_is_what_a_detector_takes_for_an_attack(found: Example) -> None:
    traces = plane(found)["data"]
    regions = [trace for trace in traces if trace["type"] == "heatmap"]
    for region, detector in zip(regions, found.detectors.values(), strict=True):
        place = np.array([[region["x"][70], region["y"][50]]], dtype=np.float32)
        assert region["z"][50][70] == int(detector.score(place)[0] > 0)
        assert 0 < np.mean(region["z"]) < 1
    ace = next(trace for trace in traces if trace.get("name") == "ACE, eps 1.2")
    assert ace["x"] == found.adversarial["ace"][:, 0].tolist()


def test_a_figure_without_a_browser_is_refused(
    found: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(two_gaussians, "example", lambda *_: found)
    assert two_gaussians.main(["--figure", str(tmp_path / "drawn.png")]) == 2
    assert "chromium" in capsys.readouterr().err
    assert not (tmp_path / "drawn.png").exists()
