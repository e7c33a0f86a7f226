"""Replay of an evidence log: from rows to transitions and final precedents, through the one rule.

Order is event time, then source order, so the same rows in any order give the same lives. Compiled and linear in the
number of rows, whatever the number of keys and values and however skewed they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from tepa_core.lifecycle import rule
from tepa_core.lifecycle.precedent import (
    KEY,
    PRECEDENT,
    TRANSITION,
    Rule,
    RuleParameters,
    State,
    Thresholds,
)


@dataclass(frozen=True, slots=True)
class EncodedLog:
    """An evidence log as numbers.

    Attributes
    ----------
    precedent
        Per item the index of its (key, value) pair, shape (n,), int32.
    supports
        Per item True for a support, False for a refutation, shape (n,).
    time
        Per item its time in any integer clock (microseconds since 1970 UTC for logs, tasks for streams), shape (n,).
    seq
        Per item its number in source order, shape (n,): breaks ties of time, and names the item in transitions.
    key_start
        First precedent of each key, shape (keys + 1,): the precedents of key ``k`` are
        ``key_start[k]:key_start[k + 1]``.
    admits
        Per item whether trial validation lets its value become Active, shape (n,); None where there were no trials.
    verdict
        Per item a `Verdict` number where it is a person's decision, 0 where it is evidence, shape (n,); None where
        there are no decisions. A decision takes effect after the evidence of its time; its ``seq`` is negative, and of
        several at one time the one closest to 0 comes first.
    """

    precedent: npt.NDArray[np.int32]
    supports: npt.NDArray[np.bool_]
    time: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int64]
    key_start: npt.NDArray[np.int64]
    admits: npt.NDArray[np.bool_] | None = None
    verdict: npt.NDArray[np.uint8] | None = None

    def flags(self) -> npt.NDArray[np.uint8]:
        """Per item its support (bit 0), whether it may make its value Active (bit 1), and its verdict (from bit 2)."""
        flags = self.supports.astype(np.uint8)
        flags |= np.uint8(2) if self.admits is None else self.admits.astype(np.uint8) << np.uint8(1)
        return flags if self.verdict is None else flags | (self.verdict << np.uint8(2))

    def order(self) -> npt.NDArray[np.int64] | None:
        """Order of replay: by time, evidence before decisions, then source; None when the items stand in it."""
        if self.verdict is None:
            return None if _is_sorted(self.time, self.seq) else np.lexsort((self.seq, self.time))
        decided = self.verdict != 0
        return np.lexsort((np.where(decided, -self.seq, self.seq), decided, self.time))


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay leaves: precedents (m,), key records (k,), rings (k, n_rec), transitions in order of evidence."""

    precedents: npt.NDArray[np.void]
    keys: npt.NDArray[np.void]
    rings: npt.NDArray[np.int32]
    transitions: npt.NDArray[np.void]


def encode(evidence: pd.DataFrame, time: str = "event_time") -> tuple[EncodedLog, pd.DataFrame]:
    """Turn evidence rows into numbers.

    Parameters
    ----------
    evidence
        Columns ``seq`` (int), ``subject``, ``key_id``, ``value_id`` (text), ``supports`` (bool) and the one named by
        ``time`` (int, or datetime in UTC), in any order of rows; where trials validate, ``admitted`` (bool, missing
        where none was held); where people decided, ``verdict`` (`Verdict` number, 0 for evidence).
    time
        The column whose order counts: event time, or arrival.

    Returns
    -------
    EncodedLog
        The rows, in the order given.
    pandas.DataFrame
        One row per precedent in index order: ``subject``, ``key_id``, ``value_id`` and ``first`` (row of its earliest
        item by source order).
    """
    subject, _ = pd.factorize(evidence["subject"], use_na_sentinel=False)
    key_text, key_names = pd.factorize(evidence["key_id"], use_na_sentinel=False)
    value, value_names = pd.factorize(evidence["value_id"], use_na_sentinel=False)
    key, _ = pd.factorize(subject.astype(np.int64) * max(len(key_names), 1) + key_text)
    # Sorting the pair codes puts the precedents of one key side by side.
    pairs, first, precedent = np.unique(
        key.astype(np.int64) * max(len(value_names), 1) + value, return_index=True, return_inverse=True
    )
    keys_of_pairs = pairs // max(len(value_names), 1)
    n_keys = int(keys_of_pairs[-1]) + 1 if len(pairs) else 0
    key_start = np.searchsorted(keys_of_pairs, np.arange(n_keys + 1))
    column = evidence[time]
    at = column.to_numpy() if column.dtype.kind in "iu" else column.dt.as_unit("us").astype("int64").to_numpy()
    log = EncodedLog(
        precedent.astype(np.int32),
        evidence["supports"].to_numpy(np.bool_),
        at.astype(np.int64),
        evidence["seq"].to_numpy(np.int64),
        key_start.astype(np.int64),
        evidence["admitted"].fillna(True).to_numpy(np.bool_) if "admitted" in evidence else None,
        evidence["verdict"].to_numpy(np.uint8) if "verdict" in evidence else None,
    )
    if log.verdict is not None or np.any(np.diff(log.seq) < 0):
        # A value belongs to its evidence, never to what a person decided about it.
        by_source = np.lexsort((log.seq, np.zeros(len(log.seq)) if log.verdict is None else log.verdict != 0))
        first = by_source[np.unique(precedent[by_source], return_index=True)[1]]
    labels = evidence.take(first)[["subject", "key_id", "value_id"]].reset_index(drop=True)
    return log, labels.assign(first=first)


def replay(log: EncodedLog, thresholds: Thresholds) -> Replay:
    """Run every item of a log through the rule, in order of time, then source."""
    parameters = thresholds.parameters()
    precedent, flags, time, seq = log.precedent, log.flags(), log.time, log.seq
    order = log.order()
    if order is not None:
        precedent, flags, time, seq = precedent[order], flags[order], time[order], seq[order]
    n_keys = max(len(log.key_start) - 1, 0)
    precedents = np.zeros(int(log.key_start[-1]) if n_keys else 0, PRECEDENT)
    rule.clear_precedents(precedents)
    keys = np.zeros(n_keys, KEY)
    keys["active_head"] = -1
    rings = np.full((n_keys, thresholds.n_rec), rule.NO_SUPPORT, np.int32)
    by_key = _replay(precedent, flags, log.key_start, precedents, keys, rings, parameters)
    transitions = np.empty(len(by_key), TRANSITION)
    _in_order(by_key, transitions, precedents, time, seq)
    return Replay(precedents, keys, rings, transitions)


@njit(cache=True, nogil=True)
def _is_sorted(time: npt.NDArray[np.int64], seq: npt.NDArray[np.int64]) -> bool:
    for i in range(1, len(time)):
        if time[i] < time[i - 1] or (time[i] == time[i - 1] and seq[i] < seq[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def _replay(
    precedent: npt.NDArray[np.int32],
    flags: npt.NDArray[np.uint8],
    key_start: npt.NDArray[np.int64],
    precedents: Any,
    keys: Any,
    rings: npt.NDArray[np.int32],
    th: RuleParameters,
) -> Any:
    """Replay items in order; times and numbers in what it writes are positions in that order."""
    n_items = len(precedent)
    n_keys = len(keys)
    # A counting sort by key, so that the few records of one key stay in the processor's cache. One word an item
    # (position, value within the key, flags) is all that the loop below reads.
    key_of = np.empty(len(precedents), np.int32)
    begin = np.zeros(n_keys + 1, np.int64)
    for k in range(n_keys):
        key_of[key_start[k] : key_start[k + 1]] = k
    for i in range(n_items):
        begin[key_of[precedent[i]] + 1] += 1
    for k in range(n_keys):
        begin[k + 1] += begin[k]
    fill = begin[:-1].copy()
    items = np.empty(n_items, np.int64)
    for i in range(n_items):
        k = key_of[precedent[i]]
        items[fill[k]] = (i << 32) | ((precedent[i] - key_start[k]) << 8) | flags[i]
        fill[k] += 1
    # Memory that is never written to costs nothing, growing it does.
    out = np.empty(max(256, n_items // 2), TRANSITION)
    n = 0
    for k in range(n_keys):
        first = key_start[k]
        mine = precedents[first : key_start[k + 1]]
        room = len(mine) + rule.ACTIVATIONS_PER_ITEM
        key = keys[k]
        ring = rings[k]
        for j in range(begin[k], begin[k + 1]):
            if n + room > len(out):
                grown = np.empty(2 * len(out) + room, TRANSITION)
                grown[:n] = out[:n]
                out = grown
            word = items[j]
            i = word >> 32
            v = (word & 0xFFFFFFFF) >> 8
            verdict = (word & 0xFF) >> 2
            if verdict:
                n = rule.decide(mine, key, ring, v, verdict, th, i, i, k, first, out, n)
                continue
            n = rule.observe_key(mine, key, ring, v, word & 1 == 1, th, i, i, k, first, out, n, word & 2 == 2)
    return out[:n]


@njit(cache=True, nogil=True)
def _in_order(
    by_key: Any, transitions: Any, precedents: Any, time: npt.NDArray[np.int64], seq: npt.NDArray[np.int64]
) -> None:
    """Order what `_replay` wrote key by key as the items came, and turn positions into times and numbers.

    A counting sort by position, linear and stable, so what one item caused stays in order.
    """
    place = np.zeros(len(time) + 1, np.int32)
    for i in range(len(by_key)):
        place[by_key[i].seq + 1] += 1
    for i in range(len(time)):
        place[i + 1] += place[i]
    for i in range(len(by_key)):
        at = by_key[i].seq
        transitions[place[at]] = by_key[i]
        row = transitions[place[at]]
        row.time = time[at]
        row.seq = seq[at]
        place[at] += 1
    if len(time) == 0:
        return
    for p in range(len(precedents)):
        precedent = precedents[p]
        precedent.created_at = time[precedent.created_at]
        precedent.changed_at = time[precedent.changed_at]
        if precedent.activated_seq >= 0:
            precedent.activated_seq = seq[precedent.activated_seq]


def tables(
    log: EncodedLog, labels: pd.DataFrame, result: Replay, thresholds: Thresholds
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write a replay out as two tables.

    Returns
    -------
    pandas.DataFrame
        Precedents: the labels, then ``state``, ``deprecated``, ``support``, ``conflict``, ``trial_support``,
        ``trial_conflict``, ``posterior``, ``rule``, ``lives``, ``created_at``, ``changed_at``, ``revoked_at`` (time of
        the last revocation, missing if there was none; a re-assertion is none).
    pandas.DataFrame
        Transitions: ``precedent`` (index), ``number`` (of the precedent's transitions, from 0), ``seq``, ``time``,
        ``from_state``, ``to_state``, ``rule``, ``life``, ``support``, ``conflict``, ``window`` (text of 1 and 0, oldest
        first), ``trial_support``, ``trial_conflict``, ``posterior`` (of the counts that decided it).
    """
    p, t = result.precedents, result.transitions
    key_of = np.repeat(np.arange(len(result.keys)), np.diff(log.key_start))
    trial_support, trial_conflict = _tallies(p, result.keys, key_of, thresholds.parameters())
    active = p["state"] == State.ACTIVE
    states = np.array([s.label for s in State], object)
    rules = np.array([r.label for r in Rule], object)
    judged_s = np.where(active, p["support"], trial_support)
    judged_f = np.where(active, p["conflict"], trial_conflict)
    prior = thresholds.alpha + thresholds.beta
    recent = _ones(p["window"])
    falls = (t["to_state"] == State.REVOKED) & (t["from_state"] == State.ACTIVE)
    revoked = np.flatnonzero(falls)
    revoked_at = np.zeros(len(p), np.int64)
    revoked_at[t["precedent"][revoked]] = t["time"][revoked]
    never = np.ones(len(p), bool)
    never[t["precedent"][revoked]] = False
    precedents = labels.assign(
        state=states[p["state"]],
        deprecated=active & (p["window_len"] > recent),
        support=p["support"].astype(np.int64),
        conflict=p["conflict"].astype(np.int64),
        trial_support=trial_support.astype(np.int64),
        trial_conflict=trial_conflict.astype(np.int64),
        posterior=(judged_s + thresholds.alpha) / (judged_s + judged_f + prior),
        rule=rules[p["rule"]],
        lives=p["lives"].astype(np.int64),
        created_at=p["created_at"],
        changed_at=p["changed_at"],
        revoked_at=pd.array(revoked_at, "Int64").copy(),
    )
    # Not told by the time itself, which lies below 0 in logs of before 1970.
    precedents.loc[never, "revoked_at"] = pd.NA
    s = np.where(falls, t["support"], t["trial_support"])
    f = np.where(falls, t["conflict"], t["trial_conflict"])
    transitions = pd.DataFrame(
        {
            "precedent": t["precedent"].astype(np.int64),
            "seq": t["seq"],
            "time": t["time"],
            "from_state": states[t["from_state"]],
            "to_state": states[t["to_state"]],
            "rule": rules[t["rule"]],
            "life": t["life"].astype(np.int64),
            "support": t["support"].astype(np.int64),
            "conflict": t["conflict"].astype(np.int64),
            "window": [window_text(int(w), int(k)) for w, k in zip(t["window"], t["window_len"], strict=True)],
            "trial_support": t["trial_support"].astype(np.int64),
            "trial_conflict": t["trial_conflict"].astype(np.int64),
            "posterior": (s + thresholds.alpha) / (s + f + prior),
        }
    )
    transitions.insert(1, "number", transitions.groupby("precedent").cumcount())
    return precedents, transitions


def window_text(window: int, length: int) -> str:
    """Write a window of outcomes as text, the oldest first: ``"100"`` is one support, then two conflicts."""
    return format(window, f"0{length}b") if length else ""


@njit(cache=True, nogil=True)
def _tallies(precedents: Any, keys: Any, key_of: npt.NDArray[np.int64], th: RuleParameters) -> Any:
    support = np.zeros(len(precedents), np.int32)
    conflict = np.zeros(len(precedents), np.int32)
    for p in range(len(precedents)):
        if precedents[p].state != rule.ACTIVE:
            support[p], conflict[p] = rule.tally(precedents[p], keys[key_of[p]], th)
    return support, conflict


@njit(cache=True, nogil=True)
def _ones(windows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    counts = np.empty(len(windows), np.int64)
    for i in range(len(windows)):
        counts[i] = rule.ones(windows[i])
    return counts
