"""Who acts: the person that a login vouches for, or a name that somebody typed.

Where ``[auth]`` stands in ``.streamlit/secrets.toml``, Streamlit signs people in with an OpenID Connect provider, and
``[roles]`` says who may decide::

    [roles]
    reviewers = ["ana@house.example"]      # e-mail addresses that the provider has verified
    reviewer_subjects = ["8d1f0c…"]        # or the provider's own ids of accounts

Without ``[auth]`` whoever can open the dashboard may decide under a name that is typed and marked "not authenticated".
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from tepa_core.decisions import Actor, Role
from tepa_core.store import Store
from tepa_core.ui import cache
from tepa_core.ui.sign_ins import login_is_on, login_unreadable
from tepa_core.ui.text import plain_text

#: Session key of the typed name. It is no widget's key, so it outlives the widgets that ask for it.
NAME = "reviewer_name"

LONGEST_NAME = 80


def current_actor() -> Actor:
    """Say who is acting at this very moment; called again wherever something is written, never kept.

    The role comes from the configuration and from claims that the provider has signed, and from nothing that the
    browser sends. A sign-in counts until its token expires, which Streamlit itself does not check.
    """
    if not login_is_on():
        return Actor(str(st.session_state.get(NAME, "")), authenticated=False, role=Role.REVIEWER)
    if not _signed_in() or _expired():
        return Actor("", authenticated=False, role=Role.VIEWER)
    email, subject = _email(), str(st.user.get("sub") or "")
    chosen = (email and email.casefold() in _listed("reviewers")) or subject.casefold() in _listed("reviewer_subjects")
    name = email or subject
    role = Role.REVIEWER if name and chosen else Role.VIEWER
    return Actor(name, authenticated=True, role=role, until=_until())


def writing() -> Store:
    """Return the database for whoever acts at this very moment.

    Raises
    ------
    PermissionRefused
        If that person may not write, before any work is done; the store asks again at each write.
    """
    store = cache.store().acting(current_actor())
    store.permit()
    return store


def may_decide() -> bool:
    """Tell whether to draw the verbs; that they are drawn permits nothing, the store asks for the role itself."""
    return current_actor().role is Role.REVIEWER


def sign_in() -> None:
    """Draw who is signed in; where sign-in is on and nobody is, ask for it and stop the page."""
    if not login_is_on():
        return
    if login_unreadable():
        st.error(
            "The file with the settings of the login cannot be read, so nobody can sign in. Whoever runs this "
            "dashboard corrects .streamlit/secrets.toml: it must be TOML, as the README shows it.",
            icon=":material/lock:",
        )
        st.stop()
    if _signed_in() and not _expired():
        actor = current_actor()
        with st.sidebar:
            st.caption(f"Signed in as {plain_text(actor.name)}, {actor.role}.")
            st.button("Sign out", key="sign_out", icon=":material/logout:", type="tertiary", on_click=st.logout)
        return
    st.info(
        "Your sign-in has expired. Sign in again to go on; nothing that was saved is lost."
        if _signed_in()
        else "Sign in to see the memories of this dashboard.",
        icon=":material/lock:",
    )
    providers = [str(name) for name, value in st.secrets["auth"].items() if hasattr(value, "items")]
    # Parameters of the one provider's own requests are a table too, but no provider.
    named: list[str | None] = [name for name in providers if name != "client_kwargs"]
    for provider in named or [None]:
        label = "Sign in" if provider is None else f"Sign in with {plain_text(provider)}"
        st.button(label, key=f"sign_in_{provider or ''}", type="primary", on_click=st.login, args=(provider,))
    st.stop()


def only_reviewers(what: str) -> None:
    """Stop a page that changes what is stored when a viewer opens it."""
    if not may_decide():
        st.info(
            f"You are signed in as a viewer: {what} is for reviewers. Whoever runs this dashboard lists them in its "
            "configuration.",
            icon=":material/lock:",
        )
        st.stop()


def name_field() -> None:
    """Ask for a name where nobody signs in; the ledger marks it as not authenticated."""
    if login_is_on():
        return
    st.text_input(
        "Your name",
        key="name_choice",
        value=str(st.session_state.get(NAME, "")),
        max_chars=LONGEST_NAME,
        help="It stands in the ledger, marked “not authenticated”: nobody signs in to this dashboard, so anybody can "
        "type any name. How to switch on the login stands in the README.",
    )


def keep_name() -> None:
    """Keep what was typed for the rest of the session; first thing in a callback that writes."""
    if not login_is_on() and "name_choice" in st.session_state:
        st.session_state[NAME] = " ".join(str(st.session_state["name_choice"]).split())


def _signed_in() -> bool:
    return st.user.get("is_logged_in") is True


def _until() -> float:
    """Return until when the token holds, in seconds since 1970 UTC; one that does not say has expired."""
    until = st.user.get("exp")
    return float(until) if isinstance(until, int | float) else 0.0


def _expired() -> bool:
    return _until() <= time.time()


def _email() -> str:
    """Return the e-mail address, unless the provider says that it has not verified it."""
    verified = st.user.get("email_verified", True)
    return str(st.user.get("email") or "") if verified in (True, "true") else ""


def _listed(setting: str) -> Sequence[str]:
    roles = st.secrets.get("roles", {})
    return [str(name).casefold() for name in roles.get(setting, [])]
