"""Whatever is changed, removed or moved in a ledger is named; what was redacted is told apart."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import pytest

from tepa_core.decisions import (
    EMPTY,
    NO_HASH,
    Action,
    Category,
    Decision,
    Head,
    content_hash,
    linked,
    redacted,
    redactions,
    verify,
)
from tests.decisions.test_model import decision


def ledger(count: int) -> tuple[list[Decision], Head]:
    rows: list[Decision] = []
    head = EMPTY
    for number in range(1, count + 1):
        row = linked(decision(0, decision_id=f"d{number}", reason=f"reason {number}"), head)
        rows.append(row)
        head = Head(row.number, row.hash)
    return rows, head


def test_a_ledger_as_written_has_no_problem() -> None:
    for count in range(4):
        assert verify(*ledger(count)) == ()


def test_links_by_hand() -> None:
    rows, head = ledger(2)
    assert [row.number for row in rows] == [1, 2]
    assert rows[0].previous_hash == NO_HASH
    assert rows[1].previous_hash == rows[0].hash
    assert head == Head(2, rows[1].hash)
    digest = hashlib.sha256(b"5a17\x1freason 1").hexdigest()
    assert rows[0].reason_digest == digest
    canonical = (
        '{"action":"reactivate","authenticated":false,"category":"other","decided_at":"2026-03-01T12:00:00.000000+00:00",'
        '"decision_id":"d1","effect":"{}","effective_at":81,"number":1,"pinned":false,"precedent_id":"p",'
        f'"previous_hash":"{NO_HASH}","reason_digest":"{digest}","reviewer":"Ana Lima","run_id":"r","undoes":null,'
        '"version":"v"}'
    )
    assert rows[0].hash == hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("decision_id", "d9"),
        ("run_id", "s"),
        ("precedent_id", "q"),
        ("action", Action.CONFIRM),
        ("pinned", True),
        ("category", Category.POLICY),
        ("reviewer", "Bo"),
        ("authenticated", True),
        ("decided_at", decision(1).decided_at.replace(hour=13)),
        ("effective_at", 82),
        ("version", "w"),
        ("effect", '{"x":1}'),
        ("undoes", "d1"),
        ("reason_digest", "0" * 64),
        ("previous_hash", "0" * 63 + "1"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_changed_field_names_its_row(field: str, value: Any, at: int) -> None:
    rows, head = ledger(3)
    rows[at] = dataclasses.replace(rows[at], **{field: value})
    problems = verify(rows, head)
    assert f"Decision {at + 1} was changed in a field other than its reason." in problems
    assert not any(f"ecision {other} " in problem for other in {1, 2, 3} - {at + 1} for problem in problems)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_changed_reason_is_told_from_other_fields(at: int) -> None:
    rows, head = ledger(3)
    rows[at] = dataclasses.replace(rows[at], reason="something else")
    assert verify(rows, head) == (f"The reason of decision {at + 1} was changed.",)


def test_a_redacted_reason_is_no_change() -> None:
    rows, head = ledger(3)
    rows[1] = redacted(rows[1])
    assert (rows[1].reason, rows[1].reason_salt) == (None, None)
    assert verify(rows, head) == ()
    assert redactions(rows) == ("The reason of decision 2 was redacted.",)
    rows[1] = dataclasses.replace(rows[1], reason="made up", reason_salt="00")
    assert verify(rows, head) == ("The reason of decision 2 was changed.",)


def test_a_reason_removed_by_hand_is_a_problem() -> None:
    rows, head = ledger(1)
    rows[0] = dataclasses.replace(rows[0], reason=None)
    assert verify(rows, head) == ("The reason of decision 1 was removed without being redacted.",)
    assert redactions(rows) == ()


def test_rows_missing_at_the_end_are_counted() -> None:
    rows, head = ledger(5)
    assert verify(rows[:4], head) == ("1 decision is missing at the end.",)
    assert verify(rows[:3], head) == ("2 decisions are missing at the end.",)
    assert verify([], head) == ("5 decisions are missing at the end.",)


def test_rows_missing_before_the_end_are_named() -> None:
    rows, head = ledger(5)
    assert verify([rows[0], *rows[2:]], head) == ("1 decision is missing before the end: number 2.",)
    assert verify([rows[0], rows[4]], head) == ("3 decisions are missing before the end: numbers 2, 3, 4.",)
    assert verify(rows[1:4], head) == (
        "1 decision is missing before the end: number 1.",
        "1 decision is missing at the end.",
    )


def test_rows_out_of_order_or_twice_are_named() -> None:
    rows, head = ledger(3)
    assert verify([rows[0], rows[2], rows[1]], head) == (
        "Decision 2 stands after decision 3: the rows are out of order.",
    )
    assert verify([rows[0], rows[1], rows[1], rows[2]], head) == ("Decision 2 is there twice.",)


def test_a_row_beyond_the_head_is_named() -> None:
    rows, _ = ledger(3)
    assert verify(rows, Head(2, rows[1].hash)) == ("The head counts 2, but there is more: number 3.",)


def test_a_changed_hash_is_told_from_a_changed_row() -> None:
    rows, head = ledger(3)
    rows[1] = dataclasses.replace(rows[1], hash="f" * 64)
    assert verify(rows, head) == ("The hash of decision 2 was changed.",)


def test_a_row_written_anew_does_not_fit_its_successor_or_the_head() -> None:
    rows, head = ledger(3)
    for at, says in (
        (1, "Decision 2 is not the one that decision 3 was linked to."),
        (2, "The head does not hold the hash of the last decision, number 3."),
    ):
        forged = dataclasses.replace(rows[at], reviewer="Bo")
        forged = dataclasses.replace(forged, hash=content_hash(forged))
        assert verify([*rows[:at], forged, *rows[at + 1 :]], head) == (says,)


def test_a_decision_without_words_cannot_be_linked() -> None:
    with pytest.raises(ValueError, match="reason"):
        linked(decision(0, reason=None), EMPTY)
