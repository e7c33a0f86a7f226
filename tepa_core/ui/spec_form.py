"""The form that starts an experiment, made from the fields of the stream's parameters and of the thresholds."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from tepa_core.decisions import PermissionRefused
from tepa_core.experiment import FACT_STREAM, RunSpec, run
from tepa_core.figures.theme import method_label
from tepa_core.lifecycle import Thresholds
from tepa_core.methods import FALLBACKS, METHODS
from tepa_core.store import save_run
from tepa_core.streams import STREAMS
from tepa_core.ui import cache, headline, state, who
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import progress_into

_NEWS = "run_news"


def tell(words: str, *, done: bool = True) -> None:
    """Leave word of what a click did, for the top of the page's next drawing."""
    st.session_state[_NEWS] = (words, done)


def told() -> tuple[str, bool] | None:
    """Return and forget what `tell` left."""
    news: tuple[str, bool] | None = st.session_state.pop(_NEWS, None)
    return news


def field_help(kind: type) -> dict[str, str]:
    """Read the meaning of a dataclass's fields from its docstring, or from the one of the class it extends.

    Examples
    --------
    >>> field_help(Thresholds)["n_min"]
    'Outcomes before the posterior rule applies (count, 1 to a billion).'
    """
    meaning: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__doc__ or "")
        found = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
        for names, words in re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?)+)", found[1] if found else "", re.MULTILINE):
            meaning |= dict.fromkeys(names.split(", "), " ".join(words.split()))
    return meaning


def choose_stream() -> str:
    """Draw the choice of the stream; return its id, one of `STREAMS` or `FACT_STREAM`."""
    titles = {name: spec.title for name, spec in STREAMS.items()} | {FACT_STREAM: "Facts of a file, and questions"}
    streams = list(titles)
    stream: str = st.selectbox(
        "Stream",
        streams,
        format_func=lambda name: titles.get(name, name),
        key=state.remember("stream", streams, streams[0]),
        help="What changes, and when. Its parameters stand below.",
    )
    state.write("stream", stream)
    return stream


def run_name(placeholder: str) -> str:
    """Draw the field for the name of the run; empty where the stream names it."""
    return st.text_input("Name", key="new_name", placeholder=placeholder, max_chars=80, persist_state="session")


def choose_methods(offered: Sequence[str], key: str) -> list[str]:
    """Draw the choice of methods, all of those offered to begin with."""
    return st.multiselect(
        "Methods",
        offered,
        default=list(offered),
        format_func=method_label,
        key=key,
        persist_state="session",
        help="\n".join(f"- {method_label(name)}: {METHODS[name].memory_operation}" for name in offered),
    )


def draw(stream: str) -> tuple[RunSpec, str] | None:
    """Draw the form of a simulated stream; return what to run and its name once it is sent and allowed, else None."""
    with st.form("run_form"):
        name = run_name("made from the stream and the seeds")
        left, right = st.columns(2)
        seeds = left.number_input(
            "Seeds", value=50, step=1, key="new_seeds", persist_state="session", help="Repetitions with other draws."
        )
        first = right.number_input(
            "First seed",
            value=0,
            step=1,
            key="new_first_seed",
            persist_state="session",
            help="Seeds count up from here.",
        )
        methods = choose_methods(list(METHODS), "new_methods")
        fallback = st.radio(
            "Without an Active memory TEPA acts on",
            FALLBACKS,
            index=FALLBACKS.index(STREAMS[stream].fallback),
            captions=[headline.FALLBACKS[name] for name in FALLBACKS],
            format_func={"candidate": "its best candidate", "base_policy": "the base policy"}.get,
            key=f"{stream}_fallback",
            persist_state="session",
        )
        with st.expander("Thresholds of the lifecycle"):
            thresholds = fields(Thresholds(), "threshold")
        with st.expander(f"Parameters of the stream: {STREAMS[stream].title}"):
            world = fields(STREAMS[stream](), stream)
        if not st.form_submit_button("Run", type="primary", icon=":material/play_circle:", key="run_it"):
            return None
        try:
            spec = RunSpec.build(
                stream,
                seeds=int(seeds),
                first_seed=int(first),
                methods=methods,
                thresholds=Thresholds(**thresholds),
                world=world,
                fallback=fallback,
            )
        except ValueError as error:
            st.error(f"This run cannot start: {plain_text(error, limit=400)}. Correct it above.")
            return None
        return spec, name


def fields(usual: Any, prefix: str) -> dict[str, Any]:
    """Draw one widget per field of a dataclass, and return what they say.

    Ranges are left to the class, whose refusal is a sentence.

    Parameters
    ----------
    usual
        An instance, whose values the widgets begin with.
    prefix
        What the keys of the widgets begin with.
    """
    meaning = field_help(type(usual))
    values: dict[str, Any] = {}
    for position, field in enumerate(dataclasses.fields(usual)):
        default = getattr(usual, field.name)
        if position % 3 == 0:
            columns = st.columns(3)
        draw = columns[position % 3]
        key, words = f"{prefix}_{field.name}", meaning.get(field.name)
        if isinstance(default, bool):
            values[field.name] = draw.checkbox(field.name, default, key=key, help=words, persist_state="session")
        else:
            step, shown = (1, None) if isinstance(default, int) else (0.01, "%.3f")
            number: Callable[..., float] = draw.number_input
            values[field.name] = number(
                field.name,
                value=default,
                step=step,
                format=shown,
                key=key,
                help=words,
                persist_state="session",
            )
    return values


def start(spec: RunSpec, name: str) -> None:
    """Run a spec and store it at the end, or open the run if it exists already; then show the page anew with it."""
    if not exists(spec.run_id):
        with st.status(f"Running {spec.seeds} seeds of {spec.stream_spec.title}", expanded=True) as status:
            bar = st.progress(0.0, "Drawing the stream")
            try:
                store = who.writing()
                result = run(spec, progress_into(bar))
                save_run(store, result, name.strip() or None)
            except PermissionRefused as error:
                status.update(label="The run was not stored", state="error")
                st.error(plain_text(error, limit=400), icon=":material/block:")
                return
            except OSError as error:
                status.update(label="The run failed; nothing was stored", state="error")
                st.error(f"A file of the stream could not be written or read: {plain_text(error, limit=400)}.")
                return
        cache.forget()
        tell(f"The run is stored, after {result.elapsed:.1f} seconds. It is chosen now.")
    state.follow("run", spec.run_id)
    st.rerun()


def exists(run_id: str) -> bool:
    """Say whether a run is stored already, and leave word of it."""
    listed = cache.runs().set_index("run_id")["name"]
    if run_id not in listed.index:
        return False
    tell(f"This very run exists already, as “{listed[run_id]}”. It is chosen now.")
    return True
