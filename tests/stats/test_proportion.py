"""The Wilson interval against statsmodels."""

from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportion_confint

from tepa_core.stats import wilson_interval


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (0, 7), (7, 7), (3, 7), (49, 50), (412, 1000)])
def test_equals_statsmodels(successes: int, trials: int, level: float) -> None:
    expected = proportion_confint(successes, trials, alpha=1 - level, method="wilson")
    assert wilson_interval(successes, trials, level) == pytest.approx(expected, abs=1e-12)


def test_stays_within_0_and_1() -> None:
    assert wilson_interval(0, 3)[0] == 0.0
    assert wilson_interval(3, 3)[1] == 1.0


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 3), (4, 3)])
def test_impossible_counts_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_impossible_levels_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        wilson_interval(1, 3, level)
