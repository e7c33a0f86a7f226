"""The memory pollution index (MPI): what a memory costs compared with having none."""

from __future__ import annotations

from typing import overload

import numpy as np
import numpy.typing as npt

from tepa_core.stats.bootstrap import Interval, resample_counts


@overload
def mpi(success_nomem: float, success: float) -> float: ...
@overload
def mpi(success_nomem: npt.NDArray[np.float64], success: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
@overload
def mpi(success_nomem: npt.ArrayLike, success: npt.ArrayLike) -> float | npt.NDArray[np.float64]: ...
def mpi(success_nomem: npt.ArrayLike, success: npt.ArrayLike) -> float | npt.NDArray[np.float64]:
    """Memory pollution index: (S_nomem - S) / S_nomem.

    Parameters
    ----------
    success_nomem, success : array_like
        Success rates without memory and of the method, in the same phase. The shapes broadcast.

    Returns
    -------
    float or numpy.ndarray
        Without unit, at most 1. Above zero the method does worse than an agent without memory; 1 means it never
        succeeds. NaN where the agent without memory never succeeds, since there is then nothing to lose.
        A float for two scalars, else an array of the broadcast shape.

    References
    ----------
    Zhou et al. (2026), arXiv 2608.07429, definition of MPI[m, phi].

    Examples
    --------
    The append-only agent in full reversal, from the paper's rates:

    >>> round(mpi(0.309, 0.210), 2)
    0.32
    """
    nomem, method = np.broadcast_arrays(
        np.asarray(success_nomem, dtype=np.float64), np.asarray(success, dtype=np.float64)
    )
    index = np.full(nomem.shape, np.nan)
    np.divide(nomem - method, nomem, out=index, where=nomem != 0)
    return float(index) if index.ndim == 0 else index


def mpi_interval(
    nomem: npt.ArrayLike,
    method: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """MPI of the mean success rates, with a paired bootstrap interval.

    Each resample draws seeds and takes both means over them, so what the two agents share on a seed cancels.

    Parameters
    ----------
    nomem, method : array_like, shape (n,)
        Success rate per seed without memory and of the method; position i of both comes from the same seed.
    rng : numpy.random.Generator
        Source of the resamples; the same state gives the same bounds.
    level : float
        Nominal coverage, between 0 and 1.
    resamples : int
        Number of bootstrap samples.

    Returns
    -------
    Interval
        Ratio of the means (not the mean of the seeds' ratios, which is undefined once a seed has no success) and its
        percentile bounds, without unit. All NaN if the agent without memory never succeeds. The bounds are NaN with a
        single seed, and when some resample holds no success without memory: the ratio has no distribution then.

    Raises
    ------
    ValueError
        If `nomem` and `method` are not one-dimensional and of one length, are empty, or hold a value that is not
        finite.

    References
    ----------
    Zhou et al. (2026), arXiv 2608.07429, definition of MPI[m, phi].
    """
    without, with_memory = np.asarray(nomem, dtype=np.float64), np.asarray(method, dtype=np.float64)
    if without.ndim != 1 or without.shape != with_memory.shape or without.size == 0:
        raise ValueError(
            "The pollution index needs the success rate of the same seeds with and without memory, "
            f"got shapes {with_memory.shape} and {without.shape}."
        )
    if not (np.isfinite(without).all() and np.isfinite(with_memory).all()):
        raise ValueError("The pollution index needs a finite rate for every seed; leave out the seeds that miss one.")
    estimate = mpi(float(without.mean()), float(with_memory.mean()))
    if without.size == 1:
        return Interval(estimate, float("nan"), float("nan"))
    counts = resample_counts(without.size, rng, resamples=resamples)
    ratios = mpi(counts @ without, counts @ with_memory)
    lo, hi = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(lo), float(hi))
