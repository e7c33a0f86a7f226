"""A decision before it is taken says what taking it then does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tepa_core.decisions import PROGRAM, Action, Actor, Category, DecisionRefused, LogEffect, Role
from tepa_core.experiment import Effect, RunSpec, run
from tepa_core.logs import import_log
from tepa_core.store import Store, UnknownPrecedentError, precedent_id, precedent_life, queries, save_run
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.foreseen import effect_now
from tepa_core.store.previewed import preview

TRAVEL = Path(__file__).parents[2] / "data" / "travel_preferences.csv"
ANA = Actor("Ana", authenticated=False, role=Role.REVIEWER)
CONVENTIONAL = precedent_id("tepa", 0, "", "read csv", "conventional")
SHOWN = ["spans", "transitions", "followed", "items"]


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    """Compare what two tables say: a missing value is missing however it is kept."""
    assert sorted(left.columns) == sorted(right.columns)
    sides = [frame[sorted(left.columns)].astype(object) for frame in (left, right)]
    pd.testing.assert_frame_equal(*(side.where(side.notna(), None) for side in sides))


@pytest.fixture
def simulation(tmp_path: Path) -> tuple[Store, str]:
    store = Store(tmp_path / "a.duckdb", PROGRAM)
    return store, save_run(store, run(RunSpec.build("controlled", seeds=2, methods=["tepa", "no_memory"])))


@pytest.fixture
def log(tmp_path: Path) -> tuple[Store, str]:
    store = Store(tmp_path / "a.duckdb", PROGRAM)
    return store, import_log(store, TRAVEL).run_id


@pytest.mark.parametrize(
    ("action", "pinned"), [(Action.REACTIVATE, False), (Action.REACTIVATE, True), (Action.CONFIRM, False)]
)
def test_life_with_the_decision_is_the_life_after_it_was_taken(
    simulation: tuple[Store, str], action: Action, pinned: bool
) -> None:
    store, run_id = simulation
    found = preview(store, run_id, CONVENTIONAL, action, pinned=pinned)
    assert found.at == 81
    assert isinstance(found.effect, Effect)
    before = queries.success_per_seed(store, run_id)
    record(store.acting(ANA), DecisionRequest(run_id, CONVENTIONAL, action, Category.OTHER, "x", pinned=pinned))
    life = precedent_life(store, run_id, CONVENTIONAL)
    for name in SHOWN:
        same(getattr(found.after, name), getattr(life, name))
    for value in life.values["id"]:
        same(found.after.course(value), life.course(value))
    after = queries.success_per_seed(store, run_id)
    of = (before["method"] == "tepa") & (before["seed"] == 0)
    change = dict(zip(after.loc[of, "phase"], after.loc[of, "success"] - before.loc[of, "success"], strict=True))
    foreseen = found.effect.success.set_index("phase")["difference"]
    assert all(np.isclose(foreseen[phase], difference) for phase, difference in change.items())


def test_log_the_same(log: tuple[Store, str]) -> None:
    store, run_id = log
    window = queries.precedents(store, run_id, subject="u-mara", key="seat").set_index("value").loc["window", "id"]
    found = preview(store, run_id, window, Action.CONFIRM)
    assert isinstance(found.effect, LogEffect)
    # Its last revocation: 16 July 2025 (README of the data).
    assert found.at == pd.Timestamp("2025-07-16T07:55", tz="UTC")
    at = int(found.at.value // 1000)
    record(store.acting(ANA), DecisionRequest(run_id, window, Action.CONFIRM, Category.OBSOLETE, "x", at=at))
    life = precedent_life(store, run_id, window)
    for name in ("spans", "transitions", "items"):
        same(getattr(found.after, name), getattr(life, name))
    for value in life.values["id"]:
        same(found.after.course(value), life.course(value))


def test_nothing_is_written(simulation: tuple[Store, str]) -> None:
    store, run_id = simulation
    generation = store.generation
    preview(store, run_id, CONVENTIONAL, Action.BOTH_VALID)
    assert store.generation == generation


def test_effect_now_is_beside_the_other_decisions(simulation: tuple[Store, str]) -> None:
    store, run_id = simulation
    alone = preview(store, run_id, CONVENTIONAL, Action.REACTIVATE).effect.as_dict()
    first = record(store.acting(ANA), DecisionRequest(run_id, CONVENTIONAL, Action.REACTIVATE, Category.OTHER, "x"))
    assert effect_now(store, run_id, first.decision_id)["success"] == alone["success"]
    with pytest.raises(DecisionRefused, match="no decision"):
        effect_now(store, run_id, "d0")


def test_what_cannot_be_decided_is_refused_in_a_sentence(simulation: tuple[Store, str]) -> None:
    store, run_id = simulation
    with pytest.raises(DecisionRefused, match="not in the archive after task 40"):
        preview(store, run_id, CONVENTIONAL, Action.REACTIVATE, at=40)
    with pytest.raises(DecisionRefused, match="undo has no preview"):
        preview(store, run_id, CONVENTIONAL, Action.UNDO)
    with pytest.raises(UnknownPrecedentError, match="no precedent p0"):
        preview(store, run_id, "p0", Action.CONFIRM)
