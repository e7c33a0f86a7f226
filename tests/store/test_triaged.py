"""The ranked archive of a stored run: as it stood at a moment, by nothing known later, with a person's decisions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from tepa_core.decisions import Action, Actor, Category, Role
from tepa_core.experiment import RunResult, RunSpec, run
from tepa_core.lifecycle import Thresholds
from tepa_core.logs import import_log
from tepa_core.store import LogImport, Store, UnknownRunError, queries, save_log, save_run, triaged
from tepa_core.store.decide import DecisionRequest, record
from tests.work import work_of

ROOT = Path(__file__).parents[2]
MakeLog = Callable[..., LogImport]
REVIEWER = Actor("Ana Lima", False, Role.REVIEWER)


@pytest.fixture(scope="module")
def light_flips() -> RunResult:
    return run(RunSpec.build("controlled", seeds=50, methods=["tepa", "no_memory"], world={"light_flip": 0.10}))


def auc(wrong: pd.Series, score: pd.Series) -> float:
    u = mannwhitneyu(score[wrong], score[~wrong]).statistic
    return float(u / (wrong.sum() * (~wrong).sum()))


@pytest.mark.parametrize("as_of", [80, 100])
def test_ranks_wrong_revocations_above_right_ones(store: Store, light_flips: RunResult, as_of: int) -> None:
    run_id = save_run(store, light_flips)
    ranked = triaged(store, run_id, as_of=as_of, every=True)
    assert ranked["revoked_at"].max() <= as_of
    assert ranked["score"].is_monotonic_decreasing
    # The stream's own truth: conventional is right on csv but for tasks 80 to 119.
    wrong = (ranked["value"] == "conventional") != ranked["revoked_at"].between(80, 119)
    assert set(ranked["key"]) == {"read csv"}
    assert auc(wrong, ranked["score"]) >= 0.8
    last = triaged(store, run_id, as_of=as_of)
    assert last["id"].is_unique
    assert set(last["id"]) == set(ranked["id"])
    assert (
        auc(wrong.groupby(ranked["transition_id"]).first()[last["transition_id"]].reset_index(drop=True), last["score"])
        >= 0.8
    )


def test_each_further_revocation_costs_as_much_as_the_one_before(store: Store) -> None:
    revocations, work = [], []
    for seeds in (12, 25, 50):
        spec = RunSpec.build("controlled", seeds=seeds, methods=["tepa"], world={"light_flip": 0.10})
        run_id = save_run(store, run(spec))
        # The first question of a process compiles, imports and fills caches.
        triaged(store, run_id, every=True)
        ranked, calls = work_of(lambda run_id=run_id: triaged(store, run_id, every=True))
        revocations.append(len(ranked))
        work.append(calls)
    assert revocations[2] > 1.8 * revocations[1] > 3 * revocations[0]
    earlier, later = np.diff(work) / np.diff(revocations)
    assert 0 < later <= 1.1 * earlier


def test_reads_nothing_later(store: Store, light_flips: RunResult) -> None:
    run_id = save_run(store, light_flips)
    before = triaged(store, run_id, as_of=90, every=True)
    with store.write() as cursor:
        cursor.execute("DELETE FROM evidence WHERE run_id = ? AND occurred > 90", [run_id])
        cursor.execute("DELETE FROM truth WHERE run_id = ?", [run_id])
        cursor.execute("DELETE FROM episode WHERE run_id = ?", [run_id])
    pd.testing.assert_frame_equal(before, triaged(store, run_id, as_of=90, every=True))
    pd.testing.assert_frame_equal(before, triaged(store, run_id, every=True))


def test_listing_a_seed_changes_no_number(store: Store, simulation: RunResult) -> None:
    run_id = save_run(store, simulation)
    everything = triaged(store, run_id)
    one = triaged(store, run_id, method="tepa", seed=5)
    assert set(everything["seed"]) == {4, 5, 6}
    expected = everything[everything["seed"] == 5].reset_index(drop=True)
    pd.testing.assert_frame_equal(one, expected)
    csv = simulation.evidence.query("method == 'tepa'")["key"].eq("read csv").mean()
    assert one["exposure"].tolist() == pytest.approx([csv] * len(one))


def test_end_of_a_log_lists_the_archive(store: Store) -> None:
    run_id = import_log(store, ROOT / "data" / "travel_preferences.csv").run_id
    ranked = triaged(store, run_id)
    listed = queries.archive(store, run_id).set_index("id")
    assert set(ranked["id"]) == set(listed.index)
    mine = ranked.set_index("id").loc[listed.index]
    for column in ("transition_id", "key", "value", "revoked_at", "rule", "support", "conflict", "lives"):
        assert mine[column].tolist() == listed[column].tolist()
    assert mine["would_prevent"].tolist() == listed["would_prevent"].tolist()
    back = listed["state"] != "revoked"
    assert (mine["state"] == "active").tolist() == back.tolist()


def test_wrong_revocations_of_the_travel_log_come_first(store: Store) -> None:
    run_id = import_log(store, ROOT / "data" / "travel_preferences.csv").run_id
    truth = pd.read_csv(ROOT / "data" / "travel_preferences_truth.csv")
    truth["from"] = pd.to_datetime(truth["from"], utc=True)
    truth["to"] = pd.to_datetime(truth["to"], utc=True).fillna(pd.Timestamp("2030-01-01", tz="UTC").as_unit("us"))
    ranked = triaged(store, run_id, as_of=pd.Timestamp("2025-10-01"), every=True)
    held = truth.assign(value=truth["value"].str.lower())
    wrong = []
    for row in ranked.itertuples():
        mine = held[
            (held["user"] == row.subject) & (held["key"] == row.key) & (held["value"] == str(row.value).lower())
        ]
        wrong.append(bool(((mine["from"] <= row.revoked_at) & (row.revoked_at < mine["to"])).any()))
    assert 10 < sum(wrong) < len(wrong) - 10
    assert auc(pd.Series(wrong), ranked["score"]) >= 0.9


def test_as_of_a_time_is_the_log_until_then(store: Store, make_log: MakeLog, random_rows: list[Any]) -> None:
    whole = save_log(store, make_log(random_rows, "whole.csv"), Thresholds())
    part = [row for row in random_rows if row[0] <= 300]
    half = save_log(store, make_log(part, "half.csv"), Thresholds())
    moment = pd.Timestamp("2026-03-01T05:00Z")
    known = triaged(store, whole, as_of=moment, every=True)
    assert 5 < len(known) < len(triaged(store, whole, every=True))
    pd.testing.assert_frame_equal(known, triaged(store, half, every=True))
    for same in (moment.tz_localize(None), moment.to_pydatetime(), int(moment.value // 1000)):
        pd.testing.assert_frame_equal(known, triaged(store, whole, as_of=same, every=True))


def test_late_evidence_is_known_from_its_arrival_on(store: Store, make_log: MakeLog) -> None:
    said = ["tea"] * 5 + ["coffee"] * 2
    log = make_log([(minute, "u", "drink", value, True, None) for minute, value in enumerate(said)])
    arrived = log.evidence["event_time"].copy()
    arrived.iloc[-1] += pd.Timedelta(hours=2)
    run_id = save_log(
        store,
        LogImport(
            **{name: getattr(log, name) for name in log.__slots__}
            | {"evidence": log.evidence.assign(ingested_at=arrived)}
        ),
        Thresholds(),
    )
    assert triaged(store, run_id, as_of=pd.Timestamp("2026-03-01T01:00")).empty
    assert triaged(store, run_id, as_of=pd.Timestamp("2026-03-01T02:06"))["value"].tolist() == ["tea"]


def test_columns_say_who_took_over(store: Store, make_log: MakeLog) -> None:
    said = ["Tea"] * 5 + ["Coffee"] * 4
    rows = [(minute, "u", "Drink", value, True, None) for minute, value in enumerate(said)]
    row = triaged(store, save_log(store, make_log(rows), Thresholds())).iloc[0]
    assert (row["subject"], row["key"], row["key_id"], row["value"]) == ("u", "Drink", "drink", "Tea")
    assert (row["successor"], row["successor_supports"], row["conflicts_since"]) == ("Coffee", 2, 2)
    assert row["revoked_at"] == pd.Timestamp("2026-03-01T00:06Z")


def test_decisions_in_effect_by_then_are_replayed(store: Store, make_log: MakeLog) -> None:
    said = ["tea"] * 5 + ["coffee"] * 2
    run_id = save_log(
        store, make_log([(minute, "u", "drink", value, True, None) for minute, value in enumerate(said)]), Thresholds()
    )
    before = triaged(store, run_id)
    assert before["state"].tolist() == ["revoked"]
    request = DecisionRequest(
        run_id, before["id"].iloc[0], Action.REACTIVATE, Category.WRONG_REVOCATION, "still likes it"
    )
    record(store.acting(REVIEWER), request)
    after = triaged(store, run_id)
    assert after["state"].tolist() == ["active"]
    assert after["came_back"].tolist() == [True]
    assert after["transition_id"].tolist() == before["transition_id"].tolist()
    assert after["p_wrong"].tolist() == pytest.approx(before["p_wrong"].tolist())
    # Ten minutes earlier nothing had been decided.
    earlier = triaged(store, run_id, as_of=pd.Timestamp("2026-03-01T00:05"))
    assert earlier.empty
    assert list(earlier.columns) == list(after.columns)


def test_refuses_what_the_run_has_not(store: Store, simulation: RunResult) -> None:
    run_id = save_run(store, simulation)
    with pytest.raises(UnknownRunError):
        triaged(store, "nothing")
    with pytest.raises(
        ValueError, match=r"no lifecycle of method 'append_only'; it has those of tepa \(seeds 4 to 6\)"
    ):
        triaged(store, run_id, method="append_only")
    with pytest.raises(ValueError, match="no lifecycle of seed 9 of method 'tepa'"):
        triaged(store, run_id, method="tepa", seed=9)
    with pytest.raises(ValueError, match="counts tasks"):
        triaged(store, run_id, as_of=pd.Timestamp("2026-03-01"))
    assert triaged(store, run_id, as_of=-1).empty
    assert triaged(store, run_id, method="tepa_norev").empty
