"""The overview of a simulation and of a log, its facts recomputed from the stored rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunSpec, run
from tepa_core.store import Store, queries, save_run
from tepa_core.ui import cache

OpenPage = Callable[..., AppTest]


def words(at: AppTest) -> str:
    """Everything the page says, without Markdown's escapes."""
    said = [*at.title, *at.subheader, *at.markdown, *at.caption, *at.warning, *at.info, *at.error, *at.success]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def links(at: AppTest) -> dict[str, str]:
    """Labels of the page's links with the query of each."""
    found = at.get("page_link")
    return {link.proto.label.replace("\\", "").replace("\u2060", ""): link.proto.query_string for link in found}


def charts(at: AppTest) -> list[dict[str, object]]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


@pytest.fixture
def means(store: Store, simulation: str) -> pd.DataFrame:
    """Mean success by method and phase, straight from the episodes."""
    played = queries.episodes(store, simulation)
    return played.groupby(["phase", "method"], observed=True)["success"].mean().unstack()


def test_the_frame_names_the_page_its_question_and_the_run(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/overview", run=simulation)
    assert at.title[0].value == "Overview"
    assert at.caption[0].value == "Is memory helping or hurting, where, and why?"
    assert at.sidebar.selectbox(key="run_choice").value == simulation
    assert "6 seeds × 160 tasks" in at.sidebar.caption[0].value


def test_the_headline_is_the_loss_and_the_gain_in_reversal(
    open_page: OpenPage, simulation: str, means: pd.DataFrame
) -> None:
    row = means.loc["reversal"]
    loss = (row["no_memory"] - row["append_only"]) / row["no_memory"]
    gain = (row["tepa"] - row["no_memory"]) / row["no_memory"]
    said = words(open_page("explore/overview", run=simulation))
    assert (
        f"In reversal, append-only succeeds {100 * loss:.0f} % less often than no memory at all; "
        f"TEPA {100 * gain:.0f} % more often." in said
    )
    assert f"append-only {100 * row['append_only']:.1f} %" in said


def test_the_reason_is_the_stale_value_in_the_prompt(open_page: OpenPage, store: Store, simulation: str) -> None:
    said = words(open_page("explore/overview", run=simulation))
    played = queries.episodes(store, simulation, "append_only")
    there = played[(played["phase"] == "reversal") & (played["key"] == "read csv")]
    nomem = queries.episodes(store, simulation, "no_memory")
    won = nomem[(nomem["phase"] == "reversal") & (nomem["key"] == "read csv")]["success"].sum()
    lost = (won - there["success"].sum()) / 6
    assert f"in {100 * there['exposed'].mean():.0f} % of the tasks on *read csv*" in said
    assert f"That cost it {lost:.1f} of {len(there) / 6:.1f} such tasks per seed" in said


def test_figures_have_words_for_those_who_do_not_see_them(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/overview", run=simulation)
    assert [bool(chart.proto.alt) for chart in at.get("plotly_chart")] == [True, True]


def test_the_course_can_be_that_of_the_active_memory(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/overview", run=simulation, course="size", shown="append_only,tepa")
    assert "Active memories" in json.dumps(charts(at)[0]["layout"])
    assert at.multiselect(key="shown_choice").value == ["append_only", "tepa"]
    assert at.query_params["course"] == "size"


def test_pollution_can_be_shown_for_every_phase(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/overview", run=simulation)
    one = charts(at)[1]
    at.button_group(key="scope_choice").set_value("every phase").run()
    assert at.query_params["scope"] == "every phase"
    every = charts(at)[1]
    assert len(every["data"][0]["y"]) == 5 * len(one["data"][0]["y"])  # type: ignore[index]


def test_the_story_starts_at_the_boundary_and_steps(open_page: OpenPage, store: Store, simulation: str) -> None:
    at = open_page("explore/overview", run=simulation)
    start = int(queries.phases(store, simulation).set_index("phase").loc["reversal", "start"])
    assert at.slider(key="task_choice").value == start
    assert at.button(key="story_arrow_back").disabled
    at.button(key="story_arrow_forward").click().run()
    assert at.slider(key="task_choice").value == start + 1
    assert at.query_params["task"] == str(start + 1)
    assert f"Task {start + 1}" in words(at)


def test_the_story_jumps_to_the_revocation_and_says_why(open_page: OpenPage, store: Store, simulation: str) -> None:
    seed = 2
    fell = queries.revocations(store, simulation)
    fell = fell[(fell["seed"] == seed) & (fell["to_state"] == "revoked") & (fell["occurred"] >= 80)].iloc[0]
    at = open_page("explore/overview", run=simulation, seed=seed)
    at.button(key="story_skip_next").click().run()
    assert at.slider(key="task_choice").value == fell["occurred"]
    assert f"**{fell['value']}** goes from Active to **Revoked**." in words(at)
    query = links(at)[f"Why: the life of {fell['value']}"]
    assert f"run={simulation}" in query
    assert f"seed={seed}" in query
    assert "transition=p" in query


def test_the_story_counts_successes_from_the_stored_episodes(
    open_page: OpenPage, store: Store, simulation: str
) -> None:
    at = open_page("explore/overview", run=simulation, seed=3, task=95)
    for method, label in (("tepa", "TEPA"), ("append_only", "append-only")):
        played = queries.episodes(store, simulation, method, 3)
        won = int(played[played["t"].between(80, 95)]["success"].sum())
        assert f"**{label}**: {won} of 16 done since the change" in words(at)


def test_keys_with_harm_link_to_what_tepa_did(open_page: OpenPage, simulation: str) -> None:
    query = links(open_page("explore/overview", run=simulation))["What TEPA did with read csv"]
    assert query.split("&") == [f"run={simulation}", "method=tepa", "key=read+csv"]


def test_an_unknown_run_is_said_and_another_shown(open_page: OpenPage) -> None:
    at = open_page("explore/overview", run="nowhere")
    assert "There is no run nowhere" in words(at)
    assert len(at.get("plotly_chart")) > 0


def test_a_seed_that_the_run_has_not_falls_back(open_page: OpenPage, simulation: str) -> None:
    at = open_page("explore/overview", run=simulation, seed=99, task="x")
    assert at.selectbox(key="seed_choice").value == 0
    assert at.slider(key="task_choice").value == 80


@pytest.mark.usefixtures("own_database")
def test_a_run_without_the_reference_or_a_story_says_so(open_page: OpenPage) -> None:
    run_id = save_run(cache.store().acting(PROGRAM), run(RunSpec.build("controlled", seeds=1, methods=["append_only"])))
    said = words(open_page("explore/overview", run=run_id))
    assert "start one with no_memory" in said
    assert "no story to tell" in said


@pytest.mark.usefixtures("own_database")
def test_a_single_seed_has_no_interval(open_page: OpenPage) -> None:
    run_id = save_run(cache.store().acting(PROGRAM), run(RunSpec.build("controlled", seeds=1)))
    assert "unknown from one seed" in words(open_page("explore/overview", run=run_id))


def test_a_log_is_told_by_its_memories(open_page: OpenPage, store: Store, log: str) -> None:
    at = open_page("explore/overview", run=log)
    said = words(at)
    states = queries.precedents(store, log)["state"].replace("deprecated", "active").value_counts()
    assert f"{states['active'] + states['revoked']} memories of 40 users: {states['active']} active and" in said
    assert [metric.value for metric in at.metric] == [
        str(states[name]) for name in ("active", "revoked", "hypothesis", "candidate")
    ]
    fell = queries.lane_transitions(store, log)
    fell = fell[fell["to_state"] == "revoked"]
    assert f"There were {len(fell)} revocations" in said
    phases = queries.phases(store, log).set_index("phase")
    here = fell["occurred"].between(phases.loc["reversal", "start"], phases.loc["reversal", "end"], inclusive="left")
    assert f"{here.sum()} in reversal" in said
    assert "52 rows that arrived more than a day after the event" in said


def test_a_log_links_to_its_most_contested_keys_and_its_batch(open_page: OpenPage, store: Store, log: str) -> None:
    found = links(open_page("explore/overview", run=log))
    for _, key in queries.keys(store, log, limit=3).iterrows():
        (query,) = [query for label, query in found.items() if label.startswith(f"{key['subject']}, {key['key']}: ")]
        assert f"subject={key['subject']}" in query
    # data/README.md: an import job revokes eight memories at 03:30 on 12 June.
    assert "fell=batch" in found["8 at once, on 12 June 2025, 03:30 UTC"]


def test_a_page_file_stays_short() -> None:
    for page in Path(__file__).parents[2].glob("pages/*/*.py"):
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 80, page
