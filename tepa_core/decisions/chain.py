"""The hash chain of a run's decisions: what was removed or changed later shows.

Each row holds the SHA-256 of its own content and, in that content, the hash of the row before it. The reason stands in
the content as a salted digest, so that it can be redacted and the chain still holds. How many rows there are and the
hash of the last one, the `Head`, is kept apart: without it the removal of the last rows would leave a chain that holds.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from tepa_core.decisions.claim import utc
from tepa_core.decisions.model import Decision

#: ``previous_hash`` of the first decision of a run.
NO_HASH = "0" * 64

#: Not in the content that is hashed: the reason stands in it as its digest.
_OUTSIDE = ("reason", "reason_salt", "hash")


@dataclass(frozen=True, slots=True)
class Head:
    """How many decisions a run has, and the hash of the last one."""

    count: int
    hash: str


#: The head of a ledger without decisions.
EMPTY = Head(0, NO_HASH)


class Linked(Protocol):
    """A row of a chain, of whatever content."""

    @property
    def number(self) -> int:
        """From 1, in order."""
        ...

    @property
    def previous_hash(self) -> str:
        """The hash of the row before."""
        ...

    @property
    def hash(self) -> str:
        """The hash of the row's own content."""
        ...


Row = TypeVar("Row", bound=Linked)


def canonical_hash(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of JSON-ready content in its one canonical form."""
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def reason_digest(reason: str, salt: str) -> str:
    """Return what stands for the reason in the chain."""
    return hashlib.sha256(f"{salt}\x1f{reason}".encode()).hexdigest()


def content_hash(decision: Decision) -> str:
    """Return the hash of a decision's content: canonical JSON without the reason itself."""
    return canonical_hash({name: value for name, value in decision.as_dict().items() if name not in _OUTSIDE})


def linked(decision: Decision, head: Head) -> Decision:
    """Return a decision as the next row after a head: number, links and digest filled in.

    Raises
    ------
    ValueError
        If it has no reason or salt.
    """
    if decision.reason is None or decision.reason_salt is None:
        raise ValueError("a new decision needs a reason and a salt")
    row = dataclasses.replace(
        decision,
        number=head.count + 1,
        previous_hash=head.hash,
        reason_digest=reason_digest(decision.reason, decision.reason_salt),
    )
    return dataclasses.replace(row, hash=content_hash(row))


def redacted(decision: Decision) -> Decision:
    """Return a decision without its reason. The salt goes with it, so that the digest cannot be guessed open."""
    return dataclasses.replace(decision, reason=None, reason_salt=None)


def verify(decisions: Sequence[Decision], head: Head) -> tuple[str, ...]:
    """Check a ledger against its chain and its head.

    Parameters
    ----------
    decisions
        The rows in the order in which they are kept.
    head
        As kept apart.

    Returns
    -------
    tuple of str
        What is wrong, one sentence each; empty when the ledger is as it was written. A redacted reason is not wrong
        (see `redactions`).
    """
    return tuple(
        chain_problems(decisions, head, "decision", content_hash, _reason_problems, " in a field other than its reason")
    )


def times_going_back(decisions: Sequence[Decision], now: dt.datetime) -> tuple[str, ...]:
    """Name the decisions whose time cannot be true beside that of another, one sentence each.

    The chain fixes the order in which decisions were written, and their times are what the clock of that machine
    said, or what somebody wrote into a file. It is no proof of a change: clocks are set back.

    Parameters
    ----------
    decisions
        The rows in the order in which they are kept.
    now
        Nothing can have been decided later; what was imported, not later than that.
    """
    said = [
        f"Decision {later.number} has the time {utc(later.decided_at)}, before that of decision {earlier.number}, "
        f"{utc(earlier.decided_at)}: a clock was set back, or one of the times is not true."
        for earlier, later in pairwise(decisions)
        if later.decided_at < earlier.decided_at
    ]
    for decision in decisions:
        if decision.claim is not None and decision.decided_at > decision.claim.imported_at:
            said.append(
                f"Decision {decision.number} has the time {utc(decision.decided_at)}, later than it was imported, "
                f"{utc(decision.claim.imported_at)}."
            )
        elif decision.decided_at > now:
            said.append(f"Decision {decision.number} has the time {utc(decision.decided_at)}, which has not come yet.")
    return tuple(said)


def redactions(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Say which reasons were redacted, one sentence each."""
    return tuple(
        f"The reason of decision {decision.number} was redacted."
        for decision in decisions
        if decision.reason is None and decision.reason_salt is None
    )


def _reason_problems(row: Decision) -> list[str]:
    if row.reason is not None and reason_digest(row.reason, row.reason_salt or "") != row.reason_digest:
        return [f"The reason of decision {row.number} was changed."]
    if row.reason is None and row.reason_salt is not None:
        return [f"The reason of decision {row.number} was removed without being redacted."]
    return []


def chain_problems(
    rows: Sequence[Row],
    head: Head,
    noun: str,
    hash_of: Callable[[Row], str],
    of_row: Callable[[Row], list[str]] = lambda _: [],
    where: str = "",
) -> list[str]:
    """Check rows against their chain and its head.

    Parameters
    ----------
    rows
        In the order in which they are kept.
    head
        As kept apart.
    noun
        What a row is called.
    hash_of
        The hash that a row's content has.
    of_row
        What else is wrong with a row.
    where
        In what a row was changed, said after "was changed".

    Returns
    -------
    list of str
        What is wrong, one sentence each.
    """
    problems = []
    for earlier, later in pairwise([row.number for row in rows]):
        if later == earlier:
            problems.append(f"{noun.capitalize()} {later} is there twice.")
        elif later < earlier:
            problems.append(f"{noun.capitalize()} {later} stands after {noun} {earlier}: the rows are out of order.")
    numbered = {row.number: row for row in rows}
    last = max(numbered, default=0)
    gaps = [number for number in range(1, min(last, head.count) + 1) if number not in numbered]
    if gaps:
        problems.append(f"{_are(len(gaps), noun)} missing before the end: {_listed(gaps)}.")
    if last < head.count:
        problems.append(f"{_are(head.count - last, noun)} missing at the end.")
    extra = [number for number in sorted(numbered) if number > head.count]
    if extra:
        problems.append(f"The head counts {head.count}, but there is more: {_listed(extra)}.")
    for number in sorted(numbered):
        row = numbered[number]
        problems += of_row(row)
        problems += _link_problems(row, numbered.get(number + 1), head, noun, hash_of, where)
    return problems


def _link_problems(
    row: Row, after: Row | None, head: Head, noun: str, hash_of: Callable[[Row], str], where: str
) -> list[str]:
    problems = []
    content = hash_of(row)
    # What the row's hash was when it was written: its successor, unless that was changed itself, or the head remembers.
    written = row.hash
    if after is None:
        written = head.hash if row.number == head.count else row.hash
    elif hash_of(after) == after.hash:
        written = after.previous_hash
    if content != row.hash:
        if content == written:
            problems.append(f"The hash of {noun} {row.number} was changed.")
        else:
            problems.append(f"{noun.capitalize()} {row.number} was changed{where}.")
    elif row.hash != written:
        if after is None:
            problems.append(f"The head does not hold the hash of the last {noun}, number {row.number}.")
        else:
            problems.append(
                f"{noun.capitalize()} {row.number} is not the one that {noun} {after.number} was linked to."
            )
    if row.number == 1 and row.previous_hash != NO_HASH:
        problems.append(f"{noun.capitalize()} 1 is linked to {'an' if noun[0] in 'aeiou' else 'a'} {noun} before it.")
    return problems


def _are(count: int, noun: str) -> str:
    return f"{count} {noun} is" if count == 1 else f"{count} {noun}s are"


def _listed(numbers: Sequence[int]) -> str:
    return f"number{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"
