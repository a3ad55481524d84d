"""Every package that an extra installs is named with that extra where it is missing."""

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from advrisk.core.errors import AdvriskError, ExtraError
from advrisk.core.extras import EXTRAS, extras_named, needs_extra

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = {"test", "dev", "docs", "audit", "bench"}
OPTIONAL = {extra: wanted for extra, wanted in PROJECT["optional-dependencies"].items() if extra not in FOR_DEVELOPERS}


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower()


def test_the_table_holds_what_pyproject_installs_and_nothing_else() -> None:
    installed = packages_distributions()
    listed = {(extra, name.lower()) for package, extra in EXTRAS.items() for name in installed.get(package, [package])}
    wanted = {
        (extra, name_of(one))
        for extra, requirements in OPTIONAL.items()
        for one in requirements
        if name_of(one) != "advrisk"
    }
    same = {"mlflow-skinny": "mlflow", "psycopg-binary": "psycopg"}
    assert {(extra, same.get(name, name)) for extra, name in listed} == {
        (extra, same.get(name, name)) for extra, name in wanted
    }


def test_all_brings_every_other_extra() -> None:
    (everything,) = OPTIONAL["all"]
    assert set(re.findall(r"[\w-]+", everything)[1:]) == OPTIONAL.keys() - {"all"}


def test_a_plain_install_brings_no_package_of_an_extra() -> None:
    plain = set(map(name_of, PROJECT["dependencies"]))
    assert not plain & {"torch", "botorch", "scikit-learn", "fastapi", "uvicorn", "sqlalchemy"}
    assert not plain & {name_of(one) for wanted in OPTIONAL.values() for one in wanted}


def test_a_missing_package_is_named_with_its_extra_by_the_outermost_command() -> None:
    with pytest.raises(ExtraError) as raised, extras_named("advrisk run"), extras_named("Study.run"):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    assert str(raised.value) == 'advrisk run needs torch: pip install "advrisk[run]"'
    assert isinstance(raised.value, AdvriskError)
    assert raised.value.name == "torch"


@pytest.mark.parametrize("name", ["timm", "torch.no_such_part", None])
def test_other_missing_modules_stay_what_they_are(name: str | None) -> None:
    with pytest.raises(ModuleNotFoundError) as raised, extras_named("advrisk run"):
        raise ModuleNotFoundError("no such module", name=name)
    assert not isinstance(raised.value, ExtraError)


def test_a_decorated_function_names_itself() -> None:
    @extras_named("train")
    def train() -> None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")

    for _ in range(2):
        with pytest.raises(ExtraError, match=r'^train needs sklearn: pip install "advrisk\[run\]"$'):
            train()


def test_an_extra_may_be_named_for_several_packages() -> None:
    assert (
        needs_extra("logging", "more packages", "mlflow")
        == 'logging needs more packages: pip install "advrisk[mlflow]"'
    )
