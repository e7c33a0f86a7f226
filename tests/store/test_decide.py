"""Decisions in the store: who may, on which version, what follows, and that nothing is lost or half there."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tepa_core.decisions import (
    DEFAULT_CATEGORY,
    PROGRAM,
    Action,
    Actor,
    Category,
    Decision,
    DecisionRefused,
    PermissionRefused,
    Role,
    StaleVersion,
    in_effect,
    verify,
)
from tepa_core.experiment import RunResult, RunSpec, run
from tepa_core.lifecycle import Thresholds
from tepa_core.store import (
    LogImport,
    Store,
    UnknownPrecedentError,
    UnknownRunError,
    delete_run,
    explanation,
    key_life,
    precedent_life,
    queries,
    save_log,
    save_run,
)
from tepa_core.store.archive_file import export_run, import_archive
from tepa_core.store.decide import DecisionRequest, examine, precedent_version, record, redact_reason
from tepa_core.store.foreseen import foreseen
from tepa_core.store.ledger import decisions_of, reasserted, reviewer_agreement, verify_ledger
from tests.store.test_write import rows_of

MakeLog = Callable[..., LogImport]

ANA = Actor("Ana Lima", authenticated=False, role=Role.REVIEWER)
BO = Actor("bo@house.example", authenticated=True, role=Role.REVIEWER)
START = pd.Timestamp("2026-03-01", tz="UTC")
DERIVED = ("evidence", "precedent", "transition", "episode", "trial")


def minute(number: int) -> int:
    return int((START + pd.Timedelta(minutes=number)).timestamp() * 1_000_000)


def said(*values: str) -> list[tuple[int, str, str, str, bool, None]]:
    """One statement a minute about what somebody drinks."""
    return [(number, "u", "drink", value, True, None) for number, value in enumerate(values)]


def decide(store: Store, run_id: str, precedent: str, action: Action, actor: Actor = ANA, **more: Any) -> Decision:
    category = more.pop("category", DEFAULT_CATEGORY[action])
    reason = more.pop("reason", "as the traveller told us")
    return record(store.acting(actor), DecisionRequest(run_id, precedent, action, category, reason, **more))


def ids(store: Store, run_id: str) -> dict[str, str]:
    found = queries.precedents(store, run_id)
    return dict(zip(found["value"], found["id"], strict=True))


def states(store: Store, run_id: str) -> dict[str, str]:
    found = queries.precedents(store, run_id)
    return dict(zip(found["value"], found["state"], strict=True))


def snapshot(store: Store, run_id: str) -> dict[str, pd.DataFrame]:
    return {table: rows_of(store, table, run_id) for table in DERIVED}


def assert_same(a: dict[str, pd.DataFrame], b: dict[str, pd.DataFrame]) -> None:
    for table in DERIVED:
        pd.testing.assert_frame_equal(a[table], b[table], obj=table)


#: tea is revoked at minute 5: four supports, then two conflicts among its last three outcomes (1 0 0).
TEA_FALLS = ("tea", "tea", "tea", "tea", "coffee", "coffee")


@pytest.fixture
def drinks(store: Store, make_log: MakeLog) -> str:
    return save_log(store, make_log(said(*TEA_FALLS)), Thresholds())


# Who, and in what words ---------------------------------------------------------------------------------------------


def test_a_viewer_is_refused_where_the_row_is_written(store: Store, drinks: str) -> None:
    before = snapshot(store, drinks)
    viewer = Actor("Vi", authenticated=True, role=Role.VIEWER)
    with pytest.raises(PermissionRefused, match="Vi may look but not change anything"):
        decide(store, drinks, ids(store, drinks)["tea"], Action.REACTIVATE, viewer)
    decide(store, drinks, ids(store, drinks)["tea"], Action.CONFIRM)
    with pytest.raises(PermissionRefused):
        redact_reason(store.acting(viewer), drinks, 1)
    assert [row.reason for row in decisions_of(store, drinks)] == ["as the traveller told us"]
    assert_same(before, snapshot(store, drinks))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"reason": "  "}, "needs a reason"),
        ({"reason": "x" * 4001}, "4,001 characters"),
        ({"action": Action.CONFIRM, "pinned": True}, "pinned"),
        ({"action": Action.CONFIRM, "category": Category.WRONG_REVOCATION}, "was not wrong"),
        ({"undoes": "d1"}, "Only an undo"),
        ({"at": minute(6)}, "outside the run"),
        ({"at": minute(-1)}, "outside the run"),
        ({"at": minute(4)}, "tea is active on 1 March 2026, 00:04 UTC"),
        ({"action": Action.UNDO}, "nothing to undo"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_nothing_written(
    store: Store, drinks: str, changed: dict[str, Any], says: str
) -> None:
    before = snapshot(store, drinks)
    request = DecisionRequest(drinks, ids(store, drinks)["tea"], Action.REACTIVATE, Category.OTHER, "because")
    for attempt in (lambda asked: record(store.acting(ANA), asked), lambda asked: examine(store, asked)):
        with pytest.raises(DecisionRefused, match=says):
            attempt(dataclasses.replace(request, **changed))
    assert decisions_of(store, drinks) == ()
    assert verify_ledger(store, drinks).head.count == 0
    assert_same(before, snapshot(store, drinks))


def test_unknown_things_are_named(store: Store, drinks: str) -> None:
    tea = ids(store, drinks)["tea"]
    with pytest.raises(UnknownRunError):
        decide(store, "nowhere", tea, Action.CONFIRM)
    with pytest.raises(UnknownPrecedentError):
        decide(store, drinks, "p0", Action.CONFIRM)
    with pytest.raises(UnknownPrecedentError):
        precedent_version(store, drinks, "p0")
    with pytest.raises(DecisionRefused, match="no decision 3"):
        redact_reason(store.acting(ANA), drinks, 3)
    with pytest.raises(DecisionRefused, match="needs the name"):
        decide(store, drinks, tea, Action.CONFIRM, Actor("  ", authenticated=False, role=Role.REVIEWER))


def test_what_was_never_revoked_cannot_be_decided_on(store: Store, drinks: str) -> None:
    with pytest.raises(DecisionRefused, match="coffee was never revoked"):
        decide(store, drinks, ids(store, drinks)["coffee"], Action.REACTIVATE)


def test_fact_runs_and_runs_of_another_version_are_refused(store: Store, simulation: RunResult) -> None:
    run_id = save_run(store, simulation)
    id_ = queries.archive(store, run_id)["id"].iloc[0]
    with store.write() as cursor:
        cursor.execute("UPDATE run SET program = '0.0.1'")
    with pytest.raises(DecisionRefused, match=r"played by version 0\.0\.1"):
        decide(store, run_id, id_, Action.CONFIRM)
    with store.write() as cursor:
        cursor.execute("UPDATE run SET stream = 'facts'")
    with pytest.raises(DecisionRefused, match="fact run"):
        decide(store, run_id, id_, Action.CONFIRM)


def test_a_row_says_who_when_why_and_on_what(store: Store, drinks: str) -> None:
    tea = ids(store, drinks)["tea"]
    version, began = precedent_version(store, drinks, tea), pd.Timestamp.now("UTC")
    row = decide(store, drinks, tea, Action.REACTIVATE, BO, reason=" a typo ", effect={"transitions_changed": 2})
    assert decisions_of(store, drinks) == (row,)
    assert (row.number, row.run_id, row.precedent_id, row.action) == (1, drinks, tea, Action.REACTIVATE)
    assert (row.reviewer, row.authenticated, row.reason) == ("bo@house.example", True, "a typo")
    assert (row.version, json.loads(row.effect)) == (version, {"transitions_changed": 2})
    assert began <= pd.Timestamp(row.decided_at) <= pd.Timestamp.now("UTC")
    assert row.effective_at == minute(5)
    assert precedent_version(store, drinks, tea) != version


# What follows in a log ----------------------------------------------------------------------------------------------


def test_reactivate_until_contradicted_or_pinned(store: Store, make_log: MakeLog) -> None:
    # At minute 6 coffee has its third support since the fall of tea: it takes the key from a reactivated tea, but not
    # from a pinned one.
    run_id = save_log(store, make_log(said(*TEA_FALLS, "coffee", "coffee", "coffee")), Thresholds())
    tea = ids(store, run_id)["tea"]
    decide(store, run_id, tea, Action.REACTIVATE, at=minute(5))
    steps = queries.transitions(store, run_id, tea)
    assert steps["rule"].tolist() == ["proposed", "promoted", "recent", "decided", "superseded"]
    assert steps["occurred"].tolist()[2:] == [START + pd.Timedelta(minutes=number) for number in (5, 5, 6)]
    assert steps["life"].tolist()[-2:] == [2, 2]
    decide(store, run_id, tea, Action.UNDO)
    decide(store, run_id, tea, Action.REACTIVATE, pinned=True, at=minute(5))
    # Coffee stays a hypothesis: the pinned value keeps the key.
    assert states(store, run_id) == {"tea": "deprecated", "coffee": "hypothesis"}
    life = precedent_life(store, run_id, tea)
    assert "It is pinned" in life.standing(tea)
    assert "Another value of the key is pinned" in life.standing(ids(store, run_id)["coffee"])


def test_both_valid_counts_no_conflict_from_then_on(store: Store, make_log: MakeLog) -> None:
    # Coffee is active at minute 6 (two supports by the fall of tea at 5, a third at 6). From the decision on, two
    # supports each: tea 4 + 2 against the 2 of its first life, coffee 3 + 2 against none.
    values = (*TEA_FALLS, "coffee", "coffee", "tea", "coffee", "tea")
    run_id = save_log(store, make_log(said(*values)), Thresholds())
    tea = ids(store, run_id)["tea"]
    decide(store, run_id, tea, Action.BOTH_VALID, at=minute(6))
    found = queries.precedents(store, run_id).set_index("value")
    assert found["state"].to_dict() == {"tea": "active", "coffee": "active"}
    assert found["support"].to_dict() == {"tea": 6, "coffee": 5}
    assert found["conflict"].to_dict() == {"tea": 2, "coffee": 0}
    agreement = reviewer_agreement(store, run_id).set_index(["by", "name"])
    for group in (("all", "all"), ("rule", "recent"), ("key", "drink")):
        row = agreement.loc[group]
        assert (row["right"], row["wrong"], row["other"], row["precision"]) == (0, 1, 0, 0.0)
        # Wilson, 0 of 1: the upper bound is z^2 / (1 + z^2).
        assert (row["lo"], row["hi"]) == (0.0, pytest.approx(1.959964**2 / (1 + 1.959964**2), abs=1e-6))


def test_confirmed_and_asserted_again_stays_archived_and_asks(store: Store, make_log: MakeLog) -> None:
    # Against the two conflicts of its fall the fourth support is the first with (4 + 1) / (4 + 2 + 2) >= 0.6: minute 9.
    run_id = save_log(store, make_log(said(*TEA_FALLS, *["tea"] * 5)), Thresholds())
    tea = ids(store, run_id)["tea"]
    assert states(store, run_id)["tea"] == "active"
    row = decide(store, run_id, tea, Action.CONFIRM, BO, at=minute(5))
    assert states(store, run_id)["tea"] == "revoked"
    asked = reasserted(store, run_id)
    assert asked["id"].tolist() == [tea]
    assert asked["reasserted_at"].tolist() == [START + pd.Timedelta(minutes=9)]
    assert asked[["times", "decision_id", "reviewer"]].to_numpy().tolist() == [[1, row.decision_id, BO.name]]
    # A re-assertion is no revocation: the archive goes on showing the one at minute 5.
    listed = queries.archive(store, run_id)
    assert listed[["rule", "revocations"]].to_numpy().tolist() == [["recent", 1]]
    assert listed["revoked_at"].tolist() == [START + pd.Timedelta(minutes=5)]
    assert queries.keys(store, run_id)["revocations"].tolist() == [1]
    step = explanation(store, run_id, tea)["transitions"][-1]
    assert (step["rule"], step["from"], step["to"]) == ("reasserted", "revoked", "revoked")
    assert "four fresh supports against two conflicts" in step["sentence"]
    assert "bo@house.example" in step["sentence"]
    assert "confirmed its revocation" in step["sentence"]
    # Looked at again: a new decision answers the question.
    decide(store, run_id, tea, Action.CONFIRM)
    assert reasserted(store, run_id).empty
    assert "Its revocation is confirmed" in precedent_life(store, run_id, tea).standing(tea)


def test_agreement_counts_each_judged_revocation_once(store: Store, make_log: MakeLog) -> None:
    rows = [
        (number, f"u{user}", "drink" if user < 2 else "food", value, True, None)
        for user in range(5)
        for number, value in enumerate(TEA_FALLS)
    ]
    run_id = save_log(store, make_log(rows), Thresholds())
    found = queries.archive(store, run_id).sort_values("subject")["id"].tolist()
    decide(store, run_id, found[0], Action.CONFIRM)
    decide(store, run_id, found[0], Action.REACTIVATE)
    decide(store, run_id, found[1], Action.REACTIVATE, category=Category.OBSOLETE)
    decide(store, run_id, found[2], Action.CONFIRM, category=Category.POLICY)
    decide(store, run_id, found[3], Action.REACTIVATE, category=Category.KEY_ERROR)
    decide(store, run_id, found[4], Action.REACTIVATE)
    decide(store, run_id, found[4], Action.UNDO)
    table = reviewer_agreement(store, run_id).set_index(["by", "name"])
    counts = table[["right", "wrong", "other"]].to_dict("index")
    assert counts[("all", "all")] == {"right": 2, "wrong": 1, "other": 1}
    assert counts[("key", "drink")] == {"right": 1, "wrong": 1, "other": 0}
    assert counts[("key", "food")] == {"right": 1, "wrong": 0, "other": 1}
    assert table.loc[("all", "all"), "precision"] == pytest.approx(2 / 3)


def test_nothing_judged_is_an_empty_table(store: Store, drinks: str) -> None:
    assert reviewer_agreement(store, drinks).empty
    decide(store, drinks, ids(store, drinks)["tea"], Action.REACTIVATE, category=Category.DUPLICATE)
    table = reviewer_agreement(store, drinks)
    assert table["other"].tolist() == [1, 1, 1]
    assert table[["precision", "lo", "hi"]].isna().all(axis=None)


def test_a_decision_stands_in_the_life_and_not_among_the_evidence(store: Store, make_log: MakeLog) -> None:
    refuted = [(number, "u", "drink", "tea", False, None) for number in (6, 7, 8)]
    run_id = save_log(store, make_log([*said(*TEA_FALLS), *refuted]), Thresholds())
    tea = ids(store, run_id)["tea"]
    plain = key_life(store, run_id, "drink", subject="u")
    row = decide(store, run_id, tea, Action.REACTIVATE, at=minute(5))
    decide(store, run_id, tea, Action.CONFIRM, BO)
    for order in ("event", "arrival"):
        before = key_life(store, run_id, "drink", subject="u", order=order)
        assert before.decisions["number"].tolist() == [1, 2]
    life = key_life(store, run_id, "drink", subject="u")
    pd.testing.assert_frame_equal(life.items[plain.items.columns], plain.items)
    flag = life.decisions.iloc[0]
    assert (flag["x"], flag["value"], flag["initials"]) == (START + pd.Timedelta(minutes=5), "tea", "AL")
    assert (flag["decision_id"], flag["after"]) == (row.decision_id, 6)
    assert "as the traveller told us" in flag["text"]
    spans = life.spans[life.spans["value"] == "tea"]
    told = [(span.state, (span.x0 - START) / pd.Timedelta(minutes=1), span.life) for span in spans.itertuples()]
    # Active at 2; a conflict at 4; out at 5 and back by the decision; conflicts at 6 and 7; out at 8.
    assert told == [
        ("candidate", 0, 0),
        ("active", 2, 1),
        ("deprecated", 4, 1),
        ("revoked", 5, 1),
        ("active", 5, 2),
        ("deprecated", 6, 2),
        ("revoked", 8, 2),
    ]
    sentences = [life.why(name).sentence for name in life.transitions["transition_id"]]
    assert sum("a decision of Ana Lima (wrong revocation: “as the traveller told us”)" in one for one in sentences) == 1
    second = life.transitions[(life.transitions["id"] == tea) & (life.transitions["rule"] == "recent")].iloc[-1]
    lines = {line.quantity: (line.before, line.after) for line in life.why(second["transition_id"]).lines}
    # The window of the second life begins after the decision.
    assert lines["last 3 outcomes"] == ("conflict conflict", "conflict conflict conflict")


def test_a_decision_that_supersedes_is_explained_and_is_no_batch(store: Store, make_log: MakeLog) -> None:
    rows = [
        (number, f"u{user}", "drink", value, True, None)
        for user in range(4)
        for number, value in enumerate((*TEA_FALLS, "coffee"))
    ]
    run_id = save_log(store, make_log(rows), Thresholds())
    for id_ in queries.archive(store, run_id)["id"]:
        decide(store, run_id, id_, Action.REACTIVATE)
    coffee = queries.precedents(store, run_id, rule="superseded")
    assert len(coffee) == 4
    # One decision each at the end of the log is no job that revoked four memories at once.
    assert set(coffee["batch_size"]) == {1}
    assert queries.precedents(store, run_id, rule="superseded", batch=True).empty
    assert set(queries.archive(store, run_id).query("value == 'coffee'")["batch_size"]) == {1}
    step = explanation(store, run_id, coffee["id"].iloc[0])["transitions"][-1]
    assert "a decision of Ana Lima" in step["sentence"]
    assert step["evidence"] == []


# Versions -----------------------------------------------------------------------------------------------------------


def test_the_second_of_two_reviewers_is_told_what_the_first_decided(store: Store, drinks: str) -> None:
    tea = ids(store, drinks)["tea"]
    version = precedent_version(store, drinks, tea)
    first = decide(store, drinks, tea, Action.CONFIRM, BO, expect_version=version)
    before = snapshot(store, drinks)
    with pytest.raises(StaleVersion) as refusal:
        decide(store, drinks, tea, Action.REACTIVATE, expect_version=version)
    (sentence,) = refusal.value.what_changed
    assert sentence.startswith(f"bo@house.example confirmed the revocation of it at {first.decided_at:%H:%M} UTC")
    assert "Nothing was saved" in str(refusal.value)
    assert decisions_of(store, drinks) == (first,)
    assert_same(before, snapshot(store, drinks))
    decide(store, drinks, tea, Action.REACTIVATE, expect_version=precedent_version(store, drinks, tea))
    assert len(decisions_of(store, drinks)) == 2


def test_new_evidence_and_new_thresholds_are_told(store: Store, drinks: str) -> None:
    tea = ids(store, drinks)["tea"]
    version = precedent_version(store, drinks, tea)
    with store.write() as cursor:
        cursor.execute(
            "INSERT INTO evidence SELECT * REPLACE (seq + 100 AS seq) FROM evidence WHERE run_id = ? AND seq >= 4",
            [drinks],
        )
    with pytest.raises(StaleVersion) as refusal:
        decide(store, drinks, tea, Action.REACTIVATE, expect_version=version)
    assert refusal.value.what_changed == ("2 evidence items arrived on the key.",)
    version = precedent_version(store, drinks, tea)
    changed = json.dumps(dataclasses.asdict(Thresholds(theta_rec=0.2)))
    with store.write() as cursor:
        cursor.execute("UPDATE run SET thresholds = ? WHERE run_id = ?", [changed, drinks])
    with pytest.raises(StaleVersion) as refusal:
        decide(store, drinks, tea, Action.REACTIVATE, expect_version=version)
    assert refusal.value.what_changed == ("theta_rec was 0.34, is 0.2.",)
    version = precedent_version(store, drinks, tea)
    with store.write() as cursor:
        cursor.execute("UPDATE run SET thresholds = ?", [json.dumps(dataclasses.asdict(Thresholds(n_min=7)))])
        cursor.execute("DELETE FROM evidence WHERE seq = 105")
    with pytest.raises(StaleVersion) as refusal:
        decide(store, drinks, tea, Action.REACTIVATE, expect_version=version)
    assert refusal.value.what_changed == (
        "1 evidence item of the key went.",
        "n_min was 5, is 7.",
        "theta_rec was 0.2, is 0.34.",
    )


def test_a_change_of_nothing_but_the_states_is_told_too(store: Store, drinks: str) -> None:
    tea = ids(store, drinks)["tea"]
    version = precedent_version(store, drinks, tea)
    with store.write() as cursor:
        cursor.execute("UPDATE precedent SET conflict = 3 WHERE precedent_id = ?", [tea])
    with pytest.raises(StaleVersion, match="tea is revoked with 4 for and 3 against"):
        decide(store, drinks, tea, Action.CONFIRM, expect_version=version)
    with pytest.raises(DecisionRefused, match="'soon' is no version"):
        decide(store, drinks, tea, Action.CONFIRM, expect_version="soon")


def test_a_decision_on_another_key_changes_no_version(store: Store, make_log: MakeLog) -> None:
    rows = said(*TEA_FALLS) + [(n, "u", "food", value, True, None) for n, value in enumerate(TEA_FALLS)]
    run_id = save_log(store, make_log(rows), Thresholds())
    drink, food = queries.archive(store, run_id).sort_values("key")["id"]
    versions = precedent_version(store, run_id, drink), precedent_version(store, run_id, food)
    decide(store, run_id, food, Action.REACTIVATE)
    assert precedent_version(store, run_id, drink) == versions[0]
    assert precedent_version(store, run_id, food) != versions[1]


def test_a_double_click_is_one_decision(store: Store, drinks: str) -> None:
    tea = ids(store, drinks)["tea"]
    version = precedent_version(store, drinks, tea)
    asked = {"request_id": "form-1", "expect_version": version}
    first = decide(store, drinks, tea, Action.REACTIVATE, **asked)
    assert decide(store, drinks, tea, Action.REACTIVATE, **asked) == first
    path = store.path
    store.close()
    with Store(path, PROGRAM) as again:
        assert decide(again, drinks, tea, Action.REACTIVATE, **asked) == first
        assert decisions_of(again, drinks) == (first,)
        with pytest.raises(DecisionRefused, match="already used for another decision"):
            decide(again, drinks, tea, Action.CONFIRM, request_id="form-1")


# The ledger ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def three_decisions(store: Store, drinks: str) -> str:
    tea = ids(store, drinks)["tea"]
    for action in (Action.CONFIRM, Action.REACTIVATE, Action.UNDO):
        decide(store, drinks, tea, action)
    assert verify_ledger(store, drinks).ok
    return drinks


def test_rows_removed_in_the_file_are_counted(store: Store, three_decisions: str) -> None:
    with store.write() as cursor:
        cursor.execute("DELETE FROM decision WHERE number = 3")
    assert verify_ledger(store, three_decisions).problems == ("1 decision is missing at the end.",)
    # What is decided afterwards does not hide it.
    decide(store, three_decisions, ids(store, three_decisions)["tea"], Action.UNDO)
    assert verify_ledger(store, three_decisions).problems == ("1 decision is missing before the end: number 3.",)
    with store.write() as cursor:
        cursor.execute("DELETE FROM decision WHERE number >= 3")
    assert verify_ledger(store, three_decisions).problems == ("2 decisions are missing at the end.",)


def test_rows_changed_in_the_file_are_named(store: Store, three_decisions: str) -> None:
    with store.write() as cursor:
        cursor.execute("UPDATE decision SET reason = 'never said' WHERE number = 2")
    assert verify_ledger(store, three_decisions).problems == ("The reason of decision 2 was changed.",)
    with store.write() as cursor:
        cursor.execute("UPDATE decision SET reviewer = 'Bo' WHERE number = 1")
    assert verify_ledger(store, three_decisions).problems == (
        "Decision 1 was changed in a field other than its reason.",
        "The reason of decision 2 was changed.",
    )


def test_a_redacted_reason_is_gone_and_the_chain_holds(store: Store, three_decisions: str) -> None:
    shown = redact_reason(store.acting(BO), three_decisions, 1)
    assert shown.reason is None
    check = verify_ledger(store, three_decisions)
    assert (check.ok, check.redacted) == (True, ("The reason of decision 1 was redacted.",))
    with store.read() as cursor:
        kept = cursor.execute("SELECT reason, reason_salt FROM decision WHERE number = 1").fetchone()
    assert kept == (None, None)
    decide(store, three_decisions, shown.precedent_id, Action.REACTIVATE)
    assert verify_ledger(store, three_decisions).ok


def test_undo_gives_back_the_state_and_keeps_both_rows(store: Store, drinks: str) -> None:
    tea = ids(store, drinks)["tea"]
    before = snapshot(store, drinks)
    taken = decide(store, drinks, tea, Action.REACTIVATE)
    assert states(store, drinks)["tea"] == "active"
    undo = decide(store, drinks, tea, Action.UNDO, BO)
    assert_same(before, snapshot(store, drinks))
    assert decisions_of(store, drinks) == (taken, undo)
    assert (undo.undoes, undo.effective_at) == (taken.decision_id, taken.effective_at)
    for undoes, says in (
        (taken.decision_id, "Decision 1 has been undone already"),
        (undo.decision_id, "An undo cannot be undone; decide anew"),
        ("d0", "no decision d0"),
        (None, "nothing to undo"),
    ):
        with pytest.raises(DecisionRefused, match=says):
            decide(store, drinks, tea, Action.UNDO, undoes=undoes)


def test_a_log_stored_again_keeps_its_decisions(store: Store, make_log: MakeLog) -> None:
    log = make_log(said(*TEA_FALLS))
    run_id = save_log(store, log, Thresholds())
    decide(store, run_id, ids(store, run_id)["tea"], Action.REACTIVATE)
    decided = snapshot(store, run_id)
    save_log(store, log, Thresholds())
    assert_same(decided, snapshot(store, run_id))
    assert verify_ledger(store, run_id).head.count == 1
    delete_run(store, run_id)
    with store.read() as cursor:
        for table in ("decision", "ledger_head"):
            assert cursor.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608


def test_undoing_in_any_order_gives_back_the_exact_state(
    store: Store, make_log: MakeLog, random_rows: list[Any]
) -> None:
    run_id = save_log(store, make_log(random_rows), Thresholds(theta_prop=2))
    rng = random.Random(11)
    untouched = snapshot(store, run_id)
    falls = rows_of(store, "transition", run_id).query("to_state == 'revoked'")
    states_before = [untouched]
    taken: list[Decision] = []
    while len(taken) < 20:
        fall = falls.iloc[rng.randrange(len(falls))]
        action = rng.choice([Action.REACTIVATE, Action.CONFIRM, Action.BOTH_VALID])
        pinned = action is Action.REACTIVATE and rng.random() < 0.4
        try:
            row = decide(store, run_id, fall["precedent_id"], action, pinned=pinned, at=int(fall["occurred"]))
        except DecisionRefused:
            continue
        taken.append(row)
        states_before.append(snapshot(store, run_id))
    # The last decision first: each undo is the state before the decision.
    for row, expected in zip(taken[:9:-1], states_before[-2:9:-1], strict=True):
        decide(store, run_id, row.precedent_id, Action.UNDO, undoes=row.decision_id)
        assert_same(expected, snapshot(store, run_id))
    # The rest in any order: nothing is left of them.
    rest = taken[:10]
    rng.shuffle(rest)
    for row in rest:
        decide(store, run_id, row.precedent_id, Action.UNDO, undoes=row.decision_id)
    assert_same(untouched, snapshot(store, run_id))
    assert in_effect(decisions_of(store, run_id)) == ()
    assert verify_ledger(store, run_id).ok


# What follows in a simulation ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> RunResult:
    return run(RunSpec.build("controlled", seeds=3, methods=["tepa", "no_memory", "append_only"]))


def conventional(store: Store, run_id: str, seed: int = 0) -> Any:
    """Return the precedent that the reversal revokes."""
    found = queries.archive(store, run_id, method="tepa", seed=seed)
    return found[found["value"] == "conventional"].iloc[0]


def test_the_agent_acts_on_a_pinned_value_and_every_figure_follows(store: Store, world: RunResult) -> None:
    run_id = save_run(store, world)
    fallen = conventional(store, run_id)
    at, key = int(fallen["revoked_at"]), str(fallen["key"])
    before = snapshot(store, run_id)
    success = queries.success_per_seed(store, run_id)
    row = decide(store, run_id, fallen["id"], Action.REACTIVATE, pinned=True)
    assert row.effective_at == at
    # From the task after the decision on the key's tasks are acted on with the pinned value, whatever comes of it.
    stream = world.spec.stream_spec.make(0)
    value, k = stream.values.index("conventional"), stream.keys.index(key)
    act = np.where(stream.follows, value, stream.base_action)
    played = queries.episodes(store, run_id, "tepa", 0)
    later = (stream.key == k) & (np.arange(len(stream)) > at)
    earned = stream.outcome[np.arange(len(stream)), act]
    np.testing.assert_array_equal(played["success"].to_numpy()[later], earned[later])
    assert set(played["retrieved"][later]) == {"conventional"}
    first = before["episode"].query("method == 'tepa' and seed == 0").sort_values("t")
    np.testing.assert_array_equal(played["success"].to_numpy()[~later], first["success"].to_numpy()[~later])
    # Every question that reads the run sees it; other seeds and methods are as they were.
    after = queries.success_per_seed(store, run_id)
    both = success.merge(after, on=["method", "seed", "phase"], suffixes=("_before", "_after"))
    moved = both[both["success_before"] != both["success_after"]]
    assert set(zip(moved["method"], moved["seed"], strict=True)) == {("tepa", 0)}
    reversal = moved.set_index("phase").loc["reversal"]
    in_reversal = stream.phase == stream.phase_names.index("reversal")
    assert reversal["success_after"] == pytest.approx(played["success"].to_numpy()[in_reversal].mean())
    assert reversal["success_after"] < reversal["success_before"] - 0.3
    assert queries.precedents(store, run_id, method="tepa", seed=0, key=key, state="active")["value"].tolist() == [
        "conventional"
    ]
    falls = queries.revocations(store, run_id)
    assert falls.query("seed == 0 and key == @key and to_state == 'revoked' and occurred > @at").empty
    assert {"decided"} == set(falls.query("seed == 0 and key == @key and occurred == @at").tail(1)["rule"])
    curve = queries.curve_per_seed(store, run_id, 1)
    drawn = curve.query("method == 'tepa' and seed == 0")["success"].to_numpy()
    np.testing.assert_array_equal(drawn, played["success"].to_numpy())
    decide(store, run_id, fallen["id"], Action.UNDO)
    assert_same(before, snapshot(store, run_id))


def test_what_was_foreseen_is_what_comes(store: Store, world: RunResult) -> None:
    run_id = save_run(store, world)
    fallen = conventional(store, run_id)
    request = DecisionRequest(run_id, fallen["id"], Action.REACTIVATE, Category.OTHER, "try it", pinned=True)
    effect = foreseen(store, request)

    def measured() -> dict[str, float]:
        found = queries.success_per_seed(store, run_id).query("method == 'tepa' and seed == 0")
        return dict(zip(found["phase"], found["success"], strict=True))

    before = measured()
    row = record(store.acting(ANA), dataclasses.replace(request, effect=effect))
    after = measured()
    kept = json.loads(row.effect)["success"]
    assert {phase: numbers["before"] for phase, numbers in kept.items()} == pytest.approx(before)
    assert {phase: numbers["after"] for phase, numbers in kept.items()} == pytest.approx(after)
    undo = dataclasses.replace(request, action=Action.UNDO, pinned=False)
    turned = foreseen(store, undo)["success"]
    assert {phase: numbers["before"] for phase, numbers in turned.items()} == pytest.approx(after)
    assert {phase: numbers["after"] for phase, numbers in turned.items()} == pytest.approx(before)
    assert turned["reversal"]["difference"] == pytest.approx(before["reversal"] - after["reversal"])


def test_a_simulation_run_again_keeps_its_decisions(store: Store, world: RunResult) -> None:
    run_id = save_run(store, world)
    for seed in (0, 2):
        decide(store, run_id, conventional(store, run_id, seed)["id"], Action.REACTIVATE)
    decided = snapshot(store, run_id)
    save_run(store, world)
    assert_same(decided, snapshot(store, run_id))


def test_two_decisions_of_which_one_takes_the_ground_from_the_other(store: Store, world: RunResult) -> None:
    # Confirming the alternative, which rises in the reversal, is decided first; then the conventional value is pinned
    # from before, so the alternative never rises. Both rows stand, the first moves nothing, and each can be undone.
    run_id = save_run(store, world)
    untouched = snapshot(store, run_id)
    found = queries.archive(store, run_id, method="tepa", seed=0)
    alternative = found[found["value"] == "alternative"].iloc[0]
    decide(store, run_id, alternative["id"], Action.CONFIRM)
    decide(store, run_id, conventional(store, run_id)["id"], Action.REACTIVATE, pinned=True, at=81)
    steps = queries.transitions(store, run_id, alternative["id"])
    assert "active" not in set(steps["to_state"])
    pinned = snapshot(store, run_id)
    decide(store, run_id, alternative["id"], Action.UNDO)
    lives = ["transition", "episode", "evidence"]
    for table in lives:
        pd.testing.assert_frame_equal(pinned[table], rows_of(store, table, run_id))
    decide(store, run_id, conventional(store, run_id)["id"], Action.UNDO)
    assert_same(untouched, snapshot(store, run_id))


# Many at once, and killed --------------------------------------------------------------------------------------------


def test_500_mixed_decisions_of_two_reviewers_in_eight_threads(
    store: Store, make_log: MakeLog, random_rows: list[Any], tmp_path: Path
) -> None:
    run_id = save_log(store, make_log(random_rows), Thresholds(theta_prop=2))
    fallen = rows_of(store, "transition", run_id).query("to_state == 'revoked'")
    moments = list(zip(fallen["precedent_id"], fallen["occurred"].astype(int), strict=True))
    taken: list[str] = []
    refused: list[str] = []
    unexpected: list[BaseException] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        rng, actor = random.Random(number), (ANA, BO)[number % 2]
        while len(taken) < 500 and not unexpected:
            precedent, at = rng.choice(moments)
            # Mostly what is possible often: an undo makes room for the next decision.
            action = rng.choice([*Action, Action.CONFIRM, Action.UNDO])
            try:
                seen = precedent_version(store, run_id, precedent)
                row = decide(
                    store,
                    run_id,
                    precedent,
                    action,
                    actor,
                    at=None if action is Action.UNDO else at,
                    pinned=action is Action.REACTIVATE and rng.random() < 0.2,
                    expect_version=seen,
                )
            except DecisionRefused as refusal:
                with lock:
                    refused.append(type(refusal).__name__)
            except BaseException as error:
                unexpected.append(error)
                raise
            else:
                with lock:
                    taken.append(row.decision_id)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unexpected == []
    ledger = decisions_of(store, run_id)
    assert sorted(row.decision_id for row in ledger) == sorted(taken)
    assert len(set(taken)) == len(taken) >= 500
    assert [row.number for row in ledger] == list(range(1, len(taken) + 1))
    assert verify_ledger(store, run_id).ok
    assert {row.action for row in ledger} == set(Action)
    # Each saw the version on which it decided: two at once on one key would have seen the same.
    per_key: dict[str, list[str]] = {}
    places = queries.precedents(store, run_id).set_index("id")[["subject", "key"]]
    for row in ledger:
        per_key.setdefault("/".join(places.loc[row.precedent_id]), []).append(row.version)
    assert all(len(set(versions)) == len(versions) for versions in per_key.values())
    # The state is the one that evidence and ledger give when they are replayed from nothing.
    export_run(store, run_id, tmp_path / "run.zip")
    with Store(tmp_path / "other.duckdb", PROGRAM) as other:
        import_archive(other, tmp_path / "run.zip")
        assert_same(snapshot(store, run_id), snapshot(other, run_id))


_DECIDING = """
import os, random, sys
from pathlib import Path
from tepa_core.decisions import DEFAULT_CATEGORY, Action, Actor, DecisionRefused, Role
from tepa_core.lifecycle import Ledger
from tepa_core.store import Store
from tepa_core.store.decide import DecisionRequest, record

# Loaded and compiled once; each line asks for one more process that goes on from here.
Ledger().observe("k", "v")
path, run_id, *precedents = sys.argv[1:]
for line in sys.stdin:
    child = os.fork()
    if child:
        print("pid", child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)
        continue
    rng = random.Random(int(line))
    actor = Actor("Ana", False, Role.REVIEWER)
    with Store(Path(path)) as store:
        print("open", flush=True)
        while True:
            action = rng.choice([Action.REACTIVATE, Action.CONFIRM, Action.UNDO])
            request = DecisionRequest(run_id, rng.choice(precedents), action, DEFAULT_CATEGORY[action], "because")
            try:
                decision = record(store.acting(actor), request)
            except DecisionRefused:
                continue
            print("saved", decision.decision_id, flush=True)
"""


def test_killed_at_any_moment_what_was_acknowledged_is_there_and_nothing_half(
    store: Store, make_log: MakeLog, random_rows: list[Any], tmp_path: Path
) -> None:
    run_id = save_log(store, make_log(random_rows), Thresholds(theta_prop=2))
    revoked = queries.precedents(store, run_id, state="revoked")["id"].tolist()
    store.close()
    rng = random.Random(5)
    acknowledged: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", _DECIDING, str(store.path), run_id, *revoked],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        for number in range(20):
            parent.stdin.write(f"{number}\n")
            parent.stdin.flush()
            child, killer, until = 0, None, rng.choice([0, 1, 1, 2])
            for line in parent.stdout:
                word, _, rest = line.strip().partition(" ")
                if word == "pid":
                    child = int(rest)
                elif word == "saved":
                    acknowledged.append(rest)
                if word in ("open", "saved") and killer is None:
                    # Before, in or after its second or third decision, and now and then its first.
                    until -= 1
                    if until < 0:
                        killer = threading.Timer(rng.uniform(0.0, 0.1), os.kill, (child, signal.SIGKILL))
                        killer.start()
                elif word == "gone":
                    break
            assert killer is not None
            killer.join()
        parent.stdin.close()
    with Store(store.path, PROGRAM) as again:
        ledger = decisions_of(again, run_id)
        check = verify_ledger(again, run_id)
        assert check.problems == ()
        assert check.head.count == len(ledger)
        kept = [row.decision_id for row in ledger]
        assert [name for name in acknowledged if name not in kept] == []
        assert len(acknowledged) >= 20
        # At most the one that was being acknowledged when the process died.
        assert len(kept) <= len(acknowledged) + 20
        # Not half there: the lives are those that evidence and ledger give.
        export_run(again, run_id, tmp_path / "run.zip")
        with Store(tmp_path / "other.duckdb", PROGRAM) as other:
            import_archive(other, tmp_path / "run.zip")
            assert_same(snapshot(again, run_id), snapshot(other, run_id))
        assert verify(ledger, check.head) == ()
