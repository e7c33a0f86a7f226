"""Text of people and logs: one line, nothing unseen, nothing that a terminal obeys."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.inert import isolated, lines, one_line, terminal, visible

#: What turns the direction of writing, by the Unicode data, as their bidirectional classes name it.
TURNS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def acts(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in TURNS


@given(st.text(max_size=60))
def test_nothing_of_a_text_acts_on_a_terminal(text: str) -> None:
    assert not any(map(acts, terminal(text)))


@given(st.text(max_size=60))
def test_what_can_be_seen_is_left_as_it_is(text: str) -> None:
    ordinary = "".join(one for one in text if not acts(one) and one not in "\ufff9\ufffa\ufffb")
    assert visible(ordinary) == ordinary


def test_every_control_character_is_written_out_by_its_number() -> None:
    assert terminal("\x00\x1b\x7f\x9b") == r"\x00\x1b\x7f\x9b"
    assert terminal("a\nb\r\tc") == r"a\nb\r\tc"
    assert terminal("\u202e\u2066\u2028\ud800") == r"\u202e\u2066\u2028\ud800"


def test_only_what_is_written_from_right_to_left_is_isolated() -> None:
    # U+05D0 is Hebrew, U+0627 Arabic, U+0661 an Arabic digit; Greek and Chinese run as English does.
    for text in ("\u05d0", "a \u0627", "\u0661"):
        assert isolated(text) == f"\u2068{text}\u2069"
    for text in ("a", "\u03b1", "\u5496\u5561", ""):
        assert isolated(text) == text


def test_the_text_of_an_isolate_cannot_end_it() -> None:
    shut = one_line("\u05d0\u2069 after")
    assert (shut.count("\u2068"), shut.count("\u2069")) == (1, 1)
    assert shut.endswith("\u2069")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends_stay_where_lines_are_shown(ending: str) -> None:
    assert lines(f"one{ending}two\x1b") == "one\ntwo\\x1b"
