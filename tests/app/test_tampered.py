"""Whatever archive or log is handed over: it is refused with a sentence, or every page opens with it."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tepa_core.cli import main
from tepa_core.decisions import PROGRAM, Action, Category
from tepa_core.experiment import RunSpec, run
from tepa_core.fact_runs import run_fact_file
from tepa_core.importers import ImportRefused
from tepa_core.logs import import_log
from tepa_core.store import PATH_VARIABLE, Store, derive, queries, save_run, verify_ledger
from tepa_core.store.archive_file import export_run, import_archive
from tepa_core.store.archive_shapes import ArchiveRefused
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.foreseen import foreseen
from tepa_core.store.write import delete_run
from tepa_core.ui import cache
from tests.tampered import ATTACK, Members, hostile_logs, members_of, renamed_column, tampered, write

ROOT = Path(__file__).parents[2]
PAGES = (
    "explore/overview",
    "explore/phases",
    "explore/lifecycle",
    "explore/thresholds",
    "audit/archive",
    "audit/decisions",
    "evidence/reproduction",
    "evidence/theory",
    "data/run",
    "data/import",
)
KINDS = ("log", "simulation", "facts")
LOG = [f"2026-03-{day:02d}T10:00:00Z,u1,drink,{'tea' if day < 6 else 'coffee'},calm" for day in range(1, 12)]


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Members]:
    """Export one run of each kind, those that can have decisions with one."""
    folder = tmp_path_factory.mktemp("exports")
    (folder / "log.csv").write_text("\n".join(["ts,user,key,value,phase", *LOG]))
    made = {}
    with Store(folder / "a.duckdb", PROGRAM) as store:
        simulated = RunSpec.build("preference", seeds=1, methods=["tepa", "tepa_full", "no_memory", "append_only"])
        made["log"] = import_log(store, folder / "log.csv").run_id
        made["simulation"] = save_run(store, run(simulated))
        made["facts"] = run_fact_file(store, ROOT / "data" / "facts_small_multihop.json", orders=1).run_id
        for run_id in (made["log"], made["simulation"]):
            archived = queries.precedents(store, run_id, state="revoked")
            request = DecisionRequest(run_id, str(archived["id"].iloc[0]), Action.REACTIVATE, Category.OTHER, "because")
            request = DecisionRequest(*_fields(request), effect=foreseen(store, request))
            record(store, request)
        for kind, run_id in made.items():
            export_run(store, run_id, folder / f"{kind}.zip")
    return {kind: members_of(folder / f"{kind}.zip") for kind in made}


def _fields(request: DecisionRequest) -> tuple[Any, ...]:
    return (request.run_id, request.precedent_id, request.action, request.category, request.reason)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Point the pages to a new database with one run of its own."""
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "own.duckdb"))
    monkeypatch.chdir(ROOT)
    store = cache.store().acting(PROGRAM)
    (tmp_path / "own.csv").write_text("\n".join(["ts,user,key,value,phase", *LOG, LOG[-1]]))
    import_log(store, tmp_path / "own.csv")
    yield store
    store.close()
    st.cache_data.clear()
    st.cache_resource.clear()


def open_every_page(run_id: str) -> None:
    at = AppTest.from_file(ROOT / "app.py", default_timeout=60)
    at.query_params["run"] = run_id
    for page in PAGES:
        at.switch_page(f"pages/{page}.py").run()
        assert not at.exception, (page, [error.message for error in at.exception])
        assert at.title, page


def outcome(store: Store, take_in: Callable[[], str]) -> str | None:
    """Return the id of what was taken in; a refusal must be a sentence without the content, and must leave nothing."""
    before = queries.runs(store)["run_id"].tolist()
    try:
        run_id = take_in()
    except (ArchiveRefused, ImportRefused) as refusal:
        words = str(refusal)
        assert words.endswith(".")
        assert len(words) < 1_500
        assert "xxxxxxxxxx" * 20 not in words
        words.encode()
        assert queries.runs(store)["run_id"].tolist() == before
        return None
    return run_id


#: Of the tampered archives and hostile logs every so manieth is tried here, all of them by ``make prove``.
EVERY = int(os.environ.get("TEPA_PROVE_EVERY", "17"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_tampered_archive_is_refused_or_shown_by_every_page(
    database: Store, exports: dict[str, Members], tmp_path: Path, kind: str
) -> None:
    tried, taken = 0, []
    for what, members in itertools.islice(tampered(exports[kind]), KINDS.index(kind), None, EVERY):
        path = write(tmp_path / "tampered.zip", members)
        tried += 1
        run_id = outcome(database, lambda path=path: import_archive(database, path))
        if run_id is not None:
            taken.append(what)
            open_every_page(run_id)
            delete_run(database, run_id)
            cache.forget()
    assert tried >= 25
    # What only sounds odd is somebody's text, and is taken in; most is not.
    assert 0 < len(taken) < tried / 2
    assert queries.runs(database).shape[0] == 1


def test_a_hostile_log_is_refused_or_shown_by_every_page(database: Store, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    tried = taken = 0
    for path in hostile_logs(folder):
        tried += 1
        run_id = outcome(database, lambda path=path: import_log(database, path).run_id)
        if run_id is not None:
            taken += 1
            if taken % EVERY == 1 or EVERY == 1:
                open_every_page(run_id)
            delete_run(database, run_id)
            cache.forget()
    assert tried >= 50
    assert 0 < taken < tried


# A column name is no statement -------------------------------------------------------------------------------------


@pytest.fixture
def attack(database: Store, exports: dict[str, Members], tmp_path: Path) -> tuple[Path, Path, str]:
    """Write the archive whose column name once ran; give it, what it would write, and the run that it would rob."""
    (tmp_path / "secret.txt").write_text("the secret")
    victim = str(queries.runs(database)["run_id"].iloc[0])
    archived = queries.precedents(database, victim, state="revoked")
    record(
        database,
        DecisionRequest(victim, str(archived["id"].iloc[0]), Action.CONFIRM, Category.OBSOLETE, "It was right."),
    )
    out = tmp_path / "out.csv"
    name = ATTACK.format(secret=tmp_path / "secret.txt", out=out)
    members = exports["log"]
    evil = {**members, "evidence.parquet": renamed_column(members["evidence.parquet"], "source_row", name)}
    return write(tmp_path / "evil.zip", evil), out, victim


def content(store: Store) -> dict[str, int]:
    with store.read() as cursor:
        names = [name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return {name: len(cursor.sql(f'FROM "{name}"').fetchall()) for name in names}


def assert_untouched(store: Store, out: Path, victim: str, before: dict[str, int]) -> None:
    assert not out.exists()
    assert content(store) == before
    assert before["decision"] == 1
    assert verify_ledger(store, victim).ok


def test_a_column_name_runs_nothing_on_the_page(database: Store, attack: tuple[Path, Path, str]) -> None:
    path, out, victim = attack
    before = content(database)
    at = AppTest.from_file(ROOT / "app.py", default_timeout=60)
    at.query_params["run"] = victim
    at.run()
    at.switch_page("pages/audit/decisions.py").run()
    at.file_uploader(key="archive_file").set_value((path.name, path.read_bytes(), "application/zip"))
    at.button(key="import_archive").click().run()
    assert not at.exception
    assert any("needs the columns" in str(error.value).replace("\\", "") for error in at.error)
    assert_untouched(database, out, victim, before)


def test_a_column_name_runs_nothing_on_the_command_line(
    database: Store, attack: tuple[Path, Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out, victim = attack
    copy = tmp_path / "copy.duckdb"
    with database.read() as cursor:
        cursor.execute("CHECKPOINT")
    shutil.copy(database.path, copy)
    before = content(database)
    assert main(["--db", str(copy), "import", str(path)]) == 2
    assert "needs the columns" in capsys.readouterr().err
    with Store(copy) as store:
        assert_untouched(store, out, victim, before)


@pytest.mark.parametrize("guard", ["the schema's own names", "the lock-down alone"])
def test_either_guard_alone_stops_the_statement(
    database: Store, attack: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, guard: str
) -> None:
    _, out, victim = attack
    before = content(database)
    name = ATTACK.format(secret=tmp_path / "secret.txt", out=out)
    frame = pd.DataFrame({name: [1]})
    if guard == "the lock-down alone":
        monkeypatch.setattr(derive, "table_columns", lambda cursor, table: tuple(frame.columns))
    with pytest.raises(Exception, match=r"do not belong|disabled by configuration"), database.write() as cursor:
        derive.insert(cursor, "evidence", victim, frame)
    assert_untouched(database, out, victim, before)
