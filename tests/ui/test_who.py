"""Who acts: roles come from the configuration and from signed claims, and end with the token."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tepa_core.decisions import Actor, Role
from tepa_core.ui import who

LATER = time.time() + 3600
CONFIGURED = {"auth": {"client_id": "x"}, "roles": {"reviewers": ["Ana@House.example"], "reviewer_subjects": ["s-7"]}}
SignIn = Callable[..., Actor]


class Secrets(dict[str, Any]):
    """A secrets file that could be read."""

    def load_if_toml_exists(self) -> bool:
        return True


class Broken(Secrets):
    """One that could not."""

    def load_if_toml_exists(self) -> bool:
        return False


@pytest.fixture
def sign_in(monkeypatch: pytest.MonkeyPatch) -> SignIn:
    """Say who the provider vouches for, and return who acts."""

    def signed_in(**claims: Any) -> Actor:
        monkeypatch.setattr(who.st, "secrets", Secrets(CONFIGURED))
        monkeypatch.setattr(who.st, "user", {"is_logged_in": True, "exp": LATER, **claims})
        return who.current_actor()

    return signed_in


def test_listed_address_reviews_in_any_case(sign_in: SignIn) -> None:
    assert sign_in(email="ana@house.example", sub="1") == Actor("ana@house.example", True, Role.REVIEWER, LATER)


def test_listed_account_reviews(sign_in: SignIn) -> None:
    assert sign_in(sub="s-7") == Actor("s-7", True, Role.REVIEWER, LATER)


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "vic@house.example", "sub": "2"},
        # The provider has not verified that the address is theirs.
        {"email": "ana@house.example", "email_verified": False, "sub": "3"},
        # An account that is named like somebody's address is not that somebody.
        {"sub": "ana@house.example"},
        {"email": "s-7", "sub": "4"},
        {"email": "", "sub": ""},
        {"email": "vic@house.example", "sub": "5", "role": "reviewer", "roles": ["reviewer"]},
    ],
)
def test_others_only_read(sign_in: SignIn, claims: dict[str, Any]) -> None:
    assert sign_in(**claims).role is Role.VIEWER


@pytest.mark.parametrize("exp", [0, time.time() - 1, None, "tomorrow"], ids=["1970", "just now", "never", "no number"])
def test_token_that_has_expired_or_never_says_so_is_nobody(sign_in: SignIn, exp: Any) -> None:
    assert sign_in(email="ana@house.example", sub="1", exp=exp) == Actor("", False, Role.VIEWER)


def test_without_a_login_a_typed_name_reviews_and_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(who.st, "secrets", Secrets())
    monkeypatch.setattr(who.st, "session_state", {who.NAME: "Ana"})
    assert who.current_actor() == Actor("Ana", False, Role.REVIEWER)


def test_settings_that_cannot_be_read_let_nobody_decide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text("[auth\n")
    monkeypatch.setattr(who.st, "secrets", Broken())
    monkeypatch.setattr(who.st, "user", {})
    monkeypatch.setattr(who.st, "get_option", lambda name: [str(file)])
    assert who.current_actor().role is Role.VIEWER
    file.unlink()
    monkeypatch.setattr(who.st, "session_state", {})
    assert who.current_actor().role is Role.REVIEWER
