import numpy as np
import pytest
import torch
from scipy import stats

from advrisk.core.seeds import key
from advrisk.engine import Noise, noise

# The first outputs of SplitMix64 for the seed 1234567, as published with its reference implementation.
REFERENCE = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)


def rows(*numbers):
    return torch.tensor(numbers)


def test_is_splitmix64():
    drawn = Noise([1234567]).uniform(rows(0), (5,))
    assert (drawn.double() * 2**24).squeeze(0).tolist() == [number >> 40 for number in REFERENCE]


def test_uniform_is_uniform():
    drawn = Noise([key("a", number) for number in range(50)]).uniform(torch.arange(50), (2000,)).double().numpy()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > 0.001
    assert drawn.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / drawn.size))
    assert drawn.var() == pytest.approx(1 / 12, abs=4 * np.sqrt(1 / 180 / drawn.size))


def test_normal_is_normal():
    drawn = Noise([key("b", number) for number in range(50)]).normal(torch.arange(50), (2000,)).double().numpy()
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 0.001
    assert drawn.mean() == pytest.approx(0, abs=4 / np.sqrt(drawn.size))
    assert drawn.var() == pytest.approx(1, abs=4 * np.sqrt(2 / drawn.size))
    assert stats.kurtosis(drawn.ravel()) == pytest.approx(0, abs=4 * np.sqrt(24 / drawn.size))


@pytest.mark.parametrize("method", ["uniform", "normal", "bell"])
@pytest.mark.parametrize("keys", [range(200), [key("c", number) for number in range(200)]], ids=["adjacent", "hashed"])
def test_rows_are_independent_of_each_other(method, keys):
    """Also for keys that differ by one: the mixing must hide how near they are."""
    drawn = getattr(Noise(keys), method)(torch.arange(200), (500,)).double().numpy()
    between = np.corrcoef(drawn)[np.triu_indices(200, 1)] * np.sqrt(500)
    assert stats.kstest(between, "norm").pvalue > 0.001
    neighbours = [np.corrcoef(row[:-1], row[1:])[0, 1] * np.sqrt(499) for row in drawn]
    assert stats.kstest(neighbours, "norm").pvalue > 0.001


def test_bell_is_the_sum_of_eight_coins():
    drawn = Noise([key("e", number) for number in range(50)]).bell(torch.arange(50), (2001,)).double().numpy()
    values, counts = np.unique(drawn, return_counts=True)
    assert set(values) <= set(range(-4, 5))
    expected = stats.binom.pmf(values + 4, 8, 0.5) * drawn.size
    often = expected > 10
    chi_squared = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2.sf(chi_squared, often.sum() - 1) > 0.001


def test_bell_is_made_of_the_bits_of_splitmix64():
    drawn = Noise([1234567]).bell(rows(0), (13,))
    pieces = [number >> shift & 0xFF for number in REFERENCE[:2] for shift in range(0, 64, 8)]
    assert drawn.squeeze(0).tolist() == [piece.bit_count() - 4 for piece in pieces[:13]]


def test_many_rows_are_drawn_in_pieces_that_nobody_sees(monkeypatch):
    keys = [key("f", number) for number in range(40)]
    whole = Noise(keys).uniform(torch.arange(40), (30,))
    monkeypatch.setattr(noise, "_BLOCK", 100)
    assert torch.equal(Noise(keys).uniform(torch.arange(40), (30,)), whole)


def test_a_stream_goes_on_where_it_stopped():
    """Drawn in pieces or at once, whatever the shape: no number twice, none left out."""
    at_once = Noise([7, 8]).uniform(rows(0, 1), (12,))
    noise = Noise([7, 8])
    pieces = [noise.uniform(rows(0, 1), shape).flatten(1) for shape in ((2,), (1, 3), (7,))]
    assert torch.equal(torch.cat(pieces, 1), at_once)


def test_normal_draws_do_not_overlap():
    noise = Noise([3])
    first, second = (noise.normal(rows(0), (300,)).squeeze(0) for _ in range(2))
    assert not set(first.tolist()) & set(second.tolist())


@pytest.mark.parametrize("method", ["uniform", "normal", "bell"])
def test_a_row_does_not_see_its_batch_mates(method):
    keys = [key("d", number) for number in range(6)]
    together = getattr(Noise(keys), method)(torch.arange(6), (4, 4))
    backwards = getattr(Noise(keys[::-1]), method)(torch.arange(6), (4, 4))
    alone = getattr(Noise([keys[4]]), method)(rows(0), (4, 4))
    assert torch.equal(backwards.flip(0), together)
    assert torch.equal(alone[0], together[4])


def test_a_row_does_not_see_who_left_the_batch():
    keys = [key("e", number) for number in range(4)]
    staying, leaving = Noise(keys), Noise(keys)
    staying.uniform(torch.arange(4), (3,))
    expected = staying.uniform(torch.arange(4), (5,))
    leaving.uniform(torch.arange(4), (3,))
    later = leaving.uniform(rows(3, 1), (5,))
    assert torch.equal(later, expected[[3, 1]])
    assert torch.equal(leaving.uniform(rows(0), (5,)), expected[[0]])


@pytest.mark.parametrize("method", ["uniform", "normal", "bell"])
def test_a_row_named_twice_goes_on_in_its_stream(method):
    """As if the two had been drawn one after the other, whoever else is drawn with them."""
    keys = [key("f", number) for number in range(3)]
    repeated, plain = Noise(keys), Noise(keys)
    at_once = getattr(repeated, method)(rows(1, 1, 0, 2, 1), (2, 3))
    in_turn = [getattr(plain, method)(rows(number), (2, 3)) for number in (1, 1, 0, 2, 1)]
    assert torch.equal(at_once, torch.cat(in_turn))
    assert torch.equal(getattr(repeated, method)(rows(0, 1, 2), (4,)), getattr(plain, method)(rows(0, 1, 2), (4,)))


def test_large_keys_wrap_around():
    drawn = Noise([2**64 - 1, 0]).uniform(rows(0, 1), (100,))
    assert torch.isfinite(drawn).all()
    assert not torch.equal(drawn[0], drawn[1])


def test_answers_in_float32_of_the_shape_asked():
    drawn = Noise([1, 2, 3]).normal(rows(2, 0), (3, 5, 5))
    assert drawn.shape == (2, 3, 5, 5)
    assert drawn.dtype == torch.float32


def test_a_seed_for_others_depends_on_all_the_rows_and_on_nothing_drawn():
    noise = Noise([1, 2, 3])
    seeds = [noise.seed(rows(*chosen)) for chosen in ((0, 1, 2), (0, 1), (1, 0), (2,))]
    assert len(set(seeds)) == 4
    noise.uniform(rows(0, 1, 2), (5,))
    assert noise.seed(rows(0, 1, 2)) == seeds[0] == Noise([1, 2, 3]).seed(rows(0, 1, 2))
