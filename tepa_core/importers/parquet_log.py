"""Parquet: typed columns turned into the text a person would have written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tepa_core.importers.base import ROW, ImportRefused, Table, check_names, clipped, digest, quoted
from tepa_core.limits import USUAL, Limits, bounded_table

__all__ = ["ParquetLog"]


@dataclass(frozen=True, slots=True)
class ParquetLog:
    """Reads a Parquet file; rows are numbered by record.

    Times become ISO 8601, with ``Z`` when the column has a zone and without an offset when it has none. Whole floats
    are written without ``.0``, as the integers they were before a missing value made them floats; NaN is missing.
    Nested columns become compact JSON text and bytes that are not UTF-8 become hexadecimal.
    """

    name: str = "parquet"
    extensions: tuple[str, ...] = (".parquet", ".pq")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Accept a file which begins with the Parquet magic."""
        return head.startswith(b"PAR1")

    def read(self, path: Path, limits: Limits = USUAL) -> Table:
        """Read the file.

        Raises
        ------
        ImportRefused
            It is damaged, has no rows, or a column has no readable text.
        LimitExceeded
            Too many rows or columns, or too much text.
        """
        limits.check_file(path)
        try:
            with pq.ParquetFile(path) as file:
                names = file.schema_arrow.names
                check_names(names, limits)
            cells = bounded_table(path, limits)
        except (pa.ArrowException, OSError) as error:
            raise ImportRefused(
                f"The Parquet file is damaged or cut off ({_first_line(error)}). Write or copy it again."
            ) from None
        if cells.num_rows == 0:
            raise ImportRefused("The Parquet file has columns but no rows, so there is nothing to load.")
        columns = {}
        for name in names:
            try:
                columns[name] = pd.Series(_as_text(cells.column(name)).to_numpy(), dtype=object)
            except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
                raise ImportRefused(
                    f"Column {quoted(name)} cannot be read as text ({_first_line(error)}). Drop it or write it as "
                    "a text column."
                ) from None
        frame = pd.DataFrame(columns)
        frame[ROW] = np.arange(1, cells.num_rows + 1, dtype=np.int64)
        return Table(self.name, frame, (), digest(path))


def _first_line(error: Exception) -> str:
    # Of what the library says, which may quote the file, no more than a sentence.
    return clipped((str(error).splitlines() or [type(error).__name__])[0], 120)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _as_text(column.cast(kind.value_type))
    if pa.types.is_floating(kind):
        if kind.bit_width == 16:
            column = column.cast(pa.float32())
        return pc.if_else(pc.is_nan(column), None, column.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        # Through the integer, which counts from the epoch in UTC: no zone database is asked.
        written = column.cast(pa.int64()).cast(pa.timestamp(kind.unit)).cast(pa.string())
        written = pc.replace_substring(written, " ", "T")
        return pc.binary_join_element_wise(written, "Z", "") if kind.tz else written
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        try:
            return column.cast(pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            cells = [None if cell is None else cell.hex() for cell in column.to_pylist()]
            return pa.chunked_array([cells], type=pa.string())
    if pa.types.is_nested(kind):
        cells = [None if cell is None else _json(cell) for cell in column.to_pylist()]
        return pa.chunked_array([cells], type=pa.string())
    if pa.types.is_duration(kind) or isinstance(kind, pa.BaseExtensionType):
        return pa.chunked_array(
            [[None if cell is None else str(cell) for cell in column.to_pylist()]], type=pa.string()
        )
    written = column.cast(pa.string())
    written.validate(full=True)
    return written


def _json(cell: object) -> str:
    return json.dumps(cell, ensure_ascii=False, separators=(",", ":"), default=str)
