"""Figures about facts: what the bars are, and what their words say."""

from __future__ import annotations

import pandas as pd
import pytest

from tepa_core.experiment import ATTRIBUTIONS
from tepa_core.figures import answered, attribution_bars
from tepa_core.figures.facts import ATTRIBUTION_STYLE, attribution_shares, count

SUMMARY = pd.DataFrame(
    [("no_memory", 0.0, 0.0, 0.0), ("append_only", 0.75, 0.6, 0.8), ("tepa", 1.0, 1.0, 1.0)],
    columns=["method", "mean", "lo", "hi"],
)
ATTRIBUTED = pd.DataFrame(
    [
        ("no_memory", "state wrong", 4),
        ("tepa", "answered", 1),
        ("tepa", "state right, chain not found", 2),
        ("tepa", "never stated", 1),
    ],
    columns=["method", "attribution", "n"],
)


def test_bars_are_ordered_and_carry_method_interval_and_number() -> None:
    fig = answered(SUMMARY, 20)
    assert [bar.customdata[0][0] for bar in fig.data] == ["tepa", "append_only", "no_memory"]
    assert [bar.x[0] for bar in fig.data] == [1.0, 0.75, 0.0]
    assert list(fig.layout.yaxis.ticktext) == ["TEPA", "append-only", "no memory"]
    middle = fig.data[1].error_x
    assert (middle.array[0], middle.arrayminus[0]) == pytest.approx((0.05, 0.15))
    assert [note.text for note in fig.layout.annotations] == ["20", "15", "0"]


def test_words_of_the_bars_name_the_numbers() -> None:
    words = answered(SUMMARY, 20).layout.meta
    assert words["alt"].endswith("of 20. Best first: TEPA 20, append-only 15, no memory 0.")
    assert words["caption"].startswith("Most are answered by TEPA: 20 of 20. The others answer 0 to 15.")
    two = answered(SUMMARY[SUMMARY["method"] != "append_only"], 20).layout.meta["caption"]
    assert "The others answer 0. " in two
    alike = answered(SUMMARY.assign(mean=0.5), 20).layout.meta["caption"]
    assert alike == "Every method answers 10 of 20."


def test_one_order_has_no_interval_to_show() -> None:
    fig = answered(SUMMARY.assign(lo=float("nan"), hi=float("nan")), 20)
    assert "[" not in fig.data[0].hovertext


@pytest.mark.parametrize(("number", "words"), [(20.0, "20"), (14 + 2 / 3, "14.7"), (0.0, "0"), (1234.0, "1,234")])
def test_counts_are_whole_where_they_are(number: float, words: str) -> None:
    assert count(number) == words


def test_shares_add_up_and_have_every_reason() -> None:
    shares = attribution_shares(ATTRIBUTED)
    assert shares.index.tolist() == ["tepa", "no_memory"]
    assert shares.columns.tolist() == list(ATTRIBUTIONS) == list(ATTRIBUTION_STYLE)
    assert shares.loc["tepa"].tolist() == [0.25, 0.5, 0.0, 0.25]
    assert shares.loc["no_memory"].tolist() == [0.0, 0.0, 1.0, 0.0]


def test_stacks_differ_by_pattern_and_are_told() -> None:
    fig = attribution_bars(ATTRIBUTED)
    assert [bar.name for bar in fig.data] == [
        "answered",
        "answer is active, but not found",
        "answer is not active",
        "no fact states the answer",
    ]
    assert len({bar.marker.pattern.shape for bar in fig.data}) == len(fig.data)
    assert fig.layout.barmode == "stack"
    words = fig.layout.meta
    assert "TEPA: answered 25%, answer is active, but not found 50%, no fact states the answer 25%" in words["alt"]
    assert words["caption"].endswith("the memory no longer offers it: no memory (100%).")


def test_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="hi"):
        answered(SUMMARY.drop(columns="hi"), 20)
    with pytest.raises(ValueError, match="n"):
        attribution_bars(ATTRIBUTED.drop(columns="n"))
