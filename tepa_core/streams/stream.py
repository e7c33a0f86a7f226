"""The one array shape of every stream: what happens at each task, drawn up front, whoever plays it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: The phases of every drift stream (paper section 3.1): stable, light (drift), reversal (full), return (partial).
PHASES = ("stable", "light", "reversal", "return")

#: Most tasks in each phase: a stream is drawn whole, so that its size is memory that a typing error would take.
MAX_TASKS_PER_PHASE = 100_000

#: Support trials drawn up front for each task: the largest trial budget.
TRIALS_DRAWN = 6


@dataclass(frozen=True, slots=True)
class Stream:
    """One seed of a stream: T tasks, K conflict keys, A values an agent can act on.

    Attributes
    ----------
    phase_names, keys, values
        Names of the phases, of the conflict keys (K) and of the values (A).
    phase
        Index of the task's phase, shape (T,). No method sees it.
    key
        Index of the key as memory sees it, shape (T,).
    base_action
        Value that the agent acts on without memory, shape (T,).
    follows
        Whether the agent follows a value that its memory offers, shape (T,).
    outcome
        Success of every possible action, shape (T, A), bool.
    truth
        Right value of each key at each task, shape (T, K), -1 where a key has none. Only measures use it.
    asserted
        Value that the task's evidence asserts, shape (T,); None where the evidence is the outcome of the action.
    prior_key, prior_value
        Supports that memory holds before the first task, in order, shape (P,).
    trial_support
        Success of the n-th support trial at each task with each value injected, shape (T, `TRIALS_DRAWN`, A): a fresh
        task like this one, acted on with the value in the prompt. None where a stream has no trials.
    drifting
        Whether the task belongs to a family whose regime changes, shape (T,); None where all do.
    outcome_text
        What an action reported, shape (T, A), text or None; kept as the text of the evidence.
    """

    seed: int
    phase_names: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...]
    phase: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    base_action: npt.NDArray[np.int64]
    follows: npt.NDArray[np.bool_]
    outcome: npt.NDArray[np.bool_]
    truth: npt.NDArray[np.int64]
    asserted: npt.NDArray[np.int64] | None
    prior_key: npt.NDArray[np.int64]
    prior_value: npt.NDArray[np.int64]
    trial_support: npt.NDArray[np.bool_] | None = None
    drifting: npt.NDArray[np.bool_] | None = None
    outcome_text: npt.NDArray[np.object_] | None = None

    def __post_init__(self) -> None:
        tasks, keys, values = len(self.phase), len(self.keys), len(self.values)
        shapes = {
            "key": (tasks,),
            "base_action": (tasks,),
            "follows": (tasks,),
            "outcome": (tasks, values),
            "truth": (tasks, keys),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, expected {shape}")
        if self.asserted is not None and self.asserted.shape != (tasks,):
            raise ValueError(f"asserted has shape {self.asserted.shape}, expected {(tasks,)}")
        if self.trial_support is not None and self.trial_support.shape != (tasks, TRIALS_DRAWN, values):
            raise ValueError(
                f"trial_support has shape {self.trial_support.shape}, expected {(tasks, TRIALS_DRAWN, values)}"
            )
        if self.prior_key.shape != self.prior_value.shape:
            raise ValueError("prior_key and prior_value must have the same shape")
        for name, high in (("key", keys), ("base_action", values), ("phase", len(self.phase_names))):
            array = getattr(self, name)
            if tasks and (array.min() < 0 or array.max() >= high):
                raise ValueError(f"{name} must lie in 0..{high - 1}")

    def __len__(self) -> int:
        """Return the number of tasks T."""
        return len(self.phase)

    @property
    def boundaries(self) -> npt.NDArray[np.int64]:
        """Return the first task of each phase after the first. Only the oracle baseline is told."""
        return np.flatnonzero(np.diff(self.phase)) + 1
