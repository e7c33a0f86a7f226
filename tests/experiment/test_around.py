"""Settings with bands and paired tests, against the agent loop in Python, numpy and scipy; the facts of Fig. 4b."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tepa_core.experiment import OVERALL, RunSpec, run
from tepa_core.experiment.around import around, compared, under
from tepa_core.experiment.compiled_play import Draws
from tepa_core.experiment.sweep import Grid
from tepa_core.lifecycle import Thresholds

SMALL = RunSpec.build("controlled", seeds=8, methods=["tepa"])
STRICT = Thresholds(n_rec=5, theta_rec=0.5)


def per_seed(thresholds: Thresholds) -> pd.DataFrame:
    """Success by seed (rows) and scope (columns), by the Python loop."""
    played = run(dataclasses.replace(SMALL, thresholds=thresholds)).episodes
    table = played.groupby(["seed", "phase"], observed=True, sort=False)["success"].mean().unstack()
    return table.assign(**{OVERALL: played.groupby("seed")["success"].mean()})


@pytest.fixture(scope="module")
def draws() -> Draws:
    return Draws.of(SMALL)


@pytest.fixture(scope="module")
def fifty() -> Draws:
    return Draws.of(RunSpec.build("controlled", seeds=50))


def test_settings_are_those_of_the_python_loop(draws: Draws) -> None:
    found = under(draws, [Thresholds(), STRICT, Thresholds()], "tepa", "candidate")
    for row, thresholds in ((0, Thresholds()), (1, STRICT), (2, Thresholds())):
        table = per_seed(thresholds)[list(found.scopes)]
        np.testing.assert_allclose(found.metrics["success"][row], table.mean().to_numpy(), rtol=1e-12)


def test_bands_are_percentile_bounds_of_resampled_seeds(draws: Draws) -> None:
    found = under(draws, [STRICT], "tepa", "candidate", level=0.9)
    table = per_seed(STRICT)[list(found.scopes)].to_numpy()
    # scipy's own resampling: bounds agree as far as a thousand resamples of eight seeds can tell.
    for i in range(table.shape[1]):
        if np.ptp(table[:, i]) == 0:
            assert found.lo[0, i] == found.hi[0, i] == pytest.approx(table[0, i])
            continue
        bounds = stats.bootstrap(
            (table[:, i],), np.mean, confidence_level=0.9, method="percentile", rng=np.random.default_rng(1)
        ).confidence_interval
        spread = table[:, i].std(ddof=1) / np.sqrt(len(table))
        assert found.lo[0, i] == pytest.approx(bounds.low, abs=0.25 * spread)
        assert found.hi[0, i] == pytest.approx(bounds.high, abs=0.25 * spread)


def test_each_threshold_is_varied_alone(draws: Draws) -> None:
    grids = [Grid.of("n_rec", [2, 5]), Grid.of("prior", [0.5, 1, 4])]
    found = around(draws, STRICT, grids, "tepa", "candidate")
    assert {name: len(part.lo) for name, part in found.items()} == {"n_rec": 2, "prior": 3}
    for name, at, changed in (
        ("n_rec", 0, {"n_rec": 2}),
        ("n_rec", 1, {}),
        ("prior", 2, {"alpha": 4.0, "beta": 4.0}),
    ):
        alone = under(draws, [dataclasses.replace(STRICT, **changed)], "tepa", "candidate")
        for metric, values in alone.metrics.items():
            np.testing.assert_array_equal(found[name].metrics[metric][at], values[0])
        np.testing.assert_array_equal(found[name].hi[at], alone.hi[0])


def test_a_single_seed_has_no_band() -> None:
    found = under(Draws.of(RunSpec.build("controlled", seeds=1)), [Thresholds()], "tepa", "candidate")
    assert np.isnan(found.lo).all()
    assert np.isfinite(found.metrics["success"]).all()


@pytest.mark.parametrize(("a", "b"), [(Thresholds(), STRICT), (STRICT, Thresholds())])
def test_two_settings_are_tested_in_both_directions(draws: Draws, a: Thresholds, b: Thresholds) -> None:
    found = compared(draws, a, b, "tepa", "candidate").set_index("scope")
    x, y = per_seed(a), per_seed(b)
    for scope in ("reversal", OVERALL):
        difference = (x[scope] - y[scope]).to_numpy()
        row = found.loc[scope]
        assert row["diff"] == pytest.approx(difference.mean(), abs=1e-12)
        assert row["lo"] <= row["diff"] <= row["hi"]
        assert row["changed"] == np.count_nonzero(difference)
        exact = stats.permutation_test(
            (x[scope], y[scope]), lambda u, v: np.mean(u - v), permutation_type="samples", n_resamples=1_000
        )
        assert row["p"] == pytest.approx(exact.pvalue, rel=1e-9)


def test_equal_settings_do_not_differ(draws: Draws) -> None:
    found = compared(draws, STRICT, STRICT, "tepa", "candidate")
    assert (found["diff"] == 0).all()
    assert (found["p"] == 1).all()
    assert (found["changed"] == 0).all()


def test_figure_4b_reads_the_same_from_the_sweeps(fifty: Draws) -> None:
    # Paper, ablation: theta_rev and theta_prop change almost nothing, a recent window of 5 is the outlier.
    grids = [Grid.parse("theta_rev=0.2:0.5:7"), Grid.parse("theta_prop=1:5:5"), Grid.parse("n_rec=1:5:5")]
    found = around(fifty, Thresholds(), grids, "tepa", "candidate")
    overall = {name: part.metrics["success"][:, -1] for name, part in found.items()}
    assert np.ptp(overall["theta_rev"]) < 0.003
    assert np.ptp(overall["theta_prop"]) < 0.003
    lost = overall["n_rec"] - overall["n_rec"][2]
    assert -0.035 < lost[4] < -0.015
    assert lost.argmin() == 4
