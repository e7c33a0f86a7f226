"""TEPA: precedents with an explicit life (paper section 3), and TEPA-NoRev, which never revokes."""

from __future__ import annotations

import dataclasses

from tepa_core.lifecycle import Ledger, Verdict
from tepa_core.methods.base import NOTHING, Experience, Recall, Setting


class Tepa:
    """Follows the Active precedent of the key; without one, tries the best candidate.

    The paper does not say how its agent acts without an Active precedent: ``fallback="base_policy"`` leaves it to the
    base policy instead.
    """

    def __init__(self, setting: Setting) -> None:
        self.memory = Ledger(setting.thresholds)
        self.values = tuple(range(setting.n_values))
        self.tries_candidates = setting.fallback == "candidate"

    def recall(self, t: int, key: int) -> Recall:
        """Offer the key's Active value, or the candidate worth trying."""
        value = self.memory.recall(key)
        if isinstance(value, int):
            return Recall(value, True)
        if self.tries_candidates:
            candidate = self.memory.candidate(key, self.values)
            if isinstance(candidate, int):
                return Recall(candidate, False)
        return NOTHING

    def active(self, key: int) -> tuple[int, ...]:
        """Return the Active values, by when each was activated."""
        return tuple(value for value in self.memory.active(key) if isinstance(value, int))

    def learn(self, experience: Experience) -> None:
        """Hand the evidence to the ledger."""
        self.memory.observe(experience.key, experience.value, experience.supports, experience.t)

    def decide(self, key: int, value: int, verdict: Verdict, t: int) -> None:
        """Apply a person's decision after task ``t``; where the precedent is not archived, its standing part alone."""
        self.memory.decide(key, value, verdict, t, standing=True)

    def __len__(self) -> int:
        """Return the number of Active precedents."""
        return len(self.memory)


class TepaNoRev(Tepa):
    """TEPA without step 2 of Algorithm 1: nothing is ever revoked (the paper's ablation)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(
            dataclasses.replace(setting, thresholds=dataclasses.replace(setting.thresholds, revokes=False))
        )
