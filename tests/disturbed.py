"""Work on a database that is disturbed on purpose, and what must be true of it afterwards.

A worker does one thing after another (import, decide, run, delete, export, backup). Before each it notes what it begins
and after it what was acknowledged, in a journal that is synced. Whoever disturbed it compares both with the database:
nothing acknowledged is lost, nothing is there by half, and no file that was whole is destroyed.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tepa_core.decisions import PROGRAM, Action, Category, DecisionRefused
from tepa_core.experiment import RunSpec, run
from tepa_core.logs import import_log
from tepa_core.store import Store, queries, save_run
from tepa_core.store.archive_file import export_run
from tepa_core.store.archive_schema import read_archive
from tepa_core.store.backup import backup
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.events import database_ledger
from tepa_core.store.ledger import decisions_of, verify_ledger
from tepa_core.store.write import delete_run

OPERATIONS = ("import", "decide", "run", "delete", "export", "backup")
ROWS = 400
DATABASE, JOURNAL, EXPORT, BACKUP = "audit.duckdb", "journal.jsonl", "run.zip", "copy.duckdb"


class Journal:
    """What was begun and what was acknowledged, one line each, on the disk before the next thing is done."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, operation: str, **more: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "operation": operation, **more}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        whole = self.path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in whole if line.endswith("}")]


class Worker:
    """Does things to the database of a folder; the journal may lie elsewhere."""

    def __init__(self, store: Store, folder: Path, journal: Journal, seed: int) -> None:
        self.store, self.folder, self.journal = store, folder, journal
        self.rng = random.Random(seed)
        self.number = sum(line["what"] == "begun" for line in journal.lines())

    def do(self, operation: str) -> None:
        """Do one thing; what refuses it is raised."""
        self.number += 1
        getattr(self, f"_{operation}")()

    def _import(self) -> None:
        path = self.folder / f"log{self.number}.csv"
        values = ("tea", "coffee")
        rows = [
            f"2026-03-{1 + i * 27 // ROWS:02d}T{i % 24:02d}:00:00Z,u{i % 5},k{i % 3},{values[i * 4 // ROWS % 2]}"
            for i in range(ROWS)
        ]
        path.write_text(
            "\n".join(["ts,user,key,value", f"2026-01-01,u,number,n{self.number}", *rows]), encoding="utf-8"
        )
        self.journal.note("begun", "import", name=path.name)
        run_id = import_log(self.store, path, name=path.name).run_id
        self.journal.note("done", "import", name=path.name, run=run_id)
        path.unlink()

    def _run(self) -> None:
        spec = RunSpec.build("controlled", seeds=1, first_seed=self.number, methods=["tepa", "no_memory"])
        self.journal.note("begun", "run", run=spec.run_id)
        save_run(self.store, run(spec))
        self.journal.note("done", "run", run=spec.run_id)

    def _logs(self) -> list[str]:
        found = queries.runs(self.store)
        return found.loc[found["kind"] == "log", "run_id"].tolist()

    def _decide(self) -> None:
        logs = self._logs()
        if not logs:
            return
        run_id = self.rng.choice(logs)
        archived = queries.precedents(self.store, run_id, state="revoked")
        if archived.empty:
            return
        precedent = str(self.rng.choice(archived["id"].tolist()))
        action = self.rng.choice([Action.CONFIRM, Action.REACTIVATE])
        self.journal.note("begun", "decide", run=run_id)
        try:
            made = record(self.store, DecisionRequest(run_id, precedent, action, Category.OTHER, "because"))
        except DecisionRefused as refusal:
            self.journal.note("refused", "decide", run=run_id, words=str(refusal)[:200])
            return
        self.journal.note("done", "decide", run=run_id, decision=made.decision_id)

    def _delete(self) -> None:
        runs = queries.runs(self.store)["run_id"].tolist()
        if len(runs) < 4:
            return
        run_id = self.rng.choice(runs)
        self.journal.note("begun", "delete", run=run_id)
        delete_run(self.store, run_id)
        self.journal.note("done", "delete", run=run_id)

    def _export(self) -> None:
        logs = self._logs()
        if not logs:
            return
        run_id = self.rng.choice(logs)
        self.journal.note("begun", "export", run=run_id)
        export_run(self.store, run_id, self.folder / EXPORT, replace=True)
        self.journal.note("done", "export", run=run_id)

    def _backup(self) -> None:
        self.journal.note("begun", "backup")
        backup(self.store, self.folder / BACKUP, over=True)
        self.journal.note("done", "backup")


@dataclass
class Expected:
    """What a journal says must be there."""

    runs: dict[str, str] = field(default_factory=dict)
    decisions: dict[str, set[str]] = field(default_factory=dict)
    open: dict[str, Any] | None = None
    exported: bool = False
    copied: bool = False
    acknowledged: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, journal: Journal) -> Expected:
        found = cls()
        for line in journal.lines():
            operation = line["operation"]
            found.open = line if line["what"] == "begun" else None
            if line["what"] != "done":
                continue
            found.acknowledged[operation] += 1
            if operation in ("import", "run"):
                found.runs[line["run"]] = operation
            elif operation == "delete":
                found.runs.pop(line["run"], None)
                found.decisions.pop(line["run"], None)
            elif operation == "decide":
                found.decisions.setdefault(line["run"], set()).add(line["decision"])
            found.exported |= operation == "export"
            found.copied |= operation == "backup"
        return found


def problems(folder: Path, journal: Journal, store: Store | None = None) -> list[str]:
    """Say what is wrong with the database and the files of a folder, by what the journal acknowledged."""
    expected = Expected.of(journal)
    if store is None:
        with Store(folder / DATABASE) as opened:
            found = _in_database(opened, expected)
    else:
        found = _in_database(store, expected)
    export, copy = folder / EXPORT, folder / BACKUP
    if expected.exported and not export.exists():
        found.append("the export that was there is gone")
    if export.exists():
        read_archive(export)
    if expected.copied and not copy.exists():
        found.append("the backup that was there is gone")
    if copy.exists():
        with Store(copy) as opened:
            for run_id in queries.runs(opened)["run_id"]:
                found += [f"backup, {run_id}: {problem}" for problem in verify_ledger(opened, str(run_id)).problems]
    return found


def _in_database(store: Store, expected: Expected) -> list[str]:
    found = []
    present = set(queries.runs(store)["run_id"])
    begun = expected.open or {}
    deleting = begun.get("run") if begun.get("operation") == "delete" else None
    lost = set(expected.runs) - present - {deleting}
    if lost:
        found.append(f"acknowledged runs are gone: {sorted(lost)}")
    # Of what was begun and not acknowledged there may be the whole, or nothing.
    allowed = begun.get("operation") in ("import", "run")
    if len(present - set(expected.runs)) > int(allowed):
        found.append(f"runs that nobody acknowledged: {sorted(present - set(expected.runs))}")
    for run_id in present:
        info = queries.run_info(store, run_id)
        with store.read() as cursor:
            row = cursor.execute("SELECT count(*) FROM evidence WHERE run_id = ?", [run_id]).fetchone()
        whole = info.counts["loaded"] if info.is_log else info.counts["tasks"] * info.counts["seeds"]
        if row is None or row[0] != whole or not queries.state_counts(store, run_id):
            found.append(f"{run_id} is there by half: {row} of {whole}")
        found += [f"{run_id}: {problem}" for problem in verify_ledger(store, run_id).problems]
        kept = {one.decision_id for one in decisions_of(store, run_id)}
        missing = expected.decisions.get(run_id, set()) - kept
        if missing:
            found.append(f"{run_id}: acknowledged decisions are gone: {sorted(missing)}")
        more = len(kept) - len(expected.decisions.get(run_id, set()))
        if more > int(begun.get("operation") == "decide" and begun.get("run") == run_id):
            found.append(f"{run_id}: {more} decisions that nobody acknowledged")
    return found + list(database_ledger(store).problems)


def settle(journal: Journal, store: Store) -> None:
    """Note what became of what was begun last, so that the next round starts from what is there."""
    begun = Expected.of(journal).open
    if begun is None:
        return
    present = set(queries.runs(store)["run_id"])
    operation = begun["operation"]
    if operation in ("import", "run"):
        for run_id in present - set(Expected.of(journal).runs):
            journal.note("done", operation, run=run_id)
    elif operation == "delete" and begun["run"] not in present:
        journal.note("done", "delete", run=begun["run"])
    elif operation == "decide" and begun["run"] in present:
        known = Expected.of(journal).decisions.get(begun["run"], set())
        for one in decisions_of(store, begun["run"]):
            if one.decision_id not in known:
                journal.note("done", "decide", run=begun["run"], decision=one.decision_id)
    if Expected.of(journal).open is not None:
        journal.note("refused", operation)


def work(folder: Path, seed: int) -> None:
    """Open the database of a folder and do one thing after another, until somebody ends this process."""
    journal = Journal(folder / JOURNAL)
    with Store(folder / DATABASE, PROGRAM) as store:
        worker = Worker(store, folder, journal, seed)
        journal.note("open", "open")
        while True:
            worker.do(worker.rng.choice(OPERATIONS) if worker.number > 3 else "import")
