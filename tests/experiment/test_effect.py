"""What a decision changes in a simulation, against a plain loop over the stream with a live memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from tepa_core.experiment import Override, RunSpec, decision_effect, play, run, setting
from tepa_core.lifecycle import Ledger, Thresholds, Verdict, encode, replay, tables
from tepa_core.methods import METHODS
from tepa_core.streams import ControlledSpec, Stream

CSV, A, B = 0, 0, 1
KEY, OLD, NEW = "read csv", "conventional", "alternative"
SPEC = RunSpec.build("controlled", seeds=6, methods=["tepa", "no_memory", "append_only"])


def by_hand(stream: Stream, decisions: Sequence[Override] = ()) -> npt.NDArray[np.bool_]:
    """Play a drift stream with a live memory: recall, else the best candidate, else the agent's own pick."""
    memory = Ledger()
    success = []
    for t in range(len(stream)):
        key = int(stream.key[t])
        offered = memory.recall(key)
        if offered is None:
            offered = memory.candidate(key, (A, B))
        action = int(stream.base_action[t]) if offered is None else offered
        success.append(bool(stream.outcome[t, action]))
        memory.observe(key, action, success[-1], t)
        for decision in decisions:
            if decision.t == t:
                {
                    Verdict.REACTIVATE: memory.reactivate,
                    Verdict.CONFIRM: memory.confirm,
                    Verdict.BOTH_VALID: memory.both_valid,
                    Verdict.PIN: lambda k, v: memory.reactivate(k, v, pin=True),
                }[decision.verdict](decision.key, decision.value)
    return np.array(success)


def in_phases(success: npt.NDArray[np.bool_]) -> list[float]:
    """Stable, light, reversal, return, overall: 40 tasks each."""
    return [*success.reshape(4, 40).mean(axis=1).tolist(), float(success.mean())]


@pytest.mark.parametrize(
    ("verdict", "at"),
    [
        (Verdict.REACTIVATE, 81),
        (Verdict.PIN, 81),
        (Verdict.REACTIVATE, 120),
        (Verdict.CONFIRM, 81),
        (Verdict.BOTH_VALID, 81),
    ],
)
def test_numbers_of_seed_0_equal_those_of_a_plain_loop(verdict: Verdict, at: int) -> None:
    stream = ControlledSpec().make(0)
    before, after = by_hand(stream), by_hand(stream, [Override(at, CSV, A, verdict)])
    effect = decision_effect(SPEC, "tepa", 0, KEY, OLD, verdict, at)
    table = effect.success
    assert table["phase"].tolist() == ["stable", "light", "reversal", "return", "overall"]
    assert table["before"].tolist() == pytest.approx(in_phases(before))
    assert table["after"].tolist() == pytest.approx(in_phases(after))
    alone = np.array(in_phases(stream.outcome[np.arange(160), stream.base_action]))
    for side, success in (("before", before), ("after", after)):
        expected = (alone - np.array(in_phases(success))) / alone
        assert table[f"mpi_{side}"].tolist() == pytest.approx(expected.tolist())
    np.testing.assert_allclose(table["mpi_difference"], table["mpi_after"] - table["mpi_before"])
    changed = effect.episodes
    assert effect.episodes_changed == len(changed) > 0
    assert (changed["t"] > at).all()
    different = np.flatnonzero(before != after)
    assert set(different) <= set(changed["t"])
    assert changed.set_index("t")["success_after"].loc[different].tolist() == after[different].tolist()


def test_reactivating_a_rightly_revoked_value_costs_and_pinning_it_costs_most_of_the_phase() -> None:
    def reversal(verdict: Verdict) -> float:
        table = decision_effect(SPEC, "tepa", 0, KEY, OLD, verdict, 81).success.set_index("phase")
        return float(table.loc["reversal", "difference"])

    # One life more is three more uses of a value that fails: 3 of 40.
    assert reversal(Verdict.REACTIVATE) == pytest.approx(-3 / 40)
    # Pinned it fails on every csv task after 81; the json tasks still succeed.
    stream = ControlledSpec().make(0)
    csv = int((stream.key[82:120] == CSV).sum())
    assert reversal(Verdict.PIN) <= -(csv - 3) / 40 < -0.5


def test_reactivating_it_when_it_is_right_again_gains() -> None:
    effect = decision_effect(SPEC, "tepa", 0, KEY, OLD, Verdict.REACTIVATE, 120)
    table = effect.success.set_index("phase")["difference"]
    assert table["return"] > 0
    assert table[["stable", "light", "reversal"]].tolist() == [0, 0, 0]
    assert effect.transitions.query("side == 'after'")["rule"].tolist() == ["superseded", "decided"]
    assert effect.transitions.query("side == 'before'")["rule"].tolist() == ["recent", "reactivated"]
    assert effect.transitions_changed == 4


def test_reactivating_wrongly_revoked_values_gains_in_sum() -> None:
    spec = RunSpec.build("controlled", seeds=50, methods=["tepa"], world={"light_flip": 0.10})
    result = run(spec)
    evidence = result.evidence.assign(subject=result.evidence["seed"], key_id=result.evidence["key"].astype(str))
    log, labels = encode(evidence.assign(value_id=evidence["value"].astype(str)), time="t")
    _, transitions = tables(log, labels, replay(log, Thresholds()), Thresholds())
    falls = transitions[transitions["to_state"] == "revoked"]
    who = labels.iloc[falls["precedent"]].reset_index(drop=True)
    # Conventional is right on csv but for tasks 80 to 119, alternative then.
    right = np.where((falls["time"] >= 80) & (falls["time"] < 120), NEW, OLD)
    wrong = falls.reset_index(drop=True).assign(seed=who["subject"], value=who["value_id"])[who["value_id"] == right]
    assert len(wrong) >= 15
    gains = []
    for seed, value, at in zip(wrong["seed"], wrong["value"], wrong["time"], strict=True):
        table = decision_effect(spec, "tepa", seed, KEY, value, Verdict.REACTIVATE, at).success
        gains.append(160 * float(table.set_index("phase").loc["overall", "difference"]))
    assert sum(gains) >= 1


def test_frames_replay_to_the_lives_with_and_without() -> None:
    effect = decision_effect(SPEC, "tepa", 0, KEY, OLD, Verdict.REACTIVATE, 81)

    def lives(frame: pd.DataFrame) -> list[tuple[str, int, str]]:
        log, labels = encode(frame, time="t")
        _, transitions = tables(log, labels, replay(log, Thresholds()), Thresholds())
        value = labels["value_id"].to_numpy()[transitions["precedent"]]
        key = labels["key_id"].to_numpy()[transitions["precedent"]]
        rows = zip(key, value, transitions["time"], transitions["rule"], strict=True)
        return [(v, int(t), rule) for k, v, t, rule in rows if k == KEY]

    stored = run(SPEC).evidence.query("method == 'tepa' and seed == 0").reset_index(drop=True)
    same = ["seq", "t", "supports"]
    pd.testing.assert_frame_equal(effect.evidence_before[same], stored[same])
    assert (OLD, 81, "recent") in lives(effect.evidence_before)
    before, after = lives(effect.evidence_before), lives(effect.evidence_after)
    assert (OLD, 81, "decided") in after
    only = effect.transitions.query("key_id == @KEY")
    for side, here, there in (("before", before, after), ("after", after, before)):
        listed = only[only["side"] == side]
        expected = set(here) - set(there)
        assert set(zip(listed["value_id"], listed["time"], listed["rule"], strict=True)) == expected


def test_standing_decisions_hold_on_both_sides() -> None:
    standing = [Override(81, CSV, A, Verdict.REACTIVATE)]
    stream = ControlledSpec().make(0)
    before = by_hand(stream, standing)
    after = by_hand(stream, [*standing, Override(90, CSV, A, Verdict.CONFIRM)])
    table = decision_effect(SPEC, "tepa", 0, KEY, OLD, Verdict.CONFIRM, 90, standing=standing).success
    assert table["before"].tolist() == pytest.approx(in_phases(before))
    assert table["after"].tolist() == pytest.approx(in_phases(after))


def test_every_seed_takes_the_matching_revocation() -> None:
    spec = RunSpec.build("controlled", seeds=12, methods=["tepa"])
    # Conventional falls in reversal in each seed; four tasks later somebody decides.
    streams = [ControlledSpec().make(seed) for seed in range(12)]
    expected, at_seed = [], []
    for stream in streams:
        memory, fell = Ledger(), []
        for t, (action, won) in enumerate(_actions(stream)):
            changes = memory.observe(int(stream.key[t]), action, won, t)
            fell += [t for c in changes if c.value == A and c.to_state.label == "revoked" and 80 <= t < 120]
        at_seed.append(fell[0] + 4)
        expected.append(by_hand(stream, [Override(fell[0] + 4, CSV, A, Verdict.PIN)]).mean() - by_hand(stream).mean())
    seen: list[float] = []
    effect = decision_effect(
        spec, "tepa", 0, KEY, OLD, Verdict.PIN, at_seed[0], every_seed=True, progress=lambda done, _: seen.append(done)
    )
    every = effect.every_seed
    assert every is not None
    assert (every.seeds, every.matched, every.unmatched) == (12, 12, ())
    assert every.differences["at"].tolist() == at_seed
    assert every.differences["overall"].tolist() == pytest.approx(expected)
    overall = every.success.set_index("phase").loc["overall"]
    assert overall["difference"] == pytest.approx(np.mean(expected))
    assert min(expected) <= overall["lo"] <= overall["difference"] <= overall["hi"] <= max(expected)
    assert overall["mpi_difference"] == pytest.approx(overall["mpi_after"] - overall["mpi_before"])
    assert overall["mpi_lo"] > 0
    assert seen[-1] == 1.0
    own = effect.success.set_index("phase").loc["overall", "difference"]
    assert every.differences["overall"].iloc[0] == pytest.approx(own)


def _actions(stream: Stream) -> list[tuple[int, bool]]:
    played = play(stream, METHODS["tepa"].make(setting(SPEC, stream)))
    return list(zip(played.action.tolist(), played.success.tolist(), strict=True))


def test_seeds_without_such_a_revocation_are_counted_and_unchanged() -> None:
    spec = RunSpec.build("controlled", seeds=20, methods=["tepa"], world={"light_flip": 0.15})
    streams = [ControlledSpec(light_flip=0.15).make(seed) for seed in range(20)]
    falls = {}
    for stream in streams:
        memory = Ledger()
        for t, (action, won) in enumerate(_actions(stream)):
            changes = memory.observe(int(stream.key[t]), action, won, t)
            if t < 80 and any(c.value == A and c.to_state.label == "revoked" for c in changes):
                falls.setdefault(stream.seed, t)
    assert 0 < len(falls) < 20
    seed = min(falls)
    effect = decision_effect(spec, "tepa", seed, KEY, OLD, Verdict.REACTIVATE, falls[seed], every_seed=True)
    every = effect.every_seed
    assert every is not None
    assert set(every.unmatched) == set(range(20)) - set(falls)
    assert every.matched == len(falls)
    still = every.differences[~every.differences["matched"]]
    assert (still[["stable", "light", "reversal", "return", "overall"]] == 0).all(axis=None)
    assert still["at"].isna().all()


def test_json_has_the_names_of_the_command_line() -> None:
    effect = decision_effect(SPEC, "tepa", 0, KEY, OLD, Verdict.REACTIVATE, 81, every_seed=True)
    content = effect.as_dict()
    assert content["success"]["reversal"] == pytest.approx({"before": 0.95, "after": 0.875, "difference": -0.075})
    assert set(content["mpi"]["overall"]) == {"before", "after", "difference"}
    assert content["episodes_changed"] == effect.episodes_changed
    assert set(content["every_seed"]["success"]["reversal"]) == {"before", "after", "difference", "lo", "hi"}
    assert content["every_seed"]["matched"] == 6


def test_tepa_full_keeps_its_trials() -> None:
    spec = RunSpec.build("controlled", seeds=1, methods=["tepa_full"])
    effect = decision_effect(spec, "tepa_full", 0, KEY, OLD, Verdict.PIN, 90)
    stored = run(spec)
    won = stored.episodes.groupby("phase", observed=True)["success"].mean()
    assert effect.success["before"].tolist()[:4] == pytest.approx(won.tolist())
    assert effect.evidence_after["admitted"].notna().any()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method": "append_only"}, "no precedents to decide on; of this run's methods these have: tepa"),
        ({"seed": 6}, "its seeds are 0 to 5"),
        ({"key": "read pdf"}, "read pdf is no key of the stream"),
        ({"value": "other"}, "other is no value of the stream"),
        ({"at": 79}, "not in the archive after task 79 of seed 0"),
        ({"at": 200}, "choose a task from 0 to 159"),
        ({"value": NEW}, "not in the archive"),
    ],
)
def test_refuses_what_cannot_be_decided(change: dict[str, object], says: str) -> None:
    asked = {"method": "tepa", "seed": 0, "key": KEY, "value": OLD, "verdict": Verdict.REACTIVATE, "at": 81} | change
    with pytest.raises(ValueError, match=says):
        decision_effect(SPEC, **asked)  # type: ignore[arg-type]


def test_overrides_need_a_method_with_precedents() -> None:
    stream = ControlledSpec().make(0)
    no_memory = METHODS["no_memory"].make(setting(SPEC, stream))
    with pytest.raises(ValueError, match="no precedents to decide on"):
        play(stream, no_memory, [Override(3, CSV, A, Verdict.CONFIRM)])
    tepa = METHODS["tepa"].make(setting(SPEC, stream))
    with pytest.raises(ValueError, match="choose a task from 0 to 159"):
        play(stream, tepa, [Override(160, CSV, A, Verdict.CONFIRM)])
