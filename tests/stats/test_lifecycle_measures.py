from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tepa_core.stats.lifecycle_measures import (
    false_revocations,
    recovery_times,
    revocation_delays,
    stale_exposure_rate,
)

A, B = 0, 1
# Key 0 is A, becomes B at task 4 and A again at task 8. Key 1 is always A. Key 2 is unknown until task 6.
TRUTH = np.array([[A, A, -1]] * 4 + [[B, A, -1]] * 2 + [[B, A, B]] * 2 + [[A, A, B]] * 4)
# Key of each task.
KEY = np.array([0, 1, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0])


# False revocations


def test_false_revocation_is_of_the_value_right_at_the_time() -> None:
    #          right value   stale value  before unknown  right from 6 on  wrong
    at, key = [3, 5, 5, 7, 7], [0, 0, 2, 2, 2]
    value = [A, A, B, B, A]
    judged = false_revocations(at, value, key, TRUTH)
    assert judged.dtype == np.int8
    np.testing.assert_array_equal(judged, [1, 0, -1, 1, 0])


def test_false_revocation_at_the_first_task_of_a_change_is_correct() -> None:
    np.testing.assert_array_equal(false_revocations([3, 4], [A, A], [0, 0], TRUTH), [1, 0])


def test_no_revocations_no_judgements() -> None:
    assert false_revocations([], [], [], TRUTH).shape == (0,)


def test_false_revocations_refuses_what_lies_outside_the_run() -> None:
    with pytest.raises(ValueError, match="revoked_at must lie between 0 and 11"):
        false_revocations([12], [A], [0], TRUTH)
    with pytest.raises(ValueError, match="revoked_key must lie between 0 and 2"):
        false_revocations([1], [A], [-1], TRUTH)
    with pytest.raises(ValueError, match="a task, a value and a key"):
        false_revocations([1, 2], [A], [0], TRUTH)
    with pytest.raises(ValueError, match="whole numbers, got float64"):
        false_revocations([1.5], [A], [0], TRUTH)
    with pytest.raises(ValueError, match="one row per task"):
        false_revocations([1], [A], [0], TRUTH[:, 0])


# Revocation delays


def test_delay_in_tasks_and_in_uses() -> None:
    # A is revoked by the second use of its key after the change at 4 (tasks 5 and 6), three tasks in.
    # B is revoked by the first use after the change at 8, which is task 8 itself.
    delays = revocation_delays(TRUTH, KEY, [(2, 0, A), (6, 0, B)], [(6, 0, A), (8, 0, B)])
    np.testing.assert_array_equal(delays.changed_at, [4, 8])
    np.testing.assert_array_equal(delays.key, [0, 0])
    np.testing.assert_array_equal(delays.stale_value, [A, B])
    np.testing.assert_array_equal(delays.was_active, [True, True])
    np.testing.assert_array_equal(delays.tasks, [3.0, 1.0])
    np.testing.assert_array_equal(delays.uses, [2.0, 1.0])


def test_two_misses_then_the_archive_takes_the_stale_value() -> None:
    # The paper's reversal: the key changes at 80, tasks 80 and 81 miss, the recent rule revokes after 81.
    truth = np.repeat([A, B], 80)[:, None]
    delays = revocation_delays(truth, np.zeros(160, dtype=int), [(3, 0, A)], [(81, 0, A)])
    np.testing.assert_array_equal(delays.tasks, [2.0])
    np.testing.assert_array_equal(delays.uses, [2.0])


@pytest.mark.parametrize("too_late", [8, 9])
def test_delay_is_unknown_when_never_revoked(too_late: int) -> None:
    # A outlives the time B is right: from task 8 on A is right again, so its revocation belongs to no change.
    delays = revocation_delays(TRUTH, KEY, [(2, 0, A), (6, 0, B)], [(too_late, 0, A)])
    np.testing.assert_array_equal(delays.was_active, [True, True])
    np.testing.assert_array_equal(delays.tasks, [np.nan, np.nan])
    np.testing.assert_array_equal(delays.uses, [np.nan, np.nan])


def test_delay_is_unknown_when_the_value_was_not_active() -> None:
    # A was revoked before its change and becomes active after it; B only ever became active after its change.
    delays = revocation_delays(TRUTH, KEY, [(1, 0, A), (4, 0, A), (8, 0, B)], [(2, 0, A), (6, 0, A), (9, 0, B)])
    np.testing.assert_array_equal(delays.was_active, [False, False])
    np.testing.assert_array_equal(delays.tasks, [np.nan, np.nan])


def test_delay_follows_the_life_that_spans_the_change() -> None:
    # A has a life 0-1 and another from 2 on; after the change it is revoked at 5, returns, and is revoked at 7.
    delays = revocation_delays(TRUTH[:8], KEY[:8], [(0, 0, A), (2, 0, A), (6, 0, A)], [(1, 0, A), (5, 0, A), (7, 0, A)])
    np.testing.assert_array_equal(delays.tasks, [2.0])
    np.testing.assert_array_equal(delays.uses, [1.0])


def test_delay_ignores_other_keys_and_values() -> None:
    delays = revocation_delays(TRUTH, KEY, [(2, 0, A), (1, 1, A)], [(4, 1, A), (5, 0, B), (7, 0, A)])
    np.testing.assert_array_equal(delays.tasks, [4.0, np.nan])
    only_elsewhere = revocation_delays(TRUTH, KEY, [(1, 1, A), (1, 0, B)], [(7, 0, A)])
    np.testing.assert_array_equal(only_elsewhere.was_active, [False, True])


def test_delay_of_a_memory_older_than_the_run() -> None:
    delays = revocation_delays(TRUTH[:8], KEY[:8], [(-1, 0, A)], [(5, 0, A)])
    np.testing.assert_array_equal(delays.tasks, [2.0])


def test_unknown_truth_is_no_change() -> None:
    # A, unknown, A holds no change; A, unknown, B changes where B is first known.
    gap = np.array([A, -1, A, -1, B])[:, None]
    delays = revocation_delays(gap, np.zeros(5, dtype=int), [(0, 0, A)], [(4, 0, A)])
    np.testing.assert_array_equal(delays.changed_at, [4])
    np.testing.assert_array_equal(delays.tasks, [1.0])


def test_changes_of_several_keys_come_in_order_of_time() -> None:
    truth = np.array([[A, A], [A, A], [A, B], [B, B], [B, A], [A, B]])
    delays = revocation_delays(truth, np.zeros(6, dtype=int), [], [])
    np.testing.assert_array_equal(delays.changed_at, [2, 3, 4, 5, 5])
    np.testing.assert_array_equal(delays.key, [1, 0, 1, 0, 1])
    np.testing.assert_array_equal(delays.stale_value, [A, A, B, B, A])
    assert not delays.was_active.any()


def test_no_change_no_delay() -> None:
    delays = revocation_delays(TRUTH[:4], KEY[:4], [(0, 0, A)], [(2, 0, A)])
    assert delays.tasks.shape == delays.uses.shape == delays.changed_at.shape == (0,)
    nothing_known = revocation_delays(np.full((4, 1), -1), KEY[:4], [], [])
    assert nothing_known.tasks.shape == (0,)


def test_revocation_delays_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match="Every task needs a key, got 3 keys for 12 tasks"):
        revocation_delays(TRUTH, KEY[:3], [], [])
    with pytest.raises(ValueError, match="activations must have one row"):
        revocation_delays(TRUTH, KEY, [2, 0, A], [])
    with pytest.raises(ValueError, match="revocations must have one row"):
        revocation_delays(TRUTH, KEY, [], [(2, 0)])


@given(
    truth=hnp.arrays(np.int64, st.tuples(st.integers(1, 15), st.integers(1, 3)), elements=st.integers(-1, 2)),
    data=st.data(),
)
def test_delays_stay_within_their_phase_and_ignore_event_order(truth: np.ndarray, data: st.DataObject) -> None:
    tasks, keys = truth.shape
    event = st.tuples(st.integers(-1, tasks - 1), st.integers(0, keys - 1), st.integers(0, 2))
    key = np.array(data.draw(st.lists(st.integers(0, keys - 1), min_size=tasks, max_size=tasks)))
    up, down = data.draw(st.lists(event, max_size=12)), data.draw(st.lists(event, max_size=12))
    delays = revocation_delays(truth, key, up, down)
    reversed_events = revocation_delays(truth, key, up[::-1], down[::-1])
    np.testing.assert_array_equal(delays.tasks, reversed_events.tasks)
    np.testing.assert_array_equal(np.isnan(delays.tasks), np.isnan(delays.uses))
    found = ~np.isnan(delays.tasks)
    assert delays.was_active[found].all()
    assert (delays.tasks[found] >= 1).all()
    assert (delays.uses[found] <= delays.tasks[found]).all()
    assert (delays.changed_at[found] + delays.tasks[found] <= tasks).all()


# Stale exposure


def test_stale_exposure_counts_known_tasks_only() -> None:
    # Tasks 0-3 right or nothing; 4 right; 5 and 6 stale A; 7 of key 2 is B but A is shown; 8-11 one stale B.
    retrieved = [A, A, -1, A, A, A, A, A, B, A, A, -1]
    assert stale_exposure_rate(retrieved, KEY, TRUTH) == 4 / 12
    unknown = TRUTH.copy()
    unknown[:6] = -1
    assert stale_exposure_rate(retrieved, KEY, unknown) == 3 / 6


def test_stale_exposure_without_retrieval_is_zero_and_without_truth_is_unknown() -> None:
    assert stale_exposure_rate(np.full(12, -1), KEY, TRUTH) == 0.0
    assert np.isnan(stale_exposure_rate(np.zeros(12, dtype=int), KEY, np.full((12, 3), -1)))
    assert np.isnan(stale_exposure_rate([], [], np.empty((0, 3), dtype=int)))


def test_stale_exposure_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match="got 1 values and 12 keys for 12 tasks"):
        stale_exposure_rate([A], KEY, TRUTH)
    with pytest.raises(ValueError, match="key must lie between 0 and 2"):
        stale_exposure_rate(np.zeros(12, dtype=int), np.full(12, -1), TRUTH)


@given(truth=hnp.arrays(np.int64, st.tuples(st.integers(1, 15), st.just(1)), elements=st.integers(0, 2)))
def test_the_oracle_is_never_exposed(truth: np.ndarray) -> None:
    key = np.zeros(truth.shape[0], dtype=int)
    assert stale_exposure_rate(truth[:, 0], key, truth) == 0.0
    assert stale_exposure_rate((truth[:, 0] + 1) % 3, key, truth) == 1.0


# Recovery


def test_recovery_after_two_misses() -> None:
    # Misses at 40 and 41: the ten tasks 41-50 hold one miss, 9 of 10, eleven tasks after the boundary.
    success = np.ones(80)
    success[[40, 41]] = 0
    np.testing.assert_array_equal(recovery_times(success, [40]), [11.0])
    np.testing.assert_array_equal(recovery_times(success, [40], target=1.0), [12.0])
    np.testing.assert_array_equal(recovery_times(success, [40], target=0.8), [10.0])


def test_recovery_takes_no_credit_from_before_the_boundary() -> None:
    np.testing.assert_array_equal(recovery_times(np.ones(40), [0, 20]), [10.0, 10.0])


def test_recovery_must_come_before_the_next_boundary() -> None:
    success = np.array([0] * 12 + [1] * 20)
    np.testing.assert_array_equal(recovery_times(success, [0, 15]), [np.nan, 10.0])
    # The same outcomes as one phase recover once 9 of the last 10 tasks are successes, at task 20.
    np.testing.assert_array_equal(recovery_times(success, [0]), [21.0])


def test_recovery_of_a_phase_shorter_than_the_window_is_unknown() -> None:
    np.testing.assert_array_equal(recovery_times(np.ones(25), [5, 9, 16]), [np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(recovery_times(np.ones(25), [5, 15]), [10.0, 10.0])


def test_no_boundaries_no_recovery() -> None:
    assert recovery_times(np.ones(10), []).shape == (0,)


def test_recovery_times_refuses_what_it_cannot_measure() -> None:
    with pytest.raises(ValueError, match="at least one task, got 0"):
        recovery_times(np.ones(10), [5], window=0)
    with pytest.raises(ValueError, match="must increase"):
        recovery_times(np.ones(10), [5, 5])
    with pytest.raises(ValueError, match="boundaries must lie between 0 and 9"):
        recovery_times(np.ones(10), [10])
    with pytest.raises(ValueError, match="one outcome per task"):
        recovery_times(np.ones((2, 10)), [5])


@given(
    success=hnp.arrays(np.int64, st.integers(10, 40), elements=st.integers(0, 1)),
    needed=st.integers(0, 5),
)
def test_recovery_equals_a_plain_search(success: np.ndarray, needed: int) -> None:
    outcomes = success.tolist()
    expected = next((end for end in range(5, len(outcomes) + 1) if sum(outcomes[end - 5 : end]) >= needed), np.nan)
    np.testing.assert_array_equal(recovery_times(success, [0], window=5, target=needed / 5), [expected])
