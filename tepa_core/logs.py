"""From a log file to a stored run: the one place where importers and the database meet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pandas as pd

from tepa_core.experiment import Progress
from tepa_core.importers import Beginning, ColumnMapping, EvidenceLog, ImportRefused, read_beginning, read_evidence
from tepa_core.isolated import ReadingFailed, Waiting, measured
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.limits import Limits
from tepa_core.store import LogImport, Store, keep_log, queries
from tepa_core.store.grown import Kinship

__all__ = ["ImportReport", "first_records", "import_log", "preview"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class ImportReport:
    """What an import did.

    Attributes
    ----------
    run_id
        The stored run.
    format
        Name of the importer that read the file.
    read, loaded, rejected
        Counts of records; ``read == loaded + rejected``.
    issues
        ``row``, ``reason``, ``raw`` of every rejected record.
    badges
        Counts of what a reader should know: those of `tepa_core.importers.EvidenceLog`, and ``batch_revocation``,
        the precedents revoked at one instant with at least two others.
    precedents
        How many precedents the log makes.
    states
        Precedents by state; deprecated ones count as active.
    elapsed
        Seconds from opening the file to the committed run.
    mapping, unused
        What the columns were taken for, and those that mean nothing here.
    kinship
        What the file is to the runs that were here, as sentences; empty where there was none of its name.
    new_rows
        Evidence items that the run it continues did not have; 0 where it continues none.
    """

    run_id: str
    format: str
    read: int
    loaded: int
    rejected: int
    issues: pd.DataFrame
    badges: Mapping[str, int]
    precedents: int
    states: Mapping[str, int]
    elapsed: float
    mapping: ColumnMapping
    unused: tuple[str, ...]
    kinship: str = ""
    new_rows: int = 0


def preview(
    path: Path,
    *,
    format: str = "auto",
    mapping: ColumnMapping | None = None,
    tz: str | None = None,
    guess: bool = True,
) -> EvidenceLog:
    """Read a log file into canonical evidence and issues; nothing is stored.

    Parameters
    ----------
    path
        The file.
    format
        Name of an importer, or ``auto`` to detect it.
    mapping
        Which column holds which field.
    tz
        IANA name of the zone of times without an offset; that of the mapping when left out.
    guess
        Fields that the mapping leaves out are found by the usual names of columns. False takes the mapping as it is.

    Raises
    ------
    ImportRefused
        If the file cannot be read, or a required field has no column.
    """
    limits = Limits.from_environment()
    return _in_child(limits, partial(read_evidence, path, format, mapping, tz, guess, limits))[0]


def first_records(path: Path, rows: int, waiting: Waiting | None = None) -> Beginning:
    """Read a log file as text and keep its first records, enough to see what its columns mean.

    Parameters
    ----------
    rows
        How many records are kept at most; fewer when there is much in them.
    waiting
        Called again and again in the meantime; what it raises ends the reading.

    Raises
    ------
    ImportRefused
        If it cannot be read, or takes more than the limits allow.
    """
    limits = Limits.from_environment()
    return _in_child(limits, partial(read_beginning, path, "auto", rows, limits), waiting)


def _in_child(limits: Limits, call: partial[R], waiting: Waiting | None = None) -> R:
    """Have a file read in a process of its own; the refusal of that is a refusal of the file."""
    try:
        return measured(limits, call, waiting)[0]
    except ReadingFailed as error:
        raise ImportRefused(str(error)) from None


def import_log(
    store: Store,
    path: Path,
    *,
    format: str = "auto",
    mapping: ColumnMapping | None = None,
    preset: str = "default",
    thresholds: Thresholds | None = None,
    name: str | None = None,
    source: str | None = None,
    tz: str | None = None,
    guess: bool = True,
    progress: Progress | None = None,
) -> ImportReport:
    """Read a log file and store it with its precedents, all or nothing.

    The same bytes under the same mapping and thresholds are the same run, and replace themselves. A file that grew,
    with every earlier row in it, continues its run, which keeps its id and its decisions.

    Parameters
    ----------
    store
        Where the run is kept.
    path, format, mapping, tz, guess
        As for `preview`.
    preset
        Name of the thresholds in `tepa_core.lifecycle.PRESETS`.
    thresholds
        Take the place of the preset.
    name
        Of the run, for people; the name of the file when left out.
    source
        Name of the file as a person knows it, for uploads that lie under another name.
    progress
        Called with the fraction done and a sentence; an exception raised in it before 1 stops the import, nothing is
        kept.

    Raises
    ------
    ImportRefused
        If the file cannot be read, a required field has no column, or no record can be loaded.
    ValueError
        If there is no such preset.
    """
    began = time.perf_counter()
    if thresholds is None:
        if preset not in PRESETS:
            raise ValueError(f"there is no preset {preset!r}; choose one of: {', '.join(PRESETS)}")
        thresholds = PRESETS[preset]
    report = progress or _silent
    known = source or path.name
    report(0.0, f"Reading {known}")
    limits = Limits.from_environment()
    call = partial(read_evidence, path, format, mapping, tz, guess, limits)
    # An exception in the report, as when a page is left, ends the child that reads.
    log, meaning = _in_child(limits, call, lambda: report(0.0, f"Reading {known}"))
    report(0.3, f"Checked {log.read:,} records")
    if log.loaded == 0:
        first = log.issues.iloc[0]
        raise ImportRefused(
            f"None of the {log.read:,} records of {known} can be loaded; the first, in row {first['row']}: "
            f"{first['reason']}. Correct the file or the mapping of its columns; nothing was written."
        )
    report(0.6, f"Replaying and storing {log.loaded:,} evidence items")
    content = LogImport(
        source=known,
        digest=log.digest,
        format=log.format,
        mapping=meaning.described(),
        evidence=log.evidence,
        issues=log.issues,
        read=log.read,
        loaded=log.loaded,
        rejected=log.rejected,
        badges=log.badges,
    )
    kept = keep_log(store, content, thresholds, name, time.perf_counter() - began)
    run_id = kept.run_id
    states = queries.state_counts(store, run_id)
    badges = queries.run_info(store, run_id).badges
    elapsed = time.perf_counter() - began
    report(1.0, f"Stored {log.loaded:,} of {log.read:,} records")
    return ImportReport(
        run_id,
        log.format,
        log.read,
        log.loaded,
        log.rejected,
        log.issues,
        badges,
        sum(states.values()),
        states,
        elapsed,
        log.mapping,
        log.unused,
        _told(kept.kin, known),
        kept.kin.new_rows,
    )


def _told(kin: Kinship, source: str) -> str:
    """Say what a file is to the runs that were here; nothing where there was none of its name."""
    if kin.held:
        return (
            f"Run {kin.run_id} was loaded from this file before and has grown since; it has all of its rows, so "
            "nothing was changed."
        )
    if kin.run_id is not None and kin.new_rows:
        rows = f"{kin.new_rows:,} new row{'' if kin.new_rows == 1 else 's'}"
        return f"It continues run {kin.run_id}: {rows}; its decisions are kept."
    if kin.beside is not None:
        rows = "one row" if kin.missing == 1 else f"{kin.missing:,} rows"
        return (
            f"A new run: {rows} of run {kin.beside}, from a file called {source} too, are missing here or changed, so "
            "it does not continue that run. Decisions stay there."
        )
    return ""


def _silent(fraction: float, sentence: str) -> None:
    """Report to nobody."""
