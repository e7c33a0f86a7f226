"""What a memory method is: it offers a value for a key, and learns from what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from tepa_core.lifecycle import Thresholds, Verdict
from tepa_core.methods.trials import SupportTrials, Trial


class Recall(NamedTuple):
    """What a memory offers for one key.

    Attributes
    ----------
    value
        Value to follow, or None: the agent then takes its base action.
    retrieved
        Whether the value comes out of active memory into the agent's prompt. A candidate that merely steers the next
        try does not, so it is no exposure.
    """

    value: int | None
    retrieved: bool


#: Nothing to follow.
NOTHING = Recall(None, False)


class Experience(NamedTuple):
    """What an agent learns from one task.

    Attributes
    ----------
    t
        Number of the task; negative for what memory holds before the first.
    key, value
        What the evidence is about.
    supports
        Whether it supports the value.
    success
        Whether the task's action earned its reward; None for evidence without a task.
    """

    t: int
    key: int
    value: int
    supports: bool
    success: bool | None


@dataclass(frozen=True, slots=True)
class Setting:
    """What a method may know before the first task. No phase, no truth, no boundary.

    Attributes
    ----------
    keys
        Texts of the conflict keys, for lexical retrieval.
    n_values
        How many values an agent can act on.
    asserted
        True where evidence asserts values, False where it is the outcome of the action.
    thresholds
        Of the precedent's life.
    fallback
        ``"candidate"``: without an Active precedent the best candidate is tried; ``"base_policy"``: it is not.
    trials
        Fresh tasks for trial validation; None where a stream has none.
    """

    keys: tuple[str, ...]
    n_values: int
    asserted: bool
    thresholds: Thresholds
    fallback: str = "candidate"
    trials: SupportTrials | None = None

    def __post_init__(self) -> None:
        if self.fallback not in FALLBACKS:
            raise ValueError(f"fallback must be {' or '.join(FALLBACKS)}, not {self.fallback!r}")


FALLBACKS = ("candidate", "base_policy")


class Method(Protocol):
    """One memory for one run of one seed."""

    def recall(self, t: int, key: int) -> Recall:
        """Offer a value for the key of task ``t``. Changes nothing."""

    def active(self, key: int) -> tuple[int, ...]:
        """Return the values of a key that a reader would find in active memory, from the oldest to the newest."""

    def learn(self, experience: Experience) -> None:
        """Take in what came of a task."""

    def __len__(self) -> int:
        """Return the number of items that could be retrieved now: the active memory size of Fig. 6."""


@runtime_checkable
class Validates(Protocol):
    """A method that holds trials before it writes; it keeps them all, in order."""

    held: list[Trial]


@runtime_checkable
class TakesDecisions(Protocol):
    """A method whose precedents a person can decide on."""

    def decide(self, key: int, value: int, verdict: Verdict, t: int) -> None:
        """Apply a decision after the evidence of task ``t``."""


@runtime_checkable
class ToldOfBoundaries(Protocol):
    """A method that is told of true phase boundaries: the oracle baseline alone."""

    def boundary(self) -> None:
        """Take note that a new phase begins with the next task."""
