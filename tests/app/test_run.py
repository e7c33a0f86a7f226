"""The run page: start, refuse, repeat, rename and delete runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.experiment import RunSpec
from tepa_core.lifecycle import Thresholds
from tepa_core.store import queries
from tepa_core.ui import cache

OpenPage = Callable[..., AppTest]

pytestmark = pytest.mark.usefixtures("own_database")


def words(at: AppTest) -> str:
    said = [*at.title, *at.markdown, *at.caption, *at.warning, *at.info, *at.error, *at.success]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def send(at: AppTest, seeds: int = 1, methods: tuple[str, ...] = ("tepa", "no_memory")) -> AppTest:
    at.number_input(key="new_seeds").set_value(seeds)
    at.multiselect(key="new_methods").set_value(list(methods))
    at.button(key="run_it").click().run()
    assert not at.exception
    return at


def test_the_frame_names_the_page_its_question_and_the_run(open_page: OpenPage, simulation: str) -> None:
    at = open_page("data/run", run=simulation)
    assert at.title[0].value == "Run"
    assert at.caption[0].value == "Start an experiment, or manage the runs there are."
    assert at.sidebar.selectbox(key="run_choice").value == simulation


def test_a_run_is_stored_chosen_and_linked(open_page: OpenPage, simulation: str) -> None:
    at = open_page("data/run", run=simulation)
    at.text_input(key="new_name").set_value("My *first* run")
    at.number_input(key="threshold_n_rec").set_value(5)
    at.number_input(key="controlled_key_noise").set_value(0.1)
    at.radio(key="controlled_fallback").set_value("base_policy")
    at.number_input(key="new_first_seed").set_value(7)
    send(at)
    spec = RunSpec.build(
        "controlled",
        seeds=1,
        first_seed=7,
        methods=["tepa", "no_memory"],
        thresholds=Thresholds(n_rec=5),
        world={"key_noise": 0.1},
        fallback="base_policy",
    )
    assert "The run is stored" in words(at)
    assert at.sidebar.selectbox(key="run_choice").value == spec.run_id
    assert at.query_params["run"] == spec.run_id
    assert queries.run_info(cache.store(), spec.run_id).name == "My *first* run"
    assert at.code[0].value == spec.command()
    opened = [link.proto.query_string for link in at.get("page_link") if link.proto.label == "Open on Overview"]
    assert f"run={spec.run_id}" in opened


def test_the_same_run_again_is_opened_instead_of_made_twice(open_page: OpenPage, simulation: str) -> None:
    at = send(open_page("data/run", run=simulation))
    made = queries.runs(cache.store())
    send(at)
    assert "This very run exists already" in words(at)
    again = queries.runs(cache.store())
    assert again["run_id"].tolist() == made["run_id"].tolist()
    assert again["created_at"].tolist() == made["created_at"].tolist()


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("new_seeds", 0, "seeds must be from 1 to 10000, not 0"),
        ("new_first_seed", -1, "first_seed must be at least 0, not -1"),
        ("threshold_n_rec", 63, "n_rec must be from 1 to 62, not 63"),
        ("threshold_theta_rev", 1.5, "theta_rev must be from 0 to 1, not 1.5"),
        ("controlled_drift_share", -0.1, "drift_share must be from 0 to 1, not -0.1"),
    ],
)
def test_what_is_not_allowed_is_a_sentence_and_nothing_runs(
    open_page: OpenPage, simulation: str, key: str, value: float, sentence: str
) -> None:
    at = open_page("data/run", run=simulation)
    before = queries.runs(cache.store())["run_id"].tolist()
    at.number_input(key=key).set_value(value)
    at.button(key="run_it").click().run()
    assert not at.exception
    assert sentence in words(at)
    assert queries.runs(cache.store())["run_id"].tolist() == before


def test_no_method_at_all_is_refused(open_page: OpenPage, simulation: str) -> None:
    assert "choose at least one method" in words(send(open_page("data/run", run=simulation), methods=()))


def test_every_threshold_and_every_parameter_of_the_stream_has_a_field_with_help(
    open_page: OpenPage, simulation: str
) -> None:
    at = open_page("data/run", run=simulation)
    fields = {*(f"threshold_{name}" for name in Thresholds.__slots__)} - {"threshold_revokes"}
    helped = {widget.key for widget in at.number_input if widget.help}
    assert fields <= helped
    assert at.checkbox(key="threshold_revokes").help
    assert {"controlled_key_noise", "controlled_light_flip", "controlled_tasks_per_phase"} <= helped


def test_another_stream_has_its_own_parameters(open_page: OpenPage, simulation: str) -> None:
    at = open_page("data/run", run=simulation, stream="preference")
    keys = {widget.key for widget in at.number_input}
    assert "preference_feedback_noise" in keys
    assert not any(str(key).startswith("controlled_") for key in keys)


def test_a_run_gets_another_name(open_page: OpenPage, simulation: str) -> None:
    at = open_page("data/run", run=simulation)
    at.text_input(key=f"rename_{simulation}").set_value("Six of the best")
    at.button(key="rename").click().run()
    assert "The run has its new name." in words(at)
    assert queries.run_info(cache.store(), simulation).name == "Six of the best"
    at.text_input(key=f"rename_{simulation}").set_value("  ")
    at.button(key="rename").click().run()
    assert "Not renamed" in at.error[0].value
    assert queries.run_info(cache.store(), simulation).name == "Six of the best"


def test_a_deleted_run_is_gone_and_another_is_shown(open_page: OpenPage, simulation: str, log: str) -> None:
    at = open_page("data/run", run=log)
    assert "This cannot be undone" in words(at)
    at.button(key="delete_it").click().run()
    assert not at.exception
    assert "is deleted" in words(at)
    assert queries.runs(cache.store())["run_id"].tolist() == [simulation]
    assert at.query_params["run"] == simulation
    assert "There is no run" not in words(at)


def test_all_runs_are_listed_with_their_facts(open_page: OpenPage, simulation: str, log: str) -> None:
    at = open_page("data/run", run=simulation)
    listed = at.dataframe[0].value.set_index("id")
    assert set(listed.index) == {simulation, log}
    assert listed.loc[simulation, "seeds"] == 6
    assert listed.loc[log, "file"] == "travel_preferences.csv"
    links = {link.proto.label: link.proto.query_string for link in at.get("page_link")}
    assert links["Compare with another run"] == f"run={simulation}&view=runs"
