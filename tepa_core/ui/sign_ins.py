"""Whether people sign in here, and which sign-ins count: none signed out of, and none for longer than a day.

Streamlit keeps a sign-in in a signed cookie for 30 days and remembers nothing on the server, so a copy of the cookie
works on after the person has signed out. Here the server keeps a list of what was signed out of, beside the database so
that it outlives a restart. An entry names the sign-in by a digest of the claims that the provider made, because the
text of a signed cookie can be varied without breaking its signature.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from tepa_core.files import beside

#: Seconds for which a cookie with a sign-in counts, whatever the token in it says.
LONGEST: Final = 24 * 60 * 60

#: Sign-outs that are kept. Beyond them the older sign-ins all end, see `SignOuts.end`.
MOST_KEPT: Final = 10_000


def login_is_on() -> bool:
    """Tell whether people sign in here; settings that cannot be read let nobody decide rather than everybody."""
    return "auth" in st.secrets if st.secrets.load_if_toml_exists() else login_unreadable()


def login_unreadable() -> bool:
    """Tell whether there are settings of a login and they cannot be read."""
    return not st.secrets.load_if_toml_exists() and any(Path(name).is_file() for name in st.get_option("secrets.files"))


def login_over_tls() -> bool:
    """Tell whether people come back from signing in to an address under https, so that all their visits do."""
    return (
        login_is_on()
        and not login_unreadable()
        and str(st.secrets["auth"].get("redirect_uri", "")).startswith("https:")
    )


@dataclass(frozen=True, slots=True)
class SignIn:
    """A sign-in that the server itself signed.

    Attributes
    ----------
    digest
        SHA-256 of the claims, in hex; tells sign-ins apart, also two of one person.
    issued, until
        When the provider made the token, and when it expires; seconds since 1970 UTC, 0 where it does not say.
    name
        Digest of the person, the same for every sign-in; it takes the cookie secret to make one from a name.
    """

    digest: str
    issued: float
    until: float
    name: str

    def expired(self) -> bool:
        """Tell whether the token has expired."""
        return self.until <= time.time()


def sign_in_of(cookies: Mapping[str, str]) -> SignIn | None:
    """Read the sign-in out of a request's cookies; None where there is none, or it is forged or older than a day."""
    secret = get_cookie_secret()
    if not secret:
        return None

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        if not value:
            return None
        with suppress(UnicodeEncodeError):
            return decode_signed_value(secret, name, value.encode("latin-1"), max_age_days=LONGEST / 86_400)
        return None

    payload = get_cookie_with_chunks(signed, USER_COOKIE_NAME)
    try:
        claims = json.loads(payload or b"")
    except ValueError:
        return None
    if payload is None or not isinstance(claims, dict):
        return None
    person = f"{claims.get('iss')} {claims.get('sub')} {claims.get('email')}"
    return SignIn(
        digest=hashlib.sha256(payload).hexdigest(),
        issued=_moment(claims.get("iat")),
        until=_moment(claims.get("exp")),
        name=hmac.new(secret.encode(), person.encode(), hashlib.sha256).hexdigest()[:12],
    )


def _moment(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


class SignOuts:
    """What was signed out of, kept for as long as a cookie could still be shown.

    Parameters
    ----------
    path
        File that the list is kept in. One that cannot be read ends every sign-in made before now.
    most
        Entries that are kept at most.
    """

    def __init__(self, path: Path, most: int = MOST_KEPT) -> None:
        self._path = path
        self._most = most
        # Digest -> when it was issued, until when it is kept.
        self._ended: dict[str, tuple[float, float]] = {}
        self._none_before = 0.0
        self._read()

    def ended(self, sign_in: SignIn) -> bool:
        """Tell whether this sign-in has been signed out of."""
        return sign_in.digest in self._ended or sign_in.issued < self._none_before

    def end(self, sign_in: SignIn) -> None:
        """Sign out of a sign-in, on the disk too.

        Where the list is full its oldest sign-in gives way, and with it ends whatever was issued no later: somebody
        may have to sign in again, but nothing that was ended comes back.

        Raises
        ------
        FileRefused
            If the list cannot be written; the sign-in has ended all the same, until the server is restarted.
        """
        now = time.time()
        self._ended[sign_in.digest] = (sign_in.issued, now + LONGEST)
        self._ended = {digest: kept for digest, kept in self._ended.items() if kept[1] > now}
        while len(self._ended) > self._most:
            oldest = min(self._ended, key=lambda digest: self._ended[digest][0])
            issued, _ = self._ended.pop(oldest)
            self._none_before = max(self._none_before, math.nextafter(issued, math.inf))
        self._write()

    def _read(self) -> None:
        try:
            content = json.loads(self._path.read_text(encoding="ascii"))
            self._none_before = float(content["none_before"])
            self._ended = {
                str(digest): (float(issued), float(until)) for digest, (issued, until) in content["ended"].items()
            }
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            self._none_before = time.time()

    def _write(self) -> None:
        with beside(self._path, replace=True) as part:
            part.chmod(0o600)
            part.write_text(json.dumps({"none_before": self._none_before, "ended": self._ended}), encoding="ascii")
