"""One-tailed paired permutation test over seeds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# 4096 sign patterns: cheaper than the Monte Carlo draw, and exact.
LARGEST_EXACT_N = 12

# One random byte decides on eight seeds at once, by way of a table of their 256 sums: less work and less memory than a
# draw per seed.
_SEEDS_PER_BYTE = 8


def paired_permutation(
    a: npt.ArrayLike, b: npt.ArrayLike, rng: np.random.Generator, *, resamples: int = 100_000
) -> float:
    """Test whether ``mean(a - b)`` is greater than zero, by exchanging `a` and `b` within seeds.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        One value per seed; position i of both comes from the same seed.
    rng : numpy.random.Generator
        Source of the exchanges. Not used for ``n <= 12``.
    resamples : int
        Number of random exchanges for ``n > 12``. The smallest p is about its inverse, so it bounds what is left after
        a correction for many comparisons.

    Returns
    -------
    float
        p in (0, 1]: the share of exchanges whose mean difference is at least the observed one. For ``n <= 12`` all
        ``2 ** n`` exchanges are counted. Beyond that it is ``(1 + hits) / (1 + resamples)``, which counts the
        observed data among the exchanges, so p is never zero and the test keeps its level.

    Raises
    ------
    ValueError
        If `a` and `b` are not one-dimensional and of one length, are empty, or hold a value that is not finite.

    References
    ----------
    Phipson and Smyth (2010), Permutation p-values should never be zero. The one-tailed tests of Zhou et al. (2026),
    arXiv 2608.07429.

    Examples
    --------
    Three seeds, all in favour of `a`: one of eight sign patterns is as extreme.

    >>> paired_permutation([3, 4, 5], [1, 1, 1], np.random.default_rng(0))
    0.125
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        raise ValueError(
            f"A paired test needs one value per seed on both sides, got shapes {first.shape} and {second.shape}."
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("A paired test needs a finite value for every seed; leave out the seeds that miss one.")
    difference = first - second
    n = difference.size
    # Exchanging a set of seeds lowers the sum by twice that set's differences, so the result is as extreme as the data
    # exactly when the set adds up to zero or less. The slack keeps ties that rounding would break.
    slack = 1e-12 * float(np.abs(difference).sum())
    if n <= LARGEST_EXACT_N:
        return int(np.count_nonzero(_subset_sums(difference) <= slack)) / float(2**n)
    exchanged = np.zeros(resamples)
    for start in range(0, n, _SEEDS_PER_BYTE):
        sums = _subset_sums(difference[start : start + _SEEDS_PER_BYTE])
        exchanged += sums[rng.integers(0, sums.size, size=resamples, dtype=np.uint8)]
    hits = int(np.count_nonzero(exchanged <= slack))
    return (1 + hits) / (1 + resamples)


def _subset_sums(difference: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sum of each subset of up to 12 differences, shape (2 ** n,): bit i of the index takes difference i."""
    taken = (np.arange(2**difference.size)[:, None] >> np.arange(difference.size)) & 1
    sums: npt.NDArray[np.float64] = taken @ difference
    return sums
