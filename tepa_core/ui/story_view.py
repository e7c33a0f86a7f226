"""Draws the story of one change; `tepa_core.ui.story` tells it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from tepa_core.figures.theme import method_label
from tepa_core.methods import METHODS
from tepa_core.store import RunInfo
from tepa_core.ui import boundary, cache, state, story
from tepa_core.ui.headline import NAIVE
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import table

LIFECYCLE_PAGE = "pages/explore/lifecycle.py"


def pair(methods: Sequence[str]) -> tuple[str, str] | None:
    """Return the method whose lifecycle is told and the one beside it; None when the run has no such two."""
    ours = [method for method in methods if method in METHODS and METHODS[method].revokes]
    other = [method for method in (NAIVE, *methods) if method in methods and not _revokes(method)]
    return (ours[0], other[0]) if ours and other else None


def _revokes(method: str) -> bool:
    return method in METHODS and METHODS[method].revokes


@boundary.fragment
def show(info: RunInfo, methods: Sequence[str], phase: pd.Series) -> None:
    """Step through a phase task by task, from its first task on."""
    chosen = pair(methods)
    if chosen is None:
        st.info("This run has no method that revokes beside one that does not, so there is no story to tell.")
        return
    ours, other = chosen
    start, end = int(phase["start"]), int(phase["end"])
    lanes = cache.lanes(info.run_id)
    seeds = lanes.loc[lanes["method"] == ours, "seed"].astype(int).tolist()
    opening = st.empty()
    first, rest = st.columns([1, 3])
    seed = first.selectbox("Seed", seeds, key=state.remember("seed", seeds, seeds[0]), help="One draw of the stream.")
    truth = cache.truth(info.run_id)
    truth = truth[truth["seed"] == seed]
    opening.markdown(story.opening(truth, str(phase["phase"]), start))
    steps = story.tell(
        cache.episodes(info.run_id, ours, seed),
        cache.episodes(info.run_id, other, seed),
        cache.lane_evidence(info.run_id, ours, seed),
        cache.lane_transitions(info.run_id, ours, seed),
        truth,
        start,
        end,
    )
    tasks = [step.t for step in steps]
    task = rest.slider("Task", start, end - 1, key=state.remember("task", tasks, start), help="Arrow keys move it.")
    changes = [step.t for step in steps if step.changes]
    coming = next((t for t in changes if t > task), None)
    with st.container(horizontal=True):
        _go("Previous task", "arrow_back", task - 1 if task > start else None)
        _go("Next task", "arrow_forward", task + 1 if task < end - 1 else None)
        _go("Next change of state", "skip_next", coming)
    step = steps[task - start]
    really = f" What really works now: **{plain_text(step.right)}**." if step.right is not None else ""
    st.markdown(
        f"**Task {step.t}** ({step.number} of {len(steps)} in {plain_text(phase['phase'])}) "
        f"is about *{plain_text(step.key)}*.{really}"
    )
    for column, side in zip(st.columns(2), (step.ours, step.other), strict=True):
        with column.container(border=True, height="stretch"):
            _side(side, step.number)
            if side is step.ours:
                for change in step.changes:
                    _change(info, ours, seed, change)
    with st.expander("The whole story as a table"):
        table(story.table(steps), "story")


def _go(label: str, icon: str, task: int | None) -> None:
    st.button(
        label,
        icon=f":material/{icon}:",
        key=f"story_{icon}",
        disabled=task is None,
        on_click=boundary.callback(state.choose),
        args=("task", task),
    )


def _side(side: story.Side, tasks: int) -> None:
    st.markdown(f"**{method_label(side.method)}**: {side.won} of {tasks} done since the change")
    st.markdown(f"{side.retrieved} {side.did}")
    if side.success:
        st.badge("Success", icon=":material/check:", color="green")
    else:
        st.badge("Failure", icon=":material/close:", color="red")
    st.markdown(side.learned)


def _change(info: RunInfo, method: str, seed: int, change: story.Change) -> None:
    st.markdown(f":material/sync_alt: {change.words}")
    life = cache.key_life_of(info.run_id, change.key_id, method=method, seed=seed)
    st.caption(plain_text(life.why(change.transition_id).sentence, limit=400))
    st.page_link(
        LIFECYCLE_PAGE,
        label=f"Why: the life of {plain_text(change.value)}",
        icon=":material/timeline:",
        query_params={
            "run": info.run_id,
            "method": method,
            "seed": str(seed),
            "key": change.key_id,
            "precedent": change.precedent_id,
            "transition": change.transition_id,
        },
    )


def links_to_harm(info: RunInfo, harm: pd.DataFrame, harmed: str, methods: Sequence[str]) -> None:
    """List the keys on which a method loses most, each with a link to what a method that revokes did there."""
    if harm.empty:
        st.markdown(f"{method_label(harmed)} loses on no key against an agent without memory.")
        return
    ours = [method for method in methods if _revokes(method)]
    for _, row in harm.iterrows():
        exposed = f", outdated value retrieved in {100 * row['exposed']:.0f} %" if pd.notna(row["exposed"]) else ""
        words = f"{row['key']} in {row['phase']}: {row['lost']:.1f} of {row['tasks']:.1f} tasks lost per seed{exposed}."
        st.markdown(plain_text(words, limit=200))
        if ours:
            st.page_link(
                LIFECYCLE_PAGE,
                label=f"What {method_label(ours[0])} did with {plain_text(row['key'])}",
                icon=":material/timeline:",
                query_params={"run": info.run_id, "method": ours[0], "key": str(row["key"])},
            )
