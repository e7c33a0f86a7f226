"""Choose whose memory to look at: method and seed of a simulation, or user of a log, and the conflict key."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from tepa_core.figures.theme import method_label
from tepa_core.inert import one_line
from tepa_core.store import RunInfo
from tepa_core.ui import cache, labels, state
from tepa_core.ui.text import plain_text


@dataclass(frozen=True, slots=True)
class Place:
    """One conflict key of one lane: method and seed in a simulation, subject in a log."""

    method: str
    seed: int
    subject: str
    key_id: str


def choose(info: RunInfo) -> Place | None:
    """Draw the choices and return the chosen place; None, with a sentence, when the run has nothing that matches.

    A link may name a precedent alone: its place is looked up. What a link names and the run has not is said.
    """
    named = state.news("precedent")
    place = cache.place_of(info.run_id, named) if named else None
    if place is not None:
        method, seed, subject, key_id = place
        settled: dict[str, str | int] = {"method": method, "seed": seed, "subject": subject, "key": key_id, "q": ""}
        for name, value in settled.items():
            state.choose(name, value)
            state.write(name, value)
    elif named:
        st.warning(f"There is no memory {plain_text(named)} in this run. Choose one below.")
    return _of_log(info) if info.is_log else _of_simulation(info)


def _of_simulation(info: RunInfo) -> Place | None:
    lanes = cache.lanes(info.run_id)
    if lanes.empty:
        st.info(
            "No method of this run keeps precedents, so there is no lifecycle. Start a run with tepa on Run.",
            icon=":material/info:",
        )
        return None
    methods = list(lanes["method"].unique())
    left, middle, right = st.columns([2, 1, 3])
    _say_unknown("method", methods)
    method = left.selectbox(
        "Method",
        methods,
        format_func=method_label,
        key=state.remember("method", methods, methods[0], told=True),
        help="Only methods that keep precedents have lifecycles.",
    )
    state.write("method", method)
    seeds = [int(seed) for seed in lanes.loc[lanes["method"] == method, "seed"]]
    _say_unknown("seed", [str(seed) for seed in seeds])
    seed = middle.selectbox(
        "Seed", seeds, key=state.remember("seed", seeds, seeds[0], told=True), help="One repetition of the run."
    )
    keys = cache.keys(info.run_id, method, seed)
    key_id = _key_box(right, keys)
    return Place(method, seed, "", key_id)


def _of_log(info: RunInfo) -> Place | None:
    left, middle, right = st.columns(3)
    search = left.text_input(
        "Search",
        key=state.remember("q", None, ""),
        placeholder="a key, a value or a user",
        help="Narrows the two lists beside it.",
    )
    state.write("q", search)
    best = cache.keys(info.run_id, search=search or None, limit=1)
    if best.empty:
        st.info(f"Nothing in this log matches “{plain_text(search)}”. Clear the search to see everything.")
        return None
    subjects = cache.subjects(info.run_id, search or None)
    names = [str(name) for name in subjects["subject"]]
    held = st.query_params.get("subject", state.held("subject", ""))
    if held not in names and not search and not cache.keys(info.run_id, subject=held, limit=1).empty:
        # The list holds the first thousand: a link may name a later one.
        names.append(held)
    _say_unknown("subject", names)
    counts = dict(zip(names, subjects["revocations"], strict=False))
    shown = labels.of_names(names, lambda name: one_line(name) or "(no user)")
    subject = middle.selectbox(
        "User",
        names,
        format_func=lambda name: f"{shown.get(name, one_line(name))} · {_revoked(counts.get(name, 0))}",
        key=state.remember("subject", names, str(best["subject"].iloc[0]), told=True),
        help="Type to find one. The first has the most revocations.",
    )
    state.write("subject", subject)
    keys = cache.keys(info.run_id, search=search or None, subject=subject)
    key_id = _key_box(right, keys)
    return Place("", 0, subject, key_id)


def _key_box(column: st.delta_generator.DeltaGenerator, keys: pd.DataFrame) -> str:
    """Choose a conflict key; a link may name it by its id or as it is written."""
    ids = [str(name) for name in keys["key_id"]]
    written = dict(zip(keys["key"], ids, strict=True))
    told = state.news("key")
    if told is not None and told not in ids and told in written:
        state.write("key", written[told])
        state.choose("key", written[told])
    else:
        _say_unknown("key", ids)
    shown = labels.told_apart({name: one_line(key) for name, key in zip(ids, keys["key"], strict=True)})
    words = {
        name: f"{shown[name]} · {values} value{'' if values == 1 else 's'}, {_revoked(falls)}"
        for name, values, falls in zip(ids, keys["n_values"], keys["revocations"], strict=True)
    }
    key_id: str = column.selectbox(
        "Key",
        ids,
        format_func=lambda name: words.get(name, one_line(name)),
        key=state.remember("key", ids, ids[0], told=True),
        help="What the memory is about. The first has the most revocations.",
    )
    state.write("key", key_id)
    return key_id


def _say_unknown(name: str, options: list[str]) -> None:
    told = state.news(name)
    if told is not None and told not in options:
        words = {"key": "key", "subject": "user", "method": "method with lifecycles", "seed": "seed"}[name]
        st.warning(f"There is no {words} {plain_text(told)} here; showing another. Choose below.")


def _revoked(count: int) -> str:
    return "never revoked" if not count else f"{count:,} revocation{'' if count == 1 else 's'}"
