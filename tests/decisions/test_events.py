"""The ledger of a database: its chain, and what it says of runs that come and go."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
from typing import Any

import pytest

from tepa_core.decisions import (
    EMPTY,
    NO_HASH,
    Event,
    Head,
    Occasion,
    claim_of,
    event_times,
    linked,
    linked_event,
    returned,
    times_going_back,
    verify_events,
)
from tests.decisions.test_model import decision

NOON = dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def event(what: Occasion = Occasion.DELETED, **changed: Any) -> Event:
    row = Event(
        number=0,
        at=NOON,
        who="Bo",
        authenticated=True,
        what=what,
        run_id="r",
        kind="log",
        name_digest="n" * 64,
        decisions=0,
        head_hash=NO_HASH,
        file_digest="f" * 64 if what is Occasion.IMPORTED else None,
        previous_hash="",
        hash="",
    )
    return dataclasses.replace(row, **changed)


def chain(*events: Event) -> tuple[list[Event], Head]:
    rows: list[Event] = []
    head = EMPTY
    for one in events:
        rows.append(linked_event(one, head))
        head = Head(rows[-1].number, rows[-1].hash)
    return rows, head


def test_links_by_hand() -> None:
    rows, head = chain(event())
    canonical = (
        '{"at":"2026-03-01T12:00:00.000000+00:00","authenticated":true,"decisions":0,"file_digest":null,'
        f'"head_hash":"{NO_HASH}","kind":"log","name_digest":"{"n" * 64}","number":1,"previous_hash":"{NO_HASH}",'
        '"run_id":"r","what":"run deleted","who":"Bo"}'
    )
    assert rows[0].hash == hashlib.sha256(canonical.encode()).hexdigest()
    assert head == Head(1, rows[0].hash)
    assert verify_events(rows, head) == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", NOON + HOUR),
        ("who", "Ana"),
        ("authenticated", False),
        ("what", Occasion.IMPORTED),
        ("run_id", "s"),
        ("kind", "simulation"),
        ("name_digest", "m" * 64),
        ("decisions", 7),
        ("head_hash", "a" * 64),
        ("file_digest", "b" * 64),
    ],
)
def test_every_field_that_is_changed_is_named(field: str, value: Any) -> None:
    rows, head = chain(*[event()] * 3)
    rows[1] = dataclasses.replace(rows[1], **{field: value})
    assert verify_events(rows, head) == ("Event 2 was changed.",)


def test_rows_that_are_gone_and_a_chain_that_was_written_anew_are_named() -> None:
    rows, head = chain(*[event()] * 3)
    assert verify_events(rows[:2], head) == ("1 event is missing at the end.",)
    assert verify_events([rows[0], rows[2]], head) == ("1 event is missing before the end: number 2.",)
    anew, _ = chain(*[event(who="Ana")] * 3)
    assert verify_events(anew, head) == ("The head does not hold the hash of the last event, number 3.",)


def test_only_the_last_event_says_where_a_run_comes_from() -> None:
    rows, _ = chain(event(Occasion.IMPORTED, decisions=2, head_hash="a" * 64), event())
    claim = claim_of(rows[0])
    assert claim is not None
    assert (claim.imported_by, claim.imported_at, claim.file_digest, claim.decisions) == ("Bo", NOON, "f" * 64, 2)
    assert claim.in_words() == (
        "claimed elsewhere, imported by Bo at 2026-03-01T12:00:00Z from file digest ffffffffffff"
    )
    assert claim_of(rows[1]) is None
    assert claim_of(None) is None


def test_what_came_back_is_compared_with_what_went() -> None:
    first = linked(decision(0), EMPTY)
    other = linked(decision(0, reviewer="Somebody"), EMPTY)
    second = linked(decision(0, decision_id="d2"), Head(1, first.hash))
    rows, _ = chain(event(decisions=1, head_hash=first.hash), event(Occasion.IMPORTED), event())
    begun = f"Run r was deleted here at 2026-03-01T12:00:00Z by Bo, with 1 decision ending in …{first.hash[-12:]}; "
    nothing = "Run r was deleted here at 2026-03-01T12:00:00Z by Bo, with 0 decisions; it had none to lose."
    for now, words in (
        ([first], "the ledger here now begins with the same."),
        ([first, second], "the ledger here now begins with the same."),
        ([other], "the ledger here now is another one."),
        ([], "the ledger here now is another one."),
    ):
        assert returned(rows, now) == (begun + words, nothing)


def test_times_that_go_back_or_have_not_come_are_named() -> None:
    rows = [decision(1), decision(2, decided_at=NOON - HOUR), decision(3, decided_at=NOON + 2 * HOUR)]
    assert times_going_back(rows, NOON + HOUR) == (
        "Decision 2 has the time 2026-03-01T11:00:00Z, before that of decision 1, 2026-03-01T12:00:00Z: "
        "a clock was set back, or one of the times is not true.",
        "Decision 3 has the time 2026-03-01T14:00:00Z, which has not come yet.",
    )
    assert times_going_back([decision(1), decision(2)], NOON) == ()
    claim = claim_of(event(Occasion.IMPORTED, decisions=1, at=NOON - HOUR))
    assert times_going_back([decision(1, claim=claim)], NOON + HOUR) == (
        "Decision 1 has the time 2026-03-01T12:00:00Z, later than it was imported, 2026-03-01T11:00:00Z.",
    )
    events, _ = chain(event(), event(at=NOON - HOUR))
    assert event_times(events, NOON - HOUR) == (
        "Event 2 has the time 2026-03-01T11:00:00Z, before that of event 1, 2026-03-01T12:00:00Z: "
        "a clock was set back, or one of the times is not true.",
        "Event 1 has the time 2026-03-01T12:00:00Z, which has not come yet.",
    )
