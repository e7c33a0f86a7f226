"""What a person would send to a colleague lives in the URL: run, key, method, seed, filters, selected precedent.

Streamlit can bind a widget to a query parameter itself, but writes the label of an option, and nothing while the value
is the default. A link must name ids and must name them all, since a default ("the newest run") changes. So ids are
written here.

What a page holds belongs to that page and to the kind of run that it shows: a search of a log is no exposure of a
proposition, and a task is no day. So `key_of` makes the keys of widgets from page, kind and name, and a value of
another type than a widget takes, from wherever it came, is dropped.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Sequence
from typing import Any, TypeVar

import streamlit as st

from tepa_core.decisions import DecisionRefused
from tepa_core.store import RunInfo
from tepa_core.ui.text import plain_text

T = TypeVar("T", str, int, dt.date)

_RUN = "current_run"
_PAGE, _KIND, _UNREADABLE = "current_page", "current_kind", "unreadable_run"

#: The memory that is looked at: who opens one on a page finds it on the others.
SHARED = frozenset({"method", "seed", "subject", "key", "precedent", "transition"})
#: Pages that show the same whatever run is chosen, and what belongs to the whole visit.
OF_NO_RUN = frozenset({"reproduction", "run", "import"})
OF_THE_VISIT = frozenset({"run"})


def key_of(name: str) -> str:
    """Return the key of the widget that holds a value: made of the page, the kind of run and the value's name."""
    page, kind = st.session_state.get(_PAGE), st.session_state.get(_KIND)
    if page is None or name in OF_THE_VISIT:
        return f"{name}_choice"
    if name in SHARED:
        return f"memory.{kind}.{name}_choice"
    return f"{page}.{'any' if page in OF_NO_RUN else kind}.{name}_choice"


def enter(page: str) -> None:
    """Say which page is drawn; the shared frame does it first of all."""
    st.session_state[_PAGE] = page


def remember(
    name: str,
    options: Container[T] | None,
    default: T | None,
    kind: type[T] | None = None,
    *,
    told: bool = False,
) -> str:
    """Prepare a widget whose value lives in the URL; call it right before the widget.

    A value of the URL that the widget does not allow is dropped with a sentence.

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
    told
        The page itself says what of the URL is not there.

    Returns
    -------
    str
        The widget's ``key``: its session state holds an allowed value.
    """
    key, of = key_of(name), kind or type(default)
    said = news(name)
    if said is not None:
        value = _read(said, of)
        if _allowed(value, of, options):
            st.session_state[key] = value
        elif said and not told:
            st.warning(f"The address says {plain_text(name)} {plain_text(said)}, which this page cannot show.")
    held = st.session_state.get(key)
    # Streamlit drops the state of a widget that a page does not draw; assigning keeps it over pages.
    st.session_state[key] = held if _allowed(held, of, options) else default
    write(name, st.session_state[key])
    return key


def _allowed(value: object, kind: type[Any], options: Container[Any] | None) -> bool:
    return isinstance(value, kind) and (options is None or value in options)


def remember_several(name: str, options: Sequence[str], default: Sequence[str]) -> str:
    """Prepare a widget that holds several ids, as `remember` does for one; the URL lists them with commas.

    Ids that the options do not have are left out. In the URL ``all`` stands for every option, ``none`` for no one.

    Returns
    -------
    str
        The widget's ``key``.
    """
    key = key_of(name)
    said = news(name)
    if said is not None:
        named = options if said == "all" else said.split(",")
        st.session_state[key] = [one for one in options if one in named]
    held = st.session_state.get(key, default)
    st.session_state[key] = [one for one in (held if isinstance(held, list) else default) if one in options]
    whole = len(st.session_state[key]) == len(options)
    write(name, "all" if whole else ",".join(st.session_state[key]) or "none")
    return key


def news(name: str) -> str | None:
    """Return what the URL says of a value when it is newer than the session: a link was opened, or "back" pressed."""
    said = st.query_params.get(name)
    return None if said == st.session_state.get(_in_url(name)) else said


def write(name: str, value: str | int | dt.date | None) -> None:
    """Write a value into the URL; an empty one is left out."""
    text = "" if value is None else str(value)
    st.session_state[_in_url(name)] = text
    if text:
        if st.query_params.get(name) != text:
            st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]


def _in_url(name: str) -> str:
    return key_of(name).removesuffix("_choice") + "_in_url"


def held(name: str, default: T) -> T:
    """Return a remembered value, or the default while there is none of its type."""
    value = st.session_state.get(key_of(name))
    return value if isinstance(value, type(default)) else default


def choose(name: str, value: str | int) -> None:
    """Set a remembered value, for callbacks."""
    st.session_state[key_of(name)] = value


def follow(name: str, value: str | int) -> None:
    """Set a remembered value as a link would, for the body of a page: it holds from the next run of the script on."""
    st.query_params[name] = str(value)


def _read(said: str, kind: type[Any]) -> Any:
    try:
        return dt.date.fromisoformat(said) if issubclass(kind, dt.date) else kind(said)
    except ValueError:
        return None


def kind_of(info: RunInfo) -> str:
    """Name the kind of a run: ``log``, ``facts`` or ``simulation``."""
    return "log" if info.is_log else "facts" if info.is_facts else "simulation"


def set_run(info: RunInfo, *, by_link: bool) -> None:
    """Make a run the current one; the shared frame does it before the page runs.

    Parameters
    ----------
    by_link
        Whether the URL asks for this run. Otherwise somebody has chosen it on the page, and what the URL says of a run
        of another kind is not meant for this one.
    """
    kind = kind_of(info)
    if st.session_state.get(_KIND) not in (None, kind) and not by_link and st.session_state.get(_PAGE) not in OF_NO_RUN:
        for name in [name for name in st.query_params if name not in OF_THE_VISIT]:
            del st.query_params[name]
    st.session_state[_RUN], st.session_state[_KIND] = info, kind


def must_show(run_id: str) -> None:
    """Let a callback write only into the run whose page was drawn; first thing in a callback that decides.

    Raises
    ------
    DecisionRefused
        If another run was chosen meanwhile, by a click that came together with this one.
    """
    chosen = st.session_state.get(key_of("run"), run_id)
    if chosen != run_id:
        raise DecisionRefused(
            f"This was filled in for the run {run_id}, and the run {chosen} is chosen now. Nothing was saved; open the "
            "run that you mean and decide there."
        )


class RunUnreadable(ValueError):  # noqa: N818 - it names what is wrong with the run, and is shown to people
    """What the database holds of a run cannot be read; the message says which run."""


def set_unreadable(run_id: str) -> None:
    """Make a run the current one of which not even the outline can be read."""
    st.session_state[_RUN], st.session_state[_KIND] = None, "unreadable"
    st.session_state[_UNREADABLE] = run_id


def chosen_run() -> str:
    """Return the id of the run that the shared frame has chosen, whether it can be read or not."""
    info: RunInfo | None = st.session_state[_RUN]
    return str(st.session_state[_UNREADABLE]) if info is None else info.run_id


def readable_run() -> RunInfo | None:
    """Return the run that the shared frame has chosen; None for one that cannot be read, on pages that open anyhow."""
    info: RunInfo | None = st.session_state[_RUN]
    return info


def current_run() -> RunInfo:
    """Return the run that the shared frame has chosen.

    Raises
    ------
    RunUnreadable
        If its row in the database is damaged.
    """
    info: RunInfo | None = st.session_state[_RUN]
    if info is None:
        raise RunUnreadable(
            f"The run {st.session_state[_UNREADABLE]} cannot be read: its row in the database is damaged."
        )
    return info
