from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.importers import ColumnMapping, ImportRefused
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.logs import import_log, preview
from tepa_core.store import Store, queries, rename_run

NOTES = """\
ts,user,key,value,outcome
2026-03-01T09:00:00,u1,seat,window,1
2026-03-01T10:00:00,u1,seat,aisle,1
2026-03-01T11:00:00,u1,,aisle,1
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "audit.duckdb", PROGRAM) as opened:
        yield opened


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.csv"
    path.write_text(NOTES)
    return path


def test_an_import_reports_what_it_did_and_what_is_stored(store: Store, notes: Path) -> None:
    report = import_log(store, notes, preset="direct_facts")
    assert (report.format, report.read, report.loaded, report.rejected) == ("csv", 3, 2, 1)
    assert report.issues["row"].tolist() == [4]
    assert report.issues["reason"].tolist() == ["the key is missing"]
    assert report.badges == {"naive_time": 2}
    assert (report.precedents, report.states) == (2, {"active": 1, "revoked": 1})
    assert report.elapsed > 0
    info = queries.run_info(store, report.run_id)
    assert (info.name, info.source) == ("notes.csv, direct_facts", "notes.csv")
    assert info.thresholds == PRESETS["direct_facts"]
    assert info.badges == report.badges
    assert info.counts["rejected"] == 1
    pd.testing.assert_frame_equal(queries.issues(store, report.run_id), report.issues, check_dtype=False)


def test_a_preview_reads_the_same_and_stores_nothing(store: Store, notes: Path) -> None:
    log = preview(notes)
    assert (log.read, log.loaded, log.rejected, log.badges) == (3, 2, 1, {"naive_time": 2})
    assert queries.runs(store).empty


def test_the_same_file_is_the_same_run(store: Store, notes: Path) -> None:
    first = import_log(store, notes, name="Seats")
    assert import_log(store, notes).run_id == first.run_id
    assert queries.runs(store)["name"].tolist() == ["Seats"]
    rename_run(store, first.run_id, "Chairs")
    import_log(store, notes)
    assert queries.runs(store)["name"].tolist() == ["Chairs"]
    assert import_log(store, notes, preset="direct_facts").run_id != first.run_id


def test_thresholds_take_the_place_of_the_preset(store: Store, notes: Path) -> None:
    report = import_log(store, notes, preset="direct_facts", thresholds=Thresholds(theta_prop=2))
    assert queries.run_info(store, report.run_id).thresholds == Thresholds(theta_prop=2)
    with pytest.raises(ValueError, match="there is no preset 'fast'; choose one of: default, direct_facts"):
        import_log(store, notes, preset="fast")


def test_times_without_offset_are_read_in_the_zone(notes: Path) -> None:
    # Berlin is one hour ahead of UTC on 1 March.
    assert preview(notes, tz="Europe/Berlin").evidence["event_time"].iloc[0] == pd.Timestamp("2026-03-01T08:00Z")
    in_mapping = ColumnMapping.of({}, tz="Asia/Tokyo")
    assert preview(notes, mapping=in_mapping).evidence["event_time"].iloc[0] == pd.Timestamp("2026-03-01T00:00Z")
    both = preview(notes, mapping=in_mapping, tz="Europe/Berlin")
    assert both.evidence["event_time"].iloc[0] == pd.Timestamp("2026-03-01T08:00Z")


def test_a_partial_mapping_is_completed_by_usual_names_unless_it_is_meant_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,topic,answer,outcome\n2026-03-01T09:00:00Z,seat,window,0\n")
    completed = preview(path, mapping=ColumnMapping.of({"key": "topic"}))
    assert completed.evidence[["key", "value", "supports"]].values.tolist() == [["seat", "window", False]]
    whole = ColumnMapping.of({"ts": "ts", "key": "topic", "value": "answer"})
    assert preview(path, mapping=whole, guess=False).evidence["supports"].tolist() == [True]
    with pytest.raises(ImportRefused, match="no column for: ts, value"):
        preview(path, mapping=ColumnMapping.of({"key": "topic"}), guess=False)


def test_an_upload_keeps_the_name_that_a_person_knows(store: Store, notes: Path) -> None:
    report = import_log(store, notes, source="My seats.csv")
    info = queries.run_info(store, report.run_id)
    assert (info.name, info.source) == ("My seats.csv", "My seats.csv")
    assert report.run_id.startswith("my-seats-")


def test_a_file_without_one_good_record_says_why_and_writes_nothing(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,key,value\nyesterday,seat,window\ntoday,seat,window\n")
    with pytest.raises(
        ImportRefused, match=r"None of the 2 records of a\.csv can be loaded; the first, in row 2: time .yesterday. is"
    ):
        import_log(store, path)
    assert queries.runs(store).empty


@pytest.mark.parametrize("stop_at", [0, 1, 2])
def test_an_import_can_be_stopped_at_any_report_before_the_last(store: Store, notes: Path, stop_at: int) -> None:
    class Stopped(Exception):  # noqa: N818
        pass

    heard: list[float] = []

    def progress(fraction: float, sentence: str) -> None:
        assert sentence
        if len(heard) == stop_at:
            raise Stopped
        heard.append(fraction)

    with pytest.raises(Stopped):
        import_log(store, notes, progress=progress)
    assert queries.runs(store).empty


def test_progress_rises_to_one(store: Store, notes: Path) -> None:
    heard: list[float] = []
    import_log(store, notes, progress=lambda fraction, _: heard.append(fraction))
    assert heard[0] == 0.0
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    # While a child reads, the beginning is told again and again: that is where an import can be stopped.
    assert len(set(heard)) == 4
