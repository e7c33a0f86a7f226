"""The ledger of a run: its decisions, whether their chain holds, and what they say about the rules that revoke."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pandas as pd

from tepa_core.decisions import (
    EMPTY,
    Action,
    Category,
    Claim,
    Decision,
    Head,
    begins_with,
    claim_of,
    in_effect,
    redactions,
    returned,
    times_going_back,
    utc,
    verify,
)
from tepa_core.lifecycle import Verdict
from tepa_core.stats import wilson_interval
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.events import read_claim, read_events

_FIELDS = (
    "number",
    "decision_id",
    "run_id",
    "precedent_id",
    "action",
    "pinned",
    "category",
    "reason",
    "reviewer",
    "authenticated",
    "decided_at",
    "effective_at",
    "version",
    "effect",
    "undoes",
    "reason_salt",
    "reason_digest",
    "previous_hash",
    "hash",
)


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """Whether a ledger is as it was written.

    Attributes
    ----------
    problems
        What is wrong, one sentence each.
    redacted
        Which reasons were redacted, one sentence each; that is no problem.
    head
        Count and hash of the last decision as kept apart; `tepa_core.store.heads` signs them, so that a ledger that is
        rewritten, head included, can be told.
    times
        Times that cannot be true, one sentence each; clocks are set back, so that alone is no change.
    claim
        Where the first decisions come from, when the run was imported.
    deleted
        What became of the run here before: each deletion, and how the ledger stands to the one that went with it.
    """

    problems: tuple[str, ...]
    redacted: tuple[str, ...]
    head: Head
    times: tuple[str, ...] = ()
    # How it came here is no part of the ledger: the same one elsewhere is equal.
    claim: Claim | None = field(default=None, compare=False)
    deleted: tuple[str, ...] = field(default=(), compare=False)

    @property
    def ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems

    @property
    def remarks(self) -> tuple[str, ...]:
        """Say what is no problem of the chain: whose word the decisions are, what was deleted, which times go back."""
        claim = self.claim
        claimed: tuple[str, ...] = ()
        if claim is not None and claim.decisions:
            joined = "and" if claim.decisions == 2 else "to"
            which = "Decision 1 is" if claim.decisions == 1 else f"Decisions 1 {joined} {claim.decisions:,} are"
            claimed = (f"{which} {claim.in_words()}. Nobody here vouches for who took them.",)
        return (*claimed, *self.deleted, *self.times)


def read_decisions(cursor: duckdb.DuckDBPyConnection, run_id: str) -> tuple[Decision, ...]:
    """Read the decisions of a run in order of their numbers, with the cursor of a transaction.

    Those that came with an imported file carry its claim.
    """
    claim = read_claim(cursor, run_id)
    rows = cursor.execute(
        f"SELECT {', '.join(_FIELDS)} FROM decision WHERE run_id = ? ORDER BY number, rowid",  # noqa: S608 - constants
        [run_id],
    ).fetchall()
    return tuple(_decision(claim, *row) for row in rows)


def _decision(claim: Claim | None, *row: Any) -> Decision:
    content = dict(zip(_FIELDS, row, strict=True))
    content["action"], content["category"] = Action(content["action"]), Category(content["category"])
    content["decided_at"] = content["decided_at"].astimezone(dt.UTC)
    return Decision(**content, claim=claim if claim and content["number"] <= claim.decisions else None)


def read_head(cursor: duckdb.DuckDBPyConnection, run_id: str) -> Head:
    """Read the head of a run's ledger."""
    row = cursor.execute("SELECT decisions, hash FROM ledger_head WHERE run_id = ?", [run_id]).fetchone()
    return EMPTY if row is None else Head(int(row[0]), str(row[1]))


def append(cursor: duckdb.DuckDBPyConnection, decision: Decision) -> None:
    """Write one decision as the last row of its run's ledger."""
    row = decision.as_dict() | {"decided_at": decision.decided_at}
    marks = ", ".join("?" * len(_FIELDS))
    cursor.execute(
        f"INSERT INTO decision ({', '.join(_FIELDS)}) VALUES ({marks})",  # noqa: S608 - constants
        [row[name] for name in _FIELDS],
    )
    set_head(cursor, decision.run_id, Head(decision.number, decision.hash))


def set_head(cursor: duckdb.DuckDBPyConnection, run_id: str, head: Head) -> None:
    """Keep the head of a run's ledger."""
    cursor.execute(
        "INSERT INTO ledger_head VALUES (?, ?, ?) "
        "ON CONFLICT (run_id) DO UPDATE SET decisions = excluded.decisions, hash = excluded.hash",
        [run_id, head.count, head.hash],
    )


def decisions_of(store: Store, run_id: str) -> tuple[Decision, ...]:
    """Return the decisions of a run in the order in which they were taken, undone ones too.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    """
    queries.run_info(store, run_id)
    with store.read() as cursor:
        return read_decisions(cursor, run_id)


def verify_ledger(store: Store, run_id: str) -> LedgerCheck:
    """Check a run's ledger against its chain and its head.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    """
    queries.run_info(store, run_id)
    with store.read() as cursor:
        # One snapshot: a decision that is being written must not stand in one and be missing in the other.
        cursor.begin()
        decisions, head = read_decisions(cursor, run_id), read_head(cursor, run_id)
        events = read_events(cursor, run_id)
        cursor.rollback()
    claim = claim_of(events[-1] if events else None)
    problems = verify(decisions, head)
    if claim is not None and not begins_with(decisions, Head(claim.decisions, claim.head_hash)):
        problems += (
            f"The ledger does not begin with what was imported: it was changed after {utc(claim.imported_at)}.",
        )
    return LedgerCheck(
        problems,
        redactions(decisions),
        head,
        times_going_back(decisions, dt.datetime.now(dt.UTC)),
        claim,
        returned(events, decisions),
    )


def reasserted(store: Store, run_id: str) -> pd.DataFrame:
    """Precedents that evidence asserted again after a person had confirmed their revocation: to be looked at again.

    A later decision on the precedent takes it off this list.

    Returns
    -------
    pandas.DataFrame
        ``id``, ``transition_id`` (the last re-assertion), ``method``, ``seed``, ``subject``, ``key``, ``key_id``,
        ``value``, ``reasserted_at`` (in the run's clock), ``times`` (re-assertions since the decision), and of the
        decision that confirmed it ``decision_id``, ``number``, ``reviewer``, ``by`` (the same for lists and sentences,
        see `Decision.by`), ``decided_at``, ``category``, ``reason``.
    """
    info = queries.run_info(store, run_id)
    with store.read() as cursor:
        decisions = in_effect(read_decisions(cursor, run_id))
        found = cursor.execute(
            """
            SELECT precedent_id AS id, transition_id, method, seed, subject, key, key_id, value,
                   occurred AS reasserted_at
            FROM transition t JOIN precedent p USING (run_id, precedent_id)
            WHERE run_id = ? AND t.rule = 'reasserted' ORDER BY occurred, t.seq, number
            """,
            [run_id],
        ).df()
    latest: dict[str, Decision] = {}
    for decision in sorted(decisions, key=lambda one: (one.effective_at, one.number)):
        latest[decision.precedent_id] = decision
    rows = []
    for id_, of_one in found.groupby("id", sort=False):
        # None when its row was taken out of the ledger, which verification tells.
        last = latest.get(str(id_))
        if last is None or last.action is not Action.CONFIRM:
            continue
        # It takes effect after the evidence of its time.
        since = of_one[of_one["reasserted_at"] > last.effective_at]
        if len(since):
            rows.append(
                since.iloc[-1].to_dict()
                | {
                    "times": len(since),
                    "decision_id": last.decision_id,
                    "number": last.number,
                    "reviewer": last.reviewer,
                    "by": last.by,
                    "decided_at": pd.Timestamp(last.decided_at),
                    "category": str(last.category),
                    "reason": last.reason,
                }
            )
    of_decision = ["times", "decision_id", "number", "reviewer", "by", "decided_at", "category", "reason"]
    frame = pd.DataFrame(rows, columns=[*found.columns, *of_decision])
    return queries.in_clock(frame, ("reasserted_at",), info.is_log)


def reviewer_agreement(store: Store, run_id: str, level: float = 0.95) -> pd.DataFrame:
    """How often reviewers found a revocation right: the measured precision of the rules that revoke.

    A revocation is *right* when a person confirmed it or decided with the category obsolete (it was right when it was
    made), and *wrong*, a false positive of the detector, when a person reactivated the value or declared both valid
    with the category wrong revocation. Other categories judge something else and are counted apart. Undone decisions
    count nowhere; of several on one revocation the last counts.

    Parameters
    ----------
    level
        Of the Wilson interval.

    Returns
    -------
    pandas.DataFrame
        ``by`` (``all``, ``rule`` or ``key``), ``name`` (of the rule that revoked, or the key), ``right``, ``wrong``,
        ``other`` (counts of revocations), ``precision`` (right among right and wrong; missing when there are none),
        ``lo``, ``hi``, ``claimed`` (how many of these judgements are claimed elsewhere: they came with an imported
        file). No rows when no revocation was judged.
    """
    queries.run_info(store, run_id)
    with store.read() as cursor:
        decisions = in_effect(read_decisions(cursor, run_id))
        falls = cursor.execute(
            """
            SELECT precedent_id, transition_id, occurred, t.rule, key FROM transition t
            JOIN precedent p USING (run_id, precedent_id)
            WHERE run_id = ? AND from_state = 'active' AND to_state = 'revoked' AND seq >= 0
                  AND precedent_id IN (SELECT unnest(?))
            ORDER BY occurred, number
            """,
            [run_id, sorted({decision.precedent_id for decision in decisions})],
        ).fetchall()
    judged: dict[str, tuple[str, str, str, bool]] = {}
    for decision in decisions:
        judged_falls = [row for row in falls if row[0] == decision.precedent_id and row[2] <= decision.effective_at]
        if judged_falls:
            _, transition, _, rule, key = judged_falls[-1]
            judged[transition] = (rule, key, _judgement(decision), decision.claim is not None)
    frame = pd.DataFrame(judged.values(), columns=["rule", "key", "judgement", "claimed"])
    groups = [("all", "all", frame)] if len(frame) else []
    groups += [(by, str(name), part) for by in ("rule", "key") for name, part in frame.groupby(by)]
    rows = []
    for by, name, part in groups:
        right, wrong, other = (int((part["judgement"] == what).sum()) for what in ("right", "wrong", "other"))
        lo, hi = wilson_interval(right, right + wrong, level) if right + wrong else (float("nan"), float("nan"))
        precision = right / (right + wrong) if right + wrong else float("nan")
        rows.append((by, name, right, wrong, other, precision, lo, hi, int(part["claimed"].sum())))
    return pd.DataFrame(rows, columns=["by", "name", "right", "wrong", "other", "precision", "lo", "hi", "claimed"])


def _judgement(decision: Decision) -> str:
    if decision.verdict is Verdict.CONFIRM or decision.category is Category.OBSOLETE:
        return "right"
    return "wrong" if decision.category is Category.WRONG_REVOCATION else "other"
