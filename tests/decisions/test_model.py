"""Which decisions count, and how a row travels as JSON."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from typing import Any

import pytest

from tepa_core.decisions import EMPTY, Action, Category, Decision, in_effect, initials, linked, reason_in_words
from tepa_core.lifecycle import Verdict


def decision(number: int, action: Action = Action.REACTIVATE, **changed: Any) -> Decision:
    row = Decision(
        number=number,
        decision_id=f"d{number}",
        run_id="r",
        precedent_id="p",
        action=action,
        pinned=False,
        category=Category.OTHER,
        reason="the knee is fine",
        reviewer="Ana Lima",
        authenticated=False,
        decided_at=dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC),
        effective_at=81,
        version="v",
        effect="{}",
        undoes=None,
        reason_salt="5a17",
        reason_digest="",
        previous_hash="",
        hash="",
    )
    return dataclasses.replace(row, **changed)


def test_undone_decisions_and_undos_are_not_in_effect() -> None:
    rows = [decision(1), decision(3, Action.UNDO, undoes="d1"), decision(2, Action.CONFIRM)]
    assert [row.number for row in in_effect(rows)] == [2]
    assert [row.number for row in in_effect([rows[2], rows[0]])] == [1, 2]


def test_what_the_rule_is_told() -> None:
    told = [
        decision(1).verdict,
        decision(1, pinned=True).verdict,
        decision(1, Action.CONFIRM).verdict,
        decision(1, Action.BOTH_VALID).verdict,
        decision(1, Action.UNDO).verdict,
    ]
    assert told == [Verdict.REACTIVATE, Verdict.PIN, Verdict.CONFIRM, Verdict.BOTH_VALID, None]


def test_a_row_survives_json() -> None:
    row = linked(decision(0), EMPTY)
    assert Decision.from_dict(json.loads(json.dumps(row.as_dict()))) == row


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("number", "1", "number"),
        ("number", True, "number"),
        ("pinned", 1, "pinned"),
        ("reviewer", None, "reviewer"),
        ("action", "destroy", "destroy"),
        ("category", "", "Category"),
        ("decided_at", "2026-03-01T12:00:00", "time zone"),
        ("decided_at", "yesterday", "yesterday"),
    ],
)
def test_a_row_of_other_kinds_is_refused(field: str, value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Decision.from_dict(decision(1).as_dict() | {field: value})


def test_a_row_with_other_fields_is_refused() -> None:
    content = decision(1).as_dict()
    with pytest.raises(ValueError, match="fields"):
        Decision.from_dict(content | {"shoe_size": 42})
    del content["reason"]
    with pytest.raises(ValueError, match="fields"):
        Decision.from_dict(content)


def test_times_are_read_in_any_zone() -> None:
    read = Decision.from_dict(decision(1).as_dict() | {"decided_at": "2026-03-01T05:00:00-07:00"})
    assert read == decision(1)


def test_words_for_people() -> None:
    assert reason_in_words(decision(1)) == "Ana Lima (other: “the knee is fine”)"
    redacted = decision(1, reason=None, category=Category.KEY_ERROR)
    assert reason_in_words(redacted) == "Ana Lima (key error: reason redacted)"
    assert [initials(name) for name in ("", "ana", "Ana Maria de Lima", "u-x")] == ["", "A", "AL", "UX"]
