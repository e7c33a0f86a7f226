"""Every condition of the file is a sentence with its remedy; after a full disk the same process goes on."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.store import Store, StoreError, queries
from tepa_core.store.condition import FileGoneError, in_words

ROOT = Path(__file__).parents[2]


def add(store: Store, rows: int = 1) -> None:
    with store.write() as cursor:
        # Numbers without order and texts without repetition, so that every row needs room.
        statement = "INSERT INTO phase SELECT md5(i::VARCHAR), md5((i + 7)::VARCHAR), i, 40 FROM range(?) t(i)"
        cursor.execute(statement, [rows])


def rows(store: Store) -> tuple[int, int]:
    with store.read() as cursor:
        found = cursor.execute("SELECT count(*), count(DISTINCT run_id || phase) FROM phase").fetchone()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a closed database of some 4 MB as bytes."""
    path = tmp_path_factory.mktemp("good") / "good.duckdb"
    with Store(path, PROGRAM) as store:
        add(store, 60_000)
    return path.read_bytes()


def cut(at: float) -> Callable[[bytes], bytes]:
    return lambda content: content[: int(len(content) * at)]


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (cut(0), "is empty. Delete it to start anew"),
        (cut(0.0005), "is damaged|no DuckDB file"),
        (cut(0.003), "is damaged"),
        (cut(0.5), "is damaged"),
        (flipped(3), "is damaged"),
        (flipped(8), "is no DuckDB file"),
        (flipped(4100), "is damaged"),
        (flipped(12_300), "is damaged"),
        (lambda content: content[:12_288] + bytes(len(content) - 12_288), "is damaged"),
        (lambda content: flipped(len(content) // 2)(content), "is damaged"),
    ],
)
def test_a_damaged_or_truncated_file_is_named_with_its_remedy(
    tmp_path: Path, good: bytes, changed: Callable[[bytes], bytes], words: str
) -> None:
    path = tmp_path / "a.duckdb"
    path.write_bytes(changed(good))

    def use() -> None:
        # What stands in no table that is asked for is found when it is asked for.
        with Store(path) as store:
            rows(store)

    with pytest.raises(StoreError, match=words) as refusal:
        use()
    assert re.search(r"restore BACKUP|another file with --db", str(refusal.value))
    assert "\n" not in str(refusal.value)


def sqlite_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE a (x)")
    connection.commit()
    connection.close()


def log_is_a_folder(path: Path) -> None:
    Store(path).close()
    path.with_name(f"{path.name}.wal").mkdir()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (sqlite_file, "is an SQLite file, not one of ours; name another file"),
        (Path.mkdir, "is a folder; name a file in it"),
        (log_is_a_folder, r"a\.duckdb\.wal beside it, where each write is logged first, is a folder"),
        (lambda path: path.write_text("buy milk\n" * 1000), "is no DuckDB file; name another file"),
    ],
)
def test_what_is_no_database_of_ours_is_not_even_opened(
    tmp_path: Path, made: Callable[[Path], object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.duckdb"
    made(path)

    def no(*args: object, **kwargs: object) -> None:
        pytest.fail("DuckDB was asked to open it")

    with monkeypatch.context() as patch:
        patch.setattr(duckdb, "connect", no)
        with pytest.raises(StoreError, match=words):
            Store(path)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            "ALTER TABLE schema_version ALTER version DROP NOT NULL; UPDATE schema_version SET version = NULL",
            "schema_version",
        ),
        ("UPDATE schema_version SET version = -version", "says .-5, .+not 1, 2"),
        ("INSERT INTO schema_version VALUES (3)", "says .+not 1, 2"),
        ("DELETE FROM schema_version WHERE version = 2", "says .+not 1, 2"),
        ("DROP TABLE schema_version; CREATE TABLE schema_version (version VARCHAR)", "not as this program makes it"),
        ("DROP TABLE schema_version; CREATE TABLE schema_version (a INTEGER NOT NULL)", "not as this program makes it"),
        (
            "DROP TABLE schema_version; CREATE VIEW schema_version AS SELECT 5 AS version",
            "none that says which version",
        ),
        ("DELETE FROM schema_version", "already exists|cannot be"),
        ("DROP TABLE decision", "its table decision is missing"),
        ("ALTER TABLE phase DROP COLUMN end_at", "its table phase has other columns"),
        ("ALTER TABLE phase ALTER end_at TYPE VARCHAR", "its table phase has other columns"),
    ],
)
def test_an_odd_version_or_table_is_refused_and_the_file_is_left_as_it_is(
    tmp_path: Path, statements: str, words: str
) -> None:
    path = tmp_path / "a.duckdb"
    Store(path).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute(statements)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=words) as refusal:
        Store(path)
    assert "Name another file with --db or TEPA_DB" in str(refusal.value) or "cannot be opened" in str(refusal.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (duckdb.IOException('IO Error: Cannot open file "/x/a.duckdb": Permission denied'), "is read-only"),
        (duckdb.IOException('IO Error: Cannot open file "/x/a.duckdb.wal": Read-only file system'), "is read-only"),
        (duckdb.IOException("IO Error: Could not set lock on file"), "open in another process"),
        (
            duckdb.IOException('IO Error: Cannot open file "/none/a.duckdb": No such file or directory'),
            "folder is not there",
        ),
        (
            duckdb.TransactionException("Failed to commit: No space left on device"),
            "no space left",
        ),
        (duckdb.OutOfMemoryException("failed to offload data block of size 256 KiB"), "no space left"),
        (duckdb.OutOfMemoryException("could not allocate block"), "not enough memory"),
        (duckdb.FatalException("database has been invalidated because of a previous fatal error"), "opened anew"),
        (duckdb.IOException("IO Error: Input/output error"), "Check the disk"),
        (PermissionError(13, "Permission denied"), "may not be written"),
        (FileExistsError(17, "File exists"), "is a file"),
    ],
)
def test_what_the_system_says_has_words(said: Exception, words: str) -> None:
    with pytest.raises(StoreError, match=words) as refusal:
        raise in_words(Path("/x/a.duckdb"), said) or AssertionError
    assert "/x/a.duckdb" in str(refusal.value)


def test_a_statement_that_quotes_what_somebody_typed_is_no_condition_of_the_file() -> None:
    assert in_words(Path("a"), duckdb.ConversionException("Could not convert string 'No space left on device'")) is None


def test_a_file_that_was_deleted_or_replaced_takes_no_more_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with Store(path, PROGRAM) as store:
        add(store)
        moved = path.rename(tmp_path / "moved.duckdb")
        with pytest.raises(FileGoneError, match="was deleted or moved while this program had it open"):
            add(store)
        moved.rename(path)  # put back, it is the same file
        add(store)
        assert rows(store)[0] == 2
        path.rename(moved)
        path.write_bytes(moved.read_bytes())
        with pytest.raises(FileGoneError, match="was replaced by another file while this program had it open"):
            add(store)
        assert rows(store)[0] == 2
        with pytest.raises(FileGoneError):
            store.check()


@pytest.mark.parametrize("what", ["file", "log"])
def test_a_file_that_goes_while_it_is_written_is_not_called_saved(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.duckdb"
    store = Store(path, PROGRAM)

    def deleted_half_way() -> None:
        with store.write() as cursor:
            cursor.execute("INSERT INTO phase VALUES ('r', 'stable', 0, 40)")
            (path if what == "file" else path.with_name("a.duckdb.wal")).unlink()

    add(store)
    generation = store.generation
    with pytest.raises(FileGoneError, match=r"a\.duckdb(\.wal)? was deleted or moved"):
        deleted_half_way()
    assert store.generation == generation
    store.close()


def test_a_new_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tepa_core.store.opened.migrate", full)
        with pytest.raises(StoreError, match="no space left"):
            Store(tmp_path / "data" / "a.duckdb")
    assert list((tmp_path / "data").iterdir()) == []
    Store(tmp_path / "data" / "a.duckdb").close()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["a.duckdb"]


#: Fills a disk (the limit of a file's size stands for it: the system refuses in the middle), then makes room again.
FULL = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, "tests/store")
from test_condition import add, rows
from tepa_core.decisions import PROGRAM
from tepa_core.store import Store, StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
store = Store(path, PROGRAM)
add(store, 100)
resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + int(sys.argv[2]), resource.RLIM_INFINITY))
known, refused = 100, 0
for size in (10, 3_000, 200_000, 10, 200_000, 3_000):
    try:
        add(store, size)
        known += size
    except StoreError as refusal:
        refused += 1
        assert "no space left" in str(refusal), refusal
    try:
        assert rows(store)[0] >= known
    except StoreError as refusal:
        assert "no space left" in str(refusal), refusal
assert refused, "the disk was never full"
# What was not acknowledged may be there all the same, when only the moving of the log failed; whole, if so.
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
before = rows(store)[0]
assert before >= known and (before - known) % 10 == 0, (before, known)
add(store, 500)
assert rows(store)[0] == before + 500
store.close()
with Store(path) as again:
    assert rows(again)[0] == before + 500
print("refused", refused)
"""


@pytest.mark.parametrize("room", [20_000, 400_000, 3_000_000])
def test_after_a_full_disk_the_same_process_goes_on(tmp_path: Path, room: int) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "a.duckdb"), str(room)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert child.returncode == 0, child.stderr
    assert re.match(r"refused [1-9]", child.stdout)


def test_a_dead_connection_is_opened_anew_at_the_next_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "a.duckdb", PROGRAM)
    other = store.acting(PROGRAM)
    add(store, 3)
    before = store.generation

    def question() -> None:
        with store.read():
            raise duckdb.FatalException("database has been invalidated: No space left on device")

    with pytest.raises(StoreError, match="no space left"):
        question()
    # Every handle finds the new connection, and no kept answer of before is given any more.
    assert rows(other)[0] == 3
    assert store.generation > before
    assert queries.runs(store).empty
    store.close()
