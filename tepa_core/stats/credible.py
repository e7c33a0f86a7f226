"""Credible bands of the posterior of a precedent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

FloatArray = npt.NDArray[np.float64]


def beta_band(a: npt.ArrayLike, b: npt.ArrayLike, *, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Equal-tailed credible band of Beta(a, b).

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Supports and conflicts, each with its prior added (counts, above 0); paper section 3.1.
    level : float
        Probability inside the band, between 0 and 1.

    Returns
    -------
    lo, hi : numpy.ndarray, shape (n,)
    """
    tail = (1 - level) / 2
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.asarray(betaincinv(first, second, tail)), np.asarray(betaincinv(first, second, 1 - tail))
