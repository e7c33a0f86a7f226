"""Run a spec: every method on every seed, on identical draws, to tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.experiment.play import NO_VALUE, Played, play
from tepa_core.experiment.spec import RunSpec
from tepa_core.lifecycle import Thresholds
from tepa_core.methods import METHODS, Setting, SupportTrials, passed
from tepa_core.streams import Stream

#: Called with the fraction done and a sentence for a person.
Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run produced.

    Attributes
    ----------
    episodes
        ``method``, ``seed``, ``t``, ``phase``, ``key``, ``action``, ``success``, ``followed`` and ``retrieved``
        (missing where none), ``exposed`` (a value was retrieved that is not the right one; missing where none is
        right), ``size`` (items of active memory after the task).
    evidence
        Of the methods with a lifecycle: ``method``, ``seed``, ``seq``, ``t`` (negative before the first task),
        ``phase``, ``key``, ``value``, ``supports``, ``text`` (what the action reported), ``admitted`` (whether trials
        let the value become active, missing where none were held).
    trials
        ``method``, ``seed``, ``t``, ``key``, ``value``, ``number``, ``kind``, ``success``: trial validation.
    truth
        ``seed``, ``key``, ``value``, ``start``, ``end``: what was right when (tasks, end exclusive). For measures only.
    phases
        ``phase``, ``start``, ``end`` (tasks, end exclusive), the same for every seed.
    elapsed
        Seconds.
    """

    spec: RunSpec
    episodes: pd.DataFrame
    evidence: pd.DataFrame
    trials: pd.DataFrame
    truth: pd.DataFrame
    phases: pd.DataFrame
    elapsed: float


def run(spec: RunSpec, progress: Progress | None = None) -> RunResult:
    """Run every method on every seed.

    Parameters
    ----------
    spec
        What to run.
    progress
        Called after each method with the fraction done; an exception raised in it stops the run, nothing is kept.
    """
    began = time.perf_counter()
    stream_spec = spec.stream_spec
    seeds = range(spec.first_seed, spec.first_seed + spec.seeds)
    streams = []
    for i, seed in enumerate(seeds):
        streams.append(stream_spec.make(seed))
        if progress is not None and (i + 1) % 10 == 0:
            progress(0.1 * (i + 1) / spec.seeds, f"Drew {i + 1} of {spec.seeds} seeds")
    episodes, evidence, trials = [], [], []
    for i, method_id in enumerate(spec.methods):
        for stream in streams:
            played = play(stream, METHODS[method_id].make(setting(spec, stream)))
            of_seed = played_tables(spec, method_id, stream, played)
            episodes.append(of_seed.episodes)
            if len(of_seed.evidence):
                evidence.append(of_seed.evidence)
            trials.append(of_seed.trials)
        if progress is not None:
            progress(0.1 + 0.9 * (i + 1) / len(spec.methods), f"{method_id}: {spec.seeds} seeds played")
    return RunResult(
        spec,
        pd.concat(episodes, ignore_index=True),
        pd.concat(evidence, ignore_index=True) if evidence else _no_evidence(),
        pd.concat(trials, ignore_index=True),
        pd.concat([_truth(stream) for stream in streams], ignore_index=True),
        phase_table(streams[0]),
        time.perf_counter() - began,
    )


@dataclass(frozen=True, slots=True)
class PlayedTables:
    """What one method did on one seed: ``episodes``, ``evidence`` and ``trials`` of `RunResult`."""

    episodes: pd.DataFrame
    evidence: pd.DataFrame
    trials: pd.DataFrame


def played_tables(spec: RunSpec, method: str, stream: Stream, played: Played) -> PlayedTables:
    """Write what a method did on one seed out as tables."""
    return PlayedTables(
        _episodes(method, stream, played),
        _evidence(method, stream, played, spec.thresholds) if METHODS[method].lifecycle else _no_evidence(),
        _trials(method, stream, played),
    )


def setting(spec: RunSpec, stream: Stream) -> Setting:
    """Return what a method may know of a stream before its first task."""
    return Setting(
        stream.keys,
        len(stream.values),
        stream.asserted is not None,
        spec.thresholds,
        spec.fallback,
        None if stream.trial_support is None else SupportTrials(stream.trial_support),
    )


def phase_table(stream: Stream) -> pd.DataFrame:
    """Return ``phase``, ``start``, ``end`` (tasks, end exclusive)."""
    starts = np.concatenate([[0], stream.boundaries])
    ends = np.concatenate([stream.boundaries, [len(stream)]])
    return pd.DataFrame(
        {"phase": [stream.phase_names[stream.phase[start]] for start in starts], "start": starts, "end": ends}
    )


def _names(names: tuple[str, ...], codes: npt.NDArray[np.int64]) -> pd.Categorical[int]:
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(list(names)))


def _episodes(method: str, stream: Stream, played: Played) -> pd.DataFrame:
    tasks = np.arange(len(stream))
    right = stream.truth[tasks, stream.key]
    exposed = pd.array((played.retrieved != NO_VALUE) & (played.retrieved != right), "boolean")
    exposed[right == NO_VALUE] = pd.NA
    return pd.DataFrame(
        {
            "method": method,
            "seed": stream.seed,
            "t": tasks,
            "phase": _names(stream.phase_names, stream.phase),
            "key": _names(stream.keys, stream.key),
            "action": _names(stream.values, played.action),
            "success": played.success,
            "followed": _names(stream.values, played.followed),
            "retrieved": _names(stream.values, played.retrieved),
            "exposed": exposed,
            "size": played.size,
        }
    )


def _evidence(method: str, stream: Stream, played: Played, thresholds: Thresholds) -> pd.DataFrame:
    before = len(stream.prior_key)
    text = np.full(before + len(stream), None, object)
    if stream.outcome_text is not None and stream.asserted is None:
        text[before:] = stream.outcome_text[np.arange(len(stream)), played.action]
    key = np.concatenate([stream.prior_key, stream.key])
    return pd.DataFrame(
        {
            "method": method,
            "seed": stream.seed,
            "seq": np.arange(len(key)),
            "t": np.arange(len(key)) - before,
            "phase": _names(stream.phase_names, np.concatenate([np.full(before, NO_VALUE), stream.phase])),
            "key": _names(stream.keys, key),
            "value": _names(stream.values, np.concatenate([stream.prior_value, played.evidence_value])),
            "supports": np.concatenate([np.ones(before, np.bool_), played.evidence_supports]),
            "text": text,
            "admitted": pd.array(admissions(stream, played, thresholds), "boolean"),
        }
    )


def admissions(stream: Stream, played: Played, thresholds: Thresholds) -> npt.NDArray[Any]:
    """Per evidence item whether trials let its value become active, shape (P + T,), None where none were held."""
    before = len(stream.prior_key)
    admitted = np.full(before + len(stream), None, object)
    for t, held in groupby(played.trials, key=lambda trial: trial.t):
        admitted[before + t] = passed(tuple(held), thresholds)
    return admitted


def _no_evidence() -> pd.DataFrame:
    return pd.DataFrame(columns=["method", "seed", "seq", "t", "phase", "key", "value", "supports", "text", "admitted"])


def _trials(method: str, stream: Stream, played: Played) -> pd.DataFrame:
    held = played.trials
    frame = pd.DataFrame(
        {
            "method": method,
            "seed": stream.seed,
            "t": [trial.t for trial in held],
            "key": [stream.keys[trial.key] for trial in held],
            "value": [stream.values[trial.value] for trial in held],
            "kind": [str(trial.kind) for trial in held],
            "success": [trial.success for trial in held],
        }
    )
    frame.insert(5, "number", frame.groupby("t").cumcount())
    return frame


def _truth(stream: Stream) -> pd.DataFrame:
    rows = []
    for k, key in enumerate(stream.keys):
        right = stream.truth[:, k]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(right)) + 1])
        ends = np.concatenate([starts[1:], [len(right)]])
        rows += [
            (stream.seed, key, stream.values[right[start]], int(start), int(end))
            for start, end in zip(starts, ends, strict=True)
            if right[start] != NO_VALUE
        ]
    return pd.DataFrame(rows, columns=["seed", "key", "value", "start", "end"])
