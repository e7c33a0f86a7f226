"""What the columns of a file mean: fields, the usual names of their columns, and what must be asked."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from string import Formatter
from zoneinfo import ZoneInfo

from tepa_core.importers.base import ImportRefused, quoted
from tepa_core.inert import one_line

__all__ = ["FIELDS", "ORDERS", "REQUIRED", "TEMPLATE_CSV", "ColumnMapping", "asked_about", "template_parts", "zone_of"]

FIELDS = (
    "ts",
    "user",
    "key",
    "value",
    "outcome",
    "text",
    "phase",
    "actor",
    "source_ref",
    "ingested_at",
    "changed_at",
    "ends_at",
    "deleted",
    "event",
)
REQUIRED = ("ts", "key", "value")

#: What orders the rows: their times, or where no column holds a time, the order of the file.
ORDERS = ("time", "file")

TEMPLATE_CSV = """\
ts,user,key,value,outcome,text,phase,actor,source_ref,ingested_at
2026-03-02T09:15:00Z,u1,seat,window,1,I always take the window seat.,stable,planner,msg-101,2026-03-02T09:15:02Z
2026-03-09T18:40:00+01:00,u1,seat,aisle,,Aisle from now on: my knee hurts.,reversal,planner,msg-148,2026-03-09T17:40:03Z
2026-03-10T07:05:00Z,u1,seat,window,0,"No, not the window again.",reversal,planner,msg-152,2026-03-10T07:05:01Z
2026-03-11T12:00:00Z,u2,coffee,without milk,success,"Black coffee, as usual.",stable,barista,msg-160,
"""
"""A small file with every field; a person can fill it in instead of mapping columns."""

_SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "ts": (
        "timestamp",
        "time",
        "datetime",
        "date",
        "event_time",
        "occurred_at",
        # When it held goes before when it was written down.
        "valid_at",
        "valid_from",
        "started_at",
        "created_at",
    ),
    "user": (
        "user_id",
        "uid",
        "username",
        "subject",
        "subject_id",
        "customer",
        "customer_id",
        "client_id",
        "account",
        "account_id",
        "person",
        "person_id",
        "member_id",
        "owner",
        "owner_id",
        "tenant",
        "tenant_id",
        "namespace",
        "group_id",
    ),
    "key": ("conflict_key", "slot", "attribute", "field", "preference"),
    "value": ("val", "answer"),
    "outcome": ("success", "reward", "supports"),
    "text": ("message", "sentence", "quote", "evidence", "source"),
    "phase": (),
    "actor": ("agent", "author"),
    "source_ref": ("ref", "message_id", "id"),
    "ingested_at": ("arrival", "received_at", "loaded_at", "recorded_at"),
    "changed_at": ("updated_at", "modified_at"),
    "ends_at": (
        "valid_to",
        "valid_until",
        "invalid_at",
        "ended_at",
        "end_date",
        "expires_at",
        "expired_at",
        "deleted_at",
    ),
    "deleted": ("is_deleted", "removed", "is_removed"),
    "event": ("event_type", "operation", "op"),
}

#: Fields that change what a row means: a column that looks like one of them is mapped or asked about, never ignored.
_TURNING = ("ends_at", "deleted")

#: Parts of names of columns that tell whose memory a row is.
_WHOSE = ("user", "customer", "client", "account", "person", "member", "owner", "patient", "tenant", "namespace")


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
    outcomes : tuple of (word, meaning)
        What words of the outcome column mean that are not known by themselves: True supports the value, False refutes
        it, None asserts it as an empty cell does.
    ignored : tuple of str
        Columns that are left out on purpose although they look as if they changed what a row means.
    order : str
        One of `ORDERS`.

    Raises
    ------
    ImportRefused
        On an unknown field, a field named twice, an unknown zone, or a template with anything but plain column names.
    """

    columns: tuple[tuple[str, str], ...]
    key_template: str | None = None
    tz: str = "UTC"
    outcomes: tuple[tuple[str, bool | None], ...] = ()
    ignored: tuple[str, ...] = ()
    order: str = "time"

    def __post_init__(self) -> None:
        fields = [field for field, _ in self.columns]
        unknown = [field for field in fields if field not in FIELDS]
        if unknown:
            named = ", ".join(one_line(field, 60) for field in unknown[:10])
            raise ImportRefused(f"There is no field named {named}. The fields are: {', '.join(FIELDS)}.")
        if len(set(fields)) < len(fields):
            twice = next(field for field in fields if fields.count(field) > 1)
            raise ImportRefused(f"The field {twice} is mapped twice. Name one column for it.")
        if self.key_template is not None and not any(name for _, name in template_parts(self.key_template)):
            raise ImportRefused(
                f"The key template {quoted(self.key_template)} names no column, so every row would get the same key. "
                "Write for example {user}/{slot}."
            )
        if self.order not in ORDERS:
            raise ImportRefused(f"The order must be {' or '.join(ORDERS)}, not {self.order[:40]!r}.")
        zone_of(self.tz)

    @classmethod
    def of(
        cls,
        columns: Mapping[str, str],
        *,
        key_template: str | None = None,
        tz: str = "UTC",
        outcomes: Mapping[str, bool | None] | None = None,
        ignored: Sequence[str] = (),
        order: str = "time",
    ) -> ColumnMapping:
        """Build a mapping from dictionaries field -> column and word -> meaning."""
        return cls(tuple(columns.items()), key_template, tz, tuple((outcomes or {}).items()), tuple(ignored), order)

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
        if _plain(found.get("ts", "")) != "createdat":
            # Where a column says when it happened, when the record of it was changed says nothing about the world.
            found.pop("changed_at", None)
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
        for column in other.ignored:
            merged = {
                field: named for field, named in merged.items() if named != column or field in dict(other.columns)
            }
        template = other.key_template or self.key_template
        return ColumnMapping(tuple(merged.items()), template, other.tz, other.outcomes, other.ignored, other.order)

    def column(self, field: str) -> str | None:
        """Name the column of a field, or None."""
        return dict(self.columns).get(field)

    def missing(self, columns: Sequence[str]) -> list[str]:
        """List the required fields for which a file with these columns has nothing."""
        lacking = [field for field in REQUIRED if self.column(field) not in columns]
        if self.key_template is not None and "key" in lacking:
            lacking.remove("key")
        if self.order == "file" and "ts" in lacking:
            lacking.remove("ts")
        return lacking

    def unused(self, columns: Sequence[str]) -> list[str]:
        """List the columns of a file that mean nothing here, in file order."""
        used = {column for _, column in self.columns} | {name for _, name in template_parts(self.key_template or "")}
        return [column for column in columns if column not in used]

    def without(self, field: str) -> ColumnMapping:
        """Return a copy in which no column holds a field."""
        return dataclasses.replace(self, columns=tuple(pair for pair in self.columns if pair[0] != field))

    def described(self) -> dict[str, object]:
        """Return the mapping as JSON-ready data; what says nothing is left out."""
        return {
            "columns": dict(self.columns),
            "key_template": self.key_template,
            "tz": self.tz,
            **({"outcomes": dict(self.outcomes)} if self.outcomes else {}),
            **({"ignored": list(self.ignored)} if self.ignored else {}),
            **({"order": self.order} if self.order != "time" else {}),
        }


def asked_about(unused: Sequence[str], *, user_known: bool) -> dict[str, str]:
    """Return, of the columns that are not used, those that must not be passed over, with what they seem to say.

    Parameters
    ----------
    unused
        Names of columns.
    user_known
        Whether another column says whose memory a row is.
    """
    asked = {}
    for column in unused:
        plain = _plain(column)
        for field in _TURNING:
            if plain == _plain(field) or plain in map(_plain, _SYNONYMS[field]):
                asked[column] = field
        if not user_known and any(part in plain for part in _WHOSE):
            asked[column] = "user"
    return asked


def template_parts(template: str) -> list[tuple[str, str | None]]:
    """Split a key template into pairs of literal text and column name; a name may have dots and brackets.

    Raises
    ------
    ImportRefused
        If it is no template.
    """
    plain = "Write plain column names in braces, as in {user}/{slot}."
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ImportRefused(f"The key template {quoted(template)} cannot be read ({error}). {plain}") from None
    for _, name, form, conversion in parts:
        if name is not None and (not name.strip() or form or conversion or re.search(r"[{}]", name)):
            raise ImportRefused(f"The key template {quoted(template)} holds more than column names. {plain}")
    return [(literal, name) for literal, name, _, _ in parts]


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its IANA name.

    Raises
    ------
    ImportRefused
        If there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ImportRefused(
            f"There is no time zone {quoted(name)}. Use an IANA name such as UTC or America/Los_Angeles."
        ) from None
