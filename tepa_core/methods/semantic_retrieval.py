"""Semantic retrieval: ranks items by lexical relevance of their key text."""

from __future__ import annotations

from tepa_core.methods.base import Recall, Setting
from tepa_core.methods.lexical import closeness, nearest
from tepa_core.methods.store import Item, ItemStore, majority


class SemanticRetrieval(ItemStore):
    """Follows the majority among the five items whose key text is lexically closest, by BM25 (paper section 5.2)."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.scores = closeness(setting.keys)

    def retrieved(self, key: int) -> list[Item]:
        """Return the items whose key text is closest."""
        return nearest(self.items, self.scores[key])

    def recall(self, t: int, key: int) -> Recall:
        """Offer the most frequent value among the closest items."""
        return majority(item.value for item in self.retrieved(key))
