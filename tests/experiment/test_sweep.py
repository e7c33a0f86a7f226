"""Sweeps: every cell is what a run with that setting gives, and the paper's ablation comes out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tepa_core.experiment import OVERALL, RunSpec, run, success_summary
from tepa_core.experiment.compiled_play import Draws
from tepa_core.experiment.sweep import METRICS, SETTINGS, SLIDERS, Grid, measure, one_dimensional, sweep
from tepa_core.lifecycle import Thresholds

SURFACE = Grid.parse("theta_rev=0:0.9:31"), Grid.parse("theta_rec=0:1:31")


@pytest.fixture(scope="module")
def fifty() -> Draws:
    return Draws.of(RunSpec.build("controlled"))


# Grids --------------------------------------------------------------------------------------------------------------


def test_a_grid_holds_both_ends_and_the_nearest_numbers() -> None:
    grid = Grid.parse("theta_rev=0:0.9:31")
    assert grid.name == "theta_rev"
    assert len(grid.values) == 31
    # Tenths that a person would type, not the sums that rounding makes of steps of 0.03.
    assert grid.values[::10] == (0.0, 0.3, 0.6, 0.9)
    assert Grid.parse("theta_rec = 0 : 1 : 4").values == (0.0, 1 / 3, 2 / 3, 1.0)
    assert Grid.between("theta_rev", 0.1, 0.7, 7).values == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    assert Grid.parse("theta_pro=0.6").values == (0.6,)


def test_a_whole_number_gets_whole_points_once_each() -> None:
    assert Grid.parse("n_rec=1:5:31").values == (1, 2, 3, 4, 5)
    assert Grid.parse("theta_prop=1:10:4").values == (1, 4, 7, 10)
    assert all(isinstance(value, int) for value in Grid.parse("n_min=1:9:20").values)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("theta_rev", "is no grid; write NAME=START:STOP:COUNT"),
        ("theta_rev=", "is no grid"),
        ("theta_rev=0:1", "is no grid"),
        ("theta_rev=0:1:2.5", "is no grid"),
        ("theta_rev=a:b:c", "is no grid"),
        ("theta_rev=nan", "is no grid"),
        ("theta_rev=1/0", "is no grid"),
        ("theta=0:1:3", "theta cannot be swept; choose one of theta_rev"),
        ("=0:1:3", "a grid without a name cannot be swept"),
        ("revokes=0:1:2", "revokes cannot be swept"),
        ("theta_rev=0:1.5:4", "theta_rev must be from 0 to 1, not 1.5"),
        ("theta_rev=-0.1", "theta_rev must be from 0 to 1"),
        ("n_rec=0:5:6", "n_rec must be from 1 to 62, not 0"),
        ("n_rec=2.5", "n_rec must be a whole number"),
        ("trial_budget=1:19:19", "trial_budget must be from 1 to 18, not 19"),
        ("prior=0:2:3", "prior must be above 0, not 0"),
        ("theta_rev=0.5:0.5:3", "must rise"),
        ("theta_rev=0.5:0.2:3", "must rise"),
        ("theta_rev=0:1:1", "from 2 to 201 points, that of theta_rev has 1"),
        ("theta_rev=0:1:202", "from 2 to 201 points"),
    ],
)
def test_what_is_no_grid_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Grid.parse(text)


def test_a_prior_is_alpha_and_beta_together() -> None:
    first, last = Grid.parse("prior=0.5:2:2").apply(Thresholds(theta_rev=0.2))
    assert first == Thresholds(theta_rev=0.2, alpha=0.5, beta=0.5)
    assert last == Thresholds(theta_rev=0.2, alpha=2.0, beta=2.0)
    assert Grid.parse("n_min=7").apply(Thresholds()) == (Thresholds(n_min=7),)


def test_every_slider_has_a_grid_around_the_default() -> None:
    assert tuple(SLIDERS) == SETTINGS
    for name, grid in SLIDERS.items():
        default = 1.0 if name == "prior" else getattr(Thresholds(), name)
        assert grid.values[0] <= default <= grid.values[-1]
        assert grid.name == name


# Cells --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "method", "x", "y"),
    [
        ("controlled", "tepa", "theta_rev=0:0.9:31", "theta_rec=0:1:31"),
        ("controlled", "tepa_full", "trial_budget=1:18:18", "theta_pro=0.3:0.9:7"),
        ("preference", "tepa", "n_rec=1:12:12", "prior=0.25:4:16"),
        ("preference", "tepa_full", "theta_prop=1:8:8", "n_min=1:15:15"),
    ],
)
def test_cells_are_what_runs_give(stream: str, method: str, x: str, y: str) -> None:
    spec = RunSpec.build(stream, seeds=6, first_seed=2, methods=[method, "no_memory"], world={"key_noise": 0.05})
    across, along = Grid.parse(x), Grid.parse(y)
    found = sweep(spec, across, along, method=method)
    assert found.scopes == ("stable", "light", "reversal", "return", OVERALL)
    assert set(found.metrics) == set(METRICS)
    rng = np.random.Generator(np.random.PCG64(1))
    for _ in range(5):
        i, j = int(rng.integers(len(across.values))), int(rng.integers(len(along.values)))
        thresholds = along.apply(across.apply(Thresholds())[i])[j]
        episodes = run(dataclasses.replace(spec, thresholds=thresholds)).episodes
        for scope in found.scopes:
            part = episodes if scope == OVERALL else episodes[episodes["phase"] == scope]
            # Sums of whole numbers, divided once: equal to the last bit.
            mean = part.groupby("method")["success"].mean()
            assert found.surface("success", scope)[j, i] == mean[method]
            pollution = (mean["no_memory"] - mean[method]) / mean["no_memory"]
            assert found.surface("mpi", scope)[j, i] == pollution


def test_a_cell_is_what_the_tables_of_a_run_say(fifty: Draws) -> None:
    spec = RunSpec.build("controlled", methods=["tepa"], thresholds=Thresholds(theta_rec=0.7))
    episodes = run(spec).episodes
    per_seed = episodes.groupby(["method", "seed", "phase"], observed=True)["success"].mean().reset_index()
    summary = success_summary(per_seed).set_index("phase")["mean"]
    found = sweep(spec, Grid.parse("theta_rev=0.3"), draws=fifty)
    for phase in found.scopes[:-1]:
        assert found.surface("success", phase)[0, 0] == pytest.approx(summary[phase], abs=1e-12)


def test_nothing_to_measure_is_no_number() -> None:
    # A value that can never fall has no delay, and is never revoked while it is wrong: once per seed at the reversal.
    found = sweep(RunSpec.build("controlled", seeds=4), Grid.parse("theta_rev=0"), Grid.parse("theta_rec=0"))
    assert np.isnan(found.surface("revocation_delay", "reversal")).all()
    assert found.surface("revocations")[0, 0] == 0
    assert found.surface("never_revoked", "reversal")[0, 0] == 1
    assert found.surface("false_revocations")[0, 0] == 0
    # Without revocation the conventional tool is retrieved in the whole reversal: the share of csv tasks, about 0.8.
    assert found.surface("stale_exposure", "reversal")[0, 0] == pytest.approx(0.8, abs=0.1)
    assert found.surface("stale_exposure", "stable")[0, 0] == 0


def test_thirty_one_by_thirty_one_settings(fifty: Draws) -> None:
    found = sweep(RunSpec.build("controlled"), *SURFACE, draws=fifty)
    z = found.surface("success", "reversal")
    assert z.shape == (31, 31)
    # The paper's point, 0.3 and 0.34: two misses in forty.
    assert SURFACE[0].values[10] == 0.3
    assert SURFACE[1].values[11] == pytest.approx(0.3667, abs=1e-4)
    assert z[11, 10] == pytest.approx(0.95, abs=0.01)
    # Without either rule nothing is revoked: as append-only.
    assert z[0, 0] == pytest.approx(0.21, abs=0.03)
    assert 0 < found.kernel_s < found.elapsed_s


def test_one_threshold_at_a_time(fifty: Draws) -> None:
    spec = RunSpec.build("controlled", thresholds=Thresholds(theta_prop=2))
    together = one_dimensional(spec, draws=fifty, metrics=["success", "false_revocations"])
    assert list(together) == [name for name in SETTINGS if name != "trial_budget"]
    assert "trial_budget" in one_dimensional(spec, draws=fifty, method="tepa_full", metrics=["success"])
    for name in ("theta_rec", "n_rec", "prior"):
        alone = sweep(spec, SLIDERS[name], draws=fifty, metrics=["success", "false_revocations"])
        assert together[name].x == SLIDERS[name]
        assert together[name].y is None
        for metric in ("success", "false_revocations"):
            assert together[name].metrics[metric].shape == (1, len(SLIDERS[name].values), 5)
            np.testing.assert_array_equal(together[name].metrics[metric], alone.metrics[metric])


def test_the_ablation_of_figure_4b(fifty: Draws) -> None:
    """Percentage points of overall success against the default; the paper finds only a window of 5 to matter."""
    spec = RunSpec.build("controlled")
    default = sweep(spec, Grid.parse("theta_rev=0.3"), draws=fifty).surface("success")[0, 0]

    def points(grid: str) -> np.ndarray:
        return 100 * (sweep(spec, Grid.parse(grid), draws=fifty).surface("success")[0] - default)

    assert np.abs(points("theta_rev=0.2:0.5:31")).max() < 0.3
    assert np.abs(points("theta_prop=1:5:5")).max() < 0.3
    assert np.abs(points("theta_pro=0.5:0.7:21")).max() < 0.3
    assert np.abs(points("n_rec=3")).max() == 0
    assert -3.5 < points("n_rec=5")[0] < -1.5


def test_what_cannot_be_swept_is_refused(fifty: Draws) -> None:
    spec = RunSpec.build("controlled")
    grid = Grid.parse("theta_rev=0.3")
    with pytest.raises(ValueError, match="both grids vary theta_rev"):
        sweep(spec, grid, grid, draws=fifty)
    with pytest.raises(ValueError, match="accuracy cannot be measured in a sweep; choose from success"):
        sweep(spec, grid, metrics=["success", "accuracy"], draws=fifty)
    with pytest.raises(ValueError, match="thresholds do not act on append_only"):
        sweep(spec, grid, method="append_only", draws=fifty)
    found = sweep(spec, grid, metrics=["success"], draws=fifty)
    with pytest.raises(ValueError, match="mpi was not measured; choose one of success"):
        found.surface("mpi")
    with pytest.raises(ValueError, match="drift is no phase; choose one of stable"):
        found.surface("success", "drift")


def test_progress_can_stop_a_sweep(fifty: Draws) -> None:
    class StoppedError(Exception):
        pass

    said: list[float] = []

    def listen(done: float, sentence: str) -> None:
        said.append(done)

    settings = [Thresholds(theta_rev=i / 1500) for i in range(1100)]
    measure(fifty, settings, "tepa", "candidate", metrics=["success"], progress=listen)
    assert said == sorted(said)
    assert said[-1] == 1
    assert len(said) == 3

    # Drawing is the first half of the work where the draws are not at hand.
    said.clear()
    sweep(RunSpec.build("controlled", seeds=20), SURFACE[0], progress=listen)
    assert said == [0.25, 0.5, 1.0]

    def stop(done: float, sentence: str) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        sweep(RunSpec.build("controlled"), SURFACE[0], draws=fifty, progress=stop)
