"""The ledger of a database: what happened to whole runs, in a chain like that of decisions.

A run that is deleted takes its ledger along; the row that says so stays, with the head that the ledger had. A run that
is imported brings a ledger along; the row says who brought it, and from which file.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from tepa_core.decisions.chain import Head, Linked, canonical_hash, chain_problems
from tepa_core.decisions.claim import Claim, named, utc
from tepa_core.decisions.model import Decision


class Occasion(StrEnum):
    """What happened to a run."""

    DELETED = "run deleted"
    IMPORTED = "run imported"


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the ledger of a database.

    Attributes
    ----------
    number
        From 1, in the order in which it happened.
    at
        When, in UTC.
    who, authenticated
        Who did it, and whether a login vouches for the name.
    what
        What was done.
    run_id, kind, name_digest
        The run, ``simulation`` or ``log``, and the SHA-256 of the name it had: who knows the name can check it, and a
        name that somebody wants gone is gone with the run.
    decisions, head_hash
        The head of the run's ledger, as it was deleted or imported.
    file_digest
        SHA-256 of the file that was imported; None for a deletion.
    previous_hash, hash
        The links of the chain.
    """

    number: int
    at: dt.datetime
    who: str
    authenticated: bool
    what: Occasion
    run_id: str
    kind: str
    name_digest: str
    decisions: int
    head_hash: str
    file_digest: str | None
    previous_hash: str
    hash: str

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready data."""
        return dataclasses.asdict(self) | {"at": self.at.isoformat(timespec="microseconds")}

    def in_words(self) -> str:
        """Say what happened, without the full stop."""
        done = "deleted" if self.what is Occasion.DELETED else "imported"
        count = f"{self.decisions:,} decision{'' if self.decisions == 1 else 's'}"
        ends = f" ending in …{self.head_hash[-12:]}" if self.decisions else ""
        return (
            f"Run {self.run_id} was {done} here at {utc(self.at)} by {named(self.who, self.authenticated)}, "
            f"with {count}{ends}"
        )


def name_digest(name: str) -> str:
    """Return what stands for the name of a run."""
    return hashlib.sha256(name.encode()).hexdigest()


def event_hash(event: Event) -> str:
    """Return the hash of an event's content: canonical JSON of everything but the hash itself."""
    return canonical_hash({name: value for name, value in event.as_dict().items() if name != "hash"})


def linked_event(event: Event, head: Head) -> Event:
    """Return an event as the next row after a head: number and links filled in."""
    row = dataclasses.replace(event, number=head.count + 1, previous_hash=head.hash)
    return dataclasses.replace(row, hash=event_hash(row))


def verify_events(events: Sequence[Event], head: Head) -> tuple[str, ...]:
    """Check the ledger of a database against its chain and its head; one sentence for each thing that is wrong."""
    return tuple(chain_problems(events, head, "event", event_hash))


def event_times(events: Sequence[Event], now: dt.datetime) -> tuple[str, ...]:
    """Name the events whose time goes back, or has not come yet, one sentence each."""
    said = [
        f"Event {later.number} has the time {utc(later.at)}, before that of event {earlier.number}, "
        f"{utc(earlier.at)}: a clock was set back, or one of the times is not true."
        for earlier, later in pairwise(events)
        if later.at < earlier.at
    ]
    said += [
        f"Event {event.number} has the time {utc(event.at)}, which has not come yet."
        for event in events
        if event.at > now
    ]
    return tuple(said)


def claim_of(last: Event | None) -> Claim | None:
    """Return where the first decisions of a run come from, by the last event on it; None when they are all its own."""
    if last is None or last.what is not Occasion.IMPORTED or last.file_digest is None:
        return None
    return Claim(last.who, last.authenticated, last.at, last.file_digest, last.decisions, last.head_hash)


def returned(events: Sequence[Event], decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Say of a run that is here how its ledger stands to those that were deleted with it.

    Parameters
    ----------
    events
        On this run, in order.
    decisions
        Of the run as it is now, in order.
    """
    said = []
    for event in events:
        if event.what is not Occasion.DELETED:
            continue
        if event.decisions == 0:
            now = "it had none to lose"
        elif begins_with(decisions, Head(event.decisions, event.head_hash)):
            now = "the ledger here now begins with the same"
        else:
            now = "the ledger here now is another one"
        said.append(f"{event.in_words()}; {now}.")
    return tuple(said)


def begins_with(rows: Sequence[Linked], head: Head) -> bool:
    """Tell whether a ledger that verifies has, at the number of a head, the row with its hash."""
    return head.count == 0 or any(row.number == head.count and row.hash == head.hash for row in rows)
