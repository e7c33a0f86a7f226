"""What each baseline follows, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tepa_core.lifecycle import Thresholds
from tepa_core.methods import (
    METHODS,
    Experience,
    Method,
    Recall,
    Setting,
    SupportTrials,
    ToldOfBoundaries,
    thresholds_of,
)
from tepa_core.methods.base import NOTHING
from tepa_core.methods.lexical import closeness
from tepa_core.streams.stream import TRIALS_DRAWN

CSV, JSON, TSV = 0, 1, 2
KEYS = ("read csv", "read json", "read tsv")
STORES = [
    "append_only",
    "temporal_recency",
    "semantic_retrieval",
    "sliding_window",
    "reactive_forgetting",
    "last_write_wins",
    "conflict_aware_recency",
    "oracle_reset",
]


def make(method: str, *, n_values: int = 2, asserted: bool = False, fallback: str = "candidate") -> Method:
    trials = SupportTrials(np.ones((100, TRIALS_DRAWN, n_values), np.bool_))
    return METHODS[method].make(Setting(KEYS, n_values, asserted, Thresholds(), fallback, trials))


def succeed(method: Method, t: int, value: int, key: int = CSV) -> None:
    method.learn(Experience(t, key, value, True, True))


def fail(method: Method, t: int, value: int, key: int = CSV) -> None:
    method.learn(Experience(t, key, value, False, False))


def after(method: str, values: Sequence[int]) -> Method:
    """A method that has seen these values succeed on csv at tasks 0, 1, 2, ..."""
    memory = make(method)
    for t, value in enumerate(values):
        succeed(memory, t, value)
    return memory


def test_no_memory_keeps_nothing() -> None:
    memory = after("no_memory", [0, 0, 0])
    assert memory.recall(3, CSV) == NOTHING == Recall(None, False)
    assert len(memory) == 0


@pytest.mark.parametrize("method", STORES)
def test_stores_keep_successes_only(method: str) -> None:
    memory = make(method)
    fail(memory, 0, 1)
    assert (memory.recall(1, CSV), len(memory)) == (NOTHING, 0)
    succeed(memory, 1, 1)
    assert (memory.recall(2, CSV), len(memory)) == (Recall(1, True), 1)
    fail(memory, 2, 1)
    # A stale value stays until a new one succeeds.
    assert (memory.recall(3, CSV), len(memory)) == (Recall(1, True), 1)


@pytest.mark.parametrize("method", [*STORES, "win_stay_lose_shift"])
def test_stores_keep_every_asserted_value_whatever_the_task_earned(method: str) -> None:
    memory = make(method, asserted=True)
    memory.learn(Experience(0, CSV, 1, True, False))
    assert (memory.recall(1, CSV), len(memory)) == (Recall(1, True), 1)


@pytest.mark.parametrize("method", ["append_only", "temporal_recency", "sliding_window", "last_write_wins"])
def test_keys_are_apart(method: str) -> None:
    memory = after(method, [0])
    assert memory.recall(1, JSON) == NOTHING
    succeed(memory, 1, 1, JSON)
    assert memory.recall(2, CSV) == Recall(0, True)
    assert memory.recall(2, JSON) == Recall(1, True)


@pytest.mark.parametrize("method", ["append_only", "reactive_forgetting", "oracle_reset", "sliding_window"])
@pytest.mark.parametrize(
    ("values", "followed"),
    [([0], 0), ([0, 0, 1], 0), ([0, 1, 1], 1), ([0, 1], 1), ([1, 0], 0), ([0, 1, 1, 0], 0), ([1, 0, 0, 1], 1)],
)
def test_the_most_frequent_value_on_a_tie_the_newer(method: str, values: list[int], followed: int) -> None:
    assert after(method, values).recall(len(values), CSV) == Recall(followed, True)


def test_append_only_never_drops() -> None:
    memory = after("append_only", [0] * 41 + [1] * 40)
    assert len(memory) == 81
    assert memory.recall(1000, CSV) == Recall(0, True)


@pytest.mark.parametrize("method", ["last_write_wins", "conflict_aware_recency"])
def test_the_last_stored_value(method: str) -> None:
    assert after(method, [0, 0, 0, 1]).recall(4, CSV) == Recall(1, True)


def test_last_write_wins_holds_one_value_per_key() -> None:
    memory = after("last_write_wins", [0, 1, 0])
    succeed(memory, 3, 1, JSON)
    assert len(memory) == 2


def test_temporal_recency_halves_an_item_in_twenty_tasks() -> None:
    memory = make("temporal_recency")
    # Two items of age 20 weigh 0.5 each; one of age 0 weighs 1: a tie, and the newer wins.
    succeed(memory, 0, 0)
    succeed(memory, 0, 0)
    succeed(memory, 20, 1)
    assert memory.recall(20, CSV) == Recall(1, True)
    # A third old item makes 1.5 against 1, and all ages grow alike.
    late = make("temporal_recency")
    for value in (0, 0, 0):
        succeed(late, 0, value)
    succeed(late, 20, 1)
    assert late.recall(20, CSV) == Recall(0, True)
    assert late.recall(60, CSV) == Recall(0, True)
    # Two more: 0.5 ** 1.05 * 3 = 1.449 against 0.5 ** 0.05 + 1 = 1.966.
    succeed(late, 21, 1)
    assert 3 * 0.5 ** (21 / 20) < 1 + 0.5 ** (1 / 20)
    assert late.recall(21, CSV) == Recall(1, True)


def test_temporal_recency_where_the_half_life_decides() -> None:
    # Five items at task 0 against one at t: 5 * 0.5 ** (t / 20) = 1 at t = 20 * log2(5) = 46.4.
    assert math.floor(20 * math.log2(5)) == 46
    for t, followed in ((46, 0), (47, 1)):
        memory = make("temporal_recency")
        for _ in range(5):
            succeed(memory, 0, 0)
        succeed(memory, t, 1)
        assert memory.recall(t, CSV) == Recall(followed, True)


def test_sliding_window_reaches_forty_tasks_back() -> None:
    memory = make("sliding_window")
    succeed(memory, 0, 0)
    assert memory.recall(40, CSV) == Recall(0, True)
    assert memory.recall(41, CSV) == NOTHING
    # Items that the next task cannot reach are no longer held.
    succeed(memory, 39, 1, JSON)
    assert len(memory) == 2
    succeed(memory, 40, 1, JSON)
    assert len(memory) == 2
    assert memory.recall(41, CSV) == NOTHING


def test_sliding_window_majority_is_of_the_window() -> None:
    memory = after("sliding_window", [0] * 10 + [1] * 3)
    assert memory.recall(13, CSV) == Recall(0, True)
    # At task 48 the window begins at task 8: two items of value 0 against three of value 1.
    assert memory.recall(48, CSV) == Recall(1, True)


def test_reactive_forgetting_clears_after_two_failures_in_a_row() -> None:
    memory = after("reactive_forgetting", [0, 0, 0])
    fail(memory, 3, 0)
    succeed(memory, 4, 1, JSON)
    fail(memory, 5, 0)
    # Never two in a row so far.
    assert len(memory) == 4
    fail(memory, 6, 0, JSON)
    # Two in a row, on whatever keys, clear all keys.
    assert len(memory) == 0
    assert memory.recall(7, CSV) == NOTHING
    assert memory.recall(7, JSON) == NOTHING
    # The count starts anew: one more failure clears nothing.
    succeed(memory, 7, 1)
    fail(memory, 8, 1)
    assert len(memory) == 1
    fail(memory, 9, 1)
    assert len(memory) == 0


def test_evidence_without_a_task_is_no_failure() -> None:
    memory = make("reactive_forgetting", asserted=True)
    memory.learn(Experience(0, CSV, 0, True, False))
    memory.learn(Experience(1, CSV, 0, True, None))
    assert len(memory) == 2
    memory.learn(Experience(2, CSV, 0, True, False))
    assert len(memory) == 0


def test_oracle_reset_clears_at_a_boundary() -> None:
    memory = after("oracle_reset", [0, 0, 0])
    assert isinstance(memory, ToldOfBoundaries)
    memory.boundary()
    assert (memory.recall(3, CSV), len(memory)) == (NOTHING, 0)
    succeed(memory, 3, 1)
    assert memory.recall(4, CSV) == Recall(1, True)


def test_only_the_oracle_is_told() -> None:
    assert {id for id in METHODS if isinstance(make(id), ToldOfBoundaries)} == {"oracle_reset"}
    assert {id for id, entry in METHODS.items() if entry.oracle} == {"oracle_reset"}


def test_closeness_is_highest_for_the_key_itself() -> None:
    scores = closeness(KEYS)
    for key in range(len(KEYS)):
        assert max(range(len(KEYS)), key=lambda other: scores[key][other]) == key
        # "read" is in every text, so every key is a little close to every other, and all alike.
        others = {round(scores[key][other], 9) for other in range(len(KEYS)) if other != key}
        assert len(others) == 1
        assert 0 < others.pop() < scores[key][key]


def test_semantic_retrieval_takes_the_five_closest() -> None:
    memory = make("semantic_retrieval")
    for t, value in enumerate([0, 0, 0, 1, 1, 1]):
        succeed(memory, t, value)
    # Six items are equally close, so the five stored first stand: 0 0 0 1 1, whatever comes later.
    assert memory.recall(6, CSV) == Recall(0, True)
    for t in range(6, 20):
        succeed(memory, t, 1)
    assert memory.recall(20, CSV) == Recall(0, True)


def test_semantic_retrieval_fills_up_with_other_keys() -> None:
    memory = make("semantic_retrieval")
    succeed(memory, 0, 0)
    succeed(memory, 1, 0)
    for t in range(2, 6):
        succeed(memory, t, 1, JSON)
    # Two items of csv, then three of json: 0 0 1 1 1. It ranks by words and knows no conflict keys.
    assert memory.recall(6, CSV) == Recall(1, True)
    succeed(memory, 6, 0)
    # Three items of csv and two of json.
    assert memory.recall(7, CSV) == Recall(0, True)


def test_conflict_aware_recency_collapses_what_it_retrieved() -> None:
    memory = after("conflict_aware_recency", [1, 0, 0, 0, 0])
    succeed(memory, 5, 1, JSON)
    # Its own items are closest, and the newest of them is followed, whatever other keys say.
    assert memory.recall(6, CSV) == Recall(0, True)
    assert memory.recall(6, JSON) == Recall(1, True)
    # No persistent state: all six items are still there.
    assert len(memory) == 6


def test_conflict_aware_recency_without_an_item_of_the_key_takes_the_closest() -> None:
    memory = make("conflict_aware_recency")
    succeed(memory, 0, 0)
    succeed(memory, 1, 1)
    # "read" alone is shared: the newest item of csv is followed for tsv.
    assert memory.recall(2, TSV) == Recall(1, True)


@pytest.mark.parametrize(("n_values", "shifted"), [(2, 0), (3, 2)])
def test_win_stay_lose_shift(n_values: int, shifted: int) -> None:
    memory = make("win_stay_lose_shift", n_values=n_values)
    assert memory.recall(0, CSV) == NOTHING
    succeed(memory, 0, 1)
    assert memory.recall(1, CSV) == Recall(1, True)
    succeed(memory, 1, 1)
    assert memory.recall(2, CSV) == Recall(1, True)
    # One failure is enough, and a failure before any success counts too.
    fail(memory, 2, 1)
    assert memory.recall(3, CSV) == Recall(shifted, True)
    fail(memory, 3, 0, JSON)
    assert memory.recall(4, JSON) == Recall(1, True)
    assert len(memory) == 2


def test_tepa_follows_the_active_value_alone() -> None:
    memory = make("tepa", fallback="base_policy")
    for t in range(2):
        succeed(memory, t, 0)
    assert (memory.recall(2, CSV), len(memory)) == (NOTHING, 0)
    succeed(memory, 2, 0)
    assert (memory.recall(3, CSV), len(memory)) == (Recall(0, True), 1)
    fail(memory, 3, 0)
    fail(memory, 4, 0)
    # Two outcomes are no window of three, and 4/7 is above 0.3.
    assert memory.recall(5, CSV) == Recall(0, True)
    fail(memory, 5, 0)
    assert (memory.recall(6, CSV), len(memory)) == (NOTHING, 0)


def test_tepa_tries_the_best_candidate_outside_the_prompt() -> None:
    memory = make("tepa")
    assert memory.recall(0, CSV) == NOTHING
    succeed(memory, 0, 0)
    # (1 + 1) / (1 + 2) = 0.667 against 0.5 for the value never seen.
    assert memory.recall(1, CSV) == Recall(0, False)
    fail(memory, 1, 0)
    # 2/4 against 0.5: a tie is left to the base policy.
    assert memory.recall(2, CSV) == NOTHING
    fail(memory, 2, 0)
    # 2/5 against 0.5: the value never seen is tried.
    assert memory.recall(3, CSV) == Recall(1, False)


def test_tepa_norev_follows_the_best_supported() -> None:
    memory = make("tepa_norev")
    for t, value in enumerate([0] * 5 + [1] * 3):
        succeed(memory, t, value)
    # Both are Active, with 5 and 3 supports.
    assert (memory.recall(8, CSV), len(memory)) == (Recall(0, True), 2)
    for t in range(8, 30):
        fail(memory, t, 0)
    assert (memory.recall(30, CSV), len(memory)) == (Recall(0, True), 2)
    for t in range(30, 33):
        succeed(memory, t, 1)
    assert memory.recall(33, CSV) == Recall(1, True)


def test_thresholds_under_which_precedents_live() -> None:
    default = Thresholds()
    assert thresholds_of("tepa", default) == default
    assert thresholds_of("tepa_norev", default) == Thresholds(revokes=False)
    # A log is no method; its precedents live under the thresholds given.
    assert thresholds_of("log", default) == default
    assert thresholds_of("append_only", default) == default


def test_fallback_is_checked() -> None:
    with pytest.raises(ValueError, match=r"^fallback must be candidate or base_policy, not 'coin'$"):
        Setting(KEYS, 2, False, Thresholds(), "coin")


def test_the_papers_methods_are_there_under_their_ids() -> None:
    assert {
        "no_memory",
        "append_only",
        "temporal_recency",
        "semantic_retrieval",
        "sliding_window",
        "reactive_forgetting",
        "last_write_wins",
        "conflict_aware_recency",
        "oracle_reset",
        "tepa",
        "tepa_norev",
    } <= set(METHODS)
    for id, entry in METHODS.items():
        assert entry.id == id
        assert entry.memory_operation
        assert entry.lifecycle or not entry.revokes
