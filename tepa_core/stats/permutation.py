"""One-tailed paired permutation test over seeds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# 4096 sign patterns: cheaper than the Monte Carlo draw, and exact.
LARGEST_EXACT_N = 12


def paired_permutation(
    a: npt.ArrayLike, b: npt.ArrayLike, rng: np.random.Generator, *, resamples: int = 20_000
) -> float:
    """Test whether ``mean(a - b)`` is greater than zero, by exchanging `a` and `b` within seeds.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        One value per seed; position i of both comes from the same seed.
    rng : numpy.random.Generator
        Source of the exchanges. Not used for ``n <= 12``.
    resamples : int
        Number of random exchanges for ``n > 12``.

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
    exact = n <= LARGEST_EXACT_N
    if exact:
        exchanged = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    else:
        exchanged = rng.integers(0, 2, size=(resamples, n), dtype=np.int8)
    # Exchanging a set of seeds lowers the sum by twice that set's differences, so the result is as extreme as the data
    # exactly when the set adds up to zero or less. The slack keeps ties that rounding would break.
    slack = 1e-12 * np.abs(difference).sum()
    hits = int(np.count_nonzero(exchanged.astype(np.float64) @ difference <= slack))
    return hits / 2**n if exact else (1 + hits) / (1 + resamples)
