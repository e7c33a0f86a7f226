"""Writes: each one transaction, each idempotent, the derived tables always made anew from the evidence."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from tepa_core import __version__
from tepa_core.decisions import Occasion, in_effect
from tepa_core.experiment import FactResult, FactSpec, RunResult, RunSpec
from tepa_core.lifecycle import Thresholds
from tepa_core.methods import METHODS, thresholds_of
from tepa_core.store.connection import Store
from tepa_core.store.derive import decided_rows, derive, evidence_rows, insert, places_decided, replay_lane
from tepa_core.store.events import append_event
from tepa_core.store.grown import Kinship, kinship
from tepa_core.store.ledger import read_decisions, read_head
from tepa_core.store.names import free_name, name_of_facts, name_of_log, name_of_simulation
from tepa_core.store.queries import UnknownRunError

#: Items in a stretch, on average, where a label of phases comes again; one that changes more often says something else.
LEAST_OF_A_STRETCH = 3

_TABLES = (
    "run",
    "phase",
    "episode",
    "truth",
    "evidence",
    "precedent",
    "transition",
    "trial",
    "question",
    "attribution",
    "import_issue",
)


def _json(content: object) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def _remove(cursor: duckdb.DuckDBPyConnection, run_id: str) -> int:
    """Delete a run but for its ledger, which a run that is stored again keeps."""
    row = cursor.execute("SELECT count(*) FROM run WHERE run_id = ?", [run_id]).fetchone()
    for table in _TABLES:
        cursor.execute(f'DELETE FROM "{table}" WHERE run_id = ?', [run_id])  # noqa: S608
    return int(row[0]) if row else 0


def delete_run(store: Store, run_id: str) -> bool:
    """Delete a run with everything that belongs to it, its ledger too; False when there is none.

    What stays is a row in the ledger of the database: who deleted it, when, and the head that its ledger had.
    """
    actor = store.permit()
    with store.write() as cursor:
        if _name(cursor, run_id) is not None:
            append_event(cursor, actor, Occasion.DELETED, run_id, read_head(cursor, run_id))
        for table in ("decision", "ledger_head"):
            cursor.execute(f'DELETE FROM "{table}" WHERE run_id = ?', [run_id])  # noqa: S608
        return _remove(cursor, run_id) > 0


def rename_run(store: Store, run_id: str, name: str) -> None:
    """Give a run another name.

    Raises
    ------
    ValueError
        If the name is blank.
    UnknownRunError
        If there is no such run.
    """
    if not name.strip():
        raise ValueError("a run needs a name; type at least one letter")
    with store.write() as cursor:
        if _name(cursor, run_id) is None:
            raise UnknownRunError(
                f"there is no run {run_id}, so nothing was renamed; the command 'runs' lists what there is"
            )
        cursor.execute("UPDATE run SET name = ? WHERE run_id = ?", [name.strip(), run_id])


def _name(cursor: duckdb.DuckDBPyConnection, run_id: str) -> str | None:
    row = cursor.execute("SELECT name FROM run WHERE run_id = ?", [run_id]).fetchone()
    return None if row is None else str(row[0])


def _keep_evidence(
    cursor: duckdb.DuckDBPyConnection, run_id: str, evidence: pd.DataFrame, spec: RunSpec | FactSpec
) -> None:
    """Store what the methods with a lifecycle learned from, and the lives that follow from it."""
    rows = evidence_rows(evidence)
    insert(cursor, "evidence", run_id, rows)
    for method in spec.methods:
        if METHODS[method].lifecycle:
            derive(cursor, run_id, rows[rows["method"] == method], thresholds_of(method, spec.thresholds))


def save_run(store: Store, result: RunResult, name: str | None = None) -> str:
    """Store a finished simulation with its precedents; the same spec replaces itself, and keeps its decisions.

    Returns
    -------
    str
        The id of the run.
    """
    spec = result.spec
    run_id = spec.run_id
    with store.write() as cursor:
        name = name or _name(cursor, run_id) or free_name(cursor, run_id, name_of_simulation(spec))
        decisions = in_effect(read_decisions(cursor, run_id))
        decided = set(places_decided(cursor, run_id, decisions).values())
        _remove(cursor, run_id)
        insert(
            cursor,
            "run",
            run_id,
            _run_row(
                kind="simulation",
                stream=spec.stream,
                name=name,
                spec=spec.as_dict(),
                thresholds=spec.thresholds,
                source=None,
                counts={"seeds": spec.seeds, "tasks": int(result.phases["end"].max())},
                badges={},
                elapsed_s=result.elapsed,
            ),
        )
        insert(cursor, "phase", run_id, result.phases.rename(columns={"start": "start_at", "end": "end_at"}))
        insert(cursor, "episode", run_id, result.episodes)
        insert(cursor, "truth", run_id, result.truth.rename(columns={"start": "start_at", "end": "end_at"}))
        insert(cursor, "trial", run_id, result.trials)
        _keep_evidence(cursor, run_id, result.evidence, spec)
        for method, seed in sorted({(place.method, place.seed) for place in decided}):
            replay_lane(cursor, spec, run_id, method, seed, decisions)
    return run_id


def save_facts(store: Store, result: FactResult, facts: int, name: str | None = None) -> str:
    """Store a finished fact run with its precedents; the same file under the same settings replaces itself.

    Time counts the statements of the file, then the questions: the first of ``facts`` statements is 0, the first
    question ``facts``.

    Returns
    -------
    str
        The id of the run.
    """
    spec = result.spec
    run_id = spec.run_id
    asked = int(result.questions["t"].max()) + 1
    with store.write() as cursor:
        name = name or _name(cursor, run_id) or free_name(cursor, run_id, name_of_facts(spec))
        _remove(cursor, run_id)
        insert(
            cursor,
            "run",
            run_id,
            _run_row(
                kind="simulation",
                stream=spec.stream,
                name=name,
                spec=spec.as_dict(),
                thresholds=spec.thresholds,
                source=spec.name,
                counts={"seeds": spec.orders, "tasks": asked, "facts": facts},
                badges={},
                elapsed_s=result.elapsed,
            ),
        )
        spans = [("facts", 0, facts), ("questions", facts, facts + asked)]
        insert(cursor, "phase", run_id, pd.DataFrame(spans, columns=["phase", "start_at", "end_at"]))
        insert(cursor, "episode", run_id, result.episodes.assign(t=result.episodes["t"] + facts))
        insert(cursor, "question", run_id, result.questions.assign(t=result.questions["t"] + facts))
        insert(cursor, "attribution", run_id, result.attribution)
        _keep_evidence(cursor, run_id, result.evidence, spec)
    return run_id


@dataclasses.dataclass(frozen=True, slots=True)
class LogImport:
    """An evidence log ready to be stored, as the importers leave it.

    Attributes
    ----------
    source
        Name of the file, without its folder.
    digest
        SHA-256 of its bytes.
    format
        Id of the format.
    mapping
        JSON-ready description of the column mapping.
    evidence
        ``seq``, ``event_time``, ``ingested_at``, ``subject``, ``key``, ``key_id``, ``value``, ``value_id``,
        ``supports``, ``text``, ``phase``, ``actor``, ``source_ref``, ``source_row``.
    issues
        ``row``, ``reason``, ``raw``.
    read, loaded, rejected
        Counts of rows.
    badges
        Counts of what a reader should know.
    """

    source: str
    digest: str
    format: str
    mapping: Mapping[str, Any]
    evidence: pd.DataFrame
    issues: pd.DataFrame
    read: int
    loaded: int
    rejected: int
    badges: Mapping[str, int]


def log_run_id(source: str, digest: str, mapping: Mapping[str, Any], thresholds: Thresholds) -> str:
    """Return the id of a log: the same bytes under the same mapping and thresholds are the same run."""
    content = _json([digest, mapping, dataclasses.asdict(thresholds)])
    stem = re.sub(r"[^a-z0-9]+", "-", Path(source).stem.lower()).strip("-") or "log"
    return f"{stem[:40]}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


@dataclasses.dataclass(frozen=True, slots=True)
class KeptLog:
    """What became of a log.

    Attributes
    ----------
    run_id
        Its run.
    kin
        What it is to the runs that were here.
    """

    run_id: str
    kin: Kinship


def save_log(store: Store, log: LogImport, thresholds: Thresholds, name: str | None = None, elapsed: float = 0) -> str:
    """Store an evidence log as `keep_log` does, and return the id of its run."""
    return keep_log(store, log, thresholds, name, elapsed).run_id


def keep_log(
    store: Store, log: LogImport, thresholds: Thresholds, name: str | None = None, elapsed: float = 0
) -> KeptLog:
    """Store an evidence log with its precedents, all or nothing; the same file replaces itself but for its decisions.

    A log that has every row of a run of its name, mapping and thresholds continues that run: the id, the name and the
    decisions stay, and the lives are derived anew from the longer evidence. A file that the run has outgrown changes
    nothing.

    Parameters
    ----------
    store, log, thresholds
        Where to, what, and when its values are proposed, promoted and revoked.
    name
        Of the run; when left out the name that it has, or that of the file.
    elapsed
        Seconds already spent on reading the file; kept with the run, with those spent here.

    Returns
    -------
    KeptLog
        The run, and what the log is to the runs that were here.

    Raises
    ------
    ValueError
        If no row was loaded.
    """
    if log.loaded == 0:
        raise ValueError(f"{log.source} has no row that can be loaded; {log.rejected} rejected, nothing was written")
    began = time.perf_counter()
    run_id = log_run_id(log.source, log.digest, log.mapping, thresholds)
    at = _microseconds(log.evidence["event_time"])
    arrived = log.evidence["ingested_at"]
    # Without a time of arrival the order of the file is the order of arrival.
    arrival = (
        log.evidence["seq"].astype("int64")
        if arrived.isna().all()
        else _microseconds(arrived.fillna(log.evidence["event_time"]))
    )
    evidence = log.evidence.drop(columns=["event_time", "ingested_at"]).assign(
        method="", seed=0, occurred=at, arrived=arrival
    )
    with store.write() as cursor:
        kin = kinship(cursor, log.source, log.digest, log.mapping, thresholds, evidence)
        run_id = kin.run_id or run_id
        if kin.held:
            return KeptLog(run_id, kin)
        name = name or _name(cursor, run_id) or free_name(cursor, run_id, name_of_log(log.source, thresholds))
        decisions = in_effect(read_decisions(cursor, run_id))
        decided = decided_rows(decisions, places_decided(cursor, run_id, decisions))
        _remove(cursor, run_id)
        insert(cursor, "phase", run_id, _log_phases(evidence))
        insert(cursor, "evidence", run_id, evidence)
        insert(cursor, "import_issue", run_id, log.issues.rename(columns={"row": "source_row"}))
        batches = derive(cursor, run_id, evidence, thresholds, decided)
        insert(
            cursor,
            "run",
            run_id,
            _run_row(
                kind="log",
                stream="log",
                name=name,
                spec={
                    "format": log.format,
                    "mapping": dict(log.mapping),
                    "digest": log.digest,
                    **({"earlier": list(kin.earlier)} if kin.earlier else {}),
                },
                thresholds=thresholds,
                source=log.source,
                counts={
                    "read": log.read,
                    "loaded": log.loaded,
                    "rejected": log.rejected,
                    "arrival_times": int(arrived.notna().sum()),
                },
                badges={**log.badges, "batch_revocation": batches} if batches else log.badges,
                elapsed_s=elapsed + time.perf_counter() - began,
            ),
        )
    return KeptLog(run_id, kin)


def _microseconds(times: pd.Series[Any]) -> pd.Series[int]:
    numbers: pd.Series[int] = times.dt.as_unit("us").astype("int64")
    return numbers


def _run_row(
    *,
    kind: str,
    stream: str,
    name: str,
    spec: Mapping[str, Any],
    thresholds: Thresholds,
    source: str | None,
    counts: Mapping[str, int],
    badges: Mapping[str, int],
    elapsed_s: float,
) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "kind": kind,
                "stream": stream,
                "name": name,
                "created_at": dt.datetime.now(dt.UTC),
                "program": __version__,
                "spec": _json(spec),
                "thresholds": _json(dataclasses.asdict(thresholds)),
                "source": source,
                "counts": _json(counts),
                "badges": _json(badges),
                "elapsed_s": elapsed_s,
            }
        ]
    )


def _log_phases(evidence: pd.DataFrame) -> pd.DataFrame:
    """Phases named by a log, as stretches of time; a name may come again.

    None when two names share a moment, or take turns more often than phases do: then they are no phases.
    """
    named = evidence.loc[evidence["phase"].notna(), ["phase", "occurred"]].sort_values("occurred", kind="stable")
    if named.empty:
        return pd.DataFrame(columns=["phase", "start_at", "end_at"])
    at_once = named.groupby("occurred")["phase"].nunique()
    stretch = (named["phase"] != named["phase"].shift()).cumsum()
    spans = named.groupby(stretch).agg(phase=("phase", "first"), start_at=("occurred", "min"))
    turns = spans["phase"].duplicated().any() and len(named) < LEAST_OF_A_STRETCH * len(spans)
    if (at_once > 1).any() or turns:
        return pd.DataFrame(columns=["phase", "start_at", "end_at"])
    ends = [*spans["start_at"].tolist()[1:], int(named["occurred"].iloc[-1]) + 1]
    return pd.DataFrame({"phase": spans["phase"], "start_at": spans["start_at"], "end_at": ends}).reset_index(drop=True)
