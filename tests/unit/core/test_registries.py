"""All registries together."""

from dataclasses import fields
from typing import Any

import pytest

from advrisk.core.errors import RegistryError
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry


@pytest.fixture
def registries() -> Registries:
    made: dict[str, Any] = {field.name: Registry(field.name) for field in fields(Registries)}
    return Registries(**made)


def test_a_registry_is_found_by_its_kind(registries: Registries) -> None:
    for field in fields(Registries):
        assert registries.of_kind(field.name) is getattr(registries, field.name)


@pytest.mark.parametrize(("kind", "answer"), [("atacks", "did you mean 'attacks'?"), ("of_kind", "known: attacks, ")])
def test_a_kind_that_does_not_exist_is_refused(registries: Registries, kind: str, answer: str) -> None:
    with pytest.raises(RegistryError) as caught:
        registries.of_kind(kind)
    assert repr(kind) in str(caught.value)
    assert answer in str(caught.value)
