"""gradients > scores > labels."""

import pytest

from advrisk.core.traits import CAPABILITIES, Capability, gives

WHAT_EACH_GIVES: dict[Capability, set[Capability]] = {
    "labels": {"labels"},
    "scores": {"labels", "scores"},
    "gradients": {"labels", "scores", "gradients"},
}


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_capability_gives_itself_and_all_below_it(capability: Capability) -> None:
    assert {needed for needed in CAPABILITIES if gives(capability, needed)} == WHAT_EACH_GIVES[capability]
