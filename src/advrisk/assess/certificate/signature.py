"""Ed25519 signatures (RFC 8032) of JSON documents, and the keys that make them.

Nothing here knows what a document says. A signature shows which key signed and that nothing was changed since; it does
not show that what was signed is true. A signer may add a name, which is signed with the rest: the signer's own word.
"""

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.core.errors import RunError
from advrisk.core.files import regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "ed25519"
SIGNATURE = "signature"  # the one field of a document that is not signed
SIGNER = "signer"  # the field that signing adds where the signer states a name
MAX_NAME = 200  # characters
_MAX_KEY_BYTES = 20_000


def canonical_bytes(content: Mapping[str, Any]) -> bytes:
    """The signed bytes: the document without its signature, as JSON with sorted keys, no spaces and ASCII only."""
    plain = {name: value for name, value in content.items() if name != SIGNATURE}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def document_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the signed bytes, which identifies a document, signed or not."""
    return hashlib.sha256(canonical_bytes(content)).hexdigest()


def new_key(path: str | Path) -> tuple[Path, Path]:
    """Create a key and write it, readable by its owner only, with its public half; overwrite nothing."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    private, public = Path(path), public_path(Path(path))
    for target in (private, public):
        if target.exists() or target.is_symlink():
            raise RunError(f"{target}: is there already, and a key is never overwritten; choose another name")
    key = Ed25519PrivateKey.generate()
    _write_new(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    _write_new(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    return private, public


def public_path(private: Path) -> Path:
    """The path of the public half: `key.pub.pem` for `key.pem`."""
    return private.with_name(f"{private.stem}.pub{private.suffix}")


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(place, "wb") as file:
            file.write(content)
    except FileExistsError:
        raise RunError(f"{path}: is there already, and a key is never overwritten; choose another name") from None
    except OSError as error:
        raise RunError(f"{path}: the key cannot be written: {error.strerror}") from None


def signed(content: Mapping[str, Any], key: str | Path, *, name: str | None = None) -> dict[str, Any]:
    """The document with a signature by the private key in that file, and with the signer's name if one is stated."""
    private = read_private_key(Path(key))
    if name is not None:
        content = {**content, SIGNER: name}
    value = private.sign(canonical_bytes(content))
    signature = {
        "algorithm": ALGORITHM,
        "public_key": _text(_raw(private.public_key())),
        "value": _text(value),
    }
    return {**content, SIGNATURE: signature}


def signature_problem(content: Mapping[str, Any], key: str | Path | None = None) -> str | None:
    """Why a signature is invalid; None if it is valid. With a public key, that key must have made it."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    wanted = None if key is None else _raw(read_public_key(Path(key)))
    signature = content.get(SIGNATURE)
    if signature is None:
        return "it is not signed, so nobody can tell who made it and whether it was changed"
    if content.get(SIGNER) is not None and not _is_name(content[SIGNER]):
        return f"its signer's name is not one line of at most {MAX_NAME} printable characters"
    if not isinstance(signature, Mapping) or signature.get("algorithm") != ALGORITHM:
        return f"its signature is of no known kind; {ALGORITHM} is"
    own, value = _bytes(signature.get("public_key"), 32), _bytes(signature.get("value"), 64)
    if own is None or value is None:
        return "its signature or public key is damaged"
    if wanted is not None and own != wanted:
        return f"it was signed with another key ({key_name(own)}) than that of {key} ({key_name(wanted)})"
    try:
        Ed25519PublicKey.from_public_bytes(own).verify(value, canonical_bytes(content))
    except InvalidSignature:
        return "its signature does not fit its content: something was changed after it was signed"
    except (ValueError, RecursionError) as error:  # from canonical_bytes
        return f"what it says cannot be signed ({error})"
    return None


def check_signer(key: Path | None, name: str | None) -> None:
    """Refuse a key that cannot sign, and a signer's name without a key or of more than one line."""
    if key is not None:
        read_private_key(key)
    if name is None:
        return
    if key is None:
        raise RunError(f"found the signer {name!r} and no key; a name is part of a signature: add --sign KEY")
    if not _is_name(name):
        raise RunError(f"the signer's name: found {name[:MAX_NAME]!r}; give one line of at most {MAX_NAME} characters")


def _is_name(name: object) -> bool:
    """No line breaks, and nothing that changes how a terminal shows the rest."""
    return isinstance(name, str) and bool(name.strip()) and len(name) <= MAX_NAME and name.isprintable()


def signer(content: Mapping[str, Any]) -> str | None:
    """The fingerprint of the key that a document names."""
    signature = content.get(SIGNATURE)
    own = _bytes(signature.get("public_key"), 32) if isinstance(signature, Mapping) else None
    return None if own is None else key_name(own)


def key_name(raw: bytes) -> str:
    """The first sixteen digits of the SHA-256 of a public key."""
    return hashlib.sha256(raw).hexdigest()[:16]


def read_private_key(path: Path) -> "Ed25519PrivateKey":
    """The private key in a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read(path)
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:  # the key has a passphrase
        raise RunError(f"{path}: the key is locked by a passphrase, which is not supported; unlock a copy") from None
    except (ValueError, UnsupportedAlgorithm):
        raise RunError(
            f"{path}: holds no private key in PEM form; `advrisk certify --new-key {path}` makes one, "
            "under a name that is free"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise RunError(f"{path}: the key is of another kind; an {ALGORITHM} key is needed")
    return key


def read_public_key(path: Path) -> "Ed25519PublicKey":
    """The public key in a PEM file, or the public half of a private key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _read(path)
    if b"PRIVATE KEY" in content:
        return read_private_key(path).public_key()
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise RunError(
            f"{path}: holds no public key in PEM form; `advrisk certify --new-key` writes one beside the private key"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise RunError(f"{path}: the key is of another kind; an {ALGORITHM} key is needed")
    return key


def _read(path: Path) -> bytes:
    try:
        with regular(path).open("rb") as file:
            content = file.read(_MAX_KEY_BYTES + 1)
    except OSError as error:
        raise RunError(f"{path}: the key cannot be read: {error.strerror}") from None
    if len(content) > _MAX_KEY_BYTES:
        raise RunError(f"{path}: is too large to be a key")
    return content


def _raw(key: "Ed25519PublicKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _bytes(text: object, length: int) -> bytes | None:
    """The bytes that a text encodes; None if the length is wrong or the encoding is not canonical."""
    try:
        raw = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == length and _text(raw) == text else None
