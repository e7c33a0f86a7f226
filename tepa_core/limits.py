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


class LimitExceeded(ValueError):  # noqa: N818 - it says what happened, and its message is shown to people
    """A foreign file holds more than is taken in; the message says of what, how much is taken, and how to change it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one foreign file.

    Attributes
    ----------
    file_mb
        Size of the file, in millions of bytes.
    rows, columns
        Of a table.
    label
        Characters of a user, key, value, phase, actor or source: what tells memories apart and stands in every list.
    cell_mb
        Size of any other text, in millions of bytes.
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
    rows: int = 1_000_000
    columns: int = 1_000
    label: int = 10_000
    cell_mb: int = 1
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
    """Read a Parquet file, group by group, as long as it stays within the bounds.

    Text columns are read as dictionaries, so that a text that a million rows point at is there once; how much the rows
    come to is counted before they are written out.

    Raises
    ------
    LimitExceeded
        If it has too many rows or columns, or too much text, in one cell or in all.
    pyarrow.ArrowException, OSError
        If it is no Parquet file, or a damaged one.
    """
    with pq.ParquetFile(source) as probe:
        schema = probe.schema_arrow
    if len(schema.names) > limits.columns:
        raise limits.refuse(f"The table has {len(schema.names):,} columns", "columns")
    texts = [field.name for field in schema if _is_text(field.type)]
    parts: list[pa.Table] = []
    rows = size = 0
    if not isinstance(source, Path):
        source.seek(0)
    with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
            rows += batch.num_rows
            if rows > limits.rows:
                raise limits.refuse("The table has too many rows", "rows")
            size += sum(_size(column, limits) for column in batch.columns)
            if size > limits.text_mb * _MB:
                raise limits.refuse("The table has too much text", "text_mb")
            parts.append(pa.table([_written_out(column) for column in batch.columns], names=batch.schema.names))
    if not parts:
        return schema.empty_table()
    return pa.concat_tables(parts)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _size(column: pa.Array, limits: Limits) -> int:
    """Bytes that a column's rows come to, written out; refuses a cell that is too large."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    words = column.dictionary
    if len(words) == 0:
        return 0
    lengths = pc.binary_length(words)
    if (pc.max(lengths).as_py() or 0) > limits.cell_mb * _MB:
        raise limits.refuse("A cell of the table is too large", "cell_mb")
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _written_out(column: pa.Array) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
