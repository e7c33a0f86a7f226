"""A file that grew: whether a log continues a run that is here, so that the run keeps its id and its decisions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd

from tepa_core.lifecycle import Thresholds

__all__ = ["Kinship", "kinship"]

#: What makes two evidence items the same one: whose, on what, what it says, when, and where it was said.
_SAME = "subject, key_id, value_id, supports, occurred, source_ref, text"


@dataclass(frozen=True, slots=True)
class Kinship:
    """What a log is to the runs that were loaded from files of its name, under its mapping and thresholds.

    Attributes
    ----------
    run_id
        The run that it continues; None where it continues none.
    earlier
        Digests of the files that this run was loaded from before, the oldest first.
    new_rows
        Evidence items that the run does not have yet.
    held
        The run has been loaded from this very file and has grown since: there is nothing to store.
    beside
        The run of this name that it resembles most and does not continue; None where there is none.
    missing
        How many of that run's evidence items are not in the log.
    """

    run_id: str | None = None
    earlier: tuple[str, ...] = ()
    new_rows: int = 0
    held: bool = False
    beside: str | None = None
    missing: int = 0


def kinship(
    cursor: duckdb.DuckDBPyConnection,
    source: str,
    digest: str,
    mapping: Mapping[str, Any],
    thresholds: Thresholds,
    evidence: pd.DataFrame,
) -> Kinship:
    """Find the run that a log continues: same name of the file, mapping and thresholds, and no row of it is gone.

    Parameters
    ----------
    cursor
        Of the transaction that is going to store the log.
    source, digest, mapping, thresholds
        Of the log.
    evidence
        Its rows with the columns of the table ``evidence``.
    """
    wanted = (json.loads(json.dumps(dict(mapping))), dataclasses.asdict(thresholds))
    runs: dict[str, tuple[str, ...]] = {}
    for run_id, spec, values in cursor.execute(
        "SELECT run_id, spec, thresholds FROM run WHERE kind = 'log' AND source = ? ORDER BY created_at DESC, run_id",
        [source],
    ).fetchall():
        try:
            settings, its_thresholds = json.loads(spec), json.loads(values)
            if (settings["mapping"], its_thresholds) == wanted:
                runs[run_id] = (*settings.get("earlier", ()), settings["digest"])
        except (ValueError, KeyError, TypeError):
            continue  # a damaged row is no run that could go on
    for run_id, digests in runs.items():
        if digest in digests:
            return Kinship(run_id, digests[:-1], held=digest != digests[-1])
    counted = _gone_and_had(cursor, tuple(runs), evidence)
    whole = [run_id for run_id, (gone, _) in counted.items() if gone == 0]
    if whole:
        longest = max(whole, key=lambda run_id: counted[run_id][1])
        return Kinship(longest, runs[longest], len(evidence) - counted[longest][1])
    if not counted:
        return Kinship()
    nearest = max(counted, key=lambda run_id: counted[run_id][1] - counted[run_id][0])
    return Kinship(beside=nearest, missing=counted[nearest][0])


def _gone_and_had(
    cursor: duckdb.DuckDBPyConnection, runs: tuple[str, ...], evidence: pd.DataFrame
) -> dict[str, tuple[int, int]]:
    """Count, for each run, its evidence items that are not among the given ones, and all of them."""
    if not runs:
        return {}
    cursor.register("grown", evidence[[name.strip() for name in _SAME.split(",")]])
    try:
        counted = {}
        for run_id in runs:
            (row,) = cursor.execute(
                f"SELECT (SELECT count(*) FROM (SELECT {_SAME} FROM evidence WHERE run_id = $1 "  # noqa: S608
                f"EXCEPT ALL SELECT {_SAME} FROM grown)), (SELECT count(*) FROM evidence WHERE run_id = $1)",
                [run_id],
            ).fetchall()
            # A run whose evidence is not there is damaged, and nothing could say that a log continues it.
            if row[1] > 0:
                counted[run_id] = (int(row[0]), int(row[1]))
        return counted
    finally:
        cursor.unregister("grown")
