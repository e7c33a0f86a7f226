"""Sliders, their settings as text, and the words and ranges of the curves beside them."""

from __future__ import annotations

import re
import shlex
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.cli import parser
from tepa_core.experiment import RunSpec
from tepa_core.experiment.sweep import SETTINGS, Grid
from tepa_core.lifecycle import Thresholds
from tepa_core.ui.thresholds import board, sliders
from tepa_core.ui.thresholds.board import LOG_MEASURES, MEASURES, Sweeps
from tepa_core.ui.thresholds.sliders import SLIDERS

MOVED = Thresholds(theta_rec=0.2, n_rec=5, alpha=0.5, beta=0.5)


def test_every_threshold_that_can_be_swept_has_a_slider() -> None:
    assert set(SLIDERS) == set(SETTINGS)
    assert [slider.name for slider in sliders.shown("tepa")] == [name for name in SLIDERS if name != "trial_budget"]
    assert len(sliders.shown("tepa_full")) == len(SETTINGS)


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_stops_within_what_may_be_typed_and_at_the_papers_value(name: str) -> None:
    slider = SLIDERS[name]
    assert slider.low <= slider.grid.values[0] < slider.grid.values[-1] <= slider.high
    assert slider.at(Thresholds()) in slider.grid.values
    assert slider.grid.values[0] == slider.coarse.values[0]
    assert slider.grid.values[-1] == slider.coarse.values[-1]


def test_a_setting_survives_its_text() -> None:
    assert sliders.as_text(MOVED) == "theta_rec=0.2,n_rec=5,prior=0.5"
    assert sliders.from_text("theta_rec=0.2,n_rec=5,prior=0.5") == MOVED
    assert sliders.from_text("") == Thresholds()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("theta_rec=2", "theta_rec must be from 0 to 1"),
        ("n_rec=2.5", "n_rec must be a whole number"),
        ("n_min=101", "n_min must be from 1 to 100, not 101"),
        ("prior=1000", "prior must be from 0.01 to 100"),
        ("theta=1", "theta has no slider; the sliders are theta_rec"),
        ("revokes=0", "revokes has no slider"),
        ("theta_rec", "theta_rec must be a number"),
    ],
)
def test_a_text_that_is_no_setting_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        sliders.from_text(text)


def test_a_run_beyond_the_sliders_may_stay_there() -> None:
    far = Thresholds(n_min=500)
    assert sliders.with_values(far, {"n_min": 500, "n_rec": 4}) == Thresholds(n_min=500, n_rec=4)


def test_thinning_keeps_both_ends() -> None:
    assert sliders.thinned(range(51), 6) == (0, 10, 20, 30, 40, 50)
    assert sliders.thinned((1, 2, 3), 10) == (1, 2, 3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.95, 0.95, 0.95, 0.95], "Flat: makes no difference here."),
        ([0.95, 0.951, 0.95, 0.95], "Flat: at most 0.1 points apart."),
        ([0.95, 0.952, 0.951, 0.90], "1 to 3: within 0.5 points of the best; worst 90.0 % at 4."),
        ([0.20, 0.90, 0.95, 0.90], "3: within 0.5 points of the best; worst 20.0 % at 1."),
        ([np.nan] * 4, "Nothing to measure."),
    ],
)
def test_the_note_says_where_a_curve_is_flat(values: list[float], words: str) -> None:
    assert board.note(Grid.of("n_rec", [1, 2, 3, 4]), np.array(values), MEASURES["success"]) == words


def test_the_note_of_a_measure_that_should_be_small_and_of_counts() -> None:
    grid = Grid.of("n_rec", [1, 2, 3, 4])
    wrong = board.note(grid, np.array([1.5, 0.04, 0.05, 0.0]), MEASURES["false_revocations"])
    assert wrong == "2 to 4: within 0.05 of the best; worst 1.50 at 1."
    assert board.note(grid, np.array([9.0, 12, 1200, 10]), LOG_MEASURES["revoked"]) == "9 at 1, 1,200 at 3."


def test_one_extreme_setting_does_not_press_the_curves_flat() -> None:
    assert board.scale(np.array([0.2, 0.90, 0.95]), MEASURES["success"]) == pytest.approx((0.85, 0.95))
    assert board.scale(np.array([-2.0, 5.0]), MEASURES["mpi"]) == pytest.approx((-2.0, -1.65))
    low, high = board.scale(np.array([0.95, 0.95]), MEASURES["success"])
    assert low < 0.95 < high
    assert board.scale(np.array([np.nan]), MEASURES["success"]) == (0.0, 1.0)


def test_the_frontier_holds_what_nothing_beats_in_both() -> None:
    delay = np.array([[1.0], [2.0], [2.0], [3.0], [4.0], [0.5], [np.nan]])
    wrong = np.array([[1.5], [0.5], [0.7], [0.6], [0.0], [0.0], [0.0]])
    never = np.array([[0.0], [0.0], [0.0], [0.0], [0.0], [2.0], [3.0]])
    metrics = {"n_rec": {"revocation_delay": delay, "false_revocations": wrong, "never_revoked": never}}
    # The sixth is fast because it leaves most outdated values active, where they have no delay.
    assert board.frontier(Sweeps(("overall",), metrics, {}, {}), 0.05) == [(1.0, 1.5), (2.0, 0.5), (4.0, 0.0)]


def test_the_library_is_copied_whole_from_the_installed_package(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "STATIC", tmp_path / "static")
    address = board.served_library()
    (copy,) = (tmp_path / "static").iterdir()
    assert address == f"/app/static/{copy.name}"
    assert copy.read_bytes() == board.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    written = copy.stat().st_mtime_ns
    assert board.served_library() == address
    assert copy.stat().st_mtime_ns == written


def _taking() -> None:
    from types import SimpleNamespace

    import streamlit as st

    from tepa_core.lifecycle import Thresholds
    from tepa_core.ui.thresholds import board

    asked = st.session_state["from_browser"]
    st.session_state[board.KEY] = SimpleNamespace(asked=asked)
    board.take(SimpleNamespace(thresholds=Thresholds()))  # type: ignore[arg-type]


def _after(asked: object) -> AppTest:
    at = AppTest.from_function(_taking)
    at.session_state["from_browser"] = asked
    at.run()
    assert not at.exception
    return at


def test_a_slider_that_is_let_go_moves_the_setting_and_the_link() -> None:
    at = _after({"revision": 3, "values": {"theta_rec": 0.2, "n_rec": 3, "prior": 2}})
    assert at.session_state["theta_rec_choice"] == "0.2"
    assert at.session_state["n_rec_choice"] == ""
    assert (at.query_params["theta_rec"], at.query_params["prior"]) == ("0.2", "2")
    assert "n_rec" not in at.query_params


@pytest.mark.parametrize(
    "asked",
    [
        {"revision": 1, "values": {"theta_rec": 7}},
        {"revision": 1, "values": {"__class__": 1}},
        {"revision": 1, "values": {"n_rec": "<script>"}},
        {"revision": 1, "values": None},
        "nonsense",
        None,
    ],
)
def test_what_a_browser_sends_is_checked(asked: object) -> None:
    at = _after(asked)
    assert "theta_rec_choice" not in at.session_state
    assert not at.query_params
    values = asked.get("values") if isinstance(asked, dict) else None
    assert bool(at.toast) == isinstance(values, dict)


def test_the_command_of_a_log_repeats_its_mapping_and_the_setting() -> None:
    mapping = {
        "columns": {"key": "slot name", "value": "value"},
        "key_template": "{user}/{slot}",
        "tz": "Europe/Berlin",
    }
    log = SimpleNamespace(is_log=True, source="my log.csv", spec={"mapping": mapping}, thresholds=Thresholds())
    told = sliders.command(log, MOVED)  # type: ignore[arg-type]
    said = parser().parse_args(shlex.split(told)[3:])
    assert (str(said.file), said.map, said.tz) == ("my log.csv", "key=slot name", "Europe/Berlin")
    assert said.key_template == "{user}/{slot}"
    assert said.set == ["theta_rec=0.2", "n_rec=5", "alpha=0.5", "beta=0.5"]


def test_the_commands_of_a_simulation_repeat_run_and_surface() -> None:
    spec = RunSpec.build("controlled", seeds=7, first_seed=2, methods=["tepa"], world={"light_flip": 0.1})
    info = SimpleNamespace(is_log=False, spec=spec.as_dict(), thresholds=spec.thresholds)
    said = parser().parse_args(shlex.split(sliders.command(info, MOVED))[3:])  # type: ignore[arg-type]
    assert (said.stream, said.seeds, said.first_seed, said.world) == ("controlled", 7, 2, ["light_flip=0.1"])
    assert Thresholds().changed(dict(pair.split("=") for pair in said.set)) == MOVED
    x, y = SLIDERS["theta_rec"].coarse, SLIDERS["n_rec"].coarse
    told = sliders.sweep_command(info, MOVED, x, y, "tepa", "mpi", "light")  # type: ignore[arg-type]
    said = parser().parse_args(shlex.split(told)[3:])
    assert (Grid.parse(said.x), Grid.parse(said.y)) == (x, y)
    assert (said.metric, said.phase, said.seeds, said.first_seed) == ("mpi", "light", 7, 2)
    assert Thresholds().changed(dict(pair.split("=") for pair in said.set)) == MOVED
