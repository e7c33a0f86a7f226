"""The archive as a list that a person can work through: filters, order, counts, and the row that is open."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from tepa_core.figures.theme import STATE_STYLE
from tepa_core.inert import one_line
from tepa_core.store import REVOCATION_RULES, RunInfo
from tepa_core.store.queries import BATCH_SIZE
from tepa_core.ui import boundary, cache, labels, state
from tepa_core.ui.archive_rows import USES, Archive
from tepa_core.ui.text import plain_text

TABLE = "archive_table"

#: The memory that was decided on last stays in the list, whatever the filters say, until another one is opened.
JUST_DECIDED = "just_decided"

#: Rows that the table lists; the filters find the others.
LISTED = 5000

SHOW: Mapping[str, str] = MappingProxyType({"revoked": "Revoked", "back": "Came back", "all": "Revoked or came back"})
REVIEW: Mapping[str, str] = MappingProxyType(
    {
        "": "Any",
        "waiting": "Waiting: not decided, or re-asserted",
        "new": "Not decided yet",
        "reasserted": "Re-asserted after confirm",
        "decided": "Decided",
    }
)
ORDERS: Mapping[str, str] = MappingProxyType(
    {
        "harm": "Expected harm, the largest first",
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
        Rows of an `Archive` that are listed, in order.
    found
        How many match the filters.
    total
        How many precedents were ever revoked in the chosen lanes.
    """

    shown: pd.DataFrame
    found: int
    total: int


def filtered(info: RunInfo, archive: Archive) -> Listing:
    """Draw the filters and return what they leave of the rows, in the chosen order."""
    rows = archive.rows
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
        "harm",
        f"Expected harm: how likely the revocation was wrong, by the evidence before and since, times the share of the "
        f"evidence that is on its key, in {USES:,} uses. A close call is one that a single support more would have "
        "prevented.",
    )
    users = {_ANY: "Any", **{name: name for name in sorted(rows["subject"].unique()) if name}}
    keys = {_ANY: "Any", **dict(sorted(zip(rows["key_id"], rows["key"], strict=True)))}
    with st.expander("More filters: review, rule, user, key, lives, batch"):
        one, two, three = st.columns(3)
        review = _box(one, "Review", "review", REVIEW, _ANY)
        rule = _box(two, "Rule", "rule", {_ANY: "Any", **{name: RULES[name] for name in REVOCATION_RULES}}, _ANY)
        key = _box(three, "Key", "slot", keys, _ANY)
        user = _box(one, "User", "user", users, _ANY) if len(users) > 1 else _ANY
        lives = _box(two, "Lives", "lives", {_ANY: "Any", "one": "One life", "several": "Several lives"}, _ANY)
        fell = _ANY
        if info.is_log:
            together = {
                _ANY: "Any",
                "batch": f"In a batch ({BATCH_SIZE} or more at one instant)",
                "alone": "Not in one",
            }
            fell = _box(three, "Fell", "fell", together, _ANY)
    keep = pd.Series(True, index=rows.index)
    if search:
        keep &= rows["id"].isin(cache.found(info.run_id, search, archive.method, archive.seed))
    if show != "all":
        keep &= (rows["state"] == "revoked") == (show == "revoked")
    for column, wanted in (("rule", rule), ("subject", user), ("key_id", key)):
        if wanted:
            keep &= rows[column] == wanted
    if lives:
        keep &= (rows["lives"] > 1) == (lives == "several")
    if fell:
        keep &= (rows["batch_size"] >= BATCH_SIZE) == (fell == "batch")
    if review:
        waiting = {
            "waiting": ~rows["decided"] | rows["again"],
            "new": ~rows["decided"],
            "reasserted": rows["again"],
            "decided": rows["decided"],
        }
        keep &= waiting[review]
    keep |= rows["id"] == st.session_state.get(JUST_DECIDED)
    found = ordered(rows[keep], order)
    return Listing(found.head(LISTED).reset_index(drop=True), len(found), len(rows))


def ordered(rows: pd.DataFrame, order: str) -> pd.DataFrame:
    """Sort revocations; ``order`` is a key of `ORDERS`. Ties stand as the archive lists them."""
    by: dict[str, tuple[list[str], list[bool]]] = {
        "harm": (["harm"], [False]),
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


@boundary.callback
def clear() -> None:
    """Set every filter back; a callback."""
    for name in ("find", "rule", "user", "slot", "lives", "fell", "review"):
        state.choose(name, _ANY)
    state.choose("show", "all")


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
    columns = [*names, "harm", "p_wrong", "exposure", "would_prevent", "support", "conflict", "supports_since"]
    columns += ["conflicts_since", "successor", "rule", "revoked_at", "revocations", "state"]
    columns += [*(["batch_size"] if info.is_log else []), *(["review"] if shown["decided"].any() else [])]
    view = shown[columns].assign(
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
            "harm": number(
                "expected harm",
                format="%.1f",
                help=f"p(wrong) × on its key: in {USES:,} uses of this memory, how many would have gone wrong because "
                "this value was missing. The first to look at.",
            ),
            "p_wrong": number(
                "p(wrong)",
                format="percent",
                help="How likely it still held when it was revoked, by all evidence before and since. The change rate "
                "and the noise of the evidence are learned from this run itself.",
            ),
            "exposure": number(
                "on its key", format="percent", help="Which share of all evidence is on its key: how often it is used."
            ),
            "supports_since": number("for it since", help="Evidence items for it after it was revoked."),
            "conflicts_since": number("against it since", help="Evidence items against it after it was revoked."),
            "successor": text("active instead", help="The value of its key that is active in its place."),
            "review": text("reviewed"),
            "support": number(help="How many evidence items supported it when it was last revoked."),
            "would_prevent": number(
                "would prevent",
                help="How many of its latest conflicts would have had to be supports for it to stand. 1 is the closest "
                "call; empty when another value took its place.",
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


@boundary.callback
def _open_row(shown: pd.DataFrame) -> None:
    rows = st.session_state[TABLE]["selection"]["rows"]
    if rows and rows[0] < len(shown):
        _open(shown.iloc[rows[0]].to_dict())


@boundary.callback
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
    shown = labels.told_apart({option: one_line(text) for option, text in words.items()})
    chosen = column.selectbox(
        label,
        list(words),
        format_func=lambda option: shown.get(option, one_line(option)),
        key=state.remember(name, list(words), default),
        help=explained,
    )
    state.write(name, chosen)
    return chosen
