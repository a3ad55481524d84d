"""The shortest step to a hyperplane within a box, against solvers that know nothing of it.

l1 and linf are linear programs (scipy's HiGHS), l2 a quadratic one (SLSQP, and bisection for its multiplier).
"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog, minimize

from advrisk.engine import Space
from advrisk.engine.hyperplane import dual_length, step_to_hyperplane
from advrisk.engine.norms import length

NORMS = ("l1", "l2", "linf")


def step(w, gap, low, high, norm, *, dtype=torch.float64):
    """The step for one row of plain numbers."""
    row, low, high = (torch.from_numpy(np.asarray(part, float)).to(dtype)[None] for part in (w, low, high))
    return step_to_hyperplane(row, torch.tensor([gap], dtype=dtype), low, high, norm)[0].numpy()


def size(delta, norm):
    return float(np.linalg.norm(delta, {"l1": 1, "l2": 2, "linf": np.inf}[norm]))


def reach(w, low, high, *, down):
    """The most that w·δ can be within the box, or the least."""
    solved = linprog(w if down else -w, bounds=list(zip(low, high, strict=True)))
    assert solved.status == 0
    return float(w @ solved.x)


def shortest(w, gap, low, high, norm):
    """The length of the shortest δ with w·δ = gap within the box."""
    n = len(w)
    if norm == "l1":  # δ = p − q
        solved = linprog(
            np.ones(2 * n),
            A_eq=[np.r_[w, -w]],
            b_eq=[gap],
            bounds=[(0, bound) for bound in high] + [(0, -bound) for bound in low],
        )
        assert solved.status == 0
        return float(solved.fun)
    if norm == "linf":  # the largest entry is one more variable
        within = np.vstack([np.c_[np.eye(n), -np.ones(n)], np.c_[-np.eye(n), -np.ones(n)]])
        solved = linprog(
            np.r_[np.zeros(n), 1],
            A_ub=within,
            b_ub=np.zeros(2 * n),
            A_eq=[np.r_[w, 0]],
            b_eq=[gap],
            bounds=[*zip(low, high, strict=True), (0, None)],
        )
        assert solved.status == 0
        return float(solved.fun)
    return size(boxed_ray(w, gap, low, high), "l2")


def boxed_ray(w, gap, low, high):
    """By the conditions of Karush, Kuhn and Tucker δ = clip(t·w): the t that reaches the gap, by Brent's method."""
    if gap == 0:
        return np.zeros_like(w)

    def missing(t):
        return w @ np.clip(np.sign(gap) * t * w, low, high) - gap

    most = 1.0
    while abs(missing(most) + gap) < abs(gap) * (1 - 1e-13) and most < 1e12:
        most *= 2
    t = brentq(lambda t: np.sign(gap) * missing(t), 0, most, xtol=1e-14, rtol=1e-14)
    return np.clip(np.sign(gap) * t * w, low, high)


def problems(seed, *, n):
    """A slope, a box around 0 and a gap within its reach; bounds that bind, zero slopes and features held on a side."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=n) * 10 ** rng.uniform(-1.5, 1.5, n)
    low, high = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
    w[rng.random(n) < 0.15] = 0
    low[rng.random(n) < 0.15] = 0
    high[rng.random(n) < 0.15] = 0
    down = bool(rng.integers(2))
    return w, rng.choice([0.05, 0.5, 0.8, 0.98]) * reach(w, low, high, down=down), low, high


class TestShortest:
    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("n", [1, 2, 5, 30])
    def test_reaches_the_gap_within_the_box_and_no_solver_is_shorter(self, norm, n):
        n_binding = 0
        for seed in range(25):
            w, gap, low, high = problems(100 * n + seed, n=n)
            delta = step(w, gap, low, high, norm)
            assert w @ delta == pytest.approx(gap, rel=1e-9, abs=1e-12)
            assert (delta >= low).all()
            assert (delta <= high).all()
            assert not delta[w == 0].any()
            assert size(delta, norm) == pytest.approx(shortest(w, gap, low, high, norm), rel=1e-7, abs=1e-9)
            n_binding += bool(((delta == low) | (delta == high))[(delta != 0)].any())
        assert n_binding >= 3 or n == 1, "bounds must hold some of them back; one feature alone has no choice"

    @pytest.mark.parametrize("seed", range(12))
    def test_l2_against_a_solver_of_quadratic_programs(self, seed):
        w, gap, low, high = problems(seed, n=5)
        solved = minimize(
            lambda delta: delta @ delta / 2,
            boxed_ray(w, gap, low, high) * 0.5,
            jac=lambda delta: delta,
            bounds=list(zip(low, high, strict=True)),
            constraints={"type": "eq", "fun": lambda delta: w @ delta - gap, "jac": lambda _: w},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert solved.success
        np.testing.assert_allclose(step(w, gap, low, high, "l2"), solved.x, atol=2e-6)

    @pytest.mark.parametrize("norm", NORMS)
    def test_without_bounds_the_length_is_the_gap_by_the_dual_norm(self, norm):
        rng = np.random.default_rng(1)
        w = torch.from_numpy(rng.normal(size=(9, 2, 3, 4)))
        gap = torch.from_numpy(rng.normal(size=9))
        far = torch.tensor(1e9, dtype=torch.float64)
        delta = step_to_hyperplane(w, gap, -far, far, norm)
        assert delta.shape == w.shape
        torch.testing.assert_close((w * delta).flatten(1).sum(1), gap)
        order = {"l1": torch.inf, "l2": 2, "linf": 1}[norm]
        expected = gap.abs() / torch.linalg.vector_norm(w.flatten(1), order, dim=1)
        torch.testing.assert_close(length(delta, norm), expected)
        torch.testing.assert_close(dual_length(w, norm), torch.linalg.vector_norm(w.flatten(1), order, dim=1))

    @pytest.mark.parametrize(
        ("norm", "high", "expected"),
        [
            ("l1", [1.0, 1.0], [0.625, 0.0]),  # all by the steepest
            ("l1", [0.4375, 1.0], [0.4375, 0.25]),  # 4 · 0.4375 = 1.75, and 0.75 are left for a slope of 3
            ("l2", [1.0, 1.0], [0.4, 0.3]),  # w / 10
            ("l2", [0.25, 1.0], [0.25, 0.5]),
            ("linf", [1.0, 1.0], [2.5 / 7, 2.5 / 7]),
            ("linf", [1.0, 0.25], [0.4375, 0.25]),
        ],
    )
    def test_by_hand(self, norm, high, expected):
        """w = (4, 3, 0) and a gap of 2.5."""
        found = step([4, 3, 0], 2.5, [-1, -1, -1], [*high, 1.0], norm)
        np.testing.assert_allclose(found, [*expected, 0.0], atol=1e-12)

    @pytest.mark.parametrize("norm", NORMS)
    def test_a_negative_gap_is_the_way_back(self, norm):
        for seed in range(10):
            w, gap, low, high = problems(seed, n=7)
            forth, back = step(w, gap, low, high, norm), step(w, -gap, -high, -low, norm)
            np.testing.assert_allclose(back, -forth, atol=1e-14)


class TestLimits:
    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_gap_out_of_reach_is_approached_as_far_as_the_box_allows(self, norm, sign):
        for seed in range(10):
            w, _, low, high = problems(seed, n=6)
            most = reach(w, low, high, down=sign < 0)
            for factor in (1.0, 1.001, 50.0):
                delta = step(w, factor * most + sign * 1e-9, low, high, norm)
                assert w @ delta == pytest.approx(most, rel=1e-7)
                assert (delta >= low).all()
                assert (delta <= high).all()
                assert not delta[w == 0].any()

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("gap", [0.0, 1.0, -1.0])
    def test_no_slope_no_step(self, norm, gap):
        assert step([0, 0, 0], gap, [-1, -1, -1], [1, 1, 1], norm).tolist() == [0, 0, 0]

    @pytest.mark.parametrize("norm", NORMS)
    def test_no_gap_no_step(self, norm):
        assert step([1, -2, 3], 0.0, [-1, -1, -1], [1, 1, 1], norm).tolist() == [0, 0, 0]

    @pytest.mark.parametrize("norm", NORMS)
    def test_no_room_no_step(self, norm):
        assert step([1, -2, 3], 1.0, [-1, 0, 0], [0, 1, 0], norm).tolist() == [0, 0, 0]

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("scale", [1e-20, 1e20])
    def test_the_size_of_slopes_does_not_matter(self, norm, scale):
        w, gap, low, high = problems(4, n=8)
        np.testing.assert_allclose(
            step(scale * w, scale * gap, low, high, norm), step(w, gap, low, high, norm), rtol=1e-9, atol=1e-12
        )

    @pytest.mark.parametrize("norm", NORMS)
    def test_slopes_and_room_of_very_different_sizes(self, norm):
        """The steeper a feature, the less room it has: bounds are met one after another."""
        place = np.arange(100)
        w, room = 1.5**place, 1.3**-place
        for share in (0.1, 0.5, 0.99, 0.999999):
            gap = share * (w @ room)
            delta = step(w, gap, -room, room, norm)
            assert w @ delta == pytest.approx(gap, rel=1e-9)
            assert (abs(delta) <= room).all()


class TestRows:
    @pytest.mark.parametrize("norm", NORMS)
    def test_each_is_solved_by_itself_bit_for_bit(self, norm):
        rng = np.random.default_rng(2)
        w = torch.from_numpy(rng.normal(size=(37, 3, 5))).float()
        gap = torch.from_numpy(rng.normal(size=37) * 3).float()
        low, high = (torch.from_numpy(rng.uniform(0, 0.6, (37, 3, 5)) * sign).float() for sign in (-1, 1))
        whole = step_to_hyperplane(w, gap, low, high, norm)
        assert whole.dtype == torch.float32
        for start, stop in ((0, 1), (0, 16), (5, 22), (30, 37), (36, 37)):
            rows = slice(start, stop)
            assert torch.equal(step_to_hyperplane(w[rows], gap[rows], low[rows], high[rows], norm), whole[rows])

    @pytest.mark.parametrize("norm", NORMS)
    def test_float32_steps_stay_within_their_box(self, norm):
        for seed in range(20):
            w, gap, low, high = (np.float32(part) for part in problems(seed, n=9))
            delta = step(w, gap, low, high, norm, dtype=torch.float32)
            assert (delta >= low).all()
            assert (delta <= high).all()
            assert np.float64(w) @ np.float64(delta) == pytest.approx(float(gap), rel=1e-5, abs=1e-6)

    @pytest.mark.parametrize("norm", NORMS)
    def test_a_space_counts_in_units_of_its_scale(self, norm):
        """The shortest step in units is found by writing the same problem in those units."""
        rng = np.random.default_rng(8)
        scale = torch.tensor([0.5, 2.0, 4.0, 1.0])
        space = Space(torch.tensor(-1.0), torch.tensor(1.0), scale)
        x = torch.from_numpy(rng.uniform(-0.9, 0.9, (6, 4))).float()
        slope = torch.from_numpy(rng.normal(size=(6, 4))).float()
        gap = torch.from_numpy(rng.normal(size=6)).float() / 4
        moved = space.step_to(x, slope, gap, norm)
        torch.testing.assert_close((slope * moved).sum(1), gap, rtol=1e-5, atol=1e-6)
        for row in range(6):
            w, low, high = (
                part.double().numpy() for part in (slope[row] * scale, (-1 - x[row]) / scale, (1 - x[row]) / scale)
            )
            best = shortest(w, float(gap[row]), low, high, norm)
            assert space.distance(x + moved, x, norm)[row].item() == pytest.approx(best, rel=1e-4)
        torch.testing.assert_close(space.steepness(slope, norm), dual_length(slope * scale, norm))


NUMBERS = st.floats(-8, 8, allow_nan=False, width=32)
ROOM = st.floats(0, 4, allow_nan=False, width=32)


@given(st.lists(st.tuples(NUMBERS, ROOM, ROOM), min_size=1, max_size=6), NUMBERS, st.sampled_from(NORMS))
def test_whatever_the_problem_the_step_is_allowed_gets_as_far_as_any_and_is_no_longer(features, gap, norm):
    w, down, up = (np.array(part) for part in zip(*features, strict=True))
    delta = step(w, gap, -down, up, norm)
    assert (delta >= -down).all()
    assert (delta <= up).all()
    most = float(np.maximum(np.sign(gap) * w * up, -np.sign(gap) * w * down).sum())  # each feature to its better end
    wanted = np.sign(gap) * min(abs(gap), most)
    assert w @ delta == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    # Of no other step to the same plane that is shorter: halfway towards any corner of the box it only gets longer.
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = rng.uniform(-down, up)
        progress = w @ other
        if progress * np.sign(gap) > abs(wanted) > 0:  # shrunk back onto the plane
            assert size(other * wanted / progress, norm) >= size(delta, norm) * (1 - 1e-9)


class TestFloat32:
    """What attacks really ask for; the tests above are in float64."""

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12])
    def test_the_size_of_slopes_does_not_matter(self, norm, scale):
        w, low, high = np.array([3.0, -2.0, 0.5, 0.0]), np.full(4, -0.4), np.full(4, 0.3)
        plain = step(w, 0.9, low, high, norm, dtype=torch.float32)
        scaled = step(w * scale, 0.9 * scale, low, high, norm, dtype=torch.float32)
        np.testing.assert_allclose(scaled, plain, rtol=1e-5)
        np.testing.assert_allclose(w @ plain, 0.9, rtol=1e-5)

    @pytest.mark.parametrize("norm", NORMS)
    def test_slopes_of_very_different_sizes_stay_finite(self, norm):
        found = step([1, 1e-20, 0], 0.5, [-1] * 3, [0.1, 1, 1], norm, dtype=torch.float32)
        np.testing.assert_allclose(found, [0.1, 1, 0], rtol=1e-6)  # as far as it can

    @pytest.mark.parametrize("norm", NORMS)
    def test_slopes_that_lead_nowhere_go_as_far_as_they_can(self, norm):
        found = step([1e-38, -1e-38], 10.0, [-1] * 2, [1] * 2, norm, dtype=torch.float32)
        np.testing.assert_allclose(found, [1, -1])
