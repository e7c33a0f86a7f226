"""The archive page: what it counts, how it filters and orders, which row is open, and where a link leads."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.store import Store, queries
from tepa_core.ui.archive_table import TABLE, ordered

OpenPage = Callable[..., AppTest]


def words(at: AppTest) -> str:
    said = [*at.markdown, *at.text, *at.caption, *at.warning, *at.info, *at.error]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def listed(at: AppTest) -> pd.DataFrame:
    return next(frame.value for frame in at.dataframe if "would_prevent" in frame.value)


@pytest.fixture
def fallen(store: Store, log: str) -> pd.DataFrame:
    """Last revocations of the log, from its transitions."""
    changes = queries.lane_transitions(store, log)
    last = changes[changes["to_state"] == "revoked"].drop_duplicates("precedent_id", keep="last")
    state = queries.precedents(store, log).set_index("id")["state"]
    return last.assign(now=last["precedent_id"].map(state))


def test_counts_what_is_gone_and_what_came_back(open_page: OpenPage, log: str, fallen: pd.DataFrame) -> None:
    at = open_page("audit/archive", run=log)
    gone = int((fallen["now"] == "revoked").sum())
    assert f"{gone} memories are in the archive; {len(fallen) - gone} more were revoked and came back." in words(at)
    assert f"{gone} shown of {len(fallen)}, {len(fallen) - gone} hidden by the filters." in words(at)
    assert len(listed(at)) == gone
    assert set(listed(at)["state"]) == {"Revoked"}


def test_largest_expected_harm_stands_first(open_page: OpenPage, store: Store, log: str) -> None:
    at = open_page("audit/archive", run=log)
    first = listed(at).iloc[0]
    # README of the data: a wrong revocation that does not heal, which a reviewer should see.
    assert (first["value"], first["subject"], first["key"]) == ("Fjordlink", "u-ingrid", "airline")
    rows = listed(at)
    assert rows["harm"].is_monotonic_decreasing
    # The score is made of the columns beside it, and the share of the key's evidence can be counted.
    assert (rows["harm"] - 1000 * rows["p_wrong"] * rows["exposure"]).abs().max() < 1e-9
    items = queries.known_evidence(store, log, "")
    own = ((items["subject"] == "u-ingrid") & (items["key"] == "airline")).mean()
    assert first["exposure"] == pytest.approx(own)
    assert f"Expected harm {first['harm']:.1f}** in 1,000 uses" in words(at)


def test_close_calls_first_by_choice(open_page: OpenPage, log: str) -> None:
    at = open_page("audit/archive", run=log, sort="close")
    close = listed(at)[listed(at)["would_prevent"] == 1]
    assert close["support"].is_monotonic_decreasing
    assert close.index.tolist() == list(range(len(close)))


def test_first_row_is_open_with_its_reason(open_page: OpenPage, log: str) -> None:
    at = open_page("audit/archive", run=log)
    said = words(at)
    assert "airline of u-ingrid" in said
    assert "14 November 2025, 18:33 UTC by the recent rule" in said
    assert "One more support among the last three would have prevented it." in said
    assert "Two fresh supports in a row bring it back." in said
    assert [element.value for element in at.text][
        -1
    ] == "“And the way home with Alpenwind too, as it is one ticket. Just that trip.”"


def test_open_memory_is_remembered_by_id(open_page: OpenPage, store: Store, log: str) -> None:
    at = open_page("audit/archive", run=log)
    at.button(key="archive_next").click().run()
    second = tuple(listed(at).iloc[1][["value", "subject", "key"]])
    frame = queries.archive(store, log)
    opened = frame[frame["id"] == at.query_params["precedent"]].iloc[0]
    assert (opened["value"], opened["subject"], opened["key"]) == second
    # In another order the same memory stays open and selected, though it stands in another row.
    at.selectbox(key="sort_choice").set_value("name").run()
    assert at.query_params["precedent"] == opened["id"]
    position = at.session_state[TABLE]["selection"]["rows"][0]
    assert position != 1
    assert tuple(listed(at).iloc[position][["value", "subject", "key"]]) == second


def test_next_and_previous(open_page: OpenPage, log: str) -> None:
    at = open_page("audit/archive", run=log)
    first = at.query_params["precedent"]
    assert at.button(key="archive_previous").disabled
    at.button(key="archive_next").click().run()
    assert at.query_params["precedent"] != first
    assert any(element.value.startswith("2 of ") for element in at.text)
    at.button(key="archive_previous").click().run()
    assert at.query_params["precedent"] == first


def test_filter_of_the_batch_lists_exactly_the_eight(open_page: OpenPage, log: str) -> None:
    at = open_page("audit/archive", run=log, show="all", fell="batch")
    assert sorted(listed(at)["subject"]) == [
        *("u-benedikt", "u-chloe", "u-dagny", "u-esteban", "u-franziska", "u-gaspard", "u-lotte", "u-pilar")
    ]
    assert at.selectbox(key="fell_choice").value == "batch"


def test_filters_combine_and_can_be_cleared(open_page: OpenPage, log: str, fallen: pd.DataFrame) -> None:
    at = open_page("audit/archive", run=log, show="all", user="u-mara", slot="seat")
    expected = fallen[(fallen["subject"] == "u-mara") & (fallen["key"] == "seat")]
    assert sorted(listed(at)["value"]) == sorted(expected["value"])
    at.selectbox(key="lives_choice").set_value("several").run()
    assert listed(at)["value"].tolist() == ["window"]
    assert f"1 shown of {len(fallen)}, {len(fallen) - 1} hidden by the filters." in words(at)
    at.button(key="archive_clear").click().run()
    assert len(listed(at)) == len(fallen)
    assert "user" not in at.query_params


def test_search_in_the_sentences(open_page: OpenPage, log: str) -> None:
    at = open_page("audit/archive", run=log, show="all", find="brace is off")
    # The one sentence with these words is about the seat of u-mara; both its values were revoked.
    assert set(zip(listed(at)["subject"], listed(at)["key"], strict=True)) == {("u-mara", "seat")}
    at.text_input(key="find_choice").set_value("nobody ever said this").run()
    assert "No revocation matches these filters." in words(at)
    assert not at.exception


def test_link_names_the_open_memory(open_page: OpenPage, store: Store, log: str) -> None:
    frame = queries.archive(store, log)
    row = frame[(frame["subject"] == "u-bram") & (frame["key"] == "hotel_type") & (frame["state"] == "revoked")].iloc[0]
    at = open_page("audit/archive", run=log, precedent=row["id"])
    assert "hotel_type of u-bram" in words(at)
    assert not at.warning


def test_link_to_a_hidden_or_unknown_memory_is_said(open_page: OpenPage, store: Store, log: str) -> None:
    frame = queries.archive(store, log)
    back = frame.loc[frame["state"] != "revoked", "id"].iloc[0]
    assert "is hidden by the filters" in words(open_page("audit/archive", run=log, precedent=back))
    assert "There is no memory p0 in this run" in words(open_page("audit/archive", run=log, precedent="p0"))
    never = queries.precedents(store, log)
    never = never.loc[never["revoked_at"].isna(), "id"].iloc[0]
    assert "is not among these revocations" in words(open_page("audit/archive", run=log, precedent=never))


def test_simulation_by_lane(open_page: OpenPage, store: Store, simulation: str) -> None:
    at = open_page("audit/archive", run=simulation)
    assert listed(at)["seed"].nunique() == 6
    at.selectbox(key="in_seed_choice").set_value("4").run()
    falls = queries.lane_transitions(store, simulation, "tepa", 4)
    assert len(listed(at)) == 1
    assert listed(at)["value"].tolist() == ["alternative"]
    assert listed(at)["revoked_at"].tolist() == [falls[falls["to_state"] == "revoked"]["occurred"].max()]
    at.selectbox(key="in_method_choice").set_value("tepa_norev").run()
    assert "Nothing was ever revoked here" in words(at)


def test_orders() -> None:
    rows = pd.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "would_prevent": pd.array([2, 1, None, 1], "Int64"),
            "support": [50, 4, 60, 9],
            "revoked_at": [1, 4, 3, 2],
            "revocations": [1, 1, 3, 1],
            "subject": ["w", "x", "u", "v"],
            "key": ["k"] * 4,
            "value": ["v"] * 4,
        }
    )
    assert ordered(rows, "close")["id"].tolist() == ["d", "b", "c", "a"]
    assert ordered(rows, "latest")["id"].tolist() == ["b", "c", "d", "a"]
    assert ordered(rows, "often")["id"].tolist() == ["c", "a", "d", "b"]
    assert ordered(rows, "name")["id"].tolist() == ["c", "d", "a", "b"]
    assert "close" not in ordered(rows, "close").columns
