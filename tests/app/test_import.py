"""The import page: what it shows before it loads, what it loads, what it refuses, and what it leaves behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.store import queries
from tepa_core.ui import cache

OpenPage = Callable[..., AppTest]

NOTES = b"""when,who,topic,answer,ok,said
2026-01-01 10:00,u1,seat,window,,I like <b>windows</b> :smile:
2026-01-02 10:00,u1,seat,window,1,Yes
2026-01-03 10:00,u1,seat,window,maybe,Hm
,u1,seat,aisle,,No time
"""
KNOWN = b"ts,user,key,value\n" + b"".join(b"2026-01-0%dT10:00:00Z,u1,seat,window\n" % day for day in range(1, 5))


def words(at: AppTest) -> str:
    said = [*at.markdown, *at.text, *at.caption, *at.warning, *at.info, *at.error]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def upload(at: AppTest, name: str, content: bytes) -> AppTest:
    at.file_uploader[0].set_value((name, content, "application/octet-stream")).run()
    assert not at.exception
    return at


def box(at: AppTest, field: str) -> str:
    """Key of the widget that maps a field; it holds a token of the file."""
    return next(each.key for each in at.selectbox if str(each.key).startswith(f"map_{field}_"))


def press(at: AppTest, name: str) -> AppTest:
    at.button(key=name).click().run()
    assert not at.exception
    return at


def test_starts_with_the_columns_explained(open_page: OpenPage) -> None:
    at = open_page("data/import")
    guide = at.dataframe[0].value
    assert guide.loc[guide["required"] == "yes", "column name"].tolist() == ["ts", "key", "value"]
    assert at.title[0].value == "Import"


@pytest.mark.usefixtures("own_database")
def test_mapping_is_asked_for_then_previewed_then_loaded(open_page: OpenPage) -> None:
    at = upload(open_page("data/import"), "my notes.csv", NOTES)
    assert "**my notes.csv** is read as **CSV**: 4 records, 6 columns." in words(at)
    assert "Choose the column that holds: Time, Key. Without it no row can be loaded." in words(at)
    before = len(queries.runs(cache.store()))
    for field, column in (("ts", "when"), ("key", "topic"), ("user", "who"), ("outcome", "ok")):
        at.selectbox(key=box(at, field)).set_value(column).run()
    # Row 4 has an outcome that is neither yes nor no, row 5 no time.
    assert "4 records read · 2 can be loaded · 2 rejected" in words(at)
    assert "2 times without a zone" in words(at)
    rejected = next(frame.value for frame in at.dataframe if "reason" in frame.value)
    assert rejected["row"].tolist() == [4, 5]
    assert len(queries.runs(cache.store())) == before
    press(at, "import_load")
    assert "my notes.csv: read 4 · loaded 2 · rejected 2" in words(at)
    info = queries.run_info(cache.store(), at.query_params["run"])
    assert (info.name, info.source, info.counts["loaded"]) == ("my notes.csv", "my notes.csv", 2)
    assert queries.keys(cache.store(), info.run_id)[["subject", "key"]].to_numpy().tolist() == [["u1", "seat"]]


@pytest.mark.usefixtures("own_database")
def test_same_file_again_is_replaced(open_page: OpenPage) -> None:
    at = press(upload(open_page("data/import"), "known.csv", KNOWN), "import_load")
    assert "It makes **1 memories**" not in words(at)
    assert "It makes **1 memory**: 1 active." in words(at)
    assert "It was here already" not in words(at)
    runs = queries.runs(cache.store())["run_id"].tolist()
    press(at, "import_load")
    assert "It was here already, with the same columns and thresholds: it was replaced, not added." in words(at)
    assert sorted(queries.runs(cache.store())["run_id"]) == sorted(runs)


@pytest.mark.usefixtures("own_database")
def test_name_preset_template_and_zone_reach_the_run(open_page: OpenPage) -> None:
    content = b"ts,user,area,slot,value\n2026-07-01 10:00,u1,trip,seat,window\n"
    at = upload(open_page("data/import"), "t.csv", content)
    key = next(each.key for each in at.text_input if str(each.key).startswith("map_template_"))
    at.text_input(key=key).set_value("{area}/{slot}").run()
    at.selectbox(key=box(at, "zone")).set_value("Europe/Oslo").run()
    at.radio[0].set_value("direct_facts").run()
    next(each for each in at.text_input if str(each.key).startswith("name_")).set_value("Trips").run()
    press(at, "import_load")
    store, run_id = cache.store(), at.query_params["run"]
    assert queries.run_info(store, run_id).name == "Trips"
    assert queries.run_info(store, run_id).thresholds.theta_prop == 1
    row = queries.precedents(store, run_id).iloc[0]
    # Oslo is two hours ahead of UTC in July.
    assert (row["key"], row["state"], row["created_at"].hour) == ("trip/seat", "active", 8)


@pytest.mark.usefixtures("own_database")
def test_sample_takes_one_click(open_page: OpenPage) -> None:
    at = press(open_page("data/import"), "sample_heads_of_government.csv")
    assert "heads_of_government.csv, direct_facts: read 300 · loaded 300 · rejected 0" in words(at)
    assert queries.run_info(cache.store(), at.query_params["run"]).thresholds.n_rec == 1
    assert at.sidebar.selectbox(key="run_choice").value == at.query_params["run"]
    assert at.radio[0].value == "direct_facts"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("photo.csv", b"\x89PNG\r\n\x1a\n" + b"\0" * 64, "photo.csv looks like a PNG picture."),
        ("empty.csv", b"", "empty.csv is empty (0 bytes)."),
        ("twice.csv", b"a,a\n1,2\n", "More than one column is named 'a'."),
        ("../../etc/passwd", b"\0\1\2", "passwd looks like binary data."),
        ("logs.zip", b"PK\x03\x04" + b"\0" * 32, "logs.zip looks like a zip archive"),
    ],
)
def test_refusal_is_a_sentence_and_nothing_is_written(
    open_page: OpenPage, own_database: Path, name: str, content: bytes, sentence: str
) -> None:
    before = queries.runs(cache.store())["run_id"].tolist()
    at = upload(open_page("data/import"), name, content)
    assert len(at.error) == 1
    assert sentence in words(at)
    assert "Nothing was written." in words(at)
    assert tempfile.gettempdir() not in words(at)
    assert queries.runs(cache.store())["run_id"].tolist() == before
    assert own_database.exists()


def test_no_record_loadable_offers_no_button(open_page: OpenPage) -> None:
    at = upload(open_page("data/import"), "bad.csv", b"ts,key,value\nsoon,seat,window\n")
    assert "1 records read · 0 can be loaded · 1 rejected" not in words(at)
    assert "1 record read · 0 can be loaded · 1 rejected" in words(at)
    assert "No record can be loaded this way." in words(at)
    assert not [button for button in at.button if button.key == "import_load"]


def test_bad_template_is_a_sentence(open_page: OpenPage) -> None:
    at = upload(open_page("data/import"), "known.csv", KNOWN)
    key = next(each.key for each in at.text_input if str(each.key).startswith("map_template_"))
    at.text_input(key=key).set_value("{user").run()
    assert "cannot be read" in words(at)
    assert not at.exception


def test_upload_leaves_no_file_behind(open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    upload(open_page("data/import"), "known.csv", KNOWN)
    assert list(tmp_path.iterdir()) == []
