"""Signatures with a key that is kept outside the database: whoever rewrites the database cannot sign it anew.

Ed25519, by the library that also checks the signatures of the login.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from tepa_core.files import FileRefused, beside, reason

#: Names the file of the key; else `default_key_path`.
KEY_VARIABLE: Final = "TEPA_SIGNING_KEY"

#: Stands before what is signed, so that a signature for one purpose is none for another.
_PURPOSE: Final = b"tepa-audit signed heads 1\n"

#: No file of a key is larger.
_MOST_BYTES: Final = 10_000


class SigningRefused(ValueError):  # noqa: N818 - it names what happens, and is shown to people
    """The key cannot be used; the message says why and what to do."""


def default_key_path() -> Path:
    """Return the file of this installation's key: that of the environment, else one in the user's configuration."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return Path(named)
    # Unset and empty are the same, and a relative folder is to be ignored: the XDG base directory specification.
    configured = Path(os.environ.get("XDG_CONFIG_HOME") or "")
    return (configured if configured.is_absolute() else Path.home() / ".config") / "tepa-audit" / "signing.pem"


def signing_key(path: Path) -> Ed25519PrivateKey:
    """Read the private key of a file; make it when there is none, so that only its owner can read it.

    Raises
    ------
    SigningRefused
        If it cannot be made or read, others can read it, or it is no Ed25519 key.
    """
    if not path.exists():
        _make(path)
    content = _read(path)
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise SigningRefused(
            f"The key {path} can be read by others, who could sign with it. Take their rights away (chmod 600), or, if "
            "somebody may have read it, move it away and have a new one made."
        )
    key: object = None
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = load_pem_private_key(content, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningRefused(
            f"{path} is no private Ed25519 key without a password (PEM); name another file, and it is made when absent."
        )
    return key


def own_public_key(path: Path) -> bytes | None:
    """Return the public half of a file's key; None when there is none yet. Makes nothing.

    Raises
    ------
    SigningRefused
        As `signing_key`.
    """
    return public_bytes(signing_key(path)) if path.exists() else None


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """Return the 32 bytes of the public half."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def read_public_key(path: Path) -> bytes:
    """Read the 32 bytes of a public key from a file: as 64 hexadecimal digits, or PEM.

    Raises
    ------
    SigningRefused
        If the file cannot be read or holds no such key.
    """
    content = _read(path)
    with suppress(ValueError):
        found = bytes.fromhex(content.decode("ascii"))
        if len(found) == 32:
            return found
    key: object = None
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = load_pem_public_key(content)
    if not isinstance(key, Ed25519PublicKey):
        raise SigningRefused(
            f"{path} holds no public Ed25519 key; it is 64 hexadecimal digits, as signing prints them, or PEM."
        )
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def fingerprint(public: bytes) -> str:
    """Return what a public key is told apart by: its SHA-256, in hexadecimal."""
    return hashlib.sha256(public).hexdigest()


def sign(content: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """Sign JSON-ready content in its one canonical form."""
    return key.sign(_canonical(content))


def signature_holds(content: Mapping[str, Any], signature: bytes, public: bytes) -> bool:
    """Tell whether the holder of a key signed exactly this content."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _canonical(content))
    except (InvalidSignature, ValueError):
        return False
    return True


def _canonical(content: Mapping[str, Any]) -> bytes:
    return _PURPOSE + json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise SigningRefused(f"The key {path} cannot be read: {reason(error)}.") from None


def _make(path: Path) -> None:
    """Write a new key, which only its owner can read from its first byte on; one that comes meanwhile stays."""
    content = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with beside(path) as part:
            part.chmod(0o600)
            part.write_bytes(content)
    except (FileRefused, OSError) as error:
        if path.exists():
            return
        why = str(error) if isinstance(error, FileRefused) else reason(error)
        raise SigningRefused(
            f"The key {path} cannot be made: {why}. Name another file with --key or {KEY_VARIABLE}."
        ) from None
