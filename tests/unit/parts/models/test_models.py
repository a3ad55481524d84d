import io
import json
import os
import pickle
import sys
import textwrap
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from advrisk.core.errors import ModelError, StudyError
from advrisk.parts.data import Dataset
from advrisk.parts.models import Loaded, checked_model, models
from advrisk.parts.models.small import SmallCnn
from advrisk.parts.models.torch_module import build, from_module, load_weights
from advrisk.testing import toys

# torch 2.13 warns of its own TorchScript, and of its own code when an exported module is called.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)`:FutureWarning"),
]


def load(source, **settings):
    part = models.get(source)
    return part.function(**part.bind(settings))


def dataset(shape=(1, 8, 8), *, n_classes=3, **settings):
    x = np.random.default_rng(0).random((4, *shape), dtype=np.float32)
    return Dataset("toy", x, np.array([0, 1, 2, 0]), n_classes, **settings)


def net(seed=0, *, classes=3, width=4):
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return SmallCnn(size=8, width=width, classes=classes)


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    """A module of the user's on Python's path, forgotten afterwards."""
    name = f"nets_{abs(hash(tmp_path))}"
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(source):
        (tmp_path / f"{name}.py").write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(source))
        return name

    yield write
    sys.modules.pop(name, None)


class TestFactory:
    def test_is_called_with_its_arguments(self):
        module = build("advrisk.parts.models.small:SmallCnn", {"size": 8, "width": 5, "classes": 7})
        assert module(torch.zeros(2, 1, 8, 8)).shape == (2, 7)
        assert module.layers[0].out_channels == 5

    def test_without_weights_is_the_same_every_time_and_leaves_the_global_generator_alone(self):
        before = torch.random.get_rng_state()
        first, second = (build("advrisk.parts.models.small:SmallCnn", {}) for _ in range(2))
        assert torch.equal(torch.random.get_rng_state(), before)
        for one, other in zip(first.parameters(), second.parameters(), strict=True):
            assert torch.equal(one, other)

    @pytest.mark.parametrize(
        ("factory", "args", "message"),
        [
            ("SmallCnn", {}, "must read package.module:name, found 'SmallCnn'"),
            ("advrisk.parts.models.small:", {}, "must read package.module:name"),
            ("no_such_package:Net", {}, "No module named 'no_such_package'"),
            ("advrisk.parts.models.small:SmalCnn", {}, "has no 'SmalCnn'; did you mean 'SmallCnn'"),
            ("advrisk.parts.models.small:SmallCnn", {"depth": 3}, "args {'depth': 3} do not fit: .*'depth'"),
            ("advrisk.parts.models.small:SmallCnn", {"width": "wide"}, "failed with args {'width': 'wide'}"),
            ("builtins:dict", {}, "returned dict; it must return a torch.nn.Module"),
            ("math:pi", {}, "do not fit"),
        ],
    )
    def test_refuses_what_is_no_factory(self, factory, args, message):
        with pytest.raises(ModelError, match=message):
            build(factory, args)

    def test_comes_from_a_module_of_the_user(self, user_module):
        name = user_module("def make(*, classes): return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))")
        model = checked_model("mine", load("torch", factory=f"{name}:make", args={"classes": 3}), dataset())
        assert model.n_classes == 3
        assert model.input_shape == (1, 8, 8)
        assert model.capability == "gradients"

    def test_a_module_that_cannot_import_what_it_needs_says_so(self, user_module):
        name = user_module("import a_package_that_is_not_there")
        with pytest.raises(ModelError, match="a_package_that_is_not_there"):
            build(f"{name}:make", {})


class TestFrozen:
    def test_evaluation_mode_and_no_gradient_to_the_weights(self):
        module = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 3)).train()
        model = checked_model("dropped", from_module(module), dataset())
        assert not model.random
        assert not model.answer.training
        assert not any(parameter.requires_grad for parameter in model.answer.parameters())
        x = toys.images(2).requires_grad_(True)
        model.ask(x).sum().backward()
        assert x.grad.any()

    def test_the_users_own_module_is_left_as_it_is(self):
        module = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).train()
        loaded = from_module(module)
        with torch.no_grad():
            module[1].weight.zero_()
        assert module.training
        assert module[1].weight.requires_grad
        assert loaded.module[1].weight.any()

    def test_a_model_that_answers_differently_each_time_is_marked_random(self):
        class Random(nn.Module):
            def forward(self, x):
                return torch.rand(len(x), 3)

        with torch.random.fork_rng(devices=()):
            assert checked_model("dice", from_module(Random()), dataset()).random

    @pytest.mark.parametrize("place", range(1, 9))
    def test_one_that_answers_with_nothing_at_some_pass_is_refused_or_still_loads(self, place):
        asked = []

        class Moody(nn.Linear):
            def forward(self, x):
                asked.append(len(x))
                return None if len(asked) == place else super().forward(x.flatten(1))

        with suppress(ModelError):  # any other exception would be a traceback for the user
            assert checked_model("moody", from_module(Moody(64, 3)), dataset()).n_classes == 3
        assert asked


class TestWeights:
    @pytest.mark.parametrize("kind", ["safetensors", "pt"])
    def test_are_loaded(self, tmp_path, kind):
        trained = net(seed=5, classes=10, width=16)
        path = tmp_path / f"w.{kind}"
        if kind == "pt":
            torch.save(trained.state_dict(), path)
        else:
            save_file(trained.state_dict(), path, metadata={"train_s": "12.5", "train_samples": "1297"})
        loaded = load("torch", factory="advrisk.parts.models.small:SmallCnn", args={"size": 8}, weights=str(path))
        x = toys.images(20)
        assert torch.equal(loaded.answer(x), trained(x))
        expected = (12.5, 1297) if kind == "safetensors" else (None, None)
        assert (loaded.train_s, loaded.train_samples) == expected

    def test_that_do_not_fit_are_refused_with_names_and_shapes(self, tmp_path):
        save_file(net(width=8).state_dict(), tmp_path / "w.safetensors")
        with pytest.raises(
            ModelError, match=r"do not fit mynets:Plain.*size mismatch for layers.0.weight.*\[8, 1, 3, 3\]"
        ):
            load_weights(net(width=4), tmp_path / "w.safetensors", "mynets:Plain")

    @pytest.mark.parametrize(
        ("content", "missing"), [({}, "Missing key"), ({"more": torch.zeros(1)}, "Unexpected key")]
    )
    def test_with_other_names_are_refused(self, tmp_path, content, missing):
        state = content if not content else net().state_dict() | content
        torch.save(state, tmp_path / "w.pt")
        with pytest.raises(ModelError, match=missing):
            load_weights(net(), tmp_path / "w.pt", "mynets:Plain")

    def test_pickled_objects_are_refused_and_not_run(self, tmp_path):
        torch.save({"layers.0.weight": Trap(tmp_path)}, tmp_path / "w.pt")
        with pytest.raises(ModelError, match="holds more than plain tensors, which is refused"):
            load_weights(net(), tmp_path / "w.pt", "mynets:Plain")

    def test_a_whole_pickled_module_is_refused(self, tmp_path):
        torch.save(net(), tmp_path / "w.pt")
        with pytest.raises(ModelError, match="holds more than plain tensors"):
            load_weights(net(), tmp_path / "w.pt", "mynets:Plain")

    def test_something_that_is_no_state_dict_is_refused(self, tmp_path):
        torch.save([torch.zeros(3)], tmp_path / "w.pt")
        with pytest.raises(ModelError, match="do not fit mynets:Plain"):
            load_weights(net(), tmp_path / "w.pt", "mynets:Plain")

    @pytest.mark.parametrize("name", ["w.safetensors", "w.pt"])
    @pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"\x00" * 64])
    def test_files_of_another_kind_are_refused(self, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match=r"w\.(safetensors|pt): "):
            load_weights(net(), tmp_path / name, "mynets:Plain")

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(ModelError, match=r"w\.pt: there is no such file"):
            load_weights(net(), tmp_path / "w.pt", "mynets:Plain")


class Trap:
    """Pickled, it makes a folder when it is loaded."""

    def __init__(self, tmp_path):
        self.trace = str(tmp_path / "sprung")

    def __reduce__(self):
        return (os.mkdir, (self.trace,))


@pytest.fixture(autouse=True)
def no_trap_sprung(tmp_path):
    yield
    assert not (tmp_path / "sprung").exists()


class TestTorchscript:
    @pytest.fixture
    def script(self, tmp_path):
        torch.jit.save(torch.jit.script(net()), tmp_path / "net.pt")
        return tmp_path / "net.pt"

    def test_answers_as_the_module_did(self, script):
        model = checked_model("script", load("torchscript", path=str(script)), dataset())
        x = toys.images(20)
        torch.testing.assert_close(model.ask(x), net()(x))
        x.requires_grad_(True)
        assert torch.autograd.grad(model.ask(x).sum(), x)[0].any()
        assert not any(parameter.requires_grad for parameter in model.answer.parameters())

    def test_the_same_file_is_the_same_model(self, script):
        first, second = (checked_model("a", load("torchscript", path=str(script)), dataset()) for _ in range(2))
        assert first.digest == second.digest

    @pytest.mark.parametrize("content", [b"", b"nothing of the kind"])
    def test_another_file_is_refused(self, tmp_path, content):
        (tmp_path / "net.pt").write_bytes(content)
        with pytest.raises(ModelError, match=r"net\.pt: cannot be read as TorchScript"):
            load("torchscript", path=str(tmp_path / "net.pt"))

    def test_a_state_dict_is_no_torchscript(self, tmp_path):
        torch.save(net().state_dict(), tmp_path / "net.pt")
        with pytest.raises(ModelError, match="cannot be read as TorchScript"):
            load("torchscript", path=str(tmp_path / "net.pt"))


class TestExport:
    @pytest.fixture
    def exported(self, tmp_path):
        dynamic = ({0: torch.export.Dim("batch")},)
        torch.export.save(torch.export.export(net(), (toys.images(2),), dynamic_shapes=dynamic), tmp_path / "net.pt2")
        return tmp_path / "net.pt2"

    def test_answers_as_the_module_did(self, exported):
        model = checked_model("exported", load("torch-export", path=str(exported)), dataset())
        for n in (1, 16, 40):
            x = toys.images(n)
            torch.testing.assert_close(model.ask(x), net()(x))
        x.requires_grad_(True)
        assert torch.autograd.grad(model.ask(x).sum(), x)[0].any()
        assert not any(parameter.requires_grad for parameter in model.answer.parameters())

    @pytest.mark.parametrize("batch", [1, 2, 16])
    def test_a_fixed_batch_is_refused_with_the_remedy(self, tmp_path, batch):
        torch.export.save(torch.export.export(net(), (toys.images(batch),)), tmp_path / "net.pt2")
        with pytest.raises(ModelError, match=f"exported for batches of exactly {batch}; .*dynamic_shapes"):
            load("torch-export", path=str(tmp_path / "net.pt2"))

    @pytest.mark.parametrize("content", [b"", b"nothing of the kind"])
    def test_another_file_is_refused(self, tmp_path, content):
        (tmp_path / "net.pt2").write_bytes(content)
        with pytest.raises(ModelError, match=r"net\.pt2: cannot be read as a torch\.export file"):
            load("torch-export", path=str(tmp_path / "net.pt2"))

    def test_weights_are_no_export(self, tmp_path):
        torch.save(net().state_dict(), tmp_path / "net.pt2")
        with pytest.raises(ModelError, match=r"which torch\.export\.save does not write"):
            load("torch-export", path=str(tmp_path / "net.pt2"))

    def test_a_pickle_instead_of_sample_inputs_is_not_run(self, exported, tmp_path):
        buffer = io.BytesIO()
        torch.save(((Trap(tmp_path),), {}), buffer)
        replace_members(exported, {"data/sample_inputs/model.pt": buffer.getvalue()})
        with pytest.raises(ModelError, match="holds more than plain tensors"):
            load("torch-export", path=str(exported))

    def test_a_pickle_instead_of_a_weight_is_not_run(self, exported, tmp_path):
        buffer = io.BytesIO()
        torch.save(Trap(tmp_path), buffer)
        place = "data/weights/model_weights_config.json"
        with zipfile.ZipFile(exported) as archive:
            config = json.loads(archive.read(f"net/{place}"))
        first = next(iter(config["config"].values()))
        first["use_pickle"] = True
        weight = f"data/weights/{first['path_name']}"
        replace_members(exported, {place: json.dumps(config).encode(), weight: buffer.getvalue()})
        with pytest.raises(ModelError, match="holds more than plain tensors"):
            load("torch-export", path=str(exported))

    @pytest.mark.parametrize("member", ["data/constants/opaque_obj_0", "data/aotinductor/model/a.so"])
    def test_members_that_could_run_are_refused(self, exported, tmp_path, member):
        replace_members(exported, {member: pickle.dumps(Trap(tmp_path))})
        with pytest.raises(ModelError, match=f"holds 'net/{member}'"):
            load("torch-export", path=str(exported))

    def test_the_switch_of_torch_is_put_back(self, exported, monkeypatch):
        monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0")
        load("torch-export", path=str(exported))
        assert os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] == "0"


def replace_members(path, members):
    """Write the archive again, with some members replaced or added."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content |= {f"net/{name}": value for name, value in members.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in content.items():
            archive.writestr(name, value)


class TestFit:
    def test_inputs_of_another_shape_are_refused_with_both_shapes(self):
        loaded = from_module(net(), input_shape=(1, 28, 28))
        with pytest.raises(ModelError, match=r"takes inputs of shape \(1, 28, 28\), but toy has \(1, 8, 8\)"):
            checked_model("plain", loaded, dataset())

    def test_unstated_shapes_are_found_out_by_asking(self):
        with pytest.raises(ModelError, match=r"inputs of toy, of shape \(3, 8, 8\), its first layer takes 1 channels"):
            checked_model("plain", from_module(net()), dataset((3, 8, 8)))
        with pytest.raises(ModelError, match=r"of shape \(12,\), its first layer takes 64 features"):
            checked_model("flat", from_module(nn.Sequential(nn.Linear(64, 3))), dataset((12,)))

    def test_labels_that_start_at_one_are_named(self):
        data = Dataset("toy", dataset().x, np.array([1, 2, 3, 1]), 4)
        with pytest.raises(ModelError, match=r"has 4; labels start at 0, and those of toy at 1: subtract 1$"):
            checked_model("plain", from_module(net()), data)

    @pytest.mark.parametrize(
        ("loaded", "message"),
        [
            (from_module(net(classes=2)), "knows 2 classes, but toy has 3"),
            (from_module(net(), classes=4), "states 4 classes, but answers with 3"),
            (from_module(net(), bounds=(0.0, 255.0)), r"inputs within \(0.0, 255.0\), but toy has \(0.0, 1.0\)"),
            (Loaded(lambda x: x, "images"), r"answered with shape \(8, 1, 8, 8\); it must return rows × classes"),
            (Loaded(lambda x: (x, x), "pair"), "answered with tuple; it must return a tensor"),
            (Loaded(lambda x: torch.zeros(3), "one"), r"answered 8 inputs with shape \(3,\)"),
            (Loaded(lambda x: torch.zeros(1, 3), "one"), r"answered 8 inputs with shape \(1, 3\)"),
            (Loaded(lambda x: torch.tensor(3.0), "number"), r"answered 8 inputs with shape \(\)"),
            (Loaded(lambda x: torch.full((len(x), 3), torch.nan), "nan"), "numbers that are not finite"),
            (Loaded(lambda x, more: x, "two arguments"), "cannot take the inputs of toy"),
            (
                Loaded(lambda x: torch.zeros(len(x), 3), "labels", "labels", n_classes=3),
                r"gives labels, one whole number for each input, but answered with float32 of shape .*8, 3",
            ),
            (Loaded(lambda x: torch.zeros(len(x)), "labels", "labels"), "but answered with float32 of shape"),
            (Loaded(lambda x: torch.full((len(x),), 14), "labels", "labels"), "answered with class 14; it knows"),
            (Loaded(lambda x: torch.full((len(x),), -1), "labels", "labels", n_classes=20), "answered with class -1"),
            (
                Loaded(lambda x: torch.full((len(x), 10), 0.1), "scores", "scores"),
                r"answered with probabilities; scores are their logarithms: torch.log",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused(self, loaded, message):
        with pytest.raises(ModelError, match=f"plain .*{message}"):
            checked_model("plain", loaded, dataset())

    def test_more_classes_than_the_data_shows_are_fine(self):
        assert checked_model("plain", from_module(net(classes=12)), dataset()).n_classes == 12

    @pytest.mark.parametrize("capability", ["scores", "labels"])
    def test_lesser_models_are_admitted(self, capability):
        exact = net()

        def answer(x):
            scores = exact(x).detach().log_softmax(1)
            return scores if capability == "scores" else scores.argmax(1)

        model = checked_model("remote", Loaded(answer, "v1", capability, n_classes=3), dataset())
        assert model.capability == capability
        assert model.min_rows == 1
        assert len(model.ask(toys.images(1))) == 1

    def test_bounds_are_those_of_the_data(self):
        table = dataset((5,), low=np.array([-2, 0, 0, 0, 0.0]), high=np.array([1, 1, 1, 1, 9.0]))
        model = checked_model("flat", from_module(nn.Sequential(nn.Linear(5, 3))), table)
        assert model.bounds == (-2, 9)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"mean": (0.5,)}, "mean and std go together"),
            ({"mean": (0.5, 0.5), "std": (1.0,)}, "one entry per channel"),
            ({"mean": (0.5,), "std": (0.0,)}, "std above 0"),
            ({"bounds": (0.0,)}, r"bounds must be \[low, high\]"),
        ],
    )
    def test_impossible_settings_are_refused(self, settings, message):
        with pytest.raises(ModelError, match=message):
            from_module(net(), **settings)

    def test_a_setting_that_does_not_exist_is_refused(self):
        with pytest.raises(StudyError, match="did you mean 'weights'"):
            load("torch", factory="a:b", wieghts="w.pt")


class TestNormalisation:
    @pytest.mark.parametrize(
        ("shape", "mean", "std"),
        [
            ((3, 6, 6), (0.5, 0.4, 0.3), (0.2, 0.3, 0.1)),
            ((3, 6, 6), (0.5,), (0.2,)),
            ((4,), (1, 2, 3, 4), (1, 1, 2, 2)),
        ],
    )
    def test_happens_inside_the_model(self, shape, mean, std):
        module = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 3))
        model = checked_model("plain", from_module(module, mean=mean, std=std), dataset(shape))
        x = np.random.default_rng(1).random((20, *shape), dtype=np.float32)
        statistic = (-1, *[1] * (len(shape) - 1))
        normalised = (x - np.reshape(mean, statistic)) / np.reshape(std, statistic)
        torch.testing.assert_close(model.ask(torch.from_numpy(x)), module(torch.from_numpy(normalised).float()))
        assert model.bounds == (0, 1)

    def test_one_entry_per_channel_is_meant(self):
        """Three entries for gray images would quietly make three channels of one."""
        module = nn.Sequential(nn.Conv2d(3, 3, 8), nn.Flatten())
        with pytest.raises(
            ModelError, match=r"^plain: `mean` and `std` have 3 entries, and the inputs 1 channel; give"
        ):
            checked_model("plain", from_module(module, mean=(0.1, 0.2, 0.3), std=(1, 1, 1)), dataset())


class TestDigest:
    @staticmethod
    def of(module, **settings):
        return checked_model("any", from_module(module, **settings), dataset()).digest

    def test_equal_models_have_equal_digests(self):
        assert self.of(net()) == self.of(net())
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(123)  # nothing random may enter
            assert self.of(net()) == self.of(net())

    def test_the_name_and_training_notes_do_not_matter(self, tmp_path):
        save_file(net().state_dict(), tmp_path / "a.safetensors")
        save_file(net().state_dict(), tmp_path / "b.safetensors", metadata={"train_s": "3", "train_samples": "5"})
        settings = {"factory": "advrisk.parts.models.small:SmallCnn", "args": {"size": 8, "width": 4, "classes": 3}}
        loaded = [load("torch", weights=str(tmp_path / f"{name}.safetensors"), **settings) for name in "ab"]
        digests = {checked_model(name, model, dataset()).digest for name, model in zip("xy", loaded, strict=True)}
        assert len(digests) == 1

    def test_a_single_weight_matters(self):
        changed = net()
        with torch.no_grad():
            changed.layers[0].bias[0] += 1e-6
        assert self.of(changed) != self.of(net())

    def test_the_architecture_matters_even_if_the_weights_are_the_same(self):
        flat = nn.Linear(64, 3)
        plain = nn.Sequential(nn.Flatten(), flat, nn.ReLU())
        other = nn.Sequential(nn.Flatten(), flat, nn.ReLU6())
        assert self.of(plain) != self.of(other)

    def test_normalisation_matters(self):
        digests = {
            self.of(net()),
            self.of(net(), mean=(0.5,), std=(1.0,)),
            self.of(net(), mean=(0.4,), std=(1.0,)),
            self.of(net(), mean=(0.5,), std=(0.9,)),
        }
        assert len(digests) == 4

    def test_the_code_of_forward_matters(self):
        """Two classes of the same name, layers and weights, that compute different things."""

        def make(sign):
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(64, 3)

                def forward(self, x):
                    return sign * self.layer(x.flatten(1))

            with torch.random.fork_rng(devices=()):
                torch.manual_seed(0)
                return Net()

        assert self.of(make(1)) == self.of(make(1))
        assert self.of(make(1)) != self.of(make(-1))

    def test_a_module_that_cannot_be_made_float64_still_has_one(self):
        class Fixed(nn.Module):
            def forward(self, x):
                return (x.flatten(1) @ torch.ones(64, 3)) * torch.tensor([1.0, 2.0, 3.0])

        assert self.of(Fixed()) == self.of(Fixed())


def test_nothing_here_hides_warnings():
    """The filters above are narrow: any other warning still fails a test."""
    with pytest.raises(UserWarning, match="unheard of"):
        warnings.warn("unheard of", UserWarning, stacklevel=1)
