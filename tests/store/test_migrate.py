from pathlib import Path

import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.store import Store, StoreError
from tepa_core.store.migrate import MIGRATIONS, migrate

TABLES = {"episode", "evidence", "import_issue", "phase", "precedent", "run", "schema_version", "transition", "truth"}


def version_of(store: Store) -> list[tuple[int]]:
    with store.read() as cursor:
        return cursor.execute("SELECT version FROM schema_version ORDER BY 1").fetchall()


def test_a_fresh_file_gets_every_table_and_the_newest_version(store: Store) -> None:
    with store.read() as cursor:
        found = {name for (name,) in cursor.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    assert found >= TABLES
    assert version_of(store)[-1] == (len(MIGRATIONS),)


def test_the_second_time_changes_nothing(store: Store) -> None:
    before = version_of(store)
    with store.write() as cursor:
        assert migrate(cursor) is False
    assert version_of(store) == before


def test_an_opened_file_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with Store(path, PROGRAM) as store, store.write() as cursor:
        cursor.execute("INSERT INTO phase VALUES ('r', 'stable', 0, 40)")
    with Store(path, PROGRAM) as store, store.read() as cursor:
        assert cursor.execute("SELECT * FROM phase").fetchall() == [("r", "stable", 0, 40)]


def test_a_file_of_a_newer_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    newer = len(MIGRATIONS) + 1
    with Store(path, PROGRAM) as store, store.write() as cursor:
        cursor.execute("INSERT INTO schema_version VALUES (?)", [newer])
    for _ in range(2):
        with pytest.raises(StoreError) as refusal:
            Store(path, PROGRAM)
        assert str(path) in str(refusal.value)
        assert f"schema version {newer}" in str(refusal.value)
        assert "use a newer program" in str(refusal.value)


def test_a_file_of_the_first_version_is_brought_forward_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.duckdb"
    with monkeypatch.context() as earlier:
        earlier.setattr("tepa_core.store.migrate.MIGRATIONS", MIGRATIONS[:1])
        with Store(path, PROGRAM) as store, store.write() as cursor:
            cursor.execute("INSERT INTO phase VALUES ('r', 'stable', 0, 40)")
        with Store(path, PROGRAM) as store:
            assert version_of(store) == [(1,)]
    with Store(path, PROGRAM) as store:
        assert version_of(store) == [(n + 1,) for n in range(len(MIGRATIONS))]
        with store.read() as cursor:
            assert cursor.execute("SELECT * FROM phase").fetchall() == [("r", "stable", 0, 40)]
