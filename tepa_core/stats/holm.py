"""Holm's step-down correction for a family of tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Adjust p values so that rejecting those at or below alpha bounds the family-wise error by alpha.

    Parameters
    ----------
    p : array_like, shape (m,)
        Raw p values of all tests of the family, in any order.

    Returns
    -------
    numpy.ndarray, shape (m,)
        Adjusted p values in the order of `p`, each at least the raw one and at most 1.

    Raises
    ------
    ValueError
        If `p` is not one-dimensional, or holds NaN or a value outside [0, 1]: a test that was not made does not belong
        to the family, and its presence would change every other adjusted value.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure. The corrected tests of Zhou et al. (2026),
    arXiv 2608.07429.

    Examples
    --------
    >>> holm([0.25, 0.125, 0.5])
    array([0.5  , 0.375, 0.5  ])
    """
    raw = np.asarray(p, dtype=np.float64)
    if raw.ndim != 1:
        raise ValueError(f"Holm's correction needs one list of p values, got shape {raw.shape}.")
    if not ((raw >= 0) & (raw <= 1)).all():
        raise ValueError("Holm's correction needs p values between 0 and 1; leave out tests that were not made.")
    order = np.argsort(raw, kind="stable")
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(raw[order] * np.arange(raw.size, 0, -1)), 1.0)
    return adjusted
