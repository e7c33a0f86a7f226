"""The canonical evidence rows that follow from a file and the meaning of its columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tepa_core.csvsafe import to_safe_csv
from tepa_core.importers.base import ROW, ImportRefused, Issue, Table, clipped, quoted
from tepa_core.importers.columns import (
    FIELDS,
    REQUIRED,
    TEMPLATE_CSV,
    ColumnMapping,
    asked_about,
    template_parts,
    zone_of,
)
from tepa_core.importers.identity import canonical, cleaned, skeleton
from tepa_core.importers.outcomes import known, offered
from tepa_core.importers.times import NOT_A_TIME, Instant, instant
from tepa_core.inert import one_line
from tepa_core.limits import USUAL, Limits

__all__ = [
    "FIELDS",
    "REQUIRED",
    "TEMPLATE_CSV",
    "ColumnMapping",
    "EvidenceLog",
    "apply",
    "issues_csv",
    "suggest",
    "unknown_outcomes",
]

_DAY = 24 * 60 * 60 * 1_000_000
_SECOND = 1_000_000

#: Cells of a column of deletions or ends that say nothing.
_EMPTY = frozenset({"", "0", "0.0", "false", "no", "n", "f", "none", "null", "nan"})

#: Words of the event column: what a row does to a memory.
_ASSERTS = frozenset(
    {"add", "added", "create", "created", "insert", "update", "updated", "upsert", "set", "none", "noop"}
)
_DELETES = frozenset({"delete", "deleted", "remove", "removed", "expire", "expired", "invalidate", "invalidated"})


@dataclass(frozen=True, slots=True, eq=False)
class EvidenceLog:
    """Canonical evidence, ready to be stored.

    Attributes
    ----------
    format : str
        Name of the importer which read the file.
    evidence : DataFrame
        One row per loaded record, in source order: ``seq`` (int64, from 0), ``source_row`` (int64, as in
        ``Issue.row``), ``event_time`` and ``ingested_at`` (datetime64[us, UTC]; the latter NaT when there is none),
        ``subject`` ("" when unknown), ``key`` (in the spelling of its earliest row), ``key_id`` (canonical), ``value``
        (as in the file), ``value_id`` (canonical), ``supports`` (bool), and ``text``, ``phase``, ``actor``,
        ``source_ref`` (None when missing). Text columns have dtype object.
    issues : DataFrame
        ``row`` (int64), ``reason`` and ``raw`` of every rejected record, by row.
    badges : dict of str to int
        How many loaded rows have a peculiarity; only those above zero. ``missing_user``: no user. ``naive_time``: a
        time without offset, read in the mapping's zone. ``partial_time``: a month or year alone, which stands for its
        first day. ``finer_time``: written finer than microseconds, and cut. ``time_from_order``: no time; the order of
        the file stands for it. ``tied_time``: another row of the same subject, key and time has another value or the
        opposite outcome, so file order decides. ``late_arrival``: arrived more than a day after the event.
        ``deletion``: the row says that the memory was deleted, so it refutes the value. ``end_of_validity``: the value
        ceased to hold, which is evidence against it at that time. ``end_ahead``: it will cease to hold, later than now.
        ``repeated_source``: says again what another row of the same source says; counted once. ``lookalike``: looks
        like another value, key or user of the log and is not merged with it.
    read, loaded, rejected : int
        Records; ``read == loaded + rejected``. A record gives one item of evidence, none when it repeats another, two
        when it says that its value ended.
    mapping : ColumnMapping
        As it was taken.
    unused : tuple of str
        Columns of the file that mean nothing here.
    digest : str
        SHA-256 of the file's bytes, in hexadecimal.
    """

    format: str
    evidence: pd.DataFrame
    issues: pd.DataFrame
    badges: dict[str, int]
    read: int
    loaded: int
    rejected: int
    digest: str
    mapping: ColumnMapping
    unused: tuple[str, ...]


_Cells = NDArray[np.object_]
_Flags = NDArray[np.bool_]
_Micros = NDArray[np.int64]


def suggest(table: Table) -> ColumnMapping:
    """Guess what the columns of a file mean: by their usual names, and for events by their words too."""
    guess = ColumnMapping.suggest(table.columns)
    column = guess.column("event")
    if column is not None:
        words = {text.strip().casefold() for text in _distinct(table.frame[column].to_numpy(dtype=object))[1]}
        if not words <= _ASSERTS | _DELETES | {""}:
            return guess.without("event")
    return guess


def unknown_outcomes(table: Table, mapping: ColumnMapping) -> list[str]:
    """List the words of the outcome column that nothing is known of, in order of their first row."""
    column = mapping.column("outcome")
    if column is None:
        return []
    words = [text.strip() for text in _distinct(table.frame[column].to_numpy(dtype=object))[1]]
    return list(dict.fromkeys(word for word in words if word and known(word) is None))


def apply(table: Table, mapping: ColumnMapping, limits: Limits = USUAL, now: datetime | None = None) -> EvidenceLog:
    """Turn the rows of a file into canonical evidence.

    A row without a time, key or value, with a time that does not exist, or with an outcome that is neither yes nor no
    is rejected with every reason; the others are loaded. An empty text is a value, a missing one is not.

    Parameters
    ----------
    table : Table
        What :func:`tepa_core.importers.open_log` returned.
    mapping : ColumnMapping
        What its columns mean.
    limits : Limits
        A row with a longer user, key, value, phase, actor, source or text than these is rejected.
    now : datetime, optional
        What ends later than this has not ended; by default the present.

    Returns
    -------
    EvidenceLog
        Rows, issues and counts. Nothing in it depends on the order of the rows but ``seq``.

    Raises
    ------
    ImportRefused
        A required field has no column, the mapping names columns which the file does not have, or a column that
        changes what a row means is neither mapped nor left out on purpose.
    """
    _check_columns(table, mapping)
    rows = _Rows(table.frame, mapping, _Reasons(len(table.frame)))
    evidence, counts = _evidence(rows, limits, now or datetime.now(UTC))
    issues = sorted([*table.issues, *_issues(table, rows.reasons)], key=lambda issue: issue.row)
    return EvidenceLog(
        format=table.format,
        evidence=evidence,
        issues=_issue_frame(issues),
        badges={badge: int(count) for badge, count in counts.items() if count},
        read=len(table.frame) + len(table.issues),
        loaded=int((~rows.reasons.rejected).sum()),
        rejected=len(issues),
        digest=table.digest,
        mapping=mapping,
        unused=tuple(mapping.unused(table.columns)),
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a file, with what their columns mean and why some are rejected."""

    frame: pd.DataFrame
    mapping: ColumnMapping
    reasons: _Reasons

    def cells(self, field: str) -> _Cells | None:
        """Cells of a field, shape (rows,); None when no column holds it."""
        column = self.mapping.column(field)
        return None if column is None else self.frame[column].to_numpy(dtype=object)

    def required(self, field: str) -> _Cells:
        found = self.cells(field)
        return _absent(len(self.frame)) if found is None else found


def _evidence(rows: _Rows, limits: Limits, now: datetime) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the evidence and the counts of badges."""
    size, reasons = len(rows.frame), rows.reasons
    times = _times(rows)
    key = _keys(rows.frame, rows.mapping, reasons)
    value = rows.required("value")
    reasons.add(pd.isna(value), "the value is missing")
    supports = _outcomes(rows.cells("outcome"), size, reasons, dict(rows.mapping.outcomes))
    deleted = _deleted(rows)
    subject, unknown = _subjects(rows.cells("user"), size)
    for field, cells in (("user", rows.cells("user")), ("key", key), ("value", value), ("text", rows.cells("text"))):
        _check_length(cells, field, limits.cell_mb * 1_000_000 if field == "text" else limits.label, reasons)
    for field in ("phase", "actor", "source_ref"):
        _check_length(rows.cells(field), field, limits.label, reasons)

    kept = ~reasons.rejected
    evidence = pd.DataFrame({"seq": np.arange(kept.sum(), dtype=np.int64)})
    evidence["source_row"] = rows.frame[ROW].to_numpy(dtype=np.int64)[kept]
    evidence["event_time"] = _utc(times.event[kept])
    evidence["ingested_at"] = _utc(times.arrival[kept])
    written = rows.cells("user")
    if written is not None:
        # Who is who goes by the cleaned text; what is shown is what the earliest row of each wrote.
        spelled = _earliest_spelling(_stripped(written[kept]), subject[kept], times.event[kept])
        subject[kept] = np.where(subject[kept] == "", "", spelled)
    evidence["subject"] = _texts(subject[kept])
    key_id = _canonical(key[kept])
    evidence["key"] = _texts(_earliest_spelling(key[kept], key_id, times.event[kept]))
    evidence["key_id"] = _texts(key_id)
    evidence["value"] = _texts(value[kept])
    evidence["value_id"] = _texts(_canonical(value[kept]))
    evidence["supports"] = supports[kept] & ~deleted[kept]
    for field in ("text", "phase", "actor", "source_ref"):
        found = rows.cells(field)
        evidence[field] = _texts(_absent(len(evidence)) if found is None else found[kept])

    ends = np.where(times.ends[kept] > _micros(now), NOT_A_TIME, times.ends[kept])
    late = (times.arrival != NOT_A_TIME) & (
        times.arrival - np.where(times.arrival == NOT_A_TIME, 0, times.event) > _DAY
    )
    repeated = _repeated(evidence)
    counts = {
        "missing_user": unknown[kept].sum(),
        "naive_time": times.naive[kept].sum(),
        "partial_time": times.partial[kept].sum(),
        "finer_time": times.finer[kept].sum(),
        "time_from_order": kept.sum() if rows.mapping.order == "file" else 0,
        "late_arrival": late[kept].sum(),
        "deletion": deleted[kept].sum(),
        "end_of_validity": (ends != NOT_A_TIME).sum(),
        "end_ahead": (times.ends[kept] != ends).sum(),
        "repeated_source": repeated.sum(),
        "lookalike": _lookalikes(evidence).sum(),
    }
    whole = _with_ends(evidence[~repeated], ends[~repeated])
    return whole, counts | {"tied_time": _tied(whole).sum()}


@dataclass(frozen=True, slots=True)
class _Times:
    """Moments of rows in microseconds since 1970 UTC, `NOT_A_TIME` where there is none, each of shape (rows,)."""

    event: _Micros
    arrival: _Micros
    ends: _Micros
    naive: _Flags
    partial: _Flags
    finer: _Flags


def _times(rows: _Rows) -> _Times:
    size, zone = len(rows.frame), zone_of(rows.mapping.tz)

    def read(field: str, what: str, *, needed: bool = False) -> _Read:
        return _instants(rows.cells(field), zone, what, rows.reasons, needed=needed, rows=size)

    if rows.mapping.order == "file":
        event = _Read.none(size)
        event.micros[:] = np.arange(size, dtype=np.int64) * _SECOND
    else:
        event = read("ts", "time", needed=True)
    arrival, changed, ends = (
        read("ingested_at", "arrival time"),
        read("changed_at", "time of the change"),
        read("ends_at", "time of the end"),
    )
    happened = np.where(changed.micros == NOT_A_TIME, event.micros, changed.micros)
    rows.reasons.add(
        (ends.micros != NOT_A_TIME) & (happened != NOT_A_TIME) & (ends.micros < happened), "it ends before it begins"
    )
    parts = (event, arrival, changed, ends)
    return _Times(
        happened,
        arrival.micros,
        ends.micros,
        *(np.logical_or.reduce([getattr(part, name) for part in parts]) for name in ("naive", "partial", "finer")),
    )


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * _SECOND


def issues_csv(issues: pd.DataFrame) -> str:
    """Write rejected records (columns ``row``, ``reason``, ``raw``) as CSV that a spreadsheet does not run."""
    return to_safe_csv(issues[["row", "reason", "raw"]])


class _Reasons:
    """Why rows are rejected: one row can have several reasons."""

    def __init__(self, rows: int) -> None:
        self.rejected: _Flags = np.zeros(rows, dtype=bool)
        self.by_row: dict[int, list[str]] = {}

    def add(self, rows: Any, reason: str) -> None:
        self.rejected |= rows
        for row in np.flatnonzero(rows):
            self.by_row.setdefault(int(row), []).append(reason)

    def add_by_text(self, codes: NDArray[np.intp], wrong: Mapping[int, str]) -> None:
        """Reject the rows whose text, by its number, is in `wrong`."""
        rows = np.isin(codes, list(wrong))
        self.rejected |= rows
        for row in np.flatnonzero(rows):
            self.by_row.setdefault(int(row), []).append(wrong[int(codes[row])])


def _check_length(cells: _Cells | None, field: str, most: int, reasons: _Reasons) -> None:
    if cells is None:
        return
    codes, texts = _distinct(cells)
    wrong = {
        code: f"the {field} has {len(text):,} characters; at most {most:,} are taken in"
        for code, text in enumerate(texts)
        if len(text) > most
    }
    if wrong:
        reasons.add_by_text(codes, wrong)


def _check_columns(table: Table, mapping: ColumnMapping) -> None:
    columns = table.columns
    more = f" and {len(columns) - 40} more" if len(columns) > 40 else ""
    found = f"Columns found: {', '.join(one_line(name, 60) for name in columns[:40])}{more}."
    absent = [column for _, column in mapping.columns if column not in columns]
    absent += [name for _, name in template_parts(mapping.key_template or "") if name and name not in columns]
    if absent:
        raise ImportRefused(
            "The mapping names columns which the file does not have: "
            f"{', '.join(one_line(name, 60) for name in dict.fromkeys(absent))}. {found} "
            "Correct the mapping or the key template."
        )
    lacking = mapping.missing(columns)
    if lacking:
        raise ImportRefused(
            f"The file has no column for: {', '.join(lacking)}. {found} Say which column holds each, as in "
            f"{lacking[0]}=COLUMN, or make the key from several columns with a key template such as {{user}}/{{slot}}. "
            "The template file shows every field."
        )
    unused = [column for column in mapping.unused(columns) if column not in mapping.ignored]
    asked = asked_about(unused, user_known=mapping.column("user") is not None)
    for column, field in asked.items():
        told = {text.strip().casefold() for text in _distinct(table.frame[column].to_numpy(dtype=object))[1]} - _EMPTY
        if len(told) > (1 if field == "user" else 0):
            says = "whose memory a row is" if field == "user" else "that something ended or was deleted"
            raise ImportRefused(
                f"The column {quoted(column)} seems to say {says}, and nothing was said about it. Map it, as in "
                f"{field}={one_line(column, 60)}, or leave it out on purpose (ignore {one_line(column, 60)})."
            )


def _absent(rows: int) -> _Cells:
    return np.full(rows, None, dtype=object)


def _texts(cells: _Cells) -> pd.Series[Any]:
    return pd.Series(cells, dtype=object)


def _utc(micros: _Micros) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(micros.astype("datetime64[us]"), tz="UTC")


def _distinct(cells: _Cells) -> tuple[NDArray[np.intp], list[str]]:
    """Give the distinct texts of a column numbers; missing cells get -1."""
    codes, texts = pd.factorize(cells)
    return codes, list(texts)


def _canonical(cells: _Cells) -> _Cells:
    codes, texts = _distinct(cells)
    return np.array([canonical(text) for text in texts], dtype=object)[codes] if texts else cells


@dataclass(frozen=True, slots=True)
class _Read:
    """Times of one column as they were read."""

    micros: _Micros
    naive: _Flags
    partial: _Flags
    finer: _Flags

    @classmethod
    def none(cls, rows: int) -> _Read:
        flags = np.zeros(rows, dtype=bool)
        return cls(np.full(rows, NOT_A_TIME, dtype=np.int64), flags, flags.copy(), flags.copy())


def _instants(stamps: _Cells | None, zone: tzinfo, what: str, reasons: _Reasons, *, needed: bool, rows: int) -> _Read:
    """Read the times of a column."""
    if stamps is None:
        if needed:
            reasons.add(np.ones(rows, dtype=bool), f"the {what} is missing")
        return _Read.none(rows)
    codes, texts = _distinct(stamps)
    # One more place at the end: there the code -1 of a missing cell points.
    read = _Read.none(len(texts) + 1)
    blank = np.zeros(len(texts) + 1, dtype=bool)
    blank[-1] = True
    wrong: dict[int, str] = {}
    for code, text in enumerate(texts):
        if not text.strip():
            blank[code] = True
            continue
        try:
            found: Instant = instant(text.strip(), zone)
        except ValueError as error:
            wrong[code] = f"{what} {quoted(text)} {error}"
        else:
            read.micros[code] = found.micros
            read.naive[code], read.partial[code], read.finer[code] = found.naive, found.partial, found.finer
    if needed:
        reasons.add(blank[codes], f"the {what} is missing")
    reasons.add_by_text(codes, wrong)
    return _Read(read.micros[codes], read.naive[codes], read.partial[codes], read.finer[codes])


def _keys(frame: pd.DataFrame, mapping: ColumnMapping, reasons: _Reasons) -> _Cells:
    parts = [("", mapping.column("key"))] if mapping.key_template is None else template_parts(mapping.key_template)
    columns: list[_Cells | str] = []
    for literal, name in parts:
        columns.append(literal)
        if name is None:
            continue
        cells = frame[name].to_numpy(dtype=object)
        codes, texts = _distinct(cells)
        stripped = np.array([*(text.strip() for text in texts), ""], dtype=object)[codes]
        nothing = np.array([*(not cleaned(text) for text in texts), True], dtype=bool)[codes]
        detail = "" if mapping.key_template is None else f": the column {quoted(name)} of the key template is empty"
        reasons.add(nothing, f"the key is missing{detail}")
        columns.append(stripped)
    if len(columns) == 2 and isinstance(columns[1], np.ndarray):
        return columns[1] if columns[0] == "" else columns[0] + columns[1]
    joined = zip(*([column] * len(frame) if isinstance(column, str) else column for column in columns), strict=True)
    return np.array([*map("".join, joined), None], dtype=object)[:-1]


def _outcomes(cells: _Cells | None, rows: int, reasons: _Reasons, told: Mapping[str, bool | None]) -> _Flags:
    if cells is None:
        return np.ones(rows, dtype=bool)
    codes, texts = _distinct(cells)
    supports = np.ones(len(texts) + 1, dtype=bool)
    meanings = {word.strip().casefold(): meaning for word, meaning in told.items()}
    unknown: dict[int, str] = {}
    for code, text in enumerate(texts):
        word = text.strip().casefold()
        meaning = meanings[word] if word in meanings else known(word)
        # What asserts a value supports it.
        supports[code] = meaning is not False
        if word and word not in meanings and meaning is None:
            unknown[code] = text.strip()
    if unknown:
        seen = ", ".join(quoted(text) for text in list(unknown.values())[:12])
        offer = ",".join(f"{word}={int(meaning)}" for word, meaning in offered(list(unknown.values())[:12]).items())
        how = f"say which support and which refute, as in outcomes {offer or 'WORD=1,OTHER=0'}"
        reasons.add_by_text(
            codes,
            {code: f"the outcome {quoted(text)} is not known (seen: {seen}); {how}" for code, text in unknown.items()},
        )
    return supports[codes]


def _deleted(rows: _Rows) -> _Flags:
    """Say which rows tell that the memory was deleted, by a flag or by the word of an event."""
    gone = np.zeros(len(rows.frame), dtype=bool)
    flags = rows.cells("deleted")
    if flags is not None:
        codes, texts = _distinct(flags)
        gone |= np.array([*(text.strip().casefold() not in _EMPTY for text in texts), False], dtype=bool)[codes]
    events = rows.cells("event")
    if events is not None:
        codes, texts = _distinct(events)
        words = [text.strip().casefold() for text in texts]
        gone |= np.array([*(word in _DELETES for word in words), False], dtype=bool)[codes]
        wrong = {
            code: f"the event {quoted(texts[code])} is neither a statement nor a deletion "
            f"(known: {', '.join(sorted(_ASSERTS | _DELETES))})"
            for code, word in enumerate(words)
            if word and word not in _ASSERTS | _DELETES
        }
        rows.reasons.add_by_text(codes, wrong)
    return gone


def _subjects(cells: _Cells | None, rows: int) -> tuple[_Cells, _Flags]:
    if cells is None:
        return np.full(rows, "", dtype=object), np.ones(rows, dtype=bool)
    codes, texts = _distinct(cells)
    subject = np.array([*(cleaned(text) for text in texts), ""], dtype=object)[codes]
    return subject, subject == ""


def _repeated(evidence: pd.DataFrame) -> _Flags:
    """Say which items another item of the same source says too; of those that agree the earliest is kept."""
    said = evidence[["source_ref", "subject", "key_id", "value_id", "supports"]]
    known_source = evidence["source_ref"].notna() & (evidence["source_ref"] != "")
    order = evidence.sort_values(["event_time", "value", "key"], kind="stable").index
    again = said.loc[order].duplicated(keep="first").reindex(evidence.index)
    return (again & known_source).to_numpy(dtype=bool)


def _with_ends(evidence: pd.DataFrame, ends: _Micros) -> pd.DataFrame:
    """Add an item against each value that ended, at the time of its end."""
    over = ends != NOT_A_TIME
    if over.any():
        last = evidence[over].assign(event_time=_utc(ends[over]), supports=False, ingested_at=pd.NaT)
        last["ingested_at"] = evidence["ingested_at"][over]
        evidence = pd.concat([evidence, last], ignore_index=True)
    return evidence.assign(seq=np.arange(len(evidence), dtype=np.int64)).reset_index(drop=True)


def _lookalikes(evidence: pd.DataFrame) -> _Flags:
    """Say which items have a value, key or user that looks like another of its place and is not the same."""
    alike = np.zeros(len(evidence), dtype=bool)
    for place, name in ((["subject", "key_id"], "value_id"), (["subject"], "key_id"), ([], "subject")):
        seen = evidence[[*place, name]].drop_duplicates()
        looks = seen.assign(looks=[skeleton(text) for text in seen[name]])
        several = looks[looks.duplicated([*place, "looks"], keep=False)][[*place, name]]
        if len(several):
            found = evidence[[*place, name]].merge(several, how="left", indicator=True)
            alike |= (found["_merge"] == "both").to_numpy()
    return alike


def _stripped(cells: _Cells) -> _Cells:
    codes, texts = _distinct(cells)
    return np.array([*(text.strip() for text in texts), ""], dtype=object)[codes]


def _earliest_spelling(key: _Cells, key_id: _Cells, event: _Micros) -> _Cells:
    """Give every row of a key the spelling of the key's earliest row; of equally early ones the first by alphabet."""
    seen = pd.DataFrame({"key": key, "key_id": key_id, "event": event}).sort_values(["event", "key"], kind="stable")
    spelling = seen.drop_duplicates("key_id").set_index("key_id")["key"]
    return pd.Series(key_id, dtype=object).map(spelling).to_numpy(dtype=object)


def _tied(evidence: pd.DataFrame) -> _Flags:
    """Say which items share user, key and time with one that says something else, so that file order decides."""
    place = ["subject", "key_id", "event_time"]
    numbered = pd.DataFrame({name: pd.factorize(evidence[name])[0] for name in [*place, "value_id"]})
    numbered["says"] = 2 * numbered["value_id"] + evidence["supports"].to_numpy(dtype=np.int64)
    shared = numbered[numbered.duplicated(place, keep=False)]
    says = shared.groupby(place)["says"]
    tied = np.zeros(len(evidence), dtype=bool)
    tied[shared.index] = says.transform("min") != says.transform("max")
    return tied


def _issues(table: Table, reasons: _Reasons) -> list[Issue]:
    rows = sorted(reasons.by_row)
    numbers = table.frame[ROW].to_numpy()
    records = zip(*(table.frame[name].to_numpy(dtype=object)[rows] for name in table.columns), strict=True)
    write = json.JSONEncoder(ensure_ascii=False).encode
    return [
        Issue(
            int(numbers[row]),
            "; ".join(reasons.by_row[row]),
            clipped(write({name: cell for name, cell in zip(table.columns, record, strict=True) if cell is not None})),
        )
        for row, record in zip(rows, records, strict=True)
    ]


def _issue_frame(issues: list[Issue]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "row": np.array([issue.row for issue in issues], dtype=np.int64),
            "reason": _texts(np.array([*(issue.reason for issue in issues), None], dtype=object)[:-1]),
            "raw": _texts(np.array([*(issue.raw for issue in issues), None], dtype=object)[:-1]),
        }
    )
