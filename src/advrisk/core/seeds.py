"""Random seeds: keys made of names, never a global generator."""

import hashlib

import numpy as np


def key(*parts: str | int) -> int:
    """A 64-bit hash of the parts alone."""
    text = "\x1f".join(f"{type(part).__name__}:{_escaped(str(part))}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def calibration_key(content: str, sample: str) -> tuple[int, str]:
    """Sort key of a calibration sample; see `calibration_order` of risk."""
    return key("look", content or sample), sample


def _escaped(text: str) -> str:
    """Escape the separator, so that different lists of parts never give the same text."""
    return text.replace("\x1e", "\x1e\x1e").replace("\x1f", "\x1e.")


def generator(*parts: str | int) -> np.random.Generator:
    """A numpy generator whose stream depends on these parts alone."""
    return np.random.Generator(np.random.Philox(key=key(*parts)))
