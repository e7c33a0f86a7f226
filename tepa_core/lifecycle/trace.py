"""One key followed step by step: what each of its values was after each item, kept as what changed.

Theory of operation
-------------------
A table of steps by values would cost their product, which a key with many items and values cannot pay. So only changes
are kept. Between two of them a value's record is the same but for one number: the conflict of a value with a count or a
tally grows by one with each support of another value, and the key counts these. A row of changes therefore holds the
counts at its step, and `KeyTrace.course` adds what the key has counted since.

When a tally that only grows will restart is known as soon as it is written down: the fewest conflicts at which the rule
restarts it. The step at which the key has counted so many is looked up instead of waited for, so an item costs the same
whatever the number of values, here as in `tepa_core.lifecycle.rule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from tepa_core.lifecycle import rule
from tepa_core.lifecycle.precedent import DEPRECATED, TRANSITION, RuleParameters, State, Thresholds
from tepa_core.lifecycle.replay import EncodedLog, Replay

_DEPRECATED = -1

_STATES = np.array([state.label for state in State] + [DEPRECATED], object)

#: What a value was from a step on. ``grows``: its conflict adds what the key counts from ``counted`` on.
CHANGE = np.dtype(
    [
        ("value", np.int32),
        ("step", np.int32),
        ("support", np.int32),
        ("conflict", np.int32),
        ("lives", np.int32),
        ("counted", np.int32),
        ("state", np.int8),
        ("grows", np.bool_),
    ],
    align=True,
)


def shown_states(numbers: npt.NDArray[np.int8]) -> npt.NDArray[np.object_]:
    """Return the names of states as rows of `CHANGE` hold them."""
    return _STATES[numbers]


@dataclass(frozen=True, slots=True)
class Course:
    """One value of a key after some steps: arrays of one length.

    ``state`` holds states as shown, so an Active value with a conflict among its recent outcomes is deprecated.
    ``support`` and ``conflict`` are the counts that judge the value at that moment: its own while Active, else its
    tally.
    """

    state: npt.NDArray[np.object_]
    support: npt.NDArray[np.int32]
    conflict: npt.NDArray[np.int32]
    lives: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KeyTrace:
    """One key's values after each of its items, kept in memory that grows with the items alone.

    Attributes
    ----------
    order
        Row of the log that each step is, shape (steps,).
    counted
        Supports that conflict with the key's other values, after each step, shape (steps,).
    changes
        Rows of `CHANGE`, by value, then step.
    first_change
        First row of each value, shape (values + 1,).
    """

    order: npt.NDArray[np.int64]
    counted: npt.NDArray[np.int32]
    changes: npt.NDArray[np.void]
    first_change: npt.NDArray[np.int64]

    def course(self, value: int, steps: npt.NDArray[np.integer[Any]] | None = None) -> Course:
        """Return what a value was after each step, or after some of them.

        Parameters
        ----------
        value
            Its index.
        steps
            Which, from 0 on, in any order; all when left out.
        """
        at = np.arange(len(self.order)) if steps is None else np.asarray(steps)
        own = self.changes[self.first_change[value] : self.first_change[value + 1]]
        # A row before the first one: a candidate of which nothing has been counted yet.
        own = np.concatenate([np.zeros(1, CHANGE), own])
        row = np.searchsorted(own["step"][1:], at, side="right")
        grown = np.where(own["grows"][row], self.counted[at] - own["counted"][row], 0)
        return Course(
            shown_states(own["state"][row]),
            own["support"][row],
            (own["conflict"][row] + grown).astype(np.int32),
            own["lives"][row],
        )

    def stretches(self, heard: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
        """Return the first row of each unbroken stretch of one shown state and life, as rows of `CHANGE`.

        Parameters
        ----------
        heard
            The step at which each value begins, shape (values,), not after its first change.
        """
        begins = np.zeros(len(heard), CHANGE)
        begins["value"], begins["step"] = np.arange(len(heard)), heard
        rows = np.concatenate([begins, self.changes])
        rows = rows[np.argsort(rows["value"], kind="stable")]
        new = np.ones(len(rows), np.bool_)
        same = [rows[name][1:] == rows[name][:-1] for name in ("value", "state", "lives")]
        new[1:] = ~(same[0] & same[1] & same[2])
        # A beginning is hidden by a change at the same step.
        hidden = np.append(same[0] & (rows["step"][1:] == rows["step"][:-1]), False)
        new[1:][hidden[:-1]] = True
        begun: npt.NDArray[np.void] = rows[new & ~hidden]
        return begun


def trace_key(log: EncodedLog, thresholds: Thresholds) -> tuple[KeyTrace, Replay]:
    """Replay a log of one key and keep every value's counts and state after each item.

    Raises
    ------
    ValueError
        If the log holds evidence on more than one key.
    """
    if len(log.key_start) != 2:
        raise ValueError(f"a trace follows one key; this log has {len(log.key_start) - 1}")
    order = log.order()
    if order is None:
        order = np.arange(len(log.time))
    values = int(log.key_start[-1])
    precedents, keys, ring = rule.new_key(values, thresholds.n_rec)
    counted = np.empty(len(order), np.int32)
    # An item activates at most one value, and what is revoked was activated; each value is proposed once.
    out = np.empty(2 * len(order) + 2 * values + rule.ACTIVATIONS_PER_ITEM, TRANSITION)
    n, changes = _trace(
        log.precedent[order],
        log.flags()[order],
        log.time[order],
        log.seq[order],
        precedents,
        keys,
        ring,
        thresholds.parameters(),
        counted,
        out,
    )
    # Stable, so the rows of one value stay in the order of the steps.
    changes = changes[np.argsort(changes["value"], kind="stable")]
    first = np.searchsorted(changes["value"], np.arange(values + 1))
    return KeyTrace(order, counted, changes, first), Replay(precedents, keys, ring[None, :], out[:n].copy())


@njit(cache=True, nogil=True)
def _restart_at(support: int, th: RuleParameters, never: int) -> int:
    """Return the fewest conflicts with which a tally of these supports restarts; ``never`` where it needs as many."""
    if th.theta_rev <= 0.0:
        return never
    bar = (support + th.alpha) / th.theta_rev - support - th.alpha - th.beta
    if bar >= never:
        return never
    conflict = max(int(bar) - 1, th.n_min - support, 0)
    while not rule.restarts(support, conflict, th):
        conflict += 1
    return conflict


@njit(cache=True, nogil=True)
def _note(
    precedent: Any, key: Any, v: int, step: int, th: RuleParameters, rows: Any, n: int, last: npt.NDArray[np.int64]
) -> bool:
    """Write down what a value is after a step, unless its last row says so; return whether there is a new row."""
    state = precedent.state
    lives = precedent.lives
    if state == rule.ACTIVE:
        support, conflict = precedent.support, precedent.conflict
        grows = not key.multivalued
        if rule.ones(precedent.window) < precedent.window_len:
            state = _DEPRECATED
    else:
        support, conflict = rule.tally(precedent, key, th)
        grows = support + conflict > 0
    if last[v] < 0:
        if state == 0 and support + conflict + lives == 0:
            return False
    else:
        row = rows[last[v]]
        known = row.conflict + (key.supports - row.counted if row.grows else 0)
        if (
            row.state == state
            and row.support == support
            and known == conflict
            and row.lives == lives
            and row.grows == grows
        ):
            return False
    row = rows[n]
    row.value = v
    row.step = step
    row.support = support
    row.conflict = conflict
    row.lives = lives
    row.counted = key.supports
    row.state = state
    row.grows = grows
    last[v] = n
    return True


@njit(cache=True, nogil=True)
def _trace(
    precedent: npt.NDArray[np.int32],
    flags: npt.NDArray[np.uint8],
    time: npt.NDArray[np.int64],
    seq: npt.NDArray[np.int64],
    precedents: Any,
    keys: Any,
    ring: npt.NDArray[np.int32],
    th: RuleParameters,
    counted: npt.NDArray[np.int32],
    out: Any,
) -> tuple[int, Any]:
    key = keys[0]
    steps, values, width = len(precedent), len(precedents), ring.shape[0]
    never = steps + 1
    rows = np.empty(2 * steps + values + 64, CHANGE)
    n, n_rows = 0, 0
    last = np.full(values, -1, np.int64)
    # Values to look at after a step: what it is about, what was Active, and what the lists below hold.
    look = np.empty(4 * values + width + 2, np.int32)
    looked = np.full(values, -1, np.int64)
    # Values with a tally since the tallies of the key last restarted, each once.
    live = np.empty(values, np.int32)
    is_live = np.zeros(values, np.bool_)
    n_live = 0
    # Rows whose tally restarts when the key has counted so many supports, one linked list for each number.
    due = np.full(never + 1, -1, np.int64)
    following = np.empty(len(rows), np.int64)
    # Values whose tally the next item restarts, whatever it is about.
    unjudged = np.empty(values, np.int32)
    n_unjudged = 0
    for i in range(steps):
        v, verdict = precedent[i], flags[i] >> 2
        supports, admits = flags[i] & 1 == 1, flags[i] & 2 == 2
        epoch, before = key.epoch, key.supports
        leaving = ring[key.items % width]
        look[0] = v
        n_look = 1
        if verdict or (supports and not key.multivalued):
            a = key.active_head
            while a >= 0:
                look[n_look] = a
                n_look += 1
                a = precedents[a].active_next
        if verdict:
            n = rule.decide(precedents, key, ring, v, verdict, th, time[i], seq[i], 0, 0, out, n)
        else:
            n = rule.observe_key(precedents, key, ring, v, supports, th, time[i], seq[i], 0, 0, out, n, admits)
            for j in range(n_unjudged):
                look[n_look + j] = unjudged[j]
            n_look += n_unjudged
            n_unjudged = 0
        counted[i] = key.supports
        if key.epoch != epoch:
            for j in range(n_live):
                is_live[live[j]] = False
                look[n_look + j] = live[j]
            n_look += n_live
            n_live = 0
            # What a revocation counted from: the items before this one.
            for w in ring:
                if w >= 0:
                    look[n_look] = w
                    n_look += 1
            if leaving >= 0:
                look[n_look] = leaving
                n_look += 1
        if key.supports != before:
            row = due[key.supports]
            while row >= 0:
                if last[rows[row].value] == row:
                    look[n_look] = rows[row].value
                    n_look += 1
                row = following[row]
        if n_rows + n_look > len(rows):
            grown, longer = np.empty(2 * len(rows) + n_look, CHANGE), np.empty(2 * len(rows) + n_look, np.int64)
            grown[:n_rows], longer[:n_rows] = rows[:n_rows], following[:n_rows]
            rows, following = grown, longer
        for j in range(n_look):
            w = look[j]
            if looked[w] == i:
                continue
            looked[w] = i
            fresh = _note(precedents[w], key, w, i, th, rows, n_rows, last)
            n_rows += fresh
            if precedents[w].state == rule.ACTIVE:
                continue
            support, conflict = rule.tally(precedents[w], key, th)
            if support + conflict == 0:
                continue
            if not is_live[w]:
                is_live[w] = True
                live[n_live] = w
                n_live += 1
            restart = _restart_at(support, th, never)
            if conflict >= restart:
                unjudged[n_unjudged] = w
                n_unjudged += 1
            elif fresh and key.supports + restart - conflict <= steps:
                following[n_rows - 1] = due[key.supports + restart - conflict]
                due[key.supports + restart - conflict] = n_rows - 1
    return n, rows[:n_rows].copy()
