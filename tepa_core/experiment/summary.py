"""What a run says: success per phase with intervals, pollution, paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tepa_core.stats import bootstrap_mean, bootstrap_means, holm, mpi_interval, paired_comparison

#: Scope of all tasks together, beside the names of phases.
OVERALL = "overall"

#: The method that pollution is measured against.
REFERENCE = "no_memory"

#: Seed of the resampling, so that the same run always shows the same bounds.
RESAMPLING_SEED = 20260810


def _generator() -> np.random.Generator:
    return np.random.default_rng(RESAMPLING_SEED)


def per_seed_table(per_seed: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Turn ``method, seed, phase, success`` rows into one seed x method table per scope."""
    return {
        str(scope): rows.pivot(index="seed", columns="method", values="success").sort_index()
        for scope, rows in per_seed.groupby("phase", observed=True, sort=False)
    }


def success_summary(per_seed: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Mean success with bootstrap intervals over seeds.

    Parameters
    ----------
    per_seed
        ``method``, ``seed``, ``phase`` (names of phases and `OVERALL`), ``success`` (mean of the seed's tasks).
    level
        Coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``phase``, ``mean``, ``lo``, ``hi``.
    """
    rows = []
    for scope, table in per_seed_table(per_seed).items():
        lo, hi, mean = bootstrap_means(table.to_numpy(), _generator(), level=level)
        rows.append(pd.DataFrame({"method": table.columns, "phase": scope, "mean": mean, "lo": lo, "hi": hi}))
    return pd.concat(rows, ignore_index=True)


def pollution_summary(per_seed: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Memory pollution index per method and scope (paper section 3.1), with paired bootstrap intervals.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``phase``, ``mpi``, ``lo``, ``hi``; no rows when the run has no ``no_memory``.
    """
    rows = []
    for scope, table in per_seed_table(per_seed).items():
        if REFERENCE not in table:
            continue
        for method in table.columns:
            interval = mpi_interval(table[REFERENCE].to_numpy(), table[method].to_numpy(), _generator(), level=level)
            rows.append((method, scope, interval.estimate, interval.lo, interval.hi))
    return pd.DataFrame(rows, columns=["method", "phase", "mpi", "lo", "hi"])


def paired_comparisons(
    per_seed: pd.DataFrame,
    a: str = "tepa",
    others: Sequence[str] | None = None,
    scopes: Sequence[str] = (OVERALL, "reversal"),
    level: float = 0.95,
) -> pd.DataFrame:
    """Compare one method with others, and no memory with append-only, on the same seeds.

    Parameters
    ----------
    a
        The method whose advantage is tested (one-tailed).
    others
        What it is compared with; every other method of the run when left out.
    scopes
        Phases, or `OVERALL`.

    Returns
    -------
    pandas.DataFrame
        ``a``, ``b``, ``scope``, ``diff``, ``lo``, ``hi``, ``p``, ``p_holm`` (over all rows), ``dz``.
    """
    rows = []
    tables = per_seed_table(per_seed)
    for scope in scopes:
        table = tables.get(scope)
        if table is None:
            continue
        pairs = [(a, b) for b in (table.columns if others is None else others) if b != a]
        if (REFERENCE, "append_only") not in pairs and a != "append_only":
            pairs.append((REFERENCE, "append_only"))
        for left, right in pairs:
            if left in table and right in table:
                result = paired_comparison(table[left].to_numpy(), table[right].to_numpy(), _generator(), level=level)
                rows.append((left, right, scope, result.diff, result.lo, result.hi, result.p, result.dz))
    frame = pd.DataFrame(rows, columns=["a", "b", "scope", "diff", "lo", "hi", "p", "dz"])
    frame.insert(7, "p_holm", holm(frame["p"].to_numpy()) if len(frame) else [])
    return frame


def curve_summary(course: pd.DataFrame, quantity: str = "success", level: float = 0.95) -> pd.DataFrame:
    """Mean course over the tasks with pointwise bootstrap bands over seeds (Fig. 2, Fig. 6).

    Parameters
    ----------
    course
        ``method``, ``seed``, ``t`` and the quantity, one row per task.
    quantity
        The column to average.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``t``, ``mean``, ``lo``, ``hi``.
    """
    rows = []
    for method, part in course.groupby("method", observed=True, sort=False):
        table = part.pivot(index="seed", columns="t", values=quantity)
        # A band on a screen needs no ten thousand resamples.
        lo, hi, mean = bootstrap_means(table.to_numpy(np.float64), _generator(), level=level, resamples=2_000)
        rows.append(pd.DataFrame({"method": method, "t": table.columns, "mean": mean, "lo": lo, "hi": hi}))
    return pd.concat(rows, ignore_index=True)


def measures_summary(per_seed: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Mean of every measure of the lifecycle with bootstrap intervals over the seeds that have it.

    Parameters
    ----------
    per_seed
        ``method``, ``seed``, ``measure``, ``value``; missing where a seed has none.
    level
        Coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``measure``, ``mean``, ``lo``, ``hi`` (missing when no seed has it), ``seeds`` (how many have it).
    """
    rows = []
    for (method, measure), part in per_seed.groupby(["method", "measure"], sort=False):
        known = part["value"].dropna().to_numpy(np.float64)
        mean = lo = hi = float("nan")
        if known.size:
            bounds = bootstrap_mean(known, _generator(), level=level)
            mean, lo, hi = bounds.estimate, bounds.lo, bounds.hi
        rows.append((method, measure, mean, lo, hi, known.size))
    return pd.DataFrame(rows, columns=["method", "measure", "mean", "lo", "hi", "seeds"])
