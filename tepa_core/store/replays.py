"""A whole log, ready to be replayed under any thresholds."""

from __future__ import annotations

import pandas as pd

from tepa_core.decisions import in_effect
from tepa_core.lifecycle import EncodedLog, encode
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.derive import decided_rows, places_decided, spelled, with_decisions
from tepa_core.store.ledger import decisions_of


def encoded_log(store: Store, run_id: str) -> tuple[EncodedLog, pd.DataFrame]:
    """Read the evidence of an imported log and the decisions in effect on it.

    Returns
    -------
    EncodedLog
        For `tepa_core.lifecycle.replay`; times in microseconds since 1970 UTC.
    pandas.DataFrame
        Per precedent, in index order: ``subject``, ``key``, ``key_id``, ``value``, ``value_id``.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    ValueError
        If the run is a simulation.
    """
    if not queries.run_info(store, run_id).is_log:
        raise ValueError(f"run {run_id} is a simulation; only a log is replayed from its stored evidence")
    items = queries.known_evidence(store, run_id, "")
    decisions = in_effect(decisions_of(store, run_id))
    if decisions:
        with store.read() as cursor:
            decided = decided_rows(decisions, places_decided(cursor, run_id, decisions))
        items = with_decisions(items, decided)
    log, labels = encode(items, time="occurred")
    first = labels["first"].to_numpy()
    key = items["key"].to_numpy(object)[first]
    return log, labels.drop(columns="first").assign(key=key, value=spelled(log.precedent, first, items))
