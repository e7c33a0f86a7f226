"""Lexical closeness of key texts: BM25, computed once per setting."""

from __future__ import annotations

from functools import lru_cache

import bm25s
import numpy as np

from tepa_core.methods.store import Item

#: Items that lexical retrieval brings back.
TOP = 5

#: Rows of scores kept at a time.
ROWS_KEPT = 256


class Closeness:
    """BM25 scores of key texts for each other, one row at a time: with many keys the whole table would not fit.

    Parameters
    ----------
    keys
        Texts of the conflict keys.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._tokens = [text.lower().split() for text in keys]
        self._index = bm25s.BM25()
        self._index.index(self._tokens, show_progress=False)
        self._rows: dict[int, tuple[float, ...]] = {}

    def __getitem__(self, key: int) -> tuple[float, ...]:
        """Return the score of every key's text for this key's text as the query."""
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= ROWS_KEPT:
                self._rows.clear()
            row = self._rows[key] = tuple(np.asarray(self._index.get_scores(self._tokens[key])).tolist())
        return row


@lru_cache(maxsize=4)
def closeness(keys: tuple[str, ...]) -> Closeness:
    """Return the scores for these keys; memories of the same keys share them."""
    return Closeness(keys)


def nearest(items: list[Item], scores: tuple[float, ...]) -> list[Item]:
    """Return the `TOP` items whose key text is closest, from old to new.

    Equals keep the order in which they were stored: relevance knows nothing of time, and a tie that went to the newer
    would make this a recency method.
    """
    ranked = sorted(range(len(items)), key=lambda i: -scores[items[i].key])[:TOP]
    return [items[i] for i in sorted(ranked)]
