"""Decisions in the replay and in the why card: their order, what they leave unsaid, and who is named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from tepa_core.lifecycle import (
    Ledger,
    State,
    Thresholds,
    Verdict,
    encode,
    replay,
    standing,
    tables,
    trace_key,
    why,
)


def rows(values: str, decided: Sequence[tuple[int, str, Verdict]] = ()) -> pd.DataFrame:
    """One item a task (upper case refutes), and decisions (task, value, verdict) in the order they were taken."""
    items = [(i, i, value.lower(), value.islower(), 0) for i, value in enumerate(values)]
    items += [(-1 - number, t, value, False, int(what)) for number, (t, value, what) in enumerate(decided, 1)]
    frame = pd.DataFrame(items, columns=["seq", "t", "value_id", "supports", "verdict"])
    return frame.assign(subject="", key_id="k")


def lives(frame: pd.DataFrame, thresholds: Thresholds) -> tuple[pd.DataFrame, pd.DataFrame]:
    log, labels = encode(frame, time="t")
    found, steps = tables(log, labels, replay(log, thresholds), thresholds)
    names = found["value_id"].to_numpy(object)[steps["precedent"].to_numpy()]
    return found.set_index("value_id"), steps.assign(value_id=names)


@pytest.mark.parametrize(("first", "last"), [("a", "b"), ("b", "a")])
def test_of_two_decisions_at_one_time_the_later_one_comes_last(first: str, last: str) -> None:
    # a falls at 4 and b takes the key at 5; then b falls at 9 and 10 to refutations, so both are archived.
    frame = rows("aaabbbBBB", [(8, first, Verdict.REACTIVATE), (8, last, Verdict.REACTIVATE)])
    found, steps = lives(frame, Thresholds())
    assert found["state"].to_dict() == {first: "revoked", last: "active"}
    assert [(s.value_id, s.rule, s.seq) for s in steps.itertuples() if s.time == 8][-3:] == [
        (first, "decided", -2),
        (last, "decided", -3),
        (first, "superseded", -3),
    ]
    log, _ = encode(frame, time="t")
    trace, traced = trace_key(log, Thresholds())
    assert trace.order.tolist()[-2:] == [9, 10]
    assert traced.precedents["state"].tolist() == replay(log, Thresholds()).precedents["state"].tolist()


def test_a_reassertion_is_no_revocation() -> None:
    found, steps = lives(rows("aaabbbaaaaa", [(5, "a", Verdict.CONFIRM)]), Thresholds())
    again = steps[steps["rule"] == "reasserted"].iloc[0]
    fell = steps[steps["rule"] == "recent"].iloc[0]
    assert again["time"] > fell["time"]
    assert found.loc["a", "revoked_at"] == fell["time"]
    # Judged by the tally that would have brought it back, not by the counts of its life.
    s, f = again["trial_support"], again["trial_conflict"]
    assert again["posterior"] == pytest.approx((s + 1) / (s + f + 2))
    assert again["posterior"] >= 0.6


def test_what_never_changed_is_what_it_is_since_it_was_first_seen() -> None:
    frame = rows("aaaab")
    found, _ = lives(frame.assign(t=frame["t"] + 1000), Thresholds())
    assert found[["created_at", "changed_at"]].loc["b"].tolist() == [1004, 1004]
    assert found[["created_at", "changed_at"]].loc["a"].tolist() == [1000, 1002]
    ledger = Ledger()
    ledger.observe("k", "b", at=1004)
    assert ledger.precedent("k", "b").changed_at == 1004


def reasons(
    frame: pd.DataFrame, thresholds: Thresholds, decided: str, several_from: int | None = None
) -> dict[str, str]:
    _, steps = lives(frame, thresholds)
    items = frame[frame["verdict"] == 0].sort_values(["t", "seq"], ignore_index=True)
    return {
        f"{step['value_id']} {step['rule']} {step['time']}": why(
            items, step, thresholds, f"at task {step['time']}", decided=decided
        ).sentence
        for step in steps.to_dict("records")
    }


def test_who_decided_is_named() -> None:
    told = reasons(rows("aaabbb", [(5, "a", Verdict.REACTIVATE)]), Thresholds(), "Ana (other: “x”)")
    assert told["a decided 5"] == "Made active again at task 5 by a decision of Ana (other: “x”)."
    assert told["b superseded 5"] == (
        "Revoked at task 5: a decision of Ana (other: “x”) made another value of the key active."
    )
    told = reasons(rows("aaabbbaaaaaa", [(5, "a", Verdict.CONFIRM)]), Thresholds(), "Ana")
    again, *_ = [text for name, text in told.items() if "reasserted" in name]
    assert again.startswith("Re-asserted at task ")
    assert again.endswith("It stays in the archive, because a decision of Ana confirmed its revocation.")


def test_on_a_key_with_several_values_only_what_refutes_a_value_counts_against_it() -> None:
    # Both valid from task 5 on. Then b speaks twice, and a falls to two refutations and a third.
    frame = rows("aaabbb" + "bb" + "aAAA", [(5, "a", Verdict.BOTH_VALID)])
    _, steps = lives(frame, Thresholds())
    fell = steps[(steps["value_id"] == "a") & (steps["rule"] == "recent")].iloc[-1].to_dict()
    items = frame[frame["verdict"] == 0].reset_index(drop=True)
    found = why(items, fell, Thresholds(), "then", several_from=6)
    # Outcomes 1 0 0 at task 10: the support at 8, the refutations at 9 and 10, and nothing that b said.
    assert (fell["time"], found.evidence) == (10, (8, 9, 10))


def test_standing_says_what_a_decision_holds() -> None:
    th = Thresholds()
    pinned = standing(State.ACTIVE, 5, 4, (0, 0), None, th, Verdict.PIN)
    assert "It is pinned: no conflict revokes it" in pinned
    confirmed = standing(State.REVOKED, 5, 4, (1, 0), None, th, Verdict.CONFIRM)
    assert "Its revocation is confirmed" in confirmed
    held = standing(State.REVOKED, 5, 4, (1, 0), None, th, Verdict.PIN)
    assert "Another value of the key is pinned: no fresh support would bring it back" in held
    assert "thresholds" in standing(State.REVOKED, 5, 4, (1, 0), None, th)


def test_decisions_never_name_a_precedent_that_evidence_spells() -> None:
    frame = rows("aaab", [(3, "a", Verdict.CONFIRM)]).sample(frac=1, random_state=np.random.RandomState(0))
    _, labels = encode(frame.reset_index(drop=True), time="t")
    first = frame.reset_index(drop=True).loc[labels["first"], "verdict"]
    assert first.tolist() == [0, 0]
