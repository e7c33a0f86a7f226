"""The controlled stream has the shares that its parameters say, and changing one changes nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tepa_core.streams import STREAMS, ControlledSpec, Stream, make_spec

SEEDS = 300
CSV, JSON = 0, 1
CONVENTIONAL, ALTERNATIVE = 0, 1
STABLE, LIGHT, REVERSAL, RETURN = range(4)


@pytest.fixture(scope="module")
def drawn() -> dict[str, npt.NDArray[np.int64]]:
    """All tasks of 300 seeds, one behind the other."""
    streams = [ControlledSpec().make(seed) for seed in range(SEEDS)]
    return {
        "phase": np.concatenate([s.phase for s in streams]),
        "key": np.concatenate([s.key for s in streams]),
        "base": np.concatenate([s.base_action for s in streams]),
        "accepted": np.concatenate([s.outcome.argmax(axis=1) for s in streams]),
        "tools": np.concatenate([s.outcome.sum(axis=1) for s in streams]),
        "task": np.tile(np.arange(160), SEEDS),
    }


def plausible(hits: npt.NDArray[np.bool_], p: float) -> bool:
    """Whether so many hits are no wonder with probability ``p``: a wonder is one in a hundred thousand."""
    return bool(stats.binomtest(int(hits.sum()), hits.size, p).pvalue > 1e-5)


def test_shape() -> None:
    stream = ControlledSpec().make(7)
    assert len(stream) == 160
    assert stream.phase_names == ("stable", "light", "reversal", "return")
    assert stream.phase.tolist() == [0] * 40 + [1] * 40 + [2] * 40 + [3] * 40
    assert stream.boundaries.tolist() == [40, 80, 120]
    assert stream.values == ("conventional", "alternative")
    assert stream.keys[:2] == ("read csv", "read json")
    assert len(stream.keys) == 8
    assert stream.asserted is None
    assert stream.follows.all()
    assert len(stream.prior_key) == len(stream.prior_value) == 0
    assert stream.outcome.shape == (160, 2)
    assert stream.truth.shape == (160, 8)


def test_one_tool_works_on_every_task(drawn: dict[str, npt.NDArray[np.int64]]) -> None:
    assert (drawn["tools"] == 1).all()


def test_share_of_the_drifting_family(drawn: dict[str, npt.NDArray[np.int64]]) -> None:
    assert set(drawn["key"].tolist()) == {CSV, JSON}
    assert plausible(drawn["key"] == CSV, 0.8)
    for phase in range(4):
        assert plausible(drawn["key"][drawn["phase"] == phase] == CSV, 0.8)


def test_base_policy(drawn: dict[str, npt.NDArray[np.int64]]) -> None:
    csv = drawn["key"] == CSV
    assert plausible(drawn["base"][csv] == CONVENTIONAL, 0.88)
    # On the control family the base policy is always right.
    assert (drawn["base"][~csv] == CONVENTIONAL).all()
    assert (drawn["accepted"][~csv] == CONVENTIONAL).all()


def test_what_is_accepted_in_each_phase(drawn: dict[str, npt.NDArray[np.int64]]) -> None:
    csv, phase, accepted = drawn["key"] == CSV, drawn["phase"], drawn["accepted"]
    assert (accepted[csv & (phase == STABLE)] == CONVENTIONAL).all()
    assert (accepted[csv & (phase == REVERSAL)] == ALTERNATIVE).all()
    assert plausible(accepted[csv & (phase == LIGHT)] == ALTERNATIVE, 0.03)
    assert plausible(accepted[csv & (phase == RETURN)] == ALTERNATIVE, 0.03)


def test_what_no_memory_earns_in_reversal(drawn: dict[str, npt.NDArray[np.int64]]) -> None:
    # The control tasks and the guesses: 0.2 + 0.8 * 0.12 = 0.296.
    reversal = drawn["phase"] == REVERSAL
    assert plausible((drawn["base"] == drawn["accepted"])[reversal], 0.2 + 0.8 * 0.12)


def test_draws_of_tasks_do_not_hang_together(drawn: dict[str, npt.NDArray[np.int64]]) -> None:
    csv = drawn["key"] == CSV
    # The base policy does not know which tasks flip, and neighbours say nothing of each other.
    light = csv & (drawn["phase"] == LIGHT)
    assert plausible(drawn["base"][light & (drawn["accepted"] == ALTERNATIVE)] == CONVENTIONAL, 0.88)
    assert plausible(csv[1:][csv[:-1]], 0.8)


def test_truth_is_the_regime_not_the_flip() -> None:
    stream = ControlledSpec(light_flip=1.0, return_flip=1.0).make(3)
    assert stream.truth[:, CSV].tolist() == [0] * 80 + [1] * 40 + [0] * 40
    assert (stream.truth[:, JSON] == CONVENTIONAL).all()
    assert (stream.truth[:, 2:] == -1).all()
    light = (stream.phase == LIGHT) & (stream.key == CSV)
    assert (stream.outcome[light].argmax(axis=1) == ALTERNATIVE).all()


def test_support_trials_are_fresh_tasks_of_the_family() -> None:
    streams = [ControlledSpec().make(seed) for seed in range(100)]
    trials = np.concatenate([s.trial_support for s in streams if s.trial_support is not None])
    key, phase = (np.concatenate([getattr(s, name) for s in streams]) for name in ("key", "phase"))
    assert trials.shape == (100 * 160, 6, 2)
    # One tool works on each fresh task.
    assert (trials.sum(axis=2) == 1).all()
    assert trials[key == JSON][..., CONVENTIONAL].all()
    assert trials[(key == CSV) & (phase == STABLE)][..., CONVENTIONAL].all()
    assert trials[(key == CSV) & (phase == REVERSAL)][..., ALTERNATIVE].all()
    assert plausible(trials[(key == CSV) & (phase == LIGHT)][..., ALTERNATIVE], 0.03)
    # They are other tasks than the one that asks: flips of the two do not hang together.
    flipped = np.concatenate([s.outcome[:, ALTERNATIVE] for s in streams])
    assert plausible(trials[(key == CSV) & np.isin(phase, (LIGHT, RETURN)) & flipped][..., ALTERNATIVE], 0.03)


def test_the_drifting_family_is_marked_whatever_memory_sees() -> None:
    clean, noisy = ControlledSpec().make(4), ControlledSpec(key_noise=0.5).make(4)
    assert clean.drifting is not None
    assert noisy.drifting is not None
    np.testing.assert_array_equal(clean.drifting, clean.key == CSV)
    np.testing.assert_array_equal(noisy.drifting, clean.drifting)


def arrays(stream: Stream) -> dict[str, npt.NDArray[np.generic]]:
    return {
        field.name: getattr(stream, field.name)
        for field in dataclasses.fields(stream)
        if isinstance(getattr(stream, field.name), np.ndarray)
    }


def changed(left: ControlledSpec, right: ControlledSpec, seed: int) -> set[str]:
    a, b = arrays(left.make(seed)), arrays(right.make(seed))
    return {name for name in a if not np.array_equal(a[name], b[name])}


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_the_same_seed_draws_the_same(seed: int) -> None:
    assert changed(ControlledSpec(key_noise=0.1), ControlledSpec(key_noise=0.1), seed) == set()


def test_another_seed_draws_something_else() -> None:
    one, other = ControlledSpec().make(0), ControlledSpec().make(1)
    assert not np.array_equal(one.key, other.key)
    assert not np.array_equal(one.base_action, other.base_action)


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"light_flip": 0.5}, {"outcome", "trial_support"}),
        ({"return_flip": 0.5}, {"outcome", "trial_support"}),
        ({"key_noise": 0.5}, {"key"}),
        ({"base_conventional": 0.5}, {"base_action"}),
        ({"drift_share": 0.2}, {"key", "base_action", "outcome", "trial_support", "drifting"}),
    ],
)
def test_draws_are_paired(change: dict[str, float], differs: set[str]) -> None:
    for seed in range(5):
        assert changed(ControlledSpec(), ControlledSpec(**change), seed) == differs  # type: ignore[arg-type]


def test_flips_grow_with_their_probability() -> None:
    """The tasks that flip at 0.03 flip at 0.10 too: settings differ by as little as they must."""
    few, many = (ControlledSpec(light_flip=p).make(5).outcome.argmax(axis=1) for p in (0.2, 0.6))
    light = slice(40, 80)
    assert (many[light] >= few[light]).all()
    assert many[light].sum() > few[light].sum()


@pytest.mark.parametrize("rho", [0.05, 0.1, 0.2])
def test_key_noise(rho: float) -> None:
    clean = np.concatenate([ControlledSpec().make(seed).key for seed in range(SEEDS)])
    noisy = np.concatenate([ControlledSpec(key_noise=rho).make(seed).key for seed in range(SEEDS)])
    corrupted = clean != noisy
    assert plausible(corrupted, rho)
    assert (noisy[corrupted] >= 2).all()
    # One of six other keys, each as likely.
    counts = np.bincount(noisy[corrupted], minlength=8)[2:]
    assert stats.chisquare(counts).pvalue > 1e-5
    # Csv and json tasks are hit alike.
    assert plausible(corrupted[clean == JSON], rho)


def test_all_keys_corrupted() -> None:
    assert (ControlledSpec(key_noise=1.0).make(0).key >= 2).all()


@pytest.mark.parametrize("name", ["drift_share", "base_conventional", "light_flip", "return_flip", "key_noise"])
@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan")])
def test_shares_are_from_0_to_1(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be from 0 to 1, not {value}$"):
        ControlledSpec(**{name: value})  # type: ignore[arg-type]


def test_a_phase_has_a_task() -> None:
    with pytest.raises(ValueError, match=r"^tasks_per_phase must be at least 1, not 0$"):
        ControlledSpec(tasks_per_phase=0)
    assert ControlledSpec(tasks_per_phase=1).make(0).boundaries.tolist() == [1, 2, 3]


def test_make_spec() -> None:
    assert make_spec("controlled", {}) == ControlledSpec()
    assert make_spec("controlled", {"light_flip": 0.1, "tasks_per_phase": 10.0}) == ControlledSpec(10, light_flip=0.1)
    assert type(make_spec("controlled", {"tasks_per_phase": 10.0}).tasks_per_phase) is int  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("stream", "world", "message"),
    [
        ("weather", {}, r"^weather is no stream; the streams are controlled"),
        ("controlled", {"rain": 1}, r"^rain is no parameter of controlled; its parameters are tasks_per_phase, drift"),
        ("controlled", {"tasks_per_phase": 2.5}, r"^tasks_per_phase must be a whole number, not 2.5$"),
        ("controlled", {"key_noise": 2}, r"^key_noise must be from 0 to 1, not 2.0$"),
    ],
)
def test_make_spec_says_what_there_is(stream: str, world: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_spec(stream, world)


def test_every_stream_is_registered_under_its_id_and_has_defaults() -> None:
    for id, spec in STREAMS.items():
        assert spec.id == id
        assert spec.title
        assert make_spec(id, {}) == spec()
