"""Fifty SIGKILLs over import, decide, run, delete, export and backup: nothing lost, nothing by half, no file destroyed.

``python -m tests.prove.kills [KILLS]``. A worker does one thing after another and is killed at a random moment; then
the database and the files beside it are compared with what was acknowledged, and another worker goes on.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tepa_core.store import Store
from tests.disturbed import DATABASE, JOURNAL, Expected, Journal, problems, settle, work

KILLS = 50
_SECONDS_TO_OPEN = 120


def kill(folder: Path, seed: int, longest: float) -> tuple[str, list[str]]:
    """Start a worker, kill it within so many seconds of its work; return what it was at, and what is wrong now."""
    journal = Journal(folder / JOURNAL)
    before = len(journal.lines())
    command = [sys.executable, "-m", "tests.prove.kills", "--work", str(folder), str(seed)]
    worker = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + _SECONDS_TO_OPEN
        while len(journal.lines()) == before and worker.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(random.Random(seed).uniform(0.0, longest))
    finally:
        worker.kill()
        said = worker.communicate()[1]
    if worker.returncode != -9:
        return "ended", [f"the worker ended by itself with {worker.returncode}: {said[-400:]}"]
    begun = Expected.of(journal).open
    found = problems(folder, journal)
    with Store(folder / DATABASE) as store:
        settle(journal, store)
    return begun["operation"] if begun and begun["what"] == "begun" else "between", found


def main(arguments: list[str]) -> int:
    """Kill so many workers and print what they were at; 1 when anything was lost, by half or destroyed."""
    if arguments[:1] == ["--work"]:
        work(Path(arguments[1]), int(arguments[2]))
    kills = int(arguments[0]) if arguments else KILLS
    at: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for seed in range(kills):
            operation, found = kill(folder, seed, 3.0)
            at[operation] += 1
            wrong += [f"kill {seed}, at {operation}: {problem}" for problem in found]
        done = Expected.of(Journal(folder / JOURNAL)).acknowledged
    sys.stdout.write(f"{kills} kills, at: {dict(at)}\nacknowledged: {dict(done)}\n")
    sys.stdout.write(
        "\n".join(wrong) or "nothing acknowledged was lost, nothing is there by half, no file was destroyed"
    )
    sys.stdout.write("\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
