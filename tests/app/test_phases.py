"""The phases page: which method survives, with what certainty, against the stored episodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunSpec, run
from tepa_core.store import Store, queries, save_run
from tepa_core.ui import cache

OpenPage = Callable[..., AppTest]


def words(at: AppTest) -> str:
    said = [*at.title, *at.markdown, *at.caption, *at.warning, *at.info, *at.error]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def shown_table(at: AppTest, column: str) -> pd.DataFrame:
    """Return the table on the page that has a column."""
    (found,) = [element.value for element in at.dataframe if column in element.value]
    return found


@pytest.fixture
def per_seed(store: Store, simulation: str) -> pd.DataFrame:
    """Success in reversal, one row per seed and one column per method, straight from the episodes."""
    played = queries.episodes(store, simulation)
    there = played[played["phase"] == "reversal"]
    return there.groupby(["seed", "method"], observed=True)["success"].mean().unstack()


def test_the_frame_names_the_page_its_question_and_the_run(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/phases", run=simulation)
    assert at.title[0].value == "Phases"
    assert at.caption[0].value == "Which method survives which phase, and is the difference real?"
    assert at.sidebar.selectbox(key="run_choice").value == simulation


def test_the_headline_parts_the_methods_in_reversal(
    open_page: OpenPage, simulation: str, per_seed: pd.DataFrame
) -> None:
    means = per_seed.mean()
    said = words(open_page("explore/phases", run=simulation))
    assert f"In **reversal** the methods part ways: from {100 * means.min():.1f} %" in said
    assert f"to **{100 * means.max():.1f} %**" in said


def test_the_simple_rule_is_told_by_this_runs_numbers(open_page: OpenPage, store: Store, simulation: str) -> None:
    played = queries.episodes(store, simulation)
    overall = played.groupby(["seed", "method"], observed=True)["success"].mean().unstack()
    gap = 100 * (overall["tepa"] - overall["win_stay_lose_shift"]).mean()
    said = words(open_page("explore/phases", run=simulation))
    assert (
        f"TEPA − win-stay lose-shift is {gap:+.1f} points".replace("-", "−")
        .replace("win−stay", "win-stay")
        .replace("lose−shift", "lose-shift")
        in said
    )
    assert "It stops competing where evidence is noisy" in said


def test_the_numbers_are_those_of_the_episodes(open_page: OpenPage, simulation: str, per_seed: pd.DataFrame) -> None:
    frame = shown_table(open_page("explore/phases", run=simulation), "mean")
    row = frame[(frame["method"] == "TEPA") & (frame["phase"] == "reversal")].iloc[0]
    assert row["mean"] == pytest.approx(per_seed["tepa"].mean(), abs=5e-5)
    assert row["from"] <= row["mean"] <= row["to"]


def test_chosen_methods_stand_in_the_url_and_in_the_figure(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/phases", run=simulation, methods="tepa,no_memory")
    assert sorted(at.multiselect(key="methods_choice").value) == ["no_memory", "tepa"]
    frame = shown_table(at, "mean")
    assert set(frame["method"]) == {"TEPA", "no memory"}
    at.multiselect(key="methods_choice").set_value([]).run()
    assert at.query_params["methods"] == "none"
    assert "Choose at least one method" in words(at)


def test_a_wider_level_gives_wider_bounds(open_page: OpenPage, simulation: str) -> None:
    bounds = {}
    for level in (90, 99):
        at = open_page("explore/phases", run=simulation, level=level)
        frame = shown_table(at, "mean").set_index(["method", "phase"]).loc[("no memory", "reversal")]
        bounds[level] = (frame["from"], frame["to"])
        assert at.query_params["level"] == str(level)
    assert bounds[99][0] < bounds[90][0] < bounds[90][1] < bounds[99][1]


def test_differences_are_paired_and_their_baseline_can_change(
    open_page: OpenPage, simulation: str, per_seed: pd.DataFrame
) -> None:
    at = open_page("explore/phases", run=simulation, view="differences", baseline="no_memory")
    frame = shown_table(at, "p (Holm)")
    row = frame[(frame["first"] == "no memory") & (frame["second"] == "append-only") & (frame["scope"] == "reversal")]
    difference = per_seed["no_memory"] - per_seed["append_only"]
    assert row["difference"].iloc[0] == pytest.approx(difference.mean(), abs=5e-5)
    assert row["d_z"].iloc[0] == pytest.approx(difference.mean() / difference.std(ddof=1), abs=5e-5)
    assert set(frame["first"]) == {"no memory"}


def test_pollution_is_drawn_for_every_phase(open_page: OpenPage, simulation: str, per_seed: pd.DataFrame) -> None:
    at = open_page("explore/phases", run=simulation, view="pollution")
    frame = shown_table(at, "MPI").set_index(["method", "phase"])
    means = per_seed.mean()
    expected = (means["no_memory"] - means["append_only"]) / means["no_memory"]
    assert frame.loc[("append-only", "reversal"), "MPI"] == pytest.approx(expected, abs=5e-5)
    assert len(at.get("plotly_chart")) == 1


def test_memories_are_measured_against_the_truth(open_page: OpenPage, store: Store, simulation: str) -> None:
    at = open_page("explore/phases", run=simulation, view="memories")
    frame = shown_table(at, "measure").set_index("measure")
    assert {"TEPA", "TEPA-NoRev"} <= set(frame.columns)
    # By hand: every revocation, and whether its value was the right one at its task.
    truth, fell = queries.truth(store, simulation), queries.revocations(store, simulation)
    fell = fell[fell["to_state"] == "revoked"].merge(truth, on=["seed", "key"], suffixes=("", "_right"))
    fell = fell[(fell["start"] <= fell["occurred"]) & (fell["occurred"] < fell["end"])]
    wrong = (fell["value"] == fell["value_right"]).groupby(fell["seed"]).sum()
    assert frame.loc["Wrong revocations (number per seed)", "TEPA"].split(" ")[0] == f"{wrong.mean():.3g}"
    assert frame.loc["Wrong revocations (number per seed)", "TEPA-NoRev"] == "0 [0, 0]"
    assert "**TEPA** archives an outdated value" in words(at)


def test_without_another_run_it_says_how_to_start_one(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/phases", run=simulation, view="runs")
    assert "There is no other simulated run yet" in words(at)
    assert [link.proto.label for link in at.get("page_link")] == ["Start another run"]


@pytest.mark.usefixtures("own_database")
def test_another_run_on_the_same_draws_is_paired(open_page: OpenPage, simulation: str, per_seed: pd.DataFrame) -> None:
    other = save_run(
        cache.store().acting(PROGRAM), run(RunSpec.build("controlled", seeds=6, fallback="base_policy")), "Base policy"
    )
    at = open_page("explore/phases", run=simulation, view="runs", against=other)
    said = words(at)
    assert "What differs: fallback candidate here and base_policy there." in said
    played = queries.episodes(cache.store(), other, "tepa")
    there = played[played["phase"] == "reversal"].groupby("seed")["success"].mean()
    difference = per_seed["tepa"] - there
    assert f"**TEPA** in reversal, {100 * per_seed['tepa'].mean():.1f} % here" in said
    assert f"{100 * difference.mean():+.1f} points" in said
    frame = shown_table(at, "there").set_index(["method", "phase"])
    assert frame.loc[("TEPA", "reversal"), "here − there"] == pytest.approx(difference.mean(), abs=5e-5)
    # No method but TEPA knows the fallback.
    assert (frame.loc["append-only", "here − there"] == 0).all()
    assert not np.isnan(frame["from"]).any()


@pytest.mark.usefixtures("own_database")
def test_another_run_on_other_seeds_has_no_bounds(open_page: OpenPage, simulation: str) -> None:
    other = save_run(
        cache.store().acting(PROGRAM), run(RunSpec.build("controlled", seeds=2, methods=["tepa", "no_memory"]))
    )
    at = open_page("explore/phases", run=simulation, view="runs", against=other)
    assert "so seeds cannot be paired" in words(at)
    assert shown_table(at, "there")["from"].isna().all()


def test_the_open_choice_of_the_run_is_stated_once(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/phases", run=simulation)
    assert words(at).count("Without an Active precedent TEPA tries the best candidate") == 1
    assert at.code[0].value == "python -m tepa_core run controlled --seeds 6"


def test_a_log_has_no_phases_to_compare_and_says_where_to_go(open_page: OpenPage, log: str) -> None:
    at = open_page("explore/phases", run=log)
    assert "nobody's successes" in words(at)
    assert not at.get("plotly_chart")
