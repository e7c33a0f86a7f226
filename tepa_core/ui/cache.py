"""The store behind the pages, and every question cached under the database it was asked of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from tepa_core import reproduce
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
from tepa_core.experiment.exposure import APPEND, terms_by_phase
from tepa_core.experiment.stationary import false_revocations_simulated
from tepa_core.lifecycle import Thresholds
from tepa_core.stats.theory import ExposureTerms
from tepa_core.store import KeyLife, RunInfo, Store, default_path, key_life, precedent_life, queries, save_run

P = ParamSpec("P")
R = TypeVar("R")


@st.cache_resource(show_spinner=False)
def _open(path: str) -> Store:
    return Store(Path(path))


@st.cache_resource(show_spinner=False)
def _first_run_lock(path: str) -> threading.Lock:
    del path
    return threading.Lock()


def store() -> Store:
    """Return the open database of this process.

    Raises
    ------
    StoreError
        If it cannot be opened; the shared frame shows the message.
    """
    return _open(str(default_path()))


def question(function: Callable[Concatenate[Store, P], R]) -> Callable[P, R]:
    """Cache a question's answer under the database's path and generation and the question's arguments.

    The generation keeps an answer that was still being computed while somebody wrote from being given afterwards.
    """

    @wraps(function)
    def answer(db: str, generation: int, *args: P.args, **kwargs: P.kwargs) -> R:
        del generation
        return function(_open(db), *args, **kwargs)

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
            save_run(database, run(RunSpec.build("controlled"), progress))


def runs() -> pd.DataFrame:
    """List the runs, the newest first. Not cached: it is what tells one visitor of another's new run."""
    return queries.runs(store())


run_info: Callable[[str], RunInfo] = question(queries.run_info)
phases = question(queries.phases)
lanes = question(queries.lanes)
keys = question(queries.keys)
subjects = question(queries.subjects)
place_of = question(queries.place_of)
archive = question(queries.archive)
precedents = question(queries.precedents)
state_counts = question(queries.state_counts)
harm_by_key = question(queries.harm_by_key)
episodes = question(queries.episodes)
issues = question(queries.issues)
lane_transitions = question(queries.lane_transitions)
lane_evidence = question(queries.lane_evidence)
truth = question(queries.truth)
key_life_of: Callable[..., KeyLife] = question(key_life)
precedent_life_of: Callable[..., KeyLife] = question(precedent_life)


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
