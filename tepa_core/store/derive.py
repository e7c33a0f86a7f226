"""The derived tables: precedents and transitions, made anew from evidence and the decisions in effect."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core.decisions import Decision
from tepa_core.experiment import RunSpec, replay_seed
from tepa_core.lifecycle import Thresholds, encode, replay, tables
from tepa_core.methods import thresholds_of
from tepa_core.store.queries import BATCH_SIZE


class Place(NamedTuple):
    """What a precedent is about."""

    method: str
    seed: int
    subject: str
    key: str
    key_id: str
    value: str
    value_id: str


def precedent_id(method: str, seed: int, subject: str, key_id: str, value_id: str) -> str:
    """Return the stable id of a precedent: what it is about decides it, never its position."""
    content = "\x1f".join((method, str(seed), subject, key_id, value_id))
    return "p" + hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def insert(cursor: duckdb.DuckDBPyConnection, table: str, run_id: str, frame: pd.DataFrame) -> None:
    """Append a frame whose columns carry the names of the table's columns.

    The names that stand in the statement are those of the schema; a frame cannot bring one of its own.

    Raises
    ------
    ForeignColumnError
        If the frame has a column that the table has not. Nothing is written.
    """
    if frame.empty:
        return
    known = table_columns(cursor, table)
    foreign = [name for name in frame.columns if name not in known]
    if foreign:
        raise ForeignColumnError(f"{len(foreign)} of the columns do not belong into the table {table}")
    given = set(frame.columns)
    columns = ", ".join(f'"{name}"' for name in known if name in given)
    cursor.register("incoming", frame)
    cursor.execute(f'INSERT INTO "{table}" (run_id, {columns}) SELECT ?, {columns} FROM incoming', [run_id])  # noqa: S608
    cursor.unregister("incoming")


class ForeignColumnError(ValueError):
    """A frame has a column that the table it is meant for has not."""


def table_columns(cursor: duckdb.DuckDBPyConnection, table: str) -> tuple[str, ...]:
    """Return the columns of a table as the schema names them, but for ``run_id``, which is always bound."""
    rows = cursor.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", [table]).fetchall()
    return tuple(str(name) for (name,) in rows if name != "run_id")


def places_of_key(
    cursor: duckdb.DuckDBPyConnection, run_id: str, method: str, seed: int, subject: str, key_id: str
) -> dict[str, Place]:
    """Return what the stored precedents of one key are about, by their ids."""
    rows = cursor.execute(
        "SELECT precedent_id, method, seed, subject, key, key_id, value, value_id FROM precedent "
        "WHERE run_id = ? AND method = ? AND seed = ? AND subject = ? AND key_id = ?",
        [run_id, method, seed, subject, key_id],
    ).fetchall()
    return {row[0]: Place(*row[1:]) for row in rows}


def places_decided(cursor: duckdb.DuckDBPyConnection, run_id: str, decisions: Iterable[Decision]) -> dict[str, Place]:
    """Return what the stored precedents under decision are about, by their ids."""
    rows = cursor.execute(
        "SELECT precedent_id, method, seed, subject, key, key_id, value, value_id FROM precedent "
        "WHERE run_id = ? AND precedent_id IN (SELECT unnest(?))",
        [run_id, sorted({decision.precedent_id for decision in decisions})],
    ).fetchall()
    return {row[0]: Place(*row[1:]) for row in rows}


def places_in_stream(spec: RunSpec, method: str, seed: int) -> dict[str, Place]:
    """Return what every precedent that a method could have on a seed would be about, seen or not, by their ids."""
    stream = spec.stream_spec
    return {
        precedent_id(method, seed, "", key, value): Place(method, seed, "", key, key, value, value)
        for key in stream.keys
        for value in stream.values
    }


def places_in_evidence(evidence: pd.DataFrame) -> dict[str, Place]:
    """Return what the precedents of evidence rows are about, by their ids."""
    what = ["method", "seed", "subject", "key_id", "value_id"]
    seen = evidence.drop_duplicates(what)
    columns = (seen[name].tolist() for name in Place._fields)
    places = [Place(*row) for row in zip(*columns, strict=True)]
    return {precedent_id(one.method, one.seed, one.subject, one.key_id, one.value_id): one for one in places}


def decided_rows(decisions: Sequence[Decision], places: Mapping[str, Place]) -> pd.DataFrame:
    """Return decisions as rows that stand beside evidence in a replay.

    Parameters
    ----------
    decisions
        In effect, and on precedents that ``places`` knows; the others are left out.
    """
    known = [(one, places[one.precedent_id]) for one in decisions if one.precedent_id in places and one.verdict]
    columns: dict[str, Any] = {name: [getattr(place, name) for _, place in known] for name in Place._fields}
    return pd.DataFrame(
        columns
        | {
            "seed": np.array(columns["seed"], np.int64),
            "seq": np.array([-1 - one.number for one, _ in known], np.int64),
            "occurred": np.array([one.effective_at for one, _ in known], np.int64),
            "verdict": np.array([one.verdict for one, _ in known], np.int64),
            "supports": np.zeros(len(known), np.bool_),
        }
    )


def with_decisions(evidence: pd.DataFrame, decided: pd.DataFrame) -> pd.DataFrame:
    """Return evidence and decisions as the rows of one replay, with ``verdict`` (0 for evidence)."""
    coded = [name for name, kind in evidence.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    plain = evidence.astype(dict.fromkeys(coded, object)).assign(verdict=0)
    if decided.empty:
        return plain
    if "admitted" in plain:
        decided = decided.assign(admitted=pd.array([pd.NA] * len(decided), "boolean"))
        plain = plain.assign(admitted=plain["admitted"].astype("boolean"))
    kept = [name for name in plain.columns if name in decided]
    both = pd.concat([plain[kept], decided[kept]], ignore_index=True)
    return both.assign(supports=both["supports"].astype(np.bool_))


def derive(
    cursor: duckdb.DuckDBPyConnection,
    run_id: str,
    evidence: pd.DataFrame,
    thresholds: Thresholds,
    decided: pd.DataFrame | None = None,
) -> int:
    """Replay evidence, with what people decided, into the derived tables.

    Parameters
    ----------
    evidence
        Columns of the table of that name; its keys must have no derived rows yet.
    decided
        From `decided_rows`.

    Returns
    -------
    int
        How many precedents were revoked in batches.
    """
    items = evidence if decided is None or decided.empty else with_decisions(evidence, decided)
    lanes = items.assign(subject=items["seed"].astype(str) + "\x1f" + items["subject"].astype(str))
    log, labels = encode(lanes, time="occurred")
    precedents, transitions = tables(log, labels, replay(log, thresholds), thresholds)
    at = precedents["first"].to_numpy()
    first = items.take(at)
    ids = np.array(
        [
            precedent_id(*parts)
            for parts in zip(
                first["method"], first["seed"], first["subject"], first["key_id"], first["value_id"], strict=True
            )
        ],
        object,
    )
    precedents = precedents.drop(columns=["first", "subject"]).assign(
        precedent_id=ids,
        method=first["method"].to_numpy(object),
        seed=first["seed"].to_numpy(),
        subject=first["subject"].to_numpy(object),
        key=first["key"].to_numpy(object),
        value=spelled(log.precedent, at, items),
    )
    insert(cursor, "precedent", run_id, precedents)
    owner = ids[transitions["precedent"].to_numpy()]
    transitions = transitions.rename(columns={"time": "occurred", "window": "recent_window"}).assign(precedent_id=owner)
    transitions["transition_id"] = transitions["precedent_id"] + "." + transitions["number"].astype(str)
    insert(cursor, "transition", run_id, transitions.drop(columns=["precedent"]))
    falls = transitions[(transitions["to_state"] == "revoked") & (transitions["from_state"] == "active")]
    sizes = falls[falls["seq"] >= 0].groupby("occurred")["precedent_id"].nunique()
    return int(sizes[sizes >= BATCH_SIZE].sum())


def forget_key(
    cursor: duckdb.DuckDBPyConnection, run_id: str, method: str, seed: int, subject: str, key_id: str
) -> None:
    """Delete the derived rows of one key, so that they can be made anew."""
    place = [run_id, method, seed, subject, key_id]
    cursor.execute(
        "DELETE FROM transition WHERE run_id = ? AND precedent_id IN (SELECT precedent_id FROM precedent "
        "WHERE run_id = ? AND method = ? AND seed = ? AND subject = ? AND key_id = ?)",
        [run_id, *place],
    )
    cursor.execute(
        "DELETE FROM precedent WHERE run_id = ? AND method = ? AND seed = ? AND subject = ? AND key_id = ?", place
    )


def forget_lane(cursor: duckdb.DuckDBPyConnection, run_id: str, method: str, seed: int) -> None:
    """Delete what one method did and learned on one seed, with what is derived from it."""
    lane = [run_id, method, seed]
    cursor.execute(
        "DELETE FROM transition WHERE run_id = ? AND precedent_id IN "
        "(SELECT precedent_id FROM precedent WHERE run_id = ? AND method = ? AND seed = ?)",
        [run_id, *lane],
    )
    for table in ("precedent", "episode", "evidence", "trial"):
        cursor.execute(f'DELETE FROM "{table}" WHERE run_id = ? AND method = ? AND seed = ?', lane)  # noqa: S608


def replay_lane(
    cursor: duckdb.DuckDBPyConnection,
    spec: RunSpec,
    run_id: str,
    method: str,
    seed: int,
    standing: Sequence[Decision],
) -> None:
    """Play one method on one seed again with the decisions in effect, in the place of what it did before.

    Parameters
    ----------
    standing
        Decisions in effect; those on other methods and seeds are left out.
    """
    places = places_in_stream(spec, method, seed)
    here = [decision for decision in standing if decision.precedent_id in places]
    played = replay_seed(
        spec,
        method,
        seed,
        [
            (decision.effective_at, place.key, place.value, decision.verdict)
            for decision in here
            for place in (places[decision.precedent_id],)
            if decision.verdict is not None
        ],
    )
    forget_lane(cursor, run_id, method, seed)
    evidence = evidence_rows(played.evidence)
    insert(cursor, "episode", run_id, played.episodes)
    insert(cursor, "evidence", run_id, evidence)
    insert(cursor, "trial", run_id, played.trials)
    derive(cursor, run_id, evidence, thresholds_of(method, spec.thresholds), decided_rows(here, places))


def evidence_rows(evidence: pd.DataFrame) -> pd.DataFrame:
    """Return a simulation's evidence as rows of the table of that name."""
    return evidence.rename(columns={"t": "occurred"}).assign(
        arrived=evidence["t"], subject="", key_id=evidence["key"], value_id=evidence["value"]
    )


def spelled(precedent: npt.NDArray[np.int32], first: npt.NDArray[np.int64], items: pd.DataFrame) -> Any:
    """Return each precedent's value as its earliest evidence writes it; decisions write nothing.

    Parameters
    ----------
    precedent, first
        As for `spelling`.
    items
        ``occurred``, ``value``, and ``verdict`` where there are decisions among them.
    """
    occurred = items["occurred"]
    if "verdict" in items:
        occurred = occurred.where(items["verdict"] == 0, np.iinfo(np.int64).max)
    return spelling(precedent, first, occurred, items["value"])


def spelling(
    precedent: npt.NDArray[np.int32], first: npt.NDArray[np.int64], occurred: pd.Series[int], value: pd.Series[Any]
) -> npt.NDArray[np.object_]:
    """Return each precedent's value as its earliest item writes it; of equally early ones the first by alphabet.

    Parameters
    ----------
    precedent, occurred, value
        Per item its precedent, its time, and the value as written, shape (n,).
    first
        Any one item of each precedent, shape (m,).
    """
    written = value.to_numpy(object)
    spelled = written[first]
    differs = written != spelled[precedent]
    if differs.any():
        several = np.isin(precedent, precedent[differs])
        items = pd.DataFrame(
            {"precedent": precedent[several], "occurred": occurred.to_numpy()[several], "value": written[several]}
        )
        earliest = items.sort_values(["occurred", "value"]).drop_duplicates("precedent")
        spelled[earliest["precedent"].to_numpy()] = earliest["value"].to_numpy(object)
    return spelled
