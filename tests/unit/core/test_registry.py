"""Parts: registered by name, bound by signature."""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Interval, Le, Lt, MultipleOf

from advrisk.core import registry as registry_module
from advrisk.core.errors import RegistryError, StudyError
from advrisk.core.registry import REQUIRED, ByName, Part, Registry


def bend(
    probe: object,
    plain: int = 3,
    *,
    size: float,
    steps: Annotated[int, Ge(1), Le(100)] = 40,
    rate: Annotated[float, Gt(0)] | None = None,
    share: Annotated[float, Interval(ge=0, lt=1)] = 0.5,
    mode: Literal["fast", "exact"] = "fast",
    start: bool = True,
    widths: tuple[int, ...] = (1, 2),
    path: Path | None = None,
    label: int | str = 0,
    count: Annotated[int, Ge(1)] | Literal["all"] = 10,
    names: Mapping[str, Any] | None = None,
    extra: Any = None,
) -> None:
    """Bend the input.

    More words.
    """


@pytest.fixture
def parts() -> Registry[str]:
    registry: Registry[str] = Registry("attacks")
    registry.register("bend", traits="soft", version=3)(bend)
    return registry


@pytest.fixture
def part(parts: Registry[str]) -> Part[str]:
    return parts.get("bend")


DEFAULTS: dict[str, Any] = {
    "size": 1.0,
    "steps": 40,
    "rate": None,
    "share": 0.5,
    "mode": "fast",
    "start": True,
    "widths": (1, 2),
    "path": None,
    "label": 0,
    "count": 10,
    "names": None,
    "extra": None,
}


def test_a_part_says_everything_about_itself(part: Part[str]) -> None:
    assert (part.kind, part.name, part.version, part.traits) == ("attacks", "bend", 3, "soft")
    assert part.function is bend
    assert part.summary == "Bend the input."


def test_a_part_without_docstring_has_an_empty_summary(parts: Registry[str]) -> None:
    parts.register("mute", traits="")(lambda: None)
    assert parts.get("mute").summary == ""
    assert parts.get("mute").version == 1


@pytest.mark.parametrize(
    ("docstring", "summary"),
    [
        ("Bend it\nvery far.\n\nMore.", "Bend it very far."),
        (
            "Bend it, with z downwards:\n\nz ← z + 1;\nthen rest.\n\nMore.",
            "Bend it, with z downwards: z ← z + 1; then rest.",
        ),
        ("Bend it:", "Bend it:"),
    ],
)
def test_a_summary_is_never_cut_within_a_sentence(parts: Registry[str], docstring: str, summary: str) -> None:
    def twist() -> None: ...

    twist.__doc__ = docstring
    parts.register("twist", traits="")(twist)
    assert parts.get("twist").summary == summary


def test_the_decorated_function_stays_itself(parts: Registry[str]) -> None:
    def twist() -> None: ...

    assert parts.register("twist", traits="")(twist) is twist


def test_parameters_are_the_keyword_only_arguments(part: Part[str]) -> None:
    assert list(part.parameters) == list(DEFAULTS)
    assert part.parameters["size"].required
    assert part.parameters["size"].default is REQUIRED
    assert not part.parameters["rate"].required


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("size", "size: float"),
        ("steps", "steps: int = 40, at least 1 and at most 100"),
        ("rate", "rate: float | None = None, more than 0"),
        ("share", "share: float = 0.5, at least 0 and less than 1"),
        ("count", "count: int | Literal['all'] = 10, at least 1"),
        ("mode", "mode: Literal['fast', 'exact'] = 'fast'"),
        ("widths", "widths: tuple[int, ...] = (1, 2)"),
        ("path", "path: Path | None = None"),
        ("names", "names: Mapping[str, Any] | None = None"),
    ],
)
def test_a_parameter_reads_as_in_a_signature(part: Part[str], name: str, shown: str) -> None:
    assert part.parameters[name].describe() == shown


def test_defaults_are_filled_in_and_recorded(part: Part[str]) -> None:
    assert part.bind({"size": 1}) == DEFAULTS
    assert list(part.bind({"steps": 2, "size": 1})) == list(DEFAULTS), "in the order of the signature"


@pytest.mark.parametrize(
    ("name", "given", "bound"),
    [
        ("size", "8/255", 8 / 255),
        ("size", 2, 2.0),
        ("rate", "1e-3", 0.001),
        ("rate", None, None),
        ("steps", 1, 1),
        ("steps", 100, 100),
        ("share", 0, 0.0),
        ("mode", "exact", "exact"),
        ("start", False, False),
        ("widths", [3, 4, 5], (3, 4, 5)),
        ("widths", [], ()),
        ("label", "seven", "seven"),
        ("label", 7, 7),
        ("count", 1, 1),
        ("count", "all", "all"),
        ("extra", {"any": ["thing"]}, {"any": ["thing"]}),
    ],
)
def test_values_are_turned_into_the_annotated_type(part: Part[str], name: str, given: Any, bound: Any) -> None:
    value = part.bind({"size": 1, name: given})[name]
    assert value == bound
    assert type(value) is type(bound)


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        ("size", "8/0", "bend.size: '8/0' divides by zero"),
        ("size", True, "bend.size: a number is needed, found True"),
        ("size", None, "bend.size: a number or a fraction such as 8/255 is needed, found None"),
        ("steps", 0, "bend.steps: must be at least 1, found 0"),
        ("steps", 101, "bend.steps: must be at most 100, found 101"),
        ("steps", 2.5, "bend.steps: a whole number is needed, found 2.5"),
        ("steps", True, "bend.steps: a whole number is needed, found True"),
        ("steps", "10", "bend.steps: a whole number is needed, found '10'"),
        ("steps", None, "bend.steps: a whole number is needed, found None"),
        ("count", "lots", "bend.count: a whole number of at least 1 or 'all' is needed, found 'lots'"),
        ("count", 0, "bend.count: a whole number of at least 1 or 'all' is needed, found 0"),
        ("count", None, "bend.count: a whole number of at least 1 or 'all' is needed, found None"),
        ("rate", 0, "bend.rate: must be more than 0, found 0.0"),
        ("rate", "fast", "found 'fast'"),
        ("share", 1, "bend.share: must be less than 1, found 1.0"),
        ("share", -0.1, "bend.share: must be at least 0, found -0.1"),
        ("mode", "exat", "bend.mode: found 'exat'; did you mean 'exact'?"),
        ("mode", ["exact"], "bend.mode: found ['exact']; "),
        ("start", 1, "bend.start: true or false is needed, found 1"),
        ("start", "yes", "bend.start: true or false is needed, found 'yes'"),
        ("widths", 3, "bend.widths: a list is needed, found 3"),
        ("widths", [1, "b"], "bend.widths: a whole number is needed, found 'b'"),
        ("label", 1.5, "bend.label: a whole number or text is needed, found 1.5"),
        ("path", 3, "bend.path: a path is needed, found 3"),
    ],
)
def test_wrong_values_are_refused_by_name(part: Part[str], name: str, given: Any, complaint: str) -> None:
    with pytest.raises(StudyError) as caught:
        part.bind({"size": 1, name: given})
    assert complaint in str(caught.value)


def test_limits_hold_on_the_side_that_is_stated() -> None:
    def lean(*, under: Annotated[float, Lt(1)] = 0) -> None: ...

    part = Part("attacks", "lean", lean, 1, None)
    assert part.bind({"under": 0.999})["under"] == 0.999
    with pytest.raises(StudyError, match="must be less than 1, found 1"):
        part.bind({"under": 1})


def test_a_number_may_have_to_be_a_multiple() -> None:
    def march(*, pairs: Annotated[int, MultipleOf(2)] = 2) -> None: ...

    part = Part("attacks", "march", march, 1, None)
    assert part.bind({"pairs": 6})["pairs"] == 6
    with pytest.raises(StudyError, match="must be a multiple of 2, found 7"):
        part.bind({"pairs": 7})


def test_an_unknown_parameter_is_refused_with_the_nearest_known_name(part: Part[str]) -> None:
    with pytest.raises(StudyError) as caught:
        part.bind({"size": 1, "stepz": 10})
    assert str(caught.value) == "bend has no parameter 'stepz'; did you mean 'steps'?"


def test_the_nearest_name_may_be_a_key_that_stands_beside_the_parameters(part: Part[str]) -> None:
    with pytest.raises(StudyError, match="'repeat'; did you mean 'repeats'"):
        part.bind({"size": 1, "repeat": 3}, beside=["repeats"])
    with pytest.raises(StudyError, match="has no parameter 'repeats'"):
        part.bind({"size": 1, "repeats": 3}, beside=["repeats"])


@pytest.mark.parametrize("positional", ["probe", "plain"])
def test_what_the_runner_hands_over_is_no_parameter(part: Part[str], positional: str) -> None:
    with pytest.raises(StudyError, match=f"has no parameter '{positional}'"):
        part.bind({"size": 1, positional: 1})


def test_a_missing_parameter_is_named_with_its_type(part: Part[str]) -> None:
    with pytest.raises(StudyError, match=r"^bend needs size: float$"):
        part.bind({})


def test_relative_paths_are_meant_against_the_given_folder(part: Part[str], tmp_path: Path) -> None:
    assert part.bind({"size": 1, "path": "a/../b.npz"}, folder=tmp_path)["path"] == tmp_path.resolve() / "b.npz"
    assert part.bind({"size": 1, "path": "/x/y"}, folder=tmp_path)["path"] == Path("/x/y")
    assert part.bind({"size": 1, "path": "~/y"}, folder=tmp_path)["path"] == Path.home().resolve() / "y"


@pytest.mark.parametrize("name", ["", "Bend", "bend_it", "-bend", "bend-", "bend--it", "bend it", "bénd", "bend\n"])
def test_a_name_must_be_kebab_case(parts: Registry[str], name: str) -> None:
    with pytest.raises(RegistryError, match="is not a kebab-case name"):
        parts.register(name, traits="")


def test_a_name_is_given_once(parts: Registry[str]) -> None:
    with pytest.raises(RegistryError, match="attacks already has a part called 'bend'"):
        parts.register("bend", traits="")(lambda: None)
    assert parts.get("bend").function is bend


def test_an_unknown_name_is_refused_with_the_nearest_known_one(parts: Registry[str]) -> None:
    with pytest.raises(RegistryError) as caught:
        parts.get("bent")
    assert str(caught.value) == "no attacks called 'bent'; did you mean 'bend'?"


def test_parts_come_in_the_order_of_their_names(parts: Registry[str]) -> None:
    for name in ("twist", "axe"):
        parts.register(name, traits="")(lambda: None)
    assert [part.name for part in parts] == ["axe", "bend", "twist"]
    assert "axe" in parts
    assert "ax" not in parts
    assert 3 not in parts


@pytest.mark.parametrize(
    "look",
    [
        lambda registry: registry.get("brought").name == "brought",
        lambda registry: "brought" in registry,
        lambda registry: "brought" in [part.name for part in registry],
    ],
)
def test_installed_packages_bring_parts_by_entry_point(
    parts: Registry[str], monkeypatch: pytest.MonkeyPatch, look: Callable[[Registry[str]], bool]
) -> None:
    asked: list[str] = []

    class Brought(EntryPoint):
        def load(self) -> Any:
            return parts.register("brought", traits="")(bend)

    def found(*, group: str) -> list[EntryPoint]:
        asked.append(group)
        return [Brought("brought", "somewhere:bend", group)]

    monkeypatch.setattr(registry_module, "entry_points", found)
    assert look(parts)
    assert look(parts)
    assert asked == ["advrisk.attacks"], "entry points of this kind are read, once"


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        (lambda: 1 / 0, "which cannot be loaded: ZeroDivisionError: division by zero; repair or uninstall"),
        (lambda: len, "which is not registered; repair or uninstall"),
    ],
)
def test_a_package_that_brings_no_part_is_named(
    parts: Registry[str], monkeypatch: pytest.MonkeyPatch, load: Callable[[], Any], fault: str
) -> None:
    class Broken(EntryPoint):
        def load(self) -> Any:
            return load()

    broken = Broken("bad", "somewhere:bad", "advrisk.attacks")
    monkeypatch.setattr(registry_module, "entry_points", lambda **_: [broken])
    for _ in range(2):
        with pytest.raises(RegistryError, match=f"'bad' of advrisk.attacks names somewhere:bad, {fault}"):
            parts.get("bad")


Thing = Annotated[object, ByName("thing")]


def borrow(*, one: Thing, many: tuple[Thing, ...] = (), perhaps: Thing | None = None, size: int = 1) -> None:
    """Borrow other things."""


class TestThingsGivenByName:
    part = Part("borrowers", "borrow", borrow, 1, None)

    def test_a_file_gives_names(self) -> None:
        assert self.part.bind({"one": "a", "many": ["b", "c"]}) == {
            "one": "a",
            "many": ("b", "c"),
            "perhaps": None,
            "size": 1,
        }

    def test_it_is_known_which_parameters_they_are(self) -> None:
        assert [name for name, one in self.part.parameters.items() if one.by_name] == ["one", "many", "perhaps"]

    def test_they_are_described_as_names(self) -> None:
        assert [one.describe() for one in self.part.parameters.values()] == [
            "one: name of a thing",
            "many: list, each name of a thing = ()",
            "perhaps: name of a thing | None = None",
            "size: int = 1",
        ]

    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            ({"one": 3}, "borrow.one: the name of a thing is needed, found 3"),
            ({"one": ["a"]}, r"borrow.one: the name of a thing is needed, found \['a'\]"),
            ({"one": "a", "many": "b"}, "borrow.many: a list is needed, found 'b'"),
            ({"one": "a", "many": ["b", None]}, "borrow.many: the name of a thing is needed, found None"),
            ({}, "borrow needs one: name of a thing"),
        ],
    )
    def test_anything_else_is_refused(self, given: dict[str, Any], complaint: str) -> None:
        with pytest.raises(StudyError, match=complaint):
            self.part.bind(given)
