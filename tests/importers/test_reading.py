"""What is kept of a file that is only looked at, and that reading it whole in one go says the same as in steps."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tepa_core.importers import ColumnMapping, apply, open_log, read_beginning, read_evidence
from tepa_core.importers.reading import KEPT_CELLS, KEPT_RAW, KEPT_TEXT
from tepa_core.limits import USUAL

TRAVEL = Path(__file__).parents[2] / "data" / "travel_preferences.csv"


def test_a_small_file_is_kept_whole() -> None:
    found = read_beginning(TRAVEL, "auto", 100_000, USUAL)
    whole = open_log(TRAVEL)
    pd.testing.assert_frame_equal(found.table.frame, whole.frame)
    assert found.records == len(whole.frame)


def test_no_more_records_are_kept_than_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,key,value\n" + "2026-01-01,k,v\nbroken\n" * 50)
    found = read_beginning(path, "auto", 10, USUAL)
    assert found.records == 100
    assert len(found.table.frame) == 10
    # The tenth readable record is on line 20; of the unreadable ones those before it are kept.
    assert [issue.row for issue in found.table.issues] == [3, 5, 7, 9, 11, 13, 15, 17, 19]


def test_long_texts_leave_room_for_few_records(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    long = "x" * 900_000
    path.write_text("".join(f'{{"ts":"2026-01-01","key":"k","value":"v","text":"{long}"}}\n' for _ in range(40)))
    found = read_beginning(path, "auto", 100_000, USUAL)
    held = sum(len(cell) for name in found.table.columns for cell in found.table.frame[name])
    assert found.records == 40
    assert len(found.table.frame) == 22
    assert held <= KEPT_TEXT


def test_one_record_is_kept_however_long(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    row = ",".join(["x" * 12_000_000, "y" * 900_000])
    path.write_text(f"value,key\n{row}\n{row}\n")
    assert len(read_beginning(path, "auto", 100_000, USUAL).table.frame) == 1


def test_many_columns_leave_room_for_few_records(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    names = [f"c{number}" for number in range(1_000)]
    path.write_text(",".join(names) + "\n" + ("," * 999 + "\n") * 2_500)
    found = read_beginning(path, "auto", 100_000, USUAL)
    assert len(found.table.frame) == KEPT_CELLS // 1_000


def test_unreadable_records_are_given_word_by_word_up_to_a_number(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ts,key,value\n" + f"{'x' * 1_500}\n" * 3_000 + "2026-01-01,k,v\n")
    issues = read_beginning(path, "auto", 100_000, USUAL).table.issues
    assert len(issues) == 3_000
    assert [len(issue.raw) for issue in issues[KEPT_RAW - 1 : KEPT_RAW + 1]] == [1_500, 1]


@pytest.mark.parametrize("tz", [None, "Europe/Berlin"])
def test_evidence_is_that_of_the_table_and_its_meaning(tz: str | None) -> None:
    mapping = ColumnMapping.of({"phase": "actor"})
    log, meaning = read_evidence(TRAVEL, "auto", mapping, tz, True, USUAL)
    table = open_log(TRAVEL)
    assert meaning.tz == (tz or "UTC")
    assert meaning.column("phase") == "actor"
    pd.testing.assert_frame_equal(log.evidence, apply(table, meaning).evidence)
