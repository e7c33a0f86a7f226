"""What the rule costs on this machine, measured against plain Python memories doing the same work (paper, cost table).

Workload: a drift log. Each key holds a value that changes now and then; about one item in twenty asserts another value
than the one it holds. Keys and values are text, as in a real log. Every time is the median of rounds in which the two
sides of a comparison alternate, since a shared machine is never equally fast for long.
"""

from __future__ import annotations

import csv
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import Draws, Grid, RunSpec, one_dimensional, sweep
from tepa_core.lifecycle import EncodedLog, Ledger, Thresholds, encode, replay
from tepa_core.logs import import_log
from tepa_core.store import Store, explanation, queries, triaged
from tepa_core.streams.fact_file import fact_file
from tepa_core.streams.templates import RELATIONS

#: Share of items that assert another value than the one which the key holds.
NOISE = 0.05

#: Probability that a key's value changes with one of its items.
CHANGE = 0.02

#: Values that a key can hold.
VALUES = 4

#: The facts that must hold, judged from this size on: below it fixed costs decide.
JUDGED_FROM = 1_000_000

#: A replayed event may cost this share of a plain dict assignment.
REPLAY_OVER_LWW = 0.6

#: Ten times the events may cost this much per event, for the same keys.
GROWTH = 2.0

#: Ranking the archive of a log may cost this share of importing it.
RANK_OVER_IMPORT = 0.5

#: Seconds that the settings of a 31 x 31 surface may take: a person waits for it.
SURFACE_S = 0.5

#: Seconds that all sliders' own futures may take once one of them is let go.
SLIDERS_S = 0.15

#: Seconds that explaining a value of one key with `EXPLAINED` items may take: a person waits for it.
EXPLAIN_S = 3.0

#: Items of the one key at which that is judged.
EXPLAINED = 100_000

_ROUNDS = 7
_EXPLAIN_ROUNDS = 3
_SURFACE_ROUNDS = 5
_LEDGER_UPDATES = 50_000
_QUERIES = 100_000
_SCANS = 15
_IMPORT_ROWS = 100_000
_FACTS = (2_000, 20_000)
_EPOCH = 1_600_000_000


@dataclass(frozen=True, slots=True)
class DriftLog:
    """A made log: ``key`` and ``value`` as codes, shape (n,), in order of time."""

    key: npt.NDArray[np.int64]
    value: npt.NDArray[np.int64]

    def texts(self) -> tuple[list[str], list[str]]:
        """Return keys and values as text, every cell a text of its own, as rows that come out of a file are."""
        return [f"user-{k:06d}/seat" for k in self.key.tolist()], [f"value {v}" for v in self.value.tolist()]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something the product promises about cost: ``value`` must not exceed ``limit``."""

    rule: str
    value: float
    limit: float

    @property
    def sentence(self) -> str:
        """The promise in words, and what was measured."""
        return f"{self.rule.format(limit=self.limit)}: measured {self.value:.2f}"

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.value <= self.limit


def drift_log(updates: int, keys: int, rng: np.random.Generator) -> DriftLog:
    """Draw a drift log.

    Parameters
    ----------
    updates, keys
        Number of evidence items, and of conflict keys, which take turns at random.
    """
    key = rng.integers(0, keys, updates)
    order = np.argsort(key, kind="stable")
    # One sum over the items of all keys, key by key: it starts each key at some value, and within it counts changes.
    steps = np.where(rng.random(updates) < CHANGE, rng.integers(1, VALUES, updates), 0)
    held = np.empty(updates, np.int64)
    held[order] = np.cumsum(steps[order])
    noise = np.where(rng.random(updates) < NOISE, rng.integers(1, VALUES, updates), 0)
    return DriftLog(key, (held + noise) % VALUES)


def _median_seconds(rounds: int, *sides: Callable[[], Any]) -> tuple[float, ...]:
    """Time several callables by turns; the median of each."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, taken in zip(sides, times, strict=True):
            began = time.perf_counter()
            side()
            taken.append(time.perf_counter() - began)
    return tuple(statistics.median(taken) for taken in times)


def _last_write_wins(keys: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    memory: dict[str, str] = {}
    for key, value in zip(keys, values, strict=True):
        memory[key] = value
    return memory


def _encoded(log: DriftLog) -> tuple[EncodedLog, float]:
    """Return the log as numbers, and the seconds that took from rows of text."""
    keys, values = log.texts()
    n = np.arange(len(keys))
    frame = pd.DataFrame(
        {
            "seq": n,
            "time": n,
            "subject": "",
            "key_id": np.array(keys, object),
            "value_id": np.array(values, object),
            "supports": True,
        }
    )
    began = time.perf_counter()
    encoded, _ = encode(frame, time="time")
    return encoded, time.perf_counter() - began


def _write_log(path: Path, log: DriftLog) -> None:
    keys, values = log.texts()
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["ts", "key", "value"])
        rows.writerows(zip(range(_EPOCH, _EPOCH + len(keys)), keys, values, strict=True))


def _import_seconds(log: DriftLog) -> tuple[float, float]:
    """Seconds from a CSV file of the log to the committed run, and from that to its ranked archive."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        _write_log(path, log)
        with Store(Path(folder) / "bench.duckdb", PROGRAM) as store:
            began = time.perf_counter()
            run_id = import_log(store, path).run_id
            import_s = time.perf_counter() - began
            triaged(store, run_id, as_of=_EPOCH)  # compiles
            (rank_s,) = _median_seconds(3, lambda: triaged(store, run_id))
            return import_s, rank_s


def _facts(n: int) -> dict[str, Any]:
    """Make a fact file of n statements, each subject with two values for each relation."""
    kinds = len(RELATIONS)
    stated = (RELATIONS[i % kinds].sentence(f"Place {i // (2 * kinds)}", f"Value {i}") for i in range(n))
    return {
        "context": "\n".join(f"{i}. {sentence}" for i, sentence in enumerate(stated)),
        "questions": [relation.ask("Place 0") for relation in RELATIONS],
        "answers": [["Value 0"]] * kinds,
    }


def _fact_growth() -> float:
    """Return the cost of reading a fact of a large file over one of a small file."""
    few, many = (_facts(n) for n in _FACTS)
    few_s, many_s = _median_seconds(3, lambda: fact_file(few, "few"), lambda: fact_file(many, "many"))
    return (many_s / _FACTS[1]) / (few_s / _FACTS[0])


def _explain_seconds(sizes: Sequence[int], rng: np.random.Generator) -> dict[str, float]:
    """Seconds to explain the value with most lives of a key, all evidence on one key, by the number of items."""
    taken = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.csv"
            _write_log(path, drift_log(size, 1, rng))
            with Store(Path(folder) / "bench.duckdb", PROGRAM) as store:
                run_id = import_log(store, path).run_id
                precedent = queries.precedents(store, run_id).sort_values("lives", ascending=False)["id"].iloc[0]
                ask = partial(explanation, store, run_id, precedent)
                (taken[str(size)],) = _median_seconds(_EXPLAIN_ROUNDS, ask)
    return taken


def _surface_seconds() -> float:
    spec = RunSpec.build("controlled")
    draws = Draws.of(spec)
    grids = Grid.parse("theta_rev=0:0.9:31"), Grid.parse("theta_rec=0:1:31")
    return statistics.median(sweep(spec, *grids, draws=draws).kernel_s for _ in range(_SURFACE_ROUNDS))


def _sliders_seconds() -> float:
    spec = RunSpec.build("controlled")
    draws = Draws.of(spec)
    taken = []
    for _ in range(_SURFACE_ROUNDS):
        began = time.perf_counter()
        one_dimensional(spec, draws=draws)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _live(thresholds: Thresholds, keys: Sequence[str], values: Sequence[str]) -> Ledger:
    memory = Ledger(thresholds)
    for key, value in zip(keys, values, strict=True):
        memory.observe(key, value)
    return memory


def _silent(sentence: str) -> None:
    """Report to nobody."""


def bench(
    updates: int = 1_000_000, keys: int = 100_000, progress: Callable[[str], None] = _silent
) -> tuple[dict[str, Any], tuple[Fact, ...]]:
    """Measure.

    Parameters
    ----------
    updates, keys
        Size of the main log.
    progress
        Called with a sentence before each measurement.

    Returns
    -------
    dict
        Per event ``replay_ns`` (compiled, of numbers), ``lww_ns`` (a plain dict in a plain loop), ``tepa_update_ns``
        (a live `Ledger`), ``replay_one_key_ns`` (all events on one key), ``replay_ns_at`` ({keys: {events: ns}}).
        Per query ``tepa_query_ns``, ``dict_get_ns``, ``append_scan_query_us`` (every item of the log is looked at, in
        plain Python). ``ratios`` of these; ``encode_s`` (rows of text to the numbers that the replay takes, and apart
        from it); ``import_s`` (a CSV file of ``import_rows`` rows to the committed run) and ``rank_s`` (from there to
        its ranked archive); ``surface_s`` (31 x 31 settings of theta_rev and theta_rec on 50 seeds of the controlled
        stream, in the compiled loop) and ``sliders_s`` (every threshold swept alone, with all that the server computes
        for it).
    tuple of Fact
        What must hold from `JUDGED_FROM` updates on.

    Raises
    ------
    ValueError
        If a size is below 1.
    """
    if updates < 1 or keys < 1:
        raise ValueError(f"updates and keys must be at least 1, not {updates} and {keys}")
    rng = np.random.Generator(np.random.PCG64(20260810))
    thresholds = Thresholds()
    progress("Compiling the rule")
    replay(_encoded(drift_log(1000, 50, rng))[0], thresholds)
    _live(thresholds, ["seat"] * 20, ["window"] * 20).recall("seat")

    progress(f"Replaying {updates:,} updates of {keys:,} keys, by turns with a plain dict")
    log = drift_log(updates, keys, rng)
    texts, values = log.texts()
    encoded, encode_s = _encoded(log)
    one_key, _ = _encoded(drift_log(updates, 1, rng))
    replay_s, lww_s, one_key_s = _median_seconds(
        _ROUNDS,
        lambda: replay(encoded, thresholds),
        lambda: _last_write_wins(texts, values),
        lambda: replay(one_key, thresholds),
    )

    tenth = max(updates // 10, 1)
    replay_ns_at: dict[str, dict[str, float]] = {}
    for n_keys in sorted({max(keys // 10, 1), keys}):
        progress(f"Replaying {tenth:,} and {updates:,} updates of {n_keys:,} keys")
        logs = [_encoded(drift_log(n, n_keys, rng))[0] for n in (tenth, updates)]
        taken = _median_seconds(_ROUNDS, *(partial(replay, each, thresholds) for each in logs))
        replay_ns_at[str(n_keys)] = {
            str(n): 1e9 * seconds / n for n, seconds in zip((tenth, updates), taken, strict=True)
        }

    progress("Updating and asking a live memory")
    some = min(updates, _LEDGER_UPDATES)
    few_texts, few_values = drift_log(some, max(some * keys // updates, 1), rng).texts()
    live_s, live_lww_s = _median_seconds(
        3, lambda: _live(thresholds, few_texts, few_values), lambda: _last_write_wins(few_texts, few_values)
    )
    memory, plain = _live(thresholds, few_texts, few_values), _last_write_wins(few_texts, few_values)
    asked = [few_texts[i] for i in rng.integers(0, some, _QUERIES).tolist()]
    recall_s, get_s = _median_seconds(
        _ROUNDS, lambda: [memory.recall(key) for key in asked], lambda: [plain.get(key) for key in asked]
    )
    scanned = [texts[i] for i in rng.integers(0, updates, _SCANS).tolist()]
    scans = _median_seconds(1, *(partial(_append_scan, texts, values, key) for key in scanned))

    rows = min(updates, _IMPORT_ROWS)
    progress(f"Importing a CSV file of {rows:,} rows")
    import_s, rank_s = _import_seconds(drift_log(rows, max(rows // 10, 1), rng))

    progress("Reading files of {:,} and {:,} facts".format(*_FACTS))
    fact_growth = _fact_growth()

    # Of a small measurement the three sizes may be one.
    sizes = sorted({max(updates // 100, 1), tenth, updates})
    progress(f"Explaining one key of {', '.join(f'{size:,}' for size in sizes)} items")
    explain_s_at = _explain_seconds(sizes, rng)

    progress("Playing 31 x 31 thresholds on 50 seeds of controlled drift")
    surface_s = _surface_seconds()
    sliders_s = _sliders_seconds()

    numbers: dict[str, Any] = {
        "updates": updates,
        "keys": keys,
        "replay_ns": 1e9 * replay_s / updates,
        "lww_ns": 1e9 * lww_s / updates,
        "replay_one_key_ns": 1e9 * one_key_s / updates,
        "replay_ns_at": replay_ns_at,
        "tepa_update_ns": 1e9 * live_s / some,
        "tepa_query_ns": 1e9 * recall_s / _QUERIES,
        "dict_get_ns": 1e9 * get_s / _QUERIES,
        "append_scan_query_us": 1e6 * statistics.median(scans),
        "ratios": {
            "replay_over_lww": replay_s / lww_s,
            "one_key_over_replay": one_key_s / replay_s,
            "tepa_update_over_lww": live_s / live_lww_s,
            "tepa_query_over_dict_get": recall_s / get_s,
            "append_scan_over_tepa_query": statistics.median(scans) * _QUERIES / recall_s,
            "rank_over_import": rank_s / import_s,
            "growth_of_facts": fact_growth,
        },
        "encode_s": encode_s,
        "import_s": import_s,
        "import_rows": rows,
        "explain_s_at": explain_s_at,
        "rank_s": rank_s,
        "surface_s": surface_s,
        "sliders_s": sliders_s,
    }
    facts = [
        Fact("a replayed event costs at most {limit:g} of a plain dict assignment", replay_s / lww_s, REPLAY_OVER_LWW),
        Fact("an event costs no more when all are on one key", one_key_s / replay_s, 1.0),
        Fact("ranking the archive of a log costs at most {limit:g} of its import", rank_s / import_s, RANK_OVER_IMPORT),
        Fact("ten times the facts cost at most {limit:g} times as much per fact to read", fact_growth, GROWTH),
        Fact("a surface of 961 settings takes at most {limit:g} s", surface_s, SURFACE_S),
        Fact("seven sliders' sweeps take at most {limit:g} s", sliders_s, SLIDERS_S),
    ]
    judged_size = min(EXPLAINED, updates)
    if str(judged_size) in explain_s_at:
        sentence = f"explaining a value of one key with {judged_size:,} items takes at most {{limit:g}} s"
        facts.append(Fact(sentence, explain_s_at[str(judged_size)], EXPLAIN_S))
    for few, many in pairwise(sizes):
        growth = explain_s_at[str(many)] / many / (explain_s_at[str(few)] / few)
        numbers["ratios"][f"explain_growth_to_{many}_items"] = growth
        sentence = f"explaining {many:,} items on one key costs at most {{limit:g}} times as much per item as {few:,}"
        facts.append(Fact(sentence, growth, GROWTH))
    for n_keys_text, by_events in replay_ns_at.items():
        fewer, more = by_events[str(tenth)], by_events[str(updates)]
        dearer = f"ten times the events on {int(n_keys_text):,} keys cost at most {{limit:g}} times as much per event"
        facts.append(Fact(dearer, more / fewer, GROWTH))
        numbers["ratios"][f"growth_on_{n_keys_text}_keys"] = more / fewer
    return numbers, tuple(facts)


def _append_scan(keys: Sequence[str], values: Sequence[str], asked: str) -> str:
    """Answer from a memory that only appends: the most frequent value among all items of the key."""
    found = [value for key, value in zip(keys, values, strict=True) if key == asked]
    return statistics.mode(found)
