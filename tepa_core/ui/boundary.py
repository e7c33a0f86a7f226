"""The one place where a page's errors end: a person reads what happened, what is safe and what to do; the rest goes on.

The router runs each page inside `around`. What streamlit runs by itself passes through here too: a part of a page that
is drawn again alone (`fragment`), and what a click does before the page is drawn (`callback`). The traceback goes to
the terminal, under a number that the page shows.
"""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import streamlit as st

from tepa_core.decisions import DecisionRefused
from tepa_core.files import FileRefused
from tepa_core.inert import visible
from tepa_core.store import StoreError, UnknownPrecedentError, UnknownRunError
from tepa_core.ui import cache
from tepa_core.ui.state import RunUnreadable
from tepa_core.ui.text import plain_text

P = ParamSpec("P")
R = TypeVar("R")

_NOTICES = "boundary_notices"
RUN_PAGE = "pages/data/run.py"

#: What holds whatever went wrong: pages read; what a click writes is written whole, or not at all.
SAFE = "Your runs, evidence and decisions are as they were: what is saved is saved whole, or not at all."


@contextmanager
def around(what: str) -> Iterator[None]:
    """End every error of what is drawn inside, with words in its place.

    Parameters
    ----------
    what
        What is drawn, as in "This page": the beginning of the sentence.
    """
    try:
        yield
    except Exception as error:
        _show(in_words(error, what), _gone(error))


def fragment(function: Callable[P, None]) -> Callable[P, None]:
    """Make a part of a page that is drawn again alone, as ``st.fragment`` does, and whose errors end inside it."""

    @wraps(function)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
        with around("This part of the page"):
            function(*args, **kwargs)

    made: Callable[P, None] = st.fragment(drawn)
    return made


def callback(function: Callable[P, R]) -> Callable[P, R | None]:
    """Make a function that a widget calls: an error in it is told at the top of the page, which is drawn."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            st.session_state.setdefault(_NOTICES, []).append(in_words(error, "What you clicked"))
            return None

    return called


def tell() -> None:
    """Say once what went wrong in the last click."""
    for words in st.session_state.pop(_NOTICES, []):
        st.error(words, icon=":material/error:")


def in_words(error: Exception, what: str) -> str:
    """Say in Markdown what happened, what is safe and what to do; what nobody foresaw goes to the terminal as well."""
    match error:
        case UnknownRunError():
            # Answers about a run that is gone are of no use to anybody.
            cache.forget()
            return (
                "This run was deleted meanwhile, in another tab or by somebody else. Nothing else is touched. Choose "
                "another run on the left."
            )
        case RunUnreadable():
            return (
                f"{plain_text(error, limit=300)} Every other run works as before. Choose another one on the left, or "
                "delete this one on Run."
            )
        case UnknownPrecedentError():
            return f"{plain_text(error, limit=300)} Choose another memory. {SAFE}"
        case DecisionRefused():
            return plain_text(error, limit=600)
        case StoreError() | FileRefused():
            return f"{plain_text(error, limit=600)} {SAFE}"
    number = logged(error, what)
    return (
        f"{what} could not be shown: an unexpected {type(error).__name__}. {SAFE} Try again, choose another run on the "
        f"left or open another page. If it comes back, tell whoever runs this dashboard the number {number}: what "
        "happened stands under it in the terminal."
        if what.startswith("This")
        else f"{what} did not work: an unexpected {type(error).__name__}. {SAFE} Look at the page again before you "
        f"repeat it. If it comes back, tell whoever runs this dashboard the number {number}: what happened stands "
        "under it in the terminal."
    )


def logged(error: Exception, what: str) -> str:
    """Write the traceback to the terminal, nothing in it acting there; return the number that it has."""
    number = secrets.token_hex(4)
    trace = visible("".join(traceback.format_exception(error)), keep="\n")
    logging.getLogger(__name__).error("Error %s. %s:\n%s", number, what, trace)
    return number


def _gone(error: Exception) -> bool:
    return isinstance(error, UnknownRunError | RunUnreadable)


def _show(words: str, run_is_gone: bool) -> None:
    st.error(words, icon=":material/error:")
    with st.container(horizontal=True):
        # The click itself draws the page again; the key has to be free wherever several parts fail.
        st.button("Try again", key=f"try_again_{secrets.token_hex(4)}", icon=":material/refresh:")
        if run_is_gone:
            st.page_link(RUN_PAGE, label="See all runs", icon=":material/play_circle:")
