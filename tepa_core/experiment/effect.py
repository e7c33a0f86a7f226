"""What a decision would change in a simulation: the agent plays the same draws with it and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.decisions import changed_transitions
from tepa_core.experiment.play import Override, Played, play
from tepa_core.experiment.run import Progress, admissions, played_tables, setting
from tepa_core.experiment.spec import RunSpec
from tepa_core.experiment.summary import OVERALL, REFERENCE, RESAMPLING_SEED
from tepa_core.lifecycle import EncodedLog, Rule, State, Verdict, replay
from tepa_core.methods import METHODS, thresholds_of
from tepa_core.stats import bootstrap_mean, mpi, mpi_interval
from tepa_core.streams import Stream


@dataclass(frozen=True, slots=True)
class EverySeed:
    """The same decision at the matching revocation of every seed.

    Attributes
    ----------
    seeds, matched
        How many seeds the run has, and in how many a revocation matches and the decision was taken.
    unmatched
        The other seeds; they count with no difference.
    success
        ``phase`` (phases and `OVERALL`), ``before``, ``after``, ``difference`` with ``lo`` and ``hi`` (95 % bootstrap
        over seeds of the paired difference), and the same of the memory pollution index as ``mpi_before``,
        ``mpi_after``, ``mpi_difference``, ``mpi_lo``, ``mpi_hi``.
    differences
        ``seed``, ``matched``, ``at`` (task of the decision, missing where unmatched) and the difference of success of
        each phase and of `OVERALL`, one row per seed.
    """

    seeds: int
    matched: int
    unmatched: tuple[int, ...]
    success: pd.DataFrame
    differences: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Effect:
    """What one decision would change.

    Attributes
    ----------
    method, seed, key, value, verdict, at
        The decision; it takes effect after the evidence of task ``at``.
    success
        Of the seed: ``phase`` (phases and `OVERALL`), ``tasks``, ``before``, ``after``, ``difference`` (success, 0 to
        1) and ``mpi_before``, ``mpi_after``, ``mpi_difference`` (NaN where an agent without memory never succeeds).
    episodes
        The episodes that change: ``t``, ``phase``, ``key``, ``action_before``, ``action_after``, ``success_before``,
        ``success_after``.
    transitions
        Those that happen on one side only, on every key of the seed: ``side`` (``before`` or ``after``), ``key_id``,
        ``value_id``, ``time`` (task), ``from_state``, ``to_state``, ``rule``.
    evidence_before, evidence_after
        What the method learned from on the seed, and what people decided: the columns of `RunResult` with ``subject``,
        ``key_id``, ``value_id`` and ``verdict``, as `tepa_core.lifecycle.encode` takes them.
    every_seed
        The same decision in every seed, where that was asked for.
    """

    method: str
    seed: int
    key: str
    value: str
    verdict: Verdict
    at: int
    success: pd.DataFrame
    episodes: pd.DataFrame
    transitions: pd.DataFrame
    evidence_before: pd.DataFrame
    evidence_after: pd.DataFrame
    every_seed: EverySeed | None = None

    @property
    def episodes_changed(self) -> int:
        """How many episodes have another action or another outcome."""
        return len(self.episodes)

    @property
    def transitions_changed(self) -> int:
        """How many transitions happen only without the decision, or only with it."""
        return len(self.transitions)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON-ready data, with the names of the command ``decide``."""
        content: dict[str, Any] = {
            "success": _by_phase(self.success, ("before", "after", "difference")),
            "mpi": _by_phase(self.success, ("mpi_before", "mpi_after", "mpi_difference")),
            "episodes_changed": self.episodes_changed,
            "transitions_changed": self.transitions_changed,
        }
        if self.every_seed is not None:
            table = self.every_seed.success
            content["every_seed"] = {
                "seeds": self.every_seed.seeds,
                "matched": self.every_seed.matched,
                "success": _by_phase(table, ("before", "after", "difference", "lo", "hi")),
                "mpi": _by_phase(table, ("mpi_before", "mpi_after", "mpi_difference", "mpi_lo", "mpi_hi")),
            }
        return content


def decision_effect(
    spec: RunSpec,
    method: str,
    seed: int,
    key: str,
    value: str,
    verdict: Verdict,
    at: int,
    *,
    standing: Sequence[Override] = (),
    every_seed: bool = False,
    progress: Progress | None = None,
) -> Effect:
    """Play a seed with a decision and without it, on identical draws.

    Only the decided method plays (and an agent without memory, for the pollution index).

    Parameters
    ----------
    spec, method, seed
        The run, and which of its lifecycles.
    key, value
        The precedent, by the names of the stream.
    verdict
        What would be decided.
    at
        Task after whose evidence it takes effect.
    standing
        Decisions on this seed that are in effect already; they hold with the decision and without.
    every_seed
        Also take the decision in every other seed at the matching revocation: of the same value of the same key, the
        first, second, ... in the same phase, and as many tasks after it as ``at`` is here. A seed counts as unmatched
        when it has no such revocation, or the value has come back by then.
    progress
        Called with the fraction done while other seeds play.

    Raises
    ------
    ValueError
        If the run has no such method, seed, key or value, the method has no lifecycle, or the value is not in the
        archive after task ``at``; the message says what there is.
    """
    _check(spec, method, seed)
    here = _Seed(spec, method, seed)
    k, v = _index(here.stream.keys, key, "key"), _index(here.stream.values, value, "value")
    first = -len(here.stream.prior_key)
    if not first <= at < len(here.stream):
        raise ValueError(
            f"a decision after task {at} would never take effect; choose a task from {first} to {len(here.stream) - 1}"
        )
    before = here.course(standing)
    precedent = k * len(here.stream.values) + v
    fall = before.fall_before(precedent, at)
    if fall is None:
        raise ValueError(
            f"{value} of {key} is not in the archive after task {at} of seed {seed}; only a revoked precedent can be "
            "decided on, so choose a task between its revocation and its return"
        )
    after = here.course([*standing, Override(at, k, v, verdict)])
    stream = here.stream
    tasks = np.flatnonzero(
        (before.played.action != after.played.action) | (before.played.success != after.played.success)
    )
    names = np.array(stream.values, object)
    changed = pd.DataFrame(
        {
            "t": tasks,
            "phase": np.array(stream.phase_names, object)[stream.phase[tasks]],
            "key": np.array(stream.keys, object)[stream.key[tasks]],
            "action_before": names[before.played.action[tasks]],
            "action_after": names[after.played.action[tasks]],
            "success_before": before.played.success[tasks],
            "success_after": after.played.success[tasks],
        }
    )
    seeds = None
    if every_seed:
        seeds = _in_every_seed(spec, method, here, before, after, fall, Override(at, k, v, verdict), progress)
    return Effect(
        method,
        seed,
        key,
        value,
        verdict,
        at,
        _success(here, before, after),
        changed,
        changed_transitions(before.table(), after.table()),
        here.evidence(before),
        here.evidence(after),
        seeds,
    )


def _check(spec: RunSpec, method: str, seed: int) -> None:
    if method not in METHODS or not METHODS[method].lifecycle:
        able = ", ".join(name for name in spec.methods if METHODS[name].lifecycle)
        raise ValueError(f"{method} has no precedents to decide on; of this run's methods these have: {able}")
    last = spec.first_seed + spec.seeds - 1
    if not spec.first_seed <= seed <= last:
        raise ValueError(f"the run has no seed {seed}; its seeds are {spec.first_seed} to {last}")


def _index(names: Sequence[str], name: str, what: str) -> int:
    if name not in names:
        raise ValueError(f"{name} is no {what} of the stream; it has {', '.join(names)}")
    return list(names).index(name)


@dataclass(frozen=True, slots=True)
class _Fall:
    """A revocation: its task, its phase (-1 before the first task), and its number among those of the phase."""

    t: int
    phase: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class _Course:
    """What one seed's method did and learned under some decisions; ``transitions`` as a replay leaves them.

    The index of a precedent is ``key * A + value`` with the A values of the stream.
    """

    stream: Stream
    played: Played
    overrides: tuple[Override, ...]
    transitions: npt.NDArray[np.void]

    def fall_before(self, precedent: int, at: int) -> _Fall | None:
        """Return the revocation by which a precedent is in the archive after task ``at``; None when it is not."""
        rows = self.transitions[self.transitions["precedent"] == precedent]
        rows = rows[rows["time"] <= at]
        if len(rows) == 0 or rows["to_state"][-1] != State.REVOKED:
            return None
        return [fall for fall in self.falls(precedent) if fall.t <= at][-1]

    def falls(self, precedent: int) -> list[_Fall]:
        """Every revocation of a precedent, in order."""
        rows = self.transitions[self.transitions["precedent"] == precedent]
        fell = (rows["from_state"] == State.ACTIVE) & (rows["to_state"] == State.REVOKED)
        counts: Counter[int] = Counter()
        found = []
        for t in rows["time"][fell].tolist():
            phase = int(self.stream.phase[t]) if t >= 0 else -1
            found.append(_Fall(t, phase, counts[phase]))
            counts[phase] += 1
        return found

    def table(self) -> pd.DataFrame:
        """Write the transitions by name."""
        key, value = np.divmod(self.transitions["precedent"], len(self.stream.values))
        states = np.array([state.label for state in State], object)
        return pd.DataFrame(
            {
                "key_id": np.array(self.stream.keys, object)[key],
                "value_id": np.array(self.stream.values, object)[value],
                "time": self.transitions["time"],
                "from_state": states[self.transitions["from_state"]],
                "to_state": states[self.transitions["to_state"]],
                "rule": np.array([rule.label for rule in Rule], object)[self.transitions["rule"]],
            }
        )


class _Seed:
    """One seed of a run: its draws, played by one method as often as asked."""

    def __init__(self, spec: RunSpec, method: str, seed: int) -> None:
        self.spec = spec
        self.method = method
        self.thresholds = thresholds_of(method, spec.thresholds)
        self.stream = spec.stream_spec.make(seed)
        self.no_memory = play(self.stream, METHODS[REFERENCE].make(setting(spec, self.stream))).success

    def success(self, success: npt.NDArray[np.bool_]) -> dict[str, float]:
        """Mean of each phase that has tasks, and of all tasks."""
        phase, names = self.stream.phase, self.stream.phase_names
        means = {name: float(success[phase == p].mean()) for p, name in enumerate(names) if np.any(phase == p)}
        return {**means, OVERALL: float(success.mean())}

    def play(self, overrides: Sequence[Override]) -> Played:
        return play(self.stream, METHODS[self.method].make(setting(self.spec, self.stream)), overrides)

    def course(self, overrides: Sequence[Override]) -> _Course:
        played, stream = self.play(overrides), self.stream
        before, items, values = len(stream.prior_key), len(stream.prior_key) + len(stream), len(stream.values)
        learned = np.concatenate(
            [stream.prior_key * values + stream.prior_value, stream.key * values + played.evidence_value]
        )
        decided = [override.key * values + override.value for override in overrides]
        held = admissions(stream, played, self.thresholds)
        log = EncodedLog(
            precedent=np.concatenate([learned, decided]).astype(np.int32),
            supports=np.concatenate(
                [np.ones(before, np.bool_), played.evidence_supports, np.zeros(len(decided), np.bool_)]
            ),
            time=np.concatenate([np.arange(items) - before, [override.t for override in overrides]]).astype(np.int64),
            seq=np.concatenate([np.arange(items), -1 - np.arange(len(decided))]),
            key_start=np.arange(len(stream.keys) + 1) * values,
            admits=np.concatenate([held != False, np.ones(len(decided), np.bool_)]),  # noqa: E712 - None admits
            verdict=np.array([0] * items + [int(override.verdict) for override in overrides], np.uint8),
        )
        return _Course(stream, played, tuple(overrides), replay(log, self.thresholds).transitions)

    def evidence(self, course: _Course) -> pd.DataFrame:
        """Write what the method learned from, and the decisions, as rows of one replay."""
        stream, overrides = self.stream, course.overrides
        learned = played_tables(self.spec, self.method, stream, course.played).evidence
        decided = pd.DataFrame(
            {
                "method": self.method,
                "seed": stream.seed,
                "seq": [-1 - i for i in range(len(overrides))],
                "t": [override.t for override in overrides],
                "phase": [stream.phase_names[stream.phase[o.t]] if o.t >= 0 else None for o in overrides],
                "key": [stream.keys[override.key] for override in overrides],
                "value": [stream.values[override.value] for override in overrides],
                "supports": False,
                "text": None,
                "admitted": pd.array([None] * len(overrides), "boolean"),
                "verdict": [int(override.verdict) for override in overrides],
            }
        )
        if learned is None:
            raise ValueError(f"{self.method} learns nothing that could be decided on")
        names = {name: learned[name].astype(object) for name in ("phase", "key", "value")}
        both = learned.assign(verdict=0, **names)
        if overrides:
            both = pd.concat([both, decided.astype({"phase": object, "text": object})], ignore_index=True)
        return both.assign(subject="", key_id=both["key"], value_id=both["value"])


def _success(seed: _Seed, before: _Course, after: _Course) -> pd.DataFrame:
    left, right = seed.success(before.played.success), seed.success(after.played.success)
    reference = seed.success(seed.no_memory)
    sizes = {name: int((seed.stream.phase == p).sum()) for p, name in enumerate(seed.stream.phase_names)}
    frame = pd.DataFrame(
        {
            "phase": list(left),
            "tasks": [sizes.get(name, len(seed.stream)) for name in left],
            "before": list(left.values()),
            "after": list(right.values()),
        }
    )
    nomem = np.array(list(reference.values()))
    pollution = {side: mpi(nomem, frame[side].to_numpy(np.float64)) for side in ("before", "after")}
    return frame.assign(
        difference=frame["after"] - frame["before"],
        mpi_before=pollution["before"],
        mpi_after=pollution["after"],
        mpi_difference=pollution["after"] - pollution["before"],
    )


def _in_every_seed(
    spec: RunSpec,
    method: str,
    here: _Seed,
    before: _Course,
    after: _Course,
    fall: _Fall,
    decision: Override,
    progress: Progress | None,
) -> EverySeed:
    precedent = decision.key * len(here.stream.values) + decision.value
    rows: list[dict[str, Any]] = []
    taken: dict[int, int | None] = {}
    for i, seed in enumerate(range(spec.first_seed, spec.first_seed + spec.seeds)):
        at: int | None = decision.t
        if seed == here.stream.seed:
            one, without, with_it = here, before.played, after.played
        else:
            one = _Seed(spec, method, seed)
            course = one.course(())
            at = _matching(course, precedent, fall, decision.t - fall.t)
            without = with_it = course.played
            if at is not None:
                with_it = one.play([Override(at, decision.key, decision.value, decision.verdict)])
        taken[seed] = at
        left, right, reference = (one.success(x) for x in (without.success, with_it.success, one.no_memory))
        rows += [
            {"seed": seed, "phase": name, "before": left[name], "after": right[name], "nomem": reference[name]}
            for name in left
        ]
        if progress is not None:
            progress((i + 1) / spec.seeds, f"Played {i + 1} of {spec.seeds} seeds with the decision and without")
    unmatched = tuple(seed for seed, at in taken.items() if at is None)
    per_seed = pd.DataFrame(rows)
    per_seed["difference"] = per_seed["after"] - per_seed["before"]
    wide = per_seed.pivot(index="seed", columns="phase", values="difference")
    differences = wide[per_seed["phase"].unique()].reset_index().rename_axis(columns=None)
    at_seed = pd.Series([taken[seed] for seed in differences["seed"]], dtype="Int64")
    differences.insert(1, "matched", at_seed.notna())
    differences.insert(2, "at", at_seed)
    return EverySeed(spec.seeds, spec.seeds - len(unmatched), unmatched, _over_seeds(per_seed), differences)


def _matching(course: _Course, precedent: int, fall: _Fall, later: int) -> int | None:
    """Return the task of the decision that matches ``later`` tasks after a revocation like ``fall``, or None."""
    for other in course.falls(precedent):
        if (other.phase, other.ordinal) == (fall.phase, fall.ordinal):
            at = other.t + later
            return at if at < len(course.stream) and course.fall_before(precedent, at) == other else None
    return None


def _over_seeds(per_seed: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for phase, part in per_seed.groupby("phase", sort=False):
        before, after, nomem = (part[name].to_numpy(np.float64) for name in ("before", "after", "nomem"))
        bounds = bootstrap_mean(after - before, np.random.default_rng(RESAMPLING_SEED))
        # MPI after - MPI before = (before - after) / no memory: the index of a method that loses what is gained.
        pollution = mpi_interval(nomem, nomem + (after - before), np.random.default_rng(RESAMPLING_SEED))
        rows.append(
            {
                "phase": phase,
                "before": before.mean(),
                "after": after.mean(),
                "difference": bounds.estimate,
                "lo": bounds.lo,
                "hi": bounds.hi,
                "mpi_before": mpi(float(nomem.mean()), float(before.mean())),
                "mpi_after": mpi(float(nomem.mean()), float(after.mean())),
                "mpi_difference": pollution.estimate,
                "mpi_lo": pollution.lo,
                "mpi_hi": pollution.hi,
            }
        )
    return pd.DataFrame(rows)


def _by_phase(table: pd.DataFrame, columns: Sequence[str]) -> dict[str, Mapping[str, float | None]]:
    """Write columns as numbers by phase; a name loses the prefix that the whole table shares, NaN becomes None."""
    return {
        str(row["phase"]): {
            name.removeprefix("mpi_"): None if np.isnan(row[name]) else float(row[name]) for name in columns
        }
        for row in table.to_dict("records")
    }
