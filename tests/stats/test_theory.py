from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from tepa_core.stats.theory import (
    exposure_terms,
    false_revocation_bound,
    loss_with_superseded,
    revocation_gain_bound,
)


def flags(*rows: str) -> np.ndarray:
    return np.array([[letter == "1" for letter in row] for row in rows])


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


# Two seeds of five tasks. Exposed 3 + 2 of 10; followed on 2 + 1 of those 5.
EXPOSED = flags("11100", "01001")
FOLLOWED = flags("11011", "01110")
APPEND = flags("00111", "10111")
REVOKE = flags("01111", "11110")
NOMEM = flags("11011", "10011")


class TestExposureTerms:
    def test_terms_counted_by_hand(self) -> None:
        terms = exposure_terms(EXPOSED, FOLLOWED, APPEND, REVOKE, NOMEM, generator())
        assert (terms.exposed, terms.followed) == (5, 3)
        assert terms.q.estimate == pytest.approx(5 / 10)
        assert terms.eta.estimate == pytest.approx(3 / 5)
        # Misled at tasks 0 and 1 of the first seed and 1 of the second: append loses 3, no memory 1 there.
        assert terms.delta.estimate == pytest.approx((3 - 1) / 3)
        assert terms.bound.estimate == pytest.approx(0.2)
        # Append fails 2 + 1 tasks, the one that revokes 1 + 1.
        assert terms.gain.estimate == pytest.approx((3 - 2) / 10)
        assert terms.slack.estimate == pytest.approx(-0.1)
        # On misled tasks it succeeds twice, as no memory does; elsewhere it fails once where append succeeds.
        assert terms.learned.estimate == pytest.approx(0.0)
        assert terms.side_effect.estimate == pytest.approx(-0.1)
        # Elsewhere append succeeds at all 7 tasks, no memory at 5.
        assert terms.benefit.estimate == pytest.approx(0.2)
        assert terms.pollution.estimate == pytest.approx((7 - 7) / 10)
        assert not terms.holds

    def test_excluding_exactly_what_misleads_gains_exactly_the_bound(self) -> None:
        misled = EXPOSED & FOLLOWED
        terms = exposure_terms(EXPOSED, FOLLOWED, APPEND, np.where(misled, NOMEM, APPEND), NOMEM, generator())
        assert terms.gain.estimate == pytest.approx(terms.bound.estimate)
        assert terms.holds

    def test_parts_add_up_on_random_plays(self) -> None:
        rng = np.random.default_rng(1)
        exposed, followed, append, revoke, nomem = rng.random((5, 8, 30)) < 0.6
        terms = exposure_terms(exposed, followed, append, revoke, nomem, generator())
        assert terms.bound.estimate == pytest.approx(
            revocation_gain_bound(terms.q.estimate, terms.eta.estimate, terms.delta.estimate)
        )
        assert terms.gain.estimate == pytest.approx(revoke.mean() - append.mean())
        assert terms.pollution.estimate == pytest.approx(nomem.mean() - append.mean())
        assert terms.slack.estimate == pytest.approx(terms.learned.estimate + terms.side_effect.estimate)
        for name in ("q", "eta", "delta", "bound", "gain", "slack", "benefit", "pollution"):
            interval = getattr(terms, name)
            assert interval.lo < interval.estimate < interval.hi

    def test_nothing_exposed_leaves_following_and_loss_unknown(self) -> None:
        terms = exposure_terms(np.zeros_like(EXPOSED), FOLLOWED, APPEND, REVOKE, NOMEM, generator())
        assert terms.bound.estimate == 0
        assert np.isnan([terms.eta.estimate, terms.delta.estimate, terms.delta.lo]).all()

    def test_one_seed_has_no_interval(self) -> None:
        one = [array[:1] for array in (EXPOSED, FOLLOWED, APPEND, REVOKE, NOMEM)]
        terms = exposure_terms(*one, generator())
        assert terms.q.estimate == pytest.approx(0.6)
        assert np.isnan([terms.q.lo, terms.gain.hi]).all()

    def test_agents_on_other_tasks_are_refused(self) -> None:
        with pytest.raises(ValueError, match="same seeds and tasks"):
            exposure_terms(EXPOSED, FOLLOWED, APPEND, REVOKE[:, :4], NOMEM, generator())


def test_excluding_never_raises_the_loss_on_one_key() -> None:
    for eta in np.linspace(0, 1, 11):
        for loss in np.linspace(0, 1, 11):
            assert loss_with_superseded(eta, loss) >= loss - 1e-12
    assert loss_with_superseded(0.1, 0.5) == pytest.approx(0.55)


class TestFalseRevocationBound:
    def test_value_by_hand(self) -> None:
        # eps = (0.9 - 0.3) / 2 = 0.3; exp(-2 * 10 * 0.09) = exp(-1.8)
        assert float(false_revocation_bound(0.9, 0.3, 10)) == pytest.approx(0.16529888822158653)

    @pytest.mark.parametrize("mu", [0.4, 0.6, 0.9])
    def test_it_bounds_the_exact_binomial_tail(self, mu: float) -> None:
        n = np.arange(1, 300)
        # posterior (s + 1) / (n + 2) < 0.3
        below = binom.cdf(np.ceil(0.3 * (n + 2) - 1) - 1, n, mu)
        assert (below <= false_revocation_bound(mu, 0.3, n) + 1e-12).all()

    def test_nothing_is_promised_to_a_value_that_does_not_hold(self) -> None:
        assert false_revocation_bound(0.2, 0.3, [1, 50]).tolist() == [1.0, 1.0]
