"""One setting of the thresholds and everything one step of a slider away from it: means with bands over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.experiment.compiled_play import SUCCESS, Draws, behaviours, count
from tepa_core.experiment.summary import OVERALL, RESAMPLING_SEED
from tepa_core.experiment.sweep import METRICS, Grid, measured
from tepa_core.lifecycle import Thresholds
from tepa_core.stats import bootstrap_means, paired_comparison

FloatArray = npt.NDArray[np.float64]

#: Resamples of a band: hundreds of settings are banded at once, and a band on a screen needs no more.
RESAMPLES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """What a method does under each of some settings.

    Attributes
    ----------
    scopes
        Phases in order of time, then `OVERALL`.
    metrics
        By name (`tepa_core.experiment.sweep.METRICS`) an array of shape (settings, scopes).
    lo, hi
        Bootstrap bounds of ``success`` over the seeds, shape (settings, scopes); NaN for a single seed.
    """

    scopes: tuple[str, ...]
    metrics: Mapping[str, FloatArray]
    lo: FloatArray
    hi: FloatArray

    def part(self, rows: slice) -> Settings:
        """Return some of the settings."""
        return Settings(
            self.scopes, {name: values[rows] for name, values in self.metrics.items()}, self.lo[rows], self.hi[rows]
        )


def under(draws: Draws, settings: Sequence[Thresholds], method: str, fallback: str, level: float = 0.95) -> Settings:
    """Measure a method under each of some settings, with bands.

    Parameters
    ----------
    draws, settings, method, fallback
        As for `tepa_core.experiment.compiled_play.count`.
    level
        Coverage of the bands.

    Raises
    ------
    ValueError
        If the method has no lifecycle, or needs trials that the stream does not have.
    """
    first, kind = behaviours(settings, method)
    counts, _ = count(draws, [settings[i] for i in first], method, fallback)
    found = measured(draws, counts, METRICS)
    success = _success_per_seed(draws, counts)
    flat = success.transpose(1, 0, 2).reshape(len(draws.seeds), -1)
    # Many settings differ without succeeding differently; each column is resampled once.
    columns, place = np.unique(flat, axis=1, return_inverse=True)
    lo, hi, _ = bootstrap_means(columns, np.random.default_rng(RESAMPLING_SEED), level=level, resamples=RESAMPLES)
    shape = (len(first), success.shape[2])
    place = place.reshape(-1)
    return Settings(
        (*draws.phases, OVERALL),
        {name: values[kind] for name, values in found.items()},
        lo[place].reshape(shape)[kind],
        hi[place].reshape(shape)[kind],
    )


def around(
    draws: Draws, setting: Thresholds, grids: Sequence[Grid], method: str, fallback: str, level: float = 0.95
) -> dict[str, Settings]:
    """Vary each threshold alone, the others as in the setting, with bands (Fig. 4b).

    Parameters
    ----------
    draws, method, fallback, level
        As for `under`.
    setting
        The thresholds that a grid does not vary.
    grids
        The thresholds to vary.

    Returns
    -------
    dict
        By the name of the threshold what happens at each of its points.
    """
    every = under(draws, [point for grid in grids for point in grid.apply(setting)], method, fallback, level)
    found, start = {}, 0
    for grid in grids:
        found[grid.name] = every.part(slice(start, start + len(grid.values)))
        start += len(grid.values)
    return found


def compared(
    draws: Draws, a: Thresholds, b: Thresholds, method: str, fallback: str, level: float = 0.95
) -> pd.DataFrame:
    """Compare the success of two settings on the same draws, scope by scope.

    Parameters
    ----------
    draws, method, fallback, level
        As for `under`.
    a, b
        The settings.

    Returns
    -------
    pandas.DataFrame
        ``scope``, ``a``, ``b`` (means over the seeds), ``diff`` (a - b), ``lo``, ``hi``, ``p`` (paired permutation
        test that the two differ in either direction, not corrected for the number of scopes), ``changed`` (seeds in
        which they do).
    """
    counts, _ = count(draws, (a, b), method, fallback)
    first, second = _success_per_seed(draws, counts)
    rows = []
    for i, scope in enumerate((*draws.phases, OVERALL)):
        x, y = first[:, i], second[:, i]
        rng = np.random.default_rng(RESAMPLING_SEED)
        # The test is one-tailed: in the direction of the difference, and doubled for having looked.
        ahead = x.mean() >= y.mean()
        result = paired_comparison(*((x, y) if ahead else (y, x)), rng, level=level)
        diff, lo, hi = (result.diff, result.lo, result.hi) if ahead else (-result.diff, -result.hi, -result.lo)
        rows.append((scope, x.mean(), y.mean(), diff, lo, hi, min(2 * result.p, 1.0), int((x != y).sum())))
    return pd.DataFrame(rows, columns=["scope", "a", "b", "diff", "lo", "hi", "p", "changed"])


def _success_per_seed(draws: Draws, counts: npt.NDArray[np.int32]) -> FloatArray:
    """Share of tasks that succeed, shape (settings, S, phases and overall); every seed has the same phases."""
    won = counts[:, :, :, SUCCESS]
    tasks = draws.tasks / len(draws.seeds)
    share: FloatArray = np.concatenate([won / tasks, won.sum(axis=2, keepdims=True) / tasks.sum()], axis=2)
    return share
