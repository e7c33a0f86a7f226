"""Controlled drift: a file-reading agent whose accepted tool changes and changes back (paper section 5.1).

The paper does not state the parameters; these were derived from its own figures and are the product's defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tepa_core.streams.noise import corrupt_keys
from tepa_core.streams.stream import MAX_TASKS_PER_PHASE, PHASES, TRIALS_DRAWN, Stream

#: Two families, and what memory sees in place of one under key noise.
KEYS = tuple(f"read {name}" for name in ("csv", "json", "tsv", "xml", "yaml", "toml", "parquet", "xlsx"))


@dataclass(frozen=True, slots=True)
class ControlledSpec:
    """Parameters of the controlled stream.

    Parameters
    ----------
    tasks_per_phase
        Tasks in each of the four phases (count, 1 to 100,000).
    drift_share
        Share of tasks of the drifting family "csv"; the rest is the stable control "json" (0 to 1).
    base_conventional
        Probability that the agent without memory picks the conventional tool on a csv task (0 to 1).
    light_flip, return_flip
        Probability that a csv task of the phase needs the other tool (0 to 1).
    key_noise
        Probability that memory sees one of six other keys instead of the task's (0 to 1).
    """

    tasks_per_phase: int = 40
    drift_share: float = 0.8
    base_conventional: float = 0.88
    light_flip: float = 0.03
    return_flip: float = 0.03
    key_noise: float = 0.0

    id: ClassVar[str] = "controlled"
    title: ClassVar[str] = "Controlled drift"
    #: Outcomes are all that the agent learns from, so a try is worth its cost.
    fallback: ClassVar[str] = "candidate"
    asserts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.tasks_per_phase < 1:
            raise ValueError(f"tasks_per_phase must be at least 1, not {self.tasks_per_phase}")
        if self.tasks_per_phase > MAX_TASKS_PER_PHASE:
            raise ValueError(f"tasks_per_phase must be at most {MAX_TASKS_PER_PHASE:,}, not {self.tasks_per_phase}")
        for name in ("drift_share", "base_conventional", "light_flip", "return_flip", "key_noise"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")

    @property
    def tasks(self) -> int:
        """Return how many tasks a seed has."""
        return len(PHASES) * self.tasks_per_phase

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names of the conflict keys, the same for every seed."""
        return KEYS

    @property
    def values(self) -> tuple[str, ...]:
        """Return the names of the values, the same for every seed."""
        return ("conventional", "alternative")

    def make(self, seed: int) -> Stream:
        """Draw one seed. Every number is drawn whatever the parameters, so that settings are compared paired."""
        rng = np.random.Generator(np.random.PCG64(seed))
        tasks = self.tasks
        family, base, flip = rng.random((3, tasks))
        noise_draw, noise_key = rng.random((2, tasks))
        trial_flip = rng.random((tasks, TRIALS_DRAWN))
        phase = np.repeat(np.arange(4), self.tasks_per_phase)
        csv = family < self.drift_share
        flip_probability = np.choose(phase, [0.0, self.light_flip, 0.0, self.return_flip])
        regime = (phase == 2).astype(np.int64)
        accepted = np.where(csv, regime ^ (flip < flip_probability), 0)
        # A support trial is a fresh task of the family, which may flip like any other.
        trial_accepted = np.where(csv[:, None], regime[:, None] ^ (trial_flip < flip_probability[:, None]), 0)
        base_action = np.where(csv & (base >= self.base_conventional), 1, 0)
        true_key = np.where(csv, 0, 1)
        key = corrupt_keys(true_key, 2, len(KEYS), self.key_noise, noise_draw, noise_key)
        truth = np.full((tasks, len(KEYS)), -1)
        truth[:, 0] = regime
        truth[:, 1] = 0
        return Stream(
            seed=seed,
            phase_names=PHASES,
            keys=self.keys,
            values=self.values,
            phase=phase,
            key=key,
            base_action=base_action,
            follows=np.ones(tasks, np.bool_),
            outcome=accepted[:, None] == np.arange(2)[None, :],
            truth=truth,
            asserted=None,
            prior_key=np.empty(0, np.int64),
            prior_value=np.empty(0, np.int64),
            trial_support=trial_accepted[:, :, None] == np.arange(2),
            drifting=csv,
        )
