from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats

from tepa_core.stats.permutation import paired_permutation

whole_numbers = hnp.arrays(np.float64, st.integers(1, 9), elements=st.integers(-4, 4).map(float))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def mean_difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
    return np.mean(a - b, axis=axis)


@pytest.mark.parametrize(
    ("difference", "p"),
    [
        ([1.0], 1 / 2),
        ([-1.0], 1.0),
        ([0.0, 0.0, 0.0], 1.0),
        ([1.0, 1.0, 1.0], 1 / 8),
        # Sums of +-1 +-2 +-3 that reach 1 + 2 - 3 = 0: 6, 4, 2, 0, 0.
        ([1.0, 2.0, -3.0], 5 / 8),
        # Only the observed pattern and the one with the zero exchanged reach 5.
        ([2.0, 3.0, 0.0], 2 / 8),
        ([1.0] * 12, 1 / 4096),
    ],
)
def test_small_samples_by_hand(difference: list[float], p: float) -> None:
    assert paired_permutation(difference, np.zeros(len(difference)), generator()) == p


def test_ties_that_rounding_would_break_still_count() -> None:
    # 0.1 + 0.2 - 0.3 is zero on paper and 5.6e-17 in floating point: all exchanges of sum >= 0 count, 5 of 8.
    assert paired_permutation([0.1, 0.2, -0.3], [0.0, 0.0, 0.0], generator()) == 5 / 8


@pytest.mark.parametrize("seed", range(5))
def test_exact_test_agrees_with_scipy(seed: int) -> None:
    a, b = generator(seed).normal(size=(2, 11))
    oracle = scipy_stats.permutation_test(
        (a, b), mean_difference, permutation_type="samples", alternative="greater", vectorized=True, n_resamples=np.inf
    )
    assert paired_permutation(a, b, generator()) == pytest.approx(oracle.pvalue, abs=1e-12)


@pytest.mark.parametrize("shift", [-0.1, 0.0, 0.2, 0.4])
def test_monte_carlo_agrees_with_scipy(shift: float) -> None:
    a, b = generator(17).normal(size=(2, 40))
    oracle = scipy_stats.permutation_test(
        (a + shift, b),
        mean_difference,
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=20_000,
        batch=5000,
        rng=generator(5),
    )
    # Two independent Monte Carlo errors of at most 0.0035 each.
    assert paired_permutation(a + shift, b, generator(6)) == pytest.approx(oracle.pvalue, abs=0.02)


def test_monte_carlo_agrees_with_the_binomial_sign_test() -> None:
    # With differences of one size the sum only depends on the number of positive signs.
    difference = np.array([1.0] * 18 + [-1.0] * 12)
    expected = scipy_stats.binom(30, 0.5).sf(17)
    assert paired_permutation(difference, np.zeros(30), generator(1)) == pytest.approx(expected, abs=0.012)


def test_monte_carlo_p_is_never_zero() -> None:
    # 2^-50 cannot be hit: what remains is the observed data itself.
    assert paired_permutation(np.ones(50), np.zeros(50), generator(), resamples=999) == 1 / 1000


def test_thirteen_seeds_are_sampled_and_twelve_are_enumerated() -> None:
    x = generator(3).normal(size=13)
    twelve = {paired_permutation(x[:12], np.zeros(12), generator(seed)) for seed in range(3)}
    thirteen = {paired_permutation(x, np.zeros(13), generator(seed)) for seed in range(3)}
    assert len(twelve) == 1
    assert len(thirteen) > 1
    assert paired_permutation(x, np.zeros(13), generator(4)) == paired_permutation(x, np.zeros(13), generator(4))


def test_refuses_unpaired_and_unusable_data() -> None:
    with pytest.raises(ValueError, match="both sides"):
        paired_permutation([1.0, 2.0], [1.0], generator())
    with pytest.raises(ValueError, match="both sides"):
        paired_permutation([], [], generator())
    with pytest.raises(ValueError, match="both sides"):
        paired_permutation([[1.0]], [[1.0]], generator())
    with pytest.raises(ValueError, match="finite value"):
        paired_permutation([1.0, np.nan], [1.0, 2.0], generator())


@given(difference=whole_numbers)
def test_equals_a_brute_force_count(difference: np.ndarray) -> None:
    sums = [sum(s * d for s, d in zip(signs, difference, strict=True)) for signs in SIGNS[difference.size]]
    expected = sum(total >= difference.sum() for total in sums) / len(sums)
    assert paired_permutation(difference, np.zeros(difference.size), generator()) == expected


@given(difference=whole_numbers)
def test_the_two_tails_overlap_in_the_ties_only(difference: np.ndarray) -> None:
    zeros = np.zeros(difference.size)
    sums = [sum(s * d for s, d in zip(signs, difference, strict=True)) for signs in SIGNS[difference.size]]
    ties = sum(total == difference.sum() for total in sums) / len(sums)
    tails = paired_permutation(difference, zeros, generator()) + paired_permutation(zeros, difference, generator())
    assert tails == pytest.approx(1 + ties)


@given(
    difference=hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e3, 1e3)),
    seed=st.integers(0, 2**32 - 1),
)
def test_p_lies_above_zero_and_up_to_one(difference: np.ndarray, seed: int) -> None:
    assert 0 < paired_permutation(difference, np.zeros(difference.size), generator(seed), resamples=200) <= 1


SIGNS = {n: list(itertools.product([1, -1], repeat=n)) for n in range(1, 10)}
