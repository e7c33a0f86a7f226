"""Lexical closeness of key texts: BM25, computed once per setting."""

from __future__ import annotations

from functools import lru_cache

import bm25s
import numpy as np

from tepa_core.methods.store import Item

#: Items that lexical retrieval brings back.
TOP = 5


@lru_cache(maxsize=64)
def closeness(keys: tuple[str, ...]) -> tuple[tuple[float, ...], ...]:
    """Return the BM25 score of each key's text (columns) for each key's text as the query (rows)."""
    tokens = [text.lower().split() for text in keys]
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    return tuple(tuple(float(score) for score in np.asarray(index.get_scores(query))) for query in tokens)


def nearest(items: list[Item], scores: tuple[float, ...]) -> list[Item]:
    """Return the `TOP` items whose key text is closest, among equals the newer, from old to new."""
    ranked = sorted(range(len(items)), key=lambda i: (scores[items[i].key], i), reverse=True)[:TOP]
    return [items[i] for i in sorted(ranked)]
