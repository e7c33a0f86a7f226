from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats

from tepa_core.stats.bootstrap import Interval, bootstrap_mean, bootstrap_means, resample_counts


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def test_counts_are_samples_with_replacement() -> None:
    counts = resample_counts(7, generator(), resamples=4000)
    assert counts.shape == (4000, 7)
    assert (counts.sum(axis=1) == 7).all()
    # A multinomial count has mean 1 and variance 1 - 1/7, and two of them covary by -1/7.
    covariance = np.cov(counts, rowvar=False)
    np.testing.assert_allclose(counts.mean(axis=0), 1.0, atol=0.08)
    np.testing.assert_allclose(np.diag(covariance), 6 / 7, atol=0.12)
    np.testing.assert_allclose(covariance[~np.eye(7, dtype=bool)], -1 / 7, atol=0.08)


def test_two_seeds_by_hand() -> None:
    # Means of two draws from {0, 1}: 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4.
    assert bootstrap_mean([0.0, 1.0], generator()) == Interval(0.5, 0.0, 1.0)
    assert bootstrap_mean([0.0, 1.0], generator(), level=0.4) == Interval(0.5, 0.5, 0.5)


def test_one_success_in_ten_seeds_by_hand() -> None:
    # The number of successes in a resample is Binomial(10, 0.1); its quantiles are the bounds.
    x = np.zeros(10)
    x[3] = 1.0
    for level in (0.5, 0.8, 0.95):
        lo, hi = scipy_stats.binom(10, 0.1).ppf([(1 - level) / 2, (1 + level) / 2]) / 10
        interval = bootstrap_mean(x, generator(1), level=level)
        assert (interval.estimate, interval.lo, interval.hi) == pytest.approx((0.1, lo, hi))


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_agrees_with_scipy_percentile_bootstrap(level: float) -> None:
    x = generator(11).gamma(2.0, 0.2, size=50)
    ours = bootstrap_mean(x, generator(1), level=level, resamples=40_000)
    oracle = scipy_stats.bootstrap(
        (x,), np.mean, n_resamples=40_000, confidence_level=level, method="percentile", rng=generator(2)
    ).confidence_interval
    assert ours.estimate == pytest.approx(x.mean())
    assert (ours.lo, ours.hi) == pytest.approx((oracle.low, oracle.high), abs=0.03 * x.std())


def test_columns_share_the_resampled_seeds() -> None:
    x = generator(3).normal(size=(20, 1))
    lo, hi, mean = bootstrap_means(np.hstack([x, 2 * x + 1, -x]), generator(4))
    np.testing.assert_allclose(mean, [x.mean(), 2 * x.mean() + 1, -x.mean()])
    # Independent draws per column would leave a gap of Monte Carlo size here.
    np.testing.assert_allclose([lo[1], hi[1]], [2 * lo[0] + 1, 2 * hi[0] + 1])
    np.testing.assert_allclose([lo[2], hi[2]], [-hi[0], -lo[0]])


def test_single_and_batch_form_agree() -> None:
    x = generator(5).random((30, 3))
    lo, hi, mean = bootstrap_means(x, generator(6))
    for column in range(3):
        interval = bootstrap_mean(x[:, column], generator(6))
        assert (interval.lo, interval.hi, interval.estimate) == pytest.approx((lo[column], hi[column], mean[column]))


def test_same_generator_state_same_bounds() -> None:
    x = generator(7).random(25)
    assert bootstrap_mean(x, generator(8)) == bootstrap_mean(x, generator(8))
    assert bootstrap_mean(x, generator(8)) != bootstrap_mean(x, generator(9))


def test_one_seed_has_no_interval() -> None:
    interval = bootstrap_mean([0.25], generator())
    assert interval.estimate == 0.25
    assert np.isnan([interval.lo, interval.hi]).all()
    lo, hi, mean = bootstrap_means([[0.25, 0.5]], generator())
    assert np.isnan(lo).all()
    assert np.isnan(hi).all()
    np.testing.assert_array_equal(mean, [0.25, 0.5])


def test_nan_stays_in_its_column() -> None:
    x = generator(10).random((12, 3))
    whole = bootstrap_means(x, generator(11))
    holed = x.copy()
    holed[5, 1] = np.nan
    for with_hole, without in zip(bootstrap_means(holed, generator(11)), whole, strict=True):
        assert np.isnan(with_hole[1])
        np.testing.assert_allclose(with_hole[[0, 2]], without[[0, 2]])


def test_no_columns_give_empty_bounds() -> None:
    assert [part.shape for part in bootstrap_means(np.empty((5, 0)), generator())] == [(0,), (0,), (0,)]


def test_refuses_what_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        bootstrap_mean([], generator())
    with pytest.raises(ValueError, match="infinite"):
        bootstrap_mean([0.0, np.inf], generator())
    with pytest.raises(ValueError, match="one value per seed"):
        bootstrap_mean([[0.0, 1.0]], generator())
    with pytest.raises(ValueError, match="one row per seed"):
        bootstrap_means([0.0, 1.0], generator())


def test_interval_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Interval(0.0, 0.0, 0.0).lo = 1.0  # type: ignore[misc]


@given(value=st.floats(-1e6, 1e6), n=st.integers(2, 60))
def test_constant_data_has_an_interval_of_no_width(value: float, n: int) -> None:
    assert bootstrap_mean(np.full(n, value), generator(), resamples=50) == Interval(value, value, value)


@given(
    x=hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(-1e3, 1e3)),
    seed=st.integers(0, 2**32 - 1),
)
def test_interval_contains_the_mean_and_stays_in_range(x: np.ndarray, seed: int) -> None:
    interval = bootstrap_mean(x, generator(seed), resamples=500)
    slack = 1e-9 * (1 + np.abs(x).max())
    assert interval.estimate == pytest.approx(x.mean(), abs=slack)
    assert x.min() - slack <= interval.lo <= interval.estimate + slack
    assert interval.estimate - slack <= interval.hi <= x.max() + slack


@given(
    x=hnp.arrays(np.float64, st.integers(2, 30), elements=st.floats(-10, 10)),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_higher_level_gives_a_wider_interval(x: np.ndarray, seed: int) -> None:
    narrow = bootstrap_mean(x, generator(seed), level=0.8, resamples=300)
    wide = bootstrap_mean(x, generator(seed), level=0.99, resamples=300)
    assert wide.lo <= narrow.lo
    assert narrow.hi <= wide.hi


def test_coverage_of_the_nominal_95_percent() -> None:
    samples = generator(2026).normal(loc=1.0, scale=2.0, size=(20, 200))
    lo, hi, _ = bootstrap_means(samples, generator(1), resamples=2000)
    assert 0.88 <= np.mean((lo <= 1.0) & (hi >= 1.0)) <= 0.99
