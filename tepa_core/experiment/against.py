"""One run against another: the difference per method and phase, paired where both met the same draws."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tepa_core.experiment.facts import FactSpec
from tepa_core.experiment.spec import RunSpec
from tepa_core.experiment.stored import Spec
from tepa_core.experiment.summary import RESAMPLING_SEED, per_seed_table
from tepa_core.stats import bootstrap_mean


def same_draws(a: Spec, b: Spec) -> bool:
    """Say whether two runs met the same draws, so that their seeds can be paired.

    A stream draws all its numbers whatever its probabilities are; a count (of tasks, of keys) changes the draws. Fact
    runs meet the same when they ask the same file in as many orders.
    """
    if isinstance(a, FactSpec) and isinstance(b, FactSpec):
        return a.digest == b.digest and a.orders == b.orders
    if not (isinstance(a, RunSpec) and isinstance(b, RunSpec)):
        return False

    def counts(spec: RunSpec) -> dict[str, float]:
        return {name: value for name, value in spec.world if isinstance(value, int)}

    return a.stream == b.stream and a.first_seed == b.first_seed and a.seeds == b.seeds and counts(a) == counts(b)


def run_differences(a: pd.DataFrame, b: pd.DataFrame, *, paired: bool, level: float = 0.95) -> pd.DataFrame:
    """Compare two runs method by method and phase by phase.

    Parameters
    ----------
    a, b
        ``method``, ``seed``, ``phase``, ``success`` of each run; methods and phases that only one has are left out.
    paired
        Whether the same seed means the same draws in both (see `same_draws`).
    level
        Coverage of the intervals.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``phase``, ``a`` and ``b`` (mean success), ``diff`` (a - b), ``lo``, ``hi`` (paired bootstrap over
        seeds; missing when the runs are not paired).

    Raises
    ------
    ValueError
        If the runs are called paired but have different seeds.
    """
    rows = []
    others = per_seed_table(b)
    for scope, first in per_seed_table(a).items():
        second = others.get(scope)
        if second is None:
            continue
        if paired and first.index.tolist() != second.index.tolist():
            raise ValueError("Runs with different seeds are not paired; compare them without intervals.")
        for method in [name for name in first.columns if name in second.columns]:
            x, y = first[method].to_numpy(), second[method].to_numpy()
            lo = hi = float("nan")
            if paired:
                bounds = bootstrap_mean(x - y, np.random.default_rng(RESAMPLING_SEED), level=level)
                lo, hi = bounds.lo, bounds.hi
            rows.append((method, scope, x.mean(), y.mean(), x.mean() - y.mean(), lo, hi))
    return pd.DataFrame(rows, columns=["method", "phase", "a", "b", "diff", "lo", "hi"])
