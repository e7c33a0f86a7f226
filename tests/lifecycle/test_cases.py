"""Small cases, as people reported them, that the rule must get right."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import pandas as pd
import pytest

from tepa_core.lifecycle import PRESETS, Ledger, Precedent, Rule, State, Thresholds, encode, replay, tables


def told(rows: Iterable[tuple[Hashable, Hashable, bool]], thresholds: Thresholds | None = None) -> Ledger:
    ledger = Ledger(thresholds)
    for key, value, supports in rows:
        ledger.observe(key, value, supports)
    return ledger


def asserted(key: str, value: str, times: int = 1) -> list[tuple[Hashable, Hashable, bool]]:
    return [(key, value, True)] * times


def refuted(key: str, value: str, times: int = 1) -> list[tuple[Hashable, Hashable, bool]]:
    return [(key, value, False)] * times


def counts(precedent: Precedent) -> tuple[int, int]:
    return precedent.support, precedent.conflict


def tally(precedent: Precedent) -> tuple[int, int]:
    return precedent.trial_support, precedent.trial_conflict


def test_case_1_another_key_never_revokes() -> None:
    ledger = told(asserted("employer", "Acme", 5) + asserted("duty", "Payroll", 5))
    employer = ledger.precedent("employer", "Acme")
    assert (employer.state, counts(employer), employer.deprecated) == (State.ACTIVE, (5, 0), False)
    assert ledger.recall("employer") == "Acme"
    assert ledger.recall("duty") == "Payroll"
    assert ledger.archive() == ()


def test_case_3_the_same_value_again_is_a_support() -> None:
    ledger = told(asserted("team", "Ronaldo", 10))
    team = ledger.precedent("team", "Ronaldo")
    assert (team.state, counts(team), team.lives, team.rule) == (State.ACTIVE, (10, 0), 1, Rule.PROMOTED)
    # q = 11 / 12.
    assert team.posterior == 11 / 12
    assert ledger.archive() == ()


def test_case_4_direct_facts_replace_at_once() -> None:
    ledger = told(asserted("team", "Ronaldo") + asserted("team", "Messi"), PRESETS["direct_facts"])
    assert ledger.recall("team") == "Messi"
    assert ledger.precedent("team", "Messi").state == State.ACTIVE
    old = ledger.precedent("team", "Ronaldo")
    # Its only recent outcome is a conflict: mean 0 of 1, below 0.34.
    assert (old.state, old.rule) == (State.REVOKED, Rule.RECENT)


def test_case_4_by_default_a_fact_stated_once_stays_a_candidate() -> None:
    ledger = told(asserted("team", "Ronaldo") + asserted("team", "Messi"))
    assert ledger.recall("team") is None
    ronaldo, messi = ledger.precedent("team", "Ronaldo"), ledger.precedent("team", "Messi")
    assert (ronaldo.state, messi.state) == (State.CANDIDATE, State.CANDIDATE)
    # Each has one support of the three that are needed; the later value is a conflict for the earlier.
    assert (tally(ronaldo), tally(messi)) == ((1, 1), (1, 0))


def test_case_6_newest_first_gives_the_same_lives() -> None:
    values = ["Acme"] * 4 + ["Globex"] * 4 + ["Acme"] * 4 + ["Initech"]
    rows = pd.DataFrame(
        {
            "seq": range(len(values)),
            "subject": "u1",
            "key_id": "employer",
            "value_id": values,
            "supports": True,
            "event_time": pd.date_range("2025-01-01", periods=len(values), freq="D", tz="UTC"),
        }
    )
    # Loaded newest first, the source order is the other way round: only event time can put it right.
    backwards = rows.iloc[::-1].assign(seq=range(len(values))).reset_index(drop=True)

    def lives(frame: pd.DataFrame) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        log, labels = encode(frame)
        precedents, transitions = tables(log, labels, replay(log, Thresholds()), Thresholds())
        transitions["value"] = labels["value_id"].to_numpy()[transitions["precedent"]]
        final = precedents.sort_values("value_id")[["value_id", "state", "support", "conflict", "lives", "created_at"]]
        story = transitions[["time", "value", "from_state", "to_state", "rule", "support", "conflict", "window"]]
        return list(final.itertuples(index=False, name=None)), list(story.itertuples(index=False, name=None))

    final, story = lives(rows)
    assert lives(backwards) == (final, story)
    # Each is Active at its third support and has one more: a window of 1. The second item of the other makes that
    # 1 0 0, and its third, with the support from before the fall still in the tally, is an activation.
    assert [(value, rule) for _, value, _, _, rule, *_ in story] == [
        ("Acme", "proposed"),
        ("Acme", "promoted"),
        ("Acme", "recent"),
        ("Globex", "proposed"),
        ("Globex", "promoted"),
        ("Globex", "recent"),
        ("Acme", "reactivated"),
    ]
    assert [(value, state) for value, state, *_ in final] == [
        ("Acme", "active"),
        ("Globex", "revoked"),
        ("Initech", "candidate"),
    ]


def test_case_8_two_refutations_in_a_row_after_sixty_supports() -> None:
    ledger = told(asserted("csv", "conventional", 60) + refuted("csv", "conventional"))
    assert ledger.precedent("csv", "conventional").deprecated
    (change,) = ledger.observe("csv", "conventional", False)
    assert (change.from_state, change.to_state, change.rule) == (State.ACTIVE, State.REVOKED, Rule.RECENT)
    gone = ledger.precedent("csv", "conventional")
    assert counts(gone) == (60, 2)
    # (60 + 1) / (62 + 2) = 0.953: the posterior rule, which asks for less than 0.3, would have kept it.
    assert Thresholds().posterior(60, 2) == 61 / 64
    # Its tally starts with the two conflicts that revoked it.
    assert tally(gone) == (0, 2)
    assert ledger.recall("csv") is None


def test_case_9_three_fresh_supports_bring_it_back_after_another_value() -> None:
    ledger = told(asserted("seat", "window", 5) + asserted("seat", "aisle", 5))
    assert ledger.recall("seat") == "aisle"
    assert ledger.precedent("seat", "window").state == State.REVOKED
    rules = [[change.rule for change in ledger.observe("seat", "window")] for _ in range(3)]
    # The aisle's window is 1 1 (its supports since its activation): 1 1 0 stands, 1 0 0 falls at the second item. The
    # window's tally restarts at its one support among the three items before, (1, 0), and becomes (2, 0) with this
    # one; the third makes (3, 0), and 4/5 is at least 0.6.
    assert rules == [[], [Rule.RECENT], [Rule.REACTIVATED]]
    back = ledger.precedent("seat", "window")
    assert (back.state, back.lives, back.created_at) == (State.ACTIVE, 2, 0)
    # One precedent, its old counts still on record: 5 supports and 2 conflicts of its first life, 3 fresh supports.
    assert counts(back) == (8, 2)
    assert [p.value for p in ledger.precedents()] == ["window", "aisle"]
    assert [p.value for p in ledger.archive()] == ["aisle"]


@pytest.mark.parametrize("aisle", [3, 4, 5, 10, 40])
def test_case_9_however_long_the_other_value_was_active(aisle: int) -> None:
    ledger = told(asserted("seat", "window", 5) + asserted("seat", "aisle", aisle))
    states = []
    for _ in range(3):
        ledger.observe("seat", "window")
        states.append(ledger.precedent("seat", "window").state)
    assert states == [State.REVOKED, State.REVOKED, State.ACTIVE]


def test_case_9_straight_after_two_conflicts_four_fresh_supports_are_needed() -> None:
    ledger = told(asserted("seat", "window", 5) + refuted("seat", "window", 2))
    gone = ledger.precedent("seat", "window")
    assert (gone.state, tally(gone)) == (State.REVOKED, (0, 2))
    told_again = [[change.rule for change in ledger.observe("seat", "window")] for _ in range(4)]
    # The tally starts at (0, 2): after three supports (3 + 1) / (3 + 2 + 2) = 4/7 < 0.6, after four 5/8 >= 0.6.
    assert 4 / 7 < 0.6 <= 5 / 8
    assert told_again == [[], [], [], [Rule.REACTIVATED]]
    back = ledger.precedent("seat", "window")
    assert (back.state, back.lives) == (State.ACTIVE, 2)
    # 5 and 2 of the first life, then what brought it back: 4 supports, and the tally's two conflicts once more.
    assert counts(back) == (9, 4)
    assert len(list(ledger.precedents())) == 1


def test_case_10_the_recent_rule_needs_a_full_window() -> None:
    ledger = told(asserted("seat", "window", 3))
    # Since the activation: 1, 0. A mean of 0.5 over two would pass anyhow; 0, 0 would not, and stands too.
    ledger.observe("seat", "window", True)
    ledger.observe("seat", "window", False)
    assert ledger.precedent("seat", "window").state == State.ACTIVE
    bare = told(asserted("seat", "window", 3) + refuted("seat", "window", 2))
    assert bare.precedent("seat", "window").state == State.ACTIVE
    # With the third outcome the window is full: 1 0 0 and 0 0 0 both lie below 0.34.
    (change,) = ledger.observe("seat", "window", False)
    assert change.rule == Rule.RECENT
    (change,) = bare.observe("seat", "window", False)
    assert change.rule == Rule.RECENT


def test_case_10_the_posterior_rule_needs_n_min_outcomes() -> None:
    thresholds = Thresholds(theta_prop=1, theta_rec=0.0)
    ledger = told(asserted("seat", "window") + refuted("seat", "window", 3), thresholds)
    # (1 + 1) / (4 + 2) = 0.333 is not below 0.3; (1 + 1) / (5 + 2) = 0.286 is, and five outcomes are enough.
    assert ledger.precedent("seat", "window").state == State.ACTIVE
    (change,) = ledger.observe("seat", "window", False)
    assert change.rule == Rule.POSTERIOR
    patient = told(
        asserted("seat", "window") + refuted("seat", "window", 4), Thresholds(theta_prop=1, theta_rec=0.0, n_min=6)
    )
    assert patient.precedent("seat", "window").state == State.ACTIVE
    (change,) = patient.observe("seat", "window", False)
    assert change.rule == Rule.POSTERIOR


def test_a_threshold_itself_is_on_the_good_side() -> None:
    one = Thresholds(theta_prop=1, theta_rev=0.5, n_min=1, theta_rec=0.0, theta_pro=0.0)
    ledger = told(asserted("seat", "window") + refuted("seat", "window"), one)
    # (1 + 1) / (2 + 2) = 0.5 is not below 0.5; 2/5 is.
    assert ledger.precedent("seat", "window").state == State.ACTIVE
    (change,) = ledger.observe("seat", "window", False)
    assert change.rule == Rule.POSTERIOR
    # A mean of 1/3 is not below 1/3.
    third = told(asserted("seat", "window", 4) + refuted("seat", "window", 2), Thresholds(theta_rec=1 / 3))
    assert third.precedent("seat", "window").state == State.ACTIVE
    # (2 + 1) / (2 + 2) = 0.75 reaches 0.75.
    assert told(asserted("seat", "window", 2), Thresholds(theta_prop=2, theta_pro=0.75)).recall("seat") == "window"
    # A tally of (1, 1) has 0.5 and is kept, one of (1, 2) has 0.4 and restarts.
    kept = Thresholds(theta_rev=0.5, n_min=2)
    assert tally(told(asserted("seat", "aisle") + refuted("seat", "aisle"), kept).precedent("seat", "aisle")) == (1, 1)
    gone = told(asserted("seat", "aisle") + refuted("seat", "aisle", 2), kept)
    assert tally(gone.precedent("seat", "aisle")) == (0, 0)
