"""What a person would send to a colleague lives in the URL: run, key, method, seed, filters, selected precedent.

Streamlit can bind a widget to a query parameter itself, but writes the label of an option, and nothing while the value
is the default. A link must name ids and must name them all, since a default ("the newest run") changes. So ids are
written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import streamlit as st

from tepa_core.store import RunInfo

T = TypeVar("T", str, int)

_RUN = "current_run"


def remember(name: str, options: Sequence[T] | None, default: T, kind: type[T] | None = None) -> str:
    """Prepare a widget whose value lives in the URL; call it right before the widget.

    Parameters
    ----------
    name
        Name of the query parameter.
    options
        Values that the widget allows; None for free text.
    default
        Value when neither URL nor session names an allowed one.
    kind
        Type of the values; that of the default when left out.

    Returns
    -------
    str
        The widget's ``key``: its session state holds an allowed value.
    """
    key, written = f"{name}_choice", f"{name}_in_url"
    said = st.query_params.get(name)
    if said is not None and said != st.session_state.get(written):
        # A link that was opened, or the browser's back button: the URL is newer than the session.
        value = _read(said, kind or type(default))
        if value is not None and (options is None or value in options):
            st.session_state[key] = value
    if key not in st.session_state or (options is not None and st.session_state[key] not in options):
        st.session_state[key] = default
    else:
        # Streamlit drops the state of a widget that a page does not draw; assigning keeps it over pages.
        st.session_state[key] = st.session_state[key]
    write(name, st.session_state[key])
    return key


def write(name: str, value: str | int) -> None:
    """Write a value into the URL; an empty one is left out."""
    text = str(value)
    st.session_state[f"{name}_in_url"] = text
    if text:
        if st.query_params.get(name) != text:
            st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]


def choose(name: str, value: str | int) -> None:
    """Set a remembered value, for callbacks."""
    st.session_state[f"{name}_choice"] = value


def _read(said: str, kind: type[T]) -> T | None:
    try:
        return kind(said)
    except ValueError:
        return None


def set_run(info: RunInfo) -> None:
    """Make a run the current one; the shared frame does it before the page runs."""
    st.session_state[_RUN] = info


def current_run() -> RunInfo:
    """Return the run that the shared frame has chosen."""
    info: RunInfo = st.session_state[_RUN]
    return info
