"""The paper's tables beside ours: every reported number, what we measure for it, and whether the two agree.

Reported numbers are those of Zhou, Ouyang, Zheng and Xiang, "TEPA: Revoking Stale Memories for Conflict-Robust Language
Agents" (arXiv 2608.07429, v2), sections 5 and 6. Nothing here is tuned: every run uses the defaults of its stream and
of the thresholds, except for the one setting that its row names.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from tepa_core.experiment import OVERALL, REFERENCE, Progress, RunSpec, run
from tepa_core.experiment.summary import RESAMPLING_SEED, per_seed_table
from tepa_core.lifecycle import Thresholds
from tepa_core.stats import bootstrap_mean, mpi_interval, resample_counts
from tepa_core.store import Store, queries, save_run

#: A reported value counts as reproduced when it lies in our interval widened by this much on both sides.
MARGIN = 0.03


@dataclass(frozen=True, slots=True)
class Row:
    """One reported number and where ours comes from.

    Attributes
    ----------
    table
        Where the paper has it.
    run
        Which of `RUNS` measures it.
    method
        A method, or "a - b" for a paired difference.
    scope
        Phase, or ``overall``.
    quantity
        ``success``, ``mpi``, ``difference``, ``dz`` or ``change`` (against the run's unchanged setting).
    reported
        The paper's number.
    """

    table: str
    run: str
    method: str
    scope: str
    quantity: str
    reported: float


def _thresholds(**changed: float) -> Thresholds:
    return dataclasses.replace(Thresholds(), **changed)  # type: ignore[arg-type]


def specs(seeds: int = 50) -> Mapping[str, RunSpec]:
    """Return the runs that the tables need: the three drift streams as they are, and one changed setting each."""
    noise_methods = ("tepa", "reactive_forgetting", "last_write_wins", "append_only", "no_memory")
    made = {
        "controlled": RunSpec.build("controlled", seeds=seeds),
        "executable": RunSpec.build("executable", seeds=seeds),
        "preference": RunSpec.build("preference", seeds=seeds),
    }
    for percent in (5, 10, 20):
        made[f"key noise {percent} %"] = RunSpec.build(
            "controlled", seeds=seeds, methods=noise_methods, world={"key_noise": percent / 100}
        )
    for name, value in (("theta_rev", 0.2), ("theta_rev", 0.4), ("theta_pro", 0.5), ("theta_pro", 0.7), ("n_rec", 5)):
        made[f"{name} = {value}"] = RunSpec.build(
            "controlled", seeds=seeds, methods=("tepa",), thresholds=_thresholds(**{name: value})
        )
    for budget in (1, 5):
        made[f"trial_budget = {budget}"] = RunSpec.build(
            "controlled", seeds=seeds, methods=("tepa_full",), thresholds=_thresholds(trial_budget=budget)
        )
    return MappingProxyType(made)


def _success(table: str, run_name: str, scope: str, reported: Mapping[str, float]) -> list[Row]:
    return [Row(table, run_name, method, scope, "success", value) for method, value in reported.items()]


def _rows() -> tuple[Row, ...]:
    drift = "Drift: success in full reversal"
    paired = "Drift and preference: paired differences"
    preference = "Preference stream"
    noise = "Key noise: success in full reversal"
    ablation = "Ablation: change of overall success"
    rows = [
        *_success(
            drift,
            "controlled",
            "reversal",
            {
                "no_memory": 0.309,
                "append_only": 0.210,
                "last_write_wins": 0.210,
                "conflict_aware_recency": 0.210,
                "semantic_retrieval": 0.21,
                "temporal_recency": 0.21,
                "tepa_norev": 0.211,
                "reactive_forgetting": 0.796,
                "oracle_reset": 0.812,
                "tepa": 0.950,
            },
        ),
        Row(drift, "controlled", "append_only", "reversal", "mpi", 0.318),
        *_success(
            drift,
            "executable",
            "reversal",
            {
                "no_memory": 0.298,
                "append_only": 0.203,
                "last_write_wins": 0.203,
                "tepa_norev": 0.2,
                "reactive_forgetting": 0.771,
                "tepa": 0.950,
            },
        ),
        Row(drift, "executable", "append_only", "reversal", "mpi", 0.319),
    ]
    for run_name, a, b, scope, value in (
        ("controlled", "tepa", "append_only", OVERALL, 0.167),
        ("controlled", "tepa", "last_write_wins", OVERALL, 0.167),
        ("controlled", "tepa", "append_only", "reversal", 0.740),
        ("controlled", "tepa", "last_write_wins", "reversal", 0.740),
        ("controlled", "no_memory", "append_only", "reversal", 0.098),
        ("executable", "tepa", "append_only", OVERALL, 0.171),
        ("executable", "tepa", "last_write_wins", OVERALL, 0.171),
        ("executable", "tepa", "append_only", "reversal", 0.748),
        ("executable", "tepa", "last_write_wins", "reversal", 0.748),
        ("executable", "no_memory", "append_only", "reversal", 0.095),
        ("preference", "tepa_full", "append_only", OVERALL, 0.234),
        ("preference", "tepa_full", "append_only", "reversal", 0.734),
        ("preference", "tepa_full", "last_write_wins", OVERALL, 0.224),
        ("preference", "tepa_full", "lww_validated", OVERALL, 0.048),
        ("preference", "tepa_full", "lww_validated", "reversal", 0.240),
        ("preference", "tepa_full", "no_memory", OVERALL, 0.002),
    ):
        rows.append(Row(paired, run_name, f"{a} - {b}", scope, "difference", value))
    rows += [
        Row(paired, "controlled", "tepa - append_only", OVERALL, "dz", 9.68),
        Row(paired, "executable", "no_memory - append_only", "reversal", "dz", 2.10),
        *_success(
            preference,
            "preference",
            OVERALL,
            {
                "no_memory": 0.908,
                "append_only": 0.676,
                "semantic_retrieval": 0.676,
                "tepa_norev": 0.68,
                "last_write_wins": 0.686,
                "lww_validated": 0.863,
                "oracle_reset": 0.865,
                "tepa": 0.852,
                "tepa_full": 0.910,
            },
        ),
        *_success(
            preference,
            "preference",
            "reversal",
            {"no_memory": 0.837, "append_only": 0.138, "lww_validated": 0.632, "tepa_full": 0.872},
        ),
    ]
    levels = ("controlled", "key noise 5 %", "key noise 10 %", "key noise 20 %")
    for method, values in {
        "tepa": (0.950, 0.908, 0.886, 0.777),
        "reactive_forgetting": (0.796, 0.745, 0.731, 0.613),
        "last_write_wins": (0.210, 0.212, 0.212, 0.215),
        "append_only": (0.210, 0.212, 0.212, 0.215),
        "no_memory": (0.309, 0.304, 0.302, 0.297),
    }.items():
        for level, value in zip(levels, values, strict=True):
            rows.append(Row(noise, level, method, "reversal", "success", value))
    # The paper gives words here: these settings "change almost nothing", a recent window of 5 is the outlier.
    for name in ("theta_rev = 0.2", "theta_rev = 0.4", "theta_pro = 0.5", "theta_pro = 0.7"):
        rows.append(Row(ablation, name, "tepa", OVERALL, "change", 0.0))
    for name in ("trial_budget = 1", "trial_budget = 5"):
        rows.append(Row(ablation, name, "tepa_full", OVERALL, "change", 0.0))
    return tuple(rows)


#: Every number of the drift, preference, noise and ablation tables.
ROWS: tuple[Row, ...] = _rows()


def ensure_runs(store: Store, seeds: int = 50, progress: Progress | None = None) -> Mapping[str, str]:
    """Run what the tables need and the database does not have yet.

    Returns
    -------
    Mapping[str, str]
        Name of the run in `specs` -> id of the stored run.
    """
    wanted = specs(seeds)
    there = set(queries.runs(store)["run_id"])
    stored = {}
    for i, (name, spec) in enumerate(wanted.items()):
        if spec.run_id not in there:
            save_run(store, run(spec, _part(progress, i, len(wanted), name)), f"Reproduction: {name}")
        stored[name] = spec.run_id
    return stored


def _part(progress: Progress | None, number: int, of: int, name: str) -> Progress | None:
    if progress is None:
        return None

    def show(done: float, words: str) -> None:
        progress((number + done) / of, f"{name}: {words}")

    return show


def table(store: Store, stored: Mapping[str, str], rows: Sequence[Row] = ROWS) -> pd.DataFrame:
    """Measure every row.

    Parameters
    ----------
    stored
        From `ensure_runs`.

    Returns
    -------
    pandas.DataFrame
        ``table``, ``run``, ``method``, ``scope``, ``quantity``, ``reported``, ``ours``, ``lo``, ``hi`` (95 % bootstrap
        interval over seeds) and ``within``: the reported value lies in the interval widened by `MARGIN`.
    """
    seeds = {name: per_seed_table(queries.success_per_seed(store, run_id)) for name, run_id in stored.items()}
    measured = []
    for row in rows:
        estimate, lo, hi = _measure(row, seeds)
        measured.append(
            {
                **dataclasses.asdict(row),
                "ours": estimate,
                "lo": lo,
                "hi": hi,
                "within": bool(lo - MARGIN <= row.reported <= hi + MARGIN),
            }
        )
    return pd.DataFrame(measured)


def _measure(row: Row, seeds: Mapping[str, Mapping[str, pd.DataFrame]]) -> tuple[float, float, float]:
    rng = np.random.default_rng(RESAMPLING_SEED)
    scores = seeds[row.run][row.scope]
    if row.quantity == "mpi":
        pollution = mpi_interval(scores[REFERENCE].to_numpy(), scores[row.method].to_numpy(), rng)
        return pollution.estimate, pollution.lo, pollution.hi
    if row.quantity == "success":
        values = scores[row.method].to_numpy()
    elif row.quantity == "change":
        values = scores[row.method].to_numpy() - seeds["controlled"][row.scope][row.method].to_numpy()
    else:
        a, b = row.method.split(" - ")
        values = scores[a].to_numpy() - scores[b].to_numpy()
    if row.quantity == "dz":
        return _dz(values, rng)
    interval = bootstrap_mean(values, rng)
    return interval.estimate, interval.lo, interval.hi


def _dz(values: np.ndarray[tuple[int], np.dtype[np.float64]], rng: np.random.Generator) -> tuple[float, float, float]:
    """Cohen's d_z of paired differences with a percentile bootstrap interval."""
    n = len(values)
    counts = resample_counts(n, rng)
    mean = counts @ values / n
    spread = np.sqrt(np.maximum(counts @ values**2 - n * mean**2, 0) / (n - 1))
    lo, hi = np.quantile(mean / spread, [0.025, 0.975])
    return float(values.mean() / values.std(ddof=1)), float(lo), float(hi)


def reproduce(
    store: Store, seeds: int = 50, progress: Progress | None = None, *, more: Callable[[], pd.DataFrame] | None = None
) -> tuple[pd.DataFrame, float]:
    """Run and measure everything; ``more`` adds rows of other tables. Returns the rows and the seconds taken."""
    began = time.perf_counter()
    rows = table(store, ensure_runs(store, seeds, progress))
    if more is not None:
        rows = pd.concat([rows, more()], ignore_index=True)
    return rows, time.perf_counter() - began
