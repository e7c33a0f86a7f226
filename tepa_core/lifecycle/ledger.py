"""A live memory that an agent can use: observe evidence, recall what is Active, look through the archive."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tepa_core.lifecycle import rule
from tepa_core.lifecycle.precedent import DEPRECATED, PRECEDENT, TRANSITION, Rule, State, Thresholds, Verdict


@dataclass(frozen=True, slots=True)
class Precedent:
    """One precedent as it stands: p = (k, v, s, f, sigma, tau) of paper section 3.1, and its tally.

    ``posterior`` is that of the counts which judge it now: of support and conflict while Active, else of the tally.
    ``lives`` counts its activations.
    """

    key: Hashable
    value: Hashable
    state: State
    support: int
    conflict: int
    trial_support: int
    trial_conflict: int
    posterior: float
    rule: Rule
    lives: int
    created_at: int
    changed_at: int
    deprecated: bool

    @property
    def label(self) -> str:
        """State as shown: ``deprecated`` for an Active precedent with a conflict among its recent outcomes."""
        return DEPRECATED if self.deprecated else self.state.label


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of state of one precedent, at the time of the evidence that caused it."""

    at: int
    seq: int
    key: Hashable
    value: Hashable
    from_state: State
    to_state: State
    rule: Rule


@dataclass(slots=True)
class _KeyMemory:
    values: list[Hashable]
    index: dict[Hashable, int]
    precedents: npt.NDArray[np.void]
    record: npt.NDArray[np.void]
    ring: npt.NDArray[np.int32]


class Ledger:
    """A memory with a life: the rule of `tepa_core.lifecycle.rule` applied as evidence arrives.

    Parameters
    ----------
    thresholds
        When values are proposed, promoted and revoked; the paper's defaults when left out.

    Examples
    --------
    >>> memory = Ledger()
    >>> for _ in range(3):
    ...     changes = memory.observe("seat", "window")
    >>> memory.recall("seat")
    'window'
    >>> for _ in range(3):
    ...     changes = memory.observe("seat", "aisle")
    >>> memory.recall("seat"), [p.value for p in memory.archive()]
    ('aisle', ['window'])
    """

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self.thresholds = thresholds or Thresholds()
        self._parameters = self.thresholds.parameters()
        self._keys: dict[Hashable, _KeyMemory] = {}
        self._seq = 0
        self._active = 0
        self._out = np.zeros(8, TRANSITION)

    def observe(
        self,
        key: Hashable,
        value: Hashable,
        supports: bool = True,
        at: int | None = None,
        admits: Callable[[Ledger], bool] | None = None,
    ) -> tuple[Transition, ...]:
        """Take in one evidence item and return the transitions that it caused, in order.

        Parameters
        ----------
        key, value
            What the item is about and what it asserts.
        supports
            False when the item refutes the value.
        at
            Time of the item (any integer clock); the number of the item when left out.
        admits
            Trial validation (TEPA-Full): asked with a copy of this memory in which the value has become Active, and
            only when it would. False leaves it a candidate or in the archive.
        """
        if admits is None or not supports:
            return self._observe(key, value, supports, at, True)
        after = self._with_own(key)
        changes = after._observe(key, value, supports, at, True)
        admitted = all(change.to_state is not State.ACTIVE for change in changes) or admits(after)
        return self._observe(key, value, supports, at, admitted)

    def _with_own(self, key: Hashable) -> Ledger:
        """Copy this memory so that evidence on one key leaves the original as it is."""
        other = copy.copy(self)
        other._keys = dict(self._keys)
        other._out = self._out.copy()
        if key in self._keys:
            other._keys[key] = copy.deepcopy(self._keys[key])
        return other

    def _observe(
        self, key: Hashable, value: Hashable, supports: bool, at: int | None, admitted: bool
    ) -> tuple[Transition, ...]:
        memory, v = self._record_of(key, value)
        self._make_room(memory)
        t = self._seq if at is None else at
        n = rule.observe_key(
            memory.precedents,
            memory.record[0],
            memory.ring,
            v,
            supports,
            self._parameters,
            t,
            self._seq,
            0,
            0,
            self._out,
            0,
            admitted,
        )
        self._seq += 1
        return self._changes(key, memory, n, t, self._seq - 1)

    def _record_of(self, key: Hashable, value: Hashable) -> tuple[_KeyMemory, int]:
        memory = self._keys.get(key)
        if memory is None:
            memory = self._keys[key] = _KeyMemory([], {}, *rule.new_key(2, self._parameters.n_rec))
        v = memory.index.get(value)
        return memory, self._add_value(memory, value) if v is None else v

    def _make_room(self, memory: _KeyMemory) -> None:
        needed = len(memory.values) + rule.ACTIVATIONS_PER_ITEM
        if self._out.shape[0] < needed:
            self._out = np.zeros(2 * needed, TRANSITION)

    def _changes(self, key: Hashable, memory: _KeyMemory, n: int, t: int, seq: int) -> tuple[Transition, ...]:
        if n == 0:
            return ()
        changes = tuple(
            Transition(
                t,
                seq,
                key,
                memory.values[row["precedent"]],
                State(row["from_state"]),
                State(row["to_state"]),
                Rule(row["rule"]),
            )
            for row in self._out[:n]
        )
        for change in changes:
            self._active += (change.to_state == State.ACTIVE) - (change.from_state == State.ACTIVE)
        return changes

    def decide(
        self, key: Hashable, value: Hashable, verdict: Verdict, at: int | None = None, *, standing: bool = False
    ) -> tuple[Transition, ...]:
        """Apply a person's decision to an archived precedent (see the theory in `tepa_core.lifecycle.rule`).

        Parameters
        ----------
        key, value
            The precedent.
        verdict
            What is decided.
        at
            Time of the decision (the clock of `observe`); the number of the next item when left out.
        standing
            Replay a decision that was made on another course of events: a precedent that is not in the archive here is
            not moved, and only the standing part of the decision applies to it (as in `tepa_core.lifecycle.rule`).

        Raises
        ------
        KeyError
            If the memory has never seen this value of this key, unless ``standing``.
        ValueError
            If the precedent is not in the archive, unless ``standing``; nothing changes.
        """
        if standing:
            memory, v = self._record_of(key, value)
        else:
            memory = self._keys[key]
            v = memory.index[value]
            state = State(memory.precedents["state"][v])
            if state is not State.REVOKED:
                raise ValueError(f"{value!r} of {key!r} is {state.label}; only a revoked precedent can be decided on")
        self._make_room(memory)
        t = self._seq if at is None else at
        n = rule.decide(
            memory.precedents,
            memory.record[0],
            memory.ring,
            v,
            int(verdict),
            self._parameters,
            t,
            self._seq,
            0,
            0,
            self._out,
            0,
        )
        return self._changes(key, memory, n, t, self._seq)

    def reactivate(self, key: Hashable, value: Hashable, *, pin: bool = False) -> tuple[Transition, ...]:
        """Take a precedent out of the archive until evidence contradicts it, or pinned: until another decision."""
        return self.decide(key, value, Verdict.PIN if pin else Verdict.REACTIVATE)

    def confirm(self, key: Hashable, value: Hashable) -> tuple[Transition, ...]:
        """Keep a precedent in the archive: fresh evidence is recorded as a re-assertion instead of returning it."""
        return self.decide(key, value, Verdict.CONFIRM)

    def both_valid(self, key: Hashable, value: Hashable) -> tuple[Transition, ...]:
        """Take a precedent out of the archive and let its key hold several values from now on."""
        return self.decide(key, value, Verdict.BOTH_VALID)

    def recall(self, key: Hashable) -> Hashable | None:
        """Return the Active value of a key that an agent retrieves, or None. Archived values are never returned."""
        memory = self._keys.get(key)
        if memory is None:
            return None
        v = rule.followed_active(memory.precedents, memory.record[0], self._parameters.revokes)
        return None if v < 0 else memory.values[v]

    def active(self, key: Hashable) -> tuple[Hashable, ...]:
        """Return the Active values of a key, by when each was activated: at most one unless nothing revokes."""
        memory = self._keys.get(key)
        if memory is None:
            return ()
        standing = np.flatnonzero(memory.precedents["state"] == State.ACTIVE)
        by_activation = standing[np.argsort(memory.precedents["activated_seq"][standing])]
        return tuple(memory.values[v] for v in by_activation)

    def candidate(self, key: Hashable, values: Sequence[Hashable]) -> Hashable | None:
        """Return the value of ``values`` worth trying next on a key without an Active one, or None on a tie.

        The value with the best tally posterior, a value never seen counting as the prior mean (paper section 3.2 is
        silent here; see the choices on the reproduction page).
        """
        memory = self._keys.get(key)
        if memory is None:
            return None
        choices = np.array([memory.index.get(value, rule.UNSEEN) for value in values], np.int32)
        best = rule.best_candidate(memory.precedents, memory.record[0], choices, self._parameters)
        return None if best < 0 else values[best]

    def precedent(self, key: Hashable, value: Hashable) -> Precedent:
        """Return one precedent as it stands.

        Raises
        ------
        KeyError
            If the memory has never seen this value of this key.
        """
        memory = self._keys[key]
        return self._precedent(key, memory, memory.index[value])

    def precedents(self) -> Iterator[Precedent]:
        """Every precedent, keys and values in the order in which they were first seen."""
        for key, memory in self._keys.items():
            for v in range(len(memory.values)):
                yield self._precedent(key, memory, v)

    def archive(self) -> tuple[Precedent, ...]:
        """Return the Revoked precedents: kept, inspectable, never retrieved."""
        return tuple(p for p in self.precedents() if p.state == State.REVOKED)

    def __len__(self) -> int:
        """Return the number of Active precedents: the size of what can be retrieved."""
        return self._active

    def _add_value(self, memory: _KeyMemory, value: Hashable) -> int:
        v = memory.index[value] = len(memory.values)
        memory.values.append(value)
        if v >= memory.precedents.shape[0]:
            grown = np.zeros(2 * v, PRECEDENT)
            rule.clear_precedents(grown)
            grown[:v] = memory.precedents
            memory.precedents = grown
        return v

    def _precedent(self, key: Hashable, memory: _KeyMemory, v: int) -> Precedent:
        row = memory.precedents[v]
        state = State(row["state"])
        support, conflict = int(row["support"]), int(row["conflict"])
        trial = (0, 0)
        if state != State.ACTIVE:
            trial = rule.tally(row, memory.record[0], self._parameters)
        judged = (support, conflict) if state == State.ACTIVE else trial
        return Precedent(
            key=key,
            value=memory.values[v],
            state=state,
            support=support,
            conflict=conflict,
            trial_support=int(trial[0]),
            trial_conflict=int(trial[1]),
            posterior=self.thresholds.posterior(*judged),
            rule=Rule(row["rule"]),
            lives=int(row["lives"]),
            created_at=int(row["created_at"]),
            changed_at=int(row["changed_at"]),
            deprecated=state == State.ACTIVE and int(row["window_len"]) > rule.ones(int(row["window"])),
        )
