"""A run as one file: evidence, decisions with their chain, settings. And its active set and decisions as JSON lines.

The file is a zip of members with fixed names. On the way in nothing of it is trusted: `tepa_core.store.archive_schema`
checks all of it before the one transaction that stores it, and the derived tables are made anew from the evidence.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tepa_core import __version__
from tepa_core.decisions import Action, Occasion, in_effect
from tepa_core.experiment import RunSpec
from tepa_core.files import beside
from tepa_core.isolated import ReadingFailed, Waiting, measured
from tepa_core.lifecycle import Thresholds
from tepa_core.limits import Limits
from tepa_core.methods import thresholds_of
from tepa_core.store import queries
from tepa_core.store.archive_schema import (
    DECISIONS,
    FORMAT,
    HEAD,
    MANIFEST,
    RUN,
    CheckedArchive,
    read_archive,
)
from tepa_core.store.archive_shapes import ArchiveRefused
from tepa_core.store.archive_tables import TABLES
from tepa_core.store.connection import Store
from tepa_core.store.derive import (
    Place,
    decided_rows,
    derive,
    insert,
    places_decided,
    places_in_evidence,
    places_in_stream,
)
from tepa_core.store.events import append_event
from tepa_core.store.ledger import append, read_decisions, read_head, set_head
from tepa_core.store.lives import plain


def is_archive(path: Path) -> bool:
    """Whether a file begins as `export_run` writes one, whole or not."""
    try:
        with path.open("rb") as file:
            begin = file.read(30 + len(MANIFEST))
    except OSError:
        return False
    return begin.startswith(b"PK\x03\x04") and begin.endswith(MANIFEST.encode())


def export_run(store: Store, run_id: str, path: Path, *, replace: bool = False) -> dict[str, int]:
    """Write a run to one zip file; with ``replace`` in the place of one that is there.

    Returns
    -------
    dict
        How many ``evidence`` items and ``decisions`` it holds.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    FileRefused
        If the file cannot be written, or is there already.
    """
    info = queries.run_info(store, run_id)
    with store.read() as cursor:
        # One snapshot, so that the ledger, its head and what follows from them belong together.
        cursor.begin()
        tables = {name: _read_table(cursor, name, run_id) for name in TABLES}
        decisions, head = read_decisions(cursor, run_id), read_head(cursor, run_id)
        cursor.rollback()
    run = {
        "run_id": info.run_id,
        "kind": info.kind,
        "stream": info.stream,
        "name": info.name,
        "created_at": info.created_at.isoformat(),
        "program": info.program,
        "spec": dict(info.spec),
        "thresholds": _thresholds(info.thresholds),
        "source": info.source,
        "counts": dict(info.counts),
        "badges": dict(info.badges),
        "elapsed_s": info.elapsed_s,
    }
    members = {
        RUN: _json(run),
        DECISIONS: b"".join(_json(decision.as_dict()) for decision in decisions),
        HEAD: _json({"count": head.count, "hash": head.hash}),
    }
    members |= {f"{name}.parquet": _parquet(table) for name, table in tables.items() if table.num_rows}
    manifest = {
        "format": FORMAT,
        "program": __version__,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(members.items())},
    }
    with beside(path, replace=replace) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {MANIFEST: _json(manifest), **members}.items():
            file.writestr(name, content)
    return {"evidence": tables["evidence"].num_rows, "decisions": len(decisions)}


def import_archive(store: Store, path: Path, waiting: Waiting | None = None) -> str:
    """Take in a run that `export_run` wrote: the same precedents, transitions, ledger and verification.

    The ledger of the database notes who took it in and from which file. Its decisions stay as they are and are
    claimed elsewhere from then on: that they verify does not show who took them.

    Parameters
    ----------
    waiting
        Called again and again while the file is read; what it raises ends the reading, and nothing is stored.

    Returns
    -------
    str
        The id of the run, the one that it had.

    Raises
    ------
    ArchiveRefused
        If any of the file is not as it should be (see `read_archive`), or the run is here already. Nothing is stored.
    """
    actor = store.permit()
    found = _checked(path, waiting)
    run_id = str(found.run["run_id"])
    with store.write() as cursor:
        if cursor.execute("SELECT 1 FROM run WHERE run_id = ?", [run_id]).fetchone():
            raise ArchiveRefused(f"run {run_id} is here already; delete it first to take it in from {path.name}.")
        # A run that was deleted by an older program may have left rows of its ledger.
        for table in ("decision", "ledger_head"):
            cursor.execute(f'DELETE FROM "{table}" WHERE run_id = ?', [run_id])  # noqa: S608
        insert(cursor, "run", run_id, _run_row(found.run))
        for name, frame in found.tables.items():
            insert(cursor, name, run_id, frame)
        for decision in found.decisions:
            append(cursor, decision)
        if found.decisions:
            set_head(cursor, run_id, found.head)
        append_event(cursor, actor, Occasion.IMPORTED, run_id, found.head, found.digest)
        _derive(cursor, found)
    return run_id


def _checked(path: Path, waiting: Waiting | None) -> CheckedArchive:
    try:
        limits = Limits.from_environment()
        return measured(limits, partial(read_archive, path, limits), waiting)[0]
    except ReadingFailed as error:
        raise ArchiveRefused(str(error)) from None


def export_active(store: Store, run_id: str, *, method: str | None = None, seed: int | None = None) -> str:
    """Write the active set for an agent: JSON lines, one precedent each.

    Each has ``subject``, ``key``, ``value``, ``support``, ``conflict``, ``posterior``, ``since`` (when it became what
    it is, in the run's clock), and for a simulation ``method`` and ``seed``. What is not active is not in it.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    """
    info = queries.run_info(store, run_id)
    found = queries.precedents(store, run_id, state="active", method=method, seed=seed)
    names = ["subject", "key", "value", "support", "conflict", "posterior", "changed_at"]
    names += [] if info.is_log else ["method", "seed"]
    return _lines([{name: row[name] for name in names} for row in found.to_dict("records")], {"changed_at": "since"})


def export_instructions(store: Store, run_id: str) -> str:
    """Write what people decided as instructions that another memory system can apply: JSON lines in order.

    Each has ``op``, ``subject``, ``key``, ``value``, ``pinned``, ``reason`` (null once redacted), ``at`` (from when on,
    in the run's clock), ``decided_at`` and ``decision_id``, for a simulation ``method`` and ``seed``, and where the
    decision was imported ``claimed`` (by whom, when, from which file). The operations: ``set`` makes the value the one
    of its key, ``add`` makes it valid beside the others, ``remove`` keeps it out. Decisions that were undone, or that
    do not hold any more because evidence or another decision went past them, give no instruction.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    """
    info = queries.run_info(store, run_id)
    with store.read() as cursor:
        cursor.begin()
        decisions = in_effect(read_decisions(cursor, run_id))
        places = places_decided(cursor, run_id, decisions)
        rows = cursor.execute("SELECT precedent_id, state FROM precedent WHERE run_id = ?", [run_id]).fetchall()
        cursor.rollback()
    states: dict[str, str] = dict(rows)
    operations = {Action.REACTIVATE: "set", Action.BOTH_VALID: "add", Action.CONFIRM: "remove"}
    in_time = sorted(decisions, key=lambda one: (one.effective_at, one.number))
    latest = {decision.precedent_id: decision.number for decision in in_time}
    instructions = []
    for decision in in_time:
        place = places.get(decision.precedent_id)
        wanted = "revoked" if decision.action is Action.CONFIRM else "active"
        if place is None or latest[decision.precedent_id] != decision.number or states[decision.precedent_id] != wanted:
            continue
        at = decision.effective_at
        instructions.append(
            {
                "op": operations[decision.action],
                "subject": place.subject,
                "key": place.key,
                "value": place.value,
                "pinned": decision.pinned,
                "reason": decision.reason,
                "at": pd.Timestamp(at, unit="us", tz="UTC") if info.is_log else at,
                "decided_at": pd.Timestamp(decision.decided_at),
                "decision_id": decision.decision_id,
                **({} if info.is_log else {"method": place.method, "seed": place.seed}),
                **({} if decision.claim is None else {"claimed": decision.claim.as_dict()}),
            }
        )
    return _lines(instructions, {})


def _lines(rows: list[dict[str, Any]], renamed: Mapping[str, str]) -> str:
    return "".join(
        json.dumps({renamed.get(str(name), str(name)): plain(cell) for name, cell in row.items()}, ensure_ascii=False)
        + "\n"
        for row in rows
    )


def _json(content: object) -> bytes:
    return (json.dumps(content, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _thresholds(thresholds: Thresholds) -> dict[str, Any]:
    return {name: getattr(thresholds, name) for name in Thresholds.__dataclass_fields__}


def _read_table(cursor: duckdb.DuckDBPyConnection, name: str, run_id: str) -> pa.Table:
    # In one fixed order, so that the same run gives the same bytes.
    order = "method, seed, seq" if name == "evidence" else "ALL"
    rows: pa.Table = cursor.sql(
        f'SELECT * EXCLUDE (run_id) FROM "{name}" WHERE run_id = ? ORDER BY {order}',  # noqa: S608 - constants
        params=[run_id],
    ).to_arrow_table()
    return rows


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _run_row(run: Mapping[str, Any]) -> pd.DataFrame:
    texts = {name: _text(run[name]) for name in ("spec", "thresholds", "counts", "badges")}
    row = {name: value for name, value in run.items() if name != "run_id"}
    return pd.DataFrame([row | texts | {"created_at": pd.Timestamp(run["created_at"])}])


def _text(content: object) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def _derive(cursor: duckdb.DuckDBPyConnection, found: CheckedArchive) -> None:
    """Derive the precedents of every lane from what was stored."""
    run, standing = found.run, in_effect(found.decisions)
    run_id = str(run["run_id"])
    evidence = cursor.execute(
        "SELECT * EXCLUDE (run_id) FROM evidence WHERE run_id = ? ORDER BY method, seed, seq", [run_id]
    ).df()
    places: dict[str, Place] = places_in_evidence(evidence) if standing else {}
    if standing and run["kind"] == "simulation":
        spec = RunSpec.from_dict(run["spec"])
        for method, seed in evidence[["method", "seed"]].drop_duplicates().itertuples(index=False):
            places = places_in_stream(spec, str(method), int(seed)) | places
    decided = decided_rows(standing, places)
    for method, lane in evidence.groupby("method", sort=False):
        derive(cursor, run_id, lane, thresholds_of(str(method), found.thresholds), decided[decided["method"] == method])
