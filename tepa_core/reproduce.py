"""The paper's tables beside ours: every reported number, what we measure for it, and whether the two agree.

The reported numbers stand in `tepa_core.reported`. Nothing here is tuned: every run uses the defaults of its stream and
of the thresholds, except for the one setting that its name says.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core import cost
from tepa_core.experiment import OVERALL, REFERENCE, FactSpec, Progress, RunSpec, run, run_facts
from tepa_core.experiment.summary import RESAMPLING_SEED, per_seed_table
from tepa_core.lifecycle import Thresholds
from tepa_core.reported import (
    ABLATION,
    COST,
    COST_SIZES,
    DRIFT,
    FACT_FILES,
    FLAT,
    FLAT_IN_VERSION_1,
    NOISE_RUNS,
    OUTLIER,
    PAIRED,
    ROWS,
    Row,
    open_choice,
    variant_name,
    varied_method,
)
from tepa_core.stats import bootstrap_mean, holm, mpi_interval, paired_permutation, resample_counts
from tepa_core.store import Store, queries, save_facts, save_run
from tepa_core.streams.fact_file import FactFileError, read_fact_file

#: A reported value counts as reproduced when it lies in our interval widened by this much on both sides.
MARGIN: Final = 0.03

#: Seeds of the paper's drift benchmarks.
SEEDS: Final = 50

#: Names the folder of the fact files; else `FACT_FOLDERS`.
FACTS_VARIABLE: Final = "TEPA_FACTS"
FACT_FOLDERS: Final = (Path("data") / "factconsolidation", Path("..") / "shared" / "data" / "factconsolidation")

_NOISE_METHODS: Final = ("tepa", "reactive_forgetting", "last_write_wins", "append_only", "no_memory")
_FACT_METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        name: tuple(row.method for row in ROWS if row.run == name)
        # Every method of the one-hop table answers the questions through several relations too: what each memory still
        # held is the question that the paper leaves open.
        + (tuple(row.method for row in ROWS if row.run == FACT_FILES["sh_6k"]) if file == "mh_6k" else ())
        for file, name in FACT_FILES.items()
    }
)


def specs(seeds: int = SEEDS) -> Mapping[str, RunSpec]:
    """Return the simulated runs that the tables need, by name: the three drift streams, and one changed setting each.

    Raises
    ------
    ValueError
        If the number of seeds is out of range.
    """
    made = {stream: RunSpec.build(stream, seeds=seeds) for stream in ("controlled", "executable", "preference")}
    for percent, name in NOISE_RUNS.items():
        if percent:
            made[name] = RunSpec.build(
                "controlled", seeds=seeds, methods=_NOISE_METHODS, world={"key_noise": percent / 100}
            )
    for threshold, value in (*FLAT, *FLAT_IN_VERSION_1, OUTLIER):
        made[variant_name(threshold, value)] = RunSpec.build(
            "controlled",
            seeds=seeds,
            methods=(varied_method(threshold),),
            thresholds=Thresholds().changed({threshold: value}),
        )
    return MappingProxyType(made)


def fact_spec(name: str, digest: str = "") -> FactSpec:
    """Return the settings of one of the fact runs, by its name in `FACT_FILES`, for a file with this digest."""
    (file,) = (file for file, known in FACT_FILES.items() if known == name)
    chosen = dict.fromkeys(_FACT_METHODS[name])
    spec = FactSpec(name=f"factconsolidation_{file}", digest=digest)
    return dataclasses.replace(spec, methods=tuple(method for method in spec.methods if method in chosen))


def fact_path(file: str, folder: Path | None = None) -> Path | None:
    """Find a fact file: in the folder given, in that of `FACTS_VARIABLE`, in `FACT_FOLDERS`; None when none has it."""
    named = os.environ.get(FACTS_VARIABLE)
    folders = (*([folder] if folder else []), *([Path(named)] if named else []), *FACT_FOLDERS)
    paths = (one / f"factconsolidation_{file}.json" for one in folders)
    return next((path for path in paths if path.is_file()), None)


def missing_file(name: str, folder: Path | None = None) -> str | None:
    """Say which file a fact run lacks and where to put it; None when it is there, or the run needs no file."""
    for file, known in FACT_FILES.items():
        if known == name and fact_path(file, folder) is None:
            return (
                f"factconsolidation_{file}.json is missing: put it into {FACT_FOLDERS[0]}, or name its folder in "
                f"{FACTS_VARIABLE}."
            )
    return None


def stored_runs(store: Store, seeds: int = SEEDS) -> dict[str, str]:
    """Return which runs of the tables the database has: name -> id. Of two fact runs on one file, the newer."""
    listed = queries.runs(store)
    there = set(listed["run_id"])
    found = {name: spec.run_id for name, spec in specs(seeds).items() if spec.run_id in there}
    wanted = {fact_spec(name): name for name in FACT_FILES.values()}
    for run_id in listed.loc[listed["stream"] == "facts", "run_id"]:
        spec = FactSpec.from_dict(queries.run_info(store, run_id).spec)
        name = wanted.get(dataclasses.replace(spec, digest=""))
        if name is not None:
            found.setdefault(name, run_id)
    return found


def ensure_runs(
    store: Store, seeds: int = SEEDS, progress: Progress | None = None, *, facts: Path | None = None
) -> dict[str, str]:
    """Run what the tables need and the database does not have yet; each finished run is stored at once.

    Parameters
    ----------
    seeds
        Of the simulated runs.
    facts
        Folder of the fact files; see `fact_path`. A file that is nowhere leaves its run out.

    Returns
    -------
    dict
        Name of the run in `specs` or `FACT_FILES` -> id of the stored run.

    Raises
    ------
    FactFileError
        If a fact file has another shape; everything else is run and stored before.
    """
    stored = stored_runs(store, seeds)
    files = {name: path for file, name in FACT_FILES.items() if (path := fact_path(file, facts)) is not None}
    # The newest run is what a visitor sees first, so the streams with all methods come last.
    simulated = [(name, spec) for name, spec in reversed(list(specs(seeds).items())) if name not in stored]
    total = len(files) + len(simulated)
    unread: FactFileError | None = None
    for i, (name, path) in enumerate(files.items()):
        try:
            stored[name] = _ensure_facts(store, name, path, _part(progress, i, total, name))
        except FactFileError as error:
            unread = error
    for i, (name, spec) in enumerate(simulated, len(files)):
        stored[name] = save_run(store, run(spec, _part(progress, i, total, name)), f"Reproduction: {name}")
    if unread is not None:
        raise unread
    return stored


def _ensure_facts(store: Store, name: str, path: Path, progress: Progress | None) -> str:
    if progress is not None:
        progress(0.0, f"reading {path.name}")
    file = read_fact_file(path)
    wanted = fact_spec(name, file.digest)
    if not (queries.runs(store)["run_id"] == wanted.run_id).any():
        save_facts(store, run_facts(file, wanted, progress=progress), len(file.facts), f"Reproduction: {name}")
    return wanted.run_id


def _part(progress: Progress | None, number: int, of: int, name: str) -> Progress | None:
    if progress is None:
        return None

    def show(done: float, words: str) -> None:
        progress((number + done) / of, f"{name}: {words}")

    return show


def fallback_success(fallback: str, stream: str = "controlled", seeds: int = SEEDS) -> pd.DataFrame:
    """Play tepa alone with another way to act without an Active precedent; nothing is stored.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``seed``, ``phase`` (phases and ``overall``), ``success``, as `table` takes them.
    """
    played = run(RunSpec.build(stream, seeds=seeds, methods=("tepa",), fallback=fallback)).episodes
    by_phase = played.groupby(["method", "seed", "phase"], observed=True)["success"].mean().reset_index()
    overall = played.groupby(["method", "seed"], observed=True)["success"].mean().reset_index().assign(phase=OVERALL)
    return pd.concat([by_phase.assign(phase=by_phase["phase"].astype(str)), overall], ignore_index=True)


def table(
    store: Store,
    stored: Mapping[str, str],
    *,
    measured_cost: pd.DataFrame | None = None,
    instead: Mapping[str, pd.DataFrame] = MappingProxyType({}),
    facts: Path | None = None,
) -> pd.DataFrame:
    """Measure every reported number whose run is there.

    Parameters
    ----------
    stored
        From `ensure_runs` or `stored_runs`.
    measured_cost
        From `tepa_core.cost.measure`; without it the cost rows are not measured.
    instead
        Name of a run -> rows of `fallback_success` that take the place of its own for the methods they have, in the
        drift table and the paired differences.
    facts
        Folder of the fact files, to say which are missing.

    Returns
    -------
    pandas.DataFrame
        The fields of `Row` (those that the paper leaves out are missing), then

        ``ours``, ``lo``, ``hi``
            Our value with its interval: 95 % bootstrap over seeds, for facts over questions (each question's orders
            averaged), for cost the quartiles of the rounds. Missing where it is not measured.
        ``p``
            Of a paired difference, one-tailed, corrected after Holm over all paired differences measured.
        ``within``
            The reported value lies in the interval widened by `MARGIN`; missing without an interval.
        ``note``
            Why it is not measured, or the open choice behind our side.
    """
    own, changed = _samples(store, stored, {}), _samples(store, stored, instead)
    measured = []
    for row in ROWS:
        samples = changed if row.table in (DRIFT, PAIRED) else own
        ours, lo, hi = _cost(row, measured_cost) if row.table == COST else _measure(row, samples)
        why_not = ""
        if np.isnan(ours):
            why_not = _not_measured(row, facts)
        elif np.isnan(lo):
            why_not = "So few seeds give it no interval; run more of them."
        within = None if np.isnan(lo) else bool(lo - MARGIN <= row.reported <= hi + MARGIN)
        measured.append(
            {
                **dataclasses.asdict(row),
                "ours": ours,
                "lo": lo,
                "hi": hi,
                "within": within,
                "note": why_not or open_choice(row),
            }
        )
    frame = pd.DataFrame(measured)
    frame["within"] = frame["within"].astype("boolean")
    return frame.assign(p=_p_values(changed))


#: Per run and scope: one row per seed (or question), one column per method.
Samples = Mapping[str, Mapping[str, pd.DataFrame]]


def _samples(store: Store, stored: Mapping[str, str], instead: Mapping[str, pd.DataFrame]) -> Samples:
    samples: dict[str, dict[str, pd.DataFrame]] = {}
    for name, run_id in stored.items():
        if name in FACT_FILES.values():
            answered = queries.success_per_question(store, run_id)
            samples[name] = {"questions": answered.pivot(index="question", columns="method", values="success")}
            continue
        samples[name] = per_seed_table(queries.success_per_seed(store, run_id))
        if name in instead:
            for scope, scores in per_seed_table(instead[name]).items():
                samples[name][scope] = samples[name][scope].assign(**{str(m): scores[m] for m in scores})
    return samples


def _sample(row: Row, samples: Samples) -> npt.NDArray[np.float64] | None:
    """Return what the row's mean is taken over, one value per seed or question; None when its run is not there."""
    if row.run not in samples:
        return None
    scores = samples[row.run][row.scope]
    if row.quantity == "change":
        if "controlled" not in samples:
            return None
        return (scores[row.method] - samples["controlled"][row.scope][row.method]).to_numpy(np.float64)
    if " - " in row.method:
        a, b = row.method.split(" - ")
        return (scores[a] - scores[b]).to_numpy(np.float64)
    return scores[row.method].to_numpy(np.float64)


def _measure(row: Row, samples: Samples) -> tuple[float, float, float]:
    values = _sample(row, samples)
    if values is None:
        return float("nan"), float("nan"), float("nan")
    rng = np.random.default_rng(RESAMPLING_SEED)
    if row.quantity == "mpi":
        without = samples[row.run][row.scope][REFERENCE].to_numpy(np.float64)
        pollution = mpi_interval(without, values, rng)
        return pollution.estimate, pollution.lo, pollution.hi
    if row.quantity == "dz":
        return _dz(values, rng)
    interval = bootstrap_mean(values, rng)
    return interval.estimate, interval.lo, interval.hi


def _dz(values: npt.NDArray[np.float64], rng: np.random.Generator) -> tuple[float, float, float]:
    """Cohen's d_z of paired differences; its bootstrap interval is unknown once a resample has no spread."""
    n = len(values)
    if n < 2 or np.ptp(values) == 0:
        return float("nan"), float("nan"), float("nan")
    counts = resample_counts(n, rng)
    mean = counts @ values / n
    spread = np.sqrt(np.maximum(counts @ values**2 - n * mean**2, 0) / (n - 1))
    estimate = float(values.mean() / values.std(ddof=1))
    if not spread.all():
        return estimate, float("nan"), float("nan")
    lo, hi = np.quantile(mean / spread, [0.025, 0.975])
    return estimate, float(lo), float(hi)


def _cost(row: Row, measured: pd.DataFrame | None) -> tuple[float, float, float]:
    if measured is not None:
        found = measured[
            (measured["scope"] == row.scope)
            & (measured["method"] == row.method)
            & (measured["quantity"] == row.quantity)
        ]
        for ours, lo, hi in found[["ours", "lo", "hi"]].itertuples(index=False, name=None):
            return float(ours), float(lo), float(hi)
    return float("nan"), float("nan"), float("nan")


def _not_measured(row: Row, facts: Path | None) -> str:
    if row.table == COST:
        return "Cost is not measured yet."
    needs = f"The run “{row.run}” is not made yet" if row.table != ABLATION else "This run is not made yet"
    return missing_file(row.run, facts) or f"{needs}."


def _p_values(samples: Samples) -> list[float]:
    """Holm-corrected p of every paired difference, missing for the other rows and what is not measured."""
    places, raw = [], []
    for i, row in enumerate(ROWS):
        values = _sample(row, samples) if row.quantity == "difference" else None
        if values is not None:
            rng = np.random.default_rng(RESAMPLING_SEED)
            places.append(i)
            raw.append(paired_permutation(values, np.zeros_like(values), rng))
    p = np.full(len(ROWS), np.nan)
    if places:
        p[places] = holm(np.array(raw))
    return p.tolist()


def variants(store: Store, stored: Mapping[str, str]) -> pd.DataFrame:
    """Measure the ablation: overall success per variant, and its change against the unchanged setting (Figure 4).

    Returns
    -------
    pandas.DataFrame
        ``variant``, ``method``, ``mean``, ``lo``, ``hi`` (overall success), ``change``, ``change_lo``, ``change_hi``
        (paired with the same method unchanged, tepa for tepa_norev), ``reported`` (the change in the paper, missing
        where it gives none). Unchanged settings first. No rows without the controlled run.
    """
    if "controlled" not in stored:
        return pd.DataFrame(
            columns=["variant", "method", "mean", "lo", "hi", "change", "change_lo", "change_hi", "reported"]
        )
    scores = {
        name: per_seed_table(queries.success_per_seed(store, run_id))[OVERALL]
        for name, run_id in stored.items()
        if name not in FACT_FILES.values()
    }
    base = scores["controlled"]
    flat = {variant_name(*one) for one in (*FLAT, *FLAT_IN_VERSION_1)}
    named = [("unchanged", "tepa", base["tepa"], "tepa"), ("no revocation", "tepa_norev", base["tepa_norev"], "tepa")]
    named.insert(1, ("unchanged", "tepa_full", base["tepa_full"], "tepa_full"))
    for threshold, value in (*FLAT, *FLAT_IN_VERSION_1, OUTLIER):
        name, method = variant_name(threshold, value), varied_method(threshold)
        if name in scores:
            named.append((name, method, scores[name][method], method))
    rows = []
    for variant, method, success, against in named:
        mean = bootstrap_mean(success.to_numpy(), np.random.default_rng(RESAMPLING_SEED))
        change = bootstrap_mean((success - base[against]).to_numpy(), np.random.default_rng(RESAMPLING_SEED))
        reported = 0.0 if variant in flat else float("nan")
        rows.append((variant, method, mean.estimate, mean.lo, mean.hi, change.estimate, change.lo, change.hi, reported))
    return pd.DataFrame(
        rows, columns=["variant", "method", "mean", "lo", "hi", "change", "change_lo", "change_hi", "reported"]
    )


def settings(seeds: int = SEEDS) -> pd.DataFrame:
    """List every setting of every run of the tables, one row per run, settings that never differ left in.

    Returns
    -------
    pandas.DataFrame
        ``run``, ``stream``, ``seeds``, ``methods`` (ids, joined by commas), ``fallback``, one column per threshold and
        per parameter of a stream; missing where a run has no such parameter.
    """
    rows = []
    for name, spec in specs(seeds).items():
        world = {f.name: getattr(spec.stream_spec, f.name) for f in dataclasses.fields(spec.stream_spec)}  # type: ignore[arg-type]
        rows.append(
            {
                "run": name,
                "stream": spec.stream,
                "seeds": spec.seeds,
                "methods": ", ".join(spec.methods),
                "fallback": spec.fallback,
                **dataclasses.asdict(spec.thresholds),
                **world,
            }
        )
    for name in FACT_FILES.values():
        facts = fact_spec(name)
        rows.append(
            {
                "run": name,
                "stream": "facts",
                "seeds": facts.orders,
                "methods": ", ".join(facts.methods),
                **dataclasses.asdict(facts.thresholds),
                "answered_by": facts.backend,
                "top_k": facts.top_k,
            }
        )
    return pd.DataFrame(rows)


def tally(rows: pd.DataFrame) -> pd.DataFrame:
    """Count per table how many numbers the paper reports, how many are measured, and how many of those are within.

    Returns
    -------
    pandas.DataFrame
        ``table``, ``reported``, ``measured``, ``within`` (counts), in the order of the rows.
    """
    parts = rows.groupby("table", sort=False)["within"]
    return pd.DataFrame(
        {"reported": parts.size(), "measured": parts.count(), "within": parts.sum().astype(int)}
    ).reset_index()


def reproduce(
    store: Store,
    seeds: int = SEEDS,
    progress: Progress | None = None,
    *,
    facts: Path | None = None,
    costs: Sequence[str] = tuple(COST_SIZES),
) -> tuple[pd.DataFrame, float]:
    """Run and measure everything.

    Parameters
    ----------
    seeds
        Of the simulated runs; the paper has 50.
    facts
        Folder of the fact files; see `fact_path`.
    costs
        Sizes at which cost is measured; none leaves those rows out.

    Returns
    -------
    tuple of pandas.DataFrame and float
        The rows of `table`, and the seconds taken.
    """
    began = time.perf_counter()
    stored = ensure_runs(store, seeds, _part(progress, 0, 2, "runs"), facts=facts)
    measured = cost.measure(costs, _part(progress, 1, 2, "cost")) if costs else None
    return table(store, stored, measured_cost=measured, facts=facts), time.perf_counter() - began
