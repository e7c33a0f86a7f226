"""What the columns of a file mean, and the canonical evidence rows that follow."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from string import Formatter
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tepa_core.csvsafe import to_safe_csv
from tepa_core.importers.base import ROW, ImportRefused, Issue, Table, canonical, clipped, quoted
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
]

FIELDS = ("ts", "user", "key", "value", "outcome", "text", "phase", "actor", "source_ref", "ingested_at")
REQUIRED = ("ts", "key", "value")

TEMPLATE_CSV = """\
ts,user,key,value,outcome,text,phase,actor,source_ref,ingested_at
2026-03-02T09:15:00Z,u1,seat,window,1,I always take the window seat.,stable,planner,msg-101,2026-03-02T09:15:02Z
2026-03-09T18:40:00+01:00,u1,seat,aisle,,Aisle from now on: my knee hurts.,reversal,planner,msg-148,2026-03-09T17:40:03Z
2026-03-10T07:05:00Z,u1,seat,window,0,"No, not the window again.",reversal,planner,msg-152,2026-03-10T07:05:01Z
2026-03-11T12:00:00Z,u2,coffee,without milk,success,"Black coffee, as usual.",stable,barista,msg-160,
"""
"""A small file with every field; a person can fill it in instead of mapping columns."""

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "ts": ("timestamp", "time", "datetime", "date", "event_time", "occurred_at", "valid_from", "created_at"),
    "user": ("user_id", "subject", "subject_id", "customer", "customer_id"),
    "key": ("conflict_key", "slot", "attribute", "field", "preference"),
    "value": ("val", "answer"),
    "outcome": ("success", "reward", "supports"),
    "text": ("message", "sentence", "quote", "evidence", "source"),
    "phase": (),
    "actor": ("agent", "author"),
    "source_ref": ("ref", "message_id", "id"),
    "ingested_at": ("arrival", "received_at", "loaded_at", "recorded_at"),
}

_OUTCOMES: Mapping[str, bool] = {
    "1": True,
    "true": True,
    "yes": True,
    "success": True,
    "support": True,
    "0": False,
    "false": False,
    "no": False,
    "failure": False,
    "refute": False,
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_NOT_A_TIME = np.iinfo(np.int64).min
_DAY = 24 * 60 * 60 * 1_000_000

_EPOCH_SECONDS = re.compile(r"([0-9]{10})(?:\.([0-9]+))?")
_EPOCH_MILLISECONDS = re.compile(r"[0-9]{13}")
_ISO_SHAPE = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ].*)?", re.IGNORECASE)


def _plain(name: str) -> str:
    """Spell a column name without case, blanks, dashes and underscores: createdAt, Created At and created_at agree."""
    return re.sub(r"[\s_-]+", "", name).casefold()


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """Which column of a file holds which field.

    Attributes
    ----------
    columns : tuple of (field, column)
        Fields are those of ``FIELDS``, each at most once.
    key_template : str or None
        Makes the key from several columns, as in ``{user}/{slot}``; the names are columns of the file. When given, it
        is used instead of a key column.
    tz : str
        IANA name of the zone in which times without an offset are read.

    Raises
    ------
    ImportRefused
        On an unknown field, a field named twice, an unknown zone, or a template with anything but plain column names.
    """

    columns: tuple[tuple[str, str], ...]
    key_template: str | None = None
    tz: str = "UTC"

    def __post_init__(self) -> None:
        fields = [field for field, _ in self.columns]
        unknown = [field for field in fields if field not in FIELDS]
        if unknown:
            raise ImportRefused(f"There is no field named {_listed(unknown)}. The fields are: {', '.join(FIELDS)}.")
        if len(set(fields)) < len(fields):
            twice = next(field for field in fields if fields.count(field) > 1)
            raise ImportRefused(f"The field {twice} is mapped twice. Name one column for it.")
        if self.key_template is not None and not any(name for _, name in _template(self.key_template)):
            raise ImportRefused(
                f"The key template {quoted(self.key_template)} names no column, so every row would get the same "
                "key. Write for example {user}/{slot}."
            )
        _zone(self.tz)

    @classmethod
    def of(cls, columns: Mapping[str, str], *, key_template: str | None = None, tz: str = "UTC") -> ColumnMapping:
        """Build a mapping from a dictionary field -> column."""
        return cls(tuple(columns.items()), key_template, tz)

    @classmethod
    def suggest(cls, columns: Sequence[str]) -> ColumnMapping:
        """Guess the mapping from the usual names of columns, without regard to case, blanks, dashes and underscores.

        A column named as the field wins over a synonym, and no column is used twice.

        Examples
        --------
        >>> ColumnMapping.suggest(["Timestamp", "user_id", "slot", "value"]).columns
        (('ts', 'Timestamp'), ('user', 'user_id'), ('key', 'slot'), ('value', 'value'))
        """
        free = dict.fromkeys(columns)
        found: dict[str, str] = {}
        for field in FIELDS:
            same = [name for name in free if _plain(name) == _plain(field)]
            if same:
                found[field] = field if field in same else same[0]
                del free[found[field]]
        for field in FIELDS:
            for synonym in _SYNONYMS[field] if field not in found else ():
                column = next((name for name in free if _plain(name) == _plain(synonym)), None)
                if column is not None:
                    found[field] = column
                    del free[column]
                    break
        return cls(tuple((field, found[field]) for field in FIELDS if field in found))

    @classmethod
    def parse(cls, text: str, *, key_template: str | None = None, tz: str = "UTC") -> ColumnMapping:
        """Read ``key=COLUMN,value=COLUMN``; a pair whose column name has a comma stands in double quotes.

        Examples
        --------
        >>> ColumnMapping.parse('key=slot,"value=answer, final"').columns
        (('key', 'slot'), ('value', 'answer, final'))
        """
        pairs = []
        for part in next(csv.reader([text], skipinitialspace=True), []):
            field, equals, column = part.partition("=")
            if not (equals and field.strip() and column.strip()):
                raise ImportRefused(
                    f"The mapping has {quoted(part)} where FIELD=COLUMN is expected, as in key=slot,value=answer."
                )
            pairs.append((field.strip(), column.strip()))
        return cls(tuple(pairs), key_template, tz)

    def updated(self, other: ColumnMapping) -> ColumnMapping:
        """Overlay `other`: its columns, its template when it has one, and its zone; a column it takes is freed here."""
        taken = {column for _, column in other.columns}
        merged = {field: column for field, column in self.columns if column not in taken} | dict(other.columns)
        return ColumnMapping(tuple(merged.items()), other.key_template or self.key_template, other.tz)

    def column(self, field: str) -> str | None:
        """Name the column of a field, or None."""
        return dict(self.columns).get(field)

    def missing(self, columns: Sequence[str]) -> list[str]:
        """List the required fields for which a file with these columns has nothing."""
        lacking = [field for field in REQUIRED if self.column(field) not in columns]
        if self.key_template is not None and "key" in lacking:
            lacking.remove("key")
        return lacking


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
        time without offset, read in the mapping's zone. ``tied_time``: another row of the same subject, key and time
        has another value, so file order decides. ``late_arrival``: arrived more than a day after the event.
    read, loaded, rejected : int
        Records; ``read == loaded + rejected``.
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


_Cells = NDArray[np.object_]
_Flags = NDArray[np.bool_]
_Micros = NDArray[np.int64]


def apply(table: Table, mapping: ColumnMapping, limits: Limits = USUAL) -> EvidenceLog:
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

    Returns
    -------
    EvidenceLog
        Rows, issues and counts. Nothing in it depends on the order of the rows but ``seq``.

    Raises
    ------
    ImportRefused
        A required field has no column, or the mapping names columns which the file does not have.
    """
    _check_columns(table.columns, mapping)
    frame = table.frame
    zone = _zone(mapping.tz)
    reasons = _Reasons(len(frame))

    def cells(field: str) -> _Cells | None:
        column = mapping.column(field)
        return None if column is None else frame[column].to_numpy(dtype=object)

    def required(field: str) -> _Cells:
        found = cells(field)
        return _absent(len(frame)) if found is None else found

    event, naive = _instants(required("ts"), zone, "time", reasons, needed=True)
    key = _keys(frame, mapping, reasons)
    value = required("value")
    reasons.add(pd.isna(value), "the value is missing")
    supports = _outcomes(cells("outcome"), len(frame), reasons)
    arrival, arrival_naive = _instants(
        cells("ingested_at"), zone, "arrival time", reasons, needed=False, rows=len(frame)
    )
    subject, unknown = _subjects(cells("user"), len(frame))

    for field, cells_of in (("user", subject), ("key", key), ("value", value)):
        _check_length(cells_of, field, limits.label, reasons)
    for field in ("phase", "actor", "source_ref"):
        _check_length(cells(field), field, limits.label, reasons)
    _check_length(cells("text"), "text", limits.cell_mb * 1_000_000, reasons)

    kept = ~reasons.rejected
    evidence = pd.DataFrame({"seq": np.arange(kept.sum(), dtype=np.int64)})
    evidence["source_row"] = frame[ROW].to_numpy(dtype=np.int64)[kept]
    evidence["event_time"] = _utc(event[kept])
    evidence["ingested_at"] = _utc(arrival[kept])
    evidence["subject"] = _texts(subject[kept])
    key_id = _canonical(key[kept])
    evidence["key"] = _texts(_earliest_spelling(key[kept], key_id, event[kept]))
    evidence["key_id"] = _texts(key_id)
    evidence["value"] = _texts(value[kept])
    evidence["value_id"] = _texts(_canonical(value[kept]))
    evidence["supports"] = supports[kept]
    for field in ("text", "phase", "actor", "source_ref"):
        found = cells(field)
        evidence[field] = _texts(_absent(len(evidence)) if found is None else found[kept])

    late = (arrival != _NOT_A_TIME) & (arrival - np.where(arrival == _NOT_A_TIME, 0, event) > _DAY)
    counts = {
        "missing_user": unknown[kept].sum(),
        "naive_time": (naive | arrival_naive)[kept].sum(),
        "tied_time": _tied(evidence).sum(),
        "late_arrival": late[kept].sum(),
    }
    issues = sorted([*table.issues, *_issues(table, reasons)], key=lambda issue: issue.row)
    return EvidenceLog(
        format=table.format,
        evidence=evidence,
        issues=_issue_frame(issues),
        badges={badge: int(count) for badge, count in counts.items() if count},
        read=len(frame) + len(table.issues),
        loaded=len(evidence),
        rejected=len(issues),
        digest=table.digest,
    )


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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(one_line(name, 60) for name in list(dict.fromkeys(names))[:10])


def _check_columns(columns: tuple[str, ...], mapping: ColumnMapping) -> None:
    more = f" and {len(columns) - 40} more" if len(columns) > 40 else ""
    found = f"Columns found: {', '.join(one_line(name, 60) for name in columns[:40])}{more}."
    absent = [column for _, column in mapping.columns if column not in columns]
    absent += [name for _, name in _template(mapping.key_template or "") if name and name not in columns]
    if absent:
        raise ImportRefused(
            f"The mapping names columns which the file does not have: {_listed(absent)}. {found} "
            "Correct the mapping or the key template."
        )
    lacking = mapping.missing(columns)
    if lacking:
        raise ImportRefused(
            f"The file has no column for: {', '.join(lacking)}. {found} Say which column holds each, as in "
            f"{lacking[0]}=COLUMN, or make the key from several columns with a key template such as {{user}}/{{slot}}. "
            "The template file shows every field."
        )


def _template(template: str) -> list[tuple[str, str | None]]:
    """Split a key template into pairs of literal text and column name."""
    plain = "Write plain column names in braces, as in {user}/{slot}."
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ImportRefused(
            f"The key template {quoted(template)} cannot be read ({clipped(one_line(error), 80)}). {plain}"
        ) from None
    for _, name, form, conversion in parts:
        if name is not None and (not name.strip() or form or conversion or re.search(r"[.\[\]{}]", name)):
            raise ImportRefused(f"The key template {quoted(template)} holds more than column names. {plain}")
    return [(literal, name) for literal, name, _, _ in parts]


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ImportRefused(
            f"There is no time zone {quoted(name)}. Use an IANA name such as UTC or America/Los_Angeles."
        ) from None


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


def _instants(
    stamps: _Cells | None, zone: tzinfo, what: str, reasons: _Reasons, *, needed: bool, rows: int = 0
) -> tuple[_Micros, _Flags]:
    """Read times as microseconds since 1970 UTC (or not-a-time), and flag those without an offset."""
    if stamps is None:
        return np.full(rows, _NOT_A_TIME, dtype=np.int64), np.zeros(rows, dtype=bool)
    codes, texts = _distinct(stamps)
    # One more place at the end: there the code -1 of a missing cell points.
    micros = np.full(len(texts) + 1, _NOT_A_TIME, dtype=np.int64)
    naive = np.zeros(len(texts) + 1, dtype=bool)
    blank = np.zeros(len(texts) + 1, dtype=bool)
    blank[-1] = True
    wrong: dict[int, str] = {}
    for code, text in enumerate(texts):
        if not text.strip():
            blank[code] = True
            continue
        try:
            micros[code], naive[code] = _instant(text.strip(), zone)
        except ValueError as error:
            wrong[code] = f"{what} {quoted(text)} {error}"
    if needed:
        reasons.add(blank[codes], f"the {what} is missing")
    reasons.add_by_text(codes, wrong)
    return micros[codes], naive[codes]


def _instant(text: str, zone: tzinfo) -> tuple[int, bool]:
    """Read one time; raises ValueError with the end of a sentence about it."""
    try:
        if text[10:11] not in ("T", " ", ""):
            raise ValueError
        moment = datetime.fromisoformat(text)
    except ValueError:
        seconds = _EPOCH_SECONDS.fullmatch(text)
        if seconds:
            return int(seconds[1]) * 1_000_000 + int((seconds[2] or "").ljust(6, "0")[:6]), False
        if _EPOCH_MILLISECONDS.fullmatch(text):
            return int(text) * 1000, False
        moment = _iso(text)
    naive = moment.tzinfo is None
    if naive:
        moment = moment.replace(tzinfo=zone)
        # The two folds disagree exactly where the clock jumps: forward over the gap, or back through the same hour.
        early, late = moment.utcoffset(), moment.replace(fold=1).utcoffset()
        if early is not None and late is not None and early != late:
            happens = "never happened" if early < late else "happened twice"
            raise ValueError(f"{happens} in the zone {zone}, where the clock was changed; add an offset")
    micros = (moment - _EPOCH) // _MICROSECOND
    if not _FIRST <= micros <= _LAST:
        raise ValueError("lies outside the years 1 to 9999 in UTC")
    return micros, naive


def _iso(text: str) -> datetime:
    """Read the spellings of ISO 8601 that databases and other languages write, or say what is wrong with the text."""
    if text.isdecimal() and text.isascii() and len(text) > 8:
        raise ValueError(f"has {len(text)} digits: neither epoch seconds (10) nor milliseconds (13)")
    if not _ISO_SHAPE.fullmatch(text):
        raise ValueError("is not a time in ISO 8601, such as 2026-03-02T09:15:00Z, nor epoch seconds or milliseconds")
    spelled = re.sub(r" ?(?:UTC|GMT|Z)$", "+00:00", text.upper())
    try:
        return datetime.fromisoformat(re.sub(r" (?=[+-][0-9:]+$)", "", spelled))
    except ValueError as error:
        # The message quotes the text where the form of it is wrong, and is short where a number is.
        raise ValueError(f"does not exist or is not ISO 8601 ({clipped(one_line(error), 80)})") from None


def _keys(frame: pd.DataFrame, mapping: ColumnMapping, reasons: _Reasons) -> _Cells:
    parts = [("", mapping.column("key"))] if mapping.key_template is None else _template(mapping.key_template)
    columns: list[_Cells | str] = []
    for literal, name in parts:
        columns.append(literal)
        if name is None:
            continue
        cells = frame[name].to_numpy(dtype=object)
        codes, texts = _distinct(cells)
        stripped = np.array([*(text.strip() for text in texts), ""], dtype=object)[codes]
        detail = "" if mapping.key_template is None else f": the column {quoted(name)} of the key template is empty"
        reasons.add(stripped == "", f"the key is missing{detail}")
        columns.append(stripped)
    if len(columns) == 2 and isinstance(columns[1], np.ndarray):
        return columns[1] if columns[0] == "" else columns[0] + columns[1]
    joined = zip(*([column] * len(frame) if isinstance(column, str) else column for column in columns), strict=True)
    return np.array([*map("".join, joined), None], dtype=object)[:-1]


def _outcomes(cells: _Cells | None, rows: int, reasons: _Reasons) -> _Flags:
    if cells is None:
        return np.ones(rows, dtype=bool)
    codes, texts = _distinct(cells)
    supports = np.ones(len(texts) + 1, dtype=bool)
    wrong: dict[int, str] = {}
    for code, text in enumerate(texts):
        word = text.strip().casefold()
        if word in _OUTCOMES:
            supports[code] = _OUTCOMES[word]
        elif word:
            wrong[code] = f"the outcome {quoted(text)} is none of: {', '.join(_OUTCOMES)}"
    reasons.add_by_text(codes, wrong)
    return supports[codes]


def _subjects(cells: _Cells | None, rows: int) -> tuple[_Cells, _Flags]:
    if cells is None:
        return np.full(rows, "", dtype=object), np.ones(rows, dtype=bool)
    codes, texts = _distinct(cells)
    subject = np.array([*(text.strip() for text in texts), ""], dtype=object)[codes]
    return subject, subject == ""


def _earliest_spelling(key: _Cells, key_id: _Cells, event: _Micros) -> _Cells:
    """Give every row of a key the spelling of the key's earliest row; of equally early ones the first by alphabet."""
    seen = pd.DataFrame({"key": key, "key_id": key_id, "event": event}).sort_values(["event", "key"], kind="stable")
    spelling = seen.drop_duplicates("key_id").set_index("key_id")["key"]
    return pd.Series(key_id, dtype=object).map(spelling).to_numpy(dtype=object)


def _tied(evidence: pd.DataFrame) -> _Flags:
    rows = pd.DataFrame(
        {name: pd.factorize(evidence[name])[0] for name in ("subject", "key_id", "event_time", "value_id")}
    )
    place = ["subject", "key_id", "event_time"]
    shared = rows[rows.duplicated(place, keep=False)]
    values = shared.groupby(place)["value_id"]
    tied = np.zeros(len(rows), dtype=bool)
    tied[shared.index] = values.transform("min") != values.transform("max")
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
