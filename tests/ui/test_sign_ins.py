"""Which sign-ins count: cookies made with the secret of the test, and a list of sign-outs that outlives its process."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from itsdangerous import URLSafeTimedSerializer
from streamlit.runtime.secrets import Secrets
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from tepa_core.files import FileRefused
from tepa_core.ui import sign_ins
from tepa_core.ui.sign_ins import LONGEST, SignIn, SignOuts, sign_in_of

SECRET = "only for these tests, but of a decent length"  # noqa: S105
NAME = "_streamlit_user"
CLAIMS: dict[str, Any] = {"iss": "https://house.example", "sub": "8d1f", "email": "ana@house.example", "iat": 100}


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_ins, "get_cookie_secret", lambda: SECRET)


def cookie(claims: object, name: str = NAME, secret: str = SECRET) -> str:
    return create_signed_value(secret, name, json.dumps(claims)).decode()


def some(digest: str, issued: float) -> SignIn:
    return SignIn(digest, issued, until=time.time() + 60, name="ana")


def test_a_signed_cookie_is_read() -> None:
    found = sign_in_of({NAME: cookie({**CLAIMS, "exp": time.time() + 60})})
    assert found is not None
    assert found.issued == 100
    assert not found.expired()
    assert "ana" not in found.name


def test_two_sign_ins_of_one_person_differ_and_the_person_is_the_same() -> None:
    first, second = (sign_in_of({NAME: cookie({**CLAIMS, "iat": moment})}) for moment in (100, 101))
    assert first is not None
    assert second is not None
    assert first.digest != second.digest
    assert first.name == second.name


@pytest.mark.parametrize("until", [None, True, "never", 1.0, float("nan"), float("inf"), [9e9]])
def test_a_token_that_gives_no_moment_to_come_has_expired(until: object) -> None:
    found = sign_in_of({NAME: cookie({**CLAIMS, "exp": until})})
    assert found is not None
    assert found.expired()


@pytest.mark.parametrize(
    "cookies",
    [
        {},
        {NAME: ""},
        {NAME: "not signed"},
        {NAME: "\u20ac"},
        {NAME: cookie(CLAIMS, secret="another")},  # noqa: S106
        {NAME: cookie(CLAIMS, name="_streamlit_user_tokens")},
        {NAME: cookie(["no", "claims"])},
        {NAME: create_signed_value(SECRET, NAME, "no json").decode()},
    ],
)
def test_what_the_server_did_not_sign_is_nobody(cookies: dict[str, str]) -> None:
    assert sign_in_of(cookies) is None


def test_without_a_secret_nobody_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_ins, "get_cookie_secret", lambda: "")
    assert sign_in_of({NAME: cookie(CLAIMS, secret="")}) is None


@pytest.mark.parametrize(("age", "counts"), [(LONGEST - 60, True), (LONGEST + 60, False)])
def test_a_cookie_counts_for_a_day(monkeypatch: pytest.MonkeyPatch, age: int, counts: bool) -> None:
    signer = type(URLSafeTimedSerializer(SECRET).make_signer(b""))
    made = int(time.time()) - age
    monkeypatch.setattr(signer, "get_timestamp", lambda self: made)
    old = cookie(CLAIMS)
    monkeypatch.undo()
    monkeypatch.setattr(sign_ins, "get_cookie_secret", lambda: SECRET)
    assert (sign_in_of({NAME: old}) is not None) is counts


def test_another_spelling_of_a_signed_cookie_is_the_same_sign_in() -> None:
    # The last character of a signature carries two bits that nothing reads.
    whole = cookie(CLAIMS)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = whole[:-1] + letters[letters.index(whole[-1]) ^ 1]
    found = [sign_in_of({NAME: spelling}) for spelling in (whole, other)]
    assert found[0] is not None
    assert found[0] == found[1]


def test_a_cookie_in_pieces_is_read() -> None:
    text = json.dumps(CLAIMS)
    pieces = {NAME: "chunks-2", f"{NAME}_1": text[:20], f"{NAME}_2": text[20:]}
    signed = {name: create_signed_value(SECRET, name, piece).decode() for name, piece in pieces.items()}
    whole = sign_in_of({NAME: cookie(CLAIMS)})
    assert whole is not None
    assert sign_in_of(signed) == whole


def test_a_sign_out_holds_for_that_sign_in_and_over_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "ended.json"
    kept = SignOuts(file)
    kept.end(some("a", 100))
    for list_ in (kept, SignOuts(file)):
        assert list_.ended(some("a", 100))
        assert not list_.ended(some("b", 100))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "ana" not in file.read_text()


def test_a_full_list_ends_older_sign_ins_rather_than_bringing_one_back(tmp_path: Path) -> None:
    file = tmp_path / "ended.json"
    kept = SignOuts(file, most=2)
    for moment in (100, 300, 200):
        kept.end(some(f"at {moment}", moment))
    for list_ in (kept, SignOuts(file, most=2)):
        assert all(list_.ended(some(f"at {moment}", moment)) for moment in (100, 200, 300))
        assert list_.ended(some("never ended, as old as the one that gave way", 100))
        assert not list_.ended(some("never ended, newer", 101))
    assert len(json.loads(file.read_text())["ended"]) == 2


def test_what_no_cookie_can_show_any_more_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ended.json"
    kept = SignOuts(file)
    kept.end(some("a", 100))
    later = time.time() + LONGEST + 1
    monkeypatch.setattr(sign_ins.time, "time", lambda: later)
    kept.end(some("b", 200))
    assert set(json.loads(file.read_text())["ended"]) == {"b"}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"none_before": 0, "ended": {"a": 1}}', "\x00"])
def test_a_list_that_cannot_be_read_ends_every_older_sign_in(tmp_path: Path, content: str) -> None:
    file = tmp_path / "ended.json"
    file.write_text(content)
    kept = SignOuts(file)
    assert kept.ended(some("a", time.time() - 1))
    assert not kept.ended(some("a", time.time() + 1))


def test_a_sign_out_that_cannot_be_written_holds_all_the_same(tmp_path: Path) -> None:
    kept = SignOuts(tmp_path / "no folder" / "ended.json")
    with pytest.raises(FileRefused, match="no folder"):
        kept.end(some("a", 100))
    assert kept.ended(some("a", 100))


@pytest.mark.parametrize(
    ("content", "secure"),
    [
        ('[auth]\nredirect_uri = "https://audit.house.example/oauth2callback"\n', True),
        ('[auth]\nredirect_uri = "http://127.0.0.1:8501/oauth2callback"\n', False),
        ("[auth]\n", False),
        ("[roles]\n", False),
        ("not toml", False),
    ],
)
def test_cookies_are_for_tls_where_people_come_back_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, secure: bool
) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text(content)
    monkeypatch.setattr(sign_ins.st, "secrets", Secrets())
    real = sign_ins.st.get_option

    def option(name: str) -> object:
        return [str(file)] if name == "secrets.files" else real(name)

    monkeypatch.setattr("streamlit.config.get_option", option)
    monkeypatch.setattr(sign_ins.st, "get_option", option)
    assert sign_ins.login_over_tls() is secure
