"""Temporal recency: items count less the older they are, without conflict keys being resolved."""

from __future__ import annotations

from tepa_core.methods.base import NOTHING, Recall
from tepa_core.methods.store import ItemStore

#: Tasks after which an item counts half.
HALF_LIFE = 20.0


class TemporalRecency(ItemStore):
    """Follows the value with the largest sum of ``0.5 ** (age / 20 tasks)`` (paper section 5.2)."""

    def recall(self, t: int, key: int) -> Recall:
        """Offer the key's value with the most recency-weighted items, on a tie the newer."""
        weights: dict[int, float] = {}
        last: dict[int, int] = {}
        for position, item in enumerate(self.items):
            if item.key == key:
                weights[item.value] = weights.get(item.value, 0.0) + 0.5 ** ((t - item.t) / HALF_LIFE)
                last[item.value] = position
        if not weights:
            return NOTHING
        return Recall(max(weights, key=lambda value: (weights[value], last[value])), True)
