"""Small cases of the second part that must hold on the pages, by their numbers; the rest stand in tests/cases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import Action, Category
from tepa_core.logs import import_log
from tepa_core.store import Store, queries
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.ledger import decisions_of
from tepa_core.ui import cache
from tests.case_logs import case_logs

OpenPage = Callable[..., AppTest]
LOGS = case_logs()


def words(at: AppTest) -> str:
    said = [*at.markdown, *at.text, *at.caption, *at.warning, *at.info, *at.error, *at.success]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


@pytest.fixture
def three_exports(own: Store) -> list[str]:
    """Load three weeks of one name, one after the other; return their runs, the oldest first."""
    runs = [
        import_log(own, LOGS / f"export_week{week}.csv", source="export.csv", name="export.csv").run_id
        for week in (1, 2, 3)
    ]
    cache.forget()
    return runs


@pytest.mark.parametrize("week", [0, 1, 2])
def test_case_33_deciding_touches_the_run_that_is_open(
    open_page: OpenPage, own: Store, three_exports: list[str], week: int
) -> None:
    run = three_exports[week]
    at = open_page("audit/archive", run=run, show="all", verb="reactivate")
    options = [text for text in at.selectbox(key="run_choice").options if text.startswith("export.csv")]
    assert len(set(options)) == 3
    at.run()
    assert at.query_params["run"] == run
    about = f"in the run **export.csv** (id {run})"
    assert about in words(at)
    at.text_input(key="name_choice").set_value("Ana")
    at.text_area(key="reason_choice").set_value("It held.")
    at.button(key="decide_save").click().run()
    assert "In the ledger: number 1." in words(at)
    assert about in at.success[0].value.replace("\\", "").replace("\u2060", "")
    assert {one: len(decisions_of(own, one)) for one in three_exports} == {
        one: int(one == run) for one in three_exports
    }
    assert at.query_params["run"] == run


def test_case_33_each_run_of_one_name_is_chosen_from_the_list(open_page: OpenPage, three_exports: list[str]) -> None:
    at = open_page("explore/lifecycle", run=three_exports[0])
    for run, value in zip(three_exports, ("window", "north", "east"), strict=True):
        at.selectbox(key="run_choice").set_value(run).run()
        assert at.query_params["run"] == run
        assert any(text.startswith(f"{value}, ") for text in at.selectbox(key="precedent_choice").options)


def test_case_33_a_form_of_one_run_saves_nothing_once_another_is_chosen(
    open_page: OpenPage, own: Store, three_exports: list[str]
) -> None:
    at = open_page("audit/archive", run=three_exports[2], show="all", verb="reactivate")
    at.text_input(key="name_choice").set_value("Ana")
    at.text_area(key="reason_choice").set_value("It held.")
    # Both reach the server together, as a quick hand or a slow line makes them.
    at.selectbox(key="run_choice").set_value(three_exports[0])
    at.button(key="decide_save").click().run()
    assert [len(decisions_of(own, run)) for run in three_exports] == [0, 0, 0]
    assert f"This was filled in for the run {three_exports[2]}" in words(at)


def test_case_34_every_change_within_a_day_is_explained_by_itself(open_page: OpenPage, own: Store) -> None:
    run = import_log(own, LOGS / "same_day_flips.csv").run_id
    cache.forget()
    precedent = str(queries.precedents(own, run)["id"].iloc[0])
    steps = queries.transitions(own, run, precedent)
    assert len(steps) > 5
    assert steps["occurred"].nunique() == 1
    at = open_page("explore/lifecycle", run=run, precedent=precedent)
    assert len(set(at.selectbox(key="transition_choice").options)) == len(steps)
    explained = []
    for row in steps.itertuples():
        at.selectbox(key="transition_choice").set_value(row.transition_id).run()
        assert at.query_params["transition"] == row.transition_id
        explained.append(words(at).split("Why: dark", 1)[1])
    # The counts at the change stand in each explanation, and no two changes have the same ones.
    assert len(set(explained)) == len(steps)


def test_case_37_deleting_says_how_many_decisions_go_and_offers_the_export(
    open_page: OpenPage, own: Store, three_exports: list[str]
) -> None:
    run = three_exports[2]
    at = open_page("data/run", run=run)
    assert "decision" not in words(at).split("Delete **", 1)[1].split("This cannot", 1)[0]
    assert not [one for one in at.get("download_button") if "export_before_delete" in one.proto.id]
    rows = queries.precedents(own, run)
    fallen = str(rows.loc[rows["value"] == "east", "id"].iloc[0])
    record(own, DecisionRequest(run, fallen, Action.REACTIVATE, Category.WRONG_REVOCATION, "It held."))
    cache.forget()
    at = open_page("data/run", run=run)
    said = words(at)
    assert "and **1 decision**?" in said
    assert "to import it again makes its memories again, without any decision. Export it first to keep them." in said
    assert [one for one in at.get("download_button") if "export_before_delete" in one.proto.id]
