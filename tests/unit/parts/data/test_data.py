import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from advrisk.core.errors import DataError, StudyError
from advrisk.parts.data import Dataset, data
from advrisk.parts.data.npz import read_arrays


def npz(path, **settings):
    part = data.get("npz")
    return part.function(**part.bind({"path": str(path)} | settings))


@pytest.fixture
def write(tmp_path):
    def save(*, compressed=False, **arrays):
        defaults = {"x": np.zeros((4, 6, 5), np.uint8), "y": np.array([0, 1, 2, 1])}
        chosen = {name: array for name, array in (defaults | arrays).items() if array is not None}
        (np.savez_compressed if compressed else np.savez)(tmp_path / "signs.npz", **chosen)
        return tmp_path / "signs.npz"

    return save


class TestDataset:
    @staticmethod
    def make(**changes):
        x = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
        defaults = {"name": "toy", "x": x, "y": np.array([0, 1, 1, 0]), "n_classes": 2}
        return Dataset(**(defaults | changes))

    def test_names_its_samples(self):
        assert self.make().ids == ("toy/000000", "toy/000001", "toy/000002", "toy/000003")

    def test_a_hash_follows_input_and_label_but_not_position(self):
        made = self.make()
        moved = self.make(x=made.x[::-1].copy(), y=made.y[::-1].copy())
        assert [made.hash_of(row) for row in range(4)] == [moved.hash_of(3 - row) for row in range(4)]
        assert self.make(y=np.array([1, 1, 1, 0])).hash_of(0) != made.hash_of(0)
        other = made.x.copy()
        other[0, 0] += 1e-6
        assert self.make(x=other).hash_of(0) != made.hash_of(0)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"x": np.zeros((0, 3), np.float32), "y": np.zeros(0, np.int64)}, "found no samples"),
            ({"y": np.array([0, 1])}, "4 inputs but 2 entries in 'y'"),
            ({"ids": ("a", "b", "c")}, "4 inputs but 3 entries in 'ids'"),
            ({"weights": np.ones(5)}, "4 inputs but 5 entries in 'weights'"),
            ({"split": np.array(["test"] * 3)}, "4 inputs but 3 entries in 'split'"),
            ({"strata": {"light": np.array(["day"])}}, "4 inputs but 1 entries in 'light'"),
            ({"ids": ("a", "b", "c", "b")}, "two samples have the id 'b'"),
            ({"y": np.array([0, 1, 2, 0])}, r"sample toy/000002 has label 2, outside the 2 classes 0 to 1 \(1 such"),
            ({"y": np.array([0, -1, -1, 0])}, r"sample toy/000001 has label -1, .* \(2 such samples\)"),
            ({"weights": np.array([1, 0, 1, 1.0])}, "weights must be positive"),
            ({"weights": np.array([1, np.nan, 1, 1.0])}, "weights must be positive"),
            ({"class_names": ("cat",)}, "class_names has 1 names, 2 are needed"),
            ({"feature_names": ("age", "income")}, "feature_names has 2 names, 3 are needed"),
            ({"scale": 0.0}, "scale must be positive"),
            ({"scale": np.array([1, 1, -1])}, "scale must be positive"),
            ({"scale": np.array([1, np.inf, 1])}, "scale must be positive"),
            ({"scale": np.ones(2)}, r"scale must be one number or an array of shape \(3,\), found \(2,\)"),
            ({"low": np.zeros(2)}, r"low must be one number or an array of shape \(3,\), found \(2,\)"),
            ({"high": np.ones((3, 3))}, r"high must be one number or an array of shape \(3,\), found \(3, 3\)"),
            ({"low": np.nan}, "bounds must be finite"),
            ({"high": np.array([1, np.nan, 1])}, "bounds must be finite"),
            ({"high": np.inf}, "bounds must be finite"),
            ({"masks": {"integer": np.ones(2, bool)}}, r"'integer' must be a mask of shape \(3,\), found \(2,\)"),
            ({"masks": {"integre": np.ones(3, bool)}}, "'integre' must be a mask"),
        ],
    )
    def test_refuses_by_name(self, changes, message):
        with pytest.raises(DataError, match=message):
            self.make(**changes)

    @pytest.mark.parametrize(
        ("value", "what"),
        [
            (np.nan, "= nan is not finite"),
            (np.inf, "= inf is not finite"),
            (-0.5, "= -0.5 lies below the bound 0"),
            (1.5, "= 1.5 lies above the bound 1"),
        ],
    )
    def test_refuses_a_bad_value_with_its_place(self, value, what):
        x = self.make().x.copy()
        x[2, 1] = x[3, 0] = value
        with pytest.raises(DataError, match=rf"toy: sample toy/000002, feature \(1,\) {what} \(2 such samples\)"):
            self.make(x=x)

    def test_bounds_may_differ_by_feature(self):
        high = np.array([1, 1, 0.2])
        with pytest.raises(DataError, match=r"sample toy/000001, feature \(2,\) = 0.4545.* \(3 such samples\)"):
            self.make(high=high, x=np.array([[0, 0, 0.1], [0, 0, 5 / 11], [0, 0, 0.5], [0, 0, 0.3]], np.float32))

    @pytest.mark.parametrize("name", ["integer", "category"])
    def test_whole_numbers_are_demanded_where_promised(self, name):
        mask = {name: np.array([False, True, False])}
        with pytest.raises(DataError, match=rf"feature \(1,\) = 0.0909091 is {name} but not a whole number"):
            self.make(masks=mask)
        assert self.make(x=np.ones((4, 3), np.float32), masks=mask).masks is mask


class TestNpz:
    def test_names_of_classes_and_features_are_read_and_count_the_classes(self, write):
        x = np.zeros((4, 2), np.uint8)
        loaded = npz(write(x=x, class_names=np.array(["a", "b", "c", "d"]), feature_names=np.array(["age", "income"])))
        assert (loaded.n_classes, loaded.class_names, loaded.feature_names) == (4, tuple("abcd"), ("age", "income"))
        with pytest.raises(DataError, match="class_names must be a list of strings, found int64"):
            npz(write(class_names=np.array([1, 2, 3])))

    def test_bytes_become_fractions(self, write):
        x = np.arange(4 * 30, dtype=np.uint8).reshape(4, 6, 5)
        loaded = npz(write(x=x))
        assert loaded.name == "signs"
        assert loaded.n_classes == 3
        assert loaded.x.dtype == np.float32
        np.testing.assert_allclose(loaded.x, x[:, None] / 255, rtol=1e-6)
        assert (loaded.low, loaded.high) == (0, 1)

    @pytest.mark.parametrize(
        ("shape", "layout", "expected"),
        [
            ((4, 7), "auto", (4, 7)),
            ((4, 6, 5), "auto", (4, 1, 6, 5)),
            ((4, 6, 5, 3), "auto", (4, 3, 6, 5)),
            ((4, 3, 6, 5), "auto", (4, 3, 6, 5)),
            ((4, 1, 6, 5), "auto", (4, 1, 6, 5)),
            ((4, 3, 6, 3), "nhwc", (4, 3, 3, 6)),
            ((4, 3, 6, 3), "nchw", (4, 3, 6, 3)),
            ((4, 6, 5, 2), "nhwc", (4, 2, 6, 5)),
            ((4, 6, 5), "tabular", (4, 30)),
        ],
    )
    def test_layout(self, write, shape, layout, expected):
        x = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
        loaded = npz(write(x=x), layout=layout)
        assert loaded.x.shape == expected
        if len(shape) == 4 and shape[1:] != expected[1:]:
            x = np.moveaxis(x, 3, 1)
        np.testing.assert_allclose(loaded.x.ravel(), x.ravel() / 255, rtol=1e-6)

    def test_further_columns_are_carried_along(self, write):
        path = write(
            id=np.array(["a", "b", "c", "d"]),
            weight=np.array([1, 2, 3, 4]),
            split=np.array(["train", "test", "test", "test"]),
            light=np.array([3, 1, 2, 3]),
        )
        loaded = npz(path, strata=["light"], classes=7)
        assert loaded.ids == ("a", "b", "c", "d")
        assert loaded.weights.tolist() == [1, 2, 3, 4]
        assert loaded.split.tolist() == ["train", "test", "test", "test"]
        assert loaded.strata["light"].tolist() == ["3", "1", "2", "3"]
        assert loaded.n_classes == 7

    def test_tables_bring_their_space(self, write):
        low, high = np.array([0, -5.0]), np.array([9, 5.0])
        masks = {"integer": np.array([True, False]), "immutable": np.array([0, 1])}
        path = write(x=np.array([[1, 0.5]] * 4), low=low, high=high, scale=np.array([1, 0.1]), **masks)
        loaded = npz(path)
        assert np.array_equal(loaded.low, low)
        assert np.array_equal(loaded.high, high)
        assert np.array_equal(loaded.scale, [1, 0.1])
        assert {name: mask.tolist() for name, mask in loaded.masks.items()} == {
            "integer": [True, False],
            "immutable": [False, True],
        }

    def test_bounds_of_the_study_hold_for_floats(self, write):
        loaded = npz(write(x=np.full((4, 2), -0.5)), bounds=[-1, 1])
        assert (loaded.low, loaded.high) == (-1, 1)

    @pytest.mark.parametrize(
        ("arrays", "settings", "message"),
        [
            ({"x": None}, {}, "has no array 'x'"),
            ({"y": None, "Y": np.zeros(4, int)}, {}, "has no array 'y'"),
            ({"lihgt": np.zeros(4)}, {"strata": ["light"]}, "has no array 'light'; did you mean 'lihgt'"),
            ({"x": np.zeros((4, 2))}, {}, r"x is float64 without bounds"),
            ({"x": np.zeros((4, 2))}, {"bounds": [1, 0]}, r"low < high, found \[1.0, 0.0\]"),
            ({"x": np.zeros((4, 2))}, {"bounds": [1]}, r"bounds must be \[low, high\]"),
            ({"x": np.full((4, 2), np.nan)}, {"bounds": [0, 1]}, "is not finite"),
            ({"x": np.full((4, 2), 2.0)}, {"bounds": [0, 1]}, "lies above the bound 1"),
            ({"x": np.zeros((4, 2), complex)}, {"bounds": [0, 1]}, "x must hold real numbers, found complex"),
            ({"x": np.array([["a"]] * 4)}, {"bounds": [0, 1]}, "x must hold real numbers, found <U1"),
            ({"x": np.zeros(4, np.uint8)}, {}, r"found shape \(4,\)"),
            ({"x": np.uint8(3)}, {}, r"found shape \(\)"),
            ({"x": np.uint8(3)}, {"layout": "tabular"}, r"found shape \(\)"),
            ({"x": np.zeros((4, 3, 5, 3), np.uint8)}, {}, "write `layout: nhwc` or `layout: nchw`"),
            ({"x": np.zeros((4, 2, 5, 2), np.uint8)}, {}, "write `layout: nhwc` or `layout: nchw`"),
            ({"x": np.zeros((0, 6, 5), np.uint8), "y": np.zeros(0, int)}, {}, "found no samples"),
            ({"x": np.zeros((0, 6), np.uint8), "y": np.zeros(0, int)}, {}, "found no samples"),
            ({"y": np.zeros(4)}, {}, "y must be one class number per sample, found float64"),
            ({"y": np.zeros((4, 3), int)}, {}, r"y must be one class number per sample, found int64 of shape \(4, 3\)"),
            ({"y": np.array([0, 1, 2])}, {}, "4 inputs but 3 entries in 'y'"),
            ({"y": np.array([0, 1, 2, 5])}, {"classes": 4}, "has label 5, outside the 4 classes"),
            ({"y": np.array([0, 1, -2, 1])}, {}, "has label -2"),
            ({"id": np.array([1, 2, 2, 3])}, {}, "two samples have the id '2'"),
            ({"weight": np.array(["a", "b", "c", "d"])}, {}, "weight must be numbers, found <U1"),
        ],
    )
    def test_refuses_by_name(self, write, arrays, settings, message):
        path = write(**arrays)
        with pytest.raises(DataError, match=message):
            npz(path, **settings)

    def test_a_setting_that_does_not_exist_is_refused(self, write):
        with pytest.raises(StudyError, match="npz has no parameter 'layuot'; did you mean 'layout'"):
            npz(write(), layuot="nhwc")


class TestFiles:
    def test_a_missing_file(self, tmp_path):
        with pytest.raises(DataError, match=r"none\.npz: there is no such file"):
            npz(tmp_path / "none.npz")

    def test_a_folder(self, tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            npz(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"not a zip", pickle.dumps([1, 2])])
    def test_something_else(self, tmp_path, content):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"a\.npz: cannot be read as an \.npz"):
            npz(tmp_path / "a.npz")

    def test_pickled_objects_are_not_loaded(self, write):
        class Trap:
            def __reduce__(self):
                return (pytest.fail, ("a pickle was loaded",))

        with pytest.raises(DataError, match=r"holds Python objects, which are not loaded"):
            npz(write(x=np.array([Trap()], dtype=object)))

    @pytest.mark.parametrize("kept", [0.3, 0.7, 0.95])
    def test_a_file_that_was_cut_short(self, write, kept):
        path = write()
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
        with pytest.raises(DataError, match="cannot be read"):
            npz(path)

    @pytest.mark.parametrize("place", range(0, 200, 10))
    def test_a_file_with_wrong_bytes_is_read_or_refused(self, write, place):
        """Wherever the damage is: never another kind of error."""
        path = write(x=np.random.default_rng(0).integers(0, 9, (4, 60, 5), dtype=np.uint8), compressed=True)
        sound = npz(path)
        content = bytearray(path.read_bytes())
        content[place : place + 10] = bytes(255 - byte for byte in content[place : place + 10])
        path.write_bytes(bytes(content))
        refusal = ""
        try:
            loaded = npz(path)
        except DataError as error:
            refusal = str(error)
        assert "signs" in refusal or np.array_equal(loaded.x, sound.x)  # only a date may be hit without harm

    def test_a_zip_of_other_things(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("x", b"no array")
            archive.writestr("y", b"no array")
        with pytest.raises(DataError, match=r"cannot be read as an \.npz of plain arrays: the magic string"):
            npz(tmp_path / "a.npz")

    def test_a_bomb_is_refused_before_it_is_unpacked(self, tmp_path, monkeypatch):
        np.savez_compressed(tmp_path / "a.npz", x=np.zeros(10**6, np.uint8))
        monkeypatch.setitem(read_arrays.__globals__, "MAX_BYTES", 10**5)
        with pytest.raises(DataError, match="unpacks to more than"):
            read_arrays(tmp_path / "a.npz")


class TestBuiltIn:
    def test_digits(self):
        digits = data.get("digits").function()
        assert digits.x.shape == (1797, 1, 8, 8)
        assert digits.n_classes == 10
        assert sorted(np.unique(digits.y)) == list(range(10))
        assert (digits.split == "test").sum() == 500
        assert 0 == digits.x.min() < digits.x.max() == 1
        assert len({digits.hash_of(row) for row in range(1797)}) > 1790

    def test_mnist_5k(self):
        mnist = data.get("mnist-5k").function()
        assert mnist.x.shape == (5000, 1, 28, 28)
        for split, count in (("train", 400), ("test", 100)):
            assert np.bincount(mnist.y[mnist.split == split]).tolist() == [count] * 10

    @pytest.mark.parametrize(
        ("source", "settings", "file", "shape", "expected"),
        [
            ("mnist", {}, "mnist_test.npz", (3, 28, 28), (3, 1, 28, 28)),
            ("mnist", {"half": "train"}, "mnist_train.npz", (3, 28, 28), (3, 1, 28, 28)),
            ("fashion-mnist", {}, "fashion_test.npz", (3, 28, 28), (3, 1, 28, 28)),
            ("cifar10", {"half": "train"}, "cifar10_train_10k.npz", (3, 32, 32, 3), (3, 3, 32, 32)),
        ],
    )
    def test_from_the_data_folder(self, tmp_path, monkeypatch, source, settings, file, shape, expected):
        monkeypatch.setenv("ADVRISK_DATA", str(tmp_path))
        np.savez(tmp_path / file, x=np.zeros(shape, np.uint8), y=np.array([0, 9, 1]))
        part = data.get(source)
        loaded = part.function(**part.bind(settings))
        assert loaded.x.shape == expected
        assert loaded.n_classes == 10

    def test_without_a_data_folder_the_variable_is_named(self, monkeypatch):
        monkeypatch.delenv("ADVRISK_DATA", raising=False)
        for source in ("mnist", "fashion-mnist", "cifar10"):
            with pytest.raises(DataError, match="ADVRISK_DATA"):
                data.get(source).function()

    def test_a_data_folder_without_the_file_names_the_file(self, tmp_path, monkeypatch):
        monkeypatch.setenv("ADVRISK_DATA", str(tmp_path))
        with pytest.raises(DataError, match=r"cifar10_test\.npz: there is no such file"):
            data.get("cifar10").function()

    def test_a_half_that_does_not_exist_is_refused(self):
        with pytest.raises(StudyError, match="did you mean 'train'"):
            data.get("mnist").bind({"half": "trian"})


def test_a_dataset_is_checked_again_when_it_is_changed():
    digits = data.get("digits").function()
    with pytest.raises(DataError, match="outside the 3 classes"):
        replace(digits, n_classes=3)


def test_bounds_that_uint8_cannot_have_are_refused(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((2, 4, 4), np.uint8), y=np.arange(2))
    with pytest.raises(DataError, match=r"uint8 becomes \[0, 1\]"):
        npz(tmp_path / "d.npz", bounds=[0, 255])
