"""The command ledger on whole runs: what was deleted, imported and claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tepa_core import cli
from tepa_core.decisions import PROGRAM
from tepa_core.store import Store
from tests.store.test_events import rewritten
from tests.test_cli import ask, refusal

ROOT = Path(__file__).resolve().parents[1]
WORDS = ("--reviewer", "ana", "--reason", "the knee is fine")


@pytest.fixture
def travel(tmp_path: Path) -> tuple[Path, str, str]:
    """Return a database, the travel log in it with one decision, and what was decided on."""
    db = tmp_path / "a.duckdb"
    run_id = ask(db, "import", str(ROOT / "data" / "travel_preferences.csv"))["run_id"]
    fallen = ask(db, "precedents", run_id, "--state", "revoked")["precedents"][0]["id"]
    ask(db, "decide", run_id, fallen, "reactivate", *WORDS)
    return db, run_id, fallen


def told(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """Run a command for a person and return what it printed."""
    assert cli.main(list(arguments)) == code
    return capsys.readouterr().out


def test_a_rewritten_archive_is_shown_as_a_claim(
    travel: tuple[Path, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, run_id, fallen = travel
    to = tmp_path / "run.zip"
    ask(db, "export", run_id, "--to", str(to))
    rewritten(to, reviewer="boss@house.example", authenticated=True)
    other = tmp_path / "other.duckdb"
    text = told(capsys, 0, "import", str(to), "--db", str(other))
    assert "Decision 1 is claimed elsewhere, imported by " in text
    assert "Nobody here vouches for who took them." in text
    (row,) = ask(other, "ledger", run_id, "--verify")["decisions"]
    assert (row["authenticated"], row["claimed"]["says_authenticated"]) == (False, True)
    text = told(capsys, 0, "ledger", run_id, "--verify", "--db", str(other))
    assert "boss@house.example (claimed elsewhere)" in text
    assert "from file digest" in text
    (flag,) = ask(other, "trace", run_id, "--key", key_of(other, run_id, fallen), *subject_of(other, run_id, fallen))[
        "decisions"
    ]
    assert (flag["claimed"], "claimed elsewhere" in flag["by"]) == (True, True)
    # What is refused because somebody decided in between says whose word that is, too.
    stale = ("decide", run_id, fallen, "confirm", *WORDS, "--expect-version", row["version"], "--db", str(other))
    assert "boss@house.example (claimed elsewhere) reactivated it" in refusal(capsys, *stale)


def named(db: Path, run_id: str, precedent: str) -> dict[str, Any]:
    return next(row for row in ask(db, "precedents", run_id)["precedents"] if row["id"] == precedent)


def key_of(db: Path, run_id: str, precedent: str) -> str:
    return str(named(db, run_id, precedent)["key"])


def subject_of(db: Path, run_id: str, precedent: str) -> tuple[str, str]:
    return "--subject", str(named(db, run_id, precedent)["subject"])


def test_without_a_run_it_lists_and_checks_what_happened_to_runs(
    travel: tuple[Path, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, run_id, _ = travel
    assert ask(db, "ledger", "--verify")["events"] == []
    assert "No run of this database was deleted or imported." in told(capsys, 0, "ledger", "--db", str(db))
    head = ask(db, "ledger", run_id)["head"]
    ask(db, "delete", run_id)
    found = ask(db, "ledger", "--verify")
    (event,) = found["events"]
    assert (event["what"], event["run_id"]) == ("run deleted", run_id)
    assert {"count": event["decisions"], "hash": event["head_hash"]} == head
    assert found["head"] == {"count": 1, "hash": event["hash"]}
    text = told(capsys, 0, "ledger", "--db", str(db))
    assert "run deleted" in text
    assert "The ledger of the database verifies" in text
    with Store(db, PROGRAM) as store, store.write() as cursor:
        cursor.execute("UPDATE event SET who = 'nobody'")
    text = told(capsys, 1, "ledger", "--verify", "--db", str(db))
    assert "Event 1 was changed." in text
    assert "--redact removes the reason of a decision; name its run" in refusal(
        capsys, "ledger", "--redact", "1", "--reviewer", "bo", "--db", str(db)
    )
