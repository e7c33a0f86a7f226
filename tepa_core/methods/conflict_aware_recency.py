"""Conflict-aware recency: same-key conflicts are collapsed among what was retrieved, and nowhere else."""

from __future__ import annotations

from tepa_core.methods.base import NOTHING, Recall, Setting
from tepa_core.methods.lexical import closeness, nearest
from tepa_core.methods.store import Item, ItemStore


class ConflictAwareRecency(ItemStore):
    """Retrieves the five lexically closest items and keeps per key the most recent (paper section 5.2).

    It has no persistent state: what it collapses for one query is back for the next.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.scores = closeness(setting.keys)

    def retrieved(self, key: int) -> list[Item]:
        """Return the items whose key text is closest."""
        return nearest(self.items, self.scores[key])

    def active(self, key: int) -> tuple[int, ...]:
        """Return the newest retrieved value of the key."""
        return super().active(key)[-1:]

    def recall(self, t: int, key: int) -> Recall:
        """Offer the newest retrieved value of the key, else of the key that is closest to it."""
        newest = {item.key: item.value for item in self.retrieved(key)}
        if not newest:
            return NOTHING
        closest = key if key in newest else max(newest, key=lambda k: self.scores[key][k])
        return Recall(newest[closest], True)
