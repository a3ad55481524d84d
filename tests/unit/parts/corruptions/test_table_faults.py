"""Faults of tables: which entries they strike, and by how much."""

import pytest
import torch
from scipy import stats

from advrisk.core.errors import AdvriskError, StudyError
from advrisk.core.seeds import key
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions
from advrisk.parts.presets import presets

N = 3000
IMMUTABLE, CATEGORY, INTEGER = 1, 3, 4
STRENGTH = {
    "missing-values": {"share": 0},
    "column-drift": {"shift_scales": 0.0},
    "table-noise": {"sigma_scales": 0},
    "unit-error": {"factor": 1},
}


def mask(*columns, features=6):
    return torch.tensor([column in columns for column in range(features)])


SCALE = torch.tensor([1.0, 2.0, 0.5, 1.0, 10.0, 4.0])
TABLE = Space(
    torch.tensor([-50.0, -50.0, 0.0, 0.0, -100.0, -50.0]),
    torch.tensor([50.0, 50.0, 1e6, 4.0, 100.0, 50.0]),
    SCALE,
    immutable=mask(IMMUTABLE),
    integer=mask(INTEGER),
    category=mask(CATEGORY),
)
NUMERIC = [0, 2, INTEGER, 5]


def table(n=N):
    x = 1 + 2 * torch.rand(n, 6, generator=torch.Generator().manual_seed(0))
    return torch.where(TABLE.integer | TABLE.category, x.round(), x)


def corrupted(name, x, *, space=TABLE, **params):
    part = corruptions.get(name)
    y = part.function(
        x.clone(), Noise([key("test", row) for row in range(len(x))]), torch.arange(len(x)), space, **part.bind(params)
    )
    assert torch.equal(y[:, IMMUTABLE], x[:, IMMUTABLE]) or space is not TABLE
    return space.project(y, x)


def is_binomial(count, n, p):
    return stats.binomtest(int(count), n, p).pvalue > 0.001


class TestAll:
    def test_all_of_this_cause_are_tested_here(self):
        found = [part for part in corruptions if part.traits.cause == "table"]
        assert {part.name for part in found} == set(STRENGTH)
        assert all(part.traits.inputs == "tables" and part.traits.n_levels == 5 for part in found)

    def test_shares_of_what_is_drawn_go_from_0_to_1(self):
        shares = [(part, one) for part in corruptions for one in part.parameters if one.endswith("share")]
        assert {"missing-values", "column-drift", "unit-error", "hot-pixels"} <= {part.name for part, _ in shares}
        for part, one in shares:
            strength = {name: values[0] for name, values in part.traits.levels.items()}
            part.bind(strength | {one: 1})
            with pytest.raises(AdvriskError, match=rf"{one}.* 1\b"):
                part.bind(strength | {one: 20})

    @pytest.mark.parametrize("name", STRENGTH)
    def test_zero_strength_changes_nothing(self, name):
        x = table(50)
        part = corruptions.get(name)
        y = part.function(x, Noise(range(50)), torch.arange(50), TABLE, **part.bind(STRENGTH[name]))
        assert torch.equal(y, x)

    @pytest.mark.parametrize("name", STRENGTH)
    def test_every_level_changes_more(self, name):
        x, levels = table(1000), corruptions.get(name).traits.levels
        changes = [
            float(
                TABLE.difference(corrupted(name, x, **{key: values[i] for key, values in levels.items()}), x)
                .abs()
                .mean()
            )
            for i in range(5)
        ]
        assert changes == sorted(changes)
        assert changes[4] > 2 * changes[0] > 0

    @pytest.mark.parametrize("name", STRENGTH)
    def test_the_result_exists(self, name):
        x, levels = table(200), corruptions.get(name).traits.levels
        y = corrupted(name, x, **{key: values[4] for key, values in levels.items()})
        assert TABLE.valid(y, x).all()
        assert (y != x).any()

    @pytest.mark.parametrize("name", STRENGTH)
    @pytest.mark.parametrize("masks", [{"immutable": mask(0, 1, 2, 3, 4, 5)}])
    def test_a_table_that_nothing_can_happen_to_is_refused(self, name, masks):
        fixed = Space(TABLE.low, TABLE.high, SCALE, **masks)
        strong = {key: values[4] for key, values in corruptions.get(name).traits.levels.items()}
        with pytest.raises(StudyError, match="immutable, so nothing can change"):
            corrupted(name, table(3), space=fixed, **strong)

    def test_the_preset_holds_them_at_three_levels(self):
        (line,) = presets.get("table-faults").function()
        assert set(line["corruption"]) == set(STRENGTH)
        assert line["level"] == [1, 3, 5]


class TestNoise:
    def test_numbers_get_normal_noise_in_units_of_their_scale(self):
        x = table()
        moved = corrupted("table-noise", x, sigma_scales=0.3) - x
        for column in (0, 5):
            drawn = moved[:, column].double().numpy() / (0.3 * float(SCALE[column]))
            assert stats.kstest(drawn, "norm").pvalue > 0.001
        assert not moved[:, [IMMUTABLE, CATEGORY]].any()

    def test_whole_numbers_are_rounded_without_bias(self):
        x = table()
        moved = (corrupted("table-noise", x, sigma_scales=0.3) - x)[:, INTEGER].double()
        assert torch.equal(moved, moved.round())
        assert moved.std().item() == pytest.approx((3**2 + 1 / 12) ** 0.5, rel=0.05)  # cut off it would be smaller
        assert abs(moved.mean().item()) < 4 * 3 / N**0.5


class TestMissing:
    def test_a_share_of_the_entries_has_the_lowest_value(self):
        x = table()
        y = corrupted("missing-values", x, share=0.15)
        missing = y != x
        for column in [*NUMERIC, CATEGORY]:
            assert is_binomial(missing[:, column].sum(), N, 0.15)
        assert not missing[:, IMMUTABLE].any()
        assert torch.equal(y[missing], TABLE.low.expand_as(x)[missing])

    def test_entries_are_missing_independently(self):
        x = table()
        missing = (corrupted("missing-values", x, share=0.5) != x)[:, [0, 2, 5]].double()
        assert torch.corrcoef(missing.T).triu(1).abs().max() < 5 / N**0.5

    def test_another_fill_within_the_bounds(self):
        x = table()
        y = corrupted("missing-values", x, share=1, fill=7)
        assert y[0].tolist() == [7, x[0, 1].item(), 7, 4, 7, 7]  # the category has codes up to 4


class TestDrift:
    def test_a_named_column_moves_as_told(self):
        x = table()
        moved = corrupted("column-drift", x, shift_scales=-1.5, column=5) - x
        assert torch.allclose(moved[:, 5], torch.tensor(-6.0))
        assert not moved[:, :5].any()

    def test_others_move_up_or_down_with_equal_probability(self):
        x = table()
        moved = (corrupted("column-drift", x, shift_scales=2, share=0.3) - x) / SCALE
        for column in (0, 5):
            up, down = (moved[:, column] > 0).sum(), (moved[:, column] < 0).sum()
            assert is_binomial(up, N, 0.15)
            assert is_binomial(down, N, 0.15)
        assert set(moved[:, 0].round(decimals=4).tolist()) == {-2.0, 0.0, 2.0}
        assert not moved[:, [IMMUTABLE, CATEGORY]].any()

    def test_whole_numbers_move_to_the_nearest(self):
        x = table(50)
        moved = corrupted("column-drift", x, shift_scales=0.27, column=INTEGER) - x
        assert torch.allclose(moved[:, INTEGER], torch.tensor(3.0))

    @pytest.mark.parametrize("name", ["column-drift", "unit-error"])
    @pytest.mark.parametrize(
        ("column", "complaint"),
        [
            (6, "found column 6, but this table has columns 0 to 5"),
            (IMMUTABLE, "found column 1, but it is immutable; use one of 0, 2, 4, 5"),
            (CATEGORY, "found column 3, but it is a category; use one of 0, 2, 4, 5"),
        ],
    )
    def test_columns_that_cannot_be_meant(self, name, column, complaint):
        strong = {key: values[4] for key, values in corruptions.get(name).traits.levels.items()}
        with pytest.raises(StudyError, match=complaint):
            corrupted(name, table(3), column=column, **strong)


class TestUnits:
    def test_one_number_of_each_row_is_wrong(self):
        x = table()
        y = corrupted("unit-error", x, factor=2.54)
        wrong = y != x
        assert (wrong.sum(1) == 1).all()
        counts = [int(wrong[:, column].sum()) for column in NUMERIC]
        assert sum(counts) == N
        assert stats.chisquare(counts).pvalue > 0.001
        free = wrong & ~TABLE.integer
        assert torch.allclose(y[free], 2.54 * x[free])

    def test_a_share_of_the_rows_in_a_named_column(self):
        x = table()
        y = corrupted("unit-error", x, factor=1000, row_share=0.2, column=2)
        wrong = (y != x)[:, 2]
        assert is_binomial(wrong.sum(), N, 0.2)
        assert torch.allclose(y[wrong, 2], 1000 * x[wrong, 2])
        assert not (y != x)[:, [0, 1, 3, 4, 5]].any()

    def test_whole_numbers_are_rounded_and_bounds_hold(self):
        x = torch.full((4, 6), 2.0)
        assert corrupted("unit-error", x, factor=2.54, column=INTEGER)[:, INTEGER].tolist() == [5.0] * 4
        assert corrupted("unit-error", x, factor=1000, column=0)[:, 0].tolist() == [50.0] * 4
