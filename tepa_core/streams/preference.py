"""Preference drift: a person's slots change value, feedback is noisy, and session context competes with memory.

The paper (section 5.1) gives the stream and its scores, not its parameters; these were derived from its figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tepa_core.streams.noise import corrupt_keys
from tepa_core.streams.stream import MAX_TASKS_PER_PHASE, PHASES, TRIALS_DRAWN, Stream

SLOTS = ("seat", "meal", "hotel", "payment")
#: Keys that memory sees in place of a slot under key noise.
OTHER_KEYS = ("airline", "transfer", "currency", "language", "luggage", "wake-up call")
#: Values are named by the letters of the alphabet.
MAX_VALUES = 26
MAX_SUPPORTS = 10_000


@dataclass(frozen=True, slots=True)
class PreferenceSpec:
    """Parameters of the preference stream.

    Parameters
    ----------
    tasks_per_phase
        Tasks in each of the four phases (count, 1 to 100,000).
    values_per_slot
        Values that a slot can take (count, 2 to 26).
    profile_supports
        Supports of each slot's original value that memory holds before the first task (count, 0 to 10,000).
    context_stable, context_light, context_reversal, context_return
        Probability per phase that the session context alone names the right value (0 to 1).
    follows
        Probability that the agent follows what memory offers instead of the session context (0 to 1).
    feedback_noise
        Probability that feedback asserts another value than the right one (0 to 1).
    key_noise
        Probability that memory sees one of six other keys instead of the slot (0 to 1).
    """

    tasks_per_phase: int = 40
    values_per_slot: int = 4
    profile_supports: int = 16
    context_stable: float = 0.95
    context_light: float = 0.94
    context_reversal: float = 0.837
    context_return: float = 0.905
    follows: float = 0.835
    feedback_noise: float = 0.33
    key_noise: float = 0.0

    id: ClassVar[str] = "preference"
    title: ClassVar[str] = "Preference drift"
    #: Feedback tells the value whatever the agent does, and the session context is right more often than a candidate.
    fallback: ClassVar[str] = "base_policy"
    asserts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, low, high in (
            ("tasks_per_phase", 1, MAX_TASKS_PER_PHASE),
            ("values_per_slot", 2, MAX_VALUES),
            ("profile_supports", 0, MAX_SUPPORTS),
        ):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, not {getattr(self, name)}")
            if getattr(self, name) > high:
                raise ValueError(f"{name} must be at most {high:,}, not {getattr(self, name)}")
        for name in (
            *("context_stable", "context_light", "context_reversal", "context_return"),
            *("follows", "feedback_noise", "key_noise"),
        ):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")

    @property
    def tasks(self) -> int:
        """Return how many tasks a seed has."""
        return len(PHASES) * self.tasks_per_phase

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names of the conflict keys, the same for every seed."""
        return SLOTS + OTHER_KEYS

    @property
    def values(self) -> tuple[str, ...]:
        """Return the names of the values, the same for every seed."""
        return tuple(f"choice {chr(ord('A') + value)}" for value in range(self.values_per_slot))

    def make(self, seed: int) -> Stream:
        """Draw one seed. Every number is drawn whatever the parameters, so that settings are compared paired."""
        rng = np.random.Generator(np.random.PCG64(seed))
        tasks, slots = self.tasks, len(SLOTS)
        profile = self._profile(rng.random((4, slots)))
        slot_draw, context, context_other, follow, noise, noise_other = rng.random((6, tasks))
        key_draw, key_choice = rng.random((2, tasks))
        trial_follow, trial_context, trial_other = rng.random((3, tasks, TRIALS_DRAWN))
        phase = np.repeat(np.arange(4), self.tasks_per_phase)
        slot = np.floor(slot_draw * slots).astype(np.int64)
        right = profile[phase, slot]
        context_right = np.array([self.context_stable, self.context_light, self.context_reversal, self.context_return])[
            phase
        ]
        base_action = np.where(context < context_right, right, self._another(right, context_other))
        asserted = np.where(noise < self.feedback_noise, self._another(right, noise_other), right)
        values = np.arange(self.values_per_slot)
        # A support trial is a fresh task of the slot with the candidate injected: followed, or left to the context.
        trial_base = np.where(
            trial_context < context_right[:, None], right[:, None], self._another(right[:, None], trial_other)
        )
        trial_action = np.where((trial_follow < self.follows)[:, :, None], values, trial_base[:, :, None])
        truth = np.full((tasks, slots + len(OTHER_KEYS)), -1)
        truth[:, :slots] = profile[phase]
        order = np.tile(np.arange(slots), self.profile_supports)
        return Stream(
            seed=seed,
            phase_names=PHASES,
            keys=self.keys,
            values=self.values,
            phase=phase,
            key=corrupt_keys(slot, slots, slots + len(OTHER_KEYS), self.key_noise, key_draw, key_choice),
            base_action=base_action,
            follows=follow < self.follows,
            outcome=right[:, None] == values[None, :],
            truth=truth,
            asserted=asserted,
            prior_key=order,
            prior_value=profile[0][order],
            trial_support=trial_action == right[:, None, None],
        )

    def _profile(self, draw: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Right value per phase and slot, shape (4, slots)."""
        original = np.floor(draw[0] * self.values_per_slot).astype(np.int64)
        light = original.copy()
        light[0] = self._another(original[:1], draw[1, :1])[0]
        reversal = self._another(original, draw[2])
        if self.values_per_slot > 2:
            # Slot 0 changes once more, to a value that it never had.
            unused = [v for v in range(self.values_per_slot) if v not in (original[0], light[0])]
            reversal[0] = unused[int(draw[2, 0] * len(unused))]
        else:
            reversal[0] = original[0]
        back = original.copy()
        back[0] = reversal[0]
        return np.stack([original, light, reversal, back])

    def _another(self, value: npt.NDArray[np.int64], draw: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return a value other than ``value``, uniform over the rest."""
        step = 1 + np.floor(draw * (self.values_per_slot - 1)).astype(np.int64)
        other: npt.NDArray[np.int64] = (value + step) % self.values_per_slot
        return other
