"""Threshold sweeps: what a TEPA method does to success and pollution over one or two thresholds (paper, ablation).

Every seed is played anew at every grid point by the compiled agent loop, since other thresholds make another agent:
it acts differently, so it meets other evidence.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from tepa_core.experiment.compiled_play import (
    DELAY,
    DELAYED,
    EXPOSED,
    FALSELY_REVOKED,
    NEVER_REVOKED,
    REVOKED,
    SUCCESS,
    Draws,
    behaviours,
    count,
)
from tepa_core.experiment.run import Progress
from tepa_core.experiment.spec import RunSpec
from tepa_core.experiment.summary import OVERALL
from tepa_core.lifecycle import Thresholds
from tepa_core.stats import mpi

#: What a grid can vary. ``prior`` is alpha and beta together; ``trial_budget`` acts on TEPA-Full alone.
SETTINGS = ("theta_rev", "n_min", "theta_rec", "n_rec", "theta_prop", "theta_pro", "prior", "trial_budget")

#: What a sweep measures at each point; `sweep` says how.
METRICS = (
    "success",
    "mpi",
    "revocations",
    "false_revocations",
    "revocation_delay",
    "never_revoked",
    "stale_exposure",
)

#: Points of one grid at most.
MAX_POINTS = 201

#: About a tenth of a second: so often progress is reported and can stop the sweep.
_STEPS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Grid:
    """The values of one threshold in a sweep, in rising order.

    Examples
    --------
    >>> Grid.parse("theta_rev=0:0.9:4").values
    (0.0, 0.3, 0.6, 0.9)
    >>> Grid.parse("n_rec=1:4:31").values
    (1, 2, 3, 4)
    """

    name: str
    values: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Grid:
        """Read ``NAME=START:STOP:COUNT``, both ends included, or ``NAME=VALUE``.

        Raises
        ------
        ValueError
            If the text is no grid, or a point is out of the threshold's range; the message says what to write.
        """
        name, _, points = text.partition("=")
        parts = points.split(":")
        try:
            numbers = [Fraction(part.strip()) for part in parts]
        except (ValueError, ZeroDivisionError):
            numbers = []
        if len(numbers) not in (1, 3) or (len(numbers) == 3 and numbers[2].denominator != 1):
            raise ValueError(
                f"{text!r} is no grid; write NAME=START:STOP:COUNT, as in theta_rev=0:0.9:31, or NAME=VALUE"
            )
        if len(numbers) == 1:
            return cls.of(name.strip(), numbers)
        return cls.between(name.strip(), numbers[0], numbers[1], int(numbers[2]))

    @classmethod
    def between(cls, name: str, start: float | Fraction, stop: float | Fraction, count: int) -> Grid:
        """Return evenly spaced points from ``start`` to ``stop``, both included.

        Each point is the number nearest to the exact one, so 0.3 is the 0.3 of a setting. A threshold that is a whole
        number gets whole points, each once.

        Raises
        ------
        ValueError
            If there is no such threshold, a point is out of its range, or there are too few or too many points.
        """
        low, high = (Fraction(repr(float(end))) if isinstance(end, float) else Fraction(end) for end in (start, stop))
        if not low < high:
            raise ValueError(f"the grid of {name} must rise, not go from {start} to {stop}")
        if not 2 <= count <= MAX_POINTS:
            raise ValueError(f"a grid has from 2 to {MAX_POINTS} points, that of {name} has {count}; change its COUNT")
        exact = [low + (high - low) * i / (count - 1) for i in range(count)]
        return cls.of(name, dict.fromkeys(map(round, exact)) if _is_whole(name) else exact)

    @classmethod
    def of(cls, name: str, values: Iterable[float | Fraction]) -> Grid:
        """Return a grid of the given points.

        Raises
        ------
        ValueError
            If there is no such threshold, or a point is out of its range.
        """
        if name not in SETTINGS:
            raise ValueError(f"{name or 'a grid without a name'} cannot be swept; choose one of {', '.join(SETTINGS)}")
        points = tuple(float(value) for value in values)
        for point in points:
            if name == "prior" and not 0 < point < float("inf"):
                raise ValueError(f"prior must be above 0, not {point:g}")
            if name != "prior":
                Thresholds().changed({name: point})
        return cls(name, tuple(map(int, points)) if _is_whole(name) else points)

    def apply(self, thresholds: Thresholds) -> tuple[Thresholds, ...]:
        """Return the thresholds at each point, all else as given."""
        names = ("alpha", "beta") if self.name == "prior" else (self.name,)
        return tuple(thresholds.changed(dict.fromkeys(names, value)) for value in self.values)


def _is_whole(name: str) -> bool:
    return isinstance(getattr(Thresholds(), name, None), int)


#: A grid for each slider of the thresholds, over the range that is worth looking at.
SLIDERS: Mapping[str, Grid] = MappingProxyType(
    {
        grid.name: grid
        for grid in map(
            Grid.parse,
            (
                "theta_rev=0:0.9:31",
                "n_min=1:20:20",
                "theta_rec=0:1:31",
                "n_rec=1:12:12",
                "theta_prop=1:12:12",
                "theta_pro=0.3:0.95:27",
                "prior=0.25:5:20",
                "trial_budget=1:9:9",
            ),
        )
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class SweepResult:
    """A method over a grid of thresholds.

    Attributes
    ----------
    x, y
        The grids; ``y`` is None in a sweep of one threshold.
    scopes
        Phases in order of time, then `OVERALL`.
    metrics
        By name an array of shape (points of y, points of x, scopes), with one row where ``y`` is None. NaN where
        there is nothing to measure (`sweep`).
    elapsed_s, kernel_s
        Seconds in all, and in the compiled loop. The sweeps of `one_dimensional` share theirs.
    """

    x: Grid
    y: Grid | None
    scopes: tuple[str, ...]
    metrics: Mapping[str, npt.NDArray[np.float64]]
    elapsed_s: float
    kernel_s: float

    def surface(self, metric: str, scope: str = OVERALL) -> npt.NDArray[np.float64]:
        """Return one metric in one scope, shape (points of y, points of x).

        Raises
        ------
        ValueError
            If the sweep has no such metric or scope.
        """
        if metric not in self.metrics:
            raise ValueError(f"{metric} was not measured; choose one of {', '.join(self.metrics)}")
        if scope not in self.scopes:
            raise ValueError(f"{scope} is no phase; choose one of {', '.join(self.scopes)}")
        return self.metrics[metric][:, :, self.scopes.index(scope)]


def sweep(
    spec: RunSpec,
    x: Grid,
    y: Grid | None = None,
    *,
    method: str = "tepa",
    metrics: Sequence[str] = METRICS,
    draws: Draws | None = None,
    progress: Progress | None = None,
) -> SweepResult:
    """Measure a method at every point of one or two grids.

    Parameters
    ----------
    spec
        The stream, its seeds and world, how the method acts without an Active precedent, and the thresholds that the
        grids do not vary. Its methods do not count.
    x, y
        The thresholds to vary.
    method
        A method with a lifecycle.
    metrics
        Which to measure. Means over the seeds, those without a value left out:

        ``success``
            Share of tasks that succeed.
        ``mpi``
            Memory pollution index against the agent without memory on the same draws.
        ``revocations``, ``false_revocations``
            Revocations per seed, and those of a value that was right at the time.
        ``revocation_delay``
            Mean tasks until a superseded value was revoked; in the phase in which it was superseded.
        ``never_revoked``
            Superseded values per seed that were Active and never revoked while they were wrong.
        ``stale_exposure``
            Share of the tasks with a known right value at which another was retrieved.
    draws
        The drawn streams of ``spec``, where they are at hand (`Draws.of`).
    progress
        Called with the fraction done; an exception raised in it stops the sweep.

    Raises
    ------
    ValueError
        If both grids vary the same threshold, the method has no lifecycle, or there is no such metric.
    """
    began = time.perf_counter()
    if y is not None and x.name == y.name:
        raise ValueError(f"both grids vary {x.name}; choose another threshold for one of them")
    drawn = Draws.of(spec, _part(progress, 0.0, 0.5)) if draws is None else draws
    rows = [spec.thresholds] if y is None else y.apply(spec.thresholds)
    settings = [point for row in rows for point in x.apply(row)]
    played = _part(progress, 0.5, 1.0) if draws is None else progress
    found, kernel_s = measure(drawn, settings, method, spec.fallback, metrics=metrics, progress=played)
    shape = (len(rows), len(x.values), -1)
    return SweepResult(
        x,
        y,
        (*drawn.phases, OVERALL),
        {name: values.reshape(shape) for name, values in found.items()},
        time.perf_counter() - began,
        kernel_s,
    )


def _part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Report a part of the work as the stretch from ``start`` to ``end`` of the whole."""
    if progress is None:
        return None
    return lambda done, sentence: progress(start + (end - start) * done, sentence)


def one_dimensional(
    spec: RunSpec,
    grids: Sequence[Grid] | None = None,
    *,
    method: str = "tepa",
    metrics: Sequence[str] = METRICS,
    draws: Draws | None = None,
) -> dict[str, SweepResult]:
    """Sweep each threshold alone, the others as in the spec (Fig. 4b): all of them in one go.

    Parameters
    ----------
    spec, method, metrics, draws
        As for `sweep`.
    grids
        The thresholds to vary; those of `SLIDERS` that act on the method when left out.

    Returns
    -------
    dict
        By the name of the threshold, a sweep of one row.

    Raises
    ------
    ValueError
        As for `sweep`.
    """
    began = time.perf_counter()
    drawn = Draws.of(spec) if draws is None else draws
    if grids is None:
        grids = [grid for grid in SLIDERS.values() if grid.name != "trial_budget" or method == "tepa_full"]
    settings = [point for grid in grids for point in grid.apply(spec.thresholds)]
    found, kernel_s = measure(drawn, settings, method, spec.fallback, metrics=metrics)
    elapsed = time.perf_counter() - began
    sweeps = {}
    start = 0
    for grid in grids:
        own = slice(start, start + len(grid.values))
        sweeps[grid.name] = SweepResult(
            grid,
            None,
            (*drawn.phases, OVERALL),
            {name: values[None, own] for name, values in found.items()},
            elapsed,
            kernel_s,
        )
        start = own.stop
    return sweeps


def measure(
    draws: Draws,
    settings: Sequence[Thresholds],
    method: str,
    fallback: str,
    *,
    metrics: Sequence[str] = METRICS,
    progress: Progress | None = None,
) -> tuple[dict[str, npt.NDArray[np.float64]], float]:
    """Measure a method under each of some settings.

    Parameters
    ----------
    draws, settings, method, fallback
        As for `tepa_core.experiment.compiled_play.count`.
    metrics, progress
        As for `sweep`.

    Returns
    -------
    dict
        By metric an array of shape (settings, phases and overall).
    float
        Seconds in the compiled loop.

    Raises
    ------
    ValueError
        If the method has no lifecycle, or there is no such metric.
    """
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} cannot be measured in a sweep; choose from {', '.join(METRICS)}")
    first, kind = behaviours(settings, method)
    at_once = max(_STEPS_AT_ONCE // max(draws.steps, 1), 1)
    parts: list[dict[str, npt.NDArray[np.float64]]] = []
    kernel_s = 0.0
    for start in range(0, len(first), at_once):
        some = [settings[i] for i in first[start : start + at_once]]
        counts, taken = count(draws, some, method, fallback)
        kernel_s += taken
        parts.append(measured(draws, counts, metrics))
        if progress is not None:
            done = start + len(some)
            progress(done / len(first), f"Played {done:,} of {len(first):,} settings that differ")
    return {name: np.concatenate([part[name] for part in parts])[kind] for name in metrics}, kernel_s


def measured(draws: Draws, counts: npt.NDArray[np.int32], metrics: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    """Turn the counts of `tepa_core.experiment.compiled_play.count` into metrics.

    Parameters
    ----------
    draws
        What was played.
    counts
        Shape (settings, S, F, kinds of count).
    metrics
        Which, as for `sweep`.

    Returns
    -------
    dict
        By metric an array of shape (settings, phases and overall).
    """
    seeds = len(draws.seeds)
    counts = np.concatenate([counts, counts.sum(axis=2, keepdims=True, dtype=np.int32)], axis=2)
    total = counts.sum(axis=1, dtype=np.int64)
    # Every seed has the same phases, so the mean over the seeds is that over all tasks: one division, exactly rounded.
    success = total[:, :, SUCCESS] / _with_overall(draws.tasks)
    found: dict[str, npt.NDArray[np.float64]] = {}
    for name in metrics:
        match name:
            case "success":
                found[name] = success
            case "mpi":
                without = _with_overall(draws.without_memory) / _with_overall(draws.tasks)
                found[name] = mpi(without, success)
            case "revocations":
                found[name] = total[:, :, REVOKED] / seeds
            case "false_revocations":
                found[name] = total[:, :, FALSELY_REVOKED] / seeds
            case "never_revoked":
                found[name] = total[:, :, NEVER_REVOKED] / seeds
            case "revocation_delay":
                found[name] = _mean_of_seeds(counts[:, :, :, DELAY], counts[:, :, :, DELAYED])
            case "stale_exposure":
                found[name] = _mean_of_seeds(counts[:, :, :, EXPOSED], _with_overall(draws.known))
    return found


def _with_overall(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Append the sum over the phases, which are the last axis."""
    return np.concatenate([numbers, numbers.sum(axis=-1, keepdims=True)], axis=-1)


def _mean_of_seeds(part: npt.NDArray[np.int32], whole: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Mean over the seeds (second axis) of part / whole, those left out whose whole is nothing; NaN if all are."""
    whole = np.broadcast_to(whole, part.shape)
    ratio = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
    having = (whole > 0).sum(axis=1)
    mean = np.full(having.shape, np.nan)
    np.divide(ratio.sum(axis=1), having, out=mean, where=having > 0)
    return mean
