"""Keys and signatures: what was changed, by whom it was signed, and files that hold no key."""

import json
import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from advrisk.assess.certificate.signature import (
    MAX_NAME,
    canonical_bytes,
    check_signer,
    new_key,
    signature_problem,
    signed,
    signer,
)
from advrisk.assess.certificate.verification import verify_signature
from advrisk.core.errors import RunError

CONTENT = {"claim": "ε ≤ 0.1 <script>", "n": 1000, "p": 0.0123, "groups": [{"b": 1, "a": None}]}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return new_key(tmp_path / "key.pem")[0]


def test_a_signature_holds_until_anything_is_changed(key: Path) -> None:
    document = signed(CONTENT, key)
    again = json.loads(json.dumps(document, indent=3))
    assert signature_problem(again) is None
    assert signature_problem(again, key.with_name("key.pub.pem")) is None
    assert signature_problem(again, key) is None, "a private key knows its public half"
    assert signer(again) == signer(document)
    for name in CONTENT:
        changed = {**again, name: "other"}
        assert "changed after it was signed" in str(signature_problem(changed))
    assert "changed after" in str(signature_problem({**again, "more": 1}))


def test_the_signed_bytes_do_not_depend_on_the_order_of_fields() -> None:
    assert canonical_bytes({"b": 1, "a": "é", "signature": 7}) == b'{"a":"\\u00e9","b":1}'


def test_the_signer_s_name_is_signed_and_is_the_signer_s_own_word(key: Path) -> None:
    document = signed(CONTENT, key, name="Ada Example, TÜV")
    fingerprint = signer(document)
    alone = verify_signature(document)
    assert alone.held == (
        f"It was signed in the name of Ada Example, TÜV with the key {fingerprint}, and not changed since.",
    )
    assert alone.notes == (
        "The name Ada Example, TÜV is the signer's own word. Whose key it is was not checked: give the signer's public "
        "key with --key.",
    )
    pinned = verify_signature(document, key=key.with_name("key.pub.pem"))
    assert pinned.held == (
        f"It was signed in the name of Ada Example, TÜV with that key ({fingerprint}), and not changed since.",
    )
    assert (pinned.notes, pinned.problems) == ((), ())
    assert "changed after it was signed" in str(signature_problem({**document, "signer": "Bob"}))
    assert verify_signature({**CONTENT, "signer": "Bob"}).problems == ("It names a signer and is not signed.",)


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "\x1b[2Jclear", "turned \u202e round", "x" * (MAX_NAME + 1)])
def test_a_name_is_one_line_that_can_be_shown(key: Path, name: str) -> None:
    assert "one line" in str(signature_problem(signed(CONTENT, key, name=name)))
    with pytest.raises(RunError, match="one line"):
        check_signer(key, name)


def test_a_name_without_a_key_is_refused() -> None:
    with pytest.raises(RunError, match="add --sign KEY"):
        check_signer(None, "Ada")


def test_another_s_key_and_damaged_signatures(key: Path, tmp_path: Path) -> None:
    document = signed(CONTENT, key)
    _, other = new_key(tmp_path / "other.pem")
    assert "signed with another key" in str(signature_problem(document, other))
    own = document["signature"]
    assert "not signed" in str(signature_problem(CONTENT))
    assert "no known kind" in str(signature_problem({**CONTENT, "signature": "x"}))
    assert "no known kind" in str(signature_problem({**CONTENT, "signature": {**own, "algorithm": "none"}}))
    for name in ("public_key", "value"):
        for value in (None, "", "not base64!", own[name][:-4], own[name][:-2] + "\n="):
            assert "damaged" in str(signature_problem({**CONTENT, "signature": {**own, name: value}}))
    forged = signed({**CONTENT, "n": 10}, tmp_path / "other.pem")
    assert signature_problem(forged) is None, "whoever has a key can sign anything"
    assert "another key" in str(signature_problem(forged, key)), "which is why the key is to be given"


def test_keys_are_for_their_owner_and_are_never_overwritten(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        private, public = new_key(tmp_path / "key.pem")
    finally:
        os.umask(old)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert public.name == "key.pub.pem"
    assert b"PRIVATE" not in public.read_bytes()
    before = private.read_bytes()
    with pytest.raises(RunError, match="never overwritten"):
        new_key(private)
    private.unlink()
    with pytest.raises(RunError, match=r"key\.pub\.pem: is there already"):
        new_key(private)
    assert not private.exists()
    assert before
    with pytest.raises(RunError, match="cannot be written"):
        new_key(tmp_path / "nowhere" / "key.pem")


def test_files_that_hold_no_such_key(key: Path, tmp_path: Path) -> None:
    own = load_pem_private_key(key.read_bytes(), None)
    files = {
        "locked.pem": own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")),
        "empty.pem": b"",
        "text.pem": "kein Schlüssel".encode(),
        "curve.pem": generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "large.pem": b"x" * 30_000,
    }
    messages = {"locked.pem": "passphrase", "curve.pem": "another kind", "large.pem": "too large"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RunError, match=messages.get(name, "holds no private key")):
            signed(CONTENT, tmp_path / name)
    curve = generate_private_key(SECP256R1()).public_key()
    (tmp_path / "curve.pub").write_bytes(curve.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(RunError, match="another kind"):
        signature_problem(CONTENT, tmp_path / "curve.pub")
    with pytest.raises(RunError, match="holds no public key"):
        signature_problem(CONTENT, tmp_path / "empty.pem")
    with pytest.raises(RunError, match="cannot be read"):
        signature_problem(CONTENT, tmp_path / "none.pem")
