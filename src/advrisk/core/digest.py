"""Content hashes: the same content gives the same name on every machine."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt


def digest(content: Any) -> str:
    """Thirty-two hexadecimal digits that name a JSON-like value."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def digest_bytes(*blocks: bytes) -> str:
    """Thirty-two hexadecimal digits that name a sequence of byte strings."""
    hasher = hashlib.blake2b(digest_size=16)
    for block in blocks:
        hasher.update(len(block).to_bytes(8, "little"))
        hasher.update(block)
    return hasher.hexdigest()


def digest_array(array: "npt.NDArray[Any]") -> str:
    """Name an array by its type, shape and bytes (little-endian, whatever the machine)."""
    import numpy as np

    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return digest_bytes(plain.dtype.str.encode(), str(plain.shape).encode(), plain.tobytes())
