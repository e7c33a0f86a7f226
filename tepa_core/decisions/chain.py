"""The hash chain of a run's decisions: what was removed or changed later shows.

Each row holds the SHA-256 of its own content and, in that content, the hash of the row before it. The reason stands in
the content as a salted digest, so that it can be redacted and the chain still holds. How many rows there are and the
hash of the last one, the `Head`, is kept apart: without it the removal of the last rows would leave a chain that holds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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


def reason_digest(reason: str, salt: str) -> str:
    """Return what stands for the reason in the chain."""
    return hashlib.sha256(f"{salt}\x1f{reason}".encode()).hexdigest()


def content_hash(decision: Decision) -> str:
    """Return the hash of a decision's content: canonical JSON without the reason itself."""
    content = {name: value for name, value in decision.as_dict().items() if name not in _OUTSIDE}
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


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
    problems = []
    numbers = [decision.number for decision in decisions]
    for earlier, later in pairwise(numbers):
        if later == earlier:
            problems.append(f"Decision {later} is there twice.")
        elif later < earlier:
            problems.append(f"Decision {later} stands after decision {earlier}: the rows are out of order.")
    rows = {decision.number: decision for decision in decisions}
    last = max(rows, default=0)
    gaps = [number for number in range(1, min(last, head.count) + 1) if number not in rows]
    if gaps:
        problems.append(f"{_are(len(gaps))} missing before the end: {_listed(gaps)}.")
    if last < head.count:
        problems.append(f"{_are(head.count - last)} missing at the end.")
    extra = [number for number in sorted(rows) if number > head.count]
    if extra:
        problems.append(f"The head counts {head.count}, but there is more: {_listed(extra)}.")
    for number in sorted(rows):
        problems += _row_problems(rows[number], rows.get(number - 1), rows.get(number + 1), head)
    return tuple(problems)


def redactions(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Say which reasons were redacted, one sentence each."""
    return tuple(
        f"The reason of decision {decision.number} was redacted."
        for decision in decisions
        if decision.reason is None and decision.reason_salt is None
    )


def _row_problems(row: Decision, before: Decision | None, after: Decision | None, head: Head) -> list[str]:
    problems = []
    if row.reason is not None and reason_digest(row.reason, row.reason_salt or "") != row.reason_digest:
        problems.append(f"The reason of decision {row.number} was changed.")
    elif row.reason is None and row.reason_salt is not None:
        problems.append(f"The reason of decision {row.number} was removed without being redacted.")
    content = content_hash(row)
    # What the row's hash was when it was written: its successor, unless that was changed itself, or the head remembers.
    written = row.hash
    if after is None:
        written = head.hash if row.number == head.count else row.hash
    elif content_hash(after) == after.hash:
        written = after.previous_hash
    if content != row.hash:
        if content == written:
            problems.append(f"The hash of decision {row.number} was changed.")
        else:
            problems.append(f"Decision {row.number} was changed in a field other than its reason.")
    elif row.hash != written:
        if after is None:
            problems.append(f"The head does not hold the hash of the last decision, number {row.number}.")
        else:
            problems.append(f"Decision {row.number} is not the one that decision {after.number} was linked to.")
    if row.number == 1 and row.previous_hash != NO_HASH:
        problems.append("Decision 1 is linked to a decision before it.")
    return problems


def _are(count: int) -> str:
    return f"{count} decision is" if count == 1 else f"{count} decisions are"


def _listed(numbers: Sequence[int]) -> str:
    return f"number{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"
