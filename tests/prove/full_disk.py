"""A disk that is full during import, decide, run, delete, export or backup: a refusal, nothing lost, and work goes on.

``python -m tests.prove.full_disk``, as root on Linux: the database lies on a small tmpfs, which is filled before each
kind of work, leaving a little more room each time, and emptied afterwards. The same open database is used throughout.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tepa_core.decisions import PROGRAM
from tepa_core.store import Store
from tests.disturbed import DATABASE, JOURNAL, OPERATIONS, Expected, Journal, Worker, problems, settle

MEGABYTES = 64
#: Bytes that are left on the disk.
LEFT = (0, 4_096, 65_536, 1_000_000)


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = MEGABYTES) -> Iterator[Path]:
    """Mount a small tmpfs on a folder."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def filled(folder: Path, left: int) -> Iterator[None]:
    """Fill the disk of a folder but for so many bytes, and empty it again."""
    filler = folder / "filler"
    room = os.statvfs(folder)
    with filler.open("wb") as file:
        with contextlib.suppress(OSError):
            file.write(b"\0" * max(room.f_bavail * room.f_frsize - left, 0))
            file.flush()
    try:
        yield
    finally:
        filler.unlink()


def disturb(disk: Path, beside: Path, lefts: tuple[int, ...] = LEFT) -> tuple[Counter[str], list[str]]:
    """Do each kind of work on a full disk and then on an empty one; return what happened, and what is wrong.

    Parameters
    ----------
    disk
        Where the database and its files lie.
    beside
        Another disk, for the journal.
    """
    journal = Journal(beside / JOURNAL)
    happened: Counter[str] = Counter()
    wrong: list[str] = []
    with Store(disk / DATABASE, PROGRAM) as store:
        worker = Worker(store, disk, journal, 0)
        for operation in ("import", "import", "import", "run", "decide", "export", "backup", "import"):
            worker.do(operation)
        for left in lefts:
            for operation in OPERATIONS:
                with filled(disk, left):
                    try:
                        worker.do(operation)
                        happened[f"{operation} done"] += 1
                    except Exception as refusal:
                        happened[f"{operation} refused"] += 1
                        if not str(refusal).strip():
                            wrong.append(f"{operation}, {left} bytes left: refused without a word")
                what = f"{operation}, {left} bytes left"
                wrong += [f"{what}: {problem}" for problem in problems(disk, journal, store)]
                settle(journal, store)
                try:
                    worker.do(operation)
                except Exception as error:
                    wrong.append(f"{what}: it does not go on afterwards: {type(error).__name__}: {error}")
                    settle(journal, store)
                wrong += [f"{what}, then: {problem}" for problem in problems(disk, journal, store)]
    wrong += problems(disk, journal)
    happened["acknowledged"] = sum(Expected.of(journal).acknowledged.values())
    return happened, wrong


def main() -> int:
    """Print what happened, and 1 when anything was lost, by half, destroyed, or does not go on."""
    with tempfile.TemporaryDirectory() as made, small_disk(Path(made) / "disk") as disk:
        happened, wrong = disturb(disk, Path(made))
    sys.stdout.write(f"{dict(happened)}\n" + "\n".join(wrong or ["nothing was lost, and all of it went on afterwards"]))
    sys.stdout.write("\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
