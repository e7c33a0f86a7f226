"""One question, one function, one DataFrame (or one frozen record). Everything the pages and the CLI read.

Times come back as the run counts them: tasks (int) in a simulation, UTC timestamps in a log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tepa_core.experiment import FACT_STREAM, OVERALL, REFERENCE
from tepa_core.lifecycle import Rule, Thresholds, would_prevent
from tepa_core.methods import thresholds_of
from tepa_core.store.connection import Store

#: Revocations at one instant that count as a batch: one import or one job, rather than one change of mind.
BATCH_SIZE = 3


class UnknownRunError(ValueError):
    """There is no such run."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run without looking at its rows."""

    run_id: str
    kind: str
    stream: str
    name: str
    created_at: pd.Timestamp
    program: str
    spec: Mapping[str, Any]
    thresholds: Thresholds
    source: str | None
    counts: Mapping[str, int]
    badges: Mapping[str, int]
    elapsed_s: float

    @property
    def is_log(self) -> bool:
        """True for an imported log, whose clock is time instead of tasks."""
        return self.kind == "log"

    @property
    def is_facts(self) -> bool:
        """True for a fact run, whose clock counts the facts of the file, then the questions about them."""
        return self.stream == FACT_STREAM


def _ask(store: Store, sql: str, parameters: Sequence[object] = ()) -> pd.DataFrame:
    with store.read() as cursor:
        return cursor.execute(sql, list(parameters)).df()


def runs(store: Store) -> pd.DataFrame:
    """List the runs, the newest first.

    Returns
    -------
    pandas.DataFrame
        ``run_id``, ``kind``, ``stream``, ``name``, ``created_at`` (UTC), ``elapsed_s``, ``seeds`` (0 for a log),
        ``precedents``, ``revoked``, ``source``.
    """
    return _ask(
        store,
        """
        SELECT run_id, kind, stream, name, run.created_at, elapsed_s,
               coalesce(TRY_CAST(CASE WHEN json_valid(counts) THEN json_extract(counts, '$.seeds') END AS INTEGER), 0)
                   AS seeds,
               count(precedent_id) AS precedents, count(precedent_id) FILTER (state = 'revoked') AS revoked, source
        FROM run LEFT JOIN precedent USING (run_id)
        GROUP BY ALL ORDER BY run.created_at DESC, run_id
        """,
    )


def run_info(store: Store, run_id: str) -> RunInfo:
    """Return what is known of one run.

    Raises
    ------
    UnknownRunError
        If there is none; the message says where to look.
    """
    with store.read() as cursor:
        row = cursor.execute(
            "SELECT run_id, kind, stream, name, created_at, program, spec, thresholds, source, counts, badges, "
            "elapsed_s FROM run WHERE run_id = ?",
            [run_id],
        ).fetchone()
    if row is None:
        raise UnknownRunError(f"there is no run {run_id}; the runs page and the command 'runs' list what there is")
    name = dict(zip(("run_id", "kind", "stream", "name"), row[:4], strict=True))
    return RunInfo(
        **name,
        created_at=pd.Timestamp(row[4]),
        program=row[5],
        spec=json.loads(row[6]),
        thresholds=Thresholds(**json.loads(row[7])),
        source=row[8],
        counts=json.loads(row[9]),
        badges=json.loads(row[10]),
        elapsed_s=row[11],
    )


def span(store: Store, run_id: str) -> tuple[int, int]:
    """First and last moment of a run's evidence, in the stored clock; (0, 0) when it has none."""
    with store.read() as cursor:
        row = cursor.execute("SELECT min(occurred), max(occurred) FROM evidence WHERE run_id = ?", [run_id]).fetchone()
    return (0, 0) if row is None or row[0] is None else (int(row[0]), int(row[1]))


def phases(store: Store, run_id: str) -> pd.DataFrame:
    """Phases of a run: ``phase``, ``start``, ``end`` (exclusive), in the run's clock; no rows when it has none."""
    frame = _ask(
        store,
        'SELECT phase, start_at AS start, end_at AS "end" FROM phase WHERE run_id = ? ORDER BY start_at',
        [run_id],
    )
    return in_clock(frame, ("start", "end"), run_info(store, run_id).is_log)


def success_per_seed(store: Store, run_id: str) -> pd.DataFrame:
    """Mean success of each seed: ``method``, ``seed``, ``phase`` (phases and ``overall``), ``success``."""
    return _ask(
        store,
        """
        WITH here AS (SELECT * FROM episode WHERE run_id = $1),
             ordered AS (SELECT phase, min(t) AS start FROM here GROUP BY phase)
        SELECT method, seed, phase, success FROM (
            SELECT method, seed, phase, avg(success::INTEGER) AS success, min(t) AS start FROM here GROUP BY ALL
            UNION ALL
            SELECT method, seed, $2, avg(success::INTEGER), 1 << 30 FROM here GROUP BY method, seed
        ) ORDER BY start, method, seed
        """,
        [run_id, OVERALL],
    )


def curve_per_seed(store: Store, run_id: str, window: int = 10) -> pd.DataFrame:
    """Each seed's course: ``method``, ``seed``, ``t``, ``success`` (mean of the last ``window`` tasks), ``size``.

    ``size`` is the active memory in items; the first tasks average over as many as there are.
    """
    return _ask(
        store,
        """
        SELECT method, seed, t, size,
               avg(success::INTEGER) OVER (
                   PARTITION BY method, seed ORDER BY t ROWS BETWEEN $2 - 1 PRECEDING AND CURRENT ROW) AS success
        FROM episode WHERE run_id = $1 ORDER BY method, seed, t
        """,
        [run_id, window],
    )


def episodes(
    store: Store, run_id: str, method: str | None = None, seed: int | None = None, key: str | None = None
) -> pd.DataFrame:
    """Episodes as stored: ``method``, ``seed``, ``t``, ``phase``, ``key``, ``action``, ``success``, ``followed``, ...

    ``retrieved``, ``exposed`` and ``size`` follow; see `tepa_core.experiment.RunResult`.
    """
    return _ask(
        store,
        """
        SELECT method, seed, t, phase, key, action, success, followed, retrieved, exposed, size
        FROM episode
        WHERE run_id = $1 AND ($2 IS NULL OR method = $2) AND ($3 IS NULL OR seed = $3) AND ($4 IS NULL OR key = $4)
        ORDER BY method, seed, t
        """,
        [run_id, method, seed, key],
    )


def harm_by_key(store: Store, run_id: str, method: str, limit: int = 3) -> pd.DataFrame:
    """Keys on which a method loses most against no memory, per seed and summed over tasks.

    Returns
    -------
    pandas.DataFrame
        ``key``, ``phase``, ``lost`` (successes per seed that no memory has and the method has not, at least 0),
        ``exposed`` (share of tasks with a stale value retrieved), ``tasks`` (per seed), the largest loss first.
    """
    return _ask(
        store,
        f"""
        WITH per AS (
            SELECT key, phase, method, sum(success::INTEGER) AS won, avg(exposed::INTEGER) AS exposed, count(*) AS n,
                   count(DISTINCT seed) AS seeds
            FROM episode WHERE run_id = $1 AND method IN ($2, '{REFERENCE}') GROUP BY ALL)
        SELECT a.key, a.phase, (b.won - a.won) / a.seeds AS lost, a.exposed, a.n / a.seeds AS tasks
        FROM per a JOIN per b USING (key, phase)
        WHERE a.method = $2 AND b.method = '{REFERENCE}' AND b.won > a.won
        ORDER BY lost DESC, key LIMIT $3
        """,  # noqa: S608 - the only text put in is a constant of the program
        [run_id, method, limit],
    )


def lanes(store: Store, run_id: str) -> pd.DataFrame:
    """Which lifecycles a run has: ``method``, ``seed`` (one row each; a log has one row with '' and 0)."""
    return _ask(store, "SELECT DISTINCT method, seed FROM precedent WHERE run_id = ? ORDER BY 1, 2", [run_id])


def keys(
    store: Store,
    run_id: str,
    method: str = "",
    seed: int = 0,
    search: str | None = None,
    limit: int = 1000,
    subject: str | None = None,
) -> pd.DataFrame:
    """Conflict keys of one lane, those with most transitions first.

    Returns
    -------
    pandas.DataFrame
        ``subject``, ``key``, ``key_id``, ``n_values``, ``revocations``, ``lives`` (activations), ``active`` (the Active
        value, missing if none). ``search`` matches key, subject and values, without regard to case; ``subject`` keeps
        the keys of one subject.
    """
    return _ask(
        store,
        """
        SELECT subject, any_value(key) AS key, key_id, count(*) AS n_values,
               CAST(coalesce(sum(revocations), 0) AS BIGINT) AS revocations, CAST(sum(lives) AS BIGINT) AS lives,
               max(value) FILTER (state = 'active') AS active
        FROM precedent LEFT JOIN (
            SELECT precedent_id, count(*) AS revocations FROM transition
            WHERE run_id = $1 AND to_state = 'revoked' AND from_state = 'active' GROUP BY ALL) USING (precedent_id)
        WHERE run_id = $1 AND method = $2 AND seed = $3 AND ($6 IS NULL OR subject = $6)
        GROUP BY subject, key_id
        HAVING $4 IS NULL OR contains(lower(concat_ws(' ', subject, any_value(key), string_agg(value, ' '))), lower($4))
        ORDER BY revocations DESC, lives DESC, subject, key_id LIMIT $5
        """,
        [run_id, method, seed, search, limit, subject],
    )


def subjects(store: Store, run_id: str, search: str | None = None, limit: int = 1000) -> pd.DataFrame:
    """Subjects of a log, those with most revocations first.

    Returns
    -------
    pandas.DataFrame
        ``subject``, ``n_keys``, ``revocations``, of the keys that ``search`` matches as in `keys`.
    """
    return _ask(
        store,
        """
        WITH one AS (
            SELECT subject, key_id, any_value(key) AS key, string_agg(value, ' ') AS written,
                   coalesce(sum(revocations), 0) AS revocations
            FROM precedent LEFT JOIN (
                SELECT precedent_id, count(*) AS revocations FROM transition
                WHERE run_id = $1 AND to_state = 'revoked' AND from_state = 'active' GROUP BY ALL) USING (precedent_id)
            WHERE run_id = $1 GROUP BY subject, key_id)
        SELECT subject, count(*) AS n_keys, CAST(sum(revocations) AS BIGINT) AS revocations
        FROM one WHERE $2 IS NULL OR contains(lower(concat_ws(' ', subject, key, written)), lower($2))
        GROUP BY subject ORDER BY revocations DESC, subject LIMIT $3
        """,
        [run_id, search, limit],
    )


def place_of(store: Store, run_id: str, precedent_id: str) -> tuple[str, int, str, str] | None:
    """Return method, seed, subject and ``key_id`` of a precedent, or None when the run has none of this id."""
    with store.read() as cursor:
        row = cursor.execute(
            "SELECT method, seed, subject, key_id FROM precedent WHERE run_id = ? AND precedent_id = ?",
            [run_id, precedent_id],
        ).fetchone()
    return None if row is None else (str(row[0]), int(row[1]), str(row[2]), str(row[3]))


def precedents(
    store: Store,
    run_id: str,
    *,
    state: str | None = None,
    key: str | None = None,
    method: str | None = None,
    seed: int | None = None,
    subject: str | None = None,
    rule: str | None = None,
    batch: bool = False,
    search: str | None = None,
) -> pd.DataFrame:
    """Precedents of a run, filtered.

    Parameters
    ----------
    state
        ``candidate``, ``hypothesis``, ``active``, ``deprecated`` or ``revoked``.
    rule
        The rule of the last transition.
    batch
        Only those whose last revocation shares its instant with those of at least two others (logs only). What a
        decision superseded belongs to no batch.
    search
        Text looked for, without regard to case, in subject, key, value and the text of the evidence on the key.

    Returns
    -------
    pandas.DataFrame
        The stored columns with ``id``; ``created_at``, ``changed_at`` and ``revoked_at`` in the run's clock; and
        ``batch_size``, the precedents of the run revoked at the instant of its last revocation (1 in a simulation).
    """
    is_log = run_info(store, run_id).is_log
    frame = _ask(
        store,
        """
        WITH falls AS (
            SELECT occurred, count(DISTINCT precedent_id) AS batch_size FROM transition
            WHERE run_id = $1 AND to_state = 'revoked' AND from_state = 'active' AND seq >= 0 GROUP BY occurred),
        hits AS (
            SELECT DISTINCT method, seed, subject, key_id FROM evidence
            WHERE run_id = $1 AND $9 IS NOT NULL AND contains(lower(coalesce(text, '')), lower($9)))
        SELECT precedent_id AS id, p.method, p.seed, p.subject, key, p.key_id, value, value_id,
               CASE WHEN deprecated THEN 'deprecated' ELSE state END AS state, support, conflict, trial_support,
               trial_conflict, posterior, rule, lives, created_at, changed_at, revoked_at,
               CASE WHEN $10 AND revoked_at IS NOT NULL THEN coalesce(falls.batch_size, 1) ELSE 1 END AS batch_size
        FROM precedent p LEFT JOIN falls ON falls.occurred = p.revoked_at
             LEFT JOIN hits h USING (method, seed, subject, key_id)
        WHERE run_id = $1
          AND ($2 IS NULL OR (CASE WHEN deprecated THEN 'deprecated' ELSE state END) = $2
               OR ($2 = 'active' AND state = 'active'))
          AND ($3 IS NULL OR key = $3 OR p.key_id = $3)
          AND ($4 IS NULL OR p.method = $4) AND ($5 IS NULL OR p.seed = $5) AND ($6 IS NULL OR p.subject = $6)
          AND ($7 IS NULL OR rule = $7)
          AND (NOT $8 OR ($10 AND falls.batch_size >= $11))
          AND ($9 IS NULL OR h.key_id IS NOT NULL
               OR contains(lower(concat_ws(' ', p.subject, key, value)), lower($9)))
        ORDER BY p.method, p.seed, p.subject, p.key_id, created_at, value_id
        """,
        [run_id, state, key, method, seed, subject, rule, batch, search or None, is_log, BATCH_SIZE],
    )
    return in_clock(frame, ("created_at", "changed_at", "revoked_at"), is_log)


def archive(
    store: Store, run_id: str, *, method: str | None = None, seed: int | None = None, search: str | None = None
) -> pd.DataFrame:
    """Every precedent that was ever revoked, with the numbers of its last revocation.

    Parameters
    ----------
    search
        As for `precedents`.

    Returns
    -------
    pandas.DataFrame
        ``id``, ``transition_id`` (the last revocation), ``method``, ``seed``, ``subject``, ``key``, ``key_id``,
        ``value``, ``state`` (now), ``lives``, ``revocations``, ``rule``, ``revoked_at`` (in the run's clock),
        ``support`` and ``conflict`` (counts at that moment), ``would_prevent`` (how many of the latest conflicts would
        have had to be supports; missing when the value was superseded), ``batch_size`` (precedents revoked at that
        instant; 1 in a simulation).
    """
    info = run_info(store, run_id)
    frame = _ask(
        store,
        """
        WITH fall AS (
            SELECT precedent_id, transition_id, occurred, rule, support, conflict, recent_window,
                   count(*) OVER (PARTITION BY precedent_id) AS revocations
            FROM transition WHERE run_id = $1 AND to_state = 'revoked' AND from_state = 'active'
            QUALIFY row_number() OVER (PARTITION BY precedent_id ORDER BY number DESC) = 1),
        falls AS (
            SELECT occurred, count(DISTINCT precedent_id) AS batch_size FROM transition
            WHERE run_id = $1 AND to_state = 'revoked' AND from_state = 'active' AND seq >= 0 GROUP BY occurred),
        hits AS (
            SELECT DISTINCT method, seed, subject, key_id FROM evidence
            WHERE run_id = $1 AND $4 IS NOT NULL AND contains(lower(coalesce(text, '')), lower($4)))
        SELECT p.precedent_id AS id, transition_id, p.method, p.seed, p.subject, key, p.key_id, value,
               CASE WHEN deprecated THEN 'deprecated' ELSE state END AS state, lives, revocations, fall.rule,
               fall.occurred AS revoked_at, fall.support, fall.conflict, recent_window,
               CASE WHEN $5 THEN coalesce(batch_size, 1) ELSE 1 END AS batch_size
        FROM precedent p JOIN fall USING (precedent_id) LEFT JOIN falls ON falls.occurred = fall.occurred
             LEFT JOIN hits h USING (method, seed, subject, key_id)
        WHERE run_id = $1 AND ($2 IS NULL OR p.method = $2) AND ($3 IS NULL OR p.seed = $3)
          AND ($4 IS NULL OR h.key_id IS NOT NULL
               OR contains(lower(concat_ws(' ', p.subject, key, value)), lower($4)))
        ORDER BY p.method, p.seed, p.subject, p.key_id, fall.occurred, p.precedent_id
        """,
        [run_id, method, seed, search or None, info.is_log],
    )
    thresholds = {name: thresholds_of(name, info.thresholds) for name in frame["method"].unique()}
    columns = ["method", "rule", "support", "conflict", "recent_window"]
    counted = {
        row: would_prevent(row[2], row[3], row[4], thresholds[row[0]])
        for row in set(frame[columns].itertuples(index=False, name=None))
        if row[1] != Rule.SUPERSEDED.label
    }
    needed = [counted.get(row) for row in frame[columns].itertuples(index=False, name=None)]
    frame.insert(len(frame.columns) - 1, "would_prevent", pd.Series(needed, index=frame.index, dtype="Int64"))
    frame = frame.drop(columns="recent_window")
    return in_clock(frame, ("revoked_at",), info.is_log)


def transitions(store: Store, run_id: str, precedent_id: str) -> pd.DataFrame:
    """Transitions of one precedent in order: the stored columns, ``occurred`` in the run's clock."""
    frame = _ask(
        store,
        """
        SELECT transition_id, precedent_id, number, seq, occurred, from_state, to_state, rule, life, support, conflict,
               recent_window AS "window", trial_support, trial_conflict, posterior
        FROM transition WHERE run_id = ? AND precedent_id = ? ORDER BY number
        """,
        [run_id, precedent_id],
    )
    return in_clock(frame, ("occurred",), run_info(store, run_id).is_log)


def state_counts(store: Store, run_id: str) -> dict[str, int]:
    """How many precedents of a run stand in each state, deprecated ones counted as active."""
    frame = _ask(store, "SELECT state, count(*) AS n FROM precedent WHERE run_id = ? GROUP BY 1 ORDER BY 1", [run_id])
    return dict(zip(frame["state"], frame["n"].astype(int), strict=True))


def revocations(store: Store, run_id: str, method: str = "tepa") -> pd.DataFrame:
    """List what fell and rose: ``seed``, ``occurred`` (task), ``key``, ``value``, ``to_state``, ``rule``."""
    return _ask(
        store,
        """
        SELECT seed, occurred, key, value, to_state, t.rule
        FROM transition t JOIN precedent p USING (run_id, precedent_id)
        WHERE run_id = ? AND method = ? AND to_state IN ('revoked', 'active') AND from_state <> to_state
        ORDER BY seed, occurred, number
        """,
        [run_id, method],
    )


def lane_transitions(store: Store, run_id: str, method: str = "", seed: int = 0) -> pd.DataFrame:
    """Every change of state in one lane (a method on a seed; for a log the default), in the order it happened.

    Returns
    -------
    pandas.DataFrame
        ``occurred`` (in the run's clock), ``subject``, ``key``, ``key_id``, ``value``, ``from_state``, ``to_state``,
        ``rule``, ``life``, ``transition_id``, ``precedent_id``.
    """
    frame = _ask(
        store,
        """
        SELECT occurred, subject, key, key_id, value, from_state, to_state, t.rule, life, transition_id, precedent_id
        FROM transition t JOIN precedent p USING (run_id, precedent_id)
        WHERE run_id = ? AND method = ? AND seed = ? AND from_state <> to_state
        ORDER BY occurred, seq, precedent_id, number
        """,
        [run_id, method, seed],
    )
    return in_clock(frame, ("occurred",), run_info(store, run_id).is_log)


def lane_evidence(store: Store, run_id: str, method: str, seed: int) -> pd.DataFrame:
    """Return what a method learned from on one seed: ``t`` (task), ``key``, ``value``, ``supports``, in order."""
    return _ask(
        store,
        """
        SELECT occurred AS t, key, value, supports FROM evidence
        WHERE run_id = ? AND method = ? AND seed = ? ORDER BY seq
        """,
        [run_id, method, seed],
    )


def truth(store: Store, run_id: str) -> pd.DataFrame:
    """Return what was right when, for measures only: ``seed``, ``key``, ``value``, ``start``, ``end`` (tasks)."""
    return _ask(
        store,
        'SELECT seed, key, value, start_at AS start, end_at AS "end" FROM truth WHERE run_id = ? ORDER BY ALL',
        [run_id],
    )


def evidence_of_key(store: Store, run_id: str, method: str, seed: int, subject: str, key_id: str) -> pd.DataFrame:
    """Evidence on one conflict key in source order: the stored columns, ``occurred`` and ``arrived`` as integers."""
    return _ask(
        store,
        """
        SELECT seq, occurred, arrived, subject, key, key_id, value, value_id, supports, text, phase, actor, source_ref,
               source_row, admitted
        FROM evidence WHERE run_id = ? AND method = ? AND seed = ? AND subject = ? AND key_id = ? ORDER BY seq
        """,
        [run_id, method, seed, subject, key_id],
    )


def known_evidence(store: Store, run_id: str, method: str, until: int | None = None) -> pd.DataFrame:
    """Evidence of one method on all its seeds (of a log: all of it) as it was known at a moment, in source order.

    Parameters
    ----------
    until
        The moment, itself included, in the stored clock; None for the end. Evidence of a log that names times of
        arrival is known from its arrival on.

    Returns
    -------
    pandas.DataFrame
        ``seed``, ``seq``, ``occurred``, ``subject``, ``key``, ``key_id``, ``value``, ``value_id``, ``supports``,
        ``admitted`` (whether trials let the value become active; missing where none were held).
    """
    arrives = bool(run_info(store, run_id).counts.get("arrival_times"))
    return _ask(
        store,
        """
        SELECT seed, seq, occurred, subject, key, key_id, value, value_id, supports, admitted
        FROM evidence
        WHERE run_id = $1 AND method = $2 AND ($3 IS NULL OR occurred <= $3 AND (NOT $4 OR arrived <= $3))
        ORDER BY seed, seq
        """,
        [run_id, method, until, arrives],
    )


def success_per_question(store: Store, run_id: str) -> pd.DataFrame:
    """Mean success of each question of a fact run over its orders: ``method``, ``question``, ``success``."""
    return _ask(
        store,
        """
        SELECT method, question, avg(success::INTEGER) AS success
        FROM episode JOIN question USING (run_id, seed, t) WHERE run_id = ? GROUP BY ALL ORDER BY method, question
        """,
        [run_id],
    )


def answers(store: Store, run_id: str, order: int = 0) -> pd.DataFrame:
    """Every answer given in one order of the questions of a fact run.

    Parameters
    ----------
    order
        Which order, from 0; the run's ``seed``.

    Returns
    -------
    pandas.DataFrame
        ``question`` (its number), ``text``, ``gold``, ``key`` (the asked conflict key, or that of questions through
        several relations), ``method``, ``answer`` (empty for none), ``success``, ``retrieved`` (values, missing where
        none), ``exposed`` (a superseded value was among them), ``attribution`` (missing but for questions through
        several relations), ordered by question and method.
    """
    return _ask(
        store,
        """
        SELECT question, text, gold, key, method, action AS answer, success, retrieved, exposed, attribution
        FROM episode JOIN question USING (run_id, seed, t) LEFT JOIN attribution USING (run_id, method, seed, question)
        WHERE run_id = ? AND seed = ? ORDER BY question, method
        """,
        [run_id, order],
    )


def trials(store: Store, run_id: str, method: str, seed: int, key: str) -> pd.DataFrame:
    """Trials that a method held for the values of a key on one seed, before it would make one Active.

    Returns
    -------
    pandas.DataFrame
        ``t`` (task), ``value``, ``number`` (within the task), ``kind`` (``support``, ``counterfactual`` or
        ``contamination``), ``success``, in order.
    """
    return _ask(
        store,
        """
        SELECT t, value, number, kind, success FROM trial
        WHERE run_id = ? AND method = ? AND seed = ? AND key = ? ORDER BY t, number
        """,
        [run_id, method, seed, key],
    )


def attributions(store: Store, run_id: str) -> pd.DataFrame:
    """Why questions through several relations were answered or not: ``method``, ``attribution``, ``n`` (answers).

    Answers count once per order. ``attribution`` is one of `tepa_core.experiment.ATTRIBUTIONS`.
    """
    return _ask(
        store,
        """
        SELECT method, attribution, count(*) AS n FROM attribution WHERE run_id = ?
        GROUP BY ALL ORDER BY method, attribution
        """,
        [run_id],
    )


def support_rates(store: Store, run_id: str, method: str = "tepa") -> pd.DataFrame:
    """How often evidence supports the value that is right at the time, per phase of a simulation.

    Returns
    -------
    pandas.DataFrame
        ``phase``, ``supports``, ``items`` (counts over all seeds), in order. Counted is evidence on keys whose right
        value is known: items about that value, and supports of another value, which conflict with it.
    """
    return _ask(
        store,
        """
        SELECT phase, CAST(count(*) FILTER (e.value = right_one.value AND supports) AS BIGINT) AS supports,
               count(*) AS items
        FROM evidence e JOIN truth right_one USING (run_id, seed, key)
        WHERE run_id = ? AND method = ? AND phase IS NOT NULL AND occurred >= start_at AND occurred < end_at
              AND (e.value = right_one.value OR supports)
        GROUP BY phase ORDER BY min(occurred)
        """,
        [run_id, method],
    )


def issues(store: Store, run_id: str) -> pd.DataFrame:
    """Rejected rows of an import: ``row``, ``reason``, ``raw``."""
    return _ask(
        store,
        'SELECT source_row AS "row", reason, raw FROM import_issue WHERE run_id = ? ORDER BY source_row',
        [run_id],
    )


def in_clock(frame: pd.DataFrame, columns: Sequence[str], is_log: bool) -> pd.DataFrame:
    """Turn stored integers into what a person reads: UTC timestamps in a log, tasks in a simulation."""
    if not is_log:
        return frame
    return frame.assign(**{name: _moments(frame[name]) for name in columns})


def _moments(stored: pd.Series[Any]) -> pd.DatetimeIndex:
    """Turn microseconds since 1970 into timestamps of that unit: nanoseconds would lose the years before 1678."""
    missing = stored.isna().to_numpy()
    whole = np.where(missing, np.iinfo(np.int64).min, stored.fillna(0).to_numpy().astype(np.int64))
    return pd.DatetimeIndex(whole.view("datetime64[us]"), tz="UTC")
