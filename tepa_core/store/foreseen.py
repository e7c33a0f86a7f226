"""What a decision is going to change, in numbers, to be kept with it and held against what came of it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from tepa_core.decisions import Action, Decision, DecisionRefused, Standing, in_effect, log_effect, microseconds
from tepa_core.experiment import Override, RunSpec, decision_effect
from tepa_core.methods import thresholds_of
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.decide import DecisionRequest, examine, to_undo
from tepa_core.store.derive import Place, places_in_stream, places_of_key
from tepa_core.store.ledger import decisions_of
from tepa_core.store.previewed import preview


def foreseen(store: Store, request: DecisionRequest, *, every_seed: bool = False) -> dict[str, Any]:
    """Return the effect of a decision as JSON-ready numbers; nothing is written.

    For a log without ``at`` it is what the decision would have changed right after the revocation.

    Parameters
    ----------
    every_seed
        In a simulation also the effect of the same decision in every seed.

    Returns
    -------
    dict
        As `tepa_core.experiment.Effect` or `tepa_core.decisions.LogEffect` write themselves. Of an undo the same the
        other way round; empty where what is undone moved nothing.

    Raises
    ------
    DecisionRefused, StaleVersion, UnknownRunError, UnknownPrecedentError
        If the decision could not be taken.
    """
    examine(store, request)
    if request.action is not Action.UNDO:
        found = preview(
            store,
            request.run_id,
            request.precedent_id,
            request.action,
            pinned=request.pinned,
            at=request.at,
            every_seed=every_seed,
        )
        return found.effect.as_dict()
    ledger = decisions_of(store, request.run_id)
    undone = to_undo(request, ledger)
    rest = [decision for decision in in_effect(ledger) if decision.decision_id != undone.decision_id]
    try:
        return _turned(_of_decision(store, undone, rest))
    except ValueError:
        # Among the decisions that remain it was on nothing archived, so it moved nothing.
        return {}


def effect_now(store: Store, run_id: str, decision_id: str) -> dict[str, Any]:
    """Return what a decision of the ledger changes as things stand now, to be held against what was foreseen.

    It is replayed beside the other decisions in effect, from the same moment as the numbers that were kept with it.

    Returns
    -------
    dict
        As `foreseen`; empty for an undo, and where beside the others it moves nothing.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    DecisionRefused
        If it has no such decision.
    """
    ledger = decisions_of(store, run_id)
    found = [decision for decision in ledger if decision.decision_id == decision_id]
    if not found:
        raise DecisionRefused(f"run {run_id} has no decision {decision_id}; see its ledger")
    rest = [decision for decision in in_effect(ledger) if decision.decision_id != decision_id]
    kept = json.loads(found[0].effect)
    # In a log a decision without a time was foreseen from the revocation on.
    at = microseconds(kept["at"]) if isinstance(kept.get("at"), str) else found[0].effective_at
    try:
        return _of_decision(store, dataclasses.replace(found[0], effective_at=at), rest)
    except ValueError:
        return {}


def _of_decision(store: Store, decision: Decision, standing: Sequence[Decision]) -> dict[str, Any]:
    """Return the effect of a decision beside others."""
    info = queries.run_info(store, decision.run_id)
    where = queries.place_of(store, decision.run_id, decision.precedent_id)
    if where is None or decision.verdict is None:
        return {}
    method, seed, subject, key_id = where
    at = decision.effective_at
    if not info.is_log:
        spec = RunSpec.from_dict(info.spec)
        stream, lane = spec.stream_spec.make(seed), places_in_stream(spec, method, seed)

        def override(one: Decision, place: Place) -> Override | None:
            index = stream.keys.index(place.key), stream.values.index(place.value)
            return None if one.verdict is None else Override(one.effective_at, *index, one.verdict)

        found = (override(one, lane[one.precedent_id]) for one in standing if one.precedent_id in lane)
        others = [one for one in found if one is not None]
        place = lane[decision.precedent_id]
        effect = decision_effect(spec, method, seed, place.key, place.value, decision.verdict, at, standing=others)
        return effect.as_dict()
    with store.read() as cursor:
        places = places_of_key(cursor, info.run_id, method, seed, subject, key_id)
    items = queries.evidence_of_key(store, info.run_id, method, seed, subject, key_id)
    return log_effect(
        queries.in_clock(items.assign(event_time=items["occurred"]), ("event_time",), True),
        thresholds_of(method, info.thresholds),
        places[decision.precedent_id].value_id,
        decision.verdict,
        at,
        [
            Standing(one.effective_at, places[one.precedent_id].value_id, one.verdict)
            for one in standing
            if one.precedent_id in places and one.verdict is not None
        ],
    ).as_dict()


def _turned(effect: dict[str, Any]) -> dict[str, Any]:
    """Return an effect the other way round: before for after, and differences with the other sign."""
    turned: dict[str, Any] = {}
    for name, value in effect.items():
        if name == "stands_until":
            # Of a decision that is taken back nothing stands.
            continue
        if isinstance(value, dict):
            turned[name] = _turned(value)
        elif name in ("before", "after"):
            turned["after" if name == "before" else "before"] = value
        elif name == "difference" and value is not None:
            turned[name] = -value
        else:
            turned[name] = value
    return turned
