"""The impact of a setting: exactly the precedents whose transitions differ, found by two passes of a live memory."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tepa_core.experiment import RunSpec, run
from tepa_core.experiment.compiled_play import Draws
from tepa_core.experiment.impact import log_counts, log_impact, run_impact
from tepa_core.experiment.sweep import Grid
from tepa_core.importers import ColumnMapping, apply, open_log
from tepa_core.lifecycle import EncodedLog, Ledger, Rule, State, Thresholds, Transition, Verdict, encode, replay

TRAVEL = Path(__file__).parents[2] / "data" / "travel_preferences.csv"

Place = tuple[str, str, str]


@pytest.fixture(scope="module")
def travel() -> pd.DataFrame:
    table = open_log(TRAVEL)
    return apply(table, ColumnMapping.suggest(table.columns)).evidence


@pytest.fixture(scope="module")
def encoded(travel: pd.DataFrame) -> tuple[EncodedLog, pd.DataFrame]:
    return encode(travel)


def lived(evidence: pd.DataFrame, thresholds: Thresholds) -> tuple[dict[Place, list[Transition]], dict[Place, State]]:
    """One pass of a live memory over the evidence, in order of time."""
    ledger = Ledger(thresholds)
    steps: dict[Place, list[Transition]] = defaultdict(list)
    for item in evidence.sort_values(["event_time", "seq"], kind="stable").itertuples():
        for change in ledger.observe((item.subject, item.key_id), item.value_id, item.supports, item.event_time.value):
            steps[item.subject, item.key_id, str(change.value)].append(change)
    states = {(*p.key, p.value): p.state for p in ledger.precedents()}  # type: ignore[misc]
    return steps, states


def test_a_log_lists_exactly_the_precedents_whose_transitions_differ(
    travel: pd.DataFrame, encoded: tuple[EncodedLog, pd.DataFrame]
) -> None:
    now, new = Thresholds(), Thresholds(theta_rec=0.2)
    found = log_impact(*encoded, now, new)
    (before, state_before), (after, state_after) = lived(travel, now), lived(travel, new)
    differ = {place for place in state_before if before.get(place) != after.get(place)}
    assert 0 < len(differ) < len(state_before)
    listed = [(row.subject, row.key_id, row.value_id) for row in found.itertuples()]
    assert len(listed) == len(set(listed))
    assert set(listed) == differ
    for row, place in zip(found.itertuples(), listed, strict=True):
        one, other = before.get(place, []), after.get(place, [])
        assert (row.state_now, row.state_new) == (state_before[place].label, state_after[place].label)
        assert (row.transitions_now, row.transitions_new) == (len(one), len(other))
        apart = [step.at for step in {*one} ^ {*other}]
        # The clock of a log counts microseconds, that of a timestamp nanoseconds.
        assert row.first_difference == min(apart) // 1000
    # Those that end elsewhere come first.
    moved = (found["state_now"] != found["state_new"]).tolist()
    assert moved == sorted(moved, reverse=True)


def test_the_same_thresholds_have_no_impact(encoded: tuple[EncodedLog, pd.DataFrame]) -> None:
    assert log_impact(*encoded, Thresholds(), Thresholds()).empty
    # Between one of three and two of three there is no share for theta_rec to tell apart.
    assert log_impact(*encoded, Thresholds(), Thresholds(theta_rec=0.6)).empty


def test_the_order_of_the_rows_does_not_matter(travel: pd.DataFrame, encoded: tuple[EncodedLog, pd.DataFrame]) -> None:
    setting = Thresholds(), Thresholds(theta_rec=0.2, theta_prop=2)
    shuffled = encode(travel.sample(frac=1, random_state=3))
    one, other = log_impact(*encoded, *setting), log_impact(*shuffled, *setting)
    order = ["subject", "key_id", "value_id"]
    pd.testing.assert_frame_equal(
        one.sort_values(order, ignore_index=True), other.sort_values(order, ignore_index=True)
    )


def test_a_decision_on_record_counts_in_both_replays() -> None:
    day = 86_400_000_000
    evidence = pd.DataFrame(
        {
            "seq": range(8),
            "subject": "mara",
            "key_id": "seat",
            "value_id": ["window"] * 4 + ["aisle"] * 2 + ["window", "aisle"],
            "supports": True,
            "event_time": [day * i for i in range(8)],
            "verdict": [0] * 6 + [int(Verdict.PIN), 0],
        }
    )
    log, labels = encode(evidence)
    # Active on day 2, then 1, 0, 0: the window seat falls on day 5, and a person brings it back on day 6, pinned.
    # Without the recent rule it stays Active. The third support of the aisle proposes that in both lives, but what is
    # pinned gives no place.
    found = log_impact(log, labels, Thresholds(), Thresholds(theta_rec=0)).to_dict("records")
    assert found == [
        {
            "subject": "mara",
            "key_id": "seat",
            "value_id": "window",
            "state_now": "active",
            "state_new": "active",
            "transitions_now": 4,
            "transitions_new": 2,
            "first_difference": 5 * day,
        }
    ]
    counts = log_counts(log, Thresholds(), Grid.parse("theta_rec=0:0.34:2"))
    assert counts["active"].tolist() == [1, 1]
    assert counts["revocations"].tolist() == [0, 1]
    # What a person decides is no re-activation by the rule.
    assert counts["reactivations"].tolist() == [0, 0]


def test_counts_over_a_grid_are_those_of_each_replay(encoded: tuple[EncodedLog, pd.DataFrame]) -> None:
    log, _ = encoded
    for text in ("theta_rec=0:1:31", "n_rec=1:8:8", "theta_rev=0:0.9:5"):
        grid = Grid.parse(text)
        found = log_counts(log, Thresholds(theta_prop=2), grid)
        assert found.columns.tolist() == [grid.name, "active", "revoked", "revocations", "reactivations"]
        assert found[grid.name].tolist() == list(grid.values)
        for row, thresholds in zip(found.itertuples(), grid.apply(Thresholds(theta_prop=2)), strict=True):
            result = replay(log, thresholds)
            assert row.active == (result.precedents["state"] == State.ACTIVE).sum()
            assert row.revoked == (result.precedents["state"] == State.REVOKED).sum()
            assert row.revocations == (result.transitions["to_state"] == State.REVOKED).sum()
            assert row.reactivations == (result.transitions["rule"] == Rule.REACTIVATED).sum()
        assert found["revocations"].nunique() > 1


class StoppedError(Exception):
    pass


def test_both_can_be_stopped(encoded: tuple[EncodedLog, pd.DataFrame]) -> None:
    log, labels = encoded
    said: list[float] = []
    log_impact(log, labels, Thresholds(), Thresholds(n_rec=5), lambda done, text: said.append(done))
    log_counts(log, Thresholds(), Grid.parse("n_rec=1:4:4"), lambda done, text: said.append(done))
    assert said == [0.0, 0.45, 0.9, 1.0, 0.0, 0.25, 0.5, 0.75, 1.0]

    def stop(done: float, sentence: str) -> None:
        if done >= 0.4:
            raise StoppedError

    with pytest.raises(StoppedError):
        log_impact(log, labels, Thresholds(), Thresholds(n_rec=5), stop)
    with pytest.raises(StoppedError):
        log_counts(log, Thresholds(), Grid.parse("n_rec=1:4:4"), stop)


def test_an_empty_log_has_no_impact(travel: pd.DataFrame) -> None:
    log, labels = encode(travel.head(0))
    assert log_impact(log, labels, Thresholds(), Thresholds(n_rec=5)).empty
    assert log_counts(log, Thresholds(), Grid.parse("n_rec=1:2:2"))["active"].tolist() == [0, 0]


@pytest.mark.parametrize(("stream", "method"), [("controlled", "tepa"), ("preference", "tepa_full")])
def test_a_simulation_lists_the_precedents_whose_life_differs(stream: str, method: str) -> None:
    spec = RunSpec.build(stream, seeds=4, first_seed=3, methods=[method], world={"key_noise": 0.05})
    new = Thresholds(n_rec=5, theta_prop=2)
    found = run_impact(spec, new, method=method)
    sides = []
    for thresholds in (spec.thresholds, new):
        evidence = run(dataclasses.replace(spec, thresholds=thresholds)).evidence
        steps: dict[tuple[int, str, str], list[tuple[object, ...]]] = defaultdict(list)
        states: dict[tuple[int, str, str], str] = {}
        for seed, items in evidence.groupby("seed"):
            ledger = Ledger(thresholds)
            for item in items.itertuples():
                admits = bool(item.admitted) if pd.notna(item.admitted) else True
                for change in ledger.observe(item.key, item.value, item.supports, item.t, lambda _, a=admits: a):
                    steps[int(str(seed)), item.key, str(change.value)].append(
                        (change.at, change.from_state, change.to_state, change.rule)
                    )
            states |= {(int(str(seed)), str(p.key), str(p.value)): p.state.label for p in ledger.precedents()}
        sides.append((steps, states))
    (before, state_before), (after, state_after) = sides
    differ = {place for place in {*before, *after} if before.get(place, []) != after.get(place, [])}
    assert differ
    listed = [(row.seed, row.key_id, row.value_id) for row in found.itertuples()]
    assert sorted(listed) == sorted(differ)
    for row, place in zip(found.itertuples(), listed, strict=True):
        assert (row.method, row.subject) == (method, "")
        assert row.state_now == state_before.get(place, "candidate")
        assert row.state_new == state_after.get(place, "candidate")
        assert row.transitions_now == len(before.get(place, []))
        assert row.transitions_new == len(after.get(place, []))
        apart = {*before.get(place, [])} ^ {*after.get(place, [])}
        assert row.first_difference == min(at for at, *_ in apart)  # type: ignore[type-var]
    one = run_impact(spec, new, method=method, seed=5)
    pd.testing.assert_frame_equal(one, found[found["seed"] == 5].reset_index(drop=True))
    drawn = Draws.of(spec)
    pd.testing.assert_frame_equal(run_impact(spec, new, method=method, draws=drawn), found)
    assert run_impact(spec, spec.thresholds, method=method, draws=drawn).empty


def test_a_seed_that_was_not_run_is_refused() -> None:
    with pytest.raises(ValueError, match="no seed 9; its seeds are 3 to 4"):
        run_impact(RunSpec.build("controlled", seeds=2, first_seed=3), Thresholds(), seed=9)


def test_a_million_items_are_compared_in_one_go() -> None:
    rng = np.random.Generator(np.random.PCG64(2))
    n, keys = 1_000_000, 50_000
    key = rng.integers(0, keys, n)
    value = rng.integers(0, 2, n)
    log = EncodedLog(
        (2 * key + value).astype(np.int32),
        np.ones(n, np.bool_),
        np.arange(n),
        np.arange(n),
        np.arange(0, 2 * keys + 1, 2),
    )
    labels = pd.DataFrame({"subject": "", "key_id": np.repeat(np.arange(keys), 2), "value_id": [0, 1] * keys})
    found = log_impact(log, labels, Thresholds(), Thresholds(theta_rec=0.2))
    now, new = replay(log, Thresholds()), replay(log, Thresholds(theta_rec=0.2))
    moved = now.precedents["state"] != new.precedents["state"]
    assert (found["state_now"] != found["state_new"]).sum() == moved.sum() > 1000
