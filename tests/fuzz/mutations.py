"""Ways to spoil a file: bytes anywhere, text by its tokens, archives and headers so that their insides are reached."""

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from advrisk.core.digest import digest

Rng = np.random.Generator
Mutation = Callable[[bytes, Rng], bytes]

_SIZES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
_TOKENS = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-1", "0", "1e-320", "9" * 400, "1.5", "true", "null",
    "''", '""',
    "[]", "{}", "!!python/object/apply:os.system [echo]", "&a [*a, *a]", "*a", "<<: *a", "\u202e", "\x00", "\ufeff",
    "😀",
    "a" * 5000, "../../../etc/passwd", "'; DROP TABLE outcomes; --", "<script>", "[" * 300, "{" * 300, "2024-13-45",
    "0x10", "0b_", "1_000", "1/0", "8/255", "-", "- - - -", "? :", "%TAG", "---", "...", "\t", ",,,,", "\r", '"',
    "[" * 100_000,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1.5, "", ".", "..", "../..", "../beside", "/etc/hostname", "a" * 300, "a\x00b", "\ud800",
    [], {}, [[]], [".."], [None], {"": {}}, {"bytes": 0, "digest": ""}, float("inf"), "inputs/../../beside/theirs",
)  # fmt: skip
_WORDS = re.compile(rb"[A-Za-z0-9_.+-]+")


def spoiled(content: bytes, rng: Rng, ways: Sequence[Mutation]) -> bytes:
    """The content after one to four mutations."""
    for _ in range(int(rng.integers(1, 5))):
        content = ways[int(rng.integers(len(ways)))](content, rng)
    return content


def flip(content: bytes, rng: Rng) -> bytes:
    """One bit is another one."""
    changed = bytearray(content or b"\x00")
    changed[_place(changed, rng)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwrite(content: bytes, rng: Rng) -> bytes:
    """A number of 1, 2, 4 or 8 bytes that programs trip over."""
    size = int(rng.choice([1, 2, 4, 8]))
    number = int(_SIZES[int(rng.integers(len(_SIZES)))]) & ((1 << (8 * size)) - 1)
    place = _place(content, rng)
    return content[:place] + number.to_bytes(size, "little" if rng.integers(2) else "big") + content[place + size :]


def cut(content: bytes, rng: Rng) -> bytes:
    """The end is missing."""
    return content[: _place(content, rng)]


def remove(content: bytes, rng: Rng) -> bytes:
    """A piece is missing."""
    first, last = sorted((_place(content, rng), _place(content, rng)))
    return content[:first] + content[min(last, first + 64) :]


def repeat(content: bytes, rng: Rng) -> bytes:
    """A piece stands there twice."""
    first, last = sorted((_place(content, rng), _place(content, rng)))
    return content[:last] + content[first:last] + content[last:] if last - first < 4096 else content[:last]


def noise(content: bytes, rng: Rng) -> bytes:
    """Random bytes in between."""
    place = _place(content, rng)
    return content[:place] + rng.bytes(int(rng.integers(1, 40))) + content[place:]


def word(content: bytes, rng: Rng) -> bytes:
    """One word of a text is one that programs trip over, or another word of the text."""
    words = list(_WORDS.finditer(content))
    if not words:
        return content
    chosen = words[int(rng.integers(len(words)))]
    other = words[int(rng.integers(len(words)))].group()
    instead = other if rng.integers(4) == 0 else _TOKENS[int(rng.integers(len(_TOKENS)))].encode()
    return content[: chosen.start()] + instead + content[chosen.end() :]


def line(content: bytes, rng: Rng) -> bytes:
    """A line of a text is gone, stands there twice, is another one, or further in."""
    lines = content.split(b"\n")
    place, other = (int(rng.integers(len(lines))) for _ in range(2))
    way = int(rng.integers(4))
    lines[place : place + 1] = [[], [lines[place]] * 2, [lines[other]], [b"  " + lines[place]]][way]
    return b"\n".join(lines)


BYTES: tuple[Mutation, ...] = (flip, flip, overwrite, overwrite, cut, remove, repeat, noise)
TEXT: tuple[Mutation, ...] = (word, word, word, line, line, flip, remove, repeat, cut)


def in_archive(content: bytes, rng: Rng) -> bytes:
    """A member of a zip is spoiled and the archive written anew, so that its check sums hold."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # spoiled before
        return flip(content, rng)
    names = list(members)
    if not names:
        return content
    name = names[int(rng.integers(len(names)))]
    head = members[name][:128] + b" " * max(0, 16 - len(members[name]))
    way = int(rng.integers(5))
    if way == 0:
        members[name + "x"] = members.pop(name)
    elif way == 1:
        members[name] = members[names[int(rng.integers(len(names)))]]
    elif way == 2:
        members[name] = array_header(head, rng) + members[name][128:]
    else:
        members[name] = spoiled(members[name], rng, BYTES)
    target, packing = io.BytesIO(), zipfile.ZIP_DEFLATED if rng.integers(2) else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", packing, compresslevel=1) as archive:
        for member, inside in members.items():
            archive.writestr(member, inside)
    return target.getvalue()


def array_header(head: bytes, rng: Rng) -> bytes:
    """The first 128 bytes of an .npy file with another kind or shape of array."""
    kinds = ("|u1", "<f8", "<f4", "|O", "<U9", "|b1", "<c16", "<M8[s]", "|V8", "<i8", "|S0", ">f2", "<f16")
    shapes = (
        "()",
        "(0,)",
        "(3,)",
        "(1000000000000,)",
        "(-1,)",
        "(2, 0)",
        "(4294967296, 4294967296)",
        "(3, 2, 2, 2)",
        "(1,)*40",
    )
    kind, shape = (these[int(rng.integers(len(these)))] for these in (kinds, shapes))
    text = f"{{'descr': '{kind}', 'fortran_order': {bool(rng.integers(2))}, 'shape': {shape}, }}".encode()
    return head[:10] + text.ljust(117) + b"\n" if len(text) < 117 else head


def in_header(content: bytes, rng: Rng) -> bytes:
    """The JSON header of a safetensors file is spoiled, its length right again."""
    if len(content) < 8:
        return content
    (length,) = struct.unpack("<Q", content[:8])
    if length > len(content) - 8:
        return flip(content, rng)
    header = content[8 : 8 + length]
    try:
        fields = json.loads(header)
        name = list(fields)[int(rng.integers(len(fields)))]
        way = int(rng.integers(5))
        if way == 0:
            fields[name]["dtype"] = str(rng.choice(["F64", "I64", "BOOL", "F16", "F8_E4M3", "X9"]))
        elif way == 1:
            fields[name]["shape"] = [int(rng.choice([0, 1, 2**31, 2**62])), int(rng.integers(5))]
        elif way == 2:
            fields[name]["data_offsets"] = [int(rng.integers(-5, 99)), int(rng.choice([3, 10**6, 2**63 - 1]))]
        elif way == 3:
            fields[name + "?"] = fields.pop(name)
        else:
            raise ValueError
        header = json.dumps(fields).encode()
    except (ValueError, TypeError, KeyError):
        header = spoiled(header, rng, TEXT)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def in_json(content: bytes, rng: Rng) -> bytes:
    """A value of a JSON text is another one, is gone, or has another name; a digest over the rest is right again."""
    try:
        whole = [json.loads(content)]
        places = list(_places(whole))
        parent, key = places[int(rng.integers(len(places)))]
        value = _VALUES[int(rng.integers(len(_VALUES)))]
        way = int(rng.integers(4))
        if way == 0:
            del parent[key]
        elif way == 1 and isinstance(parent, dict):
            parent[value if isinstance(value, str) else str(key) + "?"] = parent.pop(key)
        else:
            parent[key] = value
        if isinstance(whole[0], dict) and "digest" in whole[0] and rng.integers(8):
            whole[0]["digest"] = digest({name: one for name, one in whole[0].items() if name != "digest"})
        return json.dumps(whole[0]).encode()
    except (ValueError, RecursionError, IndexError):  # spoiled before
        return flip(content, rng)


def _places(whole: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a JSON text, by what holds it and its name or place there."""
    if isinstance(whole, dict | list):
        for key in list(whole) if isinstance(whole, dict) else range(len(whole)):
            yield whole, key
            yield from _places(whole[key])


def _place(content: bytes | bytearray, rng: Rng) -> int:
    """Anywhere; the beginning and the end, where formats keep what matters, more often."""
    if not content:
        return 0
    where = int(rng.integers(3))
    if where == 0:
        return int(rng.integers(min(len(content), 64)))
    if where == 1:
        return len(content) - 1 - int(rng.integers(min(len(content), 256)))
    return int(rng.integers(len(content)))
