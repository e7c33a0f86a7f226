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
    key = f"{name}_choice"
    said = news(name)
    if said is not None:
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


def remember_several(name: str, options: Sequence[str], default: Sequence[str]) -> str:
    """Prepare a widget that holds several ids, as `remember` does for one; the URL lists them with commas.

    Ids that the options do not have are left out. In the URL ``all`` stands for every option, ``none`` for no one.

    Returns
    -------
    str
        The widget's ``key``.
    """
    key = f"{name}_choice"
    said = news(name)
    if said is not None:
        named = options if said == "all" else said.split(",")
        st.session_state[key] = [one for one in options if one in named]
    held = st.session_state.get(key, default)
    st.session_state[key] = [one for one in held if one in options]
    whole = len(st.session_state[key]) == len(options)
    write(name, "all" if whole else ",".join(st.session_state[key]) or "none")
    return key


def news(name: str) -> str | None:
    """Return what the URL says of a value when it is newer than the session: a link was opened, or "back" pressed."""
    said = st.query_params.get(name)
    return None if said == st.session_state.get(f"{name}_in_url") else said


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


def follow(name: str, value: str | int) -> None:
    """Set a remembered value as a link would, for the body of a page: it holds from the next run of the script on."""
    st.query_params[name] = str(value)


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
