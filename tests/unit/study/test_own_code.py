"""Code that a study names: its source says whether it may register parts."""

from pathlib import Path

import pytest

from advrisk.study.own_code import may_register_parts

NETS = {"plain": {"source": "torch", "factory": "mynets:Plain", "weights": "plain.pt"}}


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"mynets": "import torch\nfrom torch import nn\n"}, False),
        ({"mynets": "from advrisk.parts.attacks import attacks\n"}, True),
        ({"mynets": "import advrisk\n"}, True),
        ({"mynets": "import blocks\n", "blocks": "from advrisk import Study\n"}, True),
        ({"mynets": "from parts import blocks\n", "parts____init__": "", "parts__blocks": "import advrisk"}, True),
        ({"mynets": "import blocks\n", "blocks": "import mynets\n"}, False),
        ({"mynets": "import torch, numpy, json, no_such_module\n"}, False),
        ({"mynets": "def this is no Python"}, True),
        ({}, False),
    ],
)
def test_a_module_that_imports_advrisk_may_register_parts(
    tmp_path: Path, files: dict[str, str], expected: bool
) -> None:
    assert may_register_parts(NETS, written(tmp_path, **files)) is expected


def test_the_source_is_read_and_not_run(tmp_path: Path) -> None:
    written(tmp_path, mynets="raise SystemExit(3)\nimport advrisk\n")
    assert may_register_parts(NETS, tmp_path)


def test_built_in_factories_and_other_texts_name_no_code(tmp_path: Path) -> None:
    assert not may_register_parts([{"factory": "advrisk.parts.models.small:SmallCnn"}, "59:59", "s3://x:y"], tmp_path)
