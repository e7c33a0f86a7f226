"""A run is tables: what is in them comes from the streams and from what the methods did."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tepa_core.experiment import RunResult, RunSpec, play, run, setting
from tepa_core.experiment.run import phase_table
from tepa_core.lifecycle import Thresholds
from tepa_core.methods import METHODS
from tepa_core.streams import ControlledSpec

METHOD_IDS = ("tepa", "tepa_norev", "no_memory", "append_only", "last_write_wins")


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run(RunSpec.build("controlled", seeds=3, first_seed=5, methods=METHOD_IDS, world={"key_noise": 0.1}))


@pytest.fixture(scope="module")
def fifty() -> RunResult:
    """The paper's fifty seeds of the drift benchmark."""
    return run(RunSpec.build("controlled"))


def test_one_row_per_method_seed_and_task(result: RunResult) -> None:
    episodes = result.episodes
    assert len(episodes) == len(METHOD_IDS) * 3 * 160
    assert not episodes.duplicated(["method", "seed", "t"]).any()
    assert set(episodes["method"]) == set(METHOD_IDS)
    assert sorted(set(episodes["seed"])) == [5, 6, 7]
    assert set(episodes["t"]) == set(range(160))


@pytest.mark.parametrize("method", METHOD_IDS)
def test_episodes_are_what_was_played(result: RunResult, method: str) -> None:
    for seed in (5, 6, 7):
        stream = ControlledSpec(key_noise=0.1).make(seed)
        played = play(stream, METHODS[method].make(setting(result.spec, stream)))
        rows = result.episodes[(result.episodes["method"] == method) & (result.episodes["seed"] == seed)]
        assert rows["action"].tolist() == [stream.values[a] for a in played.action]
        assert rows["key"].tolist() == [stream.keys[k] for k in stream.key]
        assert rows["phase"].tolist() == [stream.phase_names[p] for p in stream.phase]
        assert rows["success"].tolist() == stream.outcome[np.arange(160), played.action].tolist()
        assert rows["size"].tolist() == played.size.tolist()
        for column, codes in (("followed", played.followed), ("retrieved", played.retrieved)):
            assert rows[column].isna().tolist() == (codes < 0).tolist()
            assert rows[column].dropna().tolist() == [stream.values[c] for c in codes if c >= 0]


def test_no_memory_retrieves_nothing(result: RunResult) -> None:
    rows = result.episodes[result.episodes["method"] == "no_memory"]
    assert rows["followed"].isna().all()
    assert rows["retrieved"].isna().all()
    assert not rows["exposed"].dropna().any()


def test_exposed_is_a_retrieved_value_that_is_not_right(result: RunResult) -> None:
    rows = result.episodes
    right = np.where(
        rows["key"] == "read json",
        "conventional",
        np.where(rows["phase"] == "reversal", "alternative", "conventional"),
    )
    known = rows["key"].isin(["read csv", "read json"])
    # A corrupted key has no right value, so nothing can be said.
    assert (rows["exposed"].isna() == ~known).all()
    expected = rows["retrieved"].notna() & (rows["retrieved"].astype(object) != right)
    assert (rows["exposed"][known].astype(bool) == expected[known]).all()
    assert expected[known & (rows["method"] == "append_only") & (rows["phase"] == "reversal")].sum() > 0


def test_evidence_of_the_methods_with_a_life(result: RunResult) -> None:
    evidence = result.evidence
    assert set(evidence["method"]) == {"tepa", "tepa_norev"}
    assert len(evidence) == 2 * 3 * 160
    # What a drift stream's evidence says is the outcome of the action taken.
    episodes = result.episodes[result.episodes["method"].isin(["tepa", "tepa_norev"])].reset_index(drop=True)
    for left, right in (("value", "action"), ("supports", "success"), ("key", "key"), ("t", "t"), ("seed", "seed")):
        assert evidence[left].tolist() == episodes[right].tolist()
    assert evidence["seq"].tolist() == evidence["t"].tolist()


def test_truth_and_phases(result: RunResult) -> None:
    one = result.truth[result.truth["seed"] == 5].drop(columns="seed").to_numpy().tolist()
    assert one == [
        ["read csv", "conventional", 0, 80],
        ["read csv", "alternative", 80, 120],
        ["read csv", "conventional", 120, 160],
        ["read json", "conventional", 0, 160],
    ]
    assert result.phases.to_numpy().tolist() == [
        ["stable", 0, 40],
        ["light", 40, 80],
        ["reversal", 80, 120],
        ["return", 120, 160],
    ]
    pd.testing.assert_frame_equal(phase_table(ControlledSpec().make(0)), result.phases)


def test_methods_meet_the_same_draws(result: RunResult) -> None:
    keys = result.episodes.pivot(index=["seed", "t"], columns="method", values="key").astype(object)
    for method in METHOD_IDS[1:]:
        assert (keys[method] == keys["tepa"]).all()


def test_the_same_spec_gives_the_same_tables(result: RunResult) -> None:
    again = run(result.spec)
    for name in ("episodes", "evidence", "truth", "phases"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(result, name))


def test_a_method_alone_does_as_among_others(result: RunResult) -> None:
    alone = run(RunSpec.build("controlled", seeds=3, first_seed=5, methods=["tepa"], world={"key_noise": 0.1}))
    among = result.episodes[result.episodes["method"] == "tepa"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.episodes, among)


def test_a_run_without_lifecycles_has_no_evidence() -> None:
    bare = run(RunSpec.build("controlled", seeds=1, methods=["no_memory"]))
    assert len(bare.evidence) == 0
    assert {"method", "seed", "seq", "t", "phase", "key", "value", "supports"} <= set(bare.evidence.columns)


def test_thresholds_reach_the_methods() -> None:
    def active(thresholds: Thresholds) -> int:
        rows = run(RunSpec.build("controlled", seeds=1, methods=["tepa"], thresholds=thresholds)).episodes
        return int(rows["retrieved"].first_valid_index())

    # With one support instead of three the first retrieval comes two tasks of the key earlier.
    stream = ControlledSpec().make(0)
    assert active(Thresholds(theta_prop=1)) < active(Thresholds())
    assert active(Thresholds(theta_prop=1)) == min(np.flatnonzero(stream.key == k)[1] for k in (0, 1))


def test_progress_reaches_the_end_in_order() -> None:
    said: list[tuple[float, str]] = []
    run(
        RunSpec.build("controlled", seeds=10, methods=["no_memory", "tepa"]),
        lambda done, text: said.append((done, text)),
    )
    fractions = [done for done, _ in said]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)
    assert all(0 < done <= 1 for done in fractions)
    assert any("tepa" in text for _, text in said)


def test_an_exception_in_progress_stops_the_run() -> None:
    class StoppedError(Exception):
        pass

    def stop(done: float, text: str) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        run(RunSpec.build("controlled", seeds=10, methods=["no_memory"]), stop)


REVERSAL = {
    # The paper's Table of the controlled benchmark; seeds differ from its own, so within sampling error of 50 seeds.
    "no_memory": (0.309, 0.03),
    "append_only": (0.210, 0.03),
    "last_write_wins": (0.210, 0.03),
    "conflict_aware_recency": (0.210, 0.03),
    "semantic_retrieval": (0.21, 0.03),
    "temporal_recency": (0.21, 0.03),
    "tepa_norev": (0.211, 0.03),
    "reactive_forgetting": (0.796, 0.05),
    # One geometric wait of mean 10 tasks per seed: its mean over 50 seeds has a standard error of 0.027.
    "oracle_reset": (0.812, 0.08),
    "tepa": (0.950, 0.01),
}


@pytest.mark.parametrize("method", REVERSAL)
def test_reversal_success_is_what_the_paper_reports(fifty: RunResult, method: str) -> None:
    rows = fifty.episodes[(fifty.episodes["method"] == method) & (fifty.episodes["phase"] == "reversal")]
    reported, tolerance = REVERSAL[method]
    assert rows["success"].mean() == pytest.approx(reported, abs=tolerance)


def test_paired_differences_of_the_paper(fifty: RunResult) -> None:
    overall = fifty.episodes.groupby("method")["success"].mean()
    reversal = fifty.episodes[fifty.episodes["phase"] == "reversal"].groupby("method")["success"].mean()
    assert overall["tepa"] - overall["append_only"] == pytest.approx(0.167, abs=0.02)
    assert reversal["tepa"] - reversal["append_only"] == pytest.approx(0.740, abs=0.03)
    assert reversal["no_memory"] - reversal["append_only"] == pytest.approx(0.098, abs=0.02)
    # A value that is never revoked is followed as the append-only store follows it.
    assert overall["tepa_norev"] == pytest.approx(overall["append_only"], abs=0.005)


def test_without_candidates_tepa_loses_most_of_the_reversal() -> None:
    rows = run(RunSpec.build("controlled", methods=["tepa"], fallback="base_policy")).episodes
    # Documented beside the default: about 0.48 instead of 0.95.
    assert rows.loc[rows["phase"] == "reversal", "success"].mean() == pytest.approx(0.48, abs=0.05)


def test_win_stay_lose_shift_competes_where_evidence_is_clean(fifty: RunResult) -> None:
    overall = fifty.episodes.groupby("method")["success"].mean()
    assert overall["tepa"] - overall["win_stay_lose_shift"] == pytest.approx(-0.003, abs=0.01)
