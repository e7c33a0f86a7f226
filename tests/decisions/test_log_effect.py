"""What a decision would change on a key of a log, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tepa_core.decisions import LogEffect, Standing, changed_transitions, log_effect, microseconds
from tepa_core.lifecycle import Ledger, Thresholds, Verdict

W, A = "window", "aisle"

#: Items 0-4 window (active at 2), 5-6 aisle (window revoked at 6: 1 0 0), 7 window, 8-10 aisle. The two that revoked
#: window count for aisle, so its third support comes at 8: 3 against 1, posterior 4 / 6, Active.
SAID = [W] * 5 + [A] * 2 + [W] + [A] * 3


def items(said: list[str] = SAID, refuted: tuple[int, ...] = ()) -> pd.DataFrame:
    n = len(said)
    return pd.DataFrame(
        {
            "seq": range(n),
            "t": range(n),
            "subject": "u",
            "key_id": "seat",
            "value_id": said,
            "supports": [i not in refuted for i in range(n)],
        }
    )


def effect(verdict: Verdict, at: int | None = None, said: list[str] = SAID, **more: Any) -> LogEffect:
    return log_effect(items(said), Thresholds(), W, verdict, at, time="t", **more)


def test_reactivation_stands_until_the_rule_contradicts_it() -> None:
    found = effect(Verdict.REACTIVATE)
    assert (found.at, found.end) == (6, 10)
    # A decision restarts no tally: aisle becomes Active at 8 all the same, and takes the place of window.
    assert (found.stands_until, found.stands_for) == (8, 2)
    assert (found.later_supports, found.later_conflicts) == (1, 3)
    assert found.transitions[["side", "value_id", "time", "to_state", "rule"]].values.tolist() == [
        ["after", W, 6, "active", "decided"],
        ["after", W, 8, "revoked", "superseded"],
    ]
    assert found.transitions_changed == 2


def test_reactivated_value_can_fall_by_its_recent_outcomes() -> None:
    rows = items([W] * 10, refuted=(4, 5, 7, 8))
    # Active at 2; window of outcomes 1 0 0 at 5: revoked. Back by decision after 5; then 1 0 0 at 8.
    found = log_effect(rows, Thresholds(), W, Verdict.REACTIVATE, 5, time="t")
    assert (found.stands_until, found.stands_for) == (8, 3)
    assert (found.later_supports, found.later_conflicts) == (2, 2)
    assert found.transitions[["side", "time", "rule"]].values.tolist() == [
        ["after", 5, "decided"],
        ["after", 8, "recent"],
    ]


def test_exposure_and_spans_by_hand() -> None:
    found = effect(Verdict.REACTIVATE)
    shares = found.exposure.set_index("value_id")
    # Of the four steps from 6 to 10 aisle stands for the last two; with the decision window stands for the first two.
    assert shares["before"].to_dict() == {W: 0.0, A: 0.5}
    assert shares["after"].to_dict() == {W: 0.5, A: 0.5}
    own = found.spans_before[found.spans_before["value_id"] == W]
    assert own[["state", "x0", "x1"]].values.tolist() == [
        ["candidate", 0, 2],
        ["active", 2, 5],
        ["deprecated", 5, 6],
        ["revoked", 6, 10],
    ]
    own = found.spans_after[found.spans_after["value_id"] == W]
    assert own[["state", "life", "x0", "x1"]].values.tolist() == [
        ["candidate", 0, 0, 2],
        ["active", 1, 2, 5],
        ["deprecated", 1, 5, 6],
        ["revoked", 1, 6, 6],
        ["active", 2, 6, 8],
        ["revoked", 2, 8, 10],
    ]


def test_pinned_stands_to_the_end() -> None:
    found = effect(Verdict.PIN)
    assert found.stands_until is None
    assert found.stands_for == 4
    assert found.exposure.set_index("value_id")["after"].to_dict() == {W: 1.0, A: 0.0}


def test_confirmation_keeps_out_what_would_come_back() -> None:
    said = [W] * 5 + [A] * 2 + [W] * 4
    # Two fresh conflicts, then 3 supports make 3 / 5 < 0.6 in the tally's posterior 4 / 7; the fourth makes 5 / 8.
    found = effect(Verdict.CONFIRM, said=said)
    assert found.transitions[["side", "time", "to_state", "rule"]].values.tolist() == [
        ["before", 10, "active", "reactivated"],
        ["after", 10, "revoked", "reasserted"],
    ]
    assert found.stands_until == found.at == 6
    assert found.later_supports == 4


def test_both_valid_counts_no_support_of_another_value_as_a_conflict() -> None:
    found = effect(Verdict.BOTH_VALID)
    assert (found.later_supports, found.later_conflicts) == (1, 0)
    assert found.stands_until is None
    assert found.exposure.set_index("value_id")["after"].to_dict() == {W: 1.0, A: 0.5}


def test_refutations_count_against_it_on_a_key_of_several_values() -> None:
    rows = items([*SAID, W, W], refuted=(11, 12))
    found = log_effect(rows, Thresholds(), W, Verdict.BOTH_VALID, time="t")
    # 1 0 0 in its new life: the support at 7, then the refutations at 11 and 12.
    assert (found.later_conflicts, found.stands_until) == (2, 12)


def test_what_stands_already_is_on_both_sides() -> None:
    said = [*SAID, W, W, W]
    standing = [Standing(6, W, Verdict.CONFIRM)]
    found = effect(Verdict.REACTIVATE, 10, said=said, standing=standing)
    sides = found.transitions.groupby("side")["rule"].apply(list).to_dict()
    assert "reasserted" not in sides.get("after", [])
    assert "superseded" in sides["after"]
    # The same as one live memory that is told both decisions.
    memory = Ledger()
    for t, value in enumerate(said):
        memory.observe("seat", value, at=t)
        if t == 6:
            memory.confirm("seat", W)
        if t == 10:
            memory.reactivate("seat", W)
    last = found.spans_after.sort_values("x1").groupby("value_id").tail(1).set_index("value_id")["state"]
    assert last[W] == memory.precedent("seat", W).label
    assert last[A] == memory.precedent("seat", A).label


def test_times_stay_times() -> None:
    rows = items()
    rows["event_time"] = pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(rows["t"], unit="D")
    found = log_effect(rows, Thresholds(), W, Verdict.REACTIVATE)
    assert found.at == pd.Timestamp("2026-03-07", tz="UTC")
    assert found.stands_for == pd.Timedelta(days=2)
    assert found.spans_after["x0"].dt.tz is not None
    assert found.exposure["after"].tolist() == [0.5, 0.5]
    assert found.as_dict() == {
        "at": "2026-03-07T00:00:00+00:00",
        "end": "2026-03-11T00:00:00+00:00",
        "exposure": {"before": 0.0, "after": 0.5},
        "later_supports": 1,
        "later_conflicts": 3,
        "stands_until": "2026-03-09T00:00:00+00:00",
        "transitions_changed": 2,
    }
    again = log_effect(rows, Thresholds(), W, Verdict.REACTIVATE, pd.Timestamp("2026-03-07"))
    assert again.as_dict() == found.as_dict()


def test_at_the_end_no_time_is_left() -> None:
    found = effect(Verdict.REACTIVATE, 10)
    assert found.exposure["before"].isna().all()
    assert found.as_dict()["exposure"] == {"before": None, "after": None}
    assert (found.later_supports, found.later_conflicts, found.stands_for) == (0, 0, 0)


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [(3, W, "is active"), (3, A, "is unknown"), (None, A, "never revoked"), (9, A, "is active"), (9, "x", "unknown")],
)
def test_only_what_is_revoked_can_be_decided_on(at: int | None, value: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        log_effect(items(), Thresholds(), value, Verdict.REACTIVATE, at, time="t")


def test_needs_evidence_on_one_key() -> None:
    with pytest.raises(ValueError, match="needs a key with evidence"):
        log_effect(items().head(0), Thresholds(), W, Verdict.CONFIRM, time="t")
    two = pd.concat([items(), items().assign(key_id="meal", seq=np.arange(len(SAID)) + 50)])
    with pytest.raises(ValueError, match="follows one key"):
        log_effect(two, Thresholds(), W, Verdict.CONFIRM, time="t")


def test_changed_transitions_tells_repeats_apart() -> None:
    columns = ["key_id", "value_id", "time", "from_state", "to_state", "rule"]
    row = ("k", "v", 3, "revoked", "revoked", "reasserted")
    once, twice = pd.DataFrame([row], columns=columns), pd.DataFrame([row, row], columns=columns)
    assert changed_transitions(twice, twice).empty
    assert changed_transitions(once, twice)["side"].tolist() == ["after"]
    assert changed_transitions(twice, once.head(0))["side"].tolist() == ["before", "before"]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        # 719,162 and 2,932,897 days of 86,400 s lie between 1970 and the ends of the calendar.
        ("0001-01-01T00:00:00", -719_162 * 86_400 * 10**6),
        ("9999-12-31T23:59:59.999999+00:00", 2_932_897 * 86_400 * 10**6 - 1),
        ("1970-01-01T01:00:00+01:00", 0),
        (pd.Timestamp("1970-01-01T00:00:00.000001", tz="UTC"), 1),
        (7, 7),
    ],
)
def test_moments_of_every_year_are_microseconds(at: object, expected: int) -> None:
    assert microseconds(at) == expected
