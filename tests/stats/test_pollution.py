from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats

from tepa_core.stats.pollution import mpi, mpi_interval

# Success rates of a phase of 40 tasks.
rates = st.integers(0, 40).map(lambda successes: successes / 40)
positive_rates = st.integers(1, 40).map(lambda successes: successes / 40)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def ratio_of_means(nomem: np.ndarray, method: np.ndarray, axis: int) -> np.ndarray:
    return 1 - np.mean(method, axis=axis) / np.mean(nomem, axis=axis)


@pytest.mark.parametrize(
    ("nomem", "method", "expected"),
    # Reported success in full reversal and reported MPI of append-only: controlled, then executable.
    [(0.309, 0.210, 0.318), (0.298, 0.203, 0.319)],
)
def test_reported_values(nomem: float, method: float, expected: float) -> None:
    # Rates rounded to three places leave an uncertainty of about 0.003 in their ratio.
    assert mpi(nomem, method) == pytest.approx(expected, abs=0.004)


def test_by_hand() -> None:
    assert mpi(0.5, 0.25) == 0.5
    assert mpi(0.5, 0.75) == -0.5
    assert mpi(0.5, 0.0) == 1.0
    assert isinstance(mpi(0.5, 0.25), float)


def test_nothing_to_lose_is_undefined() -> None:
    assert math.isnan(mpi(0.0, 0.0))
    assert math.isnan(mpi(0.0, 0.5))
    np.testing.assert_array_equal(mpi([0.0, 0.5], [0.5, 0.5]), [np.nan, 0.0])


def test_shapes_broadcast() -> None:
    # Two methods (rows) over three phases (columns) against one no-memory baseline.
    table = mpi(np.array([1.0, 0.5, 0.25]), np.array([[1.0, 0.25, 0.5], [0.0, 0.5, 0.25]]))
    np.testing.assert_array_equal(table, [[0.0, 0.5, -1.0], [1.0, 0.0, 0.0]])


def test_leaves_its_input_alone() -> None:
    nomem, method = np.array([0.5, 0.0]), np.array([0.25, 0.25])
    mpi(nomem, method)
    np.testing.assert_array_equal(nomem, [0.5, 0.0])
    np.testing.assert_array_equal(method, [0.25, 0.25])


def test_interval_by_hand() -> None:
    # Resampled pairs give the ratios 1 - 0.25/1, 1 - 0.75/1.5 and 1 - 0.5/0.5 with probabilities 1/4, 1/2, 1/4.
    interval = mpi_interval([1.0, 0.5], [0.25, 0.5], generator())
    assert (interval.estimate, interval.lo, interval.hi) == (0.5, 0.0, 0.75)


def test_interval_agrees_with_scipy() -> None:
    nomem = generator(1).uniform(0.2, 0.4, size=50)
    method = 0.6 * nomem + generator(2).uniform(0.0, 0.1, size=50)
    oracle = scipy_stats.bootstrap(
        (nomem, method), ratio_of_means, paired=True, vectorized=True, method="percentile", rng=generator(3)
    ).confidence_interval
    interval = mpi_interval(nomem, method, generator(4))
    width = oracle.high - oracle.low
    assert interval.estimate == pytest.approx(1 - method.mean() / nomem.mean())
    assert (interval.lo, interval.hi) == pytest.approx((oracle.low, oracle.high), abs=0.04 * width)


def test_pairing_removes_what_seeds_share() -> None:
    nomem = generator(5).uniform(0.2, 0.8, size=40)
    interval = mpi_interval(nomem, 0.7 * nomem, generator(6))
    assert (interval.estimate, interval.lo, interval.hi) == pytest.approx((0.3, 0.3, 0.3))


def test_interval_is_unknown_where_a_resample_has_no_success() -> None:
    # With one success in four seeds, (3/4)^4 of the resamples have none.
    interval = mpi_interval([1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], generator())
    assert interval.estimate == 0.5
    assert np.isnan([interval.lo, interval.hi]).all()


def test_interval_is_unknown_without_any_success_and_with_one_seed() -> None:
    never = mpi_interval([0.0, 0.0], [0.5, 0.25], generator())
    assert np.isnan([never.estimate, never.lo, never.hi]).all()
    single = mpi_interval([0.5], [0.25], generator())
    assert single.estimate == 0.5
    assert np.isnan([single.lo, single.hi]).all()


def test_same_generator_state_same_bounds() -> None:
    nomem, method = generator(7).uniform(0.1, 0.9, size=(2, 20))
    assert mpi_interval(nomem, method, generator(1)) == mpi_interval(nomem, method, generator(1))
    assert mpi_interval(nomem, method, generator(1)) != mpi_interval(nomem, method, generator(2))


def test_interval_refuses_unpaired_and_unusable_data() -> None:
    for nomem, method in (([0.5], [0.5, 0.5]), ([], []), ([[0.5]], [[0.5]])):
        with pytest.raises(ValueError, match="same seeds"):
            mpi_interval(nomem, method, generator())
    with pytest.raises(ValueError, match="finite rate"):
        mpi_interval([0.5, np.nan], [0.5, 0.5], generator())


@given(nomem=hnp.arrays(np.float64, st.integers(2, 20), elements=positive_rates), seed=st.integers(0, 2**32 - 1))
def test_no_memory_pollutes_nothing(nomem: np.ndarray, seed: int) -> None:
    np.testing.assert_array_equal(mpi(nomem, nomem), np.zeros(nomem.size))
    interval = mpi_interval(nomem, nomem, generator(seed), resamples=100)
    assert (interval.estimate, interval.lo, interval.hi) == (0.0, 0.0, 0.0)


@given(nomem=positive_rates, method=rates)
def test_sign_tells_worse_from_better(nomem: float, method: float) -> None:
    index = mpi(nomem, method)
    assert index <= 1
    assert np.sign(index) == np.sign(nomem - method)
