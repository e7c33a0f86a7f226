"""Key noise: what memory sees is not always what the task is about (the paper's key-noise audit)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def corrupt_keys(
    key: npt.NDArray[np.int64],
    first_other: int,
    end_other: int,
    rho: float,
    draw: npt.NDArray[np.float64],
    choice: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """Replace each key with probability ``rho`` by one of the keys ``first_other..end_other - 1``.

    ``draw`` and ``choice`` are uniform on [0, 1), one per task: the caller draws them whatever ``rho`` is.
    """
    others = first_other + np.floor(choice * (end_other - first_other)).astype(np.int64)
    return np.where(draw < rho, others, key)
