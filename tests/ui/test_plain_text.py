"""Text of a log inside Markdown: shown as it is, never obeyed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.ui.widgets import plain_text


def shown(escaped: str) -> str:
    """What CommonMark makes of it: a backslash before punctuation goes; and nobody sees a word joiner."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped).replace("\u2060", "")


@given(st.text(alphabet=st.characters(exclude_characters="\u2060", exclude_categories=["Cs"]), max_size=60))
def test_a_reader_sees_the_text_itself(text: str) -> None:
    assert shown(plain_text(text)) == " ".join(text.split())


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
