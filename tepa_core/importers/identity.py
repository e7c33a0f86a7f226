"""When two texts are one: identity of values, keys and users, and what only looks alike."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["canonical", "cleaned", "skeleton"]

#: Code points that are drawn as nothing (Unicode's Default_Ignorable_Code_Point): soft hyphen, zero-width spaces and
#: joiners, byte order mark, variation selectors and their like.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

#: Letters of other scripts that look like a Latin one.
_LOOKS_LIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u0432\u043a\u043c\u043d\u0442"
    "\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131",
    "aeopcyxijshdqwbkmhtaeikvoptyxi",
)


def cleaned(text: str) -> str:
    """Write a text without what nobody sees: compatible forms as one (NFKC), white space as one blank.

    Upper and lower case stay apart: this is the identity of users.

    Examples
    --------
    >>> cleaned("\u200b \uff35\uff11  ")
    'U1'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text))
    return " ".join(text.split())


def canonical(text: str) -> str:
    """Give the form under which two spellings of a key or value are one.

    Unicode's compatible caseless form (NFKC_Casefold, D146): full width, ligatures and case are one, and characters
    that are drawn as nothing count as nothing; without outer white space and with inner white space as one blank.
    Digits and punctuation are left alone, so ``007`` is not ``7``.

    Examples
    --------
    >>> canonical(" Window ") == canonical("win\u00addow\u200b") == canonical("\uff37indow")
    True
    >>> canonical("ASR1603") == canonical("ASR1605")
    False
    """
    if not text.isascii():
        # Case folding first, decomposed on both sides, is what Unicode defines as caseless equality.
        folded = unicodedata.normalize("NFKD", _IGNORABLE.sub("", text)).casefold()
        text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", unicodedata.normalize("NFKC", folded).casefold()))
    return " ".join(text.casefold().split())


def skeleton(text: str) -> str:
    """Give the form under which two texts look alike: without accents, punctuation and the script of a letter.

    Examples
    --------
    >>> skeleton("Caf\u00e9!") == skeleton("cafe"), skeleton("w\u0456ndow") == skeleton("window")
    (True, True)
    """
    text = canonical(text)
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = text.translate(_LOOKS_LIKE)
    bare = "".join(c for c in text if c.isalnum())
    return bare or text
