"""Substring exact match: how FactConsolidation scores an answer."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized(text: str) -> str:
    """Lower-case, drop ASCII punctuation and the articles a, an, the, collapse spaces.

    Examples
    --------
    >>> normalized("The  U.S. of A.")
    'us of'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def substring_exact_match(answer: str, golds: Iterable[str]) -> bool:
    """Whether an answer contains a right one, after both were normalised: the best over all golds.

    Parameters
    ----------
    answer
        What was answered, of any length.
    golds
        Right answers. One that consists of nothing but punctuation and articles is compared as it was written, since
        after normalising it would be part of every answer.

    References
    ----------
    MemoryAgentBench (Hu, Wang and McAuley 2025, arXiv 2507.05257), FactConsolidation; the normalisation is that of
    SQuAD (Rajpurkar et al. 2016).

    Examples
    --------
    >>> substring_exact_match("It is the Netherlands.", ["Kingdom of the Netherlands", "Netherlands"])
    True
    >>> substring_exact_match("Dutch", ["the Netherlands"])
    False
    """
    said = normalized(answer)
    for gold in golds:
        right = normalized(gold)
        if right in said if right else gold.strip() == answer.strip():
            return True
    return False
