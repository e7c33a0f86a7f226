"""The ledger of the database: which runs were deleted and imported, by whom, and with which decisions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import duckdb

from tepa_core.decisions import (
    EMPTY,
    Actor,
    Claim,
    Event,
    Head,
    Occasion,
    claim_of,
    event_times,
    linked_event,
    name_digest,
    verify_events,
)
from tepa_core.store.connection import Store

_FIELDS = (
    "number",
    "happened_at",
    "who",
    "authenticated",
    "what",
    "of_run",
    "kind",
    "name_digest",
    "decisions",
    "head_hash",
    "file_digest",
    "previous_hash",
    "hash",
)
_SELECT = f"SELECT {', '.join(_FIELDS)} FROM event"  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class DatabaseLedger:
    """The ledger of the database, and whether it is as it was written.

    Attributes
    ----------
    events
        In the order in which they happened.
    problems
        What is wrong, one sentence each.
    times
        Times that cannot be true, one sentence each; clocks are set back, so that alone is no change.
    head
        Count and hash of the last event as kept apart.
    """

    events: tuple[Event, ...]
    problems: tuple[str, ...]
    times: tuple[str, ...]
    head: Head

    @property
    def ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems


def read_events(cursor: duckdb.DuckDBPyConnection, run_id: str | None = None) -> tuple[Event, ...]:
    """Read the events of the database, or those on one run, in order of their numbers."""
    where = "" if run_id is None else "WHERE of_run = ?"
    rows = cursor.execute(f"{_SELECT} {where} ORDER BY number, rowid", [] if run_id is None else [run_id]).fetchall()
    return tuple(_event(*row) for row in rows)


def read_claim(cursor: duckdb.DuckDBPyConnection, run_id: str) -> Claim | None:
    """Read where the first decisions of a run come from; None where all were taken here."""
    row = cursor.execute(f"{_SELECT} WHERE of_run = ? ORDER BY number DESC LIMIT 1", [run_id]).fetchone()
    return claim_of(None if row is None else _event(*row))


def _event(*row: Any) -> Event:
    content = dict(zip(_FIELDS, row, strict=True))
    content["run_id"] = content.pop("of_run")
    content["what"], content["at"] = Occasion(content["what"]), content.pop("happened_at").astimezone(dt.UTC)
    return Event(**content)


def read_event_head(cursor: duckdb.DuckDBPyConnection) -> Head:
    """Read the head of the ledger of the database."""
    row = cursor.execute("SELECT events, hash FROM event_head").fetchone()
    return EMPTY if row is None else Head(int(row[0]), str(row[1]))


def append_event(
    cursor: duckdb.DuckDBPyConnection,
    actor: Actor,
    what: Occasion,
    run_id: str,
    head: Head,
    file_digest: str | None = None,
) -> Event:
    """Write what happens to a run that is stored, with the head of its ledger, as the last row."""
    row = cursor.execute("SELECT kind, name FROM run WHERE run_id = ?", [run_id]).fetchone()
    assert row is not None  # noqa: S101 - a run is noted while it is stored
    kind, name = row
    event = linked_event(
        Event(
            number=0,
            at=dt.datetime.now(dt.UTC),
            who=actor.name.strip(),
            authenticated=actor.authenticated,
            what=what,
            run_id=run_id,
            kind=str(kind),
            name_digest=name_digest(str(name)),
            decisions=head.count,
            head_hash=head.hash,
            file_digest=file_digest,
            previous_hash="",
            hash="",
        ),
        read_event_head(cursor),
    )
    content = event.as_dict() | {"happened_at": event.at, "of_run": event.run_id}
    marks = ", ".join("?" * len(_FIELDS))
    cursor.execute(
        f"INSERT INTO event ({', '.join(_FIELDS)}) VALUES ({marks})",  # noqa: S608 - constants
        [content[name] for name in _FIELDS],
    )
    cursor.execute(
        "INSERT INTO event_head VALUES (1, ?, ?) "
        "ON CONFLICT (one) DO UPDATE SET events = excluded.events, hash = excluded.hash",
        [event.number, event.hash],
    )
    return event


def database_ledger(store: Store) -> DatabaseLedger:
    """Read the ledger of the database and check it against its chain and its head."""
    with store.read() as cursor:
        # One snapshot: an event that is being written must not stand in one and be missing in the other.
        cursor.begin()
        events, head = read_events(cursor), read_event_head(cursor)
        cursor.rollback()
    return DatabaseLedger(events, verify_events(events, head), event_times(events, dt.datetime.now(dt.UTC)), head)
