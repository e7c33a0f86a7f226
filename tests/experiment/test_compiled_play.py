"""The compiled agent loop does what the Python agent loop does, on every stream and under any thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tepa_core.experiment import RunResult, RunSpec, run
from tepa_core.experiment.compiled_play import COUNTS, Draws, behaviours, count, lives
from tepa_core.experiment.measures import measures
from tepa_core.lifecycle import Ledger, State, Thresholds
from tepa_core.methods import thresholds_of
from tepa_core.stats import revocation_delays
from tepa_core.streams import make_spec

WORLDS: dict[str, tuple[str, dict[str, float], str | None]] = {
    "controlled": ("controlled", {}, None),
    "controlled, noisy": ("controlled", {"key_noise": 0.15, "light_flip": 0.1, "return_flip": 0.1}, None),
    "controlled, base policy": ("controlled", {"light_flip": 0.1}, "base_policy"),
    "preference": ("preference", {"key_noise": 0.1}, None),
    "preference, candidates": ("preference", {"profile_supports": 0}, "candidate"),
    "executable": ("executable", {"tasks_per_phase": 10}, None),
}
METHODS = ("tepa", "tepa_full", "tepa_norev")


def drawn_thresholds(rng: np.random.Generator, n: int) -> list[Thresholds]:
    """The defaults, and settings from all over the ranges."""
    return [Thresholds()] + [
        Thresholds(
            theta_prop=int(rng.integers(1, 6)),
            theta_rev=float(rng.choice([0.0, 0.2, 0.5, 0.7, 0.9])),
            n_min=int(rng.integers(1, 10)),
            theta_rec=float(rng.choice([0.0, 0.34, 0.5, 0.67, 1.0])),
            n_rec=int(rng.integers(1, 9)),
            theta_pro=float(rng.choice([0.0, 0.5, 0.6, 0.75])),
            alpha=float(rng.choice([0.5, 1.0, 3.0])),
            beta=float(rng.choice([0.5, 1.0, 3.0])),
            trial_budget=int(rng.integers(1, 19)),
            trial_pass=float(rng.choice([0.0, 0.6, 1.0])),
        )
        for _ in range(n)
    ]


def lived(result: RunResult, method: str, thresholds: Thresholds) -> pd.DataFrame:
    """Transitions of a run, by one Ledger for each seed that takes in the run's evidence again."""
    rows = []
    for seed, evidence in result.evidence.groupby("seed"):
        ledger = Ledger(thresholds_of(method, thresholds))
        for item in evidence.itertuples():
            admits = bool(item.admitted) if pd.notna(item.admitted) else True
            for change in ledger.observe(item.key, item.value, item.supports, item.t, lambda _, a=admits: a):
                rows.append(
                    (seed, change.at, change.key, change.value, change.from_state, change.to_state, change.rule)
                )
    return pd.DataFrame(rows, columns=["seed", "occurred", "key", "value", "from", "to", "rule"])


@pytest.fixture(scope="module", params=WORLDS)
def world(request: pytest.FixtureRequest) -> tuple[RunSpec, Draws]:
    stream, changes, fallback = WORLDS[request.param]
    spec = RunSpec.build(stream, seeds=3, first_seed=4, world=changes, fallback=fallback)
    return spec, Draws.of(spec)


@pytest.mark.parametrize("method", METHODS)
def test_every_setting_is_played_as_by_the_python_loop(world: tuple[RunSpec, Draws], method: str) -> None:
    spec, draws = world
    settings = drawn_thresholds(np.random.Generator(np.random.PCG64(11)), 5)
    counts, seconds = count(draws, settings, method, spec.fallback)
    assert counts.shape == (6, 3, 4, len(COUNTS))
    assert seconds > 0
    for thresholds, of_setting in zip(settings, counts, strict=True):
        one = RunSpec.build(
            spec.stream,
            seeds=3,
            first_seed=4,
            methods=[method],
            thresholds=thresholds,
            world=dict(spec.world),
            fallback=spec.fallback,
        )
        result = run(one)
        found = {name: of_setting[:, :, i] for i, name in enumerate(COUNTS)}
        by_phase = result.episodes.groupby(["seed", "phase"], observed=True)
        np.testing.assert_array_equal(found["success"], by_phase["success"].sum().unstack()[list(draws.phases)])
        exposed = by_phase["exposed"].sum().unstack()[list(draws.phases)]
        np.testing.assert_array_equal(found["exposed"], exposed.astype(int))

        steps = lived(result, method, thresholds)
        falls = steps[(steps["to"] == State.REVOKED) & (steps["occurred"] >= 0)]
        assert found["revoked"].sum() == len(falls)
        changes = steps[(steps["to"] == State.REVOKED) | (steps["to"] == State.ACTIVE)]
        changes = changes.assign(to_state=[State(state).label for state in changes["to"]])
        measured = measures(method, result.truth, changes, result.episodes).pivot(
            index="seed", columns="measure", values="value"
        )
        np.testing.assert_array_equal(found["falsely_revoked"].sum(axis=1), measured["false_revocations"])
        np.testing.assert_array_equal(found["never_revoked"].sum(axis=1), measured["never_revoked"])
        delayed = found["delayed"].sum(axis=1)
        mean = np.divide(found["delay"].sum(axis=1), delayed, out=np.full(3, np.nan), where=delayed > 0)
        np.testing.assert_allclose(mean, measured["revocation_delay_tasks"])
        np.testing.assert_allclose(
            found["exposed"].sum(axis=1) / draws.known.sum(axis=1), measured["stale_exposure_rate"]
        )

        states, transitions = lives(draws, thresholds, method, spec.fallback)
        group, value = np.divmod(transitions["precedent"], len(draws.values))
        compiled = pd.DataFrame(
            {
                "seed": np.array(draws.seeds)[draws.items.seed[group]],
                "occurred": transitions["time"],
                "key": [draws.keys[k] for k in draws.items.key[group]],
                "value": [draws.values[v] for v in value],
                "from": transitions["from_state"],
                "to": transitions["to_state"],
                "rule": transitions["rule"],
            }
        )
        # Key by key here, task by task there: the same rows, and in the same order within a task.
        in_time = {"by": ["seed", "occurred"], "kind": "stable", "ignore_index": True}
        expected = steps.assign(seed=steps["seed"].astype(np.int64)).sort_values(**in_time)
        pd.testing.assert_frame_equal(compiled.sort_values(**in_time), expected, check_dtype=False)
        ends = compiled.groupby(["seed", "key", "value"])["to"].last()
        for (seed, key, name), state in ends.items():
            place = (draws.items.seed == draws.seeds.index(seed)) & (draws.items.key == draws.keys.index(key))
            assert states[place][0, draws.values.index(name)] == state
        assert np.count_nonzero(states) == len(ends)


def test_a_delay_belongs_to_the_phase_in_which_the_value_became_stale(world: tuple[RunSpec, Draws]) -> None:
    spec, draws = world
    counts, _ = count(draws, [Thresholds()], "tepa", spec.fallback)
    result = run(
        RunSpec.build(
            spec.stream, seeds=3, first_seed=4, methods=["tepa"], world=dict(spec.world), fallback=spec.fallback
        )
    )
    steps = lived(result, "tepa", Thresholds())
    for s, seed in enumerate(draws.seeds):
        stream = make_spec(spec.stream, dict(spec.world)).make(seed)
        own = steps[steps["seed"] == seed]
        events = {
            state: np.column_stack(
                [
                    part["occurred"].to_numpy(int),
                    [stream.keys.index(k) for k in part["key"]],
                    [stream.values.index(v) for v in part["value"]],
                ]
            ).astype(int)
            for state, part in ((to, own[own["to"] == to]) for to in (State.ACTIVE, State.REVOKED))
        }
        delays = revocation_delays(stream.truth, stream.key, events[State.ACTIVE], events[State.REVOKED])
        for f in range(4):
            here = stream.phase[delays.changed_at] == f
            found = dict(zip(COUNTS, counts[0, s, f], strict=True))
            assert found["delay"] == np.nansum(delays.tasks[here])
            assert found["delayed"] == np.count_nonzero(~np.isnan(delays.tasks[here]))
            assert found["never_revoked"] == np.count_nonzero(delays.was_active & np.isnan(delays.tasks) & here)


def test_no_memory_is_the_base_action(world: tuple[RunSpec, Draws]) -> None:
    spec, draws = world
    one = RunSpec.build(spec.stream, seeds=3, first_seed=4, methods=["no_memory"], world=dict(spec.world))
    alone = run(one).episodes.groupby("phase", observed=True)["success"].agg(["sum", "size"]).loc[list(draws.phases)]
    assert draws.without_memory.tolist() == alone["sum"].tolist()
    assert draws.tasks.tolist() == alone["size"].tolist()


def test_settings_that_cannot_differ_are_played_once() -> None:
    def kinds(*changes: dict[str, Any], method: str = "tepa") -> list[int]:
        return behaviours([Thresholds(**change) for change in changes], method)[1].tolist()

    # With n_rec 3 the shares are 0, 1/3, 2/3 and 1: what lies between two of them is one setting.
    same = kinds({"theta_rec": 0.34}, {"theta_rec": 0.6}, {"theta_rec": 2 / 3}, {"theta_rec": 0.67})
    assert same[0] == same[1] == same[2] != same[3]
    # 0.34 is above one of three but below two of five.
    assert len(set(kinds({"theta_rec": 0.34, "n_rec": 3}, {"theta_rec": 0.6, "n_rec": 5}))) == 2
    assert len(set(kinds({"theta_rec": 0.41, "n_rec": 5}, {"theta_rec": 0.6, "n_rec": 5}))) == 1
    assert len(set(kinds({"theta_rev": 0.3}, {"theta_rev": 0.30001}))) == 2
    budgets = ({"trial_budget": 1}, {"trial_budget": 4})
    assert len(set(kinds(*budgets))) == 1
    assert len(set(kinds(*budgets, method="tepa_full"))) == 2
    first, _ = behaviours([Thresholds(theta_rec=i / 30) for i in range(31)], "tepa")
    assert len(first) == 4


def test_settings_of_one_kind_do_the_same() -> None:
    draws = Draws.of(RunSpec.build("controlled", seeds=3, world={"light_flip": 0.1, "return_flip": 0.1}))
    settings = [Thresholds(theta_rec=i / 30, n_rec=n) for i in range(31) for n in (2, 3, 5)]
    counts, _ = count(draws, settings, "tepa", "candidate")
    first, kind = behaviours(settings, "tepa")
    assert len(first) < 15
    np.testing.assert_array_equal(counts, counts[first][kind])
    # What is told apart is so for a reason.
    assert len(np.unique(counts.reshape(len(settings), -1), axis=0)) > 5


def test_settings_do_not_reach_into_each_other() -> None:
    draws = Draws.of(RunSpec.build("preference", seeds=2))
    settings = drawn_thresholds(np.random.Generator(np.random.PCG64(5)), 12)
    together, _ = count(draws, settings, "tepa", "candidate")
    for thresholds, expected in zip(reversed(settings), together[::-1], strict=True):
        np.testing.assert_array_equal(count(draws, [thresholds], "tepa", "candidate")[0][0], expected)


def test_methods_without_a_lifecycle_are_refused() -> None:
    draws = Draws.of(RunSpec.build("controlled", seeds=1))
    for method in ("append_only", "nobody"):
        with pytest.raises(ValueError, match=f"do not act on {method}.*tepa, tepa_full"):
            count(draws, [Thresholds()], method, "candidate")


def test_drawing_can_be_stopped() -> None:
    class StoppedError(Exception):
        pass

    said: list[float] = []

    def stop(done: float, sentence: str) -> None:
        said.append(done)
        if done > 0.4:
            raise StoppedError

    with pytest.raises(StoppedError):
        Draws.of(RunSpec.build("controlled", seeds=40), stop)
    assert said == [0.25, 0.5]
