"""Where randomness comes from: keys made of names, never a global generator."""

import hashlib

import numpy as np


def key(*parts: str | int) -> int:
    """A 64-bit number that depends on every part, and on nothing else."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(*parts: str | int) -> np.random.Generator:
    """A numpy generator whose stream belongs to these parts alone."""
    return np.random.Generator(np.random.Philox(key=key(*parts)))
