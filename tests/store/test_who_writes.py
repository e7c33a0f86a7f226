"""Every write asks who acts, in the store: a list of all of them, which fails when a new one is missing."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tepa_core.decisions import PROGRAM, Action, Actor, Category, PermissionRefused, Role
from tepa_core.experiment import FactSpec, RunResult, run_facts
from tepa_core.lifecycle import Thresholds
from tepa_core.store import LogImport, Store, StoredAnswers, queries, save_facts, save_log, save_run
from tepa_core.store.archive_file import export_run, import_archive
from tepa_core.store.decide import DecisionRequest, record, redact_reason
from tepa_core.store.settings import delete_setting, save_setting
from tepa_core.store.write import delete_run, rename_run
from tepa_core.streams import read_fact_file

ROOT = Path(__file__).parents[2]
HOUR = 3600.0

#: Nobody at all, somebody who may look, and a reviewer whose sign-in has ended.
REFUSED: dict[str, Actor | None] = {
    "nobody": None,
    "viewer": Actor("vic@house.example", authenticated=True, role=Role.VIEWER, until=time.time() + HOUR),
    "expired": Actor("ana@house.example", authenticated=True, role=Role.REVIEWER, until=time.time() - 1),
}

#: What a write is tried with: the run, its file, and a decision that could be taken.
Attempt = Callable[[Store, "Prepared"], Any]


class Prepared:
    """A database with something of everything that can be written over or taken away."""

    def __init__(self, folder: Path, simulation: RunResult) -> None:
        self.store = Store(folder / "audit.duckdb", PROGRAM)
        self.simulation = simulation
        self.run_id = save_run(self.store, simulation)
        revoked = queries.precedents(self.store, self.run_id, state="revoked", method="tepa")
        self.precedent = str(revoked["id"].iloc[0])
        record(self.store, self.request(Action.CONFIRM))
        save_setting(self.store, "cautious", Thresholds(theta_rec=0.2))
        self.archive = folder / "run.zip"
        export_run(self.store, self.run_id, self.archive)

    def request(self, action: Action = Action.REACTIVATE) -> DecisionRequest:
        return DecisionRequest(self.run_id, self.precedent, action, Category.OTHER, "because")

    def content(self) -> dict[str, list[Any]]:
        """Return every row of every table."""
        with self.store.read() as cursor:
            names = [name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
            return {name: sorted(map(repr, cursor.sql(f'FROM "{name}"').fetchall())) for name in names}


def _facts(store: Store) -> str:
    file = read_fact_file(ROOT / "data" / "facts_small.json")
    spec = FactSpec.build(file, methods=("tepa",), thresholds=Thresholds(), orders=1)
    return save_facts(store, run_facts(file, spec), len(file.facts))


def _import(store: Store, prepared: Prepared) -> str:
    return import_archive(store, prepared.archive)


ATTEMPTS: dict[str, Attempt] = {
    "store.answers:put": lambda store, _: StoredAnswers(store).put("model", "digest", "answer"),
    "store.archive_file:import_archive": _import,
    "store.decide:record": lambda store, prepared: record(store, prepared.request()),
    "store.decide:redact_reason": lambda store, prepared: redact_reason(store, prepared.run_id, 1),
    "store.settings:delete_setting": lambda store, _: delete_setting(store, "cautious"),
    "store.settings:save_setting": lambda store, _: save_setting(store, "mine", Thresholds()),
    "store.write:delete_run": lambda store, prepared: delete_run(store, prepared.run_id),
    "store.write:rename_run": lambda store, prepared: rename_run(store, prepared.run_id, "Another"),
    "store.write:save_facts": lambda store, _: _facts(store),
    "store.write:keep_log": lambda store, _: save_log(store, _LOG[0], Thresholds()),
    "store.write:save_run": lambda store, prepared: save_run(store, prepared.simulation, "Mine"),
}

_LOG: list[LogImport] = []


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, simulation: RunResult, make_log: Callable[..., LogImport]
) -> Iterator[Prepared]:
    _LOG[:] = [make_log([(0, "u1", "seat", "window", True, None)])]
    made = Prepared(tmp_path_factory.mktemp("writes"), simulation)
    yield made
    made.store.close()


def writers() -> set[str]:
    """Find every function that asks a store for a writing cursor, by module and name."""
    found = set()
    for path in (ROOT / "tepa_core").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "tepa_core").with_suffix("").parts)
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                for item in node.items if isinstance(node, ast.With) else ():
                    call = item.context_expr
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                        if call.func.attr in ("write", "transaction"):
                            found.add(f"{module}:{function.name}")
    return found


def test_the_list_of_writes_is_complete() -> None:
    # `write` itself is where everybody is asked. (Opening a database makes its schema, by a cursor of its own.)
    assert writers() == set(ATTEMPTS) | {"store.connection:write"}


@pytest.mark.parametrize("who", REFUSED)
@pytest.mark.parametrize("write", ATTEMPTS)
def test_who_may_not_write_changes_nothing(prepared: Prepared, write: str, who: str) -> None:
    before = prepared.content()
    handle = prepared.store.acting(REFUSED[who]) if REFUSED[who] else _without_actor(prepared.store)
    with pytest.raises(PermissionRefused, match=r"[Nn]othing was saved"):
        ATTEMPTS[write](handle, prepared)
    assert prepared.content() == before


def _without_actor(store: Store) -> Store:
    handle = store.acting(PROGRAM)
    handle.actor = None
    return handle


def test_a_reviewer_may_do_all_of_it_until_the_sign_in_ends(tmp_path: Path, simulation: RunResult) -> None:
    made = Prepared(tmp_path, simulation)
    reviewer = Actor("ana@house.example", authenticated=True, role=Role.REVIEWER, until=time.time() + HOUR)
    with made.store.acting(reviewer) as store:
        for name, attempt in ATTEMPTS.items():
            if name != "store.archive_file:import_archive":
                before = store.generation
                attempt(store, made)
                assert store.generation > before, name
                if name == "store.write:delete_run":
                    before = store.generation
                    assert _import(store, made) == made.run_id
                    assert store.generation > before
