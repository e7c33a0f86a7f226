"""The command ledger on whole runs: what was deleted, imported and claimed."""

from __future__ import annotations

import contextlib
import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tepa_core import cli
from tepa_core.decisions import PROGRAM
from tepa_core.signing import KEY_VARIABLE
from tepa_core.store import Store
from tests.store.test_events import rewrite, rewritten
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
    ask(db, "delete", run_id, "--force")
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


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a key outside the database, which is not there yet."""
    path = tmp_path / "outside" / "signing.pem"
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


def failed(db: Path, *arguments: str) -> dict[str, Any]:
    """Run a command that finds something wrong, and read its one JSON object."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main([*arguments, "--db", str(db), "--json"]) == 1
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_a_ledger_that_was_rewritten_with_its_head_is_named_by_a_signed_head(
    travel: tuple[Path, str, str], tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, run_id, _ = travel
    one, everything = str(tmp_path / "one.json"), str(tmp_path / "all.json")
    wrote = ask(db, "ledger", run_id, "--head-to", one)
    assert (wrote["key"], stat.S_IMODE(key.stat().st_mode)) == (str(key), 0o600)
    assert [(head["run_id"], head["count"]) for head in wrote["runs"]] == [(run_id, 1)]
    assert ask(db, "ledger", "--head-to", everything)["public_key"] == wrote["public_key"]
    public = tmp_path / "key.pub"
    public.write_text(wrote["public_key"])
    for file in (one, everything):
        for arguments in ((run_id,), ()):
            found = ask(db, "ledger", *arguments, "--verify", "--head", file)
            assert found["signed"]["ok"]
            assert found["signed"]["fingerprint"] == wrote["fingerprint"]
    text = told(capsys, 0, "ledger", run_id, "--verify", "--head", one, "--db", str(db))
    assert f"Run {run_id}: the ledger still begins with the 1 decision that was signed." in text
    with Store(db, PROGRAM) as store:
        rewrite(store, run_id, reviewer="Mallory")
    assert ask(db, "ledger", run_id, "--verify")["ok"]
    for file in (one, everything):
        for arguments in ((run_id,), (), (run_id, "--public-key", str(public))):
            signed = failed(db, "ledger", *arguments, "--verify", "--head", file)["signed"]
            assert "the ledger was written anew, its head included." in signed["problems"][0]
    text = told(capsys, 1, "ledger", run_id, "--verify", "--head", one, "--db", str(db))
    assert "The ledger verifies: nothing was changed or removed." in text
    assert "The signed heads do not fit:" in text


def test_whose_signature_counts(travel: tuple[Path, str, str], tmp_path: Path, key: Path) -> None:
    db, run_id, _ = travel
    head, other = str(tmp_path / "head.json"), str(tmp_path / "other.pem")
    wrote = ask(db, "ledger", run_id, "--head-to", head, "--key", other)
    (problem,) = failed(db, "ledger", run_id, "--verify", "--head", head)["signed"]["problems"]
    assert "there is no key to hold it against" in problem
    assert not key.exists()
    ask(db, "ledger", run_id, "--head-to", str(tmp_path / "own.json"))
    (problem,) = failed(db, "ledger", run_id, "--verify", "--head", head)["signed"]["problems"]
    assert "which is unknown here" in problem
    public = tmp_path / "key.pub"
    public.write_text(wrote["public_key"])
    assert ask(db, "ledger", run_id, "--verify", "--head", head, "--public-key", str(public))["signed"]["ok"]


def test_what_cannot_be_signed_or_checked_is_one_line_and_exit_2(
    travel: tuple[Path, str, str], tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, run_id, _ = travel
    head = tmp_path / "head.json"
    ask(db, "ledger", run_id, "--head-to", str(head))
    (tmp_path / "text").write_text("no key")
    (tmp_path / "text").chmod(0o600)
    of = ("--db", str(db))
    for arguments, says in (
        (("--head-to", str(head)), "exists; choose another name"),
        (("--head-to", str(tmp_path / "none" / "x")), "cannot be written"),
        (("--head-to", str(db), "--force"), "is the database itself"),
        (("--head-to", str(tmp_path / "x"), "--key", str(tmp_path / "text")), "is no private Ed25519 key"),
        (("--head-to", str(tmp_path / "x"), "--verify"), "leave --verify"),
        (("--key", "x"), "--key and --force belong to --head-to"),
        (("--head", str(head)), "add --verify"),
        (("--public-key", "x"), "name the file of signed heads with --head"),
        (("--verify", "--head", str(tmp_path / "absent")), "cannot be read"),
        (("--verify", "--head", str(tmp_path / "text")), "is no file of signed heads"),
        (("--verify", "--head", str(head), "--public-key", str(tmp_path / "text")), "holds no public Ed25519 key"),
    ):
        assert says in refusal(capsys, "ledger", run_id, *arguments, *of)
    with Store(db, PROGRAM) as store, store.write() as cursor:
        cursor.execute("UPDATE decision SET reviewer = 'Mallory'")
    assert "so nothing was signed" in refusal(capsys, "ledger", "--head-to", str(tmp_path / "x"), *of)
    assert not (tmp_path / "x").exists()
