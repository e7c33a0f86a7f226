"""Substring exact match against values worked out by hand from its published definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.stats.exact_match import normalized, substring_exact_match


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  The   Quick\tFox ", "quick fox"),
        ("Washington, D.C.", "washington dc"),
        ("rock-'n'-roll", "rocknroll"),
        ("theatre another", "theatre another"),
        ("A man, an ape and the sea", "man ape and sea"),
        ("Ōe Kenzaburō", "ōe kenzaburō"),
        ("…", "…"),
        ("The", ""),
        ("", ""),
    ],
)
def test_normalising(text: str, expected: str) -> None:
    assert normalized(text) == expected


@pytest.mark.parametrize(
    ("answer", "golds", "expected"),
    [
        ("Lindhaven", ["lindhaven"], True),
        ("The answer is: Lindhaven!", ["Lindhaven"], True),
        # The gold must be part of the answer, not the answer part of the gold.
        ("York", ["New York"], False),
        ("New York City", ["New York"], True),
        # Characters count, not words: this is how the measure was published.
        ("Germany", ["German"], True),
        ("neither", ["Odo", "neither nor", "ither"], True),
        ("U.S.", ["us"], True),
        ("Netherlands", ["the Netherlands"], True),
        ("Paris", [], False),
        ("", ["Paris"], False),
    ],
)
def test_the_gold_is_part_of_the_answer(answer: str, golds: list[str], expected: bool) -> None:
    assert substring_exact_match(answer, golds) is expected


@pytest.mark.parametrize("gold", ["The", "!", "a."])
def test_a_gold_that_normalises_to_nothing_is_not_in_every_answer(gold: str) -> None:
    assert not substring_exact_match("Paris", [gold])
    assert substring_exact_match(f" {gold} ", [gold])


@given(st.text(), st.text(), st.text())
def test_a_gold_with_anything_around_it_is_found(before: str, gold: str, after: str) -> None:
    if normalized(gold):
        assert substring_exact_match(f"{before} {gold} {after}", ["no such thing at all", gold])


@given(st.text())
def test_no_article_and_no_double_space_is_left(text: str) -> None:
    once = normalized(text)
    assert once == once.strip()
    assert "  " not in once
    assert not set(once.split()) & {"a", "an", "the"}
