"""DuckDB as a tool of the executable stream: it reads the files that it is given, and nothing else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tepa_core.streams import file_tools

ROWS = [(1, "Baker, Ltd", 1.5, "2025-03-01"), (2, "Chen; Wu", 20.25, "2025-03-02")]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    file_tools.write_delimited(folder / "task.csv", ROWS, file_tools.COMMA)
    file_tools.write_delimited(tmp_path / "secret.csv", ROWS, file_tools.COMMA)
    return folder


def test_it_reads_the_folder_it_is_given(given: Path) -> None:
    with file_tools.reader_of(given) as connection:
        assert file_tools.read_with_duckdb(given / "task.csv", file_tools.COMMA, connection) == ROWS


@pytest.mark.parametrize(
    "statement",
    [
        "FROM read_text('{outside}/secret.csv')",
        "FROM read_text('{given}/../secret.csv')",
        "COPY (SELECT 1) TO '{outside}/out.csv'",
        "ATTACH '{outside}/out.duckdb' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_directories = ['{outside}']",
        "SET threads = 4",
    ],
)
def test_it_reaches_nothing_else(given: Path, statement: str) -> None:
    with (
        file_tools.reader_of(given) as connection,
        pytest.raises(duckdb.Error, match=r"disabled|locked"),
    ):
        connection.execute(statement.format(given=given, outside=given.parent))
    assert {path.name for path in given.parent.iterdir()} == {"given", "secret.csv"}
