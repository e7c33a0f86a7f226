"""Which revocations a person should look at first: the expected harm of each having been wrong.

The model
---------
At any moment one value of a conflict key *holds*: one that the log has named, or one that it has not. From one
evidence item on the key to the next another value takes its place with probability h (the change rate; any other,
all alike), and an item misleads with probability e (the noise): it refutes the value that holds, or supports one that
does not. These two numbers belong to a whole log, and the log itself says how likely each pair is: they are averaged
over a grid, weighted by the likelihood of everything known so far. Nothing is tuned to a stream; truth and phases are
never read.

The probability that a value held at the moment of its revocation then follows from what a person would look at:

* How close the call was, and against how good a record (``p_at``: evidence up to the revocation). Two conflicts after
  a long undisturbed record may be noise. When one support more would have prevented it (``would_prevent``) or the
  posterior hardly moved (``posterior_before``, ``posterior_after``), the call says little against the value.
* What has happened since (``p_wrong``: all evidence). Supports of the revoked value speak for it, and so does the
  failure of what was tried instead; another value that took over and is supported time and again speaks against it.
* Whether the world has moved on (``p_now``): a value may have been archived wrongly then and be obsolete now.

The expected harm of a revocation is ``p_wrong`` times how often its key is used (``exposure``): proposition P2 of paper
section 5, exposure times the probability of following the wrong memory, per unit of loss.

Why it is linear
----------------
An item names one value, so the probabilities of all other values of the key change by one affine map: a number per
value, and a scale and an offset per key, are enough. One item costs the same whatever the number of values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from tepa_core.lifecycle import EncodedLog, Replay, Rule, State, Thresholds, Verdict, would_prevent
from tepa_core.lifecycle.explain import counted
from tepa_core.lifecycle.replay import window_text

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Change rates and noises that are weighed against each other, from hardly ever to nearly as good as random.
CHANGE_RATES: FloatArray = np.geomspace(0.001, 0.4, 12)
NOISES: FloatArray = np.geomspace(0.005, 0.4, 10)

#: Pairs of the grid that are this much less likely than the best change no digit that anybody reads.
_NEGLIGIBLE = 1e-3

#: Bounds of the affine map's scale, outside which it is worked into the numbers before they over- or underflow.
_SMALL, _LARGE = 1e-100, 1e100


@dataclass(frozen=True, slots=True)
class _Items:
    """Evidence by key, in order of time.

    ``start`` (keys + 1,) bounds the items of each key. ``value`` is an item's value as a number within its key, shape
    (n,), ``seq`` its number. ``values`` counts the values of each key, shape (keys,).
    """

    start: IntArray
    key: IntArray
    value: IntArray
    supports: BoolArray
    seq: IntArray
    values: IntArray


def triage(log: EncodedLog, replayed: Replay, thresholds: Thresholds, use: npt.ArrayLike | None = None) -> pd.DataFrame:
    """Rank every revocation of a replayed log by the expected harm of its being wrong.

    Parameters
    ----------
    log
        What was known at the moment of asking, and nothing later. A person's decisions in it are no evidence.
    replayed
        The replay of that log.
    thresholds
        Those of the replay.
    use
        Per key the number of what it is used for, shape (keys,), where a log holds several memories with the same keys
        (the seeds of a simulation): how often a key is used is counted over all of them. Each key counts for itself
        when left out.

    Returns
    -------
    pandas.DataFrame
        One row per revocation by the rule, the largest score first, equal ones by time; not where a person's decision
        replaced the value, nor on a key once a person has declared that it holds several values:

        ``precedent``, ``number``, ``at``
            Index of the precedent, number of the transition among its own (as in `tepa_core.lifecycle.tables`), time.
        ``score``
            ``p_wrong * exposure``.
        ``p_wrong``, ``p_at``, ``p_now``
            Probability that the value held when it was revoked, by all evidence and by the evidence until then; that it
            holds after the last item.
        ``exposure``
            Share of the evidence that is on the key (on keys of the same use), 0 to 1.
        ``state``
            Of the precedent after the last item.
        ``rule``, ``support``, ``conflict``, ``posterior_before``, ``posterior_after``, ``would_prevent``
            How close the call was: counts after it, posterior before and after its last conflict, and how many of the
            latest conflicts would have had to be supports (missing where another value superseded it).
        ``undisturbed``
            Supports in a row right before the first conflict in the window that judged it.
        ``supports_since``, ``conflicts_since``
            Items for and against the value after the revocation; a support of another value is against it.
        ``successor``, ``successor_supports``
            Index of another precedent of the key that is Active after the last item (-1: none), and its supports since
            the revocation.
        ``came_back``
            Whether the precedent became Active again after this revocation.
        ``reasons``
            The same in words.

    Examples
    --------
    >>> from tepa_core.lifecycle import encode, replay
    >>> said = ["window"] * 9 + ["aisle"] * 2 + ["window"] * 4
    >>> evidence = pd.DataFrame(
    ...     {"seq": range(15), "t": range(15), "subject": "u", "key_id": "seat", "value_id": said, "supports": True}
    ... )
    >>> log, labels = encode(evidence, time="t")
    >>> ranked = triage(log, replay(log, Thresholds()), Thresholds())
    >>> ranked[["at", "undisturbed", "supports_since", "came_back"]].to_dict("records")
    [{'at': 10, 'undisturbed': 9, 'supports_since': 4, 'came_back': True}]
    """
    items = _by_key(log)
    transitions = replayed.transitions
    numbers = pd.Series(transitions["precedent"]).groupby(transitions["precedent"]).cumcount().to_numpy(np.int64)
    fell = (transitions["from_state"] == State.ACTIVE) & (transitions["to_state"] == State.REVOKED)
    position = _positions(items, transitions["key"].astype(np.int64), transitions["seq"])
    # A value that fell to a person's decision has no evidence item of its own.
    chosen = np.flatnonzero(fell & (position >= 0))
    chosen = chosen[np.argsort(position[chosen], kind="stable")]
    falls, position = transitions[chosen], position[chosen]
    key, precedent = falls["key"].astype(np.int64), falls["precedent"].astype(np.int64)
    value = precedent - log.key_start[key]

    wrong, at, now = _probabilities(items, key, position, value)
    head = replayed.keys["active_head"].astype(np.int64)[key]
    successor = np.where(head == value, -1, head)
    since = _since(items.start, items.value, items.supports, items.values, key, position, value, successor)
    undisturbed = _undisturbed(
        items.start, items.value, items.supports, key, position, value, falls["window_len"].astype(np.int64)
    )
    used = np.diff(items.start)
    kind = np.arange(len(used)) if use is None else np.asarray(use, np.int64)
    exposure = np.bincount(kind, used)[kind[key]] / max(used.sum(), 1)

    support, conflict = falls["support"].astype(np.int64), falls["conflict"].astype(np.int64)
    prior = thresholds.alpha + thresholds.beta
    rose = transitions["to_state"] == State.ACTIVE
    last_rise = np.full(len(replayed.precedents), -1, np.int64)
    last_rise[transitions["precedent"][rose]] = numbers[rose]
    states = np.array([state.label for state in State], object)
    frame = pd.DataFrame(
        {
            "precedent": precedent,
            "number": numbers[chosen],
            "at": falls["time"],
            "score": wrong * exposure,
            "p_wrong": wrong,
            "p_at": at,
            "p_now": now,
            "exposure": exposure,
            "state": states[replayed.precedents["state"][precedent]],
            "rule": [Rule(rule).label for rule in falls["rule"]],
            "support": support,
            "conflict": conflict,
            "posterior_before": (support + thresholds.alpha) / (support + conflict - 1 + prior),
            "posterior_after": (support + thresholds.alpha) / (support + conflict + prior),
            "would_prevent": pd.array(_would_prevent(falls, thresholds), "Int64"),
            "undisturbed": undisturbed,
            "supports_since": since[:, 0],
            "conflicts_since": since[:, 1],
            "successor": np.where(successor < 0, -1, successor + log.key_start[key]),
            "successor_supports": since[:, 2],
            "came_back": last_rise[precedent] > numbers[chosen],
        }
    )
    frame["reasons"] = [_reasons(row) for row in frame.to_dict("records")]
    return frame.sort_values(["score", "at", "precedent"], ascending=[False, True, True], ignore_index=True)


def _by_key(log: EncodedLog) -> _Items:
    order = log.order()
    if order is None:
        order = np.arange(len(log.time))
    precedent = log.precedent[order].astype(np.int64)
    key = np.searchsorted(log.key_start, precedent, side="right") - 1
    if log.verdict is not None:
        verdict = log.verdict[order]
        several = np.full(len(log.key_start) - 1, len(order))
        declared = np.flatnonzero(verdict == Verdict.BOTH_VALID)
        np.minimum.at(several, key[declared], declared)
        # Of a key that holds several values the model knows nothing.
        modelled = (verdict == 0) & (np.arange(len(order)) < several[key])
        order, precedent, key = order[modelled], precedent[modelled], key[modelled]
    by_key = np.argsort(key, kind="stable")
    key = key[by_key]
    return _Items(
        np.searchsorted(key, np.arange(len(log.key_start))).astype(np.int64),
        key,
        precedent[by_key] - log.key_start[key],
        log.supports[order][by_key],
        log.seq[order][by_key],
        np.diff(log.key_start),
    )


def _positions(items: _Items, key: IntArray, seq: IntArray) -> IntArray:
    """Find the item of each transition; -1 where a decision caused it. Numbers are unique within a key only."""
    places = pd.MultiIndex.from_arrays([items.key, items.seq])
    return places.get_indexer(pd.MultiIndex.from_arrays([key, seq])).astype(np.int64)


def _would_prevent(falls: npt.NDArray[np.void], thresholds: Thresholds) -> list[int | None]:
    return [
        None
        if row["rule"] == Rule.SUPERSEDED
        else would_prevent(
            int(row["support"]),
            int(row["conflict"]),
            window_text(int(row["window"]), int(row["window_len"])),
            thresholds,
        )
        for row in falls
    ]


def _reasons(row: dict[Any, Any]) -> str:
    """Say what speaks for and against the revocation, in the order in which it happened."""
    said = []
    if row["undisturbed"]:
        said.append(f"{counted(row['undisturbed'], 'support')} in a row before the conflicts that revoked it")
    needed = row["would_prevent"]
    if pd.notna(needed) and needed:
        said.append(f"{counted(int(needed), 'support')} more instead would have prevented it")
    if row["supports_since"] or row["conflicts_since"]:
        said.append(
            f"since then {counted(row['supports_since'], 'item')} for it and "
            f"{counted(row['conflicts_since'], 'item')} against it"
        )
    else:
        said.append("no evidence on it since")
    if row["came_back"]:
        said.append("it came back" if row["state"] == State.ACTIVE.label else "it came back and fell again")
    if row["successor"] >= 0:
        said.append(f"another value is active now, with {counted(row['successor_supports'], 'support')} since")
    said.append(f"{row['exposure']:.0%} of the evidence is on this key")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def _probabilities(
    items: _Items, key: IntArray, position: IntArray, value: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``p_wrong``, ``p_at`` and ``p_now`` of each question, averaged over change rate and noise."""
    total = np.zeros((3, len(key)))
    if len(key) == 0:
        return total[0], total[1], total[2]
    rates, noises = (grid.ravel() for grid in np.meshgrid(CHANGE_RATES, NOISES, indexing="ij"))
    evidence = (items.start, items.value, items.supports, items.values + 1)
    weight = np.array([_likelihood(*evidence, h, e) for h, e in zip(rates, noises, strict=True)])
    weight = np.exp(weight - weight.max())
    weight[weight < _NEGLIGIBLE] = 0.0
    weight /= weight.sum()
    first = np.searchsorted(key, np.arange(len(items.start)))
    for i in np.flatnonzero(weight):
        total += weight[i] * _smoothed(*evidence, rates[i], noises[i], first, position, value)
    return total[0], total[1], total[2]


@njit(cache=True, nogil=True)
def _change(scale: float, offset: float, h: float, n: int) -> tuple[float, float]:
    """Let another of n states take the place of each with probability h: x becomes (1 - h) x + h (1 - x) / (n - 1)."""
    stay = 1.0 - h * n / (n - 1)
    return scale * stay, offset * stay + h / (n - 1)


@njit(cache=True, nogil=True)
def _weigh(x: Any, scale: float, offset: float, v: int, supports: bool, e: float) -> tuple[float, float, float]:
    """Multiply each state's probability by that of the item, scaled to sum 1; return scale, offset and the old sum."""
    mine, other = (1.0 - e, e) if supports else (e, 1.0 - e)
    p = scale * x[v] + offset
    total = mine * p + other * (1.0 - p)
    scale *= other / total
    offset *= other / total
    if not _SMALL < scale < _LARGE:
        for u in range(len(x)):
            x[u] = scale * x[u] + offset
        scale, offset = 1.0, 0.0
    x[v] = (mine * p / total - offset) / scale
    return scale, offset, total


@njit(cache=True, nogil=True)
def _likelihood(start: Any, value: Any, supports: Any, states: Any, h: float, e: float) -> float:
    """Log-likelihood of all items, every state of a key equally likely before its first."""
    log_likelihood = 0.0
    for k in range(len(states)):
        n = states[k]
        x = np.full(n, 1.0 / n)
        scale, offset = 1.0, 0.0
        for i in range(start[k], start[k + 1]):
            scale, offset = _change(scale, offset, h, n)
            scale, offset, total = _weigh(x, scale, offset, value[i], supports[i], e)
            log_likelihood += np.log(total)
    return log_likelihood


@njit(cache=True, nogil=True)
def _smoothed(
    start: Any, value: Any, supports: Any, states: Any, h: float, e: float, first: Any, position: Any, asked: Any
) -> Any:
    """Forward and backward pass; questions ``first[k]:first[k + 1]`` of key k in order of their position.

    Returns
    -------
    numpy.ndarray, shape (3, questions)
        Probability of the asked value at the position by all items, by the items until there, and after the last.
    """
    p = np.zeros((3, len(position)))
    for k in range(len(states)):
        if first[k] == first[k + 1]:
            continue
        n = states[k]
        x = np.full(n, 1.0 / n)
        scale, offset, log_likelihood = 1.0, 0.0, 0.0
        # The log of the factors by which the forward numbers at each question have been scaled.
        forward = np.zeros(first[k + 1] - first[k])
        q = first[k]
        for i in range(start[k], start[k + 1]):
            scale, offset = _change(scale, offset, h, n)
            scale, offset, total = _weigh(x, scale, offset, value[i], supports[i], e)
            log_likelihood += np.log(total)
            while q < first[k + 1] and position[q] == i:
                p[1, q] = scale * x[asked[q]] + offset
                forward[q - first[k]] = log_likelihood
                q += 1
        for q in range(first[k], first[k + 1]):
            p[2, q] = scale * x[asked[q]] + offset
        x[:] = 1.0 / n
        scale, offset, backward = 1.0, 0.0, np.log(n)
        q = first[k + 1] - 1
        for i in range(start[k + 1] - 1, start[k] - 1, -1):
            while q >= first[k] and position[q] == i:
                future = scale * x[asked[q]] + offset
                p[0, q] = p[1, q] * future * np.exp(forward[q - first[k]] + backward - log_likelihood)
                q -= 1
            scale, offset, total = _weigh(x, scale, offset, value[i], supports[i], e)
            backward += np.log(total)
            scale, offset = _change(scale, offset, h, n)
    return p


@njit(cache=True, nogil=True)
def _since(
    start: Any, value: Any, supports: Any, values: Any, key: Any, position: Any, asked: Any, successor: Any
) -> Any:
    """Count after each position the items for the asked value, those against it, and the successor's supports."""
    counts = np.zeros((len(position), 3), np.int64)
    q = len(position) - 1
    for k in range(len(values) - 1, -1, -1):
        if q < 0:
            break
        if key[q] != k:
            continue
        support, refuted, all_supports = np.zeros(values[k], np.int64), np.zeros(values[k], np.int64), 0
        for i in range(start[k + 1] - 1, start[k] - 1, -1):
            while q >= 0 and position[q] == i:
                v = asked[q]
                counts[q, 0] = support[v]
                counts[q, 1] = refuted[v] + all_supports - support[v]
                if successor[q] >= 0:
                    counts[q, 2] = support[successor[q]]
                q -= 1
            if supports[i]:
                support[value[i]] += 1
                all_supports += 1
            else:
                refuted[value[i]] += 1
    return counts


@njit(cache=True, nogil=True)
def _undisturbed(start: Any, value: Any, supports: Any, key: Any, position: Any, asked: Any, window: Any) -> Any:
    """Count the supports in a row right before the first conflict in the window that ends at each position."""
    counts = np.zeros(len(position), np.int64)
    for q in range(len(position)):
        i, judged, first = position[q], 0, position[q]
        while i >= start[key[q]] and judged < window[q]:
            if supports[i] or value[i] == asked[q]:
                judged += 1
                if not (supports[i] and value[i] == asked[q]):
                    first = i
            i -= 1
        i = first - 1
        while i >= start[key[q]]:
            mine = value[i] == asked[q]
            if mine and supports[i]:
                counts[q] += 1
            elif mine or supports[i]:
                break
            i -= 1
    return counts
