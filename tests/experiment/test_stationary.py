"""Simulated false revocations against exact calculations that share no code with the rule."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import binom

from tepa_core.experiment.stationary import BOTH, ONCE, POSTERIOR, false_revocations_simulated
from tepa_core.lifecycle import Thresholds

TRIALS = 20_000


def fallen(mu: float, n: int, *, theta_rev: float, n_min: int, theta_rec: float, n_rec: int) -> float:
    """Probability of a revocation within n outcomes: forward over (supports, conflicts, window), after one support."""
    alive, gone = {(1, 0, ()): 1.0}, 0.0
    for _ in range(n):
        after: dict[tuple[int, int, tuple[bool, ...]], float] = defaultdict(float)
        for (s, f, window), weight in alive.items():
            for supports, chance in ((True, mu), (False, 1 - mu)):
                s2, f2 = s + supports, f + (not supports)
                recent = (*window, supports)[-n_rec:]
                posterior_falls = s2 + f2 >= n_min and (s2 + 1) / (s2 + f2 + 2) < theta_rev
                recent_falls = len(recent) == n_rec and sum(recent) / n_rec < theta_rec
                if not supports and (posterior_falls or recent_falls):
                    gone += weight * chance
                else:
                    after[s2, f2, recent] += weight * chance
        alive = after
    return gone


def share(frame, judged: str, n: int) -> float:
    return float(frame.loc[(frame["judged"] == judged) & (frame["n"] == n), "share"].iloc[0])


@pytest.mark.parametrize("mu", [0.35, 0.5])
def test_shares_are_those_of_an_exact_calculation(mu: float) -> None:
    frame = false_revocations_simulated(mu, Thresholds(), (6, 14), np.random.default_rng(2), trials=TRIALS)
    for n in (6, 14):
        both = fallen(mu, n, theta_rev=0.3, n_min=5, theta_rec=0.34, n_rec=3)
        alone = fallen(mu, n, theta_rev=0.3, n_min=5, theta_rec=0.0, n_rec=3)
        # Judged once: the n-th outcome is a conflict, and (S + 2) / (n + 3) < 0.3 with S supports before it.
        once = (1 - mu) * binom.cdf(np.ceil(0.3 * (n + 3) - 2) - 1, n - 1, mu)
        for judged, exact in ((BOTH, both), (POSTERIOR, alone), (ONCE, once)):
            slack = 4 * np.sqrt(exact * (1 - exact) / TRIALS) + 1e-4
            assert share(frame, judged, n) == pytest.approx(exact, abs=slack)


def test_the_recent_window_of_the_thresholds_counts() -> None:
    longer = Thresholds(n_rec=5)
    frame = false_revocations_simulated(0.6, longer, (10,), np.random.default_rng(2), trials=TRIALS)
    exact = fallen(0.6, 10, theta_rev=0.3, n_min=5, theta_rec=0.34, n_rec=5)
    assert share(frame, BOTH, 10) == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / TRIALS))


def test_judged_once_stays_under_the_bound_and_intervals_cover_the_share() -> None:
    frame = false_revocations_simulated(0.5, Thresholds(), (5, 20, 80), np.random.default_rng(0), trials=500)
    once = frame[frame["judged"] == ONCE]
    assert (once["share"] <= once["bound"]).all()
    assert once["bound"].tolist() == pytest.approx(np.exp(-2 * np.array([5, 20, 80]) * 0.01).tolist())
    assert ((frame["lo"] <= frame["share"]) & (frame["share"] <= frame["hi"])).all()
    certain = false_revocations_simulated(1.0, Thresholds(), (50,), np.random.default_rng(0), trials=100)
    assert certain["share"].tolist() == [0.0, 0.0, 0.0]
    # Clopper-Pearson of 0 in 100: 1 - 0.025 ** (1 / 100)
    assert certain["hi"].tolist() == pytest.approx([1 - 0.025 ** (1 / 100)] * 3)


@pytest.mark.parametrize(("mu", "n"), [(1.2, (5,)), (0.5, ()), (0.5, (5, 5)), (0.5, (0, 3))])
def test_nonsense_is_refused(mu: float, n: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"mu must be|n must be"):
        false_revocations_simulated(mu, Thresholds(), n, np.random.default_rng(0))
