"""Append-only memory: every stored item stays active for good."""

from __future__ import annotations

from tepa_core.methods.base import Recall
from tepa_core.methods.store import ItemStore, majority


class AppendOnly(ItemStore):
    """Follows the most frequent stored value of the key, on a tie the newer (paper section 5.2)."""

    def recall(self, t: int, key: int) -> Recall:
        """Offer the key's most frequent value."""
        return majority(item.value for item in self.items if item.key == key)
