"""What was ever revoked, as known at a moment, with what a wrong revocation would cost and what people decided."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from tepa_core.decisions import Action, in_effect
from tepa_core.figures.theme import method_label
from tepa_core.store import KeyLife, RunInfo, in_words_at
from tepa_core.store.queries import BATCH_SIZE
from tepa_core.ui import cache, state
from tepa_core.ui.text import plain_text

#: Harm is counted in this many uses of the memory.
USES = 1000

#: What a decision did, as the beginning of "... by Ana".
DONE: Mapping[Action, str] = MappingProxyType(
    {
        Action.REACTIVATE: "reactivated",
        Action.CONFIRM: "confirmed",
        Action.BOTH_VALID: "both valid",
        Action.UNDO: "undone",
    }
)


@dataclass(frozen=True, slots=True)
class Archive:
    """What was ever revoked in the chosen lanes, as known at a moment.

    Attributes
    ----------
    rows
        ``id``, ``transition_id``, ``method``, ``seed``, ``subject``, ``key``, ``key_id``, ``value``, ``state``,
        ``lives``, ``revocations``, ``rule``, ``revoked_at``, ``support``, ``conflict``, ``would_prevent``,
        ``batch_size``; of the triage ``harm`` (score times `USES`), ``p_wrong``, ``exposure``, ``supports_since``,
        ``conflicts_since``, ``successor``, ``reasons``, missing where nothing is known; and of the ledger ``review``
        (what people decided on it, '' for nothing), ``decided``, ``again`` (re-asserted after it was confirmed).
    method, seed
        The lane of a simulation; None for a log, and None for all seeds.
    as_of
        The moment, a task or a time; None for the end.
    """

    rows: pd.DataFrame
    method: str | None
    seed: int | None
    as_of: int | pd.Timestamp | None


def ever_revoked(info: RunInfo) -> Archive:
    """Draw the choice of lane and moment and return all revocations there."""
    if cache.lanes(info.run_id).empty:
        # No method of the run keeps precedents, so there is nothing to revoke and nothing to choose.
        return Archive(cache.archive(info.run_id), None, None, None)
    columns = st.columns(3)
    method, seed = (None, None) if info.is_log else _lane(columns[0], columns[1], info)
    as_of = _moment(columns[0 if info.is_log else 2], info)
    harm = cache.triaged(info.run_id, method=method, seed=seed, as_of=as_of, every=True)
    last = harm.drop_duplicates("id", keep="first").copy()
    if len(harm):
        # Of several revocations of one memory the last stands in the list.
        newest = harm.sort_values("revoked_at", kind="stable").drop_duplicates("id", keep="last").index
        last = harm.loc[sorted(newest)]
    triage = last[
        ["id", "score", "p_wrong", "exposure", "supports_since", "conflicts_since", "successor", "reasons"]
    ].rename(columns={"score": "harm"})
    triage = triage.assign(harm=triage["harm"] * USES)
    if as_of is None:
        rows = cache.archive(info.run_id, method=method, seed=seed)
    else:
        sizes = harm.groupby("revoked_at")["id"].nunique()
        rows = last.drop(columns=[name for name in triage.columns if name != "id" and name in last]).assign(
            revocations=last["id"].map(harm["id"].value_counts()),
            batch_size=last["revoked_at"].map(sizes) if info.is_log else 1,
        )
    rows = rows.merge(triage, on="id", how="left")
    reviews, again = _reviews(info.run_id)
    rows = rows.assign(review=[reviews.get(name, "") for name in rows["id"]], again=rows["id"].isin(again))
    return Archive(rows.assign(decided=rows["review"] != ""), method, seed, as_of)


def _reviews(run_id: str) -> tuple[dict[str, str], set[str]]:
    """Return in words what was decided last on each memory, and which were re-asserted after they were confirmed."""
    done = {one.precedent_id: f"{DONE[one.action]} by {one.by}" for one in in_effect(cache.decisions(run_id))}
    if not done:
        return {}, set()
    again = cache.reasserted(run_id)
    for name, times in zip(again["id"], again["times"], strict=True):
        done[name] += f", re-asserted {times:,} time{'' if times == 1 else 's'} since"
    return done, set(again["id"])


def _lane(left: Any, right: Any, info: RunInfo) -> tuple[str | None, int | None]:
    lanes = cache.lanes(info.run_id)
    methods = [str(name) for name in lanes["method"].unique()]
    if not methods:
        return None, None
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
    return method, None if seed == "all" else int(seed)


def _moment(column: Any, info: RunInfo) -> int | pd.Timestamp | None:
    """Draw the choice of the moment; None is the end of the run."""
    if info.is_log:
        return _day(column)
    # The questions of a fact run change no memory, so its archive is over time what it was after each fact.
    unit = "fact" if info.is_facts else "task"
    tasks = info.counts[f"{unit}s"]
    task = column.slider(
        f"As of {unit}",
        0,
        tasks,
        key=state.remember("as_of", range(tasks + 1), tasks),
        help=f"What stood in the archive after this {unit}, and in which order it would have been looked at then: "
        "nothing later is used. At the right end: the whole run.",
    )
    state.write("as_of", task)
    return None if task == tasks else int(task)


def _day(column: Any) -> pd.Timestamp | None:
    said = state.news("as_of")
    key = state.remember("as_of", None, None, dt.date, told=True)
    if said and st.session_state[key] is None:
        st.warning(f"{plain_text(said)} is no date; showing the archive at the end of the log.")
    day = column.date_input(
        "As of",
        key=key,
        format="YYYY-MM-DD",
        min_value=dt.date(1970, 1, 1),
        help="What stood in the archive at the end of this day (UTC), and in which order it would have been looked at "
        "then: nothing later is used. Empty: the end of the log.",
    )
    state.write("as_of", day.isoformat() if isinstance(day, dt.date) else "")
    return pd.Timestamp(day, tz="UTC") + pd.Timedelta(days=1, microseconds=-1) if isinstance(day, dt.date) else None


def headline(archive: Archive, info: RunInfo) -> tuple[str, str]:
    """Say in Markdown how many memories are in the archive, and of which most harm is expected."""
    rows = archive.rows
    gone = rows[rows["state"] == "revoked"]
    back = len(rows) - len(gone)
    first = f"{_memories(len(gone))} in the archive"
    if archive.as_of is not None:
        moment = in_words_at(archive.as_of, info.is_log, info.is_facts).split(",")[0]
        first = f"{moment[0].upper()}{moment[1:]}: {first[0].lower()}{first[1:]}"
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


def score_in_words(row: Mapping[Hashable, Any]) -> str:
    """Say in Markdown why a memory stands where it stands when the list is ordered by expected harm."""
    if pd.isna(row["harm"]):
        return "Its place in the order is not known: a decision took it out of memory, not the evidence."
    return (
        f"**Expected harm {row['harm']:.1f}** in {USES:,} uses: {_percent(row['p_wrong'])} likely to have been revoked "
        f"wrongly × {_percent(row['exposure'])} of the evidence on its key. {plain_text(row['reasons'], 400)}"
    )


def fall_of(archive: Archive, life: KeyLife, precedent: str) -> str:
    """Return the id of a memory's last revocation as known at the moment that is looked back at."""
    steps = life.transitions[(life.transitions["id"] == precedent) & (life.transitions["to_state"] == "revoked")]
    falls = steps[steps["from_state"] == "active"]
    if archive.as_of is not None and (falls["x"] <= archive.as_of).any():
        falls = falls[falls["x"] <= archive.as_of]
    return str(falls["transition_id"].iloc[-1])


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}" if share >= 0.0005 else "less than 0.1%"


def _memories(count: int) -> str:
    return "No memory is" if not count else f"{count:,} memor{'y is' if count == 1 else 'ies are'}"
