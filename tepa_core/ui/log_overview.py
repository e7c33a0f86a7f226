"""What an imported log says at first sight: its memories, when they were revoked, what to look at first."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from tepa_core.figures import revocations_by_month
from tepa_core.figures.theme import STATE_STYLE
from tepa_core.store import RunInfo, in_words_at
from tepa_core.store.queries import BATCH_SIZE
from tepa_core.ui import badges, cache, headline
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import figure

ARCHIVE_PAGE, LIFECYCLE_PAGE = "pages/audit/archive.py", "pages/explore/lifecycle.py"
KEYS_SHOWN = 3


def show(info: RunInfo) -> None:
    """Draw the overview of a log."""
    states = cache.state_counts(info.run_id)
    transitions = cache.lane_transitions(info.run_id)
    fell = transitions[(transitions["to_state"] == "revoked") & (transitions["from_state"] == "active")]
    first, *rest = headline.of_log(states, len(cache.subjects(info.run_id, limit=1_000_000)), transitions)
    st.markdown(f"#### {first}")
    st.markdown(" ".join(rest))
    with st.container(horizontal=True):
        for name in ("active", "revoked", "hypothesis", "candidate"):
            st.metric(STATE_STYLE[name].label, f"{states.get(name, 0):,}", border=True, width=150)
    if len(fell):
        figure(revocations_by_month(fell, cache.phases(info.run_id)), "revocations_by_month")
    st.subheader("Look at these first", anchor=False)
    st.markdown("The keys with most revocations, and what was revoked together:")
    _keys(info)
    _batches(info, fell)
    st.page_link(
        ARCHIVE_PAGE,
        label=f"All revoked memories: {states.get('revoked', 0):,}",
        icon=":material/inventory_2:",
        query_params={"run": info.run_id, "show": "revoked", "fell": ""},
    )
    st.subheader("About this log", anchor=False)
    counts = info.counts
    st.markdown(
        f"{plain_text(info.source)}: read {counts['read']:,} rows, loaded {counts['loaded']:,}, "
        f"rejected {counts['rejected']:,}."
    )
    for badge, count in info.badges.items():
        st.markdown(f":material/info: {badges.in_words(badge, count)}")


def _keys(info: RunInfo) -> None:
    keys = cache.keys(info.run_id, limit=KEYS_SHOWN)
    contested = keys[keys["revocations"] > 0]
    if contested.empty:
        st.page_link(LIFECYCLE_PAGE, label="How the memories grew", icon=":material/timeline:")
    for _, row in contested.iterrows():
        whose = f"{row['subject']}, {row['key']}" if row["subject"] else row["key"]
        now = f"now {row['active']}" if pd.notna(row["active"]) else "no active value now"
        st.page_link(
            LIFECYCLE_PAGE,
            label=plain_text(f"{whose}: {_times(int(row['revocations']))}, {now}"),
            icon=":material/timeline:",
            query_params={"run": info.run_id, "subject": row["subject"], "key": row["key_id"]},
        )


def _times(revocations: int) -> str:
    return "one revocation" if revocations == 1 else f"{revocations:,} revocations"


def _batches(info: RunInfo, fell: pd.DataFrame) -> None:
    together = fell.groupby("occurred")["precedent_id"].nunique()
    for at, size in together[together >= BATCH_SIZE].nlargest(KEYS_SHOWN).items():
        st.page_link(
            ARCHIVE_PAGE,
            label=plain_text(f"{size:,} at once, {in_words_at(at, True)}"),
            icon=":material/dynamic_feed:",
            query_params={"run": info.run_id, "show": "all", "fell": "batch"},
        )
