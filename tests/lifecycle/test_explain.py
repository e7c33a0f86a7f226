from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tepa_core.lifecycle import (
    Ledger,
    Line,
    State,
    Thresholds,
    Why,
    encode,
    standing,
    tables,
    trace_key,
    why,
    would_prevent,
    would_reactivate,
    would_revoke,
)
from tepa_core.lifecycle.explain import LIMIT, counted, in_words
from tepa_core.lifecycle.replay import Replay
from tests.lifecycle.reference_rule import Item, remember

shares = st.one_of(st.sampled_from([0.0, 0.2, 0.3, 0.34, 0.5, 0.67, 0.9, 1.0]), st.floats(0, 1))
thresholds = st.builds(
    Thresholds,
    theta_prop=st.integers(1, 4),
    theta_rev=shares,
    n_min=st.integers(1, 8),
    theta_rec=shares,
    n_rec=st.integers(1, 6),
    theta_pro=st.sampled_from([0.0, 0.3, 0.5, 0.6, 0.75]),
)
one_key = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([True, True, False]), st.integers(1, 6)), min_size=1, max_size=10
).map(lambda parts: [Item("k", value, supports) for value, supports, n in parts for _ in range(n)])


def as_frame(items: Sequence[Item]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "seq": range(len(items)),
            "subject": "",
            "key_id": "k",
            "value_id": [item.value for item in items],
            "supports": [item.supports for item in items],
            "event_time": range(len(items)),
        }
    )


def explained(items: Sequence[Item], th: Thresholds, at: str = "at task 62") -> list[tuple[dict[str, object], Why]]:
    """Every transition of a key with its explanation."""
    frame = as_frame(items)
    log, labels = encode(frame)
    _, replayed = trace_key(log, th)
    _, transitions = tables(log, labels, replayed, th)
    transitions["value_id"] = labels["value_id"].to_numpy()[transitions["precedent"]]
    return [(row, why(frame, row, th, at)) for row in transitions.to_dict("records")]


def traced(items: Sequence[Item], th: Thresholds, value: str) -> tuple[Replay, int]:
    log, labels = encode(as_frame(items))
    return trace_key(log, th)[1], labels["value_id"].tolist().index(value)


def state_after(items: Sequence[Item], th: Thresholds, value: str) -> str:
    return remember(items, th).keys["k"].values[value].state


CASE_8 = [Item("k", "a")] * 60 + [Item("k", "a", False)] * 2


def test_case_8_revoked_after_sixty_supports() -> None:
    row, card = explained(CASE_8, Thresholds())[-1]
    assert row["rule"] == "recent"
    assert (
        card.sentence == "Revoked at task 62 by the recent rule: two of its last three evidence items went against it."
    )
    assert card.counterfactual == "One more support among the last three would have prevented it."
    assert card.would_prevent == 1
    # The last support and the two refutations.
    assert card.evidence == (59, 60, 61)
    lines = {line.quantity: line for line in card.lines}
    assert lines["supports"] == Line("supports", "60", "60", "", "")
    assert (lines["conflicts"].before, lines["conflicts"].after) == ("1", "2")
    # 61/63 = 0.968, then 61/64 = 0.953.
    assert lines["posterior"] == Line("posterior", "0.968", "0.953", "at least 0.3 from 5 outcomes", "holds")
    assert lines["last 3 outcomes"].after == "support conflict conflict"
    # One of the last three, 0.333, is below 0.34.
    assert (lines["their mean"].after, lines["their mean"].threshold) == ("0.333", "at least 0.34")
    assert lines["their mean"].verdict == "below: revoked"


def test_revoked_by_the_posterior_rule() -> None:
    th = Thresholds(theta_prop=1, theta_rec=0.0)
    row, card = explained([Item("k", "a"), *[Item("k", "a", False)] * 4], th, "on 4 July 2025")[-1]
    assert row["rule"] == "posterior"
    # (1 + 1) / (5 + 2) = 0.286.
    assert card.sentence == (
        "Revoked on 4 July 2025 by the posterior rule: with one support against four conflicts its posterior fell to "
        "0.29, below 0.3."
    )
    # With two supports against three conflicts it would have been 3/7 = 0.429.
    assert card.would_prevent == 1
    assert card.counterfactual == "It would have stood if one of its four conflicts had been a support."
    lines = {line.quantity: line for line in card.lines}
    assert (lines["posterior"].after, lines["posterior"].verdict) == ("0.286", "below: revoked")
    assert lines["their mean"].verdict == "holds"
    assert card.evidence == (0, 1, 2, 3, 4)


def test_a_short_window_is_said_to_be_not_judged() -> None:
    th = Thresholds(theta_prop=1, theta_rev=0.6, n_min=2, n_rec=3)
    row, card = explained([Item("k", "a"), Item("k", "a", False)], th)[-1]
    # (1 + 1) / (2 + 2) = 0.5 < 0.6 with a window of one outcome.
    assert row["rule"] == "posterior"
    lines = {line.quantity: line for line in card.lines}
    assert lines["last 3 outcomes"].verdict == "not judged: 1 of 3"
    assert lines["their mean"].verdict == "not judged"


def test_superseded() -> None:
    th = Thresholds(theta_rec=0.0, theta_pro=0.3)
    cards = explained([Item("k", "a")] * 3 + [Item("k", "b")] * 3, th)
    row, card = cards[-1]
    assert (row["rule"], row["value_id"]) == ("superseded", "a")
    assert card.sentence == (
        "Revoked at task 62: another value of the key became active, and a key holds one active value."
    )
    assert (card.would_prevent, card.counterfactual) == (None, "")
    # The three supports of b.
    assert card.evidence == (3, 4, 5)


def test_raised() -> None:
    items = [Item("k", "a")] * 5 + [Item("k", "b")] * 5 + [Item("k", "a")] * 3
    cards = {(row["value_id"], row["rule"]): card for row, card in explained(items, Thresholds(), "at task 9")}
    assert cards["a", "proposed"].sentence == (
        "Became a hypothesis at task 9: three fresh supports against no conflicts since the tallies of this key last "
        "restarted."
    )
    assert cards["a", "promoted"].sentence.startswith("Became active at task 9: three fresh supports")
    assert cards["a", "promoted"].evidence == (0, 1, 2)
    back = cards["a", "reactivated"]
    assert back.sentence.startswith("Came back out of the archive (life 2) at task 9: three fresh supports against no")
    assert back.evidence == (10, 11, 12)
    lines = {line.quantity: line for line in back.lines}
    # 3/4 before, 4/5 after, and 0.6 is needed.
    assert lines["posterior of the tally"] == Line(
        "posterior of the tally", "0.750", "0.800", "at least 0.6 to be active", "reached"
    )
    assert back.would_prevent is None


@pytest.mark.parametrize(
    ("support", "conflict", "window", "th", "needed"),
    [
        # 61/64 stands; 1 of 3 falls, 2 of 3 stands.
        (60, 2, "100", Thresholds(), 1),
        (60, 3, "000", Thresholds(), 2),
        # 2/7 < 0.3 <= 3/7; no full window.
        (1, 4, "0000", Thresholds(n_rec=5), 1),
        # 1/12 -> 4/12 >= 0.3 needs three, the window of 000 two.
        (0, 10, "000", Thresholds(), 3),
        # Fewer than n_min outcomes and a short window: nothing fired, nothing to prevent.
        (0, 4, "00", Thresholds(), 0),
        # A bar that no counts reach: only when nothing was a conflict is nothing asked.
        (3, 2, "00", Thresholds(theta_rev=1.0), 2),
        (3, 2, "00", Thresholds(theta_rev=0.99), 2),
        # A mean of 1 is needed.
        (9, 2, "100", Thresholds(theta_rec=1.0), 2),
        # Exactly at the bar is not below it: (2 + 1) / (8 + 2) = 0.3.
        (1, 7, "10", Thresholds(), 1),
    ],
)
def test_would_prevent_by_hand(support: int, conflict: int, window: str, th: Thresholds, needed: int) -> None:
    assert would_prevent(support, conflict, window, th) == needed


@given(st.integers(1, 30), st.lists(st.booleans(), min_size=1, max_size=40), thresholds)
@example(60, [False, False], Thresholds())
@example(1, [False] * 12, Thresholds(theta_prop=1, theta_rec=0.0))
def test_would_prevent_is_what_replay_says(before: int, outcomes: list[bool], th: Thresholds) -> None:
    """Flip the m latest conflicts into supports: it stands at that item; flip m - 1: it falls there.

    The conflict that revoked it stays one as long as m is reached without it, since a support is never judged. One
    value alone, so that a flip changes nothing but this value's counts, and only conflicts of its first life, so that
    its activation stays where it was.
    """
    outcomes = [True] * before + outcomes
    items = [Item("k", "a", outcome) for outcome in outcomes]
    story = explained(items, th)
    assume([row["to_state"] for row, _ in story][:3] == ["hypothesis", "active", "revoked"])
    (risen, _), (fallen, card) = story[1], story[2]
    at = int(str(fallen["seq"]))
    m = card.would_prevent
    assert m is not None
    assert m >= 1
    lived = [i for i in range(int(str(risen["seq"])) + 1, at + 1) if not outcomes[i]]
    earlier = lived[:-1]
    assume(m <= len(lived))

    def falls_there(flipped: Sequence[int]) -> bool:
        changed = [Item("k", "a", item.supports or i in flipped) for i, item in enumerate(items[: at + 1])]
        changes = remember(changed, th).changes
        assert all(change.to_state != "revoked" for change in changes if change.item < at)
        return any(change.to_state == "revoked" for change in changes)

    assert falls_there(earlier[len(earlier) - (m - 1) :])
    window = str(fallen["window"])
    enough_without_the_last = m <= len(earlier) and not (
        len(window) == th.n_rec and min(window.count("1") + m, len(window) - 1) / th.n_rec < th.theta_rec
    )
    assert not falls_there(earlier[len(earlier) - m :] if enough_without_the_last else lived[len(lived) - m :])


@given(one_key, thresholds, st.sampled_from("ab"))
def test_would_reactivate_is_what_replay_says(items: list[Item], th: Thresholds, value: str) -> None:
    items = [*items, Item("k", value, False)]
    replayed, index = traced(items, th, value)
    kept = replayed.precedents.copy()
    n = would_reactivate(replayed, value=index, thresholds=th)
    assert (replayed.precedents == kept).all()
    if n is None:
        # A support that leaves its tally below theta_rev is thrown away at once, over and over.
        assert state_after([*items, *[Item("k", value)] * (LIMIT // 10)], th, value) != "active"
    else:
        assert state_after([*items, *[Item("k", value)] * n], th, value) == "active"
        assert n == 0 or state_after([*items, *[Item("k", value)] * (n - 1)], th, value) != "active"


@given(one_key, thresholds, st.sampled_from("ab"))
def test_would_revoke_is_what_replay_says(items: list[Item], th: Thresholds, value: str) -> None:
    items = [*items, Item("k", value, True)]
    assume(state_after(items, th, value) == "active")
    replayed, index = traced(items, th, value)
    n = would_revoke(replayed, index, th)
    if n is None:
        assert state_after([*items, *[Item("k", value, False)] * (LIMIT // 10)], th, value) == "active"
    else:
        assert state_after([*items, *[Item("k", value, False)] * n], th, value) == "revoked"
        assert state_after([*items, *[Item("k", value, False)] * (n - 1)], th, value) == "active"


def test_how_many_supports_bring_it_back() -> None:
    # Straight after two conflicts: 4/7 < 0.6 <= 5/8.
    assert would_reactivate(*traced(CASE_8, Thresholds(), "a"), Thresholds()) == 4
    taken_over = [Item("k", "a")] * 5 + [Item("k", "b")] * 5
    assert would_reactivate(*traced(taken_over, Thresholds(), "a"), Thresholds()) == 3
    assert would_reactivate(*traced(taken_over, Thresholds(), "b"), Thresholds()) == 0
    # No number of supports reaches a posterior of 1.
    strict = Thresholds(theta_pro=1.0)
    assert would_reactivate(*traced([Item("k", "a")], strict, "a"), strict) is None


def test_how_many_conflicts_revoke_it() -> None:
    clean = [Item("k", "a")] * 10
    # 1 1 0 stands, 1 0 0 falls.
    assert would_revoke(*traced(clean, Thresholds(), "a"), Thresholds()) == 2
    never = Thresholds(revokes=False)
    assert would_revoke(*traced(clean, never, "a"), never) is None


@given(one_key, thresholds)
def test_every_transition_is_explained_with_its_own_evidence(items: list[Item], th: Thresholds) -> None:
    for row, card in explained(items, th):
        assert card.sentence.endswith(".")
        assert "task 62" in card.sentence
        assert card.evidence
        assert list(card.evidence) == sorted(set(card.evidence))
        # The item that did it is the last of the evidence.
        assert card.evidence[-1] == row["seq"]
        assert (card.would_prevent is not None) == (row["rule"] in ("posterior", "recent"))
        if row["rule"] in ("proposed", "promoted", "reactivated"):
            assert all(items[seq] == Item("k", row["value_id"], True) for seq in card.evidence)
        else:
            assert len(card.lines) >= 1


@pytest.mark.parametrize(
    ("state", "counts", "trial", "needed", "sentence"),
    [
        (
            State.ACTIVE,
            (60, 0),
            (0, 0),
            2,
            "Active, with 60 supports against no conflicts. Two conflicts in a row would revoke it.",
        ),
        (
            State.ACTIVE,
            (1, 1),
            (0, 0),
            1,
            "Active, with one support against one conflict. One conflict would revoke it.",
        ),
        (
            State.ACTIVE,
            (3, 0),
            (0, 0),
            None,
            "Active, with three supports against no conflicts. No number of conflicts revokes it at these thresholds.",
        ),
        (
            State.REVOKED,
            (60, 2),
            (0, 2),
            4,
            "In the archive: its tally since then is no supports against two conflicts. Four fresh supports in a row "
            "bring it back.",
        ),
        (
            State.REVOKED,
            (60, 2),
            (2, 0),
            1,
            "In the archive: its tally since then is two supports against no conflicts. One fresh support brings it "
            "back.",
        ),
        (
            State.CANDIDATE,
            (0, 0),
            (1, 1),
            2,
            "A candidate: one support against one conflict so far, and three supports with a posterior of 0.6 are "
            "needed. Two fresh supports in a row make it active.",
        ),
        (
            State.HYPOTHESIS,
            (0, 0),
            (3, 3),
            None,
            "A hypothesis: three supports against three conflicts so far, and three supports with a posterior of 0.6 "
            "are needed. No number of fresh supports would make it active at these thresholds.",
        ),
    ],
)
def test_standing(
    state: State, counts: tuple[int, int], trial: tuple[int, int], needed: int | None, sentence: str
) -> None:
    assert standing(state, *counts, trial, needed, Thresholds()) == sentence


def test_case_4_the_page_says_why_neither_fact_is_active() -> None:
    facts = [Item("k", "Ronaldo"), Item("k", "Messi")]
    ledger = Ledger()
    for fact in facts:
        ledger.observe(fact.key, fact.value)
    p = ledger.precedent("k", "Messi")
    needed = would_reactivate(*traced(facts, Thresholds(), "Messi"), Thresholds())
    assert standing(p.state, p.support, p.conflict, (p.trial_support, p.trial_conflict), needed, Thresholds()) == (
        "A candidate: one support against no conflicts so far, and three supports with a posterior of 0.6 are needed. "
        "Two fresh supports in a row make it active."
    )


@pytest.mark.parametrize(
    ("number", "word"), [(0, "no"), (1, "one"), (12, "twelve"), (13, "13"), (1000, "1,000"), (1234567, "1,234,567")]
)
def test_in_words(number: int, word: str) -> None:
    assert in_words(number) == word
    assert counted(number, "support") == f"{word} support{'' if number == 1 else 's'}"
