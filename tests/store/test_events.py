"""What an import claims and what a deletion leaves behind, in the store."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
from pathlib import Path

import pytest

from tepa_core.decisions import PROGRAM, Action, Decision, Head, Occasion, name_digest, verify
from tepa_core.lifecycle import Thresholds
from tepa_core.store import Store, delete_run, explanation, precedent_life, queries, save_log
from tepa_core.store.archive_file import export_instructions, export_run, import_archive
from tepa_core.store.events import database_ledger
from tepa_core.store.ledger import append, decisions_of, read_decisions, reviewer_agreement, verify_ledger
from tepa_core.store.migrate import MIGRATIONS
from tests.store.test_decide import ANA, BO, TEA_FALLS, MakeLog, decide, ids, said
from tests.tampered import chained, members_of, write


@pytest.fixture
def decided(store: Store, make_log: MakeLog) -> str:
    """Return a log with two decisions of Bo, whom the login vouches for."""
    run_id = save_log(store, make_log(said(*TEA_FALLS)), Thresholds())
    tea = ids(store, run_id)["tea"]
    decide(store, run_id, tea, Action.CONFIRM, BO)
    decide(store, run_id, tea, Action.UNDO, BO)
    return run_id


def rewritten(path: Path, **changed: object) -> Path:
    """Write the ledger of an archive as somebody else's, chain, head and digests made good again."""
    members = members_of(path)
    rows = [Decision.from_dict(json.loads(line)) for line in members["decisions.jsonl"].splitlines()]
    members |= chained([dataclasses.replace(row, **changed) for row in rows])  # type: ignore[arg-type]
    return write(path, members)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_decision_taken_here_is_no_claim(store: Store, decided: str) -> None:
    assert [(row.claim, row.vouched, row.by) for row in decisions_of(store, decided)] == [(None, True, BO.name)] * 2
    assert decisions_of(store, decided)[0].as_shown()["claimed"] is None
    assert verify_ledger(store, decided).remarks == ()
    assert database_ledger(store).events == ()


def test_an_import_is_claimed_and_keeps_its_bytes(store: Store, decided: str, tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    export_run(store, decided, path)
    with Store(tmp_path / "other.duckdb", PROGRAM) as other:
        import_archive(other.acting(ANA), path)
        rows = decisions_of(other, decided)
        assert rows == decisions_of(store, decided)
        assert [row.as_dict() for row in rows] == [row.as_dict() for row in decisions_of(store, decided)]
        check = verify_ledger(other, decided)
        assert check.ok
        for row in rows:
            assert row.authenticated
            assert not row.vouched
            shown = row.as_shown()
            assert shown["authenticated"] is False
            assert shown["claimed"]["imported_by"] == ANA.name
            assert shown["claimed"]["imported_by_authenticated"] is False
            assert shown["claimed"]["file_digest"] == digest(path)
            assert shown["claimed"]["says_authenticated"] is True
        assert check.remarks[0].startswith("Decisions 1 and 2 are claimed elsewhere, imported by Ana Lima (not auth")
        # What is decided from then on is this installation's own.
        decide(other, decided, rows[0].precedent_id, Action.CONFIRM, BO)
        assert [(row.vouched, row.claim is None) for row in decisions_of(other, decided)] == [(False, False)] * 2 + [
            (True, True)
        ]
        assert verify_ledger(other, decided).ok
        # Out and in again it is the same file, whoever claims what.
        again = tmp_path / "again.zip"
        export_run(other, decided, again)
        before = decisions_of(other, decided)
        delete_run(other, decided)
        import_archive(other, again)
        assert decisions_of(other, decided) == before
        assert [row.vouched for row in decisions_of(other, decided)] == [False] * 3


def test_a_rewritten_archive_is_shown_as_a_claim_wherever_it_is_shown(
    store: Store, make_log: MakeLog, tmp_path: Path
) -> None:
    run_id = save_log(store, make_log(said(*TEA_FALLS)), Thresholds())
    tea = ids(store, run_id)["tea"]
    decide(store, run_id, tea, Action.REACTIVATE, ANA, pinned=True)
    path = tmp_path / "run.zip"
    export_run(store, run_id, path)
    rewritten(path, reviewer="boss@house.example", authenticated=True)
    with Store(tmp_path / "other.duckdb", PROGRAM) as other:
        import_archive(other.acting(BO), path)
        (row,) = decisions_of(other, run_id)
        assert (row.reviewer, row.authenticated, row.vouched) == ("boss@house.example", True, False)
        assert row.by == "boss@house.example (claimed elsewhere)"
        assert verify_ledger(other, run_id).ok
        told = explanation(other, run_id, tea)
        assert "boss@house.example (claimed elsewhere; wrong revocation" in told["transitions"][-1]["sentence"]
        flags = precedent_life(other, run_id, tea).decisions
        assert flags["claimed"].tolist() == [True]
        assert flags["initials"].tolist() == ["B?"]
        assert "claimed elsewhere" in flags["text"].iloc[0]
        assert reviewer_agreement(other, run_id)["claimed"].tolist() == [1, 1, 1]
        (line,) = export_instructions(other, run_id).splitlines()
        assert json.loads(line)["claimed"]["file_digest"] == digest(path)
    assert reviewer_agreement(store, run_id)["claimed"].tolist() == [0, 0, 0]
    assert precedent_life(store, run_id, tea).decisions["initials"].tolist() == ["AL"]
    assert "claimed" not in export_instructions(store, run_id)


def test_what_was_imported_and_then_rewritten_with_its_head_is_named(
    store: Store, decided: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.zip"
    export_run(store, decided, path)
    delete_run(store, decided)
    import_archive(store, path)
    rewrite(store, decided, reviewer="Mallory")
    assert (
        verify_ledger(store, decided)
        .problems[0]
        .startswith("The ledger does not begin with what was imported: it was changed after ")
    )


def rewrite(store: Store, run_id: str, **changed: object) -> None:
    """Write a ledger anew in the database itself, head included: its chain verifies."""
    members = chained([dataclasses.replace(row, **changed) for row in decisions_of(store, run_id)])  # type: ignore[arg-type]
    rows = [Decision.from_dict(json.loads(line)) for line in members["decisions.jsonl"].splitlines()]
    with store.write() as cursor:
        cursor.execute("DELETE FROM decision WHERE run_id = ?", [run_id])
        for row in rows:
            append(cursor, row)
        assert verify(read_decisions(cursor, run_id), Head(**json.loads(members["head.json"]))) == ()


def test_a_deleted_run_leaves_a_row_that_cannot_be_taken_out_unseen(store: Store, decided: str) -> None:
    name = queries.run_info(store, decided).name
    last = decisions_of(store, decided)[-1]
    before = dt.datetime.now(dt.UTC)
    assert delete_run(store.acting(BO), decided)
    assert not delete_run(store.acting(BO), decided)
    ledger = database_ledger(store)
    (event,) = ledger.events
    assert (event.number, event.what, event.run_id, event.kind) == (1, Occasion.DELETED, decided, "log")
    assert (event.who, event.authenticated, event.name_digest) == (BO.name, True, name_digest(name))
    assert (event.decisions, event.head_hash, event.file_digest) == (2, last.hash, None)
    assert before <= event.at <= dt.datetime.now(dt.UTC)
    assert (ledger.problems, ledger.times, ledger.head) == ((), (), Head(1, event.hash))
    with store.write() as cursor:
        cursor.execute("DELETE FROM event")
    assert database_ledger(store).problems == ("1 event is missing at the end.",)


def test_a_run_that_comes_back_with_other_decisions_is_told_by_its_deletion(
    store: Store, decided: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.zip"
    export_run(store, decided, path)
    delete_run(store.acting(BO), decided)
    import_archive(store, path)
    assert verify_ledger(store, decided).deleted[0].endswith("; the ledger here now begins with the same.")
    rewritten(path, reviewer="Mallory")
    delete_run(store, decided)
    import_archive(store, path)
    check = verify_ledger(store, decided)
    assert check.ok
    assert [sentence.rpartition("; ")[2] for sentence in check.deleted] == ["the ledger here now is another one."] * 2
    assert f"by {BO.name}, with 2 decisions" in check.deleted[0]
    assert [event.what for event in database_ledger(store).events] == [
        Occasion.DELETED,
        Occasion.IMPORTED,
        Occasion.DELETED,
        Occasion.IMPORTED,
    ]


def test_a_decision_later_than_its_import_and_times_that_go_back_are_named(
    store: Store, decided: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.zip"
    export_run(store, decided, path)
    # Clocks of two machines may differ by hours, so the file is taken in; what it says of times is named.
    rewritten(path, decided_at=dt.datetime.now(dt.UTC) + dt.timedelta(hours=3))
    delete_run(store, decided)
    import_archive(store, path)
    check = verify_ledger(store, decided)
    assert check.ok
    assert [sentence.split(", ")[1].split(" it")[0] for sentence in check.times] == ["later than"] * 2
    decide(store, decided, decisions_of(store, decided)[0].precedent_id, Action.CONFIRM)
    assert "Decision 3 has the time" in verify_ledger(store, decided).times[0]
    assert "before that of decision 2" in verify_ledger(store, decided).times[0]


def test_a_ledger_of_an_older_file_keeps_every_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store, decided: str
) -> None:
    rows = decisions_of(store, decided)
    path = tmp_path / "old.duckdb"
    with monkeypatch.context() as earlier:
        earlier.setattr("tepa_core.store.migrate.MIGRATIONS", MIGRATIONS[:4])
        with Store(path, PROGRAM) as old, old.write() as cursor:
            for row in rows:
                append(cursor, row)
    with Store(path, PROGRAM) as now, now.read() as cursor:
        assert read_decisions(cursor, decided) == rows
        assert [row.hash for row in read_decisions(cursor, decided)] == [row.hash for row in rows]
        assert database_ledger(now).ok
