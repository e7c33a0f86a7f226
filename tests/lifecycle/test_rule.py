from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tepa_core.lifecycle import EncodedLog, Ledger, Rule, State, Thresholds, encode, replay, tables
from tepa_core.lifecycle import rule as lifecycle_rule
from tepa_core.lifecycle.precedent import TRANSITION
from tepa_core.lifecycle.replay import window_text
from tests.lifecycle.reference_rule import Change, Item, ReferenceMemory, remember

KEYS = ("seat", "meal")
VALUES = ("a", "b", "c")

shares = st.one_of(st.sampled_from([0.0, 0.2, 0.3, 0.34, 0.5, 0.6, 0.75, 0.9, 1.0]), st.floats(0, 1))
thresholds_of_any_kind = st.builds(
    Thresholds,
    theta_prop=st.integers(1, 4),
    theta_rev=shares,
    n_min=st.integers(1, 6),
    theta_rec=shares,
    n_rec=st.integers(1, 6),
    theta_pro=shares,
    alpha=st.sampled_from([0.5, 1.0, 2.0]),
    beta=st.sampled_from([0.5, 1.0, 2.0]),
    revokes=st.sampled_from([True, True, True, False]),
)
any_thresholds = st.one_of(st.just(Thresholds()), st.just(Thresholds(theta_prop=1, n_rec=1)), thresholds_of_any_kind)
items_of_keys = st.builds(Item, st.sampled_from(KEYS), st.sampled_from(VALUES), st.sampled_from([True, True, False]))
# Runs of one item reach what single draws rarely do: long windows, restarts, returns from the archive.
runs = st.tuples(items_of_keys, st.integers(1, 7)).map(lambda pair: [pair[0]] * pair[1])
evidence = st.lists(runs, max_size=14).map(lambda parts: [item for part in parts for item in part])


def as_frame(items: Sequence[Item]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "seq": np.arange(len(items)),
            "subject": "",
            "key_id": [item.key for item in items],
            "value_id": [item.value for item in items],
            "supports": np.array([item.supports for item in items], bool),
            "event_time": np.arange(len(items)),
        }
    ).astype({"subject": object, "key_id": object, "value_id": object})


def replayed(frame: pd.DataFrame, thresholds: Thresholds) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables with keys and values in place of positions, in an order that does not depend on positions."""
    log, labels = encode(frame)
    precedents, transitions = tables(log, labels, replay(log, thresholds), thresholds)
    owners = labels.take(transitions["precedent"].to_numpy()).reset_index(drop=True)
    transitions = transitions.drop(columns=["precedent"]).assign(key_id=owners["key_id"], value_id=owners["value_id"])
    precedents = precedents.drop(columns=["first"]).sort_values(["key_id", "value_id"], ignore_index=True)
    return precedents, transitions


def state_of(memory: ReferenceMemory) -> dict[tuple[Hashable, Hashable], tuple[Any, ...]]:
    return {
        (key, value): (p.state, p.support, p.conflict, p.tally, p.lives, p.created, p.changed if p.lives else None)
        for key, record in memory.keys.items()
        for value, p in record.values.items()
    }


def state_of_ledger(ledger: Ledger) -> dict[tuple[Hashable, Hashable], tuple[Any, ...]]:
    return {
        (p.key, p.value): (
            p.state.label,
            p.support,
            p.conflict,
            (p.trial_support, p.trial_conflict),
            p.lives,
            p.created_at,
            p.changed_at if p.lives else None,
        )
        for p in ledger.precedents()
    }


@given(evidence, any_thresholds)
def test_ledger_equals_reference(items: list[Item], thresholds: Thresholds) -> None:
    memory, ledger = ReferenceMemory(thresholds), Ledger(thresholds)
    for item in items:
        expected = [(c.item, c.key, c.value, c.from_state, c.to_state, c.rule) for c in memory.observe(item)]
        changes = ledger.observe(item.key, item.value, item.supports)
        assert [(c.at, c.key, c.value, c.from_state.label, c.to_state.label, c.rule.label) for c in changes] == expected
        assert state_of_ledger(ledger) == state_of(memory)


@given(evidence, any_thresholds)
def test_replay_equals_reference(items: list[Item], thresholds: Thresholds) -> None:
    memory = remember(items, thresholds)
    precedents, transitions = replayed(as_frame(items), thresholds)
    assert {
        (p.key_id, p.value_id): (
            p.state,
            p.support,
            p.conflict,
            (p.trial_support, p.trial_conflict),
            p.lives,
            p.created_at,
            p.changed_at if p.lives else None,
        )
        for p in precedents.itertuples()
    } == state_of(memory)
    assert [
        Change(
            row.seq,
            row.key_id,
            row.value_id,
            row.from_state,
            row.to_state,
            row.rule,
            row.life,
            row.support,
            row.conflict,
            row.window,
            (row.trial_support, row.trial_conflict),
        )
        for row in transitions.itertuples()
    ] == memory.changes


@given(evidence, any_thresholds)
def test_tables_derive_the_rest_from_the_counts(items: list[Item], thresholds: Thresholds) -> None:
    memory = remember(items, thresholds)
    precedents, transitions = replayed(as_frame(items), thresholds)
    numbers: dict[tuple[Hashable, Hashable], int] = {}
    for change, row in zip(memory.changes, transitions.itertuples(), strict=True):
        counts = (change.support, change.conflict) if change.to_state == "revoked" else change.tally
        assert row.posterior == memory.q(*counts)
        owner = (change.key, change.value)
        assert row.number == numbers.get(owner, 0)
        numbers[owner] = row.number + 1
    for row in precedents.itertuples():
        p = memory.keys[row.key_id].values[row.value_id]
        assert row.posterior == memory.q(*((p.support, p.conflict) if p.state == "active" else p.tally))
        assert row.deprecated == (p.state == "active" and False in p.window)
        mine = [c for c in memory.changes if (c.key, c.value) == (row.key_id, row.value_id)]
        assert row.rule == (mine[-1].rule if mine else "none")
        falls = [c.item for c in mine if c.to_state == "revoked"]
        assert (pd.NA if not falls else falls[-1]) is row.revoked_at or row.revoked_at == falls[-1]


@given(evidence, any_thresholds, st.randoms(use_true_random=False))
def test_shuffled_rows_replay_as_in_order(items: list[Item], thresholds: Thresholds, random: Any) -> None:
    frame = as_frame(items)
    shuffled = list(range(len(frame)))
    random.shuffle(shuffled)
    for left, right in zip(
        replayed(frame, thresholds), replayed(frame.take(shuffled).reset_index(drop=True), thresholds), strict=True
    ):
        pd.testing.assert_frame_equal(left, right)


@given(evidence, any_thresholds)
def test_ties_of_time_follow_source_order(items: list[Item], thresholds: Thresholds) -> None:
    frame = as_frame(items)
    clocked = frame.assign(event_time=frame["event_time"] // 3).iloc[::-1].reset_index(drop=True)
    _, expected = replayed(frame, thresholds)
    _, transitions = replayed(clocked, thresholds)
    pd.testing.assert_frame_equal(transitions.drop(columns="time"), expected.drop(columns="time"))
    assert transitions["time"].tolist() == (expected["time"] // 3).tolist()


@given(evidence, any_thresholds)
def test_only_legal_transitions(items: list[Item], thresholds: Thresholds) -> None:
    ledger = Ledger(thresholds)
    where: dict[tuple[Hashable, Hashable], State] = {}
    for item in items:
        for change in ledger.observe(item.key, item.value, item.supports):
            assert (change.from_state, change.to_state, change.rule) in lifecycle_rule.LEGAL
            owner = (change.key, change.value)
            assert where.get(owner, State.CANDIDATE) == change.from_state
            where[owner] = change.to_state


def test_evidence_causes_every_legal_transition_but_those_of_decisions() -> None:
    def fates(items: list[Item], thresholds: Thresholds) -> set[tuple[State, State, Rule]]:
        ledger = Ledger(thresholds)
        return {
            (c.from_state, c.to_state, c.rule)
            for item in items
            for c in ledger.observe(item.key, item.value, item.supports)
        }

    a, b, not_a = Item("k", "a"), Item("k", "b"), Item("k", "a", False)
    assert (
        fates([a] * 3 + [b] * 3 + [a] * 6, Thresholds())
        | fates([a] * 3 + [not_a] * 12, Thresholds(theta_rec=0.0))
        # With every recent window allowed the newcomer finds the old value still Active.
        | fates([a] * 3 + [b] * 3, Thresholds(theta_rec=0.0, theta_pro=0.3))
    ) == {way for way in lifecycle_rule.LEGAL if way[2] not in (Rule.DECIDED, Rule.REASSERTED)}


def test_decisions_cause_the_other_legal_transitions() -> None:
    ledger = Ledger()
    for value in "aaabbb":
        ledger.observe("k", value)
    assert ledger.confirm("k", "a") == ()
    again = [c for _ in range(6) for c in ledger.observe("k", "a")]
    ways = {(c.from_state, c.to_state, c.rule) for c in (*again, *ledger.reactivate("k", "a"))}
    assert (State.REVOKED, State.REVOKED, Rule.REASSERTED) in ways
    assert (State.REVOKED, State.ACTIVE, Rule.DECIDED) in ways
    assert (State.REVOKED, State.ACTIVE, Rule.REACTIVATED) not in ways


@given(evidence, any_thresholds)
def test_a_key_never_affects_another(items: list[Item], thresholds: Thresholds) -> None:
    together = Ledger(thresholds)
    apart = {key: Ledger(thresholds) for key in KEYS}
    for at, item in enumerate(items):
        both = together.observe(item.key, item.value, item.supports, at)
        alone = apart[str(item.key)].observe(item.key, item.value, item.supports, at)
        assert [(c.value, c.to_state, c.rule) for c in both] == [(c.value, c.to_state, c.rule) for c in alone]
    left = {name: state for ledger in apart.values() for name, state in state_of_ledger(ledger).items()}
    assert state_of_ledger(together) == left


@given(evidence, any_thresholds, st.permutations(range(len(VALUES))))
def test_the_order_of_values_never_matters(items: list[Item], thresholds: Thresholds, places: list[int]) -> None:
    mine = [item for item in items if item.key == "seat"]

    def fate(place: Sequence[int]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        log = EncodedLog(
            np.array([place[VALUES.index(str(item.value))] for item in mine], np.int32),
            np.array([item.supports for item in mine], bool),
            np.arange(len(mine)),
            np.arange(len(mine)),
            np.array([0, len(VALUES)]),
        )
        result = replay(log, thresholds)
        name = {p: value for value, p in zip(VALUES, place, strict=True)}
        precedents, _ = tables(log, pd.DataFrame(index=range(len(VALUES))), result, thresholds)
        return (
            [(t["seq"], name[t["precedent"]], t["to_state"], t["rule"]) for t in result.transitions],
            sorted((name[i], *row.drop("revoked_at")) for i, row in precedents.iterrows()),
        )

    assert fate(places) == fate(range(len(VALUES)))


@given(evidence, any_thresholds, st.permutations(VALUES))
def test_names_of_values_never_matter(items: list[Item], thresholds: Thresholds, names: list[str]) -> None:
    renamed = dict(zip(VALUES, names, strict=True))
    plain, other = Ledger(thresholds), Ledger(thresholds)
    for item in items:
        left = plain.observe(item.key, item.value, item.supports)
        right = other.observe(item.key, renamed[str(item.value)], item.supports)
        assert [(renamed[str(c.value)], c.rule) for c in left] == [(c.value, c.rule) for c in right]


@given(evidence, st.integers(0, 30), any_thresholds)
def test_a_key_that_holds_several_values(items: list[Item], switch: int, thresholds: Thresholds) -> None:
    """From the item on at which a key becomes multivalued, a support conflicts with nothing."""
    memory = ReferenceMemory(thresholds)
    precedents, key, ring = lifecycle_rule.new_key(len(VALUES), thresholds.n_rec)
    out = np.zeros(16, TRANSITION)
    parameters = thresholds.parameters()
    for t, item in enumerate(items):
        several = t >= switch
        key["multivalued"] = several
        v = VALUES.index(str(item.value))
        n = lifecycle_rule.observe_key(precedents, key[0], ring, v, item.supports, parameters, t, t, 0, 0, out, 0)
        expected = memory.observe(Item("k", item.value, item.supports), multivalued=several)
        assert sorted((VALUES[row["precedent"]], Rule(row["rule"]).label) for row in out[:n]) == sorted(
            (c.value, c.rule) for c in expected
        )
        for name, p in memory.keys["k"].values.items():
            row = precedents[VALUES.index(str(name))]
            assert (State(row["state"]).label, row["support"], row["conflict"]) == (p.state, p.support, p.conflict)
            if p.state != "active":
                assert lifecycle_rule.tally(row, key[0], parameters) == p.tally


@given(evidence, any_thresholds, st.lists(st.booleans(), min_size=98, max_size=98))
def test_trials_hold_an_activation_back(items: list[Item], thresholds: Thresholds, verdicts: list[bool]) -> None:
    """Live, and in a replay that is told what the trials said: nothing but the activation waits."""
    memory, ledger = ReferenceMemory(thresholds), Ledger(thresholds)
    asked: list[int] = []
    for i, (item, verdict) in enumerate(zip(items, verdicts, strict=False)):

        def admits(after: Ledger, i: int = i, item: Item = item, verdict: bool = verdict) -> bool:
            # It is asked with the memory as it would be, and this one is as it was.
            assert after.precedent(item.key, item.value).state == State.ACTIVE
            assert state_of_ledger(ledger) == state_of(memory)
            asked.append(i)
            return verdict

        changes = ledger.observe(item.key, item.value, item.supports, admits=admits)
        if i in asked:
            # The reference says that there was something to ask.
            assert (
                Rule.PROMOTED in {c.rule for c in changes}
                or Rule.REACTIVATED in {c.rule for c in changes}
                or (not verdict)
            )
        expected = memory.observe(item, admits=verdict)
        assert [(c.value, c.rule.label) for c in changes] == [(c.value, c.rule) for c in expected]
        assert state_of_ledger(ledger) == state_of(memory)
        assert i in asked or not {c.rule for c in expected} & {"promoted", "reactivated"}
    held = pd.array([verdicts[i] if i in asked else pd.NA for i in range(len(items))], "boolean")
    precedents, transitions = replayed(as_frame(items).assign(admitted=held), thresholds)
    assert [(row.key_id, row.value_id, row.rule, row.seq) for row in transitions.itertuples()] == [
        (c.key, c.value, c.rule, c.item) for c in memory.changes
    ]
    assert {(p.key_id, p.value_id): p.state for p in precedents.itertuples()} == {
        owner: state for owner, (state, *_) in state_of(memory).items()
    }


def test_two_values_stay_active_on_a_key_that_holds_several() -> None:
    parameters = Thresholds().parameters()
    precedents, key, ring = lifecycle_rule.new_key(2, 3)
    key["multivalued"] = True
    out = np.zeros(8, TRANSITION)
    for t in range(20):
        lifecycle_rule.observe_key(precedents, key[0], ring, t % 2, True, parameters, t, t, 0, 0, out, 0)
    assert precedents["state"].tolist() == [State.ACTIVE, State.ACTIVE]
    assert precedents["support"].tolist() == [10, 10]
    assert precedents["conflict"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("window", "length", "text"), [(0, 0, ""), (0b100, 3, "100"), (0b001, 3, "001"), (0, 2, "00"), (0b1011, 4, "1011")]
)
def test_window_text(window: int, length: int, text: str) -> None:
    assert window_text(window, length) == text


@given(st.integers(0, 2**62 - 1))
def test_ones_counts_bits(window: int) -> None:
    assert lifecycle_rule.ones(window) == window.bit_count()


@given(st.lists(st.booleans(), max_size=80), st.integers(1, 62))
def test_the_window_holds_the_last_outcomes(outcomes: list[bool], n_rec: int) -> None:
    thresholds = Thresholds(theta_prop=1, theta_pro=0.0, theta_rev=0.0, theta_rec=0.0, n_rec=n_rec)
    precedents, key, ring = lifecycle_rule.new_key(1, n_rec)
    out = np.zeros(4, TRANSITION)
    for t, outcome in enumerate([True, *outcomes]):
        lifecycle_rule.observe_key(precedents, key[0], ring, 0, outcome, thresholds.parameters(), t, t, 0, 0, out, 0)
    # The first support made it Active and is not among the outcomes of its life.
    kept = outcomes[-n_rec:]
    assert window_text(int(precedents["window"][0]), int(precedents["window_len"][0])) == "".join(
        "1" if outcome else "0" for outcome in kept
    )


@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.integers(0, 40),
    st.integers(1, 8),
    st.integers(1, 8),
    shares,
    shares,
)
@example([True] * 57 + [False, False], 3, 3, 5, 0.34, 0.3)
def test_the_verdict_on_one_active_value(
    outcomes: list[bool], before: int, n_rec: int, n_min: int, theta_rec: float, theta_rev: float
) -> None:
    """Revoked at the first conflict at which the posterior or the mean of a full window is too low; by hand."""
    # Below this its very first support would be thrown away with the tally, and it would never be Active.
    assume(n_min > 1 or 2 / 3 >= theta_rev)
    thresholds = Thresholds(1, theta_rev, n_min, theta_rec, n_rec, 0.0)
    ledger = Ledger(thresholds)
    ledger.observe("k", "v")
    for _ in range(before):
        ledger.observe("k", "v")
    lived = [True] * before
    for outcome in outcomes:
        lived.append(outcome)
        changes = ledger.observe("k", "v", outcome)
        s, n = 1 + sum(lived), 1 + len(lived)
        mean = sum(lived[-n_rec:]) / n_rec
        low = not outcome and n >= n_min and (s + 1) / (n + 2) < theta_rev
        recent = not outcome and len(lived) >= n_rec and mean < theta_rec
        assert [c.rule for c in changes] == ([Rule.POSTERIOR] if low else [Rule.RECENT] if recent else [])
        if changes:
            break


def test_tallies_restarted_by_a_superseding_are_judged_by_the_next_item() -> None:
    thresholds = Thresholds(theta_prop=2, theta_rev=0.85, n_min=3, theta_rec=0.0, n_rec=5, theta_pro=0.75)
    a, b, c = (Item("k", value) for value in VALUES)
    ledger = Ledger(thresholds)
    # c reaches (2, 1) and restarts, 3/5 < 0.85, and again counts (1, 0). b's second support makes it Active at 3/4,
    # which supersedes a: c then has its three supports among the five items before, (3, 0), although 4/5 < 0.85.
    for item in [a] * 60 + [c, a, c, c, b, b]:
        changes = ledger.observe(item.key, item.value)
    assert [change.rule for change in changes] == [Rule.PROPOSED, Rule.PROMOTED, Rule.SUPERSEDED]
    found = ledger.precedent("k", "c")
    assert (found.trial_support, found.trial_conflict) == (3, 0)
    # The next item makes it (4, 0), and 5/6 < 0.85 restarts it.
    ledger.observe("k", "c")
    found = ledger.precedent("k", "c")
    assert (found.trial_support, found.trial_conflict) == (0, 0)


class Life(RuleBasedStateMachine):
    """A ledger beside the reference, with what must hold whatever happens."""

    @initialize(thresholds=any_thresholds)
    def begin(self, thresholds: Thresholds) -> None:
        self.ledger, self.reference = Ledger(thresholds), ReferenceMemory(thresholds)
        self.supports_given: dict[tuple[Hashable, Hashable], int] = {}

    @rule(item=items_of_keys, times=st.integers(1, 5))
    def observe(self, item: Item, times: int) -> None:
        for _ in range(times):
            changes = self.ledger.observe(item.key, item.value, item.supports)
            expected = self.reference.observe(item)
            assert [(c.value, c.rule.label) for c in changes] == [(c.value, c.rule) for c in expected]
            owner = (item.key, item.value)
            self.supports_given[owner] = self.supports_given.get(owner, 0) + item.supports

    @rule(key=st.sampled_from(KEYS), choices=st.permutations(VALUES))
    def try_a_candidate(self, key: str, choices: list[str]) -> None:
        """The best tally wins, a value never seen counts as the prior, a tie is no choice."""
        record = self.reference.keys.get(key)
        found = self.ledger.candidate(key, choices)
        if record is None:
            assert found is None
            return
        tallies = {v: (0, 0) if v not in record.values else record.values[v].tally for v in choices}
        q = {v: self.reference.q(*counts) for v, counts in tallies.items()}
        best = [v for v in choices if q[v] == max(q.values())]
        assert found == (best[0] if len(best) == 1 else None)

    @invariant()
    def agrees_with_the_reference(self) -> None:
        assert state_of_ledger(self.ledger) == state_of(self.reference)

    @invariant()
    def at_most_one_value_is_active(self) -> None:
        for key in KEYS:
            active = [p for p in self.ledger.precedents() if p.key == key and p.state == State.ACTIVE]
            if self.ledger.thresholds.revokes:
                assert len(active) <= 1
                assert self.ledger.recall(key) == (active[0].value if active else None)
            elif active:
                best = max(p.support for p in active)
                assert self.ledger.recall(key) in {p.value for p in active if p.support == best}

    @invariant()
    def size_is_the_number_of_active(self) -> None:
        assert len(self.ledger) == sum(p.state == State.ACTIVE for p in self.ledger.precedents())

    @invariant()
    def archive_is_what_is_revoked(self) -> None:
        archive = self.ledger.archive()
        assert {(p.key, p.value) for p in archive} == {
            (p.key, p.value) for p in self.ledger.precedents() if p.state == State.REVOKED
        }
        assert not archive or self.ledger.thresholds.revokes

    @invariant()
    def counts_come_from_evidence(self) -> None:
        for p in self.ledger.precedents():
            given = self.supports_given[(p.key, p.value)]
            assert p.trial_support <= given
            # A tally that restarts takes up the last n_rec items again, which its earlier life may have counted.
            assert p.support <= given + max(p.lives - 1, 0) * self.ledger.thresholds.n_rec
            assert (p.lives == 0) == (p.state in (State.CANDIDATE, State.HYPOTHESIS))
            assert p.posterior == self.ledger.thresholds.posterior(
                *((p.support, p.conflict) if p.state == State.ACTIVE else (p.trial_support, p.trial_conflict))
            )


Life.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestLife = Life.TestCase


def test_recall_without_revocation_prefers_the_newer_of_equals() -> None:
    ledger = Ledger(Thresholds(revokes=False))
    for value in ("a", "b"):
        for _ in range(3):
            ledger.observe("k", value)
    # b's tally met 0 conflicts (it was empty while a was supported), so both are Active with three supports.
    assert ledger.recall("k") == "b"
    ledger.observe("k", "a")
    assert ledger.recall("k") == "a"


def test_values_beyond_the_first_room_keep_their_counts() -> None:
    ledger = Ledger()
    for value in range(40):
        ledger.observe("k", value)
    assert [p.value for p in ledger.precedents()] == list(range(40))
    # Each support is one conflict for every earlier value; at (1, 4) the posterior 2/7 is below 0.3: restart.
    assert [(p.trial_support, p.trial_conflict) for p in ledger.precedents()][-5:] == [
        (0, 0),
        (1, 3),
        (1, 2),
        (1, 1),
        (1, 0),
    ]


def test_the_ledger_is_silent_about_what_it_has_not_seen() -> None:
    ledger = Ledger()
    assert ledger.recall("k") is None
    assert ledger.candidate("k", ["a"]) is None
    with pytest.raises(KeyError):
        ledger.precedent("k", "a")
    ledger.observe("k", "a")
    with pytest.raises(KeyError):
        ledger.precedent("k", "b")
