from pathlib import Path

import pytest

from tepa_core.importers.base import ImportRefused, Table
from tepa_core.importers.registry import open_log


def read(tmp_path: Path, content: bytes | str, format: str = "auto") -> Table:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content.encode(errors="surrogatepass") if isinstance(content, str) else content)
    return open_log(path, format)


def values(table: Table) -> list[object]:
    return table.frame["value"].tolist()


def test_a_broken_line_is_reported_with_its_number_and_the_rest_is_read(tmp_path: Path) -> None:
    table = read(tmp_path, '{"value":"a"}\n{"value":"b"}\n{"value":\n{"value":"d"}\n')
    assert values(table) == ["a", "b", "d"]
    assert table.frame["__row__"].tolist() == [1, 2, 4]
    assert [(issue.row, issue.raw) for issue in table.issues] == [(3, '{"value":')]


def test_blank_lines_count_as_lines_but_not_as_records(tmp_path: Path) -> None:
    table = read(tmp_path, '\r\n{"value":"a"}\r\n\r\n[1]\r\n')
    assert table.frame["__row__"].tolist() == [2]
    assert [(issue.row, issue.reason) for issue in table.issues] == [(4, "the record is not a JSON object")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"007"', "007"),
        ('"NA"', "NA"),
        ('""', ""),
        ("null", None),
        ("true", "true"),
        ("false", "false"),
        ("1e5", "1e5"),
        ("1.10", "1.10"),
        ("-0", "-0"),
        ("12345678901234567890123", "12345678901234567890123"),
        ('{"b": [1.0, "1.0", null, true], "é": {}}', '{"b":[1.0,"1.0",null,true],"é":{}}'),
        ('"\\u00e9\\ud83d\\ude00"', "é😀"),
    ],
)
def test_how_a_value_reads(tmp_path: Path, written: str, expected: str | None) -> None:
    assert values(read(tmp_path, f'{{"value": {written}}}\n')) == [expected]
    assert values(read(tmp_path, f'[{{"value": {written}}}]')) == [expected]


def test_a_name_absent_from_a_line_is_missing(tmp_path: Path) -> None:
    table = read(tmp_path, '{"a":"1"}\n{"value":"2"}\n')
    assert table.columns == ("a", "value")
    assert values(table) == [None, "2"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"value":"a","value":"b"}', "the name 'value' occurs twice in one object"),
        (b'{"value":{"a":1,"a":2}}', "the name 'a' occurs twice in one object"),
        (b'{"value":"\\ud800"}', "the record holds half of a surrogate pair, which is no character"),
        (b'{"value":"\xff"}', "the line is not UTF-8 text"),
        (b"\0\0\0\0", "not valid JSON: Expecting value at character 1"),
        (b'{"value":' + b"[" * 100_000, "the record is nested too deeply"),
        (b'"text"', "the record is not a JSON object"),
    ],
)
def test_a_line_that_cannot_be_taken_costs_only_itself(tmp_path: Path, line: bytes, reason: str) -> None:
    table = read(tmp_path, b'{"value":"a"}\n' + line + b'\n{"value":"c"}')
    assert values(table) == ["a", "c"]
    assert [(issue.row, issue.reason) for issue in table.issues] == [(2, reason)]


def test_a_very_long_broken_line_is_cut_in_the_report(tmp_path: Path) -> None:
    table = read(tmp_path, '{"value":"a"}\n' + "x" * 100_000)
    assert len(table.issues[0].raw) == 2001


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert values(read(tmp_path, b'\xef\xbb\xbf{"value":"a"}')) == ["a"]
    assert values(read(tmp_path, b'\xef\xbb\xbf[{"value":"a"}]')) == ["a"]


@pytest.mark.parametrize("content", ["nothing\nhere\n", "[1]\n", '{\n "a": 1\n}\n', '"a"'])
def test_without_one_object_the_file_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ImportRefused, match="no JSON object"):
        read(tmp_path, content, "jsonl")


def test_an_array_of_objects_is_read_with_the_lines_of_its_elements(tmp_path: Path) -> None:
    table = read(tmp_path, '\n[\n {"value": "a"},\n 7, {"value":\n  "b"}\n , {"value": "c"}]\n')
    assert table.format == "json"
    assert values(table) == ["a", "b", "c"]
    assert table.frame["__row__"].tolist() == [3, 4, 6]
    assert [(issue.row, issue.raw) for issue in table.issues] == [(4, "7")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('[{"value": "a"},\n{"value" "b"}]', "line 2: Expecting ':' delimiter"),
        ('[{"value": "a"}\n{"value": "b"}]', "line 2: expected a comma"),
        ('[{"value": "a"},\n]', "line 2: a comma with no element"),
        ('[{"value": "a"}', "line 1: expected a comma or the closing bracket"),
        ('[{"value": "a"}]\n\n{}', "line 3: something follows"),
        ('[{"value":' + "[" * 100_000, "line 1: the element is nested too deeply"),
    ],
)
def test_a_broken_array_is_refused_with_its_line(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(ImportRefused, match=problem):
        read(tmp_path, content, "json")


def test_an_empty_array_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="no JSON object"):
        read(tmp_path, "[ ]")


def test_text_that_is_no_array_is_refused_as_one(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="opening bracket"):
        read(tmp_path, '"value"', "json")
