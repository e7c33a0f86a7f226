"""What a person decided about an archived precedent: who, when, why, and on which version of it."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tepa_core.decisions.claim import Claim
from tepa_core.lifecycle import Verdict


class Action(StrEnum):
    """What is decided.

    ``REACTIVATE`` takes the precedent out of the archive until evidence contradicts it (pinned: until another
    decision), ``CONFIRM`` keeps it there, ``BOTH_VALID`` takes it out and lets its key hold several values, ``UNDO``
    takes an earlier decision back.
    """

    REACTIVATE = "reactivate"
    CONFIRM = "confirm"
    BOTH_VALID = "both_valid"
    UNDO = "undo"


class Category(StrEnum):
    """Why, for counting.

    ``WRONG_REVOCATION``: the value held when it was revoked. ``OBSOLETE``: the revocation was right when it was made.
    ``KEY_ERROR``: the evidence is about another key. ``DUPLICATE``: two spellings of one value. ``POLICY``: a rule of
    the house, whatever the evidence says. ``OTHER``: none of these.
    """

    WRONG_REVOCATION = "wrong_revocation"
    OBSOLETE = "obsolete"
    KEY_ERROR = "key_error"
    DUPLICATE = "duplicate"
    POLICY = "policy"
    OTHER = "other"


#: The category of an action when none is named.
DEFAULT_CATEGORY: Mapping[Action, Category] = {
    Action.REACTIVATE: Category.WRONG_REVOCATION,
    Action.CONFIRM: Category.OBSOLETE,
    Action.BOTH_VALID: Category.WRONG_REVOCATION,
    Action.UNDO: Category.OTHER,
}


class Role(StrEnum):
    """What a person may do: a viewer reads, a reviewer decides."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts.

    Attributes
    ----------
    name
        As a login vouches for it, or as typed; empty when nobody is known.
    authenticated
        False for a name that was merely typed.
    role
        What the person may do.
    until
        When the sign-in ends, in seconds since 1970 UTC; None where nothing ends.
    """

    name: str
    authenticated: bool
    role: Role
    until: float | None = None


#: The program itself: it makes the first run of a new database, which nobody asked for.
PROGRAM: Final = Actor("the program", authenticated=True, role=Role.REVIEWER)


def check_may_write(actor: Actor | None, now: float) -> None:
    """Refuse whoever may not change what is stored.

    Parameters
    ----------
    actor
        Who acts; None when nobody was named.
    now
        Seconds since 1970 UTC.

    Raises
    ------
    PermissionRefused
        If nobody is named, the person is no reviewer, or the sign-in has ended.
    """
    if actor is not None and actor.until is not None and actor.until <= now:
        raise PermissionRefused("Your sign-in has expired. Sign in again and repeat it; nothing was saved.")
    if actor is None or actor.role is not Role.REVIEWER:
        who = actor.name if actor is not None and actor.name else "Whoever is not signed in"
        raise PermissionRefused(
            f"{who} may look but not change anything; ask for the role of a reviewer. Nothing was saved."
        )


class DecisionRefused(ValueError):  # noqa: N818 - it names what happens, and is shown to people
    """The decision cannot be taken; the message says why and what to do. Nothing was written."""


class PermissionRefused(DecisionRefused):
    """The person may not do this; the message says why. Nothing was written."""


class StaleVersion(DecisionRefused):
    """What was decided on has changed since it was looked at.

    Attributes
    ----------
    what_changed
        Sentences, one a change.
    """

    def __init__(self, what_changed: Sequence[str]) -> None:
        self.what_changed = tuple(what_changed)
        super().__init__(f"{' '.join(self.what_changed)} Nothing was saved; look at it again, then decide.")


@dataclass(frozen=True, slots=True)
class Decision:
    """One row of a run's ledger.

    Attributes
    ----------
    number
        From 1, in the order in which the run's decisions were taken.
    decision_id
        Stable: stays the same on export and import.
    run_id, precedent_id
        What was decided on.
    action, pinned
        What was decided; ``pinned`` only with ``reactivate``.
    category, reason
        Why; ``reason`` is None once it was redacted.
    reviewer, authenticated
        Who, and whether a login vouches for the name.
    decided_at
        When, in UTC.
    effective_at
        From when on it applies, in the run's clock: tasks, or microseconds since 1970 UTC. It takes effect after the
        evidence of that time.
    version
        Of the precedent as the reviewer saw it.
    effect
        What it was going to change when it was taken: a JSON object as text.
    undoes
        ``decision_id`` of the decision that an undo takes back.
    reason_salt, reason_digest
        The digest takes the place of the reason in the chain; the salt goes when the reason goes.
    previous_hash, hash
        The links of the chain (see `tepa_core.decisions.chain`).
    claim
        Where it comes from if it was imported; None where it was taken here. No part of the row, so an imported ledger
        is the same ledger, and keeps its hashes.
    """

    number: int
    decision_id: str
    run_id: str
    precedent_id: str
    action: Action
    pinned: bool
    category: Category
    reason: str | None
    reviewer: str
    authenticated: bool
    decided_at: dt.datetime
    effective_at: int
    version: str
    effect: str
    undoes: str | None
    reason_salt: str | None
    reason_digest: str
    previous_hash: str
    hash: str
    claim: Claim | None = field(default=None, compare=False)

    @property
    def vouched(self) -> bool:
        """True when a login of this installation vouches for who decided; never of what was imported."""
        return self.authenticated and self.claim is None

    @property
    def by(self) -> str:
        """Who, for lists and sentences: a name that only a file vouches for says so."""
        return self.reviewer if self.claim is None else f"{self.reviewer} (claimed elsewhere)"

    @property
    def verdict(self) -> Verdict | None:
        """What the rule does with it; None for an undo."""
        if self.action is Action.REACTIVATE:
            return Verdict.PIN if self.pinned else Verdict.REACTIVATE
        return {Action.CONFIRM: Verdict.CONFIRM, Action.BOTH_VALID: Verdict.BOTH_VALID}.get(self.action)

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready data."""
        content = dataclasses.asdict(self) | {"decided_at": self.decided_at.isoformat(timespec="microseconds")}
        del content["claim"]
        return content

    def as_shown(self) -> dict[str, Any]:
        """Return the row for who reads it here.

        As `as_dict`, but ``authenticated`` is whether a login of this installation vouches for the name, and
        ``claimed`` says where an imported decision comes from and whether it calls itself authenticated; else it is
        None.
        """
        claimed = self.claim and self.claim.as_dict() | {"says_authenticated": self.authenticated}
        return self.as_dict() | {"authenticated": self.vouched, "claimed": claimed}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Decision:
        """Read back what `as_dict` wrote.

        Raises
        ------
        ValueError
            If a field is missing, unknown or not of its kind.
        """
        kinds = {
            name: kind
            for kind, names in (
                (int, ("number", "effective_at")),
                (bool, ("pinned", "authenticated")),
                (str | None, ("reason", "undoes", "reason_salt")),
            )
            for name in names
        }
        names = {one.name for one in dataclasses.fields(cls)} - {"claim"}
        if set(content) != names:
            raise ValueError(f"a decision has the fields {', '.join(sorted(names))}")
        for name, value in content.items():
            kind = kinds.get(name, str)
            # A bool is an int to Python, not to a reader of JSON.
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise ValueError(f"the field {name} of a decision cannot be {value!r}")
        decided_at = dt.datetime.fromisoformat(content["decided_at"])
        if decided_at.tzinfo is None:
            raise ValueError("the field decided_at of a decision needs a time zone")
        made = {
            "action": Action(content["action"]),
            "category": Category(content["category"]),
            "decided_at": decided_at.astimezone(dt.UTC),
        }
        return cls(**{**content, **made})


def in_effect(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the decisions that count: no undo, and none that was undone, in the order in which they were taken."""
    undone = {decision.undoes for decision in decisions if decision.action is Action.UNDO}
    return tuple(
        decision
        for decision in sorted(decisions, key=lambda decision: decision.number)
        if decision.action is not Action.UNDO and decision.decision_id not in undone
    )


def reason_in_words(decision: Decision) -> str:
    """Write who decided and why: ``Ana (wrong revocation: "the knee is fine")``."""
    why = decision.category.replace("_", " ")
    said = "reason redacted" if decision.reason is None else f"“{decision.reason}”"
    claimed = "" if decision.claim is None else "claimed elsewhere; "
    return f"{decision.reviewer} ({claimed}{why}: {said})"


def initials(name: str) -> str:
    """Return the initials of a name: "Ana Lima" is "AL", "ana" is "A".

    Examples
    --------
    >>> initials("Ana de Lima"), initials("ana@house.example")
    ('AL', 'A')
    """
    words = name.split("@")[0].replace(".", " ").replace("-", " ").replace("_", " ").split()
    return "".join(word[0].upper() for word in ([words[0], words[-1]] if len(words) > 1 else words[:1]))
