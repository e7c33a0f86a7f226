"""The guard's judgements, one by one; what the real server makes of them is in tests/e2e/test_refused.py."""

from __future__ import annotations

import pytest
import streamlit as st
from starlette.datastructures import Headers

from tepa_core.ui import guard
from tepa_core.ui.guard import content_policy, from_another_page, own_host, own_origin, short_lived


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names the dashboard goes by, in place of those in the configuration."""
    names = ["127.0.0.1", "localhost", "audit.house.example"]
    monkeypatch.setattr("streamlit.config.get_option", lambda _: names)
    monkeypatch.setattr(guard.st, "get_option", lambda _: names)
    return names


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8501", "localhost", "LOCALHOST:1", "audit.house.example", "audit.house.example:443"]
)
def test_a_listed_name_is_a_host(allowed: list[str], host: str) -> None:
    assert own_host([host]) == host


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.example"],
        ["127.0.0.1", "127.0.0.1"],
        ["127.0.0.1.evil.example"],
        ["evil.example:127.0.0.1"],
        ["localhost@evil.example"],
        ["localhost/evil"],
        ["127.0.0.1;script-src *"],
        ["127.0.0.1:8501 evil"],
        ["127.0.0.1:99999"],
        ["0.0.0.0:8501"],
        ["[::1]:8501"],
    ],
)
def test_any_other_name_is_none(allowed: list[str], hosts: list[str]) -> None:
    assert own_host(hosts) is None


def test_where_no_names_are_listed_this_machine_goes_by_its_own(allowed: list[str]) -> None:
    allowed.clear()
    assert [own_host([host]) for host in ("127.0.0.1:1", "[::1]:1", "evil.example")] == ["127.0.0.1:1", "[::1]:1", None]


@pytest.mark.parametrize(
    ("origin", "host", "secure"),
    [
        ("http://127.0.0.1:8501", "127.0.0.1:8501", False),
        ("http://LOCALHOST:8501", "localhost:8501", False),
        ("http://audit.house.example", "audit.house.example:80", False),
        ("https://audit.house.example", "audit.house.example", True),
        # A proxy that ends TLS and does not say so.
        ("https://audit.house.example", "audit.house.example", False),
        ("https://audit.house.example", "audit.house.example:443", False),
        ("http://[::1]:8501", "[::1]:8501", False),
    ],
)
def test_the_page_itself_is_the_origin(origin: str, host: str, secure: bool) -> None:
    assert own_origin(origin, host, secure=secure)


@pytest.mark.parametrize(
    ("origin", "host", "secure"),
    [
        ("http://127.0.0.1:9999", "127.0.0.1:8501", False),
        ("http://localhost:8501", "127.0.0.1:8501", False),
        ("http://evil.example", "127.0.0.1:8501", False),
        ("http://audit.house.example", "audit.house.example", True),
        ("http://audit.house.example:443", "audit.house.example", False),
        ("http://127.0.0.1:8501@evil.example", "127.0.0.1:8501", False),
        ("http://evil.example@127.0.0.1:8501", "127.0.0.1:8501", False),
        ("http://127.0.0.1:8501/", "127.0.0.1:8501", False),
        ("http://127.0.0.1:8501.evil.example", "127.0.0.1:8501", False),
        ("file://127.0.0.1:8501", "127.0.0.1:8501", False),
        ("127.0.0.1:8501", "127.0.0.1:8501", False),
        ("null", "127.0.0.1:8501", False),
        ("", "127.0.0.1:8501", False),
        ("http://127.0.0.1:port", "127.0.0.1:8501", False),
        ("http://[", "127.0.0.1:8501", False),
    ],
)
def test_anything_else_is_not(origin: str, host: str, secure: bool) -> None:
    assert not own_origin(origin, host, secure=secure)


def marks(site: str, mode: str = "", dest: str = "") -> Headers:
    return Headers({"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest})


def test_a_program_and_the_page_itself_are_no_other_page() -> None:
    assert not from_another_page(Headers({}), "PUT", "/")
    for site in ("none", "same-origin"):
        assert not from_another_page(marks(site, "cors", "empty"), "PUT", "/_stcore/upload_file/a/b")


@pytest.mark.parametrize("site", ["same-site", "cross-site", "something new"])
def test_from_another_page_a_link_may_be_followed_and_nothing_else(site: str) -> None:
    link = marks(site, "navigate", "document")
    assert not from_another_page(link, "GET", "/archive")
    # The way back from the provider.
    assert not from_another_page(link, "GET", "/oauth2callback")
    assert from_another_page(link, "POST", "/archive")
    assert from_another_page(link, "GET", "/auth/logout")
    for dest in ("iframe", "frame", "embed", "object", "image", "script", "empty", ""):
        assert from_another_page(marks(site, "navigate", dest), "GET", "/archive")
    assert from_another_page(marks(site, "no-cors", "image"), "GET", "/media/a")


def test_the_policy_lets_in_no_eval_no_frame_and_no_other_place() -> None:
    policy = dict(rule.split(" ", 1) for rule in content_policy("127.0.0.1:8501", guard.inline_hashes()).split("; "))
    assert policy["frame-ancestors"] == policy["frame-src"] == policy["object-src"] == "'none'"
    assert "unsafe" not in policy["script-src"]
    # The one script that stands in Streamlit's first page.
    assert policy["script-src"].count("'sha256-") == 1
    places = {word for rule in policy.values() for word in rule.split() if not word.startswith("'")}
    assert places == {"blob:", "data:", "ws://127.0.0.1:8501", "wss://127.0.0.1:8501"}


@pytest.mark.parametrize(
    ("cookie", "secure", "made"),
    [
        ("_streamlit_user=a; Max-Age=2592000", False, "_streamlit_user=a; Max-Age=86400"),
        ("_streamlit_user_tokens_1=a; max-age=2592000", False, "_streamlit_user_tokens_1=a; Max-Age=86400"),
        ("_streamlit_session=a; path=/; Max-Age=1209600", True, "_streamlit_session=a; path=/; Max-Age=86400; Secure"),
        # Clearing a cookie stays clearing it.
        ("_streamlit_user=; Max-Age=0; Path=/", False, "_streamlit_user=; Max-Age=0; Path=/"),
        ("_streamlit_xsrf=2|a|b|1; Path=/; SameSite=Lax", False, "_streamlit_xsrf=2|a|b|1; Path=/; SameSite=Lax"),
        ("_streamlit_xsrf=2|a; Secure", True, "_streamlit_xsrf=2|a; Secure"),
    ],
)
def test_cookies_live_a_day_and_over_tls_only_there(cookie: str, secure: bool, made: str) -> None:
    assert short_lived(cookie, secure=secure) == made


def test_clearing_the_caches_of_everybody_is_no_message_of_a_page() -> None:
    assert "clear_cache" not in guard.MESSAGES
    assert guard.AFTER_THE_END < guard.MESSAGES
    assert st.__version__.startswith("1.67"), "look whether Streamlit's pages send other messages now"
