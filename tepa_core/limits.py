"""How much of a foreign file is taken in: one place for every bound, and readers that count while they read.

What a file says of its own size may be a lie: an 843 KB Parquet file can hold one long text and point at it a million
times, and a zip of 2.7 MB can unpack to 10 GB. So sizes are counted from what has really been decoded, before anything
is copied once a row.
"""

from __future__ import annotations

import dataclasses
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: Names changed bounds, as in ``rows=5000000,seconds=300``.
LIMITS_VARIABLE: Final = "TEPA_LIMITS"

_MB: Final = 1_000_000
_ROWS_AT_ONCE: Final = 65_536
_NESTED_ROWS_AT_ONCE: Final = 256
_BYTES_AT_ONCE: Final = 16 * _MB


class LimitExceeded(ValueError):  # noqa: N818 - it says what happened, and its message is shown to people
    """A foreign file holds more than is taken in; the message says of what, how much is taken, and how to change it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one foreign file.

    Attributes
    ----------
    file_mb
        Size of the file, in millions of bytes.
    rows, columns, cells
        Of a table.
    name
        Characters of a column's name.
    label
        Characters of a user, key, value, phase, actor or source: what tells memories apart and stands in every list.
    cell_mb
        Size of any other text, in millions of bytes.
    record_mb
        Size of one line or record of a text file, in units of 1,048,576 bytes.
    text_mb
        Size of all text of a file once decoded, in millions of bytes.
    depth
        Levels of nested JSON.
    ratio
        How many times larger than in the file a member of a zip may come out; members below a million bytes may more.
    memory_mb, seconds
        What the process that reads a foreign file may take.
    """

    file_mb: int = 500
    rows: int = 850_000
    columns: int = 1_000
    cells: int = 20_000_000
    name: int = 200
    label: int = 10_000
    cell_mb: int = 1
    record_mb: int = 16
    text_mb: int = 250
    depth: int = 64
    ratio: int = 200
    memory_mb: int = 1_200
    seconds: int = 60

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"the limit {field.name} must be a whole number of at least 1, not {value!r}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Limits:
        """Return the bounds in force: the defaults, but for what ``TEPA_LIMITS`` names.

        Raises
        ------
        ValueError
            If it names no bound or gives no whole number.

        Examples
        --------
        >>> Limits.from_environment({"TEPA_LIMITS": "rows=5, seconds=300"}).rows
        5
        """
        given = (os.environ if environment is None else environment).get(LIMITS_VARIABLE, "")
        known = {field.name for field in dataclasses.fields(cls)}
        changed = {}
        for part in filter(None, (piece.strip() for piece in given.split(","))):
            name, _, number = (piece.strip() for piece in part.partition("="))
            if name not in known or not number.isdecimal():
                raise ValueError(
                    f"{LIMITS_VARIABLE} has {part[:40]!r} where NAME=NUMBER is expected; the names are "
                    f"{', '.join(sorted(known))}"
                )
            changed[name] = int(number)
        return cls(**changed)

    def refuse(self, what: str, bound: str) -> LimitExceeded:
        """Make the refusal of a file: what it has too much of, and which bound says so."""
        taken = getattr(self, bound)
        unit = " MB" if bound.endswith("_mb") else ""
        return LimitExceeded(
            f"{what}; at most {taken:,}{unit} is taken in. If the file is meant to be like that, raise the limit: "
            f"{LIMITS_VARIABLE}={bound}=NUMBER."
        )

    def check_file(self, path: Path) -> None:
        """Refuse a file that is larger than `file_mb`.

        Raises
        ------
        LimitExceeded
            If it is.
        """
        size = path.stat().st_size
        if size > self.file_mb * _MB:
            raise self.refuse(f"The file has {size / _MB:,.0f} MB", "file_mb")

    def check_text(self, path: Path) -> None:
        """Refuse a text file that is larger than a file may be, or than its text may come to.

        Raises
        ------
        LimitExceeded
            If it is.
        """
        self.check_file(path)
        size = path.stat().st_size
        if size > self.text_mb * _MB:
            raise self.refuse(f"The file has {size / _MB:,.0f} MB of text", "text_mb")

    def check_table(self, rows: int, columns: int) -> None:
        """Refuse a table with too many columns, rows or cells.

        Raises
        ------
        LimitExceeded
            If it has.
        """
        if columns > self.columns:
            raise self.refuse(f"The table has {columns:,} columns", "columns")
        if rows > self.rows:
            raise self.refuse("The table has too many rows", "rows")
        if rows * columns > self.cells:
            raise self.refuse("The table has too many cells", "cells")


#: The bounds where nobody changed any.
USUAL: Final = Limits()


def unpacked(file: zipfile.ZipFile, member: zipfile.ZipInfo, limits: Limits, before: int = 0) -> bytes:
    """Unpack one member of a zip, counting what comes out rather than what the zip says of itself.

    Parameters
    ----------
    before
        Bytes that members before it came to.

    Raises
    ------
    LimitExceeded
        If it, or all of them together, come to too much.
    """
    most = limits.text_mb * _MB - before
    thin = max(member.compress_size * limits.ratio, _MB)
    with file.open(member) as packed:
        content = packed.read(min(most, thin) + 1)
    if len(content) > most:
        raise limits.refuse("The members of the zip unpack to too much", "text_mb")
    if len(content) > thin:
        raise limits.refuse(f"A member of the zip is more than {limits.ratio:,} times as large unpacked", "ratio")
    return content


def bounded_table(source: IO[bytes] | Path, limits: Limits) -> pa.Table:
    """Read a Parquet file, piece by piece, as long as it stays within the bounds.

    Text columns are read as dictionaries, so that a text that a million rows point at is there once; how much the rows
    come to is counted before they are written out. What the file says of its own size only serves to refuse it sooner.

    Raises
    ------
    LimitExceeded
        If it has too many rows, columns or cells, or too much text, in one cell or in all.
    pyarrow.ArrowException, OSError
        If it is no Parquet file, or a damaged one.
    """
    with pq.ParquetFile(source) as probe:
        schema = probe.schema_arrow
        limits.check_table(probe.metadata.num_rows, len(schema.names))
        _check_chunks(probe.metadata, limits)
        texts, at_once = _leaves(probe.schema)
    parts: list[pa.Table] = []
    rows = size = 0
    if not isinstance(source, Path):
        source.seek(0)
    with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=at_once):
            rows += batch.num_rows
            limits.check_table(rows, batch.num_columns)
            size += sum(_size(column, limits) for column in batch.columns)
            if size > limits.text_mb * _MB:
                raise limits.refuse("The table has too much text", "text_mb")
            parts.append(pa.table([_written_out(column) for column in batch.columns], names=batch.schema.names))
    if not parts:
        return schema.empty_table()
    return pa.concat_tables(parts)


def _leaves(schema: pq.ParquetSchema) -> tuple[list[str], int]:
    """Find the columns that hold text, and how many rows to read at a time."""
    texts, width, rows = [], 1, _ROWS_AT_ONCE
    for column in map(schema.column, range(len(schema))):
        width += max(8, column.length)
        if column.path != column.name:
            # The reader makes no dictionaries inside lists and records, so a text is there once a row.
            rows = _NESTED_ROWS_AT_ONCE
        elif column.physical_type == "BYTE_ARRAY":
            texts.append(column.path)
    return texts, max(1, min(rows, _BYTES_AT_ONCE // width))


def _check_chunks(metadata: pq.FileMetaData, limits: Limits) -> None:
    """Refuse what a file itself says it has too much of: elements of its lists, or bytes of its cells."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.num_values > limits.cells:
                raise limits.refuse("The table has too many cells", "cells")
            # Values that are larger than a cell on the average: one of them is.
            if chunk.total_uncompressed_size > max(chunk.num_values, 1) * limits.cell_mb * _MB + _MB:
                raise limits.refuse("A cell of the table is too large", "cell_mb")


def _size(column: pa.Array, limits: Limits) -> int:
    """Bytes that a column's rows come to, written out; refuses a cell that is too large."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    words = column.dictionary
    if len(words) == 0:
        return 0
    if not _is_text(words.type):
        return int(words.take(column.indices).nbytes)
    lengths = pc.binary_length(words)
    if (pc.max(lengths).as_py() or 0) > limits.cell_mb * _MB:
        raise limits.refuse("A cell of the table is too large", "cell_mb")
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def _written_out(column: pa.Array) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
