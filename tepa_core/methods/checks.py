"""The conformance battery: what every memory method must do, whatever it remembers.

A method that is new to the registry passes all of `all_checks` before it is compared with others. Each check takes the
method's registry entry, lets the method live through small worlds of its own and raises `AssertionError` with a
sentence when the method breaks the contract of `tepa_core.methods.base.Method`.

References
----------
The habit is river's ``checks`` module: Montiel et al. (2021), River: machine learning for streaming data in Python.
JMLR 22(110), 1-8.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tepa_core.lifecycle import PRESETS
from tepa_core.lifecycle.precedent import MAX_TRIAL_BUDGET
from tepa_core.methods.base import FALLBACKS, Experience, Method, Recall, Setting, ToldOfBoundaries
from tepa_core.methods.registry import MethodEntry
from tepa_core.methods.trials import SupportTrials, TrialKind

#: Takes a method's entry and raises AssertionError if it breaks the contract.
Check = Callable[[MethodEntry], None]

_TASKS = 120
_KEYS = ("read csv", "read json", "read tsv")
_VALUES = 3
_TRIALS = MAX_TRIAL_BUDGET // len(TrialKind)
_PRIOR = 6
_PRIOR_KEYS = 2


@dataclass(frozen=True, slots=True)
class World:
    """A small world that a check lets a method live in; ``phase`` and ``truth`` are what no method may see.

    Attributes
    ----------
    setting
        What the method is made with.
    key, base_action
        Per task, shape (T,).
    outcome
        Success of every possible action, shape (T, values).
    asserted
        Per task the value that its evidence asserts, shape (T,); None where evidence is the outcome of the action.
    phase, truth
        Per task, shape (T,): the phase, and the right value of the task's key, which the outcome now and then belies.
    """

    setting: Setting
    key: npt.NDArray[np.int64]
    base_action: npt.NDArray[np.int64]
    outcome: npt.NDArray[np.bool_]
    asserted: npt.NDArray[np.int64] | None
    phase: npt.NDArray[np.int64]
    truth: npt.NDArray[np.int64]


def worlds(seed: int = 0) -> Iterator[World]:
    """Draw the worlds of the battery: outcomes and assertions, both presets, both fallbacks.

    In each, what is right changes for every key at a third and back at two thirds of the tasks, and one task in ten
    is misleading.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    for asserts in (False, True):
        for preset in PRESETS.values():
            for fallback in FALLBACKS:
                key = rng.integers(0, len(_KEYS), _TASKS)
                phase = np.arange(_TASKS) * 3 // _TASKS
                truth = (key + (phase == 1)) % _VALUES
                astray = rng.random(_TASKS) < 0.1
                # As many fresh tasks for trials as the largest budget asks for, misleading as often as the others.
                trial_astray = rng.random((_TASKS, _TRIALS)) < 0.1
                trial = np.where(trial_astray, rng.integers(0, _VALUES, (_TASKS, _TRIALS)), truth[:, None])
                accepted = np.where(astray, rng.integers(0, _VALUES, _TASKS), truth)
                base_action = np.where(rng.random(_TASKS) < 0.5, truth, rng.integers(0, _VALUES, _TASKS))
                yield World(
                    Setting(_KEYS, _VALUES, asserts, preset, fallback, SupportTrials(_earned(trial))),
                    key,
                    base_action,
                    _earned(accepted),
                    accepted if asserts else None,
                    phase,
                    truth,
                )


def _earned(accepted: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    earned: npt.NDArray[np.bool_] = accepted[..., None] == np.arange(_VALUES)
    return earned


def begin(entry: MethodEntry, world: World) -> Method:
    """Make a method and give it what it holds before the first task."""
    method = entry.make(world.setting)
    for i in range(_PRIOR):
        method.learn(Experience(i - _PRIOR, i % _PRIOR_KEYS, i % _PRIOR_KEYS, True, None))
    return method


def live(method: Method, world: World, start: int = 0, stop: int = _TASKS) -> list[tuple[int, Recall, int]]:
    """Let a method live through tasks ``start`` to ``stop - 1``; return per task its action, recall and size.

    Raises
    ------
    AssertionError
        If it offers what is no value.
    """
    lived = []
    for t in range(start, stop):
        if t and world.phase[t] != world.phase[t - 1] and isinstance(method, ToldOfBoundaries):
            method.boundary()
        key = int(world.key[t])
        recall = method.recall(t, key)
        if recall.value is not None and (type(recall.value) is not int or not 0 <= recall.value < _VALUES):
            raise AssertionError(
                f"{type(method).__name__} offers {recall.value!r}; a value is a whole number from 0 to {_VALUES - 1}, "
                f"or None"
            )
        action = int(world.base_action[t]) if recall.value is None else recall.value
        success = bool(world.outcome[t, action])
        value, supports = (action, success) if world.asserted is None else (int(world.asserted[t]), True)
        method.learn(Experience(t, key, value, supports, success))
        lived.append((action, recall, len(method)))
    return lived


def check_idempotent(entry: MethodEntry) -> None:
    """Give the same draws twice: actions, recalls and sizes must be the same."""
    for world in worlds():
        if live(begin(entry, world), world) != live(begin(entry, world), world):
            raise AssertionError(f"{entry.id} acted differently on the same draws; it must hold no other randomness")


def check_instances_are_independent(entry: MethodEntry) -> None:
    """Let one instance learn: no other of the same setting and no copy of it may know."""
    for world in worlds():
        expected = live(begin(entry, world), world)
        first, second = entry.make(world.setting), begin(entry, world)
        live(second, world)
        if len(first) != 0 or any(first.recall(0, key).value is not None for key in range(len(_KEYS))):
            raise AssertionError(f"{entry.id}: an instance knows what another has learned; keep memory on the instance")
        half = begin(entry, world)
        live(half, world, 0, _TASKS // 2)
        clone = copy.deepcopy(half)
        other = (world.truth + 2) % _VALUES
        live(
            clone,
            replace(world, outcome=_earned(other), asserted=other if world.asserted is not None else None),
            _TASKS // 2,
        )
        if live(half, world, _TASKS // 2) != expected[_TASKS // 2 :]:
            raise AssertionError(f"{entry.id}: what a deep copy learned changed the original; they must share nothing")


def check_pickles(entry: MethodEntry) -> None:
    """Written out and read back in the middle of a stream, it goes on as if nothing had happened."""
    for world in worlds():
        expected = live(begin(entry, world), world)
        method = begin(entry, world)
        live(method, world, 0, _TASKS // 2)
        back: Method = pickle.loads(pickle.dumps(method))  # noqa: S301 - the bytes are our own
        if live(back, world, _TASKS // 2) != expected[_TASKS // 2 :]:
            raise AssertionError(f"{entry.id} went on differently after it was pickled and read back")


def check_recall_changes_nothing(entry: MethodEntry) -> None:
    """Asking twice gives the same answer, and asking about anything changes nothing that follows."""
    for world in worlds():
        expected = live(begin(entry, world), world)
        method = begin(entry, world)
        for t in range(_TASKS):
            for key in range(len(_KEYS)):
                size = len(method)
                if method.recall(t, key) != method.recall(t, key) or method.active(key) != method.active(key):
                    raise AssertionError(f"{entry.id} gave two answers to one question; recall must change nothing")
                if len(method) != size:
                    raise AssertionError(f"{entry.id}: recall changed the size of its memory; it must change nothing")
            if live(method, world, t, t + 1) != expected[t : t + 1]:
                raise AssertionError(f"{entry.id} acts differently when it is asked more often; recall changes it")


def check_offers_known_values(entry: MethodEntry) -> None:
    """Look at what it offers: None or the index of a value, nothing before it has learned; None is not retrieved."""
    for world in worlds():
        fresh = entry.make(world.setting)
        for key in range(len(_KEYS)):
            if fresh.recall(0, key).value is not None:
                raise AssertionError(f"{entry.id} offers a value before it has learned anything")
        for _, recall, _ in live(begin(entry, world), world):
            if recall.value is None and recall.retrieved:
                raise AssertionError(f"{entry.id} says that it retrieved a value and offers none")


def check_retrieves_what_it_was_given(entry: MethodEntry) -> None:
    """Where evidence asserts values, what comes out of active memory was asserted before."""
    for world in worlds():
        if world.asserted is None:
            continue
        # The last value is never asserted, so that it can only be made up.
        asserted = np.minimum(world.asserted, _VALUES - 2)
        method = entry.make(world.setting)
        for _, recall, _ in live(method, replace(world, asserted=asserted)):
            if recall.retrieved and recall.value == _VALUES - 1:
                raise AssertionError(f"{entry.id} retrieves a value that no evidence has ever named")


def check_active(entry: MethodEntry) -> None:
    """Look at the values a reader would find: indices of values, each once, none in an empty memory."""
    for world in worlds():
        method = entry.make(world.setting)
        for t in range(_TASKS):
            for key in range(len(_KEYS)):
                found = method.active(key)
                if any(type(value) is not int or not 0 <= value < _VALUES for value in found):
                    raise AssertionError(
                        f"{entry.id} holds {found!r}; a value is a whole number from 0 to {_VALUES - 1}"
                    )
                if len(set(found)) != len(found):
                    raise AssertionError(f"{entry.id} names a value of a key twice: {found!r}")
                if found and len(method) == 0:
                    raise AssertionError(f"{entry.id} holds {found!r} in a memory whose size is 0")
            live(method, world, t, t + 1)


def check_size(entry: MethodEntry) -> None:
    """Look at its size: a fresh memory is empty, and an empty one retrieves nothing."""
    for world in worlds():
        if len(entry.make(world.setting)) != 0:
            raise AssertionError(f"{entry.id} starts with a size of {len(entry.make(world.setting))}, not 0")
        method = entry.make(world.setting)
        for t in range(_TASKS):
            key = int(world.key[t])
            if len(method) == 0 and method.recall(t, key).retrieved:
                raise AssertionError(f"{entry.id} retrieves from a memory whose size is 0")
            live(method, world, t, t + 1)


def check_blind_to_phase_and_truth(entry: MethodEntry) -> None:
    """Phases and truth, scrambled after the fact, change no action; for the oracle, where boundaries lie may."""
    rng = np.random.Generator(np.random.PCG64(1))
    reacted = False
    for world in worlds():
        expected = live(begin(entry, world), world)
        if live(begin(entry, world), replace(world, truth=rng.permutation(world.truth))) != expected:
            raise AssertionError(f"{entry.id} acts on the truth, which no method may see")
        # Other numbers, the same boundaries.
        if live(begin(entry, world), replace(world, phase=7 - 2 * world.phase)) != expected:
            raise AssertionError(f"{entry.id} acts on the number of a phase; a boundary is all that may be told")
        differs = live(begin(entry, world), replace(world, phase=rng.permutation(world.phase))) != expected
        if differs and not entry.oracle:
            raise AssertionError(f"{entry.id} acts on phase boundaries and is not marked as an oracle")
        reacted |= differs
    if entry.oracle and not reacted:
        raise AssertionError(f"{entry.id} is marked as an oracle and takes no note of phase boundaries")


def all_checks() -> tuple[Check, ...]:
    """Return the whole battery.

    Examples
    --------
    >>> from tepa_core.methods import METHODS
    >>> for check in all_checks():
    ...     check(METHODS["append_only"])
    """
    return (
        check_idempotent,
        check_instances_are_independent,
        check_pickles,
        check_recall_changes_nothing,
        check_offers_known_values,
        check_retrieves_what_it_was_given,
        check_active,
        check_size,
        check_blind_to_phase_and_truth,
    )
