from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats

from tepa_core.stats.bootstrap import bootstrap_mean
from tepa_core.stats.compare import Comparison, cohens_dz, paired_comparison


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def test_dz_by_hand() -> None:
    # Mean 3, squared deviations 4 + 0 + 4 = 8, sd = sqrt(8 / 2) = 2.
    assert cohens_dz([1.0, 3.0, 5.0]) == 1.5


def test_dz_is_the_paired_t_over_the_root_of_n() -> None:
    a, b = generator(1).normal(size=(2, 50))
    assert cohens_dz(a - b) == pytest.approx(scipy_stats.ttest_rel(a, b).statistic / math.sqrt(50))


def test_dz_of_the_control_in_the_paper() -> None:
    # No memory beats append-only by a Binomial(40, 0.8 * 0.12) count of guesses in reversal: d_z 2.10 is reported.
    p = 0.8 * 0.12
    assert 40 * p / math.sqrt(40 * p * (1 - p)) == pytest.approx(2.06, abs=0.005)
    gains = generator(2).binomial(40, p, size=20_000) / 40
    assert cohens_dz(gains) == pytest.approx(2.06, abs=0.04)


def test_dz_without_spread() -> None:
    assert cohens_dz([0.5, 0.5]) == math.inf
    assert cohens_dz([-0.5, -0.5, -0.5]) == -math.inf
    assert math.isnan(cohens_dz([0.0, 0.0]))
    assert math.isnan(cohens_dz([0.5]))


def test_dz_does_not_take_rounding_for_spread() -> None:
    rates = np.array([0.7, 0.6, 0.4]) - np.array([0.6, 0.5, 0.3])
    assert np.ptp(rates) > 0
    assert cohens_dz(rates) == math.inf


@pytest.mark.parametrize("bad", [[], [[1.0, 2.0]], [1.0, np.nan], [1.0, np.inf]])
def test_dz_refuses_what_has_none(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="finite difference for every seed"):
        cohens_dz(bad)


def test_comparison_by_hand() -> None:
    # Differences 1, 3, 5: one of eight sign patterns reaches 9; a resample is all ones with probability 1/27.
    result = paired_comparison([2.0, 5.0, 9.0], [1.0, 2.0, 4.0], generator())
    assert result == Comparison(diff=3.0, lo=1.0, hi=5.0, p=1 / 8, dz=1.5)


def test_comparison_agrees_with_scipy() -> None:
    b = generator(3).normal(size=50)
    a = b + generator(4).normal(loc=0.3, size=50)
    result = paired_comparison(a, b, generator(5), level=0.9)
    oracle = scipy_stats.bootstrap((a - b,), np.mean, confidence_level=0.9, method="percentile", rng=generator(6))
    sd = np.std(a - b)
    assert result.diff == pytest.approx(np.mean(a) - np.mean(b))
    assert result.lo == pytest.approx(oracle.confidence_interval.low, abs=0.03 * sd)
    assert result.hi == pytest.approx(oracle.confidence_interval.high, abs=0.03 * sd)
    assert result.dz == pytest.approx(scipy_stats.ttest_rel(a, b).statistic / math.sqrt(50))
    # With 50 nearly normal differences the permutation test comes close to the t test.
    assert result.p == pytest.approx(scipy_stats.ttest_rel(a, b, alternative="greater").pvalue, abs=0.01)


def test_pairing_removes_what_seeds_share() -> None:
    seed_luck = generator(7).normal(scale=10.0, size=30)
    result = paired_comparison(seed_luck + 0.1, seed_luck, generator(8))
    assert result.diff == pytest.approx(0.1)
    assert result.hi - result.lo < 1e-9
    assert result.p < 0.001


def test_one_seed_has_a_difference_and_nothing_more() -> None:
    result = paired_comparison([0.75], [0.25], generator())
    assert (result.diff, result.p) == (0.5, 0.5)
    assert np.isnan([result.lo, result.hi, result.dz]).all()


def test_same_generator_state_same_result() -> None:
    a, b = generator(9).random((2, 40))
    assert paired_comparison(a, b, generator(1)) == paired_comparison(a, b, generator(1))
    interval = bootstrap_mean(a - b, generator(1))
    result = paired_comparison(a, b, generator(1))
    assert (result.diff, result.lo, result.hi) == (interval.estimate, interval.lo, interval.hi)


def test_refuses_other_seeds() -> None:
    # One value against three would broadcast without a word.
    with pytest.raises(ValueError, match="same seeds"):
        paired_comparison([1.0], [1.0, 2.0, 3.0], generator())


@given(
    x=hnp.arrays(np.float64, st.integers(2, 12), elements=st.integers(-20, 20).map(float)),
    scale=st.sampled_from([0.25, 0.5, 2.0, 1024.0]),
)
def test_dz_has_no_unit_and_turns_with_the_sign(x: np.ndarray, scale: float) -> None:
    dz = cohens_dz(x)
    assert cohens_dz(x * scale) == pytest.approx(dz, nan_ok=True)
    assert cohens_dz(-x) == pytest.approx(-dz, nan_ok=True)
