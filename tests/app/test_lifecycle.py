"""The lifecycle page: the seat of u-mara told as the log holds it, any key by link, and what a link may get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.figures.theme import method_label
from tepa_core.methods import METHODS
from tepa_core.store import Store, key_life, queries

OpenPage = Callable[..., AppTest]
SEAT = {"subject": "u-mara", "key": "seat"}


def words(at: AppTest) -> str:
    """Everything the page says, without Markdown's escapes."""
    said = [*at.markdown, *at.text, *at.caption, *at.warning, *at.info, *at.error]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def id_of(store: Store, log: str, value: str) -> str:
    frame = queries.precedents(store, log, subject="u-mara", key="seat")
    return str(frame.loc[frame["value"] == value, "id"].iloc[0])


def markers(at: AppTest) -> list[str]:
    spec: dict[str, Any] = json.loads(at.get("plotly_chart")[0].proto.spec)
    return [data for trace in spec["data"] if trace.get("customdata") is not None for data in _texts(trace)]


def _texts(trace: dict[str, Any]) -> list[str]:
    return [str(row[0]) for row in trace["customdata"]]


def test_tells_the_seat_of_mara(open_page: OpenPage, log: str) -> None:
    said = words(open_page("explore/lifecycle", run=log, **SEAT))
    assert "window**: active since 31 January 2025, revoked on 16 July 2025 by the recent rule, " in said
    assert "by the recent rule, back since 17 October 2025." in said
    assert "aisle**: active since 21 July 2025, revoked on 10 October 2025 by the recent rule." in said


def test_explains_the_last_revocation_of_the_key_first(open_page: OpenPage, store: Store, log: str) -> None:
    at = open_page("explore/lifecycle", run=log, **SEAT)
    assert at.selectbox(key="precedent_choice").value == id_of(store, log, "aisle")
    assert at.selectbox(key="transition_choice").value == f"{id_of(store, log, 'aisle')}.2"


def test_why_card_has_rule_numbers_sentences_and_the_way_back(open_page: OpenPage, store: Store, log: str) -> None:
    window = id_of(store, log, "window")
    at = open_page("explore/lifecycle", run=log, **SEAT, precedent=window, transition=f"{window}.2")
    said = words(at)
    assert "two of its last three evidence items went against it" in said
    assert "The recent rule revokes a value when the share of supports among its last 3 outcomes is below 0.34." in said
    assert "One more support among the last three would have prevented it." in said
    assert "Fresh supports brought it back on 17 October 2025." in said
    # The travel log, read without this program: the two conflicts say aisle, the support between them window.
    rows = pd.read_csv("data/travel_preferences.csv")
    seat = rows[(rows["user"] == "u-mara") & (rows["key"] == "seat") & (rows["ts"] <= "2025-07-16T07:55:00Z")]
    quoted = [element.value for element in at.text]
    assert quoted[-3:] == [f"“{text}”" for text in seat["text"].tail(3)]
    assert "Against **window**, for **aisle**" in said
    arithmetic = at.table[0].value
    posterior = arithmetic[arithmetic["quantity"].str.startswith("posterior")].iloc[0]
    # 15 supports; 1 conflict before, 2 after: 16/18 and 16/19.
    assert (posterior["before"], posterior["after"]) == ("0.889", "0.842")
    assert "at least 0.3 from 5 outcomes; holds" in posterior["quantity"]


def test_archived_value_says_what_brings_it_back(open_page: OpenPage, log: str) -> None:
    # Fjordlink fell to two conflicts; two statements since then make its tally 2 against 2. (2+2+1)/(4+2+2) = 0.625.
    at = open_page("explore/lifecycle", run=log, subject="u-ingrid", key="airline")
    said = words(at)
    assert "In the archive: its tally since then is two supports against two conflicts." in said
    assert "Two fresh supports in a row bring it back." in said


def test_every_transition_is_a_marker_and_an_option(open_page: OpenPage, store: Store, log: str) -> None:
    at = open_page("explore/lifecycle", run=log, **SEAT)
    life = key_life(store, log, "seat", subject="u-mara")
    assert sorted(markers(at)) == sorted(life.transitions["transition_id"])
    assert len(at.selectbox(key="transition_choice").options) == 3


def test_choosing_another_value_explains_its_last_revocation(open_page: OpenPage, store: Store, log: str) -> None:
    at = open_page("explore/lifecycle", run=log, **SEAT)
    window = id_of(store, log, "window")
    at.selectbox(key="precedent_choice").set_value(window).run()
    assert at.selectbox(key="transition_choice").value == f"{window}.2"
    assert at.query_params["precedent"] == window
    assert at.query_params["transition"] == f"{window}.2"


def test_link_with_a_precedent_alone_finds_its_place(open_page: OpenPage, store: Store, log: str) -> None:
    window = id_of(store, log, "window")
    at = open_page("explore/lifecycle", run=log, precedent=window)
    assert at.query_params["subject"] == "u-mara"
    assert at.query_params["key"] == "seat"
    assert at.selectbox(key="precedent_choice").value == window


def test_starts_at_the_key_with_most_revocations(open_page: OpenPage, store: Store, log: str) -> None:
    transitions = queries.lane_transitions(store, log)
    falls = transitions[transitions["to_state"] == "revoked"].groupby(["subject", "key_id"]).size()
    at = open_page("explore/lifecycle", run=log)
    shown = (at.query_params["subject"], at.query_params["key"])
    assert falls[shown] == falls.max()


def test_arrival_order_revokes_the_taxi_of_hedda(open_page: OpenPage, log: str) -> None:
    at = open_page("explore/lifecycle", run=log, subject="u-hedda", key="airport_transfer")
    assert "taxi**: active since" in words(at)
    assert "taxi, active" in at.selectbox(key="precedent_choice").options
    # As it happened, train gives way to taxi and taxi never falls; as it arrived, two late survey answers revoke it.
    assert not any("taxi**" in line and "revoked" in line for line in words(at).splitlines())
    at.segmented_control(key="order_choice").set_value("arrival").run()
    assert not at.exception
    assert any("taxi**" in line and "revoked" in line for line in words(at).splitlines())
    assert at.query_params["order"] == "arrival"


def test_search_narrows_users_and_keys(open_page: OpenPage, store: Store, log: str) -> None:
    at = open_page("explore/lifecycle", run=log)
    at.text_input(key="q_choice").set_value("Fjordlink").run()
    owners = queries.precedents(store, log)
    expected = set(owners.loc[owners["value"].str.contains("fjordlink", case=False), "subject"])
    assert {option.split(" ")[0] for option in at.selectbox(key="subject_choice").options} == expected
    assert [option.split(" ")[0] for option in at.selectbox(key="key_choice").options] == ["airline"]
    at.text_input(key="q_choice").set_value("no such thing").run()
    assert "Nothing in this log matches" in words(at)
    assert not at.get("plotly_chart")


def test_simulation_by_method_seed_and_key(open_page: OpenPage, store: Store, simulation: str) -> None:
    at = open_page("explore/lifecycle", run=simulation, method="tepa", seed=3, key="read csv")
    falls = queries.lane_transitions(store, simulation, "tepa", 3)
    first = falls[(falls["value"] == "conventional") & (falls["to_state"] == "revoked")].iloc[0]
    assert f"revoked at task {first['occurred']} by the recent rule" in words(at)
    assert at.selectbox(key="seed_choice").value == 3
    played = queries.run_info(store, simulation).spec["methods"]
    living = {method_label(name) for name in played if METHODS[name].lifecycle}
    assert set(at.selectbox(key="method_choice").options) == living
    assert {"TEPA", "TEPA-NoRev"} <= living < {method_label(name) for name in played}


def test_evidence_table_has_every_item(open_page: OpenPage, log: str) -> None:
    rows = pd.read_csv("data/travel_preferences.csv")
    seat = rows[(rows["user"] == "u-mara") & (rows["key"] == "seat")]
    at = open_page("explore/lifecycle", run=log, **SEAT)
    table = next(frame.value for frame in at.dataframe if "sentence" in frame.value)
    assert sorted(table["sentence"]) == sorted(seat["text"])


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"precedent": "p0"}, "There is no memory p0 in this run."),
        ({"subject": "u-mara", "key": "shoe size"}, "There is no key shoe size here"),
        ({"subject": "u-nobody"}, "There is no user u-nobody here"),
    ],
)
def test_unknown_names_in_a_link_are_said(open_page: OpenPage, log: str, query: dict[str, str], sentence: str) -> None:
    at = open_page("explore/lifecycle", run=log, **query)
    assert sentence in words(at)
    assert at.get("plotly_chart")


def test_unknown_run_in_a_link_is_said(open_page: OpenPage) -> None:
    at = open_page("explore/lifecycle", run="run-of-yesterday", precedent="p0")
    assert "There is no run run-of-yesterday" in words(at)
    assert at.get("plotly_chart")


def test_frame_is_shared(open_page: OpenPage, log: str) -> None:
    at = open_page("explore/lifecycle", run=log)
    assert at.title[0].value == "Lifecycle"
    assert "What happened to this memory?" in at.caption[0].value
    assert at.sidebar.selectbox(key="run_choice").value == log


def test_value_without_any_change_says_what_it_lacks(open_page: OpenPage, store: Store, log: str) -> None:
    everything = queries.precedents(store, log, state="candidate")
    unchanged = everything[everything["lives"] == 0].iloc[0]
    at = open_page("explore/lifecycle", run=log, precedent=unchanged["id"])
    said = words(at)
    assert f"**{unchanged['value']}**: never active." in said
    assert f"Why {unchanged['value']} is not used" in said
    assert not [box for box in at.selectbox if str(box.key).endswith("transition_choice")]
    assert at.get("plotly_chart")
