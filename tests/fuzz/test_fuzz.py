"""Every loader against spoiled files: some here, thousands for each in `make slow-fuzz`."""

from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.campaign import FAULT, REFUSED, fuzz, spoiled_file, tried
from tests.fuzz.loaders import FAULTS, LOADERS, THOROUGH, faulty, n_files_of_tests


def test_the_campaign_sees_every_fault_and_goes_on(tmp_path: Path) -> None:
    n, loader = 9, faulty(tmp_path)
    which = [spoiled_file(loader, place, 5)[1] for place in range(n)]
    assert set(which) == set(range(len(FAULTS)))
    tally = fuzz("faulty", n, seed=5, seconds=1)
    assert (tally.n, tally.loaded, tally.refused) == (n, which.count(0), which.count(1))
    assert [place for place, _ in tally.faults] == [place for place in range(n) if which[place] > 1]
    for place, what in tally.faults:
        assert str(FAULTS[which[place]]) in what


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOADERS)
def test_some_spoiled_files(name: str, tmp_path: Path) -> None:
    loader = LOADERS[name](tmp_path)
    for which, content in enumerate(loader.seeds):
        loader.load(content, which)
    found = [tried(loader, place, 1) for place in range(8 if name in THOROUGH else 40)]
    assert [what for outcome, what in found if outcome == FAULT] == []
    assert Counter(outcome for outcome, _ in found)[REFUSED] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADERS)
def test_thousands_of_spoiled_files(name: str) -> None:
    n = n_files_of_tests(name)
    tally = fuzz(name, n)
    assert tally.faults == []
    assert tally.n == tally.loaded + tally.refused == n
