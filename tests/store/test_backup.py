"""A backup is a whole database of its own; a restore is checked in full and loses nothing that was there."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tepa_core.cli import main
from tepa_core.decisions import PROGRAM, Action, Category
from tepa_core.experiment import RunResult
from tepa_core.files import FileRefused
from tepa_core.lifecycle import Thresholds
from tepa_core.store import Store, StoreError, queries, save_run
from tepa_core.store.backup import Copied, backup, restore
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.ledger import decisions_of
from tepa_core.store.settings import save_setting, settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, simulation: RunResult) -> Iterator[tuple[Store, str]]:
    """Keep one database with a run and a decision open, as the dashboard does."""
    with Store(tmp_path_factory.mktemp("filled") / "audit.duckdb", PROGRAM) as store:
        run_id = save_run(store, simulation)
        precedent = str(queries.precedents(store, run_id, state="revoked", method="tepa")["id"].iloc[0])
        record(store, DecisionRequest(run_id, precedent, Action.CONFIRM, Category.OTHER, "because"))
        yield store, run_id


def content(path: Path) -> tuple[list[str], int, list[str]]:
    with Store(path) as store:
        runs = list(queries.runs(store)["run_id"])
        return runs, sum(len(decisions_of(store, run)) for run in runs), sorted(settings(store))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def tepa(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tepa_core", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_backup_of_what_is_open_is_whole_and_the_other_process_stays_locked_out(
    filled: tuple[Store, str], tmp_path: Path
) -> None:
    store, run_id = filled
    save_setting(store, "before the copy", Thresholds(theta_rec=0.2))
    assert store.path.with_name("audit.duckdb.wal").exists()  # what was written last stands in the log only
    made = backup(store, tmp_path / "copy.duckdb")
    assert (made.runs, made.decisions, made.broken) == (1, 1, ())
    assert names(tmp_path) == ["copy.duckdb"]
    assert content(tmp_path / "copy.duckdb") == ([run_id], 1, ["before the copy"])
    # Reading the file here has not dropped the lock on it.
    refused = tepa("runs", "--db", store.path)
    assert refused.returncode == 2
    assert "is open in another process" in refused.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the command asks to close the dashboard first")
def test_the_command_makes_a_backup_while_another_process_writes(filled: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = filled
    finished, written = threading.Event(), []

    def write() -> None:
        while not finished.is_set():
            save_setting(store, f"s{len(written):05}", Thresholds(theta_rec=0.2))
            written.append(len(written))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(2):
            before = len(written)
            made = tepa("backup", "--db", store.path, "--to", tmp_path / f"{number}.duckdb")
            assert made.returncode == 0, made.stderr
            assert "1 runs, 1 decisions" in made.stdout
            copied = [name for name in content(tmp_path / f"{number}.duckdb")[2] if name.startswith("s")]
            # Everything that was acknowledged before the command, and no hole in what came while it ran.
            assert len(copied) >= before
            assert copied == [f"s{k:05}" for k in range(len(copied))]
    finally:
        finished.set()
        writer.join()


def test_what_was_deleted_under_the_running_program_can_still_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    store = Store(path, PROGRAM)
    save_setting(store, "mine", Thresholds(theta_rec=0.2))
    path.unlink()
    path.with_name("a.duckdb.wal").unlink()
    backup(store, tmp_path / "copy.duckdb")
    assert content(tmp_path / "copy.duckdb") == ([], 0, ["mine"])
    store.close()


def test_a_copy_is_as_private_as_the_database(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    Store(path).close()
    path.chmod(0o600)
    backup(path, tmp_path / "copy.duckdb")
    assert (tmp_path / "copy.duckdb").stat().st_mode & 0o777 == 0o600


def test_a_restore_keeps_what_was_there_and_takes_the_name(filled: tuple[Store, str], tmp_path: Path) -> None:
    store, run_id = filled
    saved = tmp_path / "saved.duckdb"
    backup(store, saved)
    folder = tmp_path / "data"
    path = folder / "tepa.duckdb"
    with Store(path, PROGRAM) as other:
        save_setting(other, "of the other", Thresholds(theta_rec=0.2))
    done = restore(saved, path)
    assert (done.runs, done.decisions) == (1, 1)
    assert done.kept is not None
    assert done.kept.name.startswith("tepa.before-restore-2")
    assert names(folder) == sorted([done.kept.name, "tepa.duckdb"])
    assert content(path)[:2] == ([run_id], 1)
    assert content(done.kept) == ([], 0, ["of the other"])
    assert saved.exists()
    # And back again: what was kept is a backup like any other.
    restore(done.kept, path)
    assert content(path) == ([], 0, ["of the other"])


def test_a_restore_where_nothing_was_makes_folder_and_file(filled: tuple[Store, str], tmp_path: Path) -> None:
    backup(filled[0], tmp_path / "saved.duckdb")
    done = restore(tmp_path / "saved.duckdb", tmp_path / "new" / "tepa.duckdb")
    assert done.kept is None
    assert names(tmp_path / "new") == ["tepa.duckdb"]


def test_a_damaged_database_is_kept_with_its_log_of_writes(filled: tuple[Store, str], tmp_path: Path) -> None:
    backup(filled[0], tmp_path / "saved.duckdb")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "tepa.duckdb").write_bytes(b"no database any more")
    (folder / "tepa.duckdb.wal").write_bytes(b"its log")
    done = restore(tmp_path / "saved.duckdb", folder / "tepa.duckdb")
    assert done.kept is not None
    assert done.kept.read_bytes() == b"no database any more"
    assert done.kept.with_name(f"{done.kept.name}.wal").read_bytes() == b"its log"
    assert len(names(folder)) == 3
    assert content(folder / "tepa.duckdb")[:2] == ([filled[1]], 1)


def changed(path: Path, statement: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)


def in_the_middle(path: Path) -> None:
    old = path.read_bytes()
    # In a block of data, which is read when its rows are, not when the file is opened.
    at = old.rindex(b"because") if b"because" in old else len(old) // 2
    path.write_bytes(old[:at] + bytes([old[at] ^ 0xFF]) + old[at + 1 :])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-262_144]), "saved.duckdb is damaged"),
        (in_the_middle, "saved.duckdb is damaged"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_text("no database"), "is no DuckDB file"),
        (lambda path: path.unlink(), "There is no file"),
        (lambda path: changed(path, "DROP TABLE decision"), "its table decision is missing"),
        (lambda path: changed(path, "UPDATE schema_version SET version = 99 WHERE version = 1"), "newer program"),
        (lambda path: changed(path, "UPDATE decision SET reviewer = 'mallory'"), "does not verify"),
        (lambda path: changed(path, "DELETE FROM decision"), "does not verify"),
    ],
)
def test_a_backup_that_is_not_sound_replaces_nothing(
    filled: tuple[Store, str], tmp_path: Path, spoil: object, words: str
) -> None:
    saved = tmp_path / "saved.duckdb"
    backup(filled[0], saved)
    assert callable(spoil)
    spoil(saved)
    path = tmp_path / "data" / "tepa.duckdb"
    with Store(path, PROGRAM) as other:
        save_setting(other, "mine", Thresholds(theta_rec=0.2))
    with pytest.raises(StoreError, match=words) as refusal:
        restore(saved, path)
    assert "partial" not in str(refusal.value)
    assert names(path.parent) == ["tepa.duckdb"]
    assert content(path) == ([], 0, ["mine"])


def test_a_backup_says_which_ledger_is_broken_and_is_made_all_the_same(
    filled: tuple[Store, str], tmp_path: Path
) -> None:
    backup(filled[0], tmp_path / "a.duckdb")
    changed(tmp_path / "a.duckdb", "DELETE FROM decision")
    assert backup(tmp_path / "a.duckdb", tmp_path / "b.duckdb").broken == (filled[1],)


def test_nothing_is_restored_under_an_open_database(filled: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = filled
    backup(store, tmp_path / "saved.duckdb")
    before = names(store.path.parent)
    refused = tepa("restore", tmp_path / "saved.duckdb", "--db", store.path)
    assert refused.returncode == 2
    assert "is open in another process. Close the dashboard" in refused.stderr
    assert names(store.path.parent) == before
    store.check()


def test_what_cannot_be_is_refused_in_a_sentence(
    filled: tuple[Store, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _ = filled
    with pytest.raises(FileRefused, match="its folder does not exist"):
        backup(store, tmp_path / "none" / "copy.duckdb")
    for arguments, words in (
        (
            ["backup", "--to", str(tmp_path / "copy.duckdb"), "--db", str(tmp_path / "none.duckdb")],
            "There is no database",
        ),
        (["backup", "--to", str(store.path), "--force", "--db", str(store.path)], "is the database itself"),
        (["restore", str(tmp_path / "none.duckdb"), "--db", str(tmp_path / "a.duckdb")], "There is no file"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    assert names(tmp_path) == []
    copied = backup(store, tmp_path / "copy.duckdb")
    assert copied == Copied(1, 1, (tmp_path / "copy.duckdb").stat().st_size)
    assert main(["restore", str(tmp_path / "copy.duckdb"), "--db", str(tmp_path / "copy.duckdb")]) == 2
    assert "is the database itself" in capsys.readouterr().err
