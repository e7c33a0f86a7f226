from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.lifecycle import DEPRECATED, Course, Ledger, State, Thresholds, Verdict, encode, replay, rule, trace_key
from tepa_core.lifecycle.precedent import TRANSITION
from tests.lifecycle.reference_rule import Item, remember

THRESHOLDS = st.sampled_from(
    [
        Thresholds(),
        Thresholds(theta_prop=1, n_rec=1),
        Thresholds(revokes=False),
        Thresholds(theta_prop=2, theta_rev=0.6, n_min=2, theta_rec=0.0, n_rec=5, theta_pro=0.5),
    ]
)
one_key = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([True, True, False]), st.integers(1, 5)), min_size=1, max_size=12
).map(lambda parts: [Item("seat", value, supports) for value, supports, n in parts for _ in range(n)])


def as_frame(items: list[Item], subject: str = "u1") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "seq": range(len(items)),
            "subject": subject,
            "key_id": [item.key for item in items],
            "value_id": [item.value for item in items],
            "supports": [item.supports for item in items],
            "event_time": range(len(items)),
        }
    )


def at(course: Course, step: int) -> tuple[str, int, int, int]:
    return course.state[step], course.support[step], course.conflict[step], course.lives[step]


@given(one_key, THRESHOLDS)
def test_trace_equals_ledger_step_by_step(items: list[Item], thresholds: Thresholds) -> None:
    frame = as_frame(items)
    log, labels = encode(frame)
    trace, final = trace_key(log, thresholds)
    courses = [trace.course(v) for v in range(len(labels))]
    ledger = Ledger(thresholds)
    for i, item in enumerate(items):
        ledger.observe(item.key, item.value, item.supports)
        seen = {p.value: p for p in ledger.precedents()}
        for v, value in enumerate(labels["value_id"]):
            p = seen.get(value)
            if p is None:
                assert at(courses[v], i)[:3] == ("candidate", 0, 0)
                continue
            judged = (p.support, p.conflict) if p.state == State.ACTIVE else (p.trial_support, p.trial_conflict)
            assert at(courses[v], i) == (p.label, *judged, p.lives)
    whole = replay(log, thresholds)
    assert trace.order.tolist() == list(range(len(items)))
    assert whole.transitions.tolist() == final.transitions.tolist()
    np.testing.assert_array_equal(whole.precedents, final.precedents)
    np.testing.assert_array_equal(whole.rings, final.rings)


many_values = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([True, True, True, False])), min_size=1, max_size=150
)
ANY_THRESHOLDS = st.builds(
    Thresholds,
    theta_prop=st.integers(1, 4),
    theta_rev=st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.9, 1.0]),
    n_min=st.integers(1, 8),
    theta_rec=st.sampled_from([0.0, 0.34, 0.7, 1.0]),
    n_rec=st.integers(1, 6),
    theta_pro=st.sampled_from([0.0, 0.5, 0.6, 0.9]),
    revokes=st.sampled_from([True, True, True, False]),
)


@given(many_values, ANY_THRESHOLDS)
def test_a_trace_of_many_values_is_what_the_eager_rule_counts(
    parts: list[tuple[int, bool]], thresholds: Thresholds
) -> None:
    items = [Item("k", f"v{value % 7 if value < 20 else value}", supports) for value, supports in parts]
    log, labels = encode(as_frame(items))
    trace, _ = trace_key(log, thresholds)
    courses = {value: trace.course(v) for v, value in enumerate(labels["value_id"])}
    for step in range(len(items)):
        known = remember(items[: step + 1], thresholds).keys["k"].values
        for value, course in courses.items():
            if value not in known:
                assert at(course, step) == ("candidate", 0, 0, 0)
                continue
            one = known[value]
            active = one.state == "active"
            judged = (one.support, one.conflict) if active else one.tally
            shown = DEPRECATED if active and not all(one.window) else one.state
            assert at(course, step) == (shown, *judged, one.lives), (value, step)


decided = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.sampled_from(list(Verdict))), max_size=6)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([True, True, False])), min_size=1, max_size=60),
    decided,
    ANY_THRESHOLDS,
)
def test_a_trace_with_decisions_is_the_rule_read_after_every_step(
    parts: list[tuple[int, bool]], decisions: list[tuple[int, int, Verdict]], thresholds: Thresholds
) -> None:
    """Every value's tally is read by the rule itself after every step, decisions among them."""
    frame = as_frame([Item("k", f"v{value}", supports) for value, supports in parts]).assign(verdict=0)
    heard = set(frame["value_id"])
    more = [
        {"seq": -1 - n, "subject": "u1", "key_id": "k", "value_id": f"v{value}", "supports": False, "event_time": time}
        | {"verdict": int(verdict)}
        for n, (time, value, verdict) in enumerate(decisions)
        if f"v{value}" in heard
    ]
    frame = pd.concat([frame, pd.DataFrame(more, columns=frame.columns)], ignore_index=True)
    frame = frame.astype({"supports": bool, "seq": int, "event_time": int, "verdict": int, "key_id": object})
    log, labels = encode(frame.assign(key_id="k"))
    trace, final = trace_key(log, thresholds)
    courses = [trace.course(v) for v in range(len(labels))]
    precedents, keys, ring = rule.new_key(len(labels), thresholds.n_rec)
    out, th = np.zeros(len(labels) + 2, TRANSITION), thresholds.parameters()
    first = {}
    for step, row in enumerate(trace.order):
        v, verdict = log.precedent[row], log.verdict[row]
        if verdict:
            rule.decide(precedents, keys[0], ring, v, verdict, th, 0, 0, 0, 0, out, 0)
        else:
            rule.observe_key(precedents, keys[0], ring, v, log.supports[row], th, 0, 0, 0, 0, out, 0)
            first.setdefault(v, step)
        for value, p in enumerate(precedents):
            active = p["state"] == State.ACTIVE
            judged = (p["support"], p["conflict"]) if active else rule.tally(p, keys[0], th)
            shown = State(p["state"]).label
            if active and int(p["window"]).bit_count() < p["window_len"]:
                shown = DEPRECATED
            assert at(courses[value], step) == (shown, *judged, p["lives"])
    np.testing.assert_array_equal(final.precedents["state"], precedents["state"])
    stretches = trace.stretches(np.array([first[v] for v in range(len(labels))]))
    for value, course in enumerate(courses):
        shown = [(course.state[step], course.lives[step]) for step in range(first[value], len(trace.order))]
        changed = [step for step in range(len(shown)) if step == 0 or shown[step] != shown[step - 1]]
        own = stretches[stretches["value"] == value]
        assert own["step"].tolist() == [first[value] + step for step in changed]
        assert own["lives"].tolist() == [shown[step][1] for step in changed]
        assert course.state[own["step"]].tolist() == [shown[step][0] for step in changed]


@pytest.mark.parametrize("theta_rev", [0.0, 0.001, 0.3])
@pytest.mark.parametrize("values", [2, 1000, 20_000])
def test_what_a_trace_keeps_grows_with_the_items_alone(values: int, theta_rev: float) -> None:
    """Rows kept, not seconds: a support of a value is a conflict for every other one, and none of them writes it."""
    n = 20_000
    items = pd.DataFrame({"seq": range(n), "subject": "", "key_id": "k", "supports": True, "event_time": range(n)})
    value = np.random.default_rng(3).integers(0, values, n)
    log, _ = encode(items.assign(value_id=[f"v{v}" for v in value]))
    trace, _ = trace_key(log, Thresholds(theta_rev=theta_rev, theta_prop=50, n_min=5))
    assert len(trace.changes) <= 3 * n


def test_deprecated_shows_from_the_first_conflict_until_the_window_is_clean() -> None:
    items = [Item("seat", "a")] * 4 + [Item("seat", "a", False)] + [Item("seat", "a")] * 4
    log, _ = encode(as_frame(items))
    trace, _ = trace_key(log, Thresholds())
    # Proposed and promoted at the third support; the conflict leaves a window of three after three supports.
    assert trace.course(0).state.tolist() == [
        "candidate",
        "candidate",
        "active",
        "active",
        DEPRECATED,
        DEPRECATED,
        DEPRECATED,
        "active",
        "active",
    ]


def test_order_is_time_then_source() -> None:
    items = [Item("seat", v) for v in "abcd"]
    frame = as_frame(items).assign(event_time=[5, 3, 5, 3], seq=[1, 3, 0, 2])
    log, _ = encode(frame)
    trace, _ = trace_key(log, Thresholds())
    assert trace.order.tolist() == [3, 1, 2, 0]


def test_a_trace_follows_one_key() -> None:
    log, _ = encode(as_frame([Item("seat", "a"), Item("meal", "a")]))
    with pytest.raises(ValueError, match=r"^a trace follows one key; this log has 2$"):
        trace_key(log, Thresholds())


def test_subjects_separate_keys() -> None:
    frame = pd.concat([as_frame([Item("seat", "a")] * 3, "u1"), as_frame([Item("seat", "b")] * 3, "u2")]).assign(
        seq=range(6), event_time=range(6)
    )
    log, labels = encode(frame)
    assert len(log.key_start) - 1 == 2
    assert labels[["subject", "key_id", "value_id"]].to_numpy().tolist() == [["u1", "seat", "a"], ["u2", "seat", "b"]]
    result = replay(log, Thresholds())
    assert result.precedents["state"].tolist() == [State.ACTIVE, State.ACTIVE]
    assert result.precedents["conflict"].tolist() == [0, 0]


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("column", ["subject", "key_id"])
def test_missing_is_a_name_of_its_own(column: str, gap: object) -> None:
    frame = as_frame([Item("seat", "a")] * 4).astype({column: object})
    frame[column] = pd.Series([gap, "", gap, "seat"], dtype=object)
    log, labels = encode(frame)
    # Missing twice is one key; the empty text is another.
    assert len(log.key_start) - 1 == 3
    assert log.precedent[0] == log.precedent[2]
    assert len(set(log.precedent.tolist())) == 3
    assert len(labels) == 3


def test_values_are_text_and_never_merge() -> None:
    texts = ["007", "7", "7.0", "true", "True", "NA", "1e5", "100000", ""]
    _, labels = encode(as_frame([Item("code", text) for text in texts]))
    assert sorted(labels["value_id"]) == sorted(texts)


def test_pairs_of_texts_never_collide() -> None:
    """Subject and key are told apart whatever their texts are: ("a", "bc") is not ("ab", "c")."""
    frame = as_frame([Item("x", "v")] * 4).assign(subject=["a", "ab", "a", "ab"], key_id=["bc", "c", "c", "bc"])
    log, _ = encode(frame)
    assert len(log.key_start) - 1 == 4


def test_first_is_the_earliest_row_by_source_order() -> None:
    frame = as_frame([Item("seat", v) for v in "abab"]).assign(seq=[3, 1, 0, 2])
    _, labels = encode(frame)
    first = dict(zip(labels["value_id"], labels["first"], strict=True))
    assert first == {"a": 2, "b": 1}


def test_times_in_utc_become_microseconds() -> None:
    frame = as_frame([Item("seat", "a")] * 2).assign(
        event_time=pd.to_datetime(["1970-01-01T00:00:01Z", "2024-07-20T17:00:00Z"], utc=True)
    )
    log, _ = encode(frame)
    assert log.time.tolist() == [1_000_000, 1_721_494_800_000_000]


def test_another_clock() -> None:
    frame = as_frame([Item("seat", v) for v in "ab"]).assign(arrived=[9, 4])
    log, _ = encode(frame, time="arrived")
    assert log.time.tolist() == [9, 4]


def test_no_evidence() -> None:
    log, labels = encode(as_frame([]).astype({"event_time": int, "seq": int, "supports": bool}))
    result = replay(log, Thresholds())
    assert (len(labels), len(result.precedents), len(result.transitions)) == (0, 0, 0)
