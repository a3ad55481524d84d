"""Names of parts as they are read from their sources, held against the registries."""

import subprocess
import sys
from pathlib import Path

import pytest

from advrisk.core.errors import StudyError
from advrisk.parts import REGISTRIES
from advrisk.risk.losses import losses
from advrisk.study.source import Source
from advrisk.study.spec import study_from
from advrisk.study.vocabulary import parameter_names, part_names, unknown_names

KINDS = [*vars(REGISTRIES), "losses"]


def _registry(kind):
    return losses if kind == "losses" else getattr(REGISTRIES, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_built_in_part_is_read_with_exactly_its_parameters(kind):
    built_in = {part.name: part for part in _registry(kind) if part.function.__module__.startswith("advrisk.")}
    assert part_names(kind).keys() == built_in.keys()
    for name, part in built_in.items():
        assert set(parameter_names(kind, name)) == set(part.parameters), name


STUDY = {
    "name": "typos",
    "data": {"source": "mnist-5k", "evaluate": 10},
    "models": {"plain": {"source": "demo", "name": "plain"}},
    "arms": [{"attack": "pgd", "norm": "linf", "eps": 0.1}],
}


def _refusal(**changed):
    with pytest.raises(StudyError) as refused:
        study_from(STUDY | changed, names=unknown_names)
    return str(refused.value).splitlines()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"arms": [{"attack": "pgdd", "norm": "linf", "eps": 0.1}]}, "no attacks called 'pgdd'; did you mean 'pgd'?"),
        ({"arms": [{"attack": "pgd", "norm": "linf", "eps": 0.1, "stepz": 3}]}, "no parameter 'stepz'; did you mean"),
        ({"arms": [{"corruption": "rian", "level": 1}]}, "no corruptions called 'rian'; did you mean 'rain'?"),
        ({"arms": [{"preset": "minimal-distanc"}]}, "no presets called"),
        ({"arms": [{"attack": "pgd", "norm": "linf", "eps": 1, "objective": "acee"}]}, "no objectives called 'acee'"),
        ({"detectors": ["lidd"]}, "no detectors called 'lidd'; did you mean 'lid'?"),
        ({"detectors": [{"detector": "lid", "neighbors": 3}]}, "lid has no parameter 'neighbors'"),
        ({"defences": {"safe": {"of": "plain", "name": "jpg"}}}, "no defences called 'jpg'; did you mean 'jpeg'?"),
        ({"measures": ["clevr"]}, "no measures called 'clevr'; did you mean 'clever'?"),
        ({"losses": ["misclasified"]}, "no losses called 'misclasified'; did you mean 'misclassified'?"),
        ({"models": {"plain": {"source": "dmeo", "name": "plain"}}}, "no models called 'dmeo'"),
        ({"data": {"source": "mnist-5", "evaluate": 10}}, "no data called 'mnist-5'; did you mean 'mnist-5k'?"),
        ({"gate": ["robust_accuracy.plan at 0.1 >= 0.5"]}, "unknown model 'plan'; did you mean 'plain'?"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest_one(changed, complaint):
    (found,) = _refusal(**changed)
    assert complaint in found


def test_all_mistakes_are_reported_at_once_whatever_their_kind():
    arms = [{"attack": "pgdd", "norm": "linf", "eps": 0.1}, {"attack": "pgd", "norm": "linf", "eps": -1}]
    found = "\n".join(_refusal(arms=arms, detectors=["lidd"], sucess="label", assess={"damge": {}}))
    for part in ("arms[0]", "arms[1].eps", "detectors[0]", "sucess: unknown key", "assess.damge: unknown key"):
        assert part in found


def test_what_only_a_package_can_bring_passes(monkeypatch):
    monkeypatch.setattr("advrisk.study.vocabulary.entry_points", lambda group: ["one"])
    study_from(STUDY | {"arms": [{"attack": "brought", "norm": "linf", "eps": 0.1}]}, names=unknown_names)


def test_names_that_are_right_pass():
    arms = [
        {"attack": "transfer", "from": "plain", "arm": {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": 3}},
        {"attack": "adaptive", "norm": "linf", "eps": 0.1, "detector": "confidence"},
        {"preset": "minimal-distance", "norm": "linf"},
    ]
    assert not unknown_names(STUDY | {"arms": arms, "detectors": ["confidence"]}, Source())


def test_a_typo_is_reported_before_torch_is_imported(tmp_path):
    path = Path(tmp_path / "study.yaml")
    path.write_text(
        "name: typo\ndata: {source: mnist-5k, evaluate: 10}\nmodels: {plain: {source: demo, name: plain}}\n"
        "arms:\n  - {attack: pgdd, norm: linf, eps: 0.1}\nsucess: label\n"
    )
    code = (
        "import sys; from advrisk.cli import main\n"
        f"sys.argv = ['advrisk', 'run', {str(path)!r}]\n"
        "try: main()\n"
        "finally: print(sorted({'torch', 'numpy', 'duckdb'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"advrisk: {path}:5: arms[0]: no attacks called 'pgdd'; did you mean 'pgd'?",
        f"  {path}:6: sucess: unknown key; did you mean 'success'?",
        "[]",
    ]
