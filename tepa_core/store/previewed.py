"""A decision before it is taken: the key's life with it and without, and what else it would change."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from tepa_core.decisions import (
    NO_HASH,
    Action,
    Category,
    Decision,
    DecisionRefused,
    LogEffect,
    Standing,
    in_effect,
    log_effect,
    microseconds,
)
from tepa_core.experiment import Effect, Override, Progress, RunSpec, decision_effect, replay_seed
from tepa_core.lifecycle import Verdict
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.derive import evidence_rows, places_in_stream, places_of_key
from tepa_core.store.ledger import decisions_of
from tepa_core.store.lives import KeyLife, UnknownPrecedentError, key_life, life_of

#: Who takes a decision that nobody has taken yet, on the flag of the figure.
NOBODY = "?"


@dataclass(frozen=True, slots=True)
class Preview:
    """What one decision would change.

    Attributes
    ----------
    before, after
        The life of the precedent's key as it is, and with the decision.
    at
        From when on the decision applies here, in the run's clock.
    effect
        The numbers: of the agent in a simulation, of the key in a log.
    """

    before: KeyLife
    after: KeyLife
    at: int | pd.Timestamp
    effect: Effect | LogEffect


def preview(
    store: Store,
    run_id: str,
    precedent_id: str,
    action: Action,
    *,
    pinned: bool = False,
    at: int | None = None,
    every_seed: bool = False,
    progress: Progress | None = None,
) -> Preview:
    """Say what a decision would change, beside the decisions that are in effect already. Nothing is written.

    Parameters
    ----------
    action, pinned
        What would be decided; no undo.
    at
        From when on, in the stored clock (task, or microseconds since 1970 UTC); right after the precedent's last
        revocation when left out, in a log too: at its end a decision would have nothing left to change.
    every_seed
        In a simulation: the same in every seed at the matching revocation.
    progress
        Called while other seeds play.

    Raises
    ------
    UnknownRunError, UnknownPrecedentError
        If there is no such run or precedent.
    DecisionRefused
        If the precedent is not in the archive at that moment, or the run cannot be decided on; it says why.
    """
    info = queries.run_info(store, run_id)
    where = queries.place_of(store, run_id, precedent_id)
    if where is None:
        raise UnknownPrecedentError(
            f"run {run_id} has no precedent {precedent_id}; the command 'precedents' lists its ids"
        )
    if info.stream == "facts":
        raise DecisionRefused("A fact run states each fact once and is not replayed; nothing in it can be decided on.")
    method, seed, subject, key_id = where
    before = key_life(store, run_id, key_id, method=method, seed=seed, subject=subject)
    if at is None:
        steps = before.transitions[before.transitions["id"] == precedent_id]
        falls = steps.loc[(steps["from_state"] == "active") & (steps["to_state"] == "revoked"), "x"]
        if falls.empty:
            raise DecisionRefused("It was never revoked, so there is nothing to decide on.")
        at = microseconds(falls.iloc[-1])
    try:
        if info.is_log:
            return _of_log(store, before, _Imagined(precedent_id, action, pinned, at))
        return _of_simulation(store, before, _Imagined(precedent_id, action, pinned, at), every_seed, progress)
    except ValueError as error:
        # What the replays say of a moment at which the precedent is not in the archive.
        raise DecisionRefused(f"{str(error)[0].upper()}{str(error)[1:]}.") from None


@dataclass(frozen=True, slots=True)
class _Imagined:
    """A decision that nobody has taken yet."""

    precedent_id: str
    action: Action
    pinned: bool
    at: int

    def decision(self, run_id: str, standing: Sequence[Decision]) -> Decision:
        """Return it as the next row of the ledger would be, but for who, why and the chain."""
        return Decision(
            number=max((one.number for one in standing), default=0) + 1,
            decision_id="",
            run_id=run_id,
            precedent_id=self.precedent_id,
            action=self.action,
            pinned=self.pinned,
            category=Category.OTHER,
            reason="not saved yet",
            reviewer=NOBODY,
            authenticated=False,
            decided_at=dt.datetime.now(dt.UTC),
            effective_at=self.at,
            version="",
            effect="",
            undoes=None,
            reason_salt=None,
            reason_digest="",
            previous_hash=NO_HASH,
            hash="",
        )


def _of_log(store: Store, before: KeyLife, imagined: _Imagined) -> Preview:
    info = before.info
    with store.read() as cursor:
        places = places_of_key(cursor, info.run_id, "", 0, before.subject, before.key_id)
    standing = [one for one in in_effect(decisions_of(store, info.run_id)) if one.precedent_id in places]
    decision = imagined.decision(info.run_id, standing)
    items = queries.evidence_of_key(store, info.run_id, "", 0, before.subject, before.key_id)
    effect = log_effect(
        queries.in_clock(items.assign(event_time=items["occurred"]), ("event_time",), True),
        before.thresholds,
        places[imagined.precedent_id].value_id,
        _verdict(decision),
        imagined.at,
        [Standing(one.effective_at, places[one.precedent_id].value_id, _verdict(one)) for one in standing],
    )
    after = life_of(info, places, items, [*standing, decision], None, before.phases)
    return Preview(before, after, effect.at, effect)


def _of_simulation(
    store: Store, before: KeyLife, imagined: _Imagined, every_seed: bool, progress: Progress | None
) -> Preview:
    info, spec = before.info, RunSpec.from_dict(before.info.spec)
    method, seed = before.method, before.seed
    lane = places_in_stream(spec, method, seed)
    standing = [one for one in in_effect(decisions_of(store, info.run_id)) if one.precedent_id in lane]
    decision = imagined.decision(info.run_id, standing)
    stream = spec.stream_spec.make(seed)
    of = lane[imagined.precedent_id]
    effect = decision_effect(
        spec,
        method,
        seed,
        of.key,
        of.value,
        _verdict(decision),
        imagined.at,
        standing=[
            Override(one.effective_at, stream.keys.index(at.key), stream.values.index(at.value), _verdict(one))
            for one in standing
            for at in (lane[one.precedent_id],)
        ],
        every_seed=every_seed,
        progress=progress,
    )
    decided = [*standing, decision]
    played = replay_seed(
        spec,
        method,
        seed,
        [
            (one.effective_at, lane[one.precedent_id].key, lane[one.precedent_id].value, _verdict(one))
            for one in decided
        ],
    )
    evidence = evidence_rows(played.evidence)
    evidence = evidence[evidence["key_id"] == before.key_id].reset_index(drop=True)
    texts = {name: evidence[name].astype(str) for name in ("key", "key_id", "value", "value_id", "phase")}
    evidence = evidence.drop(columns=["method", "seed"]).assign(actor=None, source_ref=None, source_row=None, **texts)
    places = {name: place for name, place in lane.items() if place.key_id == before.key_id}
    episodes = played.episodes[played.episodes["key"] == before.key]
    episodes = episodes.assign(action=episodes["action"].astype(str))
    own = [one for one in decided if one.precedent_id in places]
    after = life_of(info, places, evidence, own, episodes.reset_index(drop=True), before.phases)
    return Preview(before, after, imagined.at, effect)


def _verdict(decision: Decision) -> Verdict:
    verdict = decision.verdict
    if verdict is None:
        raise DecisionRefused("An undo has no preview: it gives back the state before the decision that it undoes.")
    return verdict
