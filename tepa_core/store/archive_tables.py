"""The tables of an exported run: the columns of each, their kinds and ranges."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tepa_core.limits import LimitExceeded, Limits, bounded_table
from tepa_core.store.archive_shapes import COUNTS, MOMENTS, TASKS, damaged

#: Tables that are stored as they are; precedents and transitions are derived and do not travel.
TABLES: Final = ("evidence", "phase", "episode", "truth", "trial", "question", "attribution", "import_issue")


@dataclass(frozen=True, slots=True)
class _Column:
    kind: pa.DataType
    nullable: bool = False
    low: int | None = None
    high: int | None = None
    #: Characters, for text; None stands for the limit of a label.
    longest: int | None = None


_TEXT, _SEED = _Column(pa.string()), _Column(pa.int32(), low=0, high=2**31 - 1)
_MAYBE = _Column(pa.string(), nullable=True)
_AT = _Column(pa.int64(), low=MOMENTS[0], high=MOMENTS[1])
_TASK = _Column(pa.int32(), low=TASKS[0], high=TASKS[1])
_NUMBER = _Column(pa.int32(), low=0, high=2**31 - 1)
_FLAG = _Column(pa.bool_())
_SENTENCE = _Column(pa.string(), longest=1_000_000)

_COLUMNS: Final[Mapping[str, Mapping[str, _Column]]] = {
    "evidence": {
        "method": _TEXT,
        "seed": _SEED,
        "seq": _Column(pa.int64(), low=0, high=COUNTS[1]),
        "occurred": _AT,
        "arrived": _AT,
        "subject": _TEXT,
        "key": _TEXT,
        "key_id": _TEXT,
        "value": _TEXT,
        "value_id": _TEXT,
        "supports": _FLAG,
        "text": _Column(pa.string(), nullable=True, longest=1_000_000),
        "phase": _MAYBE,
        "actor": _MAYBE,
        "source_ref": _MAYBE,
        "source_row": _Column(pa.int64(), nullable=True, low=0, high=COUNTS[1]),
        "admitted": _Column(pa.bool_(), nullable=True),
    },
    "phase": {"phase": _TEXT, "start_at": _AT, "end_at": _Column(pa.int64(), low=MOMENTS[0], high=MOMENTS[1] + 1)},
    "episode": {
        "method": _TEXT,
        "seed": _SEED,
        "t": _TASK,
        "phase": _TEXT,
        "key": _TEXT,
        "action": _TEXT,
        "success": _FLAG,
        "followed": _MAYBE,
        "retrieved": _Column(pa.string(), nullable=True, longest=1_000_000),
        "exposed": _Column(pa.bool_(), nullable=True),
        "size": _NUMBER,
    },
    "truth": {"seed": _SEED, "key": _TEXT, "value": _TEXT, "start_at": _AT, "end_at": _AT},
    "trial": {
        "method": _TEXT,
        "seed": _SEED,
        "t": _TASK,
        "key": _TEXT,
        "value": _TEXT,
        "number": _NUMBER,
        "kind": _TEXT,
        "success": _FLAG,
    },
    "question": {"seed": _SEED, "t": _TASK, "question": _NUMBER, "text": _SENTENCE, "gold": _SENTENCE},
    "attribution": {"method": _TEXT, "seed": _SEED, "question": _NUMBER, "attribution": _TEXT},
    "import_issue": {
        "source_row": _Column(pa.int64(), low=0, high=COUNTS[1]),
        "reason": _SENTENCE,
        "raw": _SENTENCE,
    },
}


def table_of(content: bytes, table: str, name: str, limits: Limits) -> pd.DataFrame:
    """Read one table and check its columns.

    Returns
    -------
    DataFrame
        With the columns of the schema's table of that name but for ``run_id``.

    Raises
    ------
    ArchiveRefused
        If a column lacks, is foreign, of another kind, or has a value out of range.
    LimitExceeded
        If it is too large.
    """
    try:
        found = bounded_table(io.BytesIO(content), limits)
        found.validate(full=True)
    except LimitExceeded:
        raise
    except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError, OverflowError):
        raise damaged(name, f"{table}.parquet cannot be read") from None
    wanted = _COLUMNS[table]
    if len(found.column_names) != len(wanted) or set(found.column_names) != set(wanted):
        raise damaged(name, f"{table}.parquet needs the columns {', '.join(wanted)}, each once, and no other")
    columns = {}
    for column, rules in wanted.items():
        cells = found.column(column)
        problem = _problem(cells, rules, limits)
        if problem:
            raise damaged(name, f"the column {column} of {table}.parquet {problem}")
        columns[column] = cells.cast(rules.kind)
    frame: pd.DataFrame = pa.table(columns).to_pandas()
    return frame


def _problem(cells: pa.ChunkedArray, rules: _Column, limits: Limits) -> str | None:
    """Say what is wrong with a column, as the end of a sentence."""
    if pa.types.is_null(cells.type):
        return None if rules.nullable or len(cells) == 0 else "lacks values"
    if cells.null_count and not rules.nullable:
        return "lacks values"
    if pa.types.is_string(rules.kind):
        if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
            return f"is no text but {cells.type}"[:60]
        longest = rules.longest or limits.label
        if (pc.max(pc.utf8_length(cells)).as_py() or 0) > longest:
            return f"has a text of more than {longest:,} characters"
        if pc.any(pc.match_substring(cells, "\0")).as_py():
            return "has a text with a NUL character"
        return None
    if pa.types.is_boolean(rules.kind):
        return None if pa.types.is_boolean(cells.type) else "is not yes or no"
    if not pa.types.is_integer(cells.type):
        return "has no whole numbers"
    bounds = pc.min_max(cells).as_py()
    if bounds["min"] is not None and not (rules.low <= bounds["min"] and bounds["max"] <= rules.high):
        return f"has a number that is not from {rules.low:,} to {rules.high:,}"
    return None
