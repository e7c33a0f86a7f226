"""Reactive forgetting: everything is cleared once failure is detected."""

from __future__ import annotations

from tepa_core.methods.append_only import AppendOnly
from tepa_core.methods.base import Experience, Setting

#: Consecutive failures that clear the memory.
FAILURES = 2


class ReactiveForgetting(AppendOnly):
    """As append-only, but clears all keys after two consecutive failures (paper section 5.2)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.failures = 0

    def learn(self, experience: Experience) -> None:
        """Store a support; count failures and clear."""
        super().learn(experience)
        if experience.success is None:
            return
        self.failures = 0 if experience.success else self.failures + 1
        if self.failures >= FAILURES:
            self.items.clear()
            self.failures = 0
