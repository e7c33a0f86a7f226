from __future__ import annotations

import pandas as pd
import pytest

from tepa_core.figures.revocations import RULE_STYLE, revocations_by_month

NO_PHASES = pd.DataFrame({"phase": [], "start": [], "end": []})


@pytest.fixture
def fell() -> pd.DataFrame:
    at = ["2025-03-02", "2025-03-31T23:59", "2025-03-15", "2025-05-01"]
    return pd.DataFrame(
        {
            "occurred": pd.to_datetime(at, utc=True, format="ISO8601"),
            "rule": ["recent", "posterior", "recent", "superseded"],
        }
    )


def test_every_month_from_the_first_to_the_last_has_its_count_per_rule(fell):
    bars = {bar.name: bar for bar in revocations_by_month(fell, NO_PHASES).data}
    months = pd.to_datetime(["2025-03-01", "2025-04-01", "2025-05-01"])
    expected = {"recent rule": [2, 0, 0], "posterior rule": [1, 0, 0], "superseded": [0, 0, 1]}
    assert {name: list(bar.y) for name, bar in bars.items()} == expected
    assert all(list(pd.to_datetime(bar.x)) == list(months) for bar in bars.values())


def test_rules_differ_by_more_than_colour(fell):
    patterns = [bar.marker.pattern.shape for bar in revocations_by_month(fell, NO_PHASES).data]
    assert len(set(patterns)) == len(patterns) == len(RULE_STYLE)


def test_words_give_the_counts_by_rule_and_phase(fell):
    phases = pd.DataFrame(
        {
            "phase": ["light", "<b>late"],
            "start": pd.to_datetime(["2025-01-01", "2025-03-15"], utc=True),
            "end": pd.to_datetime(["2025-03-15", "2025-12-31"], utc=True),
        }
    )
    words = revocations_by_month(fell, phases).layout.meta
    assert words["caption"] == (
        "4 revocations: 2 by the recent rule, 1 by the posterior rule and 1 superseded by another value. "
        "By phase: 1 in light and 3 in <b>late."
    )
    assert words["alt"].endswith("March 2025 3, May 2025 1.")


def test_a_log_without_revocations_has_an_empty_figure_that_says_so(fell):
    fig = revocations_by_month(fell.head(0), NO_PHASES)
    assert not fig.data
    assert fig.layout.meta["caption"] == "Nothing was revoked."


def test_a_missing_column_is_named(fell):
    with pytest.raises(ValueError, match="rule"):
        revocations_by_month(fell.drop(columns="rule"), NO_PHASES)
