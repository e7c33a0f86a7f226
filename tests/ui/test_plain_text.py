"""Text of a log inside Markdown: shown as it is, never obeyed."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.ui.text import plain_text


def shown(escaped: str) -> str:
    """What CommonMark makes of it: a backslash before punctuation goes; nobody sees a word joiner or an isolate."""
    return re.sub("[\u2060\u2068\u2069]", "", re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped))


# Isolates and word joiners are what `plain_text` itself adds; controls and the like are written out, see below.
PLAIN = st.characters(
    exclude_characters="\u2060\u202a\u202b\u202c\u202d\u202e\ufff9\ufffa\ufffb" + "\u2066\u2067\u2068\u2069",
    exclude_categories=["Cs", "Cc", "Zl", "Zp"],
)


@given(st.text(alphabet=PLAIN | st.sampled_from(" \t\n\r"), max_size=60))
def test_a_reader_sees_the_text_itself(text: str) -> None:
    assert shown(plain_text(text)) == " ".join(text.split())


@given(st.text(max_size=60))
def test_nothing_unseen_is_left_that_acts_on_what_stands_around(text: str) -> None:
    left = plain_text(text).removeprefix("\u2068").removesuffix("\u2069")
    assert not any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in left)
    assert not set(left) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def test_a_text_from_right_to_left_is_isolated() -> None:
    # U+05D0 is alef: strong right to left by the Unicode data.
    assert plain_text("\u05d0\u05d1 3") == "\u2068\u05d0\u05d1 3\u2069"
    assert plain_text("caf\u00e9 3") == "caf\u00e9 3"
    assert plain_text("a\u202eb") == "a\\\\u202eb"


@pytest.mark.parametrize("text", [":+1:", ":-1:", ":100:", ":8ball:", "a >= b", "a ~= b", "a <= b"])
def test_emoji_of_numbers_and_signs_of_comparison_are_interrupted(text: str) -> None:
    assert "\u2060" in plain_text(text)


@given(st.text(alphabet="*_`#[]()<>|~$!\\\\:a \n", max_size=40))
def test_every_sign_of_markdown_is_escaped(text: str) -> None:
    bare = re.sub(r"\\.", "", plain_text(text))
    assert not set(bare) & set("*_`#[]()<>|~$!\\:")


@pytest.mark.parametrize("text", ["www.example.com", "http://example.com", "a@b.com", ":smile:", "a <- b", "x --> y"])
def test_links_emoji_and_arrows_are_interrupted(text: str) -> None:
    assert "\u2060" in plain_text(text)


def test_times_are_left_whole() -> None:
    assert plain_text("10:30") == "10\\:30"


def test_long_text_is_shortened() -> None:
    assert plain_text("abcdef ghi", limit=8) == "abcdef…"
