"""Writing a decision: who may, on what version, whether it is legal, and everything that follows from it.

All of it happens in one transaction: the row, the head of the ledger and the lives that the decision changes are there
together or not at all.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from tepa_core import __version__
from tepa_core.decisions import (
    Action,
    Actor,
    Category,
    Decision,
    DecisionRefused,
    StaleVersion,
    in_effect,
    linked,
    redacted,
)
from tepa_core.experiment import RunSpec
from tepa_core.lifecycle import State, Thresholds, encode, replay
from tepa_core.methods import thresholds_of
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.derive import (
    Place,
    decided_rows,
    derive,
    forget_key,
    places_of_key,
    replay_lane,
    with_decisions,
)
from tepa_core.store.ledger import append, read_decisions, read_head
from tepa_core.store.lives import UnknownPrecedentError, in_words_at
from tepa_core.store.queries import RunInfo

#: Longest reason and name, in characters: a reason is a few sentences, not a file.
MAX_REASON = 4000
MAX_NAME = 200

_VERSION = re.compile(r"(?P<digest>[0-9a-f]{12})-(?P<items>\d+)-(?P<newest>\d+)(?:-(?P<thresholds>.+))?")
_DONE = {
    Action.REACTIVATE: "reactivated",
    Action.CONFIRM: "confirmed the revocation of",
    Action.BOTH_VALID: "declared valid beside others",
    Action.UNDO: "undid a decision on",
}


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What somebody wants to decide.

    Attributes
    ----------
    run_id, precedent_id
        What it is about.
    action, pinned, category, reason
        What and why; see `tepa_core.decisions.Decision`.
    at
        From when on, in the run's clock (task, or microseconds since 1970 UTC). Left out: in a simulation the
        precedent's last revocation, in a log its end.
    expect_version
        The version that was looked at; the decision is refused when it is no longer the version. Left out: any.
    request_id
        Names this request: asked twice, it is one decision.
    effect
        What the decision was going to change, as JSON-ready data; kept with it.
    undoes
        The decision that an undo takes back; the last one in effect on the precedent when left out.
    """

    run_id: str
    precedent_id: str
    action: Action
    category: Category
    reason: str
    pinned: bool = False
    at: int | None = None
    expect_version: str | None = None
    request_id: str | None = None
    effect: Mapping[str, Any] | None = None
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """What a person sees of a precedent when deciding; any change of it makes another version.

    Attributes
    ----------
    run_id
        Of the run: the same memory of another run is another one.
    precedents
        Of the key: id, value, state and the counts that judge it.
    items, last_seq
        Evidence items of the key, and the number of the last one.
    in_effect
        Ids of the decisions in effect on the key.
    newest
        Number of the newest ledger row on the key, 0 when there is none.
    thresholds
        Of the run.
    """

    run_id: str
    precedents: tuple[tuple[str, str, str, int, int, int, int], ...]
    items: int
    last_seq: int
    in_effect: tuple[str, ...]
    newest: int
    thresholds: Thresholds

    @property
    def version(self) -> str:
        """Short text that changes with any of the facts: a digest, then what a refusal needs to say what changed.

        The first letters of the digest are those of the run, so that a refusal can say that another one was meant.
        """
        content = json.dumps(dataclasses.asdict(self), sort_keys=True)
        digest = self.run_mark + hashlib.sha256(content.encode()).hexdigest()[: 12 - len(self.run_mark)]
        default = dataclasses.asdict(Thresholds())
        differs = [
            f"{name}:{value}" for name, value in dataclasses.asdict(self.thresholds).items() if value != default[name]
        ]
        return "-".join([digest, str(self.items), str(self.newest), *([",".join(differs)] if differs else [])])

    @property
    def run_mark(self) -> str:
        """The letters of the version that stand for the run."""
        return hashlib.sha256(self.run_id.encode()).hexdigest()[:4]


def version_facts(
    cursor: duckdb.DuckDBPyConnection, info: RunInfo, place: Place, ledger: Sequence[Decision]
) -> VersionFacts:
    """Collect the facts of the version of one key, with the cursor of a transaction; ``ledger`` is that of the run."""
    key = [info.run_id, place.method, place.seed, place.subject, place.key_id]
    precedents = cursor.execute(
        "SELECT precedent_id, value, state, support, conflict, trial_support, trial_conflict FROM precedent "
        "WHERE run_id = ? AND method = ? AND seed = ? AND subject = ? AND key_id = ? ORDER BY precedent_id",
        key,
    ).fetchall()
    row = cursor.execute(
        "SELECT count(*), max(seq) FROM evidence "
        "WHERE run_id = ? AND method = ? AND seed = ? AND subject = ? AND key_id = ?",
        key,
    ).fetchone()
    here = {one[0] for one in precedents}
    decisions = [one for one in ledger if one.precedent_id in here]
    return VersionFacts(
        info.run_id,
        tuple(tuple(one) for one in precedents),
        int(row[0]) if row else 0,
        int(row[1]) if row and row[1] is not None else -1,
        tuple(one.decision_id for one in in_effect(decisions)),
        max((one.number for one in decisions), default=0),
        info.thresholds,
    )


def precedent_version(store: Store, run_id: str, precedent_id: str) -> str:
    """Return the version of a precedent, to be sent with a decision as what was looked at.

    Raises
    ------
    UnknownRunError, UnknownPrecedentError
        If there is no such run or precedent.
    """
    info = queries.run_info(store, run_id)
    with store.read() as cursor:
        cursor.begin()
        place = _place(cursor, run_id, precedent_id)
        facts = version_facts(cursor, info, place, read_decisions(cursor, run_id))
        cursor.rollback()
    return facts.version


@dataclass(frozen=True, slots=True)
class Examined:
    """A decision that could be taken.

    Attributes
    ----------
    version
        Of the precedent.
    effective_at
        From when on the decision would apply, in the run's clock.
    undoes
        ``decision_id`` of what an undo would take back.
    """

    version: str
    effective_at: int
    undoes: str | None


def examine(store: Store, request: DecisionRequest) -> Examined:
    """Say whether a decision could be taken, as `record` would; nothing is written.

    Raises
    ------
    StaleVersion, DecisionRefused, UnknownRunError, UnknownPrecedentError
        As `record`.
    """
    _check_words(request)
    info = queries.run_info(store, request.run_id)
    _check_run(info)
    with store.read() as cursor:
        cursor.begin()
        try:
            place = _place(cursor, info.run_id, request.precedent_id)
            return _examined(cursor, info, place, request, read_decisions(cursor, info.run_id))
        finally:
            cursor.rollback()


def record(store: Store, request: DecisionRequest) -> Decision:
    """Take a decision: append it to the ledger and make everything anew that follows from it.

    In a log the key's evidence is replayed with the decisions in effect. In a simulation the agent plays its seed again
    and acts on them, so every figure of the run changes with it.

    Returns
    -------
    Decision
        As written; the one written before when the same ``request_id`` asks again.

    Raises
    ------
    PermissionRefused
        If whoever acts may not write.
    StaleVersion
        If the precedent is no longer as it was looked at; it says what changed.
    DecisionRefused
        If the decision is not possible; it says why. In each of these cases nothing is written.
    UnknownRunError, UnknownPrecedentError
        If there is no such run or precedent.
    """
    actor = _reviewer(store)
    _check_words(request)
    with store.write() as cursor:
        info = queries.run_info(store, request.run_id)
        _check_run(info)
        ledger = read_decisions(cursor, info.run_id)
        decision_id = _decision_id(info.run_id, request.request_id or secrets.token_hex(16))
        for earlier in ledger:
            if earlier.decision_id == decision_id:
                return _same(earlier, request)
        place = _place(cursor, info.run_id, request.precedent_id)
        found = _examined(cursor, info, place, request, ledger)
        decision = linked(
            Decision(
                number=0,
                decision_id=decision_id,
                run_id=info.run_id,
                precedent_id=request.precedent_id,
                action=request.action,
                pinned=request.pinned,
                category=request.category,
                reason=request.reason.strip(),
                reviewer=actor.name.strip(),
                authenticated=actor.authenticated,
                decided_at=dt.datetime.now(dt.UTC),
                effective_at=found.effective_at,
                version=found.version,
                effect=json.dumps(request.effect or {}, sort_keys=True, ensure_ascii=False),
                undoes=found.undoes,
                reason_salt=secrets.token_hex(16),
                reason_digest="",
                previous_hash="",
                hash="",
            ),
            read_head(cursor, info.run_id),
        )
        append(cursor, decision)
        standing = in_effect([*ledger, decision])
        if info.is_log:
            _replay_key(cursor, info, place, standing)
        else:
            replay_lane(cursor, RunSpec.from_dict(info.spec), info.run_id, place.method, place.seed, standing)
    return decision


def redact_reason(store: Store, run_id: str, number: int) -> Decision:
    """Remove the words of a decision for good; the chain still holds, and verification says that they are gone.

    Raises
    ------
    PermissionRefused
        If whoever acts may not write.
    DecisionRefused
        If there is no such decision.
    UnknownRunError
        If there is no such run.
    """
    _reviewer(store)
    queries.run_info(store, run_id)
    with store.write() as cursor:
        found = [decision for decision in read_decisions(cursor, run_id) if decision.number == number]
        if not found:
            raise DecisionRefused(f"run {run_id} has no decision {number}, so nothing was redacted; see its ledger")
        cursor.execute(
            "UPDATE decision SET reason = NULL, reason_salt = NULL WHERE run_id = ? AND number = ?", [run_id, number]
        )
    return redacted(found[0])


def _reviewer(store: Store) -> Actor:
    actor = store.permit()
    if not actor.name.strip() or len(actor.name) > MAX_NAME:
        raise DecisionRefused(f"A decision needs the name of a reviewer, of at most {MAX_NAME} letters; type yours.")
    return actor


def _check_words(request: DecisionRequest) -> None:
    if not request.reason.strip():
        raise DecisionRefused("A decision needs a reason; say in a few words why.")
    if len(request.reason) > MAX_REASON:
        raise DecisionRefused(f"The reason has {len(request.reason):,} characters; keep it under {MAX_REASON:,}.")
    if request.pinned and request.action is not Action.REACTIVATE:
        raise DecisionRefused("Only a reactivation can be pinned; leave the pin out.")
    if request.action is Action.CONFIRM and request.category is Category.WRONG_REVOCATION:
        raise DecisionRefused("A revocation that is confirmed was not wrong; choose another category or reactivate.")
    if request.undoes is not None and request.action is not Action.UNDO:
        raise DecisionRefused("Only an undo names a decision that it takes back.")


def _check_run(info: RunInfo) -> None:
    if info.is_facts:
        raise DecisionRefused(
            f"{info.run_id} is a fact run, which states each fact once and cannot be played on; "
            "decide on a precedent of a log or of a drift stream."
        )
    if not info.is_log and info.program != __version__:
        raise DecisionRefused(
            f"{info.run_id} was played by version {info.program} of the program and cannot be replayed by version "
            f"{__version__}; run it again, then decide."
        )


def _decision_id(run_id: str, request_id: str) -> str:
    return "d" + hashlib.blake2b(f"{run_id}\x1f{request_id}".encode(), digest_size=8).hexdigest()


def _same(earlier: Decision, request: DecisionRequest) -> Decision:
    asked = (request.precedent_id, request.action, request.pinned)
    if (earlier.precedent_id, earlier.action, earlier.pinned) != asked:
        raise DecisionRefused("This request was already used for another decision; start a new one.")
    return earlier


def _place(cursor: duckdb.DuckDBPyConnection, run_id: str, precedent_id: str) -> Place:
    row = cursor.execute(
        "SELECT method, seed, subject, key, key_id, value, value_id FROM precedent "
        "WHERE run_id = ? AND precedent_id = ?",
        [run_id, precedent_id],
    ).fetchone()
    if row is None:
        raise UnknownPrecedentError(
            f"run {run_id} has no precedent {precedent_id}; the command 'precedents' lists its ids"
        )
    return Place(*row)


def _examined(
    cursor: duckdb.DuckDBPyConnection,
    info: RunInfo,
    place: Place,
    request: DecisionRequest,
    ledger: Sequence[Decision],
) -> Examined:
    facts = version_facts(cursor, info, place, ledger)
    version = facts.version
    if request.expect_version is not None and request.expect_version != version:
        raise StaleVersion(_changes(request.expect_version, facts, ledger, request.precedent_id))
    return Examined(version, *_legal(cursor, info, place, request, ledger))


def _legal(
    cursor: duckdb.DuckDBPyConnection,
    info: RunInfo,
    place: Place,
    request: DecisionRequest,
    ledger: Sequence[Decision],
) -> tuple[int, str | None]:
    """Return from when on the decision applies and what it undoes.

    Raises
    ------
    DecisionRefused
        If it is not possible.
    """
    if request.action is Action.UNDO:
        undone = to_undo(request, ledger)
        return undone.effective_at, undone.decision_id
    if request.at is None:
        at = _last_revocation(cursor, info, place, request.precedent_id)
    else:
        at = int(request.at)
        first, last = _span(cursor, info, place)
        if not first <= at <= last:
            span = f"{_moment(first, info)} to {_moment(last, info)}"
            raise DecisionRefused(f"The decision lies outside the run: choose a time from {span}.")
    state = _state_at(cursor, info, place, in_effect(ledger), at)
    if state is not State.REVOKED:
        stands = "not known yet" if state is None else state.label
        raise DecisionRefused(
            f"{place.value} is {stands} {in_words_at(_clock(at, info), info.is_log)}; "
            "only what is revoked at that time can be decided on. Choose a time at which it is in the archive."
        )
    return at, None


def to_undo(request: DecisionRequest, ledger: Sequence[Decision]) -> Decision:
    """Return the decision that an undo takes back.

    Raises
    ------
    DecisionRefused
        If there is none, or it is an undo or undone itself.
    """
    standing = in_effect(ledger)
    if request.undoes is None:
        own = [one for one in standing if one.precedent_id == request.precedent_id]
        if not own:
            raise DecisionRefused("No decision is in effect on this precedent, so there is nothing to undo.")
        return own[-1]
    named = [one for one in ledger if one.decision_id == request.undoes and one.precedent_id == request.precedent_id]
    if not named:
        raise DecisionRefused(f"There is no decision {request.undoes} on this precedent; see the ledger for their ids.")
    if named[0].action is Action.UNDO:
        raise DecisionRefused("An undo cannot be undone; decide anew.")
    if named[0] not in standing:
        raise DecisionRefused(f"Decision {named[0].number} has been undone already; decide anew.")
    return named[0]


def _last_revocation(cursor: duckdb.DuckDBPyConnection, info: RunInfo, place: Place, precedent_id: str) -> int:
    """From when on a decision applies that names no time."""
    row = cursor.execute(
        "SELECT max(occurred) FROM transition "
        "WHERE run_id = ? AND precedent_id = ? AND from_state = 'active' AND to_state = 'revoked'",
        [info.run_id, precedent_id],
    ).fetchone()
    if row is None or row[0] is None:
        raise DecisionRefused(
            f"{place.value} was never revoked, so there is nothing to decide on; the archive lists what was."
        )
    return _span(cursor, info, place)[1] if info.is_log else int(row[0])


def _span(cursor: duckdb.DuckDBPyConnection, info: RunInfo, place: Place) -> tuple[int, int]:
    """First and last moment of the run, or of the lane of a simulation."""
    row = cursor.execute(
        "SELECT min(occurred), max(occurred) FROM evidence WHERE run_id = ? AND method = ? AND seed = ?",
        [info.run_id, place.method, place.seed],
    ).fetchone()
    if row is None or row[0] is None:
        raise DecisionRefused(f"run {info.run_id} has no evidence on {place.key}.")
    return int(row[0]), int(row[1])


def evidence_of(cursor: duckdb.DuckDBPyConnection, run_id: str, place: Place) -> pd.DataFrame:
    """Return the evidence of a precedent's key, with the cursor of a transaction."""
    return cursor.execute(
        "SELECT method, seed, seq, occurred, subject, key, key_id, value, value_id, supports, admitted FROM evidence "
        "WHERE run_id = ? AND method = ? AND seed = ? AND subject = ? AND key_id = ? ORDER BY seq",
        [run_id, place.method, place.seed, place.subject, place.key_id],
    ).df()


def _places(cursor: duckdb.DuckDBPyConnection, run_id: str, place: Place) -> dict[str, Place]:
    return places_of_key(cursor, run_id, place.method, place.seed, place.subject, place.key_id)


def _state_at(
    cursor: duckdb.DuckDBPyConnection, info: RunInfo, place: Place, standing: Sequence[Decision], at: int
) -> State | None:
    """State of a precedent after the evidence and the decisions up to a time; None before its first evidence."""
    decided = decided_rows(standing, _places(cursor, info.run_id, place))
    items = with_decisions(evidence_of(cursor, info.run_id, place), decided)
    upto = items[items["occurred"] <= at]
    own = upto[(upto["verdict"] == 0) & (upto["value_id"] == place.value_id)]
    if own.empty:
        return None
    log, labels = encode(upto, time="occurred")
    replayed = replay(log, thresholds_of(place.method, info.thresholds))
    value = int(np.flatnonzero(labels["value_id"].to_numpy(object) == place.value_id)[0])
    return State(int(replayed.precedents["state"][value]))


def _replay_key(cursor: duckdb.DuckDBPyConnection, info: RunInfo, place: Place, standing: Sequence[Decision]) -> None:
    """Make the derived rows of one key of a log anew."""
    decided = decided_rows(standing, _places(cursor, info.run_id, place))
    evidence = evidence_of(cursor, info.run_id, place)
    forget_key(cursor, info.run_id, place.method, place.seed, place.subject, place.key_id)
    derive(cursor, info.run_id, evidence, info.thresholds, decided)


def _clock(at: int, info: RunInfo) -> Any:
    return pd.Timestamp(at, unit="us", tz="UTC") if info.is_log else at


def _moment(at: int, info: RunInfo) -> str:
    moment = _clock(at, info)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}" if info.is_log else f"task {moment}"


def _changes(expected: str, facts: VersionFacts, ledger: Sequence[Decision], precedent_id: str) -> list[str]:
    """Say what changed between the version somebody looked at and the facts now."""
    known = _VERSION.fullmatch(expected)
    if known is None:
        raise DecisionRefused(f"{expected!r} is no version of a precedent; take it from a preview of the decision.")
    if not known["digest"].startswith(facts.run_mark):
        raise DecisionRefused(
            f"What was looked at belongs to another run than {facts.run_id}, so nothing was saved there; open the "
            "memory in the run that is meant and look again."
        )
    names = {one[0]: one[1] for one in facts.precedents}
    sentences = [
        f"{one.by} {_DONE[one.action]} "
        f"{'it' if one.precedent_id == precedent_id else repr(names[one.precedent_id])} "
        f"at {one.decided_at:%H:%M} UTC on {one.decided_at.day} {one.decided_at:%B %Y}."
        for one in ledger
        if one.number > int(known["newest"]) and one.precedent_id in names
    ]
    more = facts.items - int(known["items"])
    if more:
        what = f"{abs(more)} evidence item{'' if abs(more) == 1 else 's'}"
        sentences.append(f"{what} {'arrived on the key' if more > 0 else 'of the key went'}.")
    sentences += _threshold_changes(known["thresholds"] or "", facts.thresholds)
    if not sentences:
        states = ", ".join(f"{one[1]} is {one[2]} with {one[3]} for and {one[4]} against" for one in facts.precedents)
        sentences.append(f"The evidence of the key or what follows from it has changed: {states}.")
    return sentences


def _threshold_changes(differs: str, now: Thresholds) -> list[str]:
    before = {**{name: str(value) for name, value in dataclasses.asdict(Thresholds()).items()}}
    before |= dict(part.partition(":")[::2] for part in differs.split(",") if ":" in part)
    return [
        f"{name} was {before[name]}, is {value}."
        for name, value in dataclasses.asdict(now).items()
        if str(value) != before[name]
    ]
