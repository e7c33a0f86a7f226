"""Real readers of real files: what an action of the executable stream does (paper section 5.1).

Two dialects of delimited text and JSON. Every reader returns typed rows or fails as its library fails.
"""

from __future__ import annotations

import csv
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd

#: One row of a file: order number, customer, amount, day.
Row = tuple[int, str, float, str]

COLUMNS = ("order", "customer", "amount", "day")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How delimited text separates fields and writes decimals."""

    delimiter: str
    decimal: str


COMMA = Dialect(",", ".")
SEMICOLON = Dialect(";", ",")


def write_delimited(path: Path, rows: Sequence[Row], dialect: Dialect) -> None:
    """Write rows as delimited text with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=dialect.delimiter)
        writer.writerow(COLUMNS)
        for order, customer, amount, day in rows:
            writer.writerow((order, customer, f"{amount:.2f}".replace(".", dialect.decimal), day))


def write_json(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as an array of JSON objects."""
    path.write_text(json.dumps([dict(zip(COLUMNS, row, strict=True)) for row in rows]), encoding="utf-8")


def read_with_csv(path: Path, dialect: Dialect) -> list[Row]:
    """Read with Python's csv module."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter, strict=True)
        header = tuple(next(reader))
        if header != COLUMNS:
            raise ValueError(f"expected the columns {', '.join(COLUMNS)}, found {len(header)}: {header[0]}")
        return [
            (int(order), customer, float(amount.replace(dialect.decimal, ".")), day)
            for order, customer, amount, day in reader
        ]


def read_with_pandas(path: Path, dialect: Dialect) -> list[Row]:
    """Read with pandas."""
    frame = pd.read_csv(path, sep=dialect.delimiter, decimal=dialect.decimal, dtype={"customer": str, "day": str})
    return [
        (int(row[0]), str(row[1]), float(row[2]), str(row[3]))
        for row in frame[list(COLUMNS)].itertuples(index=False, name=None)
    ]


def reader_of(folder: Path) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that can read the files of one folder, and reach nothing else."""
    connection = duckdb.connect(
        config={
            "threads": 1,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
        }
    )
    # What is allowed has to be said before the rest is forbidden.
    connection.execute("SET allowed_directories = $folder", {"folder": [str(folder)]})
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def read_with_duckdb(path: Path, dialect: Dialect, connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """Read with DuckDB's CSV reader; the connection is to a database in memory."""
    rows = connection.execute(
        """
        SELECT * FROM read_csv($path, header = true, auto_detect = false, delim = $delimiter, quote = '"',
                               decimal_separator = $decimal, columns = {
                                   'order': 'INTEGER', 'customer': 'VARCHAR', 'amount': 'DOUBLE', 'day': 'VARCHAR'})
        """,
        {"path": str(path), "delimiter": dialect.delimiter, "decimal": dialect.decimal},
    ).fetchall()
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def read_json(path: Path) -> list[Row]:
    """Read with Python's json module."""
    return [
        (item["order"], item["customer"], item["amount"], item["day"])
        for item in json.loads(path.read_text(encoding="utf-8"))
    ]


Reader = Callable[[Path], list[Row]]


def toolbox(connection: duckdb.DuckDBPyConnection) -> Mapping[str, tuple[tuple[Reader, ...], tuple[Reader, ...]]]:
    """Return what each of the two actions runs, by family of the task; several readers of one action take turns."""
    semicolon: tuple[Reader, ...] = (lambda path: read_with_pandas(path, SEMICOLON),)
    comma: tuple[Reader, ...] = (
        lambda path: read_with_csv(path, COMMA),
        lambda path: read_with_duckdb(path, COMMA, connection),
    )
    return {"csv": (comma, semicolon), "json": ((read_json,), semicolon)}


def attempt(reader: Reader, path: Path, expected: Sequence[Row]) -> tuple[bool, str | None]:
    """Run a reader on a file.

    Returns
    -------
    bool
        Whether it returned exactly the rows that were written.
    str or None
        What went wrong, in one line, with no path in it.
    """
    try:
        rows = reader(path)
    except Exception as error:  # noqa: BLE001, RUF100 - whatever a library raises on a foreign file is the outcome
        words = " ".join(str(error).replace(str(path), path.name).split())
        return False, textwrap.shorten(f"{type(error).__name__}: {words}", 200, placeholder=" …")
    if rows != list(expected):
        return False, f"{len(rows)} rows read differ from {len(expected)} rows written"
    return True, None
