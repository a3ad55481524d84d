"""Where randomness comes from: keys made of names, never a global generator."""

import hashlib

import numpy as np


def key(*parts: str | int) -> int:
    """A 64-bit number that depends on every part, and on nothing else."""
    text = "\x1f".join(f"{type(part).__name__}:{_escaped(str(part))}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def look_key(content: str, sample: str) -> tuple[int, str]:
    """Where a sample to calibrate stands in the order in which samples are looked at; see `look_order` of risk."""
    return key("look", content or sample), sample


def _escaped(text: str) -> str:
    """Text without the separator, so that no two lists of parts look alike."""
    return text.replace("\x1e", "\x1e\x1e").replace("\x1f", "\x1e.")


def generator(*parts: str | int) -> np.random.Generator:
    """A numpy generator whose stream belongs to these parts alone."""
    return np.random.Generator(np.random.Philox(key=key(*parts)))
