"""Kills and a full disk in small; `tests.prove.kills` and `tests.prove.full_disk` are the full forms."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.store import Store, queries
from tepa_core.store.write import delete_run
from tests.disturbed import DATABASE, EXPORT, JOURNAL, Journal, Worker, problems
from tests.prove.full_disk import disturb, small_disk
from tests.prove.kills import kill


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    for seed in range(3):
        _, found = kill(tmp_path, seed, 2.0)
        assert found == []


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root on Linux can mount a small disk"
)
def test_a_full_disk_refuses_loses_nothing_and_work_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        happened, wrong = disturb(disk, tmp_path, (4_096,))
    assert wrong == []
    assert any(what.endswith("refused") for what in happened)


def test_what_was_lost_or_destroyed_would_be_named(tmp_path: Path) -> None:
    journal = Journal(tmp_path / JOURNAL)
    with Store(tmp_path / DATABASE, PROGRAM) as store:
        worker = Worker(store, tmp_path, journal, 1)
        for operation in ("import", "import", "export", "decide"):
            worker.do(operation)
        assert problems(tmp_path, journal, store) == []
        decided = next(line["run"] for line in journal.lines() if line["operation"] == "decide")
        with store.write() as cursor:
            cursor.execute("DELETE FROM decision WHERE run_id = ?", [decided])
        assert any("acknowledged decisions are gone" in problem for problem in problems(tmp_path, journal, store))
        lost = str(queries.runs(store)["run_id"].iloc[0])
        delete_run(store, lost)
        assert any(lost in problem for problem in problems(tmp_path, journal, store))
        (tmp_path / EXPORT).unlink()
        assert any("export that was there is gone" in problem for problem in problems(tmp_path, journal, store))
    assert json.loads((tmp_path / JOURNAL).read_text(encoding="utf-8").splitlines()[0])["what"] == "begun"
