"""Every page over a run of each other stream: it says something true, and shows no error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunSpec, run
from tepa_core.fact_runs import run_fact_file
from tepa_core.store import PATH_VARIABLE, Store, queries, save_run
from tepa_core.ui import cache

OpenPage = Callable[..., AppTest]

ROOT = Path(__file__).parents[2]
PAGES = sorted(str(page.relative_to(ROOT / "pages").with_suffix("")) for page in (ROOT / "pages").glob("*/*.py"))
METHODS = ["tepa", "tepa_full", "no_memory", "append_only", "lww_validated"]
STREAMS = ["preference", "executable", "facts", "facts through several relations", "without no_memory"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    path = tmp_path_factory.mktemp("streams") / "streams.duckdb"
    with Store(path, PROGRAM) as store:
        ids = {
            "preference": save_run(store, run(RunSpec.build("preference", seeds=3, methods=METHODS))),
            "executable": save_run(
                store, run(RunSpec.build("executable", seeds=2, methods=METHODS, world={"tasks_per_phase": 20}))
            ),
            "facts": run_fact_file(store, ROOT / "data" / "facts_small.json").run_id,
            "facts through several relations": run_fact_file(store, ROOT / "data" / "facts_small_multihop.json").run_id,
            "without no_memory": save_run(
                store, run(RunSpec.build("preference", seeds=2, methods=["last_write_wins", "append_only"]))
            ),
        }
    yield path, ids
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def runs(made: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv(PATH_VARIABLE, str(made[0]))
    return made[1]


def words(at: AppTest) -> str:
    said = [*at.subheader, *at.markdown, *at.caption, *at.warning, *at.info, *at.error, *at.text]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("evidence/reproduction")])
def test_every_page_opens_on_every_stream(open_page: OpenPage, runs: dict[str, str], page: str, stream: str) -> None:
    at = open_page(page, run=runs[stream])
    assert at.sidebar.selectbox(key="run_choice").value == runs[stream]
    assert not at.error
    assert [*at.main.markdown, *at.main.info], "the page says nothing"


@pytest.mark.parametrize("view", ["success", "pollution", "differences", "runs", "memories"])
@pytest.mark.parametrize("stream", STREAMS)
def test_every_view_of_phases_opens(open_page: OpenPage, runs: dict[str, str], stream: str, view: str) -> None:
    at = open_page("explore/phases", run=runs[stream], view=view)
    assert not at.error
    if view == "pollution" and stream == "without no_memory":
        assert "The pollution index needs an agent without memory" in words(at)


def test_preference_overview_compares_with_the_context_alone(open_page: OpenPage, runs: dict[str, str]) -> None:
    played = queries.episodes(cache.store(), runs["preference"])
    means = played[played["phase"] == "reversal"].groupby("method", observed=True)["success"].mean()
    loss = 1 - means["append_only"] / means["no_memory"]
    assert f"In reversal, append-only succeeds {100 * loss:.0f} % less often than no memory at all" in words(
        open_page("explore/overview", run=runs["preference"])
    )


class TestTrials:
    @pytest.fixture
    def step(self, runs: dict[str, str]) -> dict[str, object]:
        """An activation of TEPA-Full after the first task, with the trials held at that task."""
        store, run_id = cache.store(), runs["preference"]
        rises = queries.lane_transitions(store, run_id, "tepa_full", 0)
        row = rises[(rises["to_state"] == "active") & (rises["occurred"] >= 0)].iloc[0]
        return {str(name): cell for name, cell in row.items()} | {"run_id": run_id}

    def test_card_of_an_activation_tells_its_trials(self, open_page: OpenPage, step: dict[str, object]) -> None:
        at = open_page(
            "explore/lifecycle", run=step["run_id"], precedent=step["precedent_id"], transition=step["transition_id"]
        )
        assert at.selectbox(key="method_choice").value == "tepa_full"
        # One trial of each kind; a value that became active passed the support trial at least.
        assert (
            "**Trials.** 3 trials at this task: support succeeded, counterfactual unharmed, contamination none."
            in words(at)
        )

    def test_value_that_trials_kept_out_says_so(self, open_page: OpenPage, runs: dict[str, str]) -> None:
        with cache.store().read() as cursor:
            t, seed, key, value = cursor.execute(
                "SELECT t, seed, key, value FROM trial WHERE run_id = ? AND method = 'tepa_full' AND kind = 'support' "
                "AND NOT success ORDER BY seed, t LIMIT 1",
                [runs["preference"]],
            ).fetchone()
        found = queries.precedents(cache.store(), runs["preference"], method="tepa_full", seed=seed, key=key)
        precedent = found.loc[found["value"] == value, "id"].iloc[0]
        said = words(open_page("explore/lifecycle", run=runs["preference"], precedent=precedent))
        assert "**Trials kept it out.** At task" in said
        assert f"{t}" in said.split("**Trials kept it out.**")[1].split("it had support enough")[0]
        assert "support failed, counterfactual unharmed, contamination none" in said

    def test_method_without_trials_tells_none(self, open_page: OpenPage, runs: dict[str, str]) -> None:
        assert "**Trials" not in words(open_page("explore/lifecycle", run=runs["preference"], method="tepa"))


def test_executable_card_shows_the_error_of_the_tool(open_page: OpenPage, runs: dict[str, str]) -> None:
    with cache.store().read() as cursor:
        texts = [
            row[0]
            for row in cursor.execute(
                "SELECT DISTINCT text FROM evidence WHERE run_id = ? AND method = 'tepa' AND seed = 0 "
                "AND text IS NOT NULL",
                [runs["executable"]],
            ).fetchall()
        ]
    assert texts
    at = open_page("explore/lifecycle", run=runs["executable"], key="read csv", method="tepa")
    quoted = [text.value for text in at.text]
    assert any(f"“{text.strip()}”" in quoted for text in texts)


def test_preference_card_says_that_feedback_stated_a_value(open_page: OpenPage, runs: dict[str, str]) -> None:
    at = open_page("explore/lifecycle", run=runs["preference"], method="tepa")
    told = [text.value for text in at.text]
    assert any(one.startswith("Feedback states choice") for one in told)
    assert not any("was used and" in one for one in told)
    assert "before the first task" in words(at)
