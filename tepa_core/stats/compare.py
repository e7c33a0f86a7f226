"""Paired comparison of two methods that ran on the same seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tepa_core.stats.bootstrap import bootstrap_mean
from tepa_core.stats.permutation import paired_permutation


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much better one method did than another on the same seeds.

    Attributes
    ----------
    diff : float
        Mean of a - b over seeds, in the unit of the data (for success: a share of tasks).
    lo, hi : float
        Percentile bootstrap bounds of `diff`; NaN with a single seed.
    p : float
        One-tailed paired permutation p for ``diff > 0``, not corrected for other comparisons.
    dz : float
        Cohen's d_z, without unit.
    """

    diff: float
    lo: float
    hi: float
    p: float
    dz: float


def cohens_dz(diff: npt.ArrayLike) -> float:
    """Standardised mean of paired differences: mean / sd, with n - 1 in the sd.

    Parameters
    ----------
    diff : array_like, shape (n,)
        One difference per seed.

    Returns
    -------
    float
        d_z, without unit. Differences that are all equal have no spread: d_z is then infinite with the sign of the
        mean, or NaN if they are all zero. NaN for a single seed, which has no sd.

    Raises
    ------
    ValueError
        If `diff` is not one-dimensional, is empty, or holds a value that is not finite.

    References
    ----------
    Cohen (1988), Statistical Power Analysis, section 2.3.5; Lakens (2013), equation 7. The effect sizes of Zhou et al.
    (2026), arXiv 2608.07429.

    Examples
    --------
    >>> cohens_dz([1.0, 2.0, 3.0])
    2.0
    """
    data = np.asarray(diff, dtype=np.float64)
    if data.ndim != 1 or data.size == 0 or not np.isfinite(data).all():
        raise ValueError("Cohen's d_z needs a finite difference for every seed, and at least one seed.")
    if data.size == 1:
        return float("nan")
    mean, sd = float(data.mean()), float(data.std(ddof=1))
    # Equal differences of rounded rates (0.7 - 0.6, 0.6 - 0.5) differ in the last digits: spread that is not there.
    if sd <= 1e-12 * float(np.abs(data).max()):
        return float("nan") if mean == 0 else float(np.copysign(np.inf, mean))
    return mean / sd


def paired_comparison(
    a: npt.ArrayLike, b: npt.ArrayLike, rng: np.random.Generator, *, level: float = 0.95
) -> Comparison:
    """Compare `a` with `b` on the same seeds: difference, interval, test and effect size.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        One value per seed; position i of both comes from the same seed.
    rng : numpy.random.Generator
        Source of the bootstrap samples and then of the exchanges.
    level : float
        Nominal coverage of the interval, between 0 and 1.

    Returns
    -------
    Comparison
        Positive `diff` means `a` is larger. Correct the p values of a family of comparisons with
        `tepa_core.stats.holm.holm`.

    Raises
    ------
    ValueError
        If `a` and `b` are not one-dimensional and of one length, are empty, or hold a value that is not finite.

    References
    ----------
    The paired differences of Zhou et al. (2026), arXiv 2608.07429.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(
            f"A paired comparison needs the same seeds on both sides, got shapes {first.shape} and {second.shape}."
        )
    difference = first - second
    dz = cohens_dz(difference)
    interval = bootstrap_mean(difference, rng, level=level)
    p = paired_permutation(first, second, rng)
    return Comparison(interval.estimate, interval.lo, interval.hi, p, dz)
