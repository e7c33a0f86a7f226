"""Fact runs: started from the page, and what every page says of them, recomputed from the file and the stored rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import FACT_METHODS
from tepa_core.experiment.answer_backends import BASE_URL_VARIABLE, MODEL_VARIABLE
from tepa_core.fact_runs import planned, run_fact_file
from tepa_core.lifecycle import PRESETS
from tepa_core.store import PATH_VARIABLE, Store, queries
from tepa_core.streams import read_fact_file
from tepa_core.ui import cache, fact_form

OpenPage = Callable[..., AppTest]

DATA = Path(__file__).parents[2] / "data"
SMALL, MULTI_HOP = DATA / "facts_small.json", DATA / "facts_small_multihop.json"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A database with both samples run, closed; the single-fact run and the one through several facts."""
    path = tmp_path_factory.mktemp("facts") / "facts.duckdb"
    with Store(path, PROGRAM) as store:
        ids = [run_fact_file(store, file).run_id for file in (SMALL, MULTI_HOP)]
    yield path, ids[0], ids[1]
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def facts(made: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Point the pages to the fact runs; return their ids."""
    monkeypatch.setenv(PATH_VARIABLE, str(made[0]))
    return made[1], made[2]


def words(at: AppTest) -> str:
    said = [*at.title, *at.subheader, *at.markdown, *at.caption, *at.warning, *at.info, *at.error, *at.success]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def links(at: AppTest) -> dict[str, str]:
    found = at.get("page_link")
    return {link.proto.label.replace("\\", "").replace("\u2060", ""): link.proto.query_string for link in found}


def newest_values() -> dict[str, str]:
    """The value of the last fact on each key of the sample."""
    return {fact.key: fact.value for fact in read_fact_file(SMALL).facts}


class TestOverview:
    def test_frame_counts_facts_questions_and_orders(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[0])
        assert at.title[0].value == "Overview"
        assert at.sidebar.caption[0].value.startswith("62 facts, 20 questions in 3 orders, made")

    def test_headline_is_what_tepa_and_a_memory_without_revocation_answer(
        self, open_page: OpenPage, facts: tuple[str, str]
    ) -> None:
        at = open_page("explore/overview", run=facts[0])
        played = queries.episodes(cache.store(), facts[0])
        right = played.groupby("method")["success"].sum() / 3
        assert right["tepa"] == 20
        assert f"TEPA answers 20 of 20 questions; a memory that never revokes {right['tepa_norev']:.1f}." in words(at)
        assert "Numbers are means over 3 orders" in words(at)
        assert "the pollution index, a share of what an agent without memory gets right, is undefined" in words(at)

    def test_bars_are_the_shares_and_there_is_no_story(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[0])
        (chart,) = at.get("plotly_chart")
        shares = queries.episodes(cache.store(), facts[0]).groupby("method")["success"].mean()
        drawn = {bar["customdata"][0][0]: bar["x"][0] for bar in json.loads(chart.proto.spec)["data"]}
        assert drawn == pytest.approx(shares.to_dict())
        assert "append-only 14.7" in chart.proto.alt
        assert not any(button.key == "story_arrow_forward" for button in at.button)

    def test_conflicts_are_counted_and_linked(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[0])
        values = pd.DataFrame([(fact.key, fact.value) for fact in read_fact_file(SMALL).facts]).drop_duplicates()
        several = values.groupby(0)[1].size()
        assert f"{(several > 1).sum()} of {len(several)} keys were stated with more than one value" in words(at)
        key = "capital · Verrin"
        assert links(at)[f"{key}: 2 values, now {newest_values()[key]}"].startswith(f"run={facts[0]}&method=tepa")

    def test_attribution_is_told_and_drawn(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[1])
        told = words(at)
        assert "No method answers any of the 10 questions." in told
        # Of the ten questions nine have their answer among the facts; of one it was stated and replaced.
        assert (
            "All 10 questions go through several relations. What **TEPA** makes of the right answer: for 8 it is among "
            "the active values (the memory is right, the way to it was not found); for 1 it stands only in the archive "
            "(the memory is to blame); for 1 no fact of the file states it." in told
        )
        (chart,) = at.get("plotly_chart")
        assert "TEPA: answer is active, but not found 80%, answer is not active 10%" in chart.proto.alt


class TestQuestions:
    def test_table_has_each_answer_with_its_mark(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[0], asked_in=1)
        table = next(frame.value for frame in at.dataframe if "right answer" in frame.value)
        file = read_fact_file(SMALL)
        assert table["question"].tolist() == [question.text for question in file.questions]
        played = queries.episodes(cache.store(), facts[0], "append_only", 1).set_index("key")
        for number, question in enumerate(file.questions):
            episode = played.loc[question.key]
            mark = "✓" if episode["success"] else "✗"
            assert table.loc[number, "append-only"] == f"{mark} {episode['action']}"
        assert table["no memory"].eq("✗ no answer").all()

    def test_filter_keeps_those_on_which_methods_differ(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[0], asked="differ")
        table = next(frame.value for frame in at.dataframe if "right answer" in frame.value)
        # no memory is wrong on each, TEPA right on each.
        assert len(table) == 20
        at = open_page("explore/overview", run=facts[1], asked="differ")
        assert "No question is like that in this order." in words(at)

    def test_link_opens_a_question_and_leads_to_its_key(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[0], question=6)
        key = read_fact_file(SMALL).questions[6].key
        assert "**Question 6**" in words(at)
        assert at.query_params["question"] == "6"
        assert f"What TEPA did with {key}" in links(at)

    def test_answer_through_several_facts_is_linked_where_it_is_held(
        self, open_page: OpenPage, facts: tuple[str, str]
    ) -> None:
        at = open_page("explore/overview", run=facts[1], question=0)
        gold = read_fact_file(MULTI_HOP).questions[0].golds[0]
        held = [key for key, value in newest_values().items() if value == gold]
        assert held
        found = [label for label in links(at) if label.endswith(f"{gold}, Active")]
        assert set(found) <= {f"{key}: {gold}, Active" for key in held}
        assert len(found) == min(3, len(held))

    def test_unknown_order_and_question_fall_back(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/overview", run=facts[0], asked_in=99, question=99)
        assert at.query_params["asked_in"] == "0"
        assert "**Question 0**" in words(at)


class TestOtherPages:
    def test_phases_compare_once_and_say_what_three_orders_can_show(
        self, open_page: OpenPage, facts: tuple[str, str]
    ) -> None:
        at = open_page("explore/phases", run=facts[0], view="differences")
        table = next(frame.value for frame in at.dataframe if "p (Holm)" in frame.value)
        assert set(table["scope"]) == {"overall"}
        assert "Paired over the orders of the questions. With 3 of them p cannot be below 0.125" in words(at)
        assert "win-stay lose-shift, keeps up with TEPA here" in words(at)

    @pytest.mark.parametrize(
        ("view", "sentence"),
        [("pollution", "the index is undefined"), ("memories", "no revocation can be called early, late or wrong")],
    )
    def test_what_a_fact_run_cannot_say_is_a_sentence(
        self, open_page: OpenPage, facts: tuple[str, str], view: str, sentence: str
    ) -> None:
        assert sentence in words(open_page("explore/phases", run=facts[0], view=view))

    def test_fact_runs_are_compared_with_fact_runs(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/phases", run=facts[0], view="runs")
        assert at.selectbox(key="against_choice").options == [f"Facts of facts_small_multihop ({facts[1]})"]
        assert "What differs: file facts_small here and facts_small_multihop there." in words(at)

    def test_all_methods_alike_is_said_as_such(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        said = words(open_page("explore/phases", run=facts[1]))
        assert f"In **questions** all {len(FACT_METHODS)} methods succeed alike: **0.0 %**." in said

    def test_lifecycle_counts_facts(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("explore/lifecycle", run=facts[0], key="author · The Salt Ledger")
        stated = [fact for fact in read_fact_file(SMALL).facts if fact.key == "author · The Salt Ledger"]
        old, new = stated
        assert f"**{old.value}**: active since fact {old.number}, revoked at fact {new.number}" in words(at)
        assert f"“{new.sentence}”" in [text.value for text in at.text]

    def test_archive_holds_every_replaced_value(self, open_page: OpenPage, facts: tuple[str, str]) -> None:
        at = open_page("audit/archive", run=facts[0])
        replaced = {
            (fact.key, fact.value) for fact in read_fact_file(SMALL).facts if newest_values()[fact.key] != fact.value
        }
        assert f"{len(replaced)} memories are in the archive" in words(at)


@pytest.mark.usefixtures("own_database")
class TestRun:
    def test_sample_runs_by_one_click_and_only_once(self, open_page: OpenPage) -> None:
        at = open_page("data/run", stream="facts")
        at.button(key="run_facts_small.json").click().run()
        assert not at.exception
        expected = planned(read_fact_file(SMALL))
        assert "The run is stored, after" in words(at)
        assert at.query_params["run"] == expected.run_id
        assert at.code[0].value == "python -m tepa_core run facts --file facts_small.json --orders 3"
        at.button(key="run_facts_small.json").click().run()
        assert "This very run exists already, as “Facts of facts_small”." in words(at)
        assert (queries.runs(cache.store())["stream"] == "facts").sum() == 1

    def test_uploaded_file_runs_with_the_settings_and_leaves_no_copy(
        self, open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        at = open_page("data/run", stream="facts")
        at.file_uploader(key="fact_upload").set_value(("../My facts.json", SMALL.read_bytes(), "application/json"))
        at.multiselect(key="fact_methods").set_value(["tepa", "no_memory"])
        at.number_input(key="fact_orders").set_value(2)
        at.number_input(key="fact_threshold_n_rec").set_value(3)
        at.text_input(key="new_name").set_value("Mine")
        at.button(key="run_facts").click().run()
        assert not at.exception
        info = queries.run_info(cache.store(), at.query_params["run"])
        assert (info.name, info.source, info.counts["seeds"]) == ("Mine", "My facts", 2)
        assert info.spec["methods"] == ["tepa", "no_memory"]
        assert info.thresholds == PRESETS["direct_facts"].changed({"n_rec": 3})
        assert at.code[0].value.endswith("--file 'My facts.json' --orders 2 --methods tepa,no_memory --set n_rec=3")
        assert list(tmp_path.rglob("*.json")) == []

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"{", "notes.json is no JSON"),
            (b'{"context": "0. The capital of France is Paris."}', "questions and answers missing"),
            (b"\xff", "no UTF-8 text"),
        ],
    )
    def test_file_that_is_none_is_a_sentence(self, open_page: OpenPage, content: bytes, sentence: str) -> None:
        at = open_page("data/run", stream="facts")
        at.file_uploader(key="fact_upload").set_value(("notes.json", content, "application/json"))
        at.button(key="run_facts").click().run()
        assert not at.exception
        assert sentence in words(at)
        assert not (queries.runs(cache.store())["stream"] == "facts").any()

    @pytest.mark.parametrize(
        ("key", "value", "sentence"),
        [
            ("fact_orders", 0, "orders must be from 1 to 100, not 0"),
            ("fact_threshold_n_rec", 63, "n_rec must be from 1 to 62, not 63"),
        ],
    )
    def test_setting_out_of_range_is_a_sentence(self, open_page: OpenPage, key: str, value: int, sentence: str) -> None:
        at = open_page("data/run", stream="facts")
        at.number_input(key=key).set_value(value)
        at.button(key="run_facts_small.json").click().run()
        assert not at.exception
        assert sentence in words(at)

    def test_no_file_is_asked_for(self, open_page: OpenPage) -> None:
        at = open_page("data/run", stream="facts")
        at.button(key="run_facts").click().run()
        assert "There is no file to run yet" in words(at)

    def test_language_model_is_offered_only_where_one_is_named(
        self, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(BASE_URL_VARIABLE, raising=False)
        monkeypatch.delenv(MODEL_VARIABLE, raising=False)
        at = open_page("data/run", stream="facts")
        assert at.radio(key="fact_answerer").options == ["the deterministic reader"]
        assert f"start the dashboard with {BASE_URL_VARIABLE}" in words(at)
        monkeypatch.setenv(BASE_URL_VARIABLE, "http://127.0.0.1:9/v1")
        monkeypatch.setenv(MODEL_VARIABLE, "some-model")
        at = open_page("data/run", stream="facts")
        assert len(at.radio(key="fact_answerer").options) == 2
        assert BASE_URL_VARIABLE not in words(at)

    def test_a_model_that_does_not_answer_stores_nothing(
        self, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def silent(*_: object, **__: object) -> None:
            raise fact_form.AnswerError("the server does not answer; start it")

        monkeypatch.setattr(fact_form, "run_facts_and_keep", silent)
        at = open_page("data/run", stream="facts")
        at.button(key="run_facts_small.json").click().run()
        assert not at.exception
        assert "the server does not answer; start it" in words(at)
        assert not (queries.runs(cache.store())["stream"] == "facts").any()


@pytest.mark.usefixtures("own_database")
@pytest.mark.parametrize(
    ("stream", "own"), [("controlled", "candidate"), ("executable", "candidate"), ("preference", "base_policy")]
)
def test_the_form_begins_with_the_fallback_of_the_stream(open_page: OpenPage, stream: str, own: str) -> None:
    at = open_page("data/run", stream=stream)
    assert at.radio(key=f"{stream}_fallback").value == own
