"""The agent loop on a stream of six tasks, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tepa_core.experiment import play, setting
from tepa_core.experiment.spec import RunSpec
from tepa_core.lifecycle import Ledger, State, Thresholds, encode, replay, tables
from tepa_core.methods import METHODS, Experience, Method, Recall, Setting
from tepa_core.methods.base import NOTHING
from tepa_core.streams import ControlledSpec, Stream

A, B = 0, 1


def hand_made(**change: Any) -> Stream:
    """One key; value A works at tasks 0-2, value B at tasks 3-5. The agent's own pick is A, B, A, A, A, B."""
    parts: dict[str, Any] = {
        "seed": 0,
        "phase_names": ("before", "after"),
        "keys": ("read csv",),
        "values": ("A", "B"),
        "phase": np.array([0, 0, 0, 1, 1, 1]),
        "key": np.zeros(6, int),
        "base_action": np.array([A, B, A, A, A, B]),
        "follows": np.ones(6, bool),
        "outcome": np.array([[True, False]] * 3 + [[False, True]] * 3),
        "truth": np.array([[A]] * 3 + [[B]] * 3),
        "asserted": None,
        "prior_key": np.empty(0, int),
        "prior_value": np.empty(0, int),
    }
    return Stream(**(parts | change))


def made(method: str, stream: Stream, thresholds: Thresholds | None = None, fallback: str = "candidate") -> Method:
    return METHODS[method].make(
        Setting(stream.keys, 2, stream.asserted is not None, thresholds or Thresholds(), fallback)
    )


def test_no_memory_takes_its_own_pick() -> None:
    stream = hand_made()
    played = play(stream, made("no_memory", stream))
    assert played.action.tolist() == [A, B, A, A, A, B]
    assert played.success.tolist() == [True, False, True, False, False, True]
    assert played.followed.tolist() == played.retrieved.tolist() == [-1] * 6
    assert played.evidence_value.tolist() == [A, B, A, A, A, B]
    assert played.evidence_supports.tolist() == [True, False, True, False, False, True]
    assert played.size.tolist() == [0] * 6


def test_append_only_follows_what_it_stored() -> None:
    stream = hand_made()
    played = play(stream, made("append_only", stream))
    # Nothing is stored before task 0; from then on A is followed, and B is never tried again.
    assert played.action.tolist() == [A] * 6
    assert played.followed.tolist() == played.retrieved.tolist() == [-1, A, A, A, A, A]
    assert played.success.tolist() == [True, True, True, False, False, False]
    # Only the three successes are stored.
    assert played.size.tolist() == [1, 2, 3, 3, 3, 3]


def test_oracle_reset_is_told_before_the_first_task_of_a_phase() -> None:
    stream = hand_made()
    played = play(stream, made("oracle_reset", stream))
    # Cleared before task 3: it picks A, A, B by itself and fails, fails, succeeds.
    assert played.followed.tolist() == [-1, A, A, -1, -1, -1]
    assert played.success.tolist() == [True, True, True, False, False, True]
    assert played.size.tolist() == [1, 2, 3, 0, 0, 1]


def test_win_stay_lose_shift_switches_after_one_failure() -> None:
    stream = hand_made()
    played = play(stream, made("win_stay_lose_shift", stream))
    assert played.action.tolist() == [A, A, A, A, B, B]
    assert played.success.tolist() == [True, True, True, False, True, True]


def test_tepa_tries_candidates_then_follows_the_active_value() -> None:
    stream = hand_made()
    played = play(stream, made("tepa", stream))
    # Its own pick at 0; the candidate A at 1 and 2, which is no retrieval; Active after its third support.
    assert played.followed.tolist() == [-1, A, A, A, A, A]
    assert played.retrieved.tolist() == [-1, -1, -1, A, A, A]
    # Three failures of an empty window: revoked at the third.
    assert played.success.tolist() == [True, True, True, False, False, False]
    assert played.size.tolist() == [0, 0, 1, 1, 1, 0]


def test_without_candidates_tepa_takes_its_own_pick() -> None:
    stream = hand_made()
    played = play(stream, made("tepa", stream, fallback="base_policy"))
    # A, B and A by itself: two supports of A, one refutation of B; nothing is ever Active.
    assert played.action.tolist() == [A, B, A, A, A, B]
    assert played.followed.tolist() == [-1] * 6


def test_an_agent_that_does_not_follow_has_retrieved_all_the_same() -> None:
    stream = hand_made(follows=np.array([True, False, True, False, True, False]))
    played = play(stream, made("append_only", stream))
    assert played.retrieved.tolist() == [-1, A, A, A, A, A]
    assert played.followed.tolist() == [-1, -1, A, -1, A, -1]
    # Own pick where it does not follow: B at 1, A at 3, B at 5.
    assert played.action.tolist() == [A, B, A, A, A, B]


def test_an_agent_that_does_not_follow_keeps_its_pick_for_the_evidence() -> None:
    stream = hand_made(follows=np.zeros(6, bool))
    played = play(stream, made("last_write_wins", stream))
    assert played.evidence_value.tolist() == stream.base_action.tolist()
    assert played.evidence_supports.tolist() == [True, False, True, False, False, True]
    assert played.retrieved.tolist() == [-1, A, A, A, A, A]
    assert played.size.tolist() == [1] * 6


def test_asserted_evidence_is_learned_whatever_the_agent_did() -> None:
    stream = hand_made(asserted=np.array([A, A, B, B, A, B]))
    played = play(stream, made("last_write_wins", stream))
    assert played.followed.tolist() == [-1, A, A, B, B, A]
    assert played.evidence_value.tolist() == [A, A, B, B, A, B]
    assert played.evidence_supports.all()
    assert played.success.tolist() == [True, True, True, True, True, False]


def test_what_memory_holds_before_the_first_task() -> None:
    stream = hand_made(prior_key=np.zeros(3, int), prior_value=np.array([B, B, B]))
    played = play(stream, made("tepa", stream))
    assert played.retrieved[0] == B
    assert played.size[0] == 1


class Records:
    """Follows nothing and keeps all that it is told."""

    def __init__(self) -> None:
        self.told: list[Experience | tuple[int, int]] = []

    def recall(self, t: int, key: int) -> Recall:
        self.told.append((t, key))
        return NOTHING

    def active(self, key: int) -> tuple[int, ...]:
        return ()

    def learn(self, experience: Experience) -> None:
        self.told.append(experience)

    def __len__(self) -> int:
        return 0


def test_each_task_asks_once_then_teaches_once() -> None:
    stream = hand_made(prior_key=np.zeros(2, int), prior_value=np.array([A, B]))
    method = Records()
    play(stream, method)
    assert method.told == [
        Experience(-2, 0, A, True, None),
        Experience(-1, 0, B, True, None),
        (0, 0),
        Experience(0, 0, A, True, True),
        (1, 0),
        Experience(1, 0, B, False, False),
        (2, 0),
        Experience(2, 0, A, True, True),
        (3, 0),
        Experience(3, 0, A, False, False),
        (4, 0),
        Experience(4, 0, A, False, False),
        (5, 0),
        Experience(5, 0, B, True, True),
    ]


def test_nothing_told_carries_numpy() -> None:
    stream = hand_made(prior_key=np.zeros(1, int), prior_value=np.array([A]), asserted=np.array([A, A, B, B, A, B]))
    method = Records()
    play(stream, method)
    assert {type(part) for told in method.told for part in told} == {int, bool, type(None)}


@pytest.mark.parametrize("method", ["tepa", "tepa_norev"])
@pytest.mark.parametrize(
    "thresholds",
    [Thresholds(), Thresholds(n_rec=5), Thresholds(theta_prop=1, n_rec=1), Thresholds(theta_rev=0.5, theta_pro=0.7)],
)
def test_agent_loop_ledger_and_replay_agree(method: str, thresholds: Thresholds) -> None:
    """The same evidence gives the same states, whoever takes it in."""
    spec = RunSpec.build("controlled", methods=[method], thresholds=thresholds)
    for seed in range(3):
        stream = ControlledSpec(key_noise=0.1, light_flip=0.1).make(seed)
        agent = METHODS[method].make(setting(spec, stream))
        played = play(stream, agent)
        lived = agent.memory  # type: ignore[attr-defined]
        alone = Ledger(lived.thresholds)
        size = []
        for t, key in enumerate(stream.key.tolist()):
            alone.observe(key, int(played.evidence_value[t]), bool(played.evidence_supports[t]), t)
            size.append(len(alone))
        assert size == played.size.tolist()
        assert list(alone.precedents()) == list(lived.precedents())
        log, labels = encode(
            pd.DataFrame(
                {
                    "seq": np.arange(len(stream)),
                    "subject": "",
                    "key_id": stream.key,
                    "value_id": played.evidence_value,
                    "supports": played.evidence_supports,
                    "event_time": np.arange(len(stream)),
                }
            )
        )
        precedents, transitions = tables(log, labels, replay(log, lived.thresholds), lived.thresholds)
        assert {
            (row.key_id, row.value_id): (row.state, row.support, row.conflict, row.lives, row.rule, row.posterior)
            for row in precedents.itertuples()
        } == {
            (p.key, p.value): (p.state.label, p.support, p.conflict, p.lives, p.rule.label, p.posterior)
            for p in alone.precedents()
        }
        if method == "tepa_norev":
            assert not (transitions["to_state"] == State.REVOKED.label).any()


def test_a_typical_seed_tells_the_story_of_figure_5() -> None:
    """Conventional Active early, revoked by the recent rule soon after the reversal, re-activated after the return."""
    stories = []
    for seed in range(20):
        stream = ControlledSpec().make(seed)
        agent = METHODS["tepa"].make(setting(RunSpec.build("controlled"), stream))
        played = play(stream, agent)
        ledger, story = Ledger(), []
        for t, key in enumerate(stream.key.tolist()):
            for change in ledger.observe(key, int(played.evidence_value[t]), bool(played.evidence_supports[t]), t):
                if key == 0 and change.rule.label != "proposed":
                    story.append((change.value, change.rule.label, t))
        stories.append(story)
    plain = [(A, "promoted"), (A, "recent"), (B, "promoted"), (B, "recent"), (A, "reactivated")]
    as_figured = [story for story in stories if [(value, rule) for value, rule, _ in story] == plain]
    # Flips in the light phases add a chapter to some seeds.
    assert len(as_figured) >= 5
    for story in as_figured:
        times = [t for _, _, t in story]
        assert times[0] < 40
        assert 80 <= times[1] < times[2] < 120
        assert 120 <= times[3] < times[4] < 160
