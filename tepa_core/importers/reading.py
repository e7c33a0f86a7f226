"""What a reader's child process gives back of a file: its evidence, or the beginning that a person looks at first."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from tepa_core.importers.base import ROW, Issue, Table
from tepa_core.importers.columns import ColumnMapping
from tepa_core.importers.mapping import EvidenceLog, apply, suggest
from tepa_core.importers.registry import open_log
from tepa_core.limits import Limits

__all__ = ["Beginning", "in_meaning", "read_beginning", "read_evidence"]

#: What a visitor's session holds of a file at most: cells, characters of them, and records that are given word by word
#: beside the reason why they cannot be read.
KEPT_CELLS: Final = 2_000_000
KEPT_TEXT: Final = 20_000_000
KEPT_RAW: Final = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """The first records of a file.

    Attributes
    ----------
    table
        What they are.
    records
        How many the whole file has, unreadable ones among them.
    """

    table: Table
    records: int


def read_evidence(
    path: Path, format: str, mapping: ColumnMapping | None, tz: str | None, guess: bool, limits: Limits
) -> tuple[EvidenceLog, ColumnMapping]:
    """Read a file into evidence, and say what its columns were taken for.

    Parameters
    ----------
    path, format, limits
        As for `open_log`.
    mapping, tz, guess
        As for `in_meaning`.

    Raises
    ------
    ImportRefused
        As `open_log` and `apply`.
    """
    table = open_log(path, format, limits)
    meaning = in_meaning(table, mapping, tz, guess)
    return apply(table, meaning, limits), meaning


def in_meaning(table: Table, mapping: ColumnMapping | None, tz: str | None, guess: bool) -> ColumnMapping:
    """Return what the columns of a table mean.

    Parameters
    ----------
    mapping
        What a person said.
    tz
        IANA name of the zone of times without an offset; that of the mapping when left out.
    guess
        Whether the fields that the mapping leaves out are found by the usual names of columns.
    """
    chosen = mapping or ColumnMapping(())
    if guess:
        chosen = suggest(table).updated(chosen)
    return chosen if tz is None else dataclasses.replace(chosen, tz=tz)


def read_beginning(path: Path, format: str, rows: int, limits: Limits) -> Beginning:
    """Read a whole file and keep its first `rows` records, fewer when there is much in them.

    Raises
    ------
    ImportRefused
        As `open_log`.
    """
    whole = open_log(path, format, limits)
    kept = min(rows, len(whole.frame), max(1, KEPT_CELLS // max(1, len(whole.columns))))
    size = np.zeros(kept, dtype=np.int64)
    for name in whole.columns:
        size += np.fromiter((len(cell) if cell else 0 for cell in whole.frame[name].iloc[:kept]), np.int64, kept)
    kept = max(1, int(np.searchsorted(np.cumsum(size), KEPT_TEXT, side="right")))
    # A copy, so that what is left out is not held by what is kept.
    frame = whole.frame.head(kept).copy()
    last = frame[ROW].iloc[-1] if kept < len(whole.frame) else None
    seen = [issue for issue in whole.issues if last is None or issue.row <= last][:rows]
    issues = tuple(issue if at < KEPT_RAW else Issue(issue.row, issue.reason, "…") for at, issue in enumerate(seen))
    table = dataclasses.replace(whole, frame=frame, issues=issues)
    return Beginning(table, len(whole.frame) + len(whole.issues))
