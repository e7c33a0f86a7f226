"""The key that signs: made once and for its owner alone; signatures against the published test vectors."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tepa_core.signing import (
    KEY_VARIABLE,
    SigningRefused,
    default_key_path,
    fingerprint,
    own_public_key,
    public_bytes,
    read_public_key,
    sign,
    signature_holds,
    signing_key,
)

# RFC 8032, section 7.1, test 2.
SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")


def test_the_key_is_that_of_the_rfc(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.from_private_bytes(SECRET)
    assert public_bytes(key) == PUBLIC
    path = tmp_path / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    assert public_bytes(signing_key(path)) == PUBLIC
    assert own_public_key(path) == PUBLIC
    signature = sign({"b": 1, "a": "ü"}, key)
    # Ed25519 is deterministic: the same by hand, over the purpose and canonical JSON.
    assert signature == key.sign(b'tepa-audit signed heads 1\n{"a":"\\u00fc","b":1}')
    assert signature_holds({"a": "ü", "b": 1}, signature, PUBLIC)
    assert not signature_holds({"a": "ü", "b": 2}, signature, PUBLIC)
    assert not signature_holds({"a": "ü", "b": 1}, signature, bytes(32))
    assert not signature_holds({"a": "ü", "b": 1}, b"short", PUBLIC)


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "signing.pem"
    assert own_public_key(path) is None
    assert not path.exists()
    old = os.umask(0)
    try:
        made = public_bytes(signing_key(path))
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert public_bytes(signing_key(path)) == made
    assert list(path.parent.iterdir()) == [path]


def test_many_who_make_it_at_once_get_one_key(tmp_path: Path) -> None:
    path = tmp_path / "signing.pem"
    found: list[bytes] = []
    gate = threading.Barrier(8)

    def make() -> None:
        gate.wait()
        found.append(public_bytes(signing_key(path)))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert set(found) == {own_public_key(path)}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "signing.pem"
    signing_key(path)
    path.chmod(mode)
    with pytest.raises(SigningRefused, match="can be read by others"):
        signing_key(path)


def test_what_is_no_key_is_refused_in_one_sentence(tmp_path: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    contents = {
        "empty": b"",
        "text": b"no key",
        "other": other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "public": other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "large": b"-" * 1_000_000,
        "half": b"ab" * 31,
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(SigningRefused, match="is no private Ed25519 key"):
            signing_key(path)
        with pytest.raises(SigningRefused, match="holds no public Ed25519 key"):
            read_public_key(path)
    with pytest.raises(SigningRefused, match="cannot be read"):
        read_public_key(tmp_path / "absent")
    with pytest.raises(SigningRefused, match=r"cannot be made: .* Name another file with --key"):
        signing_key(tmp_path / "text" / "signing.pem")


def test_a_public_key_as_digits_or_pem(tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_text(PUBLIC.hex() + "\n")
    assert read_public_key(path) == PUBLIC
    key = Ed25519PrivateKey.from_private_bytes(SECRET).public_key()
    path.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert read_public_key(path) == PUBLIC
    # As sha256sum prints it.
    assert fingerprint(PUBLIC) == "39f713d0a644253f04529421b9f51b9b08979d08295959c4f3990ee617f5139f"


def test_where_the_key_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for configured, folder in (
        ("", tmp_path / ".config"),
        ("relative", tmp_path / ".config"),
        (str(tmp_path / "x"), tmp_path / "x"),
    ):
        monkeypatch.setenv("XDG_CONFIG_HOME", configured)
        assert default_key_path() == folder / "tepa-audit" / "signing.pem"
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "named"))
    assert default_key_path() == tmp_path / "named"
