"""The agreement figure: one dot per judged row, its interval, and words that say the same."""

from __future__ import annotations

import pandas as pd
import pytest

from tepa_core.figures import agreement

MEASURED = pd.DataFrame(
    {
        "name": ["recent", "posterior", "superseded"],
        "right": [7, 0, 0],
        "wrong": [2, 0, 3],
        "precision": [7 / 9, None, 0.0],
        "lo": [0.45, None, 0.0],
        "hi": [0.94, None, 0.56],
    }
)


def test_one_dot_per_judged_row() -> None:
    fig = agreement(MEASURED)
    lines, dots = fig.data
    assert list(dots.x) == [7 / 9, 0.0]
    assert [name for (name,) in dots.customdata] == ["recent", "superseded"]
    assert list(lines.x) == [0.45, 0.94, None, 0.0, 0.56, None]
    assert list(fig.layout.yaxis.ticktext) == ["recent, 7 of 9", "superseded, 0 of 3"]
    # The first row stands on top.
    assert fig.layout.yaxis.range[0] > fig.layout.yaxis.range[1]


def test_words_say_what_is_drawn() -> None:
    meta = agreement(MEASURED).layout.meta
    assert "recent 78%, between 45% and 94%" in meta["alt"]
    assert meta["caption"].startswith("12 judged revocations.")


def test_text_of_a_log_is_shown_as_text() -> None:
    fig = agreement(MEASURED.head(1).assign(name="<b>seat</b>"))
    assert "<b>seat" not in fig.layout.yaxis.ticktext[0]


def test_nothing_judged() -> None:
    fig = agreement(MEASURED.iloc[1:2])
    assert len(fig.data[1].x) == 0
    assert "No revocation was judged yet." in fig.layout.meta["alt"]


def test_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="precision"):
        agreement(MEASURED.drop(columns="precision"))
