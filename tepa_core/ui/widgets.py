"""Pieces that pages share: the frame, tables that download, figures with their words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tepa_core.csvsafe import to_safe_csv
from tepa_core.experiment import Progress
from tepa_core.inert import one_line
from tepa_core.store import RunInfo, StoreError, UnknownRunError
from tepa_core.ui import boundary, cache, labels, state
from tepa_core.ui.text import plain_text


def frame(page: str, title: str, question: str) -> None:
    """Draw what every page has: its title and question, and the run picker; makes the first run when there is none.

    Stops the page with a sentence when the database cannot be opened.
    """
    state.enter(page)
    st.title(title, anchor=False)
    st.caption(question)
    try:
        listed = cache.runs()
        if listed.empty:
            with st.status("Making the first run: 50 seeds of the controlled stream", expanded=True) as status:
                bar = st.progress(0.0, "Drawing the stream")
                cache.ensure_first_run(progress_into(bar))
                status.update(label="The first run is ready", state="complete", expanded=False)
            listed = cache.runs()
    except StoreError as error:
        st.error(plain_text(error, limit=600), icon=":material/database_off:")
        st.stop()
    _say_if_gone()
    names = labels.of_runs(listed)
    asked, by_link = st.query_params.get("run"), state.news("run") is not None
    if asked is not None and asked not in names and asked != st.session_state.get("run_in_url"):
        instead = plain_text(names[next(iter(names))])
        st.warning(f"There is no run {plain_text(asked)} in this database; showing {instead} instead.")
    with st.sidebar:
        run_id = st.selectbox(
            "Run",
            list(names),
            format_func=lambda run: names.get(run, one_line(run)),
            key=state.remember("run", list(names), next(iter(names)), told=True),
            help="Every page shows this run. Start another on Run, or load your own log on Import.",
        )
        state.write("run", run_id)
        try:
            info = cache.run_info(run_id)
            words = _in_short(info)
        except UnknownRunError:
            # Deleted between the list and this question: the next drawing lists the others.
            cache.forget()
            st.rerun()
        except Exception as error:
            # Whatever stands in the row of one run, every page opens, and Run deletes it.
            boundary.logged(error, f"The run {run_id}")
            state.set_unreadable(run_id)
            st.caption(f"This run cannot be read. Id {plain_text(run_id)}.")
        else:
            state.set_run(info, by_link=by_link)
            st.caption(words)
    boundary.tell()


def _say_if_gone() -> None:
    """Say it on every page when nothing can be saved any more, before somebody tries."""
    try:
        cache.store().check()
    except StoreError as error:
        st.error(plain_text(error, limit=600), icon=":material/database_off:")


def progress_into(bar: DeltaGenerator) -> Progress:
    """Show the progress of long work in a bar."""

    def show(done: float, words: str) -> None:
        bar.progress(min(done, 1.0), plain_text(words, limit=200))

    return show


def _in_short(info: RunInfo) -> str:
    made = f"{info.created_at:%d %b %Y, %H:%M} UTC"
    if info.is_log:
        return f"Log, {info.counts['loaded']:,} evidence items, loaded {made}. Id {plain_text(info.run_id)}."
    if info.is_facts:
        orders = "one order" if info.counts["seeds"] == 1 else f"{info.counts['seeds']} orders"
        asked = f"{info.counts['facts']:,} facts, {info.counts['tasks']:,} questions in {orders}"
        return f"{asked}, made {made}. Id {plain_text(info.run_id)}."
    return f"{info.counts['seeds']} seeds × {info.counts['tasks']} tasks, made {made}. Id {plain_text(info.run_id)}."


def figure(fig: go.Figure, key: str, *, select: bool | Callable[[], None] = False) -> object:
    """Show a figure with its caption and alternative text, which its builder computed from the same data.

    Parameters
    ----------
    select
        True to make its points selectable; a function is called before the page runs again.

    Returns
    -------
    object
        The selection, when ``select`` asks for one (points only; a selection reruns the page).
    """
    words = fig.layout.meta or {}
    chosen = st.plotly_chart(
        fig,
        key=key,
        width="stretch",
        on_select=select if callable(select) else ("rerun" if select else "ignore"),
        selection_mode="points",
        alt=words.get("alt"),
        config={"displaylogo": False, "toImageButtonOptions": {"filename": key, "scale": 2}},
    )
    if words.get("caption"):
        # Captions are plain sentences that name phases, keys and reviewers.
        st.caption(plain_text(words["caption"], limit=2000))
    return chosen


def table(
    frame: pd.DataFrame,
    key: str,
    *,
    label: str = "Download this table (CSV)",
    columns: Mapping[str, Any] | None = None,
    height: Literal["auto", "content"] = "auto",
    limit: int | None = None,
) -> None:
    """Show a table with a formula-safe download; height ``content`` shows all rows at once.

    Of more than ``limit`` rows the last ones are shown; the download has all.
    """
    if limit is not None and len(frame) > limit:
        st.caption(f"The last {limit:,} of {len(frame):,} rows; the download has all.")
    st.dataframe(
        frame if limit is None else frame.tail(limit),
        key=key,
        hide_index=True,
        width="stretch",
        height=height,
        column_config=columns,
    )
    download(frame, key, label)


def download(
    frame: pd.DataFrame | Callable[[], pd.DataFrame], key: str, label: str = "Download this table (CSV)"
) -> None:
    """Offer a table, or what makes it once it is asked for, as a formula-safe CSV file."""
    st.download_button(
        label,
        lambda: to_safe_csv(frame() if callable(frame) else frame),
        file_name=f"{key}.csv",
        mime="text/csv",
        key=f"{key}_download",
        icon=":material/download:",
        on_click="ignore",
    )


def simulation_only(info: RunInfo, what: str) -> None:
    """Stop a page that needs episodes when the run is a log, saying where to go."""
    if info.is_log:
        st.info(
            f"{plain_text(info.name)} is an imported log: it holds evidence, but nobody's successes, so there is no "
            f"{what}. See its memories on Lifecycle and Archive, or choose a simulated run on the left.",
            icon=":material/info:",
        )
        st.stop()
