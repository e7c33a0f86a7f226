"""A stored log replayed as a whole ends as the stored precedents do, decisions included."""

from __future__ import annotations

from typing import Any

import pytest

from tepa_core.decisions import Action, Actor, Category, Role
from tepa_core.experiment import RunResult
from tepa_core.lifecycle import State, Thresholds, replay
from tepa_core.store import Store, precedent_id, queries, save_log, save_run
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.replays import encoded_log


def states(store: Store, run_id: str) -> dict[str, str]:
    """State of each precedent by its id, replayed from the encoded log."""
    log, labels = encoded_log(store, run_id)
    found = replay(log, queries.run_info(store, run_id).thresholds).precedents["state"]
    names = zip(labels["subject"], labels["key_id"], labels["value_id"], strict=True)
    return {precedent_id("", 0, *name): State(number).label for name, number in zip(names, found, strict=True)}


def stored(store: Store, run_id: str) -> dict[str, str]:
    frame = queries.precedents(store, run_id)
    return dict(zip(frame["id"], frame["state"].replace("deprecated", "active"), strict=True))


@pytest.fixture
def run_id(store: Store, make_log: Any, random_rows: Any) -> str:
    return save_log(store, make_log(random_rows), Thresholds())


def test_replay_ends_as_stored(store: Store, run_id: str) -> None:
    assert set(stored(store, run_id).values()) >= {"active", "revoked"}
    assert states(store, run_id) == stored(store, run_id)


def test_decisions_in_effect_are_part_of_it(store: Store, run_id: str) -> None:
    before = states(store, run_id)
    revoked = next(name for name, state in before.items() if state == "revoked")
    request = DecisionRequest(
        run_id=run_id,
        precedent_id=revoked,
        action=Action.REACTIVATE,
        pinned=True,
        category=Category.WRONG_REVOCATION,
        reason="it holds",
    )
    record(store.acting(Actor("Ana Lima", True, Role.REVIEWER)), request)
    after = states(store, run_id)
    assert after[revoked] == "active"
    assert after == stored(store, run_id)
    assert after != before


def test_labels_are_as_the_evidence_writes_them(store: Store, run_id: str) -> None:
    _, labels = encoded_log(store, run_id)
    frame = queries.precedents(store, run_id)
    assert set(map(tuple, labels[["subject", "key", "value"]].to_numpy())) == set(
        map(tuple, frame[["subject", "key", "value"]].to_numpy())
    )


def test_a_simulation_is_refused(store: Store, simulation: RunResult) -> None:
    with pytest.raises(ValueError, match="is a simulation"):
        encoded_log(store, save_run(store, simulation))
