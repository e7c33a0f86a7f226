"""A database in a folder of its own, a small simulation, and logs written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunResult, RunSpec, run
from tepa_core.store import LogImport, Store

#: As the importers describe one.
MAPPING = {"columns": {}, "key_template": None, "tz": "UTC"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "audit.duckdb", PROGRAM) as opened:
        yield opened


@pytest.fixture(scope="session")
def simulation() -> RunResult:
    return run(
        RunSpec.build("controlled", seeds=3, first_seed=4, methods=["tepa", "tepa_norev", "no_memory", "append_only"])
    )


@pytest.fixture(scope="session")
def make_log() -> Any:
    """Build a `LogImport` of rows (minute, subject, key, value, supports, text); ids are the texts in lower case."""

    def make(rows: Sequence[tuple[int, str, str, str, bool, str | None]], source: str = "notes.csv") -> LogImport:
        minute, subject, key, value, supports, text = zip(*rows, strict=True)
        n = len(rows)
        at = pd.Series(pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(list(minute), unit="min"))
        evidence = pd.DataFrame(
            {
                "seq": np.arange(n),
                "event_time": at.dt.as_unit("us"),
                "ingested_at": pd.Series([pd.NaT] * n, dtype="datetime64[us, UTC]"),
                "subject": subject,
                "key": key,
                "key_id": [name.lower() for name in key],
                "value": value,
                "value_id": [name.lower() for name in value],
                "supports": supports,
                "text": pd.Series(text, dtype=object),
                "phase": pd.Series([None] * n, dtype=object),
                "actor": pd.Series([None] * n, dtype=object),
                "source_ref": pd.Series([None] * n, dtype=object),
                "source_row": np.arange(n) + 2,
            }
        )
        issues = pd.DataFrame({"row": [99], "reason": ["the key is missing"], "raw": ["{}"]})
        return LogImport(source, "d" * 64, "csv", MAPPING, evidence, issues, n + 1, n, 1, {"naive_time": 2})

    return make


@pytest.fixture(scope="session")
def random_rows() -> list[tuple[int, str, str, str, bool, str | None]]:
    """900 items on six keys of two subjects, out of order and with tied times, so that every rule has its turn."""
    rng = np.random.default_rng(7)
    n = 900
    # The favoured value of a key changes a few times, as in a life: pure noise would promote hardly anything.
    minute = rng.integers(0, 600, n)
    favoured = minute // 100 % 3
    value = np.where(rng.random(n) < 0.85, favoured, rng.integers(0, 3, n))
    supports = rng.random(n) < 0.9
    return [
        (int(minute[i]), f"u{rng.integers(2)}", f"k{rng.integers(3)}", f"v{value[i]}", bool(supports[i]), None)
        for i in range(n)
    ]
