"""The paper's cost table measured on this machine, as ratios: what TEPA costs beside two plain memories.

Absolute times belong to a machine; ratios of work done by turns on one machine can be compared. Keys and values are
text, as in a real log (`tepa_core.bench.drift_log`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.bench import drift_log
from tepa_core.experiment import Progress
from tepa_core.lifecycle import EncodedLog, Ledger, Thresholds, replay
from tepa_core.reported import COST_SIZES

#: Times that every comparison is repeated, the two sides by turns.
ROUNDS = 5

#: Updates of the live memory that is asked; a look-up in a dict takes as long at any size.
LIVE_UPDATES = 20_000

#: The ratio that the paper's table has no row for.
LIVE = "tepa, one item at a time / last_write_wins"

_QUERIES = 5_000
_KEYS_OF_UPDATES = 10


def measure(
    sizes: Sequence[str] = tuple(COST_SIZES), progress: Progress | None = None, *, rounds: int = ROUNDS
) -> pd.DataFrame:
    """Measure the ratios of the cost table.

    Update time: the compiled rule over a log whose text is already turned into numbers, against a loop that assigns
    every item to a dict (``last_write_wins``) or appends it to a list (``append_only``). Query time: a scan of every
    item of the log for the most frequent value of a key (``append_only``) against the recall of a live memory.

    A live memory takes one item at a time from Python, which costs more than the rule itself; `LIVE` of the first size
    says how much more than a dict assignment.

    Parameters
    ----------
    sizes
        Names in `tepa_core.reported.COST_SIZES`.
    progress
        Called with the fraction done before each size.
    rounds
        How often each comparison is repeated (at least 1).

    Returns
    -------
    pandas.DataFrame
        ``scope`` (the size), ``method`` ("a / b"), ``quantity``, ``ours`` (median of the rounds' ratios), ``lo`` and
        ``hi`` (their quartiles: on a shared machine single rounds go astray).

    Raises
    ------
    ValueError
        If a size is unknown, or there is no round.
    """
    unknown = [size for size in sizes if size not in COST_SIZES]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: no such size; the sizes are {', '.join(COST_SIZES)}")
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, not {rounds}")
    rows: list[tuple[str, str, str, float, float, float]] = []
    for i, size in enumerate(sizes):
        if progress is not None:
            progress(i / len(sizes), f"Measuring cost at {size}")
        for (method, quantity), ratios in _ratios(COST_SIZES[size], rounds, live=i == 0).items():
            lo, ours, hi = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
            rows.append((size, method, quantity, ours, lo, hi))
    return pd.DataFrame(rows, columns=["scope", "method", "quantity", "ours", "lo", "hi"])


def _ratios(updates: int, rounds: int, *, live: bool) -> dict[tuple[str, str], list[float]]:
    rng = np.random.Generator(np.random.PCG64(20260810))
    log = drift_log(updates, max(updates // _KEYS_OF_UPDATES, 1), rng)
    keys, values = log.texts()
    thresholds = Thresholds()
    encoded = _encoded(log.key, log.value)
    few = min(updates, LIVE_UPDATES)
    memory = _live(keys[:few], values[:few], thresholds)
    asked = [keys[i] for i in rng.integers(0, few, _QUERIES).tolist()]
    replay(encoded, thresholds)
    found: dict[tuple[str, str], list[float]] = {}
    if live:
        one_by_one = _seconds(lambda: _live(keys[:few], values[:few], thresholds))
        found[LIVE, "update time"] = [one_by_one / _seconds(lambda: _assign(keys[:few], values[:few]))]
    for turn in range(rounds):
        rule = _seconds(lambda: replay(encoded, thresholds))
        assigned = _seconds(lambda: _assign(keys, values))
        appended = _seconds(lambda: _append(keys, values))
        recall = _seconds(lambda: [memory.recall(key) for key in asked]) / _QUERIES
        scan = _seconds(lambda key=asked[turn]: _scan(keys, values, key))  # type: ignore[misc]
        for name, ratio in (
            (("tepa / last_write_wins", "update time"), rule / assigned),
            (("tepa / append_only", "update time"), rule / appended),
            (("append_only / tepa", "query time"), scan / recall),
        ):
            found.setdefault(name, []).append(ratio)
    return found


def _encoded(key: npt.NDArray[np.int64], value: npt.NDArray[np.int64]) -> EncodedLog:
    """Return the log as numbers, the (key, value) pairs of one key side by side."""
    n_values = int(value.max()) + 1
    pairs, precedent = np.unique(key * n_values + value, return_inverse=True)
    n_keys = int(key.max()) + 1
    at = np.arange(len(key))
    return EncodedLog(
        precedent.astype(np.int32),
        np.ones(len(key), np.bool_),
        at,
        at,
        np.searchsorted(pairs // n_values, np.arange(n_keys + 1)).astype(np.int64),
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _live(keys: Sequence[str], values: Sequence[str], thresholds: Thresholds) -> Ledger:
    memory = Ledger(thresholds)
    for key, value in zip(keys, values, strict=True):
        memory.observe(key, value)
    return memory


def _assign(keys: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    memory: dict[str, str] = {}
    for key, value in zip(keys, values, strict=True):
        memory[key] = value
    return memory


def _append(keys: Sequence[str], values: Sequence[str]) -> list[tuple[str, str]]:
    memory: list[tuple[str, str]] = []
    for item in zip(keys, values, strict=True):
        memory.append(item)
    return memory


def _scan(keys: Sequence[str], values: Sequence[str], asked: str) -> str:
    return statistics.mode(value for key, value in zip(keys, values, strict=True) if key == asked)
