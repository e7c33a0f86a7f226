import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tepa_core.importers.base import ImportRefused, Table
from tepa_core.importers.registry import open_log


def read(tmp_path: Path, content: bytes | str) -> Table:
    path = tmp_path / "log.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_log(path, "csv")


def column(table: Table, name: str) -> list[object]:
    return table.frame[name].tolist()


def test_values_stay_the_text_they_are(tmp_path: Path) -> None:
    values = ["007", "41_10_1", "true", "NA", "1e5", "null", "1,5", " x ", "nan", "2024-01-01"]
    text = "key,value\n" + "".join(f'k,"{value}"\n' for value in values)
    assert column(read(tmp_path, text), "value") == values
    unquoted = "key,value\n" + "".join(f"k,{value}\n" for value in values if "," not in value)
    assert column(read(tmp_path, unquoted), "value") == [value for value in values if "," not in value]


def test_empty_text_and_missing_are_kept_apart(tmp_path: Path) -> None:
    assert column(read(tmp_path, 'key,value\na,""\nb,\n'), "value") == ["", None]


def test_a_missing_last_cell_without_a_line_end_is_missing(tmp_path: Path) -> None:
    assert column(read(tmp_path, 'key,value\n"a",'), "value") == [None]


def test_rows_of_another_width_are_reported_by_line_and_the_rest_is_read(tmp_path: Path) -> None:
    table = read(tmp_path, 'key,value\n"a\nb",1\n\nc\nd,2\ne,3,4\n')
    assert column(table, "key") == ["a\nb", "d"]
    assert column(table, "__row__") == [2, 6]
    assert [(issue.row, issue.raw) for issue in table.issues] == [(5, "c"), (7, "e,3,4")]
    assert table.issues[0].reason == "the row has 1 cell where the header has 2"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_read(tmp_path: Path, end: str) -> None:
    table = read(tmp_path, end.join(["key,value", "a,1", "", "b,2", ""]))
    assert column(table, "value") == ["1", "2"]
    assert column(table, "__row__") == [2, 4]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found_in_the_header(tmp_path: Path, delimiter: str) -> None:
    header = delimiter.join(["ts", "key", '"value, or; so"'])
    table = read(tmp_path, f"{header}\n1{delimiter}2{delimiter}3\n")
    assert table.columns == ("ts", "key", "value, or; so")
    assert column(table, "key") == ["2"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    table = read(tmp_path, b"\xef\xbb\xbfts,key\n1,2\n")
    assert table.columns == ("ts", "key")
    assert column(table, "ts") == ["1"]


def test_names_are_stripped_and_nameless_columns_are_numbered(tmp_path: Path) -> None:
    assert read(tmp_path, ", ts ,key\n0,1,2\n").columns == ("column_1", "ts", "key")


def test_two_columns_of_one_name_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="'value'"):
        read(tmp_path, "key,value,value\na,b,c\n")


def test_latin_1_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=r"Line 3 is not UTF-8 text \(byte 0xe9\)"):
        read(tmp_path, "key,value\na,b\nc,café\n".encode("latin-1"))


def test_a_nul_byte_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="Line 2 holds a NUL byte"):
        read(tmp_path, b"key,value\na,\0\n")


def test_a_quote_never_closed_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="line 3 is never closed"):
        read(tmp_path, 'key,value\na,b\nc,"d\ne,f\n')


@pytest.mark.parametrize("content", ["key,value\n", "key,value", "key,value\n\n\r\n"])
def test_a_header_without_rows_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ImportRefused, match="no rows below it"):
        read(tmp_path, content)


def test_blank_lines_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="only blank lines"):
        read(tmp_path, "\n\n")


def test_a_cell_larger_than_the_reader_s_block_is_read(tmp_path: Path) -> None:
    big = ("x" * 1000 + "\n") * 9000
    table = read(tmp_path, f'key,value\na,"{big}"\nb,1,2\nc,3\n')
    assert column(table, "value") == [big, "3"]
    assert [issue.row for issue in table.issues] == [9003]


def test_lines_are_right_beyond_the_first_block(tmp_path: Path) -> None:
    lines = ["key,value"]
    wrong = []
    while len(lines) < 400_000:
        if len(lines) % 50_000 == 7:
            wrong.append(len(lines) + 1)
            lines.append("a,b,c")
        else:
            lines += ['"a', 'b",a rather long value']
    table = read(tmp_path, "\n".join(lines))
    assert [issue.row for issue in table.issues] == wrong
    assert table.frame["__row__"].iloc[-1] == len(lines) - 1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.text(alphabet='ab ",\n\r;é=', max_size=6), min_size=2, max_size=3), min_size=1, max_size=6))
def test_what_the_standard_library_writes_is_read_back(tmp_path: Path, rows: list[list[str]]) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["key", "value"], *rows])
    table = read(tmp_path, buffer.getvalue())
    good = [row for row in rows if len(row) == 2]
    assert [list(pair) for pair in zip(column(table, "key"), column(table, "value"), strict=True)] == good
    assert len(table.issues) == len(rows) - len(good)
