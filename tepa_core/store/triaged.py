"""The archive as it stood at a moment, ranked by what a wrong revocation would cost."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd

from tepa_core.decisions import in_effect, microseconds, triage
from tepa_core.lifecycle import encode, replay
from tepa_core.methods import METHODS, thresholds_of
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.derive import decided_rows, places_in_evidence, precedent_id, spelled, with_decisions
from tepa_core.store.ledger import decisions_of


def triaged(
    store: Store,
    run_id: str,
    *,
    method: str | None = None,
    seed: int | None = None,
    as_of: int | dt.datetime | None = None,
    every: bool = False,
) -> pd.DataFrame:
    """Rank the revocations of a run by the expected harm of their being wrong, by what was known at a moment.

    Everything is replayed from the evidence up to that moment, with the decisions that took effect by then: nothing
    later is read, and neither truth nor phases.

    Parameters
    ----------
    method, seed
        Of a simulation: the method (its first with a lifecycle that revokes when left out), and the seed to list. The
        numbers are learned from all seeds of the method, so they do not depend on which of them are listed.
    as_of
        Moment of asking, itself included: a task, or for a log a time (naive ones count as UTC; whole numbers as
        microseconds since 1970 UTC). In a log evidence counts once it has happened and, where arrival is known,
        arrived. The end of the run when left out.
    every
        List earlier revocations of a precedent too; else only its last.

    Returns
    -------
    pandas.DataFrame
        The largest score first: ``id`` (of the precedent), ``transition_id``, ``method``, ``seed``, ``subject``,
        ``key``, ``key_id``, ``value``, ``revoked_at`` (in the run's clock), ``lives``, ``successor`` (the value that is
        Active in its place, missing if none), and the columns of `tepa_core.decisions.triage` but ``precedent``,
        ``number`` and ``at``.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    ValueError
        If the run has no such method or seed, or ``as_of`` is no moment of its clock.
    """
    info = queries.run_info(store, run_id)
    lanes = queries.lanes(store, run_id)
    if method is None:
        revoking = [name for name in METHODS if METHODS[name].revokes and name in set(lanes["method"])]
        method = "" if info.is_log else next(iter(revoking), "")
    listed = lanes[lanes["method"] == method]
    if listed.empty or (seed is not None and seed not in set(listed["seed"])):
        lane = f"method {method!r}" if seed is None else f"seed {seed} of method {method!r}"
        raise ValueError(f"run {run_id} has no lifecycle of {lane}; it has those of {_names(lanes)}")
    until = _moment(info, as_of)
    evidence = queries.known_evidence(store, run_id, method, until).assign(method=method)
    decided = [
        decision
        for decision in in_effect(decisions_of(store, run_id))
        if until is None or decision.effective_at <= until
    ]
    if decided:
        evidence = with_decisions(evidence, decided_rows(decided, places_in_evidence(evidence)))
    thresholds = thresholds_of(method, info.thresholds)
    log, labels = encode(
        evidence.assign(subject=evidence["seed"].astype(str) + "\x1f" + evidence["subject"]), time="occurred"
    )
    replayed = replay(log, thresholds)
    of_key = evidence.take(labels["first"].to_numpy()[log.key_start[:-1]])
    # The seeds of a simulation are one agent in several worlds: a key is used as often as in all of them together.
    use = of_key.groupby(["subject", "key_id"], sort=False).ngroup().to_numpy(np.int64)
    ranked = triage(log, replayed, thresholds, use)
    if not every:
        ranked = ranked[ranked["number"] == ranked.groupby("precedent")["number"].transform("max")]
    if seed is not None:
        of_seed = evidence["seed"].to_numpy()[labels["first"].to_numpy()] == seed
        ranked = ranked[of_seed[ranked["precedent"].to_numpy()]]
    at = ranked["precedent"].to_numpy()
    first = evidence.take(labels["first"].to_numpy()[at]).reset_index(drop=True)
    written = spelled(log.precedent, labels["first"].to_numpy(), evidence)
    ids = pd.Series(
        [
            precedent_id(method, *parts)
            for parts in zip(first["seed"], first["subject"], first["key_id"], first["value_id"], strict=True)
        ],
        dtype=object,
    )
    successor = ranked["successor"].to_numpy()
    who = pd.DataFrame(
        {
            "id": ids,
            "transition_id": ids + "." + ranked["number"].astype(str).reset_index(drop=True),
            "method": method,
            "seed": first["seed"],
            "subject": first["subject"],
            "key": first["key"],
            "key_id": first["key_id"],
            "value": written[at],
            "revoked_at": ranked["at"].to_numpy(),
            "lives": replayed.precedents["lives"][at].astype(np.int64),
        }
    )
    numbers = ranked.drop(columns=["precedent", "number", "at"]).reset_index(drop=True)
    numbers["successor"] = pd.Series(np.where(successor < 0, None, written[successor]), dtype=object)
    return queries.in_clock(pd.concat([who, numbers], axis=1), ("revoked_at",), info.is_log)


def _names(lanes: pd.DataFrame) -> str:
    return ", ".join(
        f"{str(method) or 'the log'} (seeds {rows['seed'].min()} to {rows['seed'].max()})"
        for method, rows in lanes.groupby("method", sort=False)
    )


def _moment(info: queries.RunInfo, as_of: int | dt.datetime | None) -> int | None:
    """Write a moment as the run's clock counts it; None for the end."""
    if as_of is None or isinstance(as_of, int | np.integer):
        return None if as_of is None else int(as_of)
    if not info.is_log:
        raise ValueError(f"{info.run_id} counts tasks: give the number of a task, not {as_of}")
    return microseconds(as_of)
