"""The archive as a list that a person can work through: filters, order, counts, and the row that is open."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from tepa_core.figures.theme import STATE_STYLE, method_label
from tepa_core.store import REVOCATION_RULES, RunInfo
from tepa_core.store.queries import BATCH_SIZE
from tepa_core.ui import cache, state
from tepa_core.ui.widgets import plain_text

TABLE = "archive_table"

#: Rows that the table lists; the filters find the others.
LISTED = 5000

SHOW: Mapping[str, str] = MappingProxyType(
    {"revoked": "Revoked now", "back": "Came back", "all": "Revoked now or came back"}
)
ORDERS: Mapping[str, str] = MappingProxyType(
    {
        "close": "Close calls, much support first",
        "latest": "Latest first",
        "often": "Most often revoked first",
        "name": "By user, key and value",
    }
)
RULES: Mapping[str, str] = MappingProxyType(
    {"recent": "recent rule", "posterior": "posterior rule", "superseded": "superseded by another value"}
)
_ANY = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What the filters leave.

    Attributes
    ----------
    shown
        Rows of `tepa_core.store.queries.archive` that are listed, in order.
    found
        How many match the filters.
    total
        How many precedents were ever revoked in the chosen lanes.
    """

    shown: pd.DataFrame
    found: int
    total: int


def ever_revoked(info: RunInfo) -> tuple[pd.DataFrame, str | None, int | None]:
    """Return all revocations of the chosen lanes, with the method and the seed (None: all); draws that choice."""
    if info.is_log:
        return cache.archive(info.run_id), None, None
    lanes = cache.lanes(info.run_id)
    methods = [str(name) for name in lanes["method"].unique()]
    if not methods:
        return cache.archive(info.run_id), None, None
    left, right, _ = st.columns(3)
    method = left.selectbox(
        "Method", methods, format_func=method_label, key=state.remember("in_method", methods, methods[0])
    )
    state.write("in_method", method)
    seeds = ["all", *(str(seed) for seed in lanes.loc[lanes["method"] == method, "seed"])]
    seed = right.selectbox(
        "Seed",
        seeds,
        format_func=lambda name: "All seeds" if name == "all" else name,
        key=state.remember("in_seed", seeds, "all"),
    )
    state.write("in_seed", seed)
    chosen = None if seed == "all" else int(seed)
    return cache.archive(info.run_id, method=method, seed=chosen), method, chosen


def headline(rows: pd.DataFrame) -> tuple[str, str]:
    """Say in Markdown how many memories are in the archive, and how close those calls were."""
    gone = rows[rows["state"] == "revoked"]
    back = len(rows) - len(gone)
    first = f"{_memories(len(gone))} in the archive"
    if back:
        first += f"; {back:,} more {'was' if back == 1 else 'were'} revoked and came back"
    close, batch = int((rows["would_prevent"] == 1).sum()), int((rows["batch_size"] >= BATCH_SIZE).sum())
    of = f"all {len(rows):,}" if close == len(rows) else f"{close:,} of these {len(rows):,}"
    second = (
        f"For {of} the call was close: one support in place of a conflict would have prevented the last revocation."
    )
    if batch:
        second += f" {batch:,} fell in a batch, at one instant with at least {BATCH_SIZE - 1} others."
    return f"{first}.", second


def filtered(info: RunInfo, rows: pd.DataFrame, method: str | None, seed: int | None) -> Listing:
    """Draw the filters and return what they leave of the rows, in the chosen order."""
    left, middle, right = st.columns(3)
    search = left.text_input(
        "Search", key=state.remember("find", None, ""), placeholder="user, key, value or words of the evidence"
    )
    state.write("find", search)
    show = _box(middle, "Show", "show", SHOW, "revoked")
    order = _box(
        right,
        "Order",
        "sort",
        ORDERS,
        "close",
        "A close call is one that a single support more would have prevented; of these the best supported stand first. "
        "That is how near the rule's decision was, not how much harm it did.",
    )
    users = {_ANY: "Any", **{name: name for name in sorted(rows["subject"].unique()) if name}}
    keys = {_ANY: "Any", **dict(sorted(zip(rows["key_id"], rows["key"], strict=True)))}
    with st.expander("More filters: rule, user, key, lives, batch"):
        one, two, three = st.columns(3)
        rule = _box(one, "Rule", "rule", {_ANY: "Any", **{name: RULES[name] for name in REVOCATION_RULES}}, _ANY)
        user = _box(two, "User", "user", users, _ANY) if len(users) > 1 else _ANY
        key = _box(three, "Key", "slot", keys, _ANY)
        lives = _box(one, "Lives", "lives", {_ANY: "Any", "one": "One life", "several": "Several lives"}, _ANY)
        fell = _ANY
        if info.is_log:
            together = {
                _ANY: "Any",
                "batch": f"In a batch ({BATCH_SIZE} or more at one instant)",
                "alone": "Not in one",
            }
            fell = _box(two, "Fell", "fell", together, _ANY)
    keep = pd.Series(True, index=rows.index)
    if search:
        keep &= rows["id"].isin(cache.archive(info.run_id, method=method, seed=seed, search=search)["id"])
    if show != "all":
        keep &= (rows["state"] == "revoked") == (show == "revoked")
    for column, wanted in (("rule", rule), ("subject", user), ("key_id", key)):
        if wanted:
            keep &= rows[column] == wanted
    if lives:
        keep &= (rows["lives"] > 1) == (lives == "several")
    if fell:
        keep &= (rows["batch_size"] >= BATCH_SIZE) == (fell == "batch")
    found = ordered(rows[keep], order)
    return Listing(found.head(LISTED).reset_index(drop=True), len(found), len(rows))


def ordered(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    """Sort revocations; ``order`` is a key of `ORDERS`. Ties stand as the archive lists them."""
    by: dict[str, tuple[list[str], list[bool]]] = {
        "close": (["close", "support"], [False, False]),
        "latest": (["revoked_at"], [False]),
        "often": (["revocations", "support"], [False, False]),
        "name": (["subject", "key", "value"], [True, True, True]),
    }
    columns, rising = by[order]
    close = (rows["would_prevent"] == 1).fillna(False).astype(bool)
    return rows.assign(close=close).sort_values(columns, ascending=rising, kind="stable").drop(columns="close")


def counts(listing: Listing) -> str:
    """Say how many are shown, of how many, and how many the filters hide."""
    hidden = listing.total - listing.found
    words = f"{len(listing.shown):,} shown of {listing.total:,}, {hidden:,} hidden by the filters."
    if listing.found > len(listing.shown):
        words += f" {listing.found:,} match; the first {LISTED:,} are listed."
    return words


def clear() -> None:
    """Set every filter back; a callback."""
    for name, value in (("find", ""), ("show", "all"), ("rule", ""), ("user", ""), ("slot", ""), ("lives", "")):
        state.choose(name, value)
    state.choose("fell", "")


def say_missing(info: RunInfo, rows: pd.DataFrame, ids: list[str]) -> None:
    """Say why the memory that a link names is not in the list: hidden, never revoked, or unknown."""
    named = state.news("precedent")
    if named is None or named in ids:
        return
    if named in set(rows["id"]):
        st.warning(
            "The memory of this link is hidden by the filters; showing the first of the list. Show all to see it."
        )
    elif cache.place_of(info.run_id, named) is not None:
        st.warning("The memory of this link is not among these revocations; showing the first of the list.")
        st.page_link(
            "pages/explore/lifecycle.py",
            label="See that memory on Lifecycle",
            query_params={"run": info.run_id, "precedent": named},
        )
    else:
        st.warning(f"There is no memory {plain_text(named)} in this run; showing the first of the list.")


def table(listing: Listing, selected: str, info: RunInfo) -> None:
    """Draw the list; selecting a row opens it. The row of the open one is selected."""
    shown, several = listing.shown, listing.shown["seed"].nunique() > 1
    position = int(shown.index[shown["id"] == selected][0])
    st.session_state[TABLE] = {"selection": {"rows": [position], "columns": [], "cells": []}}
    names = ["value", "key", *(["subject"] if (shown["subject"] != "").any() else []), *(["seed"] if several else [])]
    columns = [*names, "support", "would_prevent", "conflict", "rule", "revoked_at", "state", "revocations"]
    view = shown[[*columns, *(["batch_size"] if info.is_log else [])]].assign(
        rule=shown["rule"].map(RULES),
        state=shown["state"].map({name: style.label for name, style in STATE_STYLE.items()}),
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    st.dataframe(
        view,
        key=TABLE,
        hide_index=True,
        height=280,
        on_select=lambda: _open_row(shown),
        selection_mode="single-row-required",
        alt="Revoked memories; select a row to see why",
        column_config={
            "subject": text("user"),
            "support": number(help="How many evidence items supported it when it was last revoked."),
            "would_prevent": number(
                help="How many of its latest conflicts would have had to be supports for it to stand. 1 is the closest "
                "call; empty when another value took its place."
            ),
            "conflict": number(help="How many evidence items spoke against it when it was last revoked."),
            "revoked_at": st.column_config.DatetimeColumn("revoked (UTC)", format="D MMM YYYY, HH:mm", timezone="UTC")
            if info.is_log
            else number("revoked at task"),
            "state": text("now"),
            "revocations": number("times revoked"),
            "batch_size": number("at that instant", help="How many memories of the log fell at the same instant."),
        },
    )


def step_buttons(listing: Listing, selected: str) -> None:
    """Draw "previous" and "next", and which of how many is open."""
    shown = listing.shown
    position = int(shown.index[shown["id"] == selected][0])
    st.button(
        "Previous",
        key="archive_previous",
        icon=":material/chevron_left:",
        disabled=position == 0,
        on_click=_open,
        args=(shown.iloc[max(position - 1, 0)].to_dict(),),
        shortcut="P",
    )
    st.button(
        "Next",
        key="archive_next",
        icon=":material/chevron_right:",
        disabled=position == len(shown) - 1,
        on_click=_open,
        args=(shown.iloc[min(position + 1, len(shown) - 1)].to_dict(),),
        shortcut="N",
    )
    st.text(f"{position + 1:,} of {len(shown):,}")


def _open_row(shown: pd.DataFrame) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(shown):
        _open(shown.iloc[rows[0]].to_dict())


def _open(row: Mapping[Hashable, Any]) -> None:
    """Open a precedent here, and let Lifecycle start from it too."""
    state.choose("precedent", str(row["id"]))
    for name, column in (("method", "method"), ("subject", "subject"), ("key", "key_id")):
        state.choose(name, str(row[column]))
    state.choose("seed", int(row["seed"]))


def _box(
    column: st.delta_generator.DeltaGenerator,
    label: str,
    name: str,
    words: Mapping[str, str],
    default: str,
    explained: str | None = None,
) -> str:
    chosen = column.selectbox(
        label,
        list(words),
        format_func=lambda option: words.get(option, option),
        key=state.remember(name, list(words), default),
        help=explained,
    )
    state.write(name, chosen)
    return chosen


def _memories(count: int) -> str:
    return "No memory is" if not count else f"{count:,} memor{'y is' if count == 1 else 'ies are'}"
