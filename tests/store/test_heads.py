"""Signed heads: whatever is written anew in the database, its head included, is named by a file kept outside of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tepa_core.decisions import EMPTY, Action, Head, linked_event
from tepa_core.lifecycle import Thresholds
from tepa_core.signing import own_public_key, sign, signing_key
from tepa_core.store import Store, UnknownRunError, delete_run, save_log
from tepa_core.store.archive_file import export_run, import_archive
from tepa_core.store.events import read_events
from tepa_core.store.heads import MAX_BYTES, HeadCheck, HeadRefused, check_heads, read_heads, sign_heads
from tepa_core.store.ledger import decisions_of, verify_ledger
from tests.store.test_decide import BO, TEA_FALLS, MakeLog, decide, ids, said
from tests.store.test_events import rewrite, rewritten


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "outside" / "signing.pem"


@pytest.fixture
def decided(store: Store, make_log: MakeLog) -> str:
    """Return a log with three decisions of Bo."""
    run_id = save_log(store, make_log(said(*TEA_FALLS)), Thresholds())
    tea = ids(store, run_id)["tea"]
    for action in (Action.CONFIRM, Action.UNDO, Action.CONFIRM):
        decide(store, run_id, tea, action, BO)
    return run_id


def checked(store: Store, key: Path, signed: bytes, run_id: str | None = None) -> HeadCheck:
    return check_heads(store, read_heads(signed, "heads.json"), own_public_key(key), run_id)


def altered(signed: bytes, key: Path | None = None, **changed: Any) -> bytes:
    """Change what a file says, and sign it anew where there is a key."""
    content = json.loads(signed)
    content["signed"] |= changed
    if key is not None:
        content["signature"] = sign(content["signed"], signing_key(key)).hex()
        content["public_key"] = (own_public_key(key) or b"").hex()
    return json.dumps(content).encode()


def test_what_is_as_it_was_fits_and_may_have_grown(store: Store, decided: str, key: Path) -> None:
    one, everything = sign_heads(store, key, decided), sign_heads(store, key)
    last = decisions_of(store, decided)[-1]
    heads = read_heads(everything, "x")
    assert heads.runs == {decided: Head(3, last.hash)}
    assert (heads.database, heads.genuine, heads.public_key) == (EMPTY, True, own_public_key(key))
    assert read_heads(one, "x").database is None
    for signed in (one, everything):
        check = checked(store, key, signed, decided)
        assert check.ok
        assert check.found[1:] == (f"Run {decided}: the ledger still begins with the 3 decisions that were signed.",)
    decide(store, decided, last.precedent_id, Action.UNDO, BO)
    check = checked(store, key, everything)
    assert check.ok
    assert check.found[1:] == (
        f"Run {decided}: the ledger still begins with the 3 decisions that were signed, and 1 decision came since.",
        "The ledger of the database still begins empty, as signed.",
    )
    assert f"fingerprint {check.fingerprint[:16]}…" in check.found[0]


def test_a_ledger_that_was_written_anew_with_its_head_is_named(store: Store, decided: str, key: Path) -> None:
    signed = sign_heads(store, key)
    rewrite(store, decided, reviewer="Mallory")
    assert verify_ledger(store, decided).ok
    for run_id in (decided, None):
        assert checked(store, key, signed, run_id).problems == (
            f"Run {decided}: decision 3 is not the one that was signed: "
            "the ledger was written anew, its head included.",
        )


def test_fewer_decisions_are_named_with_a_head_that_fits_them(store: Store, decided: str, key: Path) -> None:
    signed = sign_heads(store, key)
    second = decisions_of(store, decided)[1]
    with store.write() as cursor:
        cursor.execute("DELETE FROM decision WHERE number = 3")
        cursor.execute("UPDATE ledger_head SET decisions = 2, hash = ?", [second.hash])
    assert verify_ledger(store, decided).ok
    assert checked(store, key, signed).problems == (
        f"Run {decided}: it had 3 decisions when it was signed and has 2 now.",
    )


def test_a_row_that_was_changed_is_named_though_the_last_hash_fits(store: Store, decided: str, key: Path) -> None:
    signed = sign_heads(store, key)
    with store.write() as cursor:
        cursor.execute("UPDATE decision SET reviewer = 'Mallory' WHERE number = 1")
    assert checked(store, key, signed).problems == (
        f"Run {decided}: Decision 1 was changed in a field other than its reason.",
    )
    with pytest.raises(HeadRefused, match="does not verify, so nothing was signed"):
        sign_heads(store, key)
    with pytest.raises(HeadRefused, match="does not verify, so nothing was signed"):
        sign_heads(store, key, decided)


def test_what_was_deleted_is_told_by_its_row_and_missed_without(store: Store, decided: str, key: Path) -> None:
    signed = sign_heads(store, key)
    delete_run(store.acting(BO), decided)
    check = checked(store, key, signed)
    assert check.ok
    assert f"Run {decided} was deleted here at" in check.found[1]
    later = sign_heads(store, key)
    with store.write() as cursor:
        cursor.execute("DELETE FROM event")
        cursor.execute("DELETE FROM event_head")
    assert checked(store, key, signed).problems == (
        f"Run {decided} is not here, and the ledger of the database does not say that it was deleted.",
    )
    assert checked(store, key, later).problems == (
        "The ledger of the database: it had 1 event when it was signed and has 0 now.",
    )


def test_a_run_deleted_and_imported_with_other_decisions_is_named(
    store: Store, decided: str, key: Path, tmp_path: Path
) -> None:
    signed = sign_heads(store, key)
    path = tmp_path / "run.zip"
    export_run(store, decided, path)
    rewritten(path, reviewer="Mallory")
    delete_run(store.acting(BO), decided)
    import_archive(store, path)
    assert verify_ledger(store, decided).ok
    (problem,) = checked(store, key, signed).problems
    assert problem.startswith(f"Run {decided}: decision 3 is not the one that was signed")
    assert f"Run {decided} was deleted here at" in problem
    # Deleted once more, its row tells that it was not what had been signed.
    delete_run(store, decided)
    (problem,) = checked(store, key, signed).problems
    assert problem.endswith("that is not the ledger that was signed, with 3 decisions.")


def test_a_ledger_of_the_database_written_anew_is_named(store: Store, decided: str, key: Path) -> None:
    delete_run(store.acting(BO), decided)
    signed = sign_heads(store, key)
    with store.write() as cursor:
        (event,) = read_events(cursor)
        anew = linked_event(dataclasses.replace(event, who="Mallory"), EMPTY)
        cursor.execute("UPDATE event SET who = ?, hash = ?", [anew.who, anew.hash])
        cursor.execute("UPDATE event_head SET hash = ?", [anew.hash])
    assert checked(store, key, signed).problems == (
        "The ledger of the database: event 1 is not the one that was signed: the ledger was written anew, its head "
        "included.",
    )
    with store.write() as cursor:
        cursor.execute("UPDATE event SET who = 'nobody'")
    assert "The ledger of the database: Event 1 was changed." in checked(store, key, signed).problems
    with pytest.raises(HeadRefused, match="ledger of the database does not verify"):
        sign_heads(store, key)


def test_whose_signature_it_is(store: Store, decided: str, key: Path, tmp_path: Path) -> None:
    signed = sign_heads(store, key)
    forged = altered(signed, runs=[])
    assert checked(store, key, forged).problems == (
        "The signature does not fit what the file says: it was changed after it was signed, or forged.",
    )
    mallory = tmp_path / "mallory.pem"
    rewrite(store, decided, reviewer="Mallory")
    with_other_key = sign_heads(store, mallory)
    (problem,) = checked(store, key, with_other_key).problems
    assert "which is unknown here: the key that counts has the fingerprint" in problem
    (problem,) = checked(store, tmp_path / "none.pem", with_other_key).problems
    assert "there is no key to hold it against" in problem
    assert not (tmp_path / "none.pem").exists()
    # A public key that is put under another's signature is a signature that does not fit.
    content = json.loads(with_other_key) | {"public_key": (own_public_key(key) or b"").hex()}
    assert "The signature does not fit" in checked(store, key, json.dumps(content).encode()).problems[0]


def test_another_run(store: Store, decided: str, key: Path, make_log: MakeLog) -> None:
    signed = sign_heads(store, key, decided)
    other = save_log(store, make_log(said(*TEA_FALLS), source="other.csv"), Thresholds(n_rec=2))
    assert other != decided
    (problem,) = checked(store, key, signed, other).problems
    assert problem == f"The file has no head of run {other}; it has those of {decided}."
    with pytest.raises(UnknownRunError):
        checked(store, key, signed, "nowhere")
    with pytest.raises(UnknownRunError):
        sign_heads(store, key, "nowhere")


def test_what_is_no_file_of_heads_is_refused_in_one_sentence(store: Store, decided: str, key: Path) -> None:
    signed = sign_heads(store, key)
    content = json.loads(signed)
    run = content["signed"]["runs"][0]
    for wrong in (
        b"",
        b"\xff",
        b"[" * 100_000,
        b"x" * (MAX_BYTES + 1),
        json.dumps(content | {"more": 1}).encode(),
        json.dumps(content | {"signature": "00"}).encode(),
        altered(signed, format="another"),
        altered(signed, signed_at="yesterday"),
        altered(signed, runs=[run, run]),
        altered(signed, runs=[run | {"count": -1}]),
        altered(signed, runs=[run | {"count": True}]),
        altered(signed, runs=[run | {"hash": "x"}]),
        altered(signed, database={"count": 2**63, "hash": "0" * 64}),
    ):
        with pytest.raises(HeadRefused) as refusal:
            read_heads(wrong, "heads.json")
        assert str(refusal.value) == (
            "heads.json is no file of signed heads; choose one that 'ledger --head-to' or this page wrote."
        )
