"""The agent loop of `tepa_core.experiment.play` with a TEPA method, compiled: for many threshold settings at once.

The rule is not repeated here. Every step goes through `tepa_core.lifecycle.rule`, so a setting played here is the
setting played by `play`; the tests hold the two against each other.

Keys do not know of each other: what a TEPA method offers for a key, and what it learns about it, depends on the items
of that key alone. (The counterfactual and contamination trials of TEPA-Full ask whether a candidate changes what is
offered for other keys. In a memory kept by key it never does, so only its support trials can fail.) Each key is
therefore played from its first item to its last before the next: its few records never leave the processor's cache.
"""

# mypy: disable-error-code="untyped-decorator"
# numba ships no types.

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tepa_core.experiment.run import Progress
from tepa_core.experiment.spec import RunSpec
from tepa_core.lifecycle import State, Thresholds, rule
from tepa_core.lifecycle.precedent import MAX_N_REC, TRANSITION, RuleParameters
from tepa_core.methods import METHODS, SupportTrials, passed, thresholds_of
from tepa_core.methods.trials import hold
from tepa_core.stats import revocation_delays
from tepa_core.streams import Stream
from tepa_core.streams.stream import TRIALS_DRAWN

_ACTIVE = int(State.ACTIVE)
_REVOKED = int(State.REVOKED)
_NONE = -1

#: What is counted per setting, seed and phase, in the order of the last axis of `count`. Exposures, false revocations
#: and delays are judged by the truth as in `tepa_core.stats.lifecycle_measures`; a delay belongs to the phase of the
#: change that made the value stale.
COUNTS = ("success", "exposed", "revoked", "falsely_revoked", "delay", "delayed", "never_revoked")
SUCCESS, EXPOSED, REVOKED, FALSELY_REVOKED, DELAY, DELAYED, NEVER_REVOKED = range(7)
_N_COUNTS = len(COUNTS)


class _Items(NamedTuple):
    """The tasks of all seeds, those of one seed and key side by side (a group), and what memory held before them."""

    task_start: npt.NDArray[np.int64]
    prior_start: npt.NDArray[np.int64]
    change_start: npt.NDArray[np.int64]
    seed: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    t: npt.NDArray[np.int64]
    phase: npt.NDArray[np.int64]
    base: npt.NDArray[np.int64]
    follows: npt.NDArray[np.bool_]
    outcome: npt.NDArray[np.bool_]
    asserted: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    prior_t: npt.NDArray[np.int64]
    prior_value: npt.NDArray[np.int64]
    change_at: npt.NDArray[np.int64]
    change_end: npt.NDArray[np.int64]
    change_stale: npt.NDArray[np.int64]
    change_phase: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """The streams of a spec, drawn once and laid out for `count`: reusable for every setting of thresholds.

    Attributes
    ----------
    seeds
        The seeds, in order (S).
    phases
        Names of the phases in order of time (F).
    keys, values
        Names of the conflict keys, and of the values (A).
    tasks
        Tasks of each phase over all seeds, shape (F,).
    known
        Tasks with a known right value, shape (S, F).
    without_memory
        Successes of the base action in each phase over all seeds, shape (F,): the agent without memory.
    asserts
        True where evidence asserts values, False where it is the outcome of the action.
    items
        The tasks, key by key; n of them.
    trial_pattern
        Per task and value which of its support trials succeed, as bits, shape (n, A); None where there are no trials.
    """

    seeds: tuple[int, ...]
    phases: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...]
    tasks: npt.NDArray[np.int64]
    known: npt.NDArray[np.int64]
    without_memory: npt.NDArray[np.int64]
    asserts: bool
    items: _Items
    trial_pattern: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, spec: RunSpec, progress: Progress | None = None) -> Draws:
        """Draw the streams of a spec.

        Parameters
        ----------
        spec
            Its stream, world and seeds count; its methods and thresholds do not.
        progress
            Called now and then with the fraction done; an exception raised in it stops.
        """
        stream_spec = spec.stream_spec
        streams = []
        for i in range(spec.seeds):
            streams.append(stream_spec.make(spec.first_seed + i))
            if progress is not None and (i + 1) % 10 == 0:
                progress((i + 1) / spec.seeds, f"Drew {i + 1} of {spec.seeds} seeds")
        return _laid_out(streams)

    @property
    def steps(self) -> int:
        """Tasks of all seeds together: the work of one setting."""
        return len(self.items.t)


def _laid_out(streams: Sequence[Stream]) -> Draws:
    model = streams[0]
    tasks, n_keys, n_phases = len(model), len(model.keys), len(model.phase_names)
    # By seed, then key, then time: a stable sort of group numbers keeps the tasks of a group in order.
    group = np.concatenate([s * n_keys + stream.key for s, stream in enumerate(streams)])
    order = np.argsort(group, kind="stable")
    at = np.arange(tasks)
    seed, t = order // tasks, order % tasks
    phase = np.concatenate([stream.phase for stream in streams])[order]
    base = np.concatenate([stream.base_action for stream in streams])[order]
    outcome = np.concatenate([stream.outcome for stream in streams])[order]
    right = np.concatenate([stream.truth[at, stream.key] for stream in streams])[order]
    asserted = [np.full(tasks, _NONE) if stream.asserted is None else stream.asserted for stream in streams]

    priors = np.concatenate([s * n_keys + stream.prior_key for s, stream in enumerate(streams)])
    prior_order = np.argsort(priors, kind="stable")
    prior_t = np.concatenate([np.arange(len(stream.prior_key)) - len(stream.prior_key) for stream in streams])
    prior_value = np.concatenate([stream.prior_value for stream in streams])

    changes = _changes(streams)
    groups = np.unique(np.concatenate([group, priors, changes[:, 0]]))
    known = np.zeros((len(streams), n_phases), np.int64)
    np.add.at(known, (seed, phase), right != _NONE)
    trials = [stream.trial_support for stream in streams if stream.trial_support is not None]
    return Draws(
        seeds=tuple(stream.seed for stream in streams),
        phases=model.phase_names,
        keys=model.keys,
        values=model.values,
        tasks=np.bincount(phase, minlength=n_phases),
        known=known,
        without_memory=np.bincount(phase[outcome[np.arange(len(base)), base]], minlength=n_phases),
        asserts=model.asserted is not None,
        items=_Items(
            task_start=_starts(groups, group[order]),
            prior_start=_starts(groups, priors[prior_order]),
            change_start=_starts(groups, changes[:, 0]),
            seed=groups // n_keys,
            key=groups % n_keys,
            t=t,
            phase=phase,
            base=base,
            follows=np.concatenate([stream.follows for stream in streams])[order],
            outcome=outcome,
            asserted=np.concatenate(asserted)[order],
            right=right,
            prior_t=prior_t[prior_order],
            prior_value=prior_value[prior_order],
            change_at=changes[:, 1].copy(),
            change_end=changes[:, 2].copy(),
            change_stale=changes[:, 3].copy(),
            change_phase=changes[:, 4].copy(),
        ),
        trial_pattern=_patterns(np.concatenate(trials)[order]) if len(trials) == len(streams) else None,
    )


def _starts(groups: npt.NDArray[np.int64], members: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each group begins among sorted members, and where the last one ends, shape (groups + 1,)."""
    return np.append(np.searchsorted(members, groups), len(members)).astype(np.int64)


def _changes(streams: Sequence[Stream]) -> npt.NDArray[np.int64]:
    """Every change of truth as (group, task, task of the key's next one, superseded value, phase), sorted."""
    rows = []
    for s, stream in enumerate(streams):
        # Without transitions nothing is delayed: what is left are the changes.
        found = revocation_delays(stream.truth, stream.key, [], [])
        by_key = np.lexsort((found.changed_at, found.key))
        key, at = found.key[by_key], found.changed_at[by_key]
        end = np.append(at[1:], len(stream))
        end[np.append(key[1:] != key[:-1], True)] = len(stream)
        rows.append(np.column_stack([s * len(stream.keys) + key, at, end, found.stale_value[by_key], stream.phase[at]]))
    return np.concatenate(rows)


def _patterns(trials: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Support trials of each task and value, shape (n, drawn, A), as the bits of one number, shape (n, A)."""
    weights = 1 << np.arange(trials.shape[1])
    bits: npt.NDArray[np.int64] = (trials * weights[:, None]).sum(axis=1)
    return bits


def _admitted(draws: Draws, settings: Sequence[Thresholds], validates: bool) -> tuple[Any, Any]:
    """Whether trials let a value become Active at each task, shape (kinds, n, A), and the kind of each setting.

    Settings that hold the same trials are of one kind; without trials all are of one that admits everything.
    """
    if not validates:
        return np.ones((1, draws.steps, len(draws.values)), np.bool_), np.zeros(len(settings), np.int64)
    if draws.trial_pattern is None:
        raise ValueError("tepa_full validates by trials, and this stream has none; choose tepa")
    budgets = [(thresholds.trial_budget, thresholds.trial_pass) for thresholds in settings]
    kinds = {budget: i for i, budget in enumerate(dict.fromkeys(budgets))}
    # What a trial turns on is which of the fresh tasks succeed, so the verdict is asked once per such pattern.
    patterns = (np.arange(1 << TRIALS_DRAWN)[:, None] >> np.arange(TRIALS_DRAWN)) & 1 == 1
    every = SupportTrials(patterns[:, :, None])
    admits = np.empty((len(kinds), *draws.trial_pattern.shape), np.bool_)
    for thresholds in dict(zip(budgets, settings, strict=True)).values():
        verdicts = [
            passed(hold(every, thresholds, p, 0, 0, opposite_unharmed=True, others_untouched=True), thresholds)
            for p in range(len(patterns))
        ]
        admits[kinds[thresholds.trial_budget, thresholds.trial_pass]] = np.array(verdicts)[draws.trial_pattern]
    return admits, np.array([kinds[budget] for budget in budgets])


def count(
    draws: Draws, settings: Sequence[Thresholds], method: str, fallback: str
) -> tuple[npt.NDArray[np.int32], float]:
    """Play every seed under every setting and count what came of it.

    Parameters
    ----------
    draws
        What to play.
    settings
        Thresholds, one for each round through all seeds.
    method
        A method with a lifecycle.
    fallback
        How it acts without an Active precedent: ``candidate`` or ``base_policy``.

    Returns
    -------
    numpy.ndarray
        Counts, shape (settings, S, F, len(`COUNTS`)).
    float
        Seconds spent in the compiled loop.

    Raises
    ------
    ValueError
        If the method has no lifecycle, or needs trials that the stream does not have.
    """
    admits, kind = _admitted(draws, settings, _validates(method))
    parameters = _rows(settings, method)
    counts = np.zeros((len(settings), len(draws.seeds), len(draws.phases), len(COUNTS)), np.int32)
    memory = _memory(len(draws.values))
    out = np.empty(len(draws.values) + rule.ACTIVATIONS_PER_ITEM, TRANSITION)
    # Called with no setting, the loop is compiled and does nothing: compiling is no part of the time taken.
    for some in (slice(0), slice(None)):
        began = time.perf_counter()
        _count(
            draws.items,
            parameters[some],
            kind[some],
            admits,
            draws.asserts,
            fallback == "candidate",
            memory,
            out,
            counts[some],
        )
        taken = time.perf_counter() - began
    return counts, taken


def behaviours(settings: Sequence[Thresholds], method: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Find settings that cannot differ in anything they do, so that one of each kind is enough.

    The rule reads ``theta_rec`` in one place: to judge a full window by the share of its ones. Two values between
    which no such share lies are the same setting, so a grid of any fineness holds at most ``n_rec + 2`` of them.

    Returns
    -------
    numpy.ndarray
        Position of the first setting of each kind, shape (m,).
    numpy.ndarray
        For each setting the position of its kind in the first array, shape (settings,).

    Raises
    ------
    ValueError
        If the method has no lifecycle.
    """
    told_apart = _rows(settings, method)
    told_apart[:, RuleParameters._fields.index("theta_rec")] = _revoking_windows(told_apart)
    if _validates(method):
        trials = [(thresholds.trial_budget, thresholds.trial_pass) for thresholds in settings]
        told_apart = np.column_stack([told_apart, np.array(trials)])
    _, first, kind = np.unique(told_apart, axis=0, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)


def lives(
    draws: Draws, thresholds: Thresholds, method: str, fallback: str
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.void]]:
    """Play every seed under one setting and keep what became of each precedent.

    Returns
    -------
    numpy.ndarray
        `State` numbers at the end, shape (groups, A): groups as in ``draws.items``.
    numpy.ndarray
        Transitions, dtype `TRANSITION`, those of one precedent in order; ``precedent`` is its position in the first
        array, flattened, ``time`` the task (negative before the first).
    """
    admits, kind = _admitted(draws, (thresholds,), _validates(method))
    groups, values = len(draws.items.seed), len(draws.values)
    states = np.zeros((groups, values), np.int8)
    # A value is proposed once, and each item activates and supersedes or revokes one at most per Active value; every
    # life that ends has begun. Memory that is never written to costs nothing.
    room = (groups + 1) * values + 2 * (draws.steps + len(draws.items.prior_t)) + rule.ACTIVATIONS_PER_ITEM
    out = np.empty(room, TRANSITION)
    n = _lives(
        draws.items,
        _rows((thresholds,), method)[0],
        admits[kind[0]],
        draws.asserts,
        fallback == "candidate",
        _memory(values),
        out,
        states,
    )
    return states, out[:n]


def _validates(method: str) -> bool:
    entry = METHODS.get(method)
    if entry is None or not entry.lifecycle:
        having = ", ".join(name for name, each in METHODS.items() if each.lifecycle)
        raise ValueError(f"thresholds do not act on {method}; the methods with a lifecycle are {having}")
    return entry.trials


def _rows(settings: Sequence[Thresholds], method: str) -> npt.NDArray[np.float64]:
    """`RuleParameters` of each setting as numbers, shape (settings, parameters)."""
    rows = [tuple(map(float, thresholds_of(method, thresholds).parameters())) for thresholds in settings]
    return np.array(rows, np.float64).reshape(-1, len(RuleParameters._fields))


class _Memory(NamedTuple):
    """The memory of one key, used for one after the other; its records also as plain numbers, to clear them fast."""

    precedents: npt.NDArray[np.void]
    raw: npt.NDArray[np.int64]
    blank: npt.NDArray[np.int64]
    record: npt.NDArray[np.void]
    raw_record: npt.NDArray[np.int64]
    ring: npt.NDArray[np.int32]
    choices: npt.NDArray[np.int32]


def _memory(values: int) -> _Memory:
    precedents, record, ring = rule.new_key(values, MAX_N_REC)
    raw = precedents.view(np.int64)
    return _Memory(precedents, raw, raw.copy(), record, record.view(np.int64), ring, np.arange(values, dtype=np.int32))


@njit(cache=True, nogil=True)
def _thresholds(row: Any) -> RuleParameters:
    return RuleParameters(int(row[0]), row[1], int(row[2]), row[3], int(row[4]), row[5], row[6], row[7], row[8] != 0.0)


@njit(cache=True, nogil=True)
def _revoking_windows(parameters: Any) -> Any:
    """For each setting, how many of the full windows with 0, 1, ... n_rec ones revoke: those with the fewest."""
    found = np.zeros(len(parameters))
    for i in range(len(parameters)):
        th = _thresholds(parameters[i])
        for successes in range(th.n_rec + 1):
            # Without counts the posterior rule is silent: it needs n_min of them.
            if rule.revocation_rule(0, 0, (1 << successes) - 1, th.n_rec, th):
                found[i] += 1
    return found


@njit(cache=True, nogil=True)
def _count(
    d: Any,
    parameters: Any,
    kind: Any,
    admits: Any,
    asserts: bool,
    tries: bool,
    memory: _Memory,
    out: Any,
    counts: Any,
) -> None:
    for g in range(len(d.seed)):
        for c in range(len(parameters)):
            th = _thresholds(parameters[c])
            _clear(memory)
            _play_group(
                d,
                g,
                th,
                admits[kind[c]],
                asserts,
                tries,
                memory,
                out,
                0,
                False,
                counts[c, d.seed[g]],
            )


@njit(cache=True, nogil=True)
def _lives(
    d: Any,
    parameters: Any,
    admits: Any,
    asserts: bool,
    tries: bool,
    memory: _Memory,
    out: Any,
    states: Any,
) -> int:
    th = _thresholds(parameters)
    uncounted = np.zeros((d.phase.max() + 1, _N_COUNTS), np.int32)
    n = 0
    for g in range(len(d.seed)):
        _clear(memory)
        n = _play_group(
            d,
            g,
            th,
            admits,
            asserts,
            tries,
            memory,
            out,
            n,
            True,
            uncounted,
        )
        for v in range(len(memory.precedents)):
            states[g, v] = memory.precedents[v].state
    return n


@njit(cache=True, nogil=True)
def _clear(memory: _Memory) -> None:
    memory.raw[:] = memory.blank
    memory.raw_record[:] = 0
    memory.record[0].active_head = _NONE
    memory.ring[:] = rule.NO_SUPPORT


@njit(cache=True, nogil=True)
def _play_group(
    d: Any,
    g: int,
    th: RuleParameters,
    admits: Any,
    asserts: bool,
    tries: bool,
    memory: _Memory,
    out: Any,
    n: int,
    keep: bool,
    counts: Any,
) -> int:
    """Play the tasks of one seed on one key: `play`, with `Tepa` in the place of the method.

    Transitions are added to ``out`` from ``n`` on; unless ``keep``, those of each item replace those before.
    """
    precedents, key, ring = memory.precedents, memory.record[0], memory.ring[: th.n_rec]
    first = g * len(precedents)
    k = d.key[g]
    for i in range(d.prior_start[g], d.prior_start[g + 1]):
        t = d.prior_t[i]
        n = rule.observe_key(precedents, key, ring, d.prior_value[i], True, th, t, t, k, first, out, n)
        if not keep:
            n = 0
    change, changes = d.change_start[g], d.change_start[g + 1]
    # The superseded value that is still Active, if there is one, since when, and in which phase that began.
    stale, since, stale_phase = _NONE, 0, 0
    for i in range(d.task_start[g], d.task_start[g + 1]):
        t = d.t[i]
        phase = d.phase[i]
        while change < changes and d.change_at[change] <= t:
            if stale >= 0:
                counts[stale_phase, NEVER_REVOKED] += 1
            stale, since, stale_phase = d.change_stale[change], d.change_at[change], d.change_phase[change]
            if precedents[stale].state != _ACTIVE:
                stale = _NONE
            change += 1
        retrieved = rule.followed_active(precedents, key, th.revokes)
        offered = retrieved
        if offered < 0 and tries and key.items > 0:
            offered = rule.best_candidate(precedents, key, memory.choices, th)
        act = d.base[i]
        if offered >= 0 and d.follows[i]:
            act = offered
        earned = d.outcome[i, act]
        value, supports = act, earned
        if asserts:
            value, supports = d.asserted[i], True
        was = n
        n = rule.observe_key(precedents, key, ring, value, supports, th, t, t, k, first, out, n, admits[i, value])
        counts[phase, SUCCESS] += earned
        right = d.right[i]
        if retrieved >= 0 and right >= 0 and retrieved != right:
            counts[phase, EXPOSED] += 1
        for j in range(was, n):
            if out[j].to_state == _REVOKED and out[j].from_state == _ACTIVE:
                fell = out[j].precedent - first
                counts[phase, REVOKED] += 1
                if fell == right:
                    counts[phase, FALSELY_REVOKED] += 1
                if fell == stale:
                    counts[stale_phase, DELAY] += t - since + 1
                    counts[stale_phase, DELAYED] += 1
                    stale = _NONE
        if not keep:
            n = 0
    while change < changes:
        if stale >= 0:
            counts[stale_phase, NEVER_REVOKED] += 1
        stale, stale_phase = d.change_stale[change], d.change_phase[change]
        if precedents[stale].state != _ACTIVE:
            stale = _NONE
        change += 1
    if stale >= 0:
        counts[stale_phase, NEVER_REVOKED] += 1
    return n
