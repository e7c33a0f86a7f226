"""No memory: the agent always takes its base action. Every pollution index is measured against it."""

from __future__ import annotations

from tepa_core.methods.base import NOTHING, Experience, Recall, Setting


class NoMemory:
    """Retrieves nothing and keeps nothing (paper section 5.2)."""

    def __init__(self, setting: Setting) -> None:
        del setting

    def recall(self, t: int, key: int) -> Recall:
        """Offer nothing."""
        return NOTHING

    def active(self, key: int) -> tuple[int, ...]:
        """Return nothing."""
        return ()

    def learn(self, experience: Experience) -> None:
        """Keep nothing."""

    def __len__(self) -> int:
        """Return 0."""
        return 0
