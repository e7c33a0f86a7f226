"""The agent loop: one method plays one seed of a stream. Every method goes through it, every stream fits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tepa_core.lifecycle import Verdict
from tepa_core.methods import Experience, Method, TakesDecisions, ToldOfBoundaries, Trial, Validates
from tepa_core.streams import Stream

#: In arrays of values: none.
NO_VALUE = -1


@dataclass(frozen=True, slots=True)
class Override:
    """A person's decision on one precedent: it takes effect after the evidence of task ``t``, before the next.

    ``key`` and ``value`` are indices into the stream's keys and values.
    """

    t: int
    key: int
    value: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Played:
    """What one method did on one seed: arrays over the tasks, shape (T,).

    ``followed`` is the value the agent followed and ``retrieved`` the value that came out of active memory, `NO_VALUE`
    where there was none. ``evidence_value`` and ``evidence_supports`` are what the method learned from, on the task's
    key. ``size`` is the active memory after the task. ``trials`` are those that the method held, in order.
    """

    action: npt.NDArray[np.int64]
    success: npt.NDArray[np.bool_]
    followed: npt.NDArray[np.int64]
    retrieved: npt.NDArray[np.int64]
    evidence_value: npt.NDArray[np.int64]
    evidence_supports: npt.NDArray[np.bool_]
    size: npt.NDArray[np.int64]
    trials: tuple[Trial, ...] = ()


def play(stream: Stream, method: Method, overrides: Sequence[Override] = ()) -> Played:
    """Let a method play a stream: per task recall, act, see the outcome, learn (Algorithm 1).

    Parameters
    ----------
    stream, method
        What is played, and the memory that plays it.
    overrides
        Decisions of a person; those on one task in the order given.

    Raises
    ------
    ValueError
        If there are overrides and the method's precedents cannot be decided on, or one falls on no task.
    """
    tasks = len(stream)
    before = len(stream.prior_key)
    due = _due(overrides, method, range(-before, tasks))
    action, followed, retrieved, evidence_value, size = (np.full(tasks, NO_VALUE, np.int64) for _ in range(5))
    success, supports = np.zeros(tasks, np.bool_), np.ones(tasks, np.bool_)
    keys, base, follows = stream.key.tolist(), stream.base_action.tolist(), stream.follows.tolist()
    asserted = None if stream.asserted is None else stream.asserted.tolist()
    told = set(stream.boundaries.tolist()) if isinstance(method, ToldOfBoundaries) else ()
    for i, (key, value) in enumerate(zip(stream.prior_key.tolist(), stream.prior_value.tolist(), strict=True)):
        method.learn(Experience(i - before, key, value, True, None))
        if i - before in due:
            _decide(method, due[i - before])
    for t in range(tasks):
        if t in told and isinstance(method, ToldOfBoundaries):
            method.boundary()
        key = keys[t]
        recall = method.recall(t, key)
        act = base[t]
        if recall.value is not None:
            if recall.retrieved:
                retrieved[t] = recall.value
            if follows[t]:
                act = followed[t] = recall.value
        earned = bool(stream.outcome[t, act])
        value, supported = (act, earned) if asserted is None else (asserted[t], True)
        method.learn(Experience(t, key, value, supported, earned))
        if t in due:
            _decide(method, due[t])
        action[t], success[t] = act, earned
        evidence_value[t], supports[t] = value, supported
        size[t] = len(method)
    trials = tuple(method.held) if isinstance(method, Validates) else ()
    return Played(action, success, followed, retrieved, evidence_value, supports, size, trials)


def _due(overrides: Sequence[Override], method: Method, tasks: range) -> dict[int, list[Override]]:
    if overrides and not isinstance(method, TakesDecisions):
        raise ValueError(
            f"{type(method).__name__} has no precedents to decide on; decide on those of a method with a lifecycle"
        )
    due: dict[int, list[Override]] = {}
    for override in overrides:
        if override.t not in tasks:
            raise ValueError(
                f"a decision after task {override.t} would never take effect; "
                f"choose a task from {tasks.start} to {tasks.stop - 1}"
            )
        due.setdefault(override.t, []).append(override)
    return due


def _decide(method: Method, overrides: Sequence[Override]) -> None:
    if isinstance(method, TakesDecisions):
        for override in overrides:
            method.decide(override.key, override.value, override.verdict, override.t)
