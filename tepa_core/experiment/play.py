"""The agent loop: one method plays one seed of a stream. Every method goes through it, every stream fits it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tepa_core.methods import Experience, Method, ToldOfBoundaries, Trial, Validates
from tepa_core.streams import Stream

#: In arrays of values: none.
NO_VALUE = -1


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


def play(stream: Stream, method: Method) -> Played:
    """Let a method play a stream: per task recall, act, see the outcome, learn (Algorithm 1)."""
    tasks = len(stream)
    action, followed, retrieved, evidence_value, size = (np.full(tasks, NO_VALUE, np.int64) for _ in range(5))
    success, supports = np.zeros(tasks, np.bool_), np.ones(tasks, np.bool_)
    keys, base, follows = stream.key.tolist(), stream.base_action.tolist(), stream.follows.tolist()
    asserted = None if stream.asserted is None else stream.asserted.tolist()
    told = set(stream.boundaries.tolist()) if isinstance(method, ToldOfBoundaries) else ()
    before = len(stream.prior_key)
    for i, (key, value) in enumerate(zip(stream.prior_key.tolist(), stream.prior_value.tolist(), strict=True)):
        method.learn(Experience(i - before, key, value, True, None))
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
        action[t], success[t] = act, earned
        evidence_value[t], supports[t] = value, supported
        size[t] = len(method)
    trials = tuple(method.held) if isinstance(method, Validates) else ()
    return Played(action, success, followed, retrieved, evidence_value, supports, size, trials)
