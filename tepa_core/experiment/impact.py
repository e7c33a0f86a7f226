"""What a change of thresholds does to the precedents: in a log, and in a simulation.

In a log the evidence stays what it is and is replayed. In a simulation the agent lives through the seed again, because
with other thresholds it acts differently and meets other evidence.
"""

# mypy: disable-error-code="untyped-decorator"
# numba ships no types.

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from tepa_core.experiment.compiled_play import Draws, behaviours, lives
from tepa_core.experiment.run import Progress
from tepa_core.experiment.spec import RunSpec
from tepa_core.experiment.sweep import Grid
from tepa_core.lifecycle import EncodedLog, Rule, State, Thresholds, replay


def log_impact(
    log: EncodedLog, labels: pd.DataFrame, now: Thresholds, new: Thresholds, progress: Progress | None = None
) -> pd.DataFrame:
    """List the precedents of a log whose transitions differ under other thresholds.

    Parameters
    ----------
    log, labels
        The log as `tepa_core.lifecycle.encode` gives it; decisions of people in it are replayed too.
    now, new
        The thresholds to compare.
    progress
        Called with the fraction done; an exception raised in it stops.

    Returns
    -------
    pandas.DataFrame
        Exactly the precedents for which the item, the states or the rule of some transition differ, or that have more
        transitions under one setting: ``subject``, ``key_id``, ``value_id``, ``state_now``, ``state_new`` (where the
        precedent stands at the end), ``transitions_now``, ``transitions_new`` (counts), ``first_difference`` (time of
        the first transition that differs, in the clock of the log). Those that end in another state come first, then
        by ``first_difference``.
    """
    report = progress or _silent
    report(0.0, f"Replaying {len(log.time):,} evidence items under the present setting")
    ordered = _in_order(log)
    before = replay(ordered, now)
    report(0.45, f"Replaying {len(log.time):,} evidence items under the new setting")
    after = replay(ordered, new)
    report(0.9, f"Comparing the lives of {len(labels):,} precedents")
    found = _differences(before.precedents["state"], before.transitions, after.precedents["state"], after.transitions)
    names = labels[["subject", "key_id", "value_id"]].take(found.index.to_numpy()).reset_index(drop=True)
    result = _sorted(pd.concat([names, found.reset_index(drop=True)], axis=1))
    report(1.0, f"{len(result):,} precedents differ")
    return result


def log_counts(log: EncodedLog, now: Thresholds, grid: Grid, progress: Progress | None = None) -> pd.DataFrame:
    """Count what a log's precedents come to at each point of a grid.

    Parameters
    ----------
    log
        The log as `tepa_core.lifecycle.encode` gives it.
    now
        The thresholds that the grid does not vary.
    grid
        The threshold to vary.
    progress
        Called with the fraction done; an exception raised in it stops.

    Returns
    -------
    pandas.DataFrame
        One row per point: the threshold under its name, ``active`` and ``revoked`` (precedents in that state at the
        end), ``revocations`` and ``reactivations`` (transitions; those that a person decided are no re-activations).
    """
    settings = grid.apply(now)
    # Trials are on record in a log, so what counts are the thresholds of the rule: those of tepa.
    first, kind = behaviours(settings, "tepa")
    ordered = _in_order(log)
    rows = []
    for i, setting in enumerate(first):
        if progress is not None:
            progress(i / len(first), f"Replaying setting {i + 1} of {len(first)} that differ")
        result = replay(ordered, settings[setting])
        state, steps = result.precedents["state"], result.transitions
        rows.append(
            (
                np.count_nonzero(state == State.ACTIVE),
                np.count_nonzero(state == State.REVOKED),
                np.count_nonzero((steps["to_state"] == State.REVOKED) & (steps["from_state"] == State.ACTIVE)),
                np.count_nonzero(steps["rule"] == Rule.REACTIVATED),
            )
        )
    if progress is not None:
        progress(1.0, f"Replayed {len(first)} settings")
    counted = pd.DataFrame(rows, columns=["active", "revoked", "revocations", "reactivations"])
    counted = counted.take(kind).reset_index(drop=True)
    counted.insert(0, grid.name, list(grid.values))
    return counted


def run_impact(
    spec: RunSpec,
    new: Thresholds,
    *,
    method: str = "tepa",
    seed: int | None = None,
    draws: Draws | None = None,
) -> pd.DataFrame:
    """List the precedents of a simulation whose life differs when it is run with other thresholds.

    Parameters
    ----------
    spec
        The run, with the present thresholds.
    new
        The other thresholds.
    method
        A method with a lifecycle.
    seed
        Of this seed only; of all when left out.
    draws
        The drawn streams of ``spec``, where they are at hand (`Draws.of`).

    Returns
    -------
    pandas.DataFrame
        ``method``, ``seed``, and the columns of `log_impact`, with an empty ``subject``; times are tasks, negative
        before the first. A value that was never heard of stands as a candidate.

    Raises
    ------
    ValueError
        If the method has no lifecycle, or the run no such seed.
    """
    drawn = Draws.of(spec) if draws is None else draws
    if seed is not None and seed not in drawn.seeds:
        raise ValueError(f"the run has no seed {seed}; its seeds are {drawn.seeds[0]} to {drawn.seeds[-1]}")
    before, steps_before = lives(drawn, spec.thresholds, method, spec.fallback)
    after, steps_after = lives(drawn, new, method, spec.fallback)
    found = _differences(before.ravel(), steps_before, after.ravel(), steps_after)
    group, value = np.divmod(found.index.to_numpy(), len(drawn.values))
    place = drawn.items
    names = pd.DataFrame(
        {
            "method": method,
            "seed": np.array(drawn.seeds)[place.seed[group]],
            "subject": "",
            "key_id": [drawn.keys[k] for k in place.key[group]],
            "value_id": [drawn.values[v] for v in value],
        }
    )
    result = _sorted(pd.concat([names, found.reset_index(drop=True)], axis=1))
    return result if seed is None else result[result["seed"] == seed].reset_index(drop=True)


def _in_order(log: EncodedLog) -> EncodedLog:
    """Return the log in the order of its replay, so that several replays sort it once."""
    order = log.order()
    if order is None:
        return log
    return dataclasses.replace(
        log,
        precedent=log.precedent[order],
        supports=log.supports[order],
        time=log.time[order],
        seq=log.seq[order],
        admits=None if log.admits is None else log.admits[order],
        verdict=None if log.verdict is None else log.verdict[order],
    )


def _differences(
    state_now: npt.NDArray[np.int8],
    now: npt.NDArray[np.void],
    state_new: npt.NDArray[np.int8],
    new: npt.NDArray[np.void],
) -> pd.DataFrame:
    """Compare two lives of the same precedents; the index of the result numbers those that differ."""
    order_now, start_now = _by_precedent(now, len(state_now))
    order_new, start_new = _by_precedent(new, len(state_new))
    differs = np.zeros(len(state_now), np.bool_)
    first = np.zeros(len(state_now), np.int64)
    _compare(now, order_now, start_now, new, order_new, start_new, differs, first)
    index = np.flatnonzero(differs)
    states = np.array([state.label for state in State], object)
    return pd.DataFrame(
        {
            "state_now": states[state_now[index]],
            "state_new": states[state_new[index]],
            "transitions_now": np.diff(start_now)[index],
            "transitions_new": np.diff(start_new)[index],
            "first_difference": first[index],
        },
        index=index,
    )


def _by_precedent(steps: npt.NDArray[np.void], precedents: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the order that puts the transitions of each precedent together, and where each one's begin and end."""
    counts = np.bincount(steps["precedent"], minlength=precedents)
    return np.argsort(steps["precedent"], kind="stable"), np.append(0, np.cumsum(counts))


@njit(cache=True, nogil=True)
def _compare(
    now: Any, now_order: Any, now_start: Any, new: Any, new_order: Any, new_start: Any, differs: Any, first: Any
) -> None:
    for p in range(len(differs)):
        i, i_end = now_start[p], now_start[p + 1]
        j, j_end = new_start[p], new_start[p + 1]
        while i < i_end and j < j_end:
            a, b = now[now_order[i]], new[new_order[j]]
            if a.seq != b.seq or a.from_state != b.from_state or a.to_state != b.to_state or a.rule != b.rule:
                break
            i += 1
            j += 1
        if i < i_end and j < j_end:
            first[p] = min(now[now_order[i]].time, new[new_order[j]].time)
        elif i < i_end:
            first[p] = now[now_order[i]].time
        elif j < j_end:
            first[p] = new[new_order[j]].time
        differs[p] = i < i_end or j < j_end


def _sorted(found: pd.DataFrame) -> pd.DataFrame:
    moved = found["state_now"] != found["state_new"]
    return (
        found.assign(moved=~moved)
        .sort_values(["moved", "first_difference"], kind="stable")
        .drop(columns="moved")
        .reset_index(drop=True)
    )


def _silent(fraction: float, sentence: str) -> None:
    """Report to nobody."""
