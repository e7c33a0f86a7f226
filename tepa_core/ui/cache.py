"""The store behind the pages, and every question cached under the database it was asked of."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from tepa_core import reproduce
from tepa_core.decisions import PROGRAM, Decision
from tepa_core.experiment import (
    OVERALL,
    REFERENCE,
    Progress,
    RunSpec,
    curve_summary,
    measures,
    measures_summary,
    paired_comparisons,
    pollution_summary,
    run,
    run_differences,
    success_summary,
)
from tepa_core.experiment.around import Settings, around, compared, under
from tepa_core.experiment.compiled_play import Draws
from tepa_core.experiment.exposure import APPEND, terms_by_phase
from tepa_core.experiment.impact import log_counts, log_impact, run_impact
from tepa_core.experiment.stationary import false_revocations_simulated
from tepa_core.experiment.sweep import Grid, sweep
from tepa_core.lifecycle import EncodedLog, Thresholds
from tepa_core.stats.theory import ExposureTerms
from tepa_core.store import KeyLife, RunInfo, Store, default_path, key_life, precedent_life, queries, save_run
from tepa_core.store import triaged as triaged_rows
from tepa_core.store.decide import precedent_version
from tepa_core.store.derive import precedent_id
from tepa_core.store.foreseen import effect_now, foreseen
from tepa_core.store.ledger import decisions_of, reviewer_agreement
from tepa_core.store.ledger import reasserted as reasserted_rows
from tepa_core.store.previewed import Preview, preview
from tepa_core.store.replays import encoded_log
from tepa_core.store.settings import settings
from tepa_core.ui.database import opened

P = ParamSpec("P")
R = TypeVar("R")


@st.cache_resource(show_spinner=False)
def _first_run_lock(path: str) -> threading.Lock:
    del path
    return threading.Lock()


def store() -> Store:
    """Return the open database of this process, for reading; `tepa_core.ui.who.writing` writes.

    Raises
    ------
    StoreError
        If it cannot be opened; the shared frame shows the message.
    """
    return opened(str(default_path()))


def question(function: Callable[Concatenate[Store, P], R]) -> Callable[P, R]:
    """Cache a question's answer under the database's path and generation and the question's arguments.

    The generation keeps an answer that was still being computed while somebody wrote from being given afterwards.
    """

    @wraps(function)
    def answer(db: str, generation: int, *args: P.args, **kwargs: P.kwargs) -> R:
        del generation
        return function(opened(db), *args, **kwargs)

    # `wraps` gives each cached function the name and source of its question, which is what Streamlit tells them by.
    cached: Callable[..., R] = st.cache_data(show_spinner=False, max_entries=256)(answer)

    def ask(*args: P.args, **kwargs: P.kwargs) -> R:
        return cached(str(default_path()), store().generation, *args, **kwargs)

    return ask


def forget() -> None:
    """Forget every cached answer; called after each write."""
    st.cache_data.clear()


def ensure_first_run(progress: Progress) -> None:
    """Make the default controlled run when the database has no run at all, so that no page is ever empty."""
    database = store()
    with _first_run_lock(str(database.path)):
        if queries.runs(database).empty:
            # Nobody asked for it, so it is the program itself that acts, a viewer's first visit or not.
            save_run(database.acting(PROGRAM), run(RunSpec.build("controlled"), progress))
            # On a new machine nothing is compiled yet; here a person waits anyway, at a slider nobody should.
            progress(1.0, "Compiling the rule, once")
            run_impact(RunSpec.build("controlled", seeds=1, methods=("tepa",)), Thresholds(theta_rec=0.2))


def runs() -> pd.DataFrame:
    """List the runs, the newest first. Not cached: it is what tells one visitor of another's new run."""
    return queries.runs(store())


run_info: Callable[[str], RunInfo] = question(queries.run_info)
phases = question(queries.phases)
span = question(queries.span)
lanes = question(queries.lanes)
keys = question(queries.keys)
subjects = question(queries.subjects)
place_of = question(queries.place_of)
archive = question(queries.archive)
triaged = question(triaged_rows)
decisions: Callable[[str], tuple[Decision, ...]] = question(decisions_of)
reasserted = question(reasserted_rows)
agreement = question(reviewer_agreement)
preview_of: Callable[..., Preview] = question(preview)
foreseen_of: Callable[..., dict[str, Any]] = question(foreseen)
effect_now_of: Callable[[str, str], dict[str, Any]] = question(effect_now)
precedents = question(queries.precedents)
state_counts = question(queries.state_counts)
harm_by_key = question(queries.harm_by_key)
episodes = question(queries.episodes)
issues = question(queries.issues)
answers = question(queries.answers)
trials = question(queries.trials)
lane_transitions = question(queries.lane_transitions)
lane_evidence = question(queries.lane_evidence)
truth = question(queries.truth)
key_life_of: Callable[..., KeyLife] = question(key_life)
precedent_life_of: Callable[..., KeyLife] = question(precedent_life)


@question
def found(database: Store, run_id: str, search: str, method: str | None = None, seed: int | None = None) -> set[str]:
    """Ids of the precedents that a search finds in user, key, value and the sentences of the evidence."""
    return set(queries.precedents(database, run_id, method=method, seed=seed, search=search)["id"])


def version_of(run_id: str, precedent: str) -> str:
    """Return the version of a precedent that is about to be looked at. Not cached: it goes with the decision."""
    return precedent_version(store(), run_id, precedent)


@question
def success(database: Store, run_id: str, level: float = 0.95) -> pd.DataFrame:
    """Success per method and phase with intervals: ``method``, ``phase``, ``mean``, ``lo``, ``hi``."""
    return success_summary(queries.success_per_seed(database, run_id), level)


@question
def pollution(database: Store, run_id: str, level: float = 0.95) -> pd.DataFrame:
    """Memory pollution index: ``method``, ``phase``, ``mpi``, ``lo``, ``hi``."""
    return pollution_summary(queries.success_per_seed(database, run_id), level)


@question
def comparisons(
    database: Store, run_id: str, a: str = "tepa", scopes: tuple[str, ...] = (OVERALL, "reversal"), level: float = 0.95
) -> pd.DataFrame:
    """Paired comparisons of one method with all others."""
    return paired_comparisons(queries.success_per_seed(database, run_id), a, scopes=scopes, level=level)


@question
def differences_of_runs(database: Store, a: str, b: str, paired: bool, level: float = 0.95) -> pd.DataFrame:
    """Success of one run minus that of another: ``method``, ``phase``, ``a``, ``b``, ``diff``, ``lo``, ``hi``."""
    first, second = queries.success_per_seed(database, a), queries.success_per_seed(database, b)
    return run_differences(first, second, paired=paired, level=level)


@question
def life_measures(database: Store, run_id: str, method: str, level: float = 0.95) -> pd.DataFrame:
    """How well one method's memories were revoked: ``method``, ``measure``, ``mean``, ``lo``, ``hi``, ``seeds``."""
    truth, changes = queries.truth(database, run_id), queries.revocations(database, run_id, method)
    return measures_summary(measures(method, truth, changes, queries.episodes(database, run_id, method)), level)


@question
def curve(database: Store, run_id: str, quantity: str = "success", level: float = 0.95) -> pd.DataFrame:
    """Course over the tasks: ``method``, ``t``, ``mean``, ``lo``, ``hi`` of ``success`` (10-task mean) or ``size``."""
    return curve_summary(queries.curve_per_seed(database, run_id), quantity, level)


#: How tepa acts without an Active precedent in the runs of the paper's drift tables.
USUAL_FALLBACK = "candidate"

support_rates = question(queries.support_rates)
attributions = question(queries.attributions)
reproduced_runs = question(reproduce.stored_runs)


@question
def reproduced(database: Store, seeds: int, fallback: str, cost: pd.DataFrame | None) -> pd.DataFrame:
    """Every number of the paper beside ours, as `tepa_core.reproduce.table`; ``fallback`` is that of tepa."""
    stored = reproduce.stored_runs(database, seeds)
    played = {}
    if fallback != USUAL_FALLBACK and "controlled" in stored:
        played["controlled"] = reproduce.fallback_success(fallback, "controlled", seeds)
    return reproduce.table(database, stored, measured_cost=cost, instead=played)


@question
def ablation(database: Store, seeds: int) -> pd.DataFrame:
    """Overall success per variant of the ablation, as `tepa_core.reproduce.variants`."""
    return reproduce.variants(database, reproduce.stored_runs(database, seeds))


@question
def exposure(database: Store, run_id: str, revoking: str = "tepa", level: float = 0.95) -> dict[str, ExposureTerms]:
    """Terms of the bound on the gain of revocation, phase by phase."""
    played = [queries.episodes(database, run_id, method) for method in dict.fromkeys((APPEND, revoking, REFERENCE))]
    return terms_by_phase(pd.concat(played, ignore_index=True), revoking, level)


@st.cache_data(show_spinner=False, max_entries=64)
def false_revocations(mu: float, thresholds: Thresholds, n: tuple[int, ...]) -> pd.DataFrame:
    """Simulate how often a value that still holds is revoked, beside its bound; the same draws each time."""
    return false_revocations_simulated(mu, thresholds, n, np.random.default_rng(0))


@st.cache_resource(show_spinner=False, max_entries=4)
def _draws(stream: str) -> Draws:
    return Draws.of(RunSpec.from_dict(json.loads(stream)))


def draws_of(spec: RunSpec) -> Draws:
    """Return the drawn streams of a spec, laid out for sweeps; neither methods nor thresholds matter to them."""
    drawn = RunSpec.build(spec.stream, seeds=spec.seeds, first_seed=spec.first_seed, world=dict(spec.world))
    return _draws(json.dumps(drawn.as_dict(), sort_keys=True))


def _spec(database: Store, run_id: str) -> RunSpec:
    return RunSpec.from_dict(queries.run_info(database, run_id).spec)


@question
def sweeps(
    database: Store, run_id: str, method: str, setting: Thresholds, grids: tuple[Grid, ...]
) -> dict[str, Settings]:
    """Vary each threshold of a simulation alone, the others as in the setting, with bands over the seeds."""
    spec = _spec(database, run_id)
    return around(draws_of(spec), setting, grids, method, spec.fallback)


@question
def settings_measured(database: Store, run_id: str, method: str, settings: tuple[Thresholds, ...]) -> Settings:
    """Measure a method of a simulation under each of some settings, with bands over the seeds."""
    spec = _spec(database, run_id)
    return under(draws_of(spec), settings, method, spec.fallback)


@question
def surface(
    database: Store, run_id: str, method: str, setting: Thresholds, x: Grid, y: Grid, metric: str, scope: str
) -> npt.NDArray[np.float64]:
    """One metric of a simulation over two thresholds, shape (points of y, points of x)."""
    spec = dataclasses.replace(_spec(database, run_id), thresholds=setting)
    return sweep(spec, x, y, method=method, metrics=(metric,), draws=draws_of(spec)).surface(metric, scope)


@question
def settings_compared(database: Store, run_id: str, method: str, a: Thresholds, b: Thresholds) -> pd.DataFrame:
    """Success of two settings of a simulation on the same draws, as `tepa_core.experiment.around.compared`."""
    spec = _spec(database, run_id)
    return compared(draws_of(spec), a, b, method, spec.fallback)


@question
def reference_success(database: Store, run_id: str) -> tuple[float, ...]:
    """Success without memory on the draws of a simulation, by phase in order of time, then overall."""
    drawn = draws_of(_spec(database, run_id))
    won, tasks = drawn.without_memory, drawn.tasks
    return (*(won / tasks).tolist(), float(won.sum() / tasks.sum()))


@st.cache_resource(show_spinner=False, max_entries=2)
def _log(db: str, run_id: str, decisions: int) -> tuple[EncodedLog, pd.DataFrame]:
    # The number of decisions tells one state of the log from the next: the ledger only grows.
    del decisions
    return encoded_log(opened(db), run_id)


def _log_of(database: Store, run_id: str) -> tuple[EncodedLog, pd.DataFrame]:
    return _log(str(database.path), run_id, len(decisions_of(database, run_id)))


@question
def log_sweep(database: Store, run_id: str, setting: Thresholds, grid: Grid) -> pd.DataFrame:
    """Count what the precedents of a log come to along one threshold, as `tepa_core.experiment.impact.log_counts`."""
    return log_counts(_log_of(database, run_id)[0], setting, grid)


@question
def impact(database: Store, run_id: str, method: str, new: Thresholds) -> pd.DataFrame:
    """List the precedents whose life differs from the run's own under other thresholds.

    Returns
    -------
    pandas.DataFrame
        ``id`` (of the precedent), ``method``, ``seed``, ``subject``, ``key``, ``key_id``, ``value``, ``state_now``,
        ``state_new``, ``transitions_now``, ``transitions_new``, ``first_difference`` (in the run's clock).
    """
    info = queries.run_info(database, run_id)
    if info.is_log:
        log, labels = _log_of(database, run_id)
        changed = log_impact(log, labels, info.thresholds, new).assign(method="", seed=0)
        written = labels[["subject", "key_id", "value_id", "key", "value"]]
        changed = changed.merge(written, on=["subject", "key_id", "value_id"], how="left")
    else:
        spec = _spec(database, run_id)
        changed = run_impact(spec, new, method=method, draws=draws_of(spec))
        changed = changed.assign(key=changed["key_id"], value=changed["value_id"])
    parts = (changed["method"], changed["seed"], changed["subject"], changed["key_id"], changed["value_id"])
    changed.insert(0, "id", [precedent_id(*part) for part in zip(*parts, strict=True)])
    columns = ["id", "method", "seed", "subject", "key", "key_id", "value", "state_now", "state_new"]
    columns += ["transitions_now", "transitions_new", "first_difference"]
    return queries.in_clock(changed[columns], ["first_difference"], info.is_log)


saved_settings = question(settings)
