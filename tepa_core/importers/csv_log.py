"""Delimited text: comma, semicolon or tab, every cell read as text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from tepa_core.importers.base import (
    ROW,
    ImportRefused,
    Issue,
    Measure,
    Table,
    check_names,
    clipped,
    kind_of,
    record_bytes,
    scan_text,
)
from tepa_core.limits import USUAL, Limits

__all__ = ["CsvLog"]

_DELIMITERS = (",", ";", "\t", "|")
#: First line of a file that names its delimiter for spreadsheets.
_NAMED = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CsvLog:
    """Reads comma, semicolon, tab or bar separated text in UTF-8, with or without byte order mark.

    An unquoted empty cell is missing and a quoted one (``""``) is the empty text. Quoted cells may span lines. A row
    whose number of cells differs from the header becomes an issue and the rest is read; so does one with text behind a
    closing quote, such as a quote that is escaped with a backslash. Above the header, lines that begin with ``#`` and a
    line such as ``sep=;`` are passed over.
    """

    name: str = "csv"
    extensions: tuple[str, ...] = (".csv", ".tsv", ".txt")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Accept any text; the registry asks the stricter formats first."""
        return b"\0" not in head and kind_of(head) is None

    def read(self, path: Path, limits: Limits = USUAL) -> Table:
        """Read the file.

        Raises
        ------
        ImportRefused
            Not UTF-8, two columns of one name, a quote that is never closed, or no row below the header.
        LimitExceeded
            Too many rows or columns, or too much text, in one record or in all.
        """
        digest = scan_text(path, whole=True, limits=limits)
        layout = _layout(path, limits)
        check_names(layout.names, limits)
        limits.check_table(len(layout.starts), len(layout.names))
        frame, issues = _cells(path, layout)
        return Table(self.name, frame, issues, digest)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    names: tuple[str, ...]
    delimiter: str
    body: int  # byte offset of the first record below the header
    starts: NDArray[np.int64]  # (records,) physical line on which each record below the header begins
    longest: int  # bytes of the longest record
    broken: tuple[tuple[int, int, int], ...]  # line, begin and end in bytes of records with text behind a quote


def _layout(path: Path, limits: Limits) -> _Layout:
    """Find the header, and the physical line and size of each record.

    The CSV reader counts records, a person looks for lines; with quoted line ends and blank lines the two differ.
    """
    delimiter = ""
    header = ""
    body = offset = begun = begins_at = longest = 0
    inside = False
    starts: list[int] = []
    measure = Measure(limits)
    most = record_bytes(limits)
    broken: list[tuple[int, int, int]] = []
    preferred = ""
    # Latin-1 maps every byte to one character, so positions are bytes and no UTF-8 sequence looks like a delimiter.
    with path.open(encoding="latin-1", newline="") as lines:
        if lines.read(len(_BOM)).encode("latin-1") == _BOM:
            offset = len(_BOM)
        else:
            lines.seek(0)
        for number, line in enumerate(lines, start=1):
            blank = not inside and not line.rstrip("\r\n")
            if not inside:
                begun, begins_at = number, offset
            above = not delimiter and not inside
            named = _NAMED.fullmatch(line) if above else None
            if named or (above and line.startswith("#")):
                preferred = named[1] if named else preferred
                offset += len(line)
                continue
            if not blank and not delimiter:
                delimiter = preferred or max(_DELIMITERS, key=lambda mark: _outside_quotes(line, mark))
            offset += len(line)
            if offset - begins_at > most:
                # One record over many lines, none of which is too long by itself.
                raise ImportRefused(
                    f"The record that begins on line {begun} is longer than {limits.record_mb} MB, which no log entry "
                    "should be. Check "
                    "whether a quote is left open there, and split or remove the record."
                )
            if blank:
                continue
            ends_inside = _ends_inside_quotes(line, delimiter, inside)
            if ends_inside is None and body != 0:
                # Where such a record ends nobody knows: its line is left out, and the next one is looked at anew.
                broken.append((begun, begins_at, offset))
                inside = False
                continue
            inside = bool(ends_inside)
            if body == 0:
                header += line
                body = 0 if inside else offset
            elif not inside:
                starts.append(begun)
                longest = max(longest, offset - begins_at)
                measure.add(1, offset - begins_at)
    if inside:
        raise ImportRefused(
            f'A quote (") opened in the record on line {begun} is never closed, so the rest of the file would be one '
            "cell. Close the quote, or double it if it belongs to the text."
        )
    if not header:
        raise ImportRefused("The file holds only blank lines. Choose a file with a header and one entry per line.")
    if not starts and broken:
        raise ImportRefused(f"No row of the file can be read; on line {broken[0][0]}, {_BROKEN}.")
    if not starts:
        raise ImportRefused("The file has a header but no rows below it, so there is nothing to load.")
    lines_of = np.asarray(starts, dtype=np.int64)
    return _Layout(_names(header, delimiter), delimiter, body, lines_of, longest, tuple(broken))


_BROKEN = (
    "text follows a closing quote, so where the cell ends is a guess. A quote inside a cell is written twice, not with "
    "a backslash"
)


def _outside_quotes(line: str, mark: str) -> int:
    return sum(part.count(mark) for part in line.split('"')[::2])


def _ends_inside_quotes(line: str, delimiter: str, inside: bool) -> bool | None:
    """Follow the quotes of one physical line; a quote opens a cell only at the very start of the cell.

    Returns
    -------
    bool or None
        Whether the line ends inside a quoted cell; None when text follows a closing quote.
    """
    if '"' not in line:
        return inside
    at = 0
    while True:
        if not inside:
            if line.startswith('"', at):
                inside = True
                at += 1
            else:
                at = line.find(delimiter, at) + 1
                if at == 0:
                    return False
        else:
            at = line.find('"', at) + 1
            if at == 0:
                return True
            if line.startswith('"', at):
                at += 1
            else:
                inside = False
                if line[at : at + 1] not in (delimiter, "\r", "\n", ""):
                    return None
                at = line.find(delimiter, at) + 1
                if at == 0:
                    return False


def _names(header: str, delimiter: str) -> tuple[str, ...]:
    text = header.encode("latin-1").decode("utf-8")
    try:
        cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise ImportRefused(
            f"The header cannot be read ({error}). Check that the first line names the columns."
        ) from None
    return tuple(cell.strip() or f"column_{position}" for position, cell in enumerate(cells, start=1))


class _Ended(io.RawIOBase):
    """The rest of a file without some stretches of it, and with one more line end.

    Without the line end the reader takes a missing last cell for an empty text.
    """

    def __init__(self, file: BinaryIO, left_out: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self._file = file
        self._left_out = list(left_out)
        self._ended = False

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the file, then from the line end."""
        view = memoryview(buffer)
        if self._left_out and self._file.tell() == self._left_out[0][0]:
            self._file.seek(self._left_out.pop(0)[1])
            return self.readinto(buffer)
        most = min(len(view), self._left_out[0][0] - self._file.tell()) if self._left_out else len(view)
        piece = self._file.read(most)
        if not piece and not self._ended:
            self._ended = True
            piece = b"\n"
        view[: len(piece)] = piece
        return len(piece)


def _cells(path: Path, layout: _Layout) -> tuple[pd.DataFrame, tuple[Issue, ...]]:
    issues: list[Issue] = []
    kept = np.ones(len(layout.starts), dtype=bool)

    def reject(row: pacsv.InvalidRow) -> str:
        record = row.number - 1
        kept[record] = False
        found = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
        reason = f"the row has {found} where the header has {row.expected_columns}"
        issues.append(Issue(int(layout.starts[record]), reason, clipped(row.text)))
        return "skip"

    with path.open("rb") as file:
        file.seek(layout.body)
        cells = pacsv.read_csv(
            _Ended(file, [(begin, end) for _, begin, end in layout.broken]),
            # One thread: only then does the reader number the rows it hands to the callback.
            read_options=pacsv.ReadOptions(
                column_names=list(layout.names), use_threads=False, block_size=max(4 * 1024 * 1024, 2 * layout.longest)
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=reject
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(layout.names, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
    with path.open("rb") as file:
        for line, begin, end in layout.broken:
            file.seek(begin)
            issues.append(Issue(line, _BROKEN, clipped(file.read(min(end - begin, 8000)).decode(errors="replace"))))
    frame = pd.DataFrame({name: pd.Series(cells.column(name).to_numpy(), dtype=object) for name in layout.names})
    frame[ROW] = layout.starts[kept]
    return frame, tuple(issues)
