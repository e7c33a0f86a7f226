"""Words of outcomes: which support a value and which refute it, and what to ask where nobody said."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OFFERED", "known", "offered"]

_KNOWN: Mapping[str, bool] = {
    "1": True,
    "true": True,
    "yes": True,
    "success": True,
    "support": True,
    "0": False,
    "false": False,
    "no": False,
    "failure": False,
    "refute": False,
}

#: Words that mean the one or the other in many logs, but not in all: they are offered, never taken without a word.
OFFERED: Mapping[str, bool] = {
    **dict.fromkeys(("y", "t", "c", "pass", "passed", "correct", "positive", "supported", "supports"), True),
    **dict.fromkeys(("succeeded", "ok", "good", "on", "+", "\u2713", "\U0001f44d"), True),
    **dict.fromkeys(("n", "f", "i", "-1", "fail", "failed", "incorrect", "negative", "contradicted", "refutes"), False),
    **dict.fromkeys(("error", "bad", "off", "-", "\u2717", "\U0001f44e"), False),
}


def known(word: str) -> bool | None:
    """Say what an outcome means without asking: True supports, False refutes; None where it is not known.

    Examples
    --------
    >>> known("1.0"), known("0.0"), known("Yes"), known("0.5"), known("pass")
    (True, False, True, None, None)
    """
    word = word.strip().casefold()
    if word in _KNOWN:
        return _KNOWN[word]
    try:
        number = float(word) if word.isascii() and word[:1].isdecimal() else None
    except ValueError:
        return None
    return {1.0: True, 0.0: False}.get(number) if number is not None else None


def offered(words: list[str]) -> dict[str, bool]:
    """Return a meaning for those of some unknown words that usually have one."""
    return {word: OFFERED[word.strip().casefold()] for word in words if word.strip().casefold() in OFFERED}
