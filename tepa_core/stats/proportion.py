"""Interval of a proportion."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson_interval(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion, sensible at 0, at 1 and for few trials.

    Parameters
    ----------
    successes, trials
        Counts; at least one trial.
    level
        Coverage, between 0 and 1.

    Returns
    -------
    tuple of float
        Lower and upper bound, within 0 and 1.

    Raises
    ------
    ValueError
        If the counts or the level are out of range.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"successes must be from 0 to trials and trials at least 1, not {successes} of {trials}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p = successes / trials
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    # At the ends the bound is exact; rounding must not push it past them.
    return (0.0 if successes == 0 else centre - half, 1.0 if successes == trials else centre + half)
