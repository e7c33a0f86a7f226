"""Sliding window: only what was stored in the last tasks is active."""

from __future__ import annotations

from tepa_core.methods.base import Experience, Recall
from tepa_core.methods.store import ItemStore, majority

#: Tasks that the window reaches back.
WINDOW = 40


class SlidingWindow(ItemStore):
    """Follows the majority among the key's items of the last 40 tasks (paper section 5.2)."""

    def recall(self, t: int, key: int) -> Recall:
        """Offer the key's most frequent value within the window."""
        return majority(item.value for item in self.items if item.key == key and item.t >= t - WINDOW)

    def learn(self, experience: Experience) -> None:
        """Store a support and drop what the next task cannot reach any more."""
        super().learn(experience)
        oldest = experience.t + 1 - WINDOW
        self.items = [item for item in self.items if item.t >= oldest]
