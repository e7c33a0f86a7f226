"""Files made to cost far more than they weigh, and the largest that are taken in: seconds and memory of each.

``python -m tests.prove.bombs``. A bomb is refused in at most 5 seconds and 500 MB; any other file is taken in or
refused within 60 seconds and 1,500 MB, the program's memory; the child that reads has the limits' own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tepa_core.decisions import PROGRAM
from tepa_core.importers import ImportRefused, open_log
from tepa_core.isolated import isolated
from tepa_core.limits import USUAL, Limits
from tepa_core.logs import import_log
from tepa_core.store import Store
from tepa_core.store.archive_schema import read_archive
from tepa_core.store.archive_shapes import ArchiveRefused

_MB = 1_000_000
HEAD = "ts,user,key,value,text\n"


def _dictionary(path: Path) -> None:
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * 900_000, pa.int32()), pa.array(["x" * 900_000]))
    table = {"ts": pa.array(["2026-01-01"] * 900_000), "key": pa.array(["k"] * 900_000), "value": cells}
    pq.write_table(pa.table(table), path, compression="zstd", dictionary_pagesize_limit=10**9)


def _rows(path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.nulls(50_000_000, pa.int8())}), path, compression="zstd")


def _large_cell(path: Path) -> None:
    pq.write_table(
        pa.table({"ts": ["2026-01-01"], "key": ["k"], "value": ["x" * 200_000_000]}), path, compression="zstd"
    )


def _quoted(path: Path) -> None:
    line = b"x" * 1_000_000 + b"\n"
    with path.open("wb") as file:
        file.write(HEAD.encode() + b'2026-01-01,u,k,"')
        for _ in range(200):
            file.write(line)
        file.write(b'",t\n')


def _columns(path: Path) -> None:
    path.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n" + "1," * 99_999 + "1\n")


def _deep(path: Path) -> None:
    path.write_text('{"ts":"2026-01-01","key":"k","value":' + "[" * 900_000 + "]" * 900_000 + "}\n")


def _array(path: Path) -> None:
    with path.open("w") as file:
        file.write("[")
        file.write(",".join(['{"a":' + "[" * 90 + "]" * 90 + "}"] * 20_000))
        file.write("]")


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("manifest.json", "run.json", "decisions.jsonl", "head.json"):
            file.writestr(name, b" " * 600_000_000)


#: Name of the file -> what writes it.
BOMBS: dict[str, Callable[[Path], None]] = {
    "dictionary.parquet": _dictionary,
    "rows.parquet": _rows,
    "large_cell.parquet": _large_cell,
    "quoted.csv": _quoted,
    "columns.csv": _columns,
    "deep.jsonl": _deep,
    "array.json": _array,
    "run.zip": _zip,
}


#: A child that stays below this is refused by what it counted, not by its memory.
CHILD = Limits(memory_mb=400)


def set_off(path: Path) -> str:
    """Have a bomb read, which must be refused by what was counted; return the refusal."""
    try:
        if path.suffix == ".zip":
            isolated(CHILD, read_archive, path, USUAL)
        else:
            isolated(CHILD, open_log, path, "auto", USUAL)
    except (ImportRefused, ArchiveRefused) as refusal:
        return str(refusal)
    raise AssertionError(f"{path.name} was read")


def largest(folder: Path) -> Iterator[Path]:
    """Write logs at the limits: as many rows as are taken in, and as much text."""
    rows = USUAL.rows
    path = folder / "rows.csv"
    with path.open("w") as file:
        file.write("ts,user,key,value\n")
        file.writelines(f"2026-03-01T{i // 3600 % 24:02d}:00:00Z,u{i % 6000},k{i % 12},v{i % 5}\n" for i in range(rows))
    yield path
    path = folder / "distinct.jsonl"
    with path.open("w") as file:
        for i in range(rows):
            file.write(
                f'{{"ts":{1_700_000_000 + i},"user":"u{i}","key":"k{i}","value":"v{i}","text":"said {i} {i}"}}\n'
            )
    yield path
    path = folder / "text.csv"
    with path.open("w") as file:
        file.write(HEAD)
        file.writelines(f"2026-03-01,u{i % 90},k{i % 12},v{i % 5},{'word ' * 180}{i}\n" for i in range(240_000))
    yield path
    path = folder / "million.parquet"
    n = range(rows)
    columns = {
        "ts": [1_700_000_000 + i for i in n],
        "user": [f"u{i % 60000}" for i in n],
        "key": [f"k{i % 9}" for i in n],
    }
    pq.write_table(pa.table({**columns, "value": [f"v{i % 5}" for i in n]}), path)
    yield path


def _peak() -> float:
    """Return the largest resident memory of this process, in millions of bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024 / _MB


def _in_this_process(path: Path) -> str:
    """Refuse or take in one file; the form of this module that measures itself."""
    if path.name in BOMBS:
        return set_off(path)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "a.duckdb", PROGRAM) as store:
        try:
            return f"loaded {import_log(store, path).loaded:,}"
        except ImportRefused as refusal:
            return str(refusal)


def _measured(path: Path) -> tuple[float, float, str]:
    command = [sys.executable, "-m", "tests.prove.bombs", str(path)]
    seconds, memory, told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\t")
    return float(seconds), float(memory), told.strip()


def main() -> int:
    """Print the figures of every file and return 1 when a claim does not hold."""
    if len(sys.argv) > 1:
        began = time.monotonic()
        told = _in_this_process(Path(sys.argv[1]))
        sys.stdout.write(f"{time.monotonic() - began}\t{_peak()}\t{told}\n")
        return 0
    held = True
    with tempfile.TemporaryDirectory() as made:
        for path, most_seconds, most_memory in _files(Path(made)):
            seconds, memory, told = _measured(path)
            holds = seconds <= most_seconds and memory <= most_memory
            held &= holds
            size = path.stat().st_size / _MB
            sys.stdout.write(f"{path.name:20} {size:7.1f} MB {seconds:6.2f} s {memory:6,.0f} MB  {told[:80]}\n")
            sys.stdout.write("" if holds else f"  NOT within {most_seconds} s and {most_memory} MB\n")
            path.unlink()
    return 0 if held else 1


def _files(folder: Path) -> Iterator[tuple[Path, int, int]]:
    for name, write in BOMBS.items():
        write(folder / name)
        yield folder / name, 5, 500
    for path in largest(folder):
        yield path, 60, 1_500


if __name__ == "__main__":
    sys.exit(main())
