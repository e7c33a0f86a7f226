"""The thresholds page: what it hands to the sliders, the memories another setting changes, links, settings, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunSpec, run
from tepa_core.fact_runs import run_fact_file
from tepa_core.lifecycle import Ledger, Thresholds
from tepa_core.store import Store, precedent_id, queries, save_run
from tepa_core.store.settings import settings
from tepa_core.ui import cache

OpenPage = Callable[..., AppTest]
PAGE = "explore/thresholds"
ROOT = Path(__file__).parents[2]


def words(at: AppTest) -> str:
    said = [*at.markdown, *at.text, *at.caption, *at.warning, *at.info, *at.error]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def handed(at: AppTest) -> dict[str, Any]:
    """Return what the board of sliders is told."""
    (board,) = at.get("bidi_component")
    told: dict[str, Any] = json.loads(board.proto.json)
    return told


def slider(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in told["sliders"] if one["name"] == name)


@pytest.fixture
def impact(reading: object, store: Store, log: str) -> pd.DataFrame:
    """Precedents of the travel log with their transitions under both settings, by two passes of a live memory."""
    items = queries.known_evidence(store, log, "")
    items = items.sort_values(["occurred", "seq"], kind="stable")
    lives: list[dict[tuple[str, str, str], list[tuple[int, str, str]]]] = []
    for thresholds in (Thresholds(), Thresholds(theta_rec=0.2)):
        found: dict[tuple[str, str, str], list[tuple[int, str, str]]] = {}
        for subject, of_user in items.groupby("subject", sort=False):
            ledger = Ledger(thresholds)
            for row in of_user.itertuples():
                for step in ledger.observe(row.key_id, row.value_id, bool(row.supports), int(row.occurred)):
                    name = (str(subject), str(row.key_id), str(step.value))
                    found.setdefault(name, []).append((int(row.seq), step.to_state.label, step.rule.label))
        lives.append(found)
    names = sorted(lives[0].keys() | lives[1].keys())
    rows = [(*name, lives[0].get(name), lives[1].get(name)) for name in names]
    table = pd.DataFrame(rows, columns=["subject", "key_id", "value_id", "now", "new"])
    return table[[now != new for now, new in zip(table["now"], table["new"], strict=True)]]


def test_the_frame_names_the_page_its_question_and_the_run(open_page: OpenPage, simulation: str) -> None:
    at = open_page(PAGE, run=simulation)
    assert at.title[0].value == "Thresholds"
    assert at.caption[0].value == "What if the thresholds were different?"
    assert at.sidebar.selectbox(key="run_choice").value == simulation


def test_the_sliders_stand_where_the_link_says_and_their_curves_are_played(
    open_page: OpenPage, simulation: str
) -> None:
    told = handed(open_page(PAGE, run=simulation, theta_rec="0.2", n_rec="4"))
    assert told["values"] == {"theta_rec": 0.2, "n_rec": 4, "theta_rev": 0.3, "n_min": 5, "theta_prop": 3} | {
        "theta_pro": 0.6,
        "prior": 1.0,
    }
    played = run(RunSpec.build("controlled", seeds=6, methods=["tepa"], thresholds=Thresholds(theta_rec=0.2, n_rec=5)))
    there = played.episodes[played.episodes["phase"] == "reversal"]
    at = slider(told, "n_rec")["grid"].index(5)
    shown = told["sweeps"]["n_rec"]["metrics"]["success"][at][told["scopes"].index("reversal")]
    assert shown == pytest.approx(there["success"].mean())


def test_the_pinned_setting_is_the_papers_and_its_numbers_are_those_of_the_run(
    open_page: OpenPage, store: Store, simulation: str
) -> None:
    told = handed(open_page(PAGE, run=simulation, n_rec="5"))
    assert told["pinned"]["name"] == "the paper's setting"
    played = queries.episodes(store, simulation)
    success = played.groupby(["method", "phase"], observed=True)["success"].mean()
    for i, phase in enumerate(told["scopes"][:-1]):
        assert told["pinned"]["metrics"]["success"][i] == pytest.approx(success["tepa", phase])
        assert told["reference"][i] == pytest.approx(success["no_memory", phase])
        assert told["pinned"]["metrics"]["mpi"][i] == pytest.approx(
            1 - success["tepa", phase] / success["no_memory", phase]
        )


def test_another_setting_can_be_pinned_by_link(open_page: OpenPage, simulation: str) -> None:
    at = open_page(PAGE, run=simulation, pin="theta_rec=0.2")
    told = handed(at)
    assert told["pinned"]["values"]["theta_rec"] == 0.2
    assert told["pinned"]["name"] == "the pinned setting"
    at.button(key="pin_paper").click().run()
    assert handed(at)["pinned"]["values"]["theta_rec"] == 0.34
    assert "pin" not in at.query_params


def test_the_surface_is_asked_for_only_when_it_is_looked_at(open_page: OpenPage, simulation: str) -> None:
    at = open_page(PAGE, run=simulation)
    assert handed(at)["surface"] is None
    at.segmented_control(key="chart_choice").set_value("surface").run()
    told = handed(at)
    surface = told["surface"]
    assert (surface["x"], surface["y"]) == ("theta_rev", "theta_rec")
    assert np.array(surface["z"]).shape == (len(surface["ys"]), len(surface["xs"]))
    # Where both cross the sweep of one, they are the same play.
    row = surface["ys"][5]
    at = open_page(PAGE, run=simulation, chart="surface", theta_rec=row)
    told = handed(at)
    grid = slider(told, "theta_rev")["grid"]
    sweep = [cells[told["scopes"].index("reversal")] for cells in told["sweeps"]["theta_rev"]["metrics"]["success"]]
    shared = [value for value in told["surface"]["xs"] if value in grid]
    assert len(shared) > 5
    for value in shared:
        z = told["surface"]["z"][5][told["surface"]["xs"].index(value)]
        assert z == pytest.approx(sweep[grid.index(value)])


def test_tepa_full_has_one_threshold_more(open_page: OpenPage, simulation: str) -> None:
    names = [one["name"] for one in handed(open_page(PAGE, run=simulation))["sliders"]]
    assert "trial_budget" not in names
    full = handed(open_page(PAGE, run=simulation, sweep_method="tepa_full"))
    assert [one["name"] for one in full["sliders"]] == [*names, "trial_budget"]
    assert full["method"] == "TEPA-Full"


def test_the_impact_on_the_travel_log_is_exactly_what_differs(
    open_page: OpenPage, log: str, store: Store, impact: pd.DataFrame
) -> None:
    at = open_page(PAGE, run=log, theta_rec="0.2")
    frame = at.dataframe[0].value
    found = {parse_qs(link.partition("?")[2])["precedent"][0] for link in frame["lifecycle"]}
    names = zip(impact["subject"], impact["key_id"], impact["value_id"], strict=True)
    assert found == {precedent_id("", 0, *name) for name in names}
    assert len(frame) == len(found)
    rows = queries.precedents(store, log).set_index("id")
    in_archive = {name for name in found if rows.loc[name, "state"] == "revoked"}
    linked = {parse_qs(link.partition("?")[2])["precedent"][0] for link in frame["archive"] if link}
    assert linked == in_archive
    assert f"{len(impact)} memories of this log would live another life" in words(at)


def test_every_link_of_the_impact_list_opens_that_memory(open_page: OpenPage, log: str) -> None:
    frame = open_page(PAGE, run=log, theta_rec="0.2").dataframe[0].value
    row = frame.iloc[0]
    query = {name: values[0] for name, values in parse_qs(row["lifecycle"].partition("?")[2]).items()}
    at = open_page("explore/lifecycle", **query)
    assert at.selectbox(key="precedent_choice").value == query["precedent"]
    assert row["value"] in words(at)
    at = open_page("audit/archive", **query)
    assert "There is no memory" not in words(at)
    assert row["value"] in words(at)


def test_the_runs_own_setting_changes_nothing(open_page: OpenPage, log: str) -> None:
    at = open_page(PAGE, run=log)
    assert "every memory lives as stored" in words(at)
    assert not at.dataframe


def test_counts_of_a_log_are_those_of_its_replay(open_page: OpenPage, store: Store, log: str) -> None:
    told = handed(open_page(PAGE, run=log))
    states = queries.state_counts(store, log)
    steps = queries.lane_transitions(store, log)
    assert told["kind"] == "log"
    assert told["pinned"]["metrics"]["active"] == [states["active"]]
    assert told["pinned"]["metrics"]["revoked"] == [states["revoked"]]
    assert told["pinned"]["metrics"]["revocations"] == [int((steps["to_state"] == "revoked").sum())]
    assert told["pinned"]["metrics"]["reactivations"] == [int((steps["rule"] == "reactivated").sum())]


def test_two_settings_are_compared_over_the_seeds(open_page: OpenPage, simulation: str) -> None:
    at = open_page(PAGE, run=simulation, n_rec="5", closer="compare")
    frame = at.dataframe[0].value.set_index("tasks of")
    told = handed(at)
    reversal = told["scopes"].index("reversal")
    assert frame.loc["reversal", "paper"] == pytest.approx(told["pinned"]["metrics"]["success"][reversal])
    assert frame.loc["reversal", "difference"] == pytest.approx(
        frame.loc["reversal", "this setting"] - frame.loc["reversal", "paper"]
    )
    assert "n_rec 5 against 3" in words(at)
    assert "paired over 6 seeds" in words(at)


def test_a_log_is_compared_without_a_test(open_page: OpenPage, log: str) -> None:
    at = open_page(PAGE, run=log, n_rec="5", closer="compare")
    assert "there are no seeds to test over" in words(at)


def test_a_setting_is_saved_used_and_deleted(own_database: object, open_page: OpenPage, simulation: str) -> None:
    at = open_page(PAGE, run=simulation, theta_rec="0.2", closer="keep")
    at.text_input(key="setting_name").set_value("cautious")
    at.button(key="setting_save").click().run()
    assert settings(cache.store()) == {"cautious": Thresholds(theta_rec=0.2)}
    at.button(key="reset_to_paper").click().run()
    assert handed(at)["values"]["theta_rec"] == 0.34
    assert "theta_rec" not in at.query_params
    assert at.selectbox(key="saved_setting").value == "cautious"
    at.button(key="setting_pin").click().run()
    assert handed(at)["pinned"]["name"] == "the setting “cautious”"
    at.button(key="setting_use").click().run()
    assert handed(at)["values"]["theta_rec"] == 0.2
    assert at.query_params["theta_rec"] in ("0.2", ["0.2"])
    at.button(key="setting_delete").click().run()
    assert settings(cache.store()) == {}
    assert not at.exception


def test_a_setting_without_a_name_is_refused_in_words(
    own_database: object, open_page: OpenPage, simulation: str
) -> None:
    at = open_page(PAGE, run=simulation, theta_rec="0.2", closer="keep")
    at.button(key="setting_save").click().run()
    assert "a setting needs a name" in at.toast[0].value
    assert settings(cache.store()) == {}


def test_a_threshold_that_cannot_be_is_told_and_left_out(open_page: OpenPage, simulation: str) -> None:
    at = open_page(PAGE, run=simulation, theta_rec="7", n_rec="4", pin="nonsense=1")
    said = words(at)
    assert "theta_rec must be from 0 to 1, not 7" in said
    assert "nonsense has no slider" in said
    told = handed(at)
    assert (told["values"]["theta_rec"], told["values"]["n_rec"]) == (0.34, 4)
    assert told["pinned"]["values"]["n_rec"] == 3
    assert "theta_rec" not in at.query_params


def test_thresholds_stay_over_a_change_of_page(open_page: OpenPage, simulation: str) -> None:
    at = open_page(PAGE, run=simulation, theta_rec="0.2")
    at.switch_page("pages/explore/phases.py").run()
    at.switch_page(f"pages/{PAGE}.py").run()
    assert handed(at)["values"]["theta_rec"] == 0.2
    assert at.query_params["theta_rec"] in ("0.2", ["0.2"])


@pytest.mark.parametrize("stream", ["preference", "executable"])
def test_it_works_on_every_stream(own_database: object, open_page: OpenPage, stream: str) -> None:
    spec = RunSpec.build(stream, seeds=1, methods=["tepa", "tepa_full", "no_memory"])
    run_id = save_run(cache.store().acting(PROGRAM), run(spec))
    at = open_page(PAGE, run=run_id, theta_rec="0.7", chart="tradeoff")
    told = handed(at)
    played = queries.episodes(cache.store(), run_id)
    tepa = played[played["method"] == "tepa"]
    assert told["pinned"]["metrics"]["success"][-1] == pytest.approx(tepa["success"].mean())
    # A single seed has no band, and null is what JSON has for it.
    assert told["pinned"]["lo"] == [None] * len(told["scopes"])


def test_a_run_without_thresholds_gets_a_sentence(own_database: object, open_page: OpenPage) -> None:
    run_id = save_run(cache.store().acting(PROGRAM), run(RunSpec.build("controlled", seeds=1, methods=["no_memory"])))
    at = open_page(PAGE, run=run_id)
    assert "No method of this run has thresholds" in words(at)
    assert not at.get("bidi_component")


def test_figure_4b_reads_from_the_curves(own_database: object, open_page: OpenPage) -> None:
    run_id = save_run(
        cache.store().acting(PROGRAM), run(RunSpec.build("controlled", seeds=50, methods=["tepa", "no_memory"]))
    )
    told = handed(open_page(PAGE, run=run_id, tasks="overall"))
    high, low = told["scale"]["high"], told["scale"]["low"]
    for name, start, stop in (("theta_rev", 0.2, 0.5), ("theta_prop", 1, 5)):
        curve = [row[-1] for row in told["sweeps"][name]["metrics"]["success"]]
        part = [y for x, y in zip(slider(told, name)["grid"], curve, strict=True) if start <= x <= stop]
        # Less than a thirtieth of the height: a level line.
        assert (max(part) - min(part)) / (high - low) < 1 / 30
        assert slider(told, name)["note"].startswith("Flat: ")
    window = dict(zip(slider(told, "n_rec")["grid"], told["sweeps"]["n_rec"]["metrics"]["success"], strict=True))
    assert (window[3][-1] - window[5][-1]) / (high - low) > 0.15


def test_a_fact_run_gets_a_sentence_and_a_way_on(own_database: object, open_page: OpenPage) -> None:
    run_id = run_fact_file(cache.store().acting(PROGRAM), ROOT / "data" / "facts_small.json", orders=1).run_id
    at = open_page(PAGE, run=run_id)
    assert "a fact run is neither" in words(at)
    assert not at.get("bidi_component")
