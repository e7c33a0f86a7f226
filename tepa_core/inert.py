r"""Text that people and logs wrote, as something that is shown and never obeyed.

Whatever comes from a file, a form or an address passes through here before it is shown. Each place has a language of
its own, and one function that writes a text in it:

- a page, where Markdown is obeyed: `tepa_core.ui.text.plain_text`;
- what a page shows without Markdown: `one_line` (options of a list), `lines` (a quoted sentence);
- a figure, where plotly obeys a subset of HTML: `tepa_core.figures.theme.shown`;
- a terminal, which obeys control characters: `terminal`.

All of them begin with `visible`: a character that nobody sees and that changes what is shown around it (an escape, a
line end, an override of the direction of writing) is written out, as ``\x1b`` or ``\u202e``.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["END", "ISOLATE", "isolated", "lines", "one_line", "terminal", "visible"]

#: Control characters, separators of lines, what turns the direction of writing (embeddings, overrides, isolates), and
#: halves of characters, which no output can encode. Marks that belong to a script (zero-width joiners) stay.
_UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

#: First-strong isolate and its end: what stands between them orders itself, and nothing around it.
ISOLATE, END = "\u2068", "\u2069"
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


def visible(text: object, keep: str = "") -> str:
    r"""Write out every character that would act instead of being seen.

    Parameters
    ----------
    text
        Anything with a `str`.
    keep
        Characters to leave as they are, such as line ends where a text of several lines is shown.

    Examples
    --------
    >>> visible("a\x1b[2Jb\u202e")
    'a\\x1b[2Jb\\u202e'
    """
    return _UNSEEN.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), str(text))


def _escaped(character: str) -> str:
    number = ord(character)
    return _NAMED.get(character) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")


def isolated(text: str) -> str:
    """Keep a text that is written from right to left from changing the order of the words around it."""
    if text.isascii() or not any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return text
    return f"{ISOLATE}{text}{END}"


def one_line(text: object, limit: int | None = None) -> str:
    r"""Return a text as one line: blanks and line ends joined, the unseen written out, shortened, isolated.

    Parameters
    ----------
    limit
        Most characters kept; a longer text ends in an ellipsis. None keeps them all.

    Examples
    --------
    >>> one_line("oolong\n and  sencha"), one_line("oolong and sencha", 7)
    ('oolong and sencha', 'oolong…')
    """
    line = visible(" ".join(str(text).split()))
    if limit is not None and len(line) > limit:
        line = line[: limit - 1].rstrip() + "…"
    return isolated(line)


def lines(text: object) -> str:
    r"""Return a text of several lines, which stay; everything else that nobody sees is written out.

    Examples
    --------
    >>> lines("oolong\r\nand\x1b sencha")
    'oolong\nand\\x1b sencha'
    """
    ended = str(text).replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(isolated(visible(line)) for line in ended.split("\n"))


def terminal(text: object) -> str:
    r"""Return a text as one line of a terminal: no character in it moves the cursor, colours, or hides anything.

    Examples
    --------
    >>> terminal("seat\x1b]0;gone\x07\r\nwindow")
    'seat\\x1b]0;gone\\x07\\r\\nwindow'
    """
    return visible(text)
