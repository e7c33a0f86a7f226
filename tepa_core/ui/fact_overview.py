"""What a fact run says at first sight: how many questions each memory answers, why not the others, and on what keys."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from tepa_core.experiment import OVERALL, FactSpec
from tepa_core.experiment.facts import ANSWERED, CHAIN_NOT_FOUND, MULTI_HOP, NEVER_STATED, SEPARATOR, STATE_WRONG
from tepa_core.figures import answered, attribution_bars
from tepa_core.figures.facts import count
from tepa_core.figures.theme import STATE_STYLE, in_legend_order, method_label
from tepa_core.inert import lines
from tepa_core.methods import METHODS
from tepa_core.stats.exact_match import normalized
from tepa_core.store import RunInfo
from tepa_core.ui import boundary, cache, headline, spec_words, state
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import download, figure, table

ARCHIVE_PAGE, LIFECYCLE_PAGE, PHASES_PAGE = (
    "pages/audit/archive.py",
    "pages/explore/lifecycle.py",
    "pages/explore/phases.py",
)
QUESTIONS = "fact_questions"
KEYS_LINKED = 3

#: Attribution -> what it says of one answer.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        ANSWERED: "answered",
        CHAIN_NOT_FOUND: "the answer is among the active values, but the reader did not find the way to it",
        STATE_WRONG: "the answer is not among the active values",
        NEVER_STATED: "no fact of the file states the answer",
    }
)

_WHICH: Mapping[str, str] = MappingProxyType(
    {"all": "All", "differ": "Where the methods differ", "wrong": "Where one is wrong"}
)


def show(info: RunInfo) -> None:
    """Draw the overview of a fact run."""
    spec = FactSpec.from_dict(info.spec)
    success = cache.success(info.run_id)
    questions = int(info.counts["tasks"])
    first, *rest = headline.of_facts(success, questions, spec.orders)
    st.markdown(f"#### {first}")
    if rest:
        st.markdown(" ".join(rest))
    attributions = cache.attributions(info.run_id)
    of_one = questions - int(attributions["n"].sum()) // (len(spec.methods) * spec.orders)
    if len(attributions):
        method = headline.OURS if headline.OURS in spec.methods else spec.methods[0]
        st.markdown(of_attributions(attributions, method, spec.orders, of_one))
        figure(attribution_bars(attributions), "attributions")
    if of_one:
        figure(answered(success[success["phase"] == OVERALL], questions), "answered")
    st.caption(
        f"Answers come from {spec_words.answerer(spec)}; a question counts as answered when a right answer stands "
        "in what it says. The questions come after all facts, so there is no course over time and no story to step "
        "through."
    )
    st.subheader("Keys with conflicts", anchor=False)
    _keys(info)
    st.subheader("Question by question", anchor=False)
    _questions(info, spec)
    st.subheader("Where to go from here", anchor=False)
    for page, label, icon in (
        (PHASES_PAGE, "Are the differences real?", "bar_chart"),
        (ARCHIVE_PAGE, "Which facts were revoked?", "inventory_2"),
        ("pages/data/run.py", "Run another fact file", "play_circle"),
    ):
        st.page_link(page, label=label, icon=f":material/{icon}:", query_params={"run": info.run_id})


def of_attributions(attributions: pd.DataFrame, method: str, orders: int, of_one: int) -> str:
    """Say in Markdown why a method answers questions through several relations or not.

    Parameters
    ----------
    attributions
        ``method``, ``attribution``, ``n`` (answers, over all orders).
    method
        Whose.
    orders
        How often all questions were asked.
    of_one
        Questions of the file that ask for one relation.
    """
    n = attributions[attributions["method"] == method].set_index("attribution")["n"] / orders
    several = n.sum()
    lacking = "it stands only in the archive" if _archives(method) else "it is not among what the memory holds active"
    parts = [
        f"for {count(n[name])} {words}"
        for name, words in (
            (ANSWERED, "it is given"),
            (CHAIN_NOT_FOUND, "it is among the active values (the memory is right, the way to it was not found)"),
            (STATE_WRONG, f"{lacking} (the memory is to blame)"),
            (NEVER_STATED, "no fact of the file states it"),
        )
        if n.get(name, 0)
    ]
    which = f"{count(several) if of_one else f'All {count(several)}'} question{' goes' if several == 1 else 's go'}"
    return (
        f"{which} through several relations. What **{method_label(method)}** makes of the right answer: "
        f"{'; '.join(parts)}."
    )


def _archives(method: str) -> bool:
    return method in METHODS and METHODS[method].revokes


def _keys(info: RunInfo) -> None:
    lanes = cache.lanes(info.run_id)
    methods = [str(name) for name in lanes["method"].unique()]
    if not methods:
        st.info("No method of this run keeps precedents, so no key has a life to look at. Run it again with TEPA.")
        return
    method = next((name for name in methods if _archives(name)), methods[0])
    keys = cache.keys(info.run_id, method, 0)
    contested = keys[keys["n_values"] > 1]
    revoked = int(cache.archive(info.run_id, method=method)["id"].nunique())
    st.markdown(
        f"{len(contested):,} of {len(keys):,} keys were stated with more than one value; "
        + (
            f"**{method_label(method)}** revoked {revoked:,} value{'' if revoked == 1 else 's'}."
            if _archives(method)
            else f"**{method_label(method)}** revokes none."
        )
    )
    for row in contested.head(KEYS_LINKED).to_dict("records"):
        now = f"now {row['active']}" if pd.notna(row["active"]) else "no active value"
        _to_key(info, method, str(row["key_id"]), f"{row['key']}: {row['n_values']} values, {now}")
    if len(contested) > KEYS_LINKED:
        with st.expander(f"All {len(contested):,} keys with conflicts"):
            named = {"key": "key", "n_values": "values", "revocations": "revocations", "active": "active now"}
            table(contested[list(named)].rename(columns=named), "contested_keys")


def _to_key(info: RunInfo, method: str, key_id: str, words: str, precedent: str | None = None) -> None:
    named = {"run": info.run_id, "method": method, "seed": "0", "key": key_id}
    st.page_link(
        LIFECYCLE_PAGE,
        label=plain_text(words, limit=120),
        icon=":material/timeline:",
        query_params=named if precedent is None else named | {"precedent": precedent},
    )


@boundary.fragment
def _questions(info: RunInfo, spec: FactSpec) -> None:
    """Draw the questions with every method's answer in one order, and the one that is selected."""
    left, right = st.columns([1, 2])
    orders = list(range(spec.orders))
    order = left.selectbox(
        "Order",
        orders,
        format_func=lambda one: f"{one + 1} of {spec.orders}",
        key=state.remember("asked_in", orders, 0),
        help="All questions are asked in each order. Where a memory offers several values, answers may differ.",
    )
    which = right.segmented_control(
        "Questions",
        _WHICH,
        format_func=lambda name: _WHICH[name],
        required=True,
        key=state.remember("asked", list(_WHICH), "all"),
    )
    answers = cache.answers(info.run_id, order)
    shown = _filtered(answers, which or "all")
    if shown.empty:
        st.info("No question is like that in this order. Choose All to see every question.")
        return
    wide = wide_answers(shown, spec.methods)
    numbers = [int(number) for number in wide["number"]]
    chosen = st.session_state[state.remember("question", numbers, numbers[0])]
    st.session_state[QUESTIONS] = {"selection": {"rows": [numbers.index(chosen)], "columns": [], "cells": []}}
    st.dataframe(
        wide,
        key=QUESTIONS,
        hide_index=True,
        height=320,
        on_select=lambda: _choose(numbers),
        selection_mode="single-row-required",
        alt="Questions with the answer of each method; select a row to see one",
        column_config={"number": st.column_config.NumberColumn("no.", width="small")},
    )
    download(wide, "questions")
    _one(info, answers[answers["question"] == chosen])


@boundary.callback
def _choose(numbers: Sequence[int]) -> None:
    rows = st.session_state[QUESTIONS]["selection"]["rows"]
    if rows and rows[0] < len(numbers):
        state.choose("question", numbers[rows[0]])


def _filtered(answers: pd.DataFrame, which: str) -> pd.DataFrame:
    right = answers.groupby("question")["success"]
    if which == "differ":
        return answers[right.transform("any") & ~right.transform("all")]
    if which == "wrong":
        return answers[~right.transform("all")]
    return answers


def wide_answers(answers: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Arrange answers for reading: one row per question, one column per method.

    Parameters
    ----------
    answers
        As `tepa_core.store.queries.answers` gives them.
    methods
        Columns to make, in legend order.

    Returns
    -------
    pandas.DataFrame
        ``number``, ``question``, ``right answer``, then per method its label: a check mark or a cross, and the answer.
    """
    rows = answers.drop_duplicates("question").sort_values("question")
    wide = pd.DataFrame(
        {
            "number": rows["question"].to_numpy(),
            "question": rows["text"].to_numpy(object),
            "right answer": rows["gold"].to_numpy(object),
        }
    )
    marks = answers["success"].map({True: "✓ ", False: "✗ "}) + answers["answer"].where(
        answers["answer"] != "", "no answer"
    )
    said = answers.assign(said=marks).pivot(index="question", columns="method", values="said")
    for method in in_legend_order(methods):
        if method in said:
            wide[method_label(method)] = said[method].reindex(wide["number"]).to_numpy(object)
    return wide


def _one(info: RunInfo, answers: pd.DataFrame) -> None:
    """Draw one question: what each method retrieved and said, and the memories that it is about."""
    asked = answers.iloc[0]
    with st.container(border=True):
        st.markdown(f"**Question {asked['question']:,}**")
        st.text(lines(asked["text"]))
        golds = str(asked["gold"]).split(SEPARATOR)
        st.markdown(f"Right: {' or '.join(f'**{plain_text(gold)}**' for gold in golds)}")
        table(_by_method(answers), "one_question")
        lanes = [str(name) for name in cache.lanes(info.run_id)["method"].unique()]
        if not lanes:
            return
        method = next((name for name in lanes if _archives(name)), lanes[0])
        if asked["key"] == MULTI_HOP:
            _holding(info, method, golds)
        elif len(keys := cache.precedents(info.run_id, key=str(asked["key"]), method=method, seed=0)):
            _to_key(info, method, str(keys["key_id"].iloc[0]), f"What {method_label(method)} did with {asked['key']}")
        else:
            st.markdown(f"No fact that was understood is about *{plain_text(asked['key'])}*.")


def _by_method(answers: pd.DataFrame) -> pd.DataFrame:
    rows: list[dict[Hashable, Any]] = answers.to_dict("records")
    place = {name: at for at, name in enumerate(in_legend_order(answers["method"]))}
    rows.sort(key=lambda row: place[row["method"]])
    columns = {
        "method": [method_label(row["method"]) for row in rows],
        "right": ["yes" if row["success"] else "no" for row in rows],
        "answer": [row["answer"] or "none" for row in rows],
    }
    if answers["attribution"].notna().any():
        columns["why"] = [REASONS.get(row["attribution"], "") for row in rows]
    columns["retrieved (old to new)"] = [row["retrieved"] if pd.notna(row["retrieved"]) else "nothing" for row in rows]
    return pd.DataFrame(columns)


def _holding(info: RunInfo, method: str, golds: Sequence[str]) -> None:
    """Link the memories that hold a right answer, with their state."""
    found = cache.precedents(info.run_id, method=method, seed=0)
    meant = {normalized(gold) for gold in golds}
    found = found[[normalized(value) in meant for value in found["value"]]]
    if found.empty:
        st.markdown("It goes through several relations, and no memory holds its answer.")
        return
    st.markdown(f"It goes through several relations. **{method_label(method)}** holds its answer here:")
    for row in found.head(KEYS_LINKED).to_dict("records"):
        words = f"{row['key']}: {row['value']}, {STATE_STYLE[row['state']].label}"
        _to_key(info, method, str(row["key_id"]), words, str(row["id"]))
    if len(found) > KEYS_LINKED:
        left = len(found) - KEYS_LINKED
        st.markdown(f"And in {left:,} more memor{'y' if left == 1 else 'ies'}.")
