"""Reading YAML: what is not plain is refused, and every value knows its line."""

import codecs
from pathlib import Path

import pytest

from advrisk.core.errors import StudyError
from advrisk.study.source import MAX_BYTES, MAX_DEPTH, MAX_NODES, Source, field_name, read_yaml

TEXT = """\
name: signs
models:
  plain: &common
    source: torch
  hardened:
    <<: *common
    weights: h.safetensors

arms:
  - attack: pgd
    eps: [8/255,
          0.1]
  - {corruption: fog}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "study.yaml"


def refusal(file: Path, content: str | bytes) -> str:
    """What is said of a file, without the file's name, which must come first."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(StudyError) as caught:
        read_yaml(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:")
    return message.removeprefix(f"{file}:").strip()


def test_the_content_is_plain_yaml(file: Path) -> None:
    file.write_text(TEXT)
    data, _ = read_yaml(file)
    assert data == {
        "name": "signs",
        "models": {"plain": {"source": "torch"}, "hardened": {"source": "torch", "weights": "h.safetensors"}},
        "arms": [{"attack": "pgd", "eps": ["8/255", 0.1]}, {"corruption": "fog"}],
    }


@pytest.mark.parametrize(
    ("loc", "line"),
    [
        ((), 1),
        (("name",), 1),
        (("models",), 2),
        (("models", "plain", "source"), 4),
        (("models", "hardened"), 5),
        (("models", "hardened", "weights"), 7),
        (("arms",), 9),
        (("arms", 0), 10),
        (("arms", 0, "eps"), 11),
        (("arms", 0, "eps", 1), 12),
        (("arms", 1, "corruption"), 13),
    ],
)
def test_every_field_knows_its_line(file: Path, loc: tuple[str | int, ...], line: int) -> None:
    file.write_text(TEXT)
    _, source = read_yaml(file)
    assert str(source.error(loc, "no good")).startswith(f"{file}:{line}: ")


def test_a_field_that_is_not_there_is_blamed_on_what_should_hold_it(file: Path) -> None:
    file.write_text(TEXT)
    _, source = read_yaml(file)
    assert str(source.error(("arms", 1, "level"), "is missing")) == f"{file}:13: arms[1].level: is missing"
    assert str(source.error(("data",), "is missing")) == f"{file}:1: data: is missing"


def test_without_a_file_the_field_is_named_alone() -> None:
    assert str(Source().error(("arms", 0, "eps"), "no good")) == "<study>: arms[0].eps: no good"
    assert str(Source().error((), "no good")) == "<study>: no good"


def test_field_names_read_as_people_write_them() -> None:
    assert field_name(()) == ""
    assert field_name(("arms",)) == "arms"
    assert field_name(("arms", 1, "eps", 0)) == "arms[1].eps[0]"


def test_relative_paths_are_meant_against_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(file)
    assert source.resolve("data/x.npz") == file.parent.resolve() / "data" / "x.npz"
    assert source.resolve("../x.npz") == file.parent.parent.resolve() / "x.npz"
    assert source.resolve("/x.npz") == Path("/x.npz")
    assert source.resolve("~/x.npz") == Path.home().resolve() / "x.npz"
    monkeypatch.chdir(file.parent)
    assert Source().resolve("x.npz") == file.parent.resolve() / "x.npz"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no such file; `advrisk init "):
        read_yaml(tmp_path / "none.yaml")


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="is a folder; name a YAML file"):
        read_yaml(tmp_path)


def test_a_path_through_a_file(file: Path) -> None:
    file.write_text(TEXT)
    with pytest.raises(StudyError, match="Not a directory"):
        read_yaml(file / "study.yaml")


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n", "---\n", "- a\n- b\n", "just text", "7", "null"])
def test_anything_but_a_mapping(file: Path, content: str) -> None:
    assert "must be a mapping of keys to values; `advrisk init`" in refusal(file, content)


@pytest.mark.parametrize(
    ("content", "place"),
    [(b"name: caf\xe9\n", "at byte 9"), (b"\xff\xfen\0a\0", "at byte 0"), (b"name: \xed\xa0\x80", "at byte 6")],
)
def test_text_that_is_not_utf_8(file: Path, content: bytes, place: str) -> None:
    assert refusal(file, content).startswith("is not UTF-8 text (")
    assert place in refusal(file, content)


def test_a_byte_order_mark_is_harmless(file: Path) -> None:
    file.write_bytes(codecs.BOM_UTF8 + "name: é\n".encode())
    assert read_yaml(file)[0] == {"name": "é"}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("name: a\nmodels: {\n", "3: not valid YAML: "),
        ("name: a\n\tseed: 1\n", "2: not valid YAML: "),
        ("name: a\nx: @\n", "2: not valid YAML: "),
        ("name: *nobody\n", "1: not valid YAML: found undefined alias 'nobody'"),
        ("name: a\n---\nname: b\n", "2: not valid YAML: "),
        ("a: 1\nb: \x01\n", "not valid YAML: unacceptable character #x0001"),
        ("a: 1\nb: =\n", "2: not valid YAML: could not determine a constructor"),
        ("a: 1\nb: {<<: 3}\n", "2: not valid YAML: expected a mapping"),
    ],
)
def test_what_is_not_yaml(file: Path, content: str, complaint: str) -> None:
    assert refusal(file, content).startswith(complaint)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", "3: a: found this key twice; remove one"),
        ("m:\n  x: {k: 1,\n      k: 2}\n", "3: m.x.k: found this key twice; remove one"),
        ("l:\n- {k: 1}\n- {k: 1, k: 1}\n", "3: l[1].k: found this key twice; remove one"),
        ("a: &x {k: 1}\nb:\n  <<: *x\n  <<: *x\n", "4: b.<<: found this key twice; remove one"),
    ],
)
def test_a_key_that_stands_twice(file: Path, content: str, complaint: str) -> None:
    assert refusal(file, content) == complaint


@pytest.mark.parametrize("word", ["on", "Off", "yes", "no", "true"])
def test_a_key_that_yaml_takes_for_a_truth_value_must_be_quoted(file: Path, word: str) -> None:
    complaint = f"2: a.{word}: YAML reads the key {word} as a truth value; quote it: '{word}'"
    assert refusal(file, f"a:\n  {word}: 1\n") == complaint
    file.write_text(f"a:\n  '{word}': on\n")
    assert read_yaml(file)[0] == {"a": {word: True}}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("a: 1\nb: !!python/object/apply:os.system ['touch owned']\n", "2: b: "),
        ("a: 1\nb: !!python/name:os.system\n", "2: b: "),
        ("a: 1\nb: [1, !!python/tuple [1]]\n", "2: b[1]: "),
        ("a: 1\n!!python/name:os.system b: 1\n", "2: b: "),
        ("a: 1\nb: !secret x\n", "2: b: "),
        ("a: 1\nb: !!set {x}\n", "2: b: "),
        ("a: 1\nb: !!binary aGVsbG8=\n", "2: b: "),
        ("a: 1\nb: !!omap [x: 1]\n", "2: b: "),
        ("a: 1\nb: !!bool {=: x}\n", "2: b: "),
        ("a: 1\nb: !!str [x]\n", "2: b: "),
    ],
)
def test_tags_that_are_not_plain(file: Path, content: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    message = refusal(file, content)
    assert message.startswith(place)
    assert message.endswith("is not allowed; write a plain value")
    assert not (file.parent / "owned").exists()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("2024-13-45", "timestamp"),
        ("0b_", "int"),
        ("!!int seven", "int"),
        ("!!float x", "float"),
        ("!!bool maybe", "bool"),
        ("0x" + "f" * 5_000, "int"),  # without the limit on digits that decimal numbers have
        (":".join(["59"] * 3_000), "int"),
        ("!!timestamp soon", "timestamp"),
        ("9" * 5000, "int"),
    ],
)
def test_what_looks_like_a_number_or_date_but_is_none(file: Path, value: str, kind: str) -> None:
    shown = repr(value.split()[-1][:40])
    complaint = f"found {shown}, which cannot be read as {kind}; quote it if text is meant"
    assert refusal(file, f"a: 1\nb: {value}\n") == f"2: b: {complaint}"
    assert refusal(file, f"a: 1\nb:\n  - {value}\n") == f"3: b[0]: {complaint}"
    if not value.startswith("9"):  # such a long key is refused earlier
        assert refusal(file, f"a: 1\n? {value}\n: 2\n").startswith("2: ")


@pytest.mark.parametrize("key", ["[a, b]", "{a: b}"])
def test_a_key_that_is_no_text(file: Path, key: str) -> None:
    assert refusal(file, f"m:\n  ? {key}\n  : 1\n") == "2: m: a key must be plain text"


def nested(depth: int) -> str:
    return "a: " + "[" * depth + "]" * depth


def test_nesting_is_limited(file: Path) -> None:
    file.write_text(nested(MAX_DEPTH))
    read_yaml(file)
    assert refusal(file, nested(MAX_DEPTH + 1)) == f"1: nested deeper than {MAX_DEPTH} levels"
    assert f"nested deeper than {MAX_DEPTH} levels" in refusal(file, nested(100_000))
    assert f"nested deeper than {MAX_DEPTH} levels" in refusal(file, "a: " + "[" * 100_000)


@pytest.mark.parametrize("content", ["a: &a [*a]\n", "a: &a {b: *a}\n", "&a x: *a\nb: &b {<<: *b}\n"])
def test_what_holds_itself_is_too_deep(file: Path, content: str) -> None:
    assert "nested deeper than" in refusal(file, content)


def test_an_alias_bomb_does_not_go_off(file: Path) -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert refusal(file, "\n".join(lines)) == f"1: more than {MAX_NODES} values once its aliases are expanded"


def test_a_merge_bomb_does_not_go_off(file: Path) -> None:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 12)]
    assert "once its aliases are expanded" in refusal(file, "\n".join(lines))


def test_a_harmless_alias_is_read(file: Path) -> None:
    file.write_text("a: &a [1, 2]\nb: *a\n")
    assert read_yaml(file)[0] == {"a": [1, 2], "b": [1, 2]}


def test_a_large_file_is_no_study(file: Path) -> None:
    file.write_text("a: 1\n" + "#" * (MAX_BYTES - 5))
    assert read_yaml(file)[0] == {"a": 1}
    assert refusal(file, "a: 1\n" + "#" * (MAX_BYTES - 4)).startswith(f"larger than {MAX_BYTES} bytes")
