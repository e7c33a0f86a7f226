import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunResult
from tepa_core.lifecycle import Thresholds, encode, replay, tables
from tepa_core.store import Store, StoreError, default_path, explanation, key_life, queries, save_log, save_run

ROOT = Path(__file__).parents[2]

SECOND = """
import sys
from pathlib import Path
from tepa_core.store import Store, StoreError
try:
    Store(Path(sys.argv[1]))
except StoreError as refusal:
    print(refusal)
    sys.exit(3)
"""

IMPORTS_FOR_EVER = """
import sys
from pathlib import Path
from tepa_core.decisions import PROGRAM
from tepa_core.logs import import_log
from tepa_core.store import Store
folder = Path(sys.argv[1])
store = Store(folder / "audit.duckdb", PROGRAM)
number = 0
while True:
    number += 1
    log = folder / f"{sys.argv[2]}-{number}.csv"
    rows = [
        f"2026-03-01T{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}Z,u{i % 400},k,v{i // 1500 % 3}"
        for i in range(9000)
    ]
    log.write_text("ts,user,key,value\\n" + f"2026-01-01,u,number,{log.stem}\\n" + "\\n".join(rows))
    print(import_log(store, log).run_id, flush=True)
"""


def script(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def test_a_second_process_is_told_which_file_and_what_to_do(store: Store) -> None:  # case 30
    second = subprocess.run(script(SECOND, store.path), cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 3, second.stderr
    assert str(store.path) in second.stdout
    assert "open in another process" in second.stdout
    assert "--db" in second.stdout
    assert "Traceback" not in second.stderr
    with store.read() as cursor:
        assert cursor.execute("SELECT count(*) FROM run").fetchone() == (0,)


def test_a_closed_file_opens_in_another_process(tmp_path: Path) -> None:
    Store(tmp_path / "a.duckdb", PROGRAM).close()
    second = subprocess.run(
        script(SECOND, tmp_path / "a.duckdb"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert second.returncode == 0, second.stdout + second.stderr


def test_what_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n" * 1000)
    with pytest.raises(StoreError, match=r"notes\.txt cannot be opened as a database"):
        Store(path, PROGRAM)
    assert path.read_text() == "buy milk\n" * 1000
    with pytest.raises(StoreError, match="cannot be opened as a database"):
        Store(path / "inside_a_file.duckdb", PROGRAM)


def test_a_database_of_another_program_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with Store(path, PROGRAM) as store, store.write() as cursor:
        cursor.execute("DROP TABLE schema_version")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"Name another file with --db or TEPA_DB; this one was left as it is\."):
            Store(path, PROGRAM)


def test_the_environment_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEPA_DB", "/somewhere/else.duckdb")
    assert default_path() == Path("/somewhere/else.duckdb")
    monkeypatch.delenv("TEPA_DB")
    assert default_path() == Path("data/tepa.duckdb")


def test_an_error_half_way_leaves_nothing(store: Store) -> None:
    def half() -> None:
        with store.write() as cursor:
            cursor.execute("INSERT INTO phase VALUES ('r', 'stable', 0, 40)")
            cursor.execute("INSERT INTO truth VALUES ('r', 0, 'k', 'v', 0, 40)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    with store.read() as cursor:
        assert cursor.execute("SELECT (SELECT count(*) FROM phase) + (SELECT count(*) FROM truth)").fetchone() == (0,)
    with store.write() as cursor:  # and the next write is not held up by the failed one
        cursor.execute("INSERT INTO phase VALUES ('r', 'stable', 0, 40)")
    with store.read() as cursor:
        assert cursor.execute("SELECT count(*) FROM phase").fetchone() == (1,)


def test_readers_do_not_see_an_unfinished_write(store: Store) -> None:
    with store.write() as cursor:
        cursor.execute("INSERT INTO phase VALUES ('r', 'stable', 0, 40)")
        with store.read() as other:
            assert other.execute("SELECT count(*) FROM phase").fetchone() == (0,)
    with store.read() as other:
        assert other.execute("SELECT count(*) FROM phase").fetchone() == (1,)


def test_eight_threads_read_the_same_while_an_import_writes(  # case 31
    store: Store, simulation: RunResult, make_log: Any, random_rows: Any
) -> None:
    played = save_run(store, simulation)
    log = make_log(random_rows)
    logged = save_log(store, log, Thresholds())
    precedent = queries.precedents(store, logged, state="revoked")["id"].iloc[0]

    def course_of_first() -> pd.DataFrame:
        life = key_life(store, logged, "k0", subject="u1")
        return life.course(str(life.values["id"].iloc[0]))

    def questions() -> list[Any]:
        return [
            queries.success_per_seed(store, played),
            queries.curve_per_seed(store, played),
            queries.precedents(store, played, method="tepa"),
            queries.precedents(store, logged),
            queries.keys(store, logged, search="k1"),
            course_of_first(),
            explanation(store, logged, precedent),
        ]

    quiet = questions()
    rounds: list[list[list[Any]]] = [[] for _ in range(8)]
    finished = threading.Event()

    def read(mine: list[list[Any]]) -> None:
        while not (finished.is_set() and mine):
            mine.append(questions())

    threads = [threading.Thread(target=read, args=(mine,)) for mine in rounds]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 60
    # The run that is read is itself replaced, by the same bytes, and another one comes and goes beside it.
    while not all(rounds) and time.monotonic() < until:
        save_log(store, log, Thresholds())
        save_log(store, make_log(random_rows, "other.csv"), Thresholds(theta_prop=1))
    finished.set()
    for thread in threads:
        thread.join()
    assert all(rounds)
    for answers in (answers for mine in rounds for answers in mine):
        for answer, expected in zip(answers, quiet, strict=True):
            if isinstance(expected, pd.DataFrame):
                pd.testing.assert_frame_equal(answer, expected)
            else:
                assert answer == expected


def test_a_killed_import_loses_nothing_that_was_announced_and_leaves_no_half(tmp_path: Path) -> None:
    announced: list[str] = []
    for kill in range(2):
        child = subprocess.Popen(
            script(IMPORTS_FOR_EVER, tmp_path, kill),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        announced.append(child.stdout.readline().strip())
        # Later the second time, so that the kills fall into different parts of an import.
        time.sleep(0.08 + 0.12 * kill)
        child.send_signal(signal.SIGKILL)
        rest, errors = child.communicate()
        assert child.returncode == -signal.SIGKILL, errors
        # What stands behind the last line end was being written when the process died.
        announced += rest.split("\n")[:-1]
    with Store(tmp_path / "audit.duckdb", PROGRAM) as store:
        found = queries.runs(store).set_index("run_id")
        assert set(announced) <= set(found.index)
        assert len(announced) >= 2
        with store.read() as cursor:
            for table in ("evidence", "precedent", "transition", "import_issue", "phase"):
                orphans = f"SELECT count(*) FROM {table} WHERE run_id NOT IN (SELECT run_id FROM run)"  # noqa: S608
                assert cursor.execute(orphans).fetchone() == (0,), table
        for run_id in found.index:
            with store.read() as cursor:
                items = cursor.execute("SELECT * FROM evidence WHERE run_id = ?", [run_id]).df()
                moved = cursor.execute("SELECT count(*) FROM transition WHERE run_id = ?", [run_id]).fetchone()
            assert len(items) == 9001
            log, labels = encode(items, time="occurred")
            precedents, transitions = tables(log, labels, replay(log, Thresholds()), Thresholds())
            assert queries.state_counts(store, run_id) == precedents["state"].value_counts().to_dict()
            assert moved == (len(transitions),)
