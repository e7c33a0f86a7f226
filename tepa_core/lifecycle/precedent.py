"""The record of a precedent, its states, and the thresholds of its life (paper sections 3.1 and 3.2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from numbers import Real
from types import MappingProxyType
from typing import NamedTuple

import numpy as np


class State(IntEnum):
    """Where a precedent stands. Only ``ACTIVE`` is ever retrieved; ``REVOKED`` is the archive.

    ``CANDIDATE`` is the time before the paper's three states: a value whose supports are counted but too few to
    make it a Hypothesis.
    """

    CANDIDATE = 0
    HYPOTHESIS = 1
    ACTIVE = 2
    REVOKED = 3

    @property
    def label(self) -> str:
        """Lower-case name used in tables, links and the command line."""
        return self.name.lower()


#: Shown for an Active precedent with a conflict among its recent outcomes. A view of ``ACTIVE``, not a fourth state.
DEPRECATED = "deprecated"


class Rule(IntEnum):
    """What moved a precedent from one state to another."""

    NONE = 0
    PROPOSED = 1
    PROMOTED = 2
    REACTIVATED = 3
    POSTERIOR = 4
    RECENT = 5
    SUPERSEDED = 6
    DECIDED = 7
    REASSERTED = 8

    @property
    def label(self) -> str:
        """Lower-case name used in tables, links and the command line."""
        return self.name.lower()


class Verdict(IntEnum):
    """What a person decides about a precedent in the archive.

    ``REACTIVATE`` makes it Active until evidence contradicts it, ``PIN`` until another decision. ``CONFIRM`` keeps it
    archived: evidence that would bring it back is recorded as a re-assertion instead. ``BOTH_VALID`` makes it Active
    and lets its key hold several values from then on.
    """

    REACTIVATE = 1
    PIN = 2
    CONFIRM = 3
    BOTH_VALID = 4

    @property
    def label(self) -> str:
        """Lower-case name used in tables, links and the command line."""
        return self.name.lower()


#: Longest recent window: its outcomes are the bits of one int64.
MAX_N_REC = 62

#: Largest count that a threshold may be, and largest prior: beyond it sums of counts lose digits or overflow.
MAX_COUNT = 1_000_000_000

#: Largest trial budget: three kinds take turns, and six support trials are drawn for each task.
MAX_TRIAL_BUDGET = 18

#: One precedent. ``window`` holds the last ``window_len`` outcomes of the current life as bits, the newest lowest.
#: ``trial_*`` is the tally of a value that is not Active; read it only through `tepa_core.lifecycle.rule.tally`.
#: ``pinned`` and ``confirmed`` are standing decisions: never revoked by evidence, never re-activated by it.
PRECEDENT = np.dtype(
    [
        ("created_at", np.int64),
        ("changed_at", np.int64),
        ("activated_seq", np.int64),
        ("window", np.int64),
        ("trial_base", np.int64),
        ("trial_item", np.int64),
        ("support", np.int32),
        ("conflict", np.int32),
        ("trial_support", np.int32),
        ("trial_conflict", np.int32),
        ("trial_epoch", np.int32),
        ("active_next", np.int32),
        ("lives", np.int32),
        ("window_len", np.int16),
        ("state", np.int8),
        ("rule", np.int8),
        ("pinned", np.bool_),
        ("confirmed", np.bool_),
    ],
    align=True,
)

#: One conflict key: how many evidence items it has seen, how many of them were supports that conflict with its other
#: values (none while it holds several), how often its tallies restarted, the head of its Active list.
KEY = np.dtype(
    [
        ("items", np.int64),
        ("supports", np.int64),
        ("epoch", np.int32),
        ("active_head", np.int32),
        ("multivalued", np.bool_),
    ],
    align=True,
)

#: One change of state, with the numbers that decided it as they stood after the evidence was counted.
TRANSITION = np.dtype(
    [
        ("seq", np.int64),
        ("time", np.int64),
        ("window", np.int64),
        ("key", np.int32),
        ("precedent", np.int32),
        ("support", np.int32),
        ("conflict", np.int32),
        ("trial_support", np.int32),
        ("trial_conflict", np.int32),
        ("life", np.int32),
        ("window_len", np.int16),
        ("from_state", np.int8),
        ("to_state", np.int8),
        ("rule", np.int8),
    ],
    align=True,
)


class RuleParameters(NamedTuple):
    """`Thresholds` in the shape that the compiled rule takes."""

    theta_prop: int
    theta_rev: float
    n_min: int
    theta_rec: float
    n_rec: int
    theta_pro: float
    alpha: float
    beta: float
    revokes: bool


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a value is proposed, promoted and revoked; defaults from the paper (section 3.2).

    Parameters
    ----------
    theta_prop
        Supports that make a value a Hypothesis (count, 1 to a billion).
    theta_rev
        Posterior below which an Active precedent is revoked, once it has ``n_min`` outcomes (0 to 1).
    n_min
        Outcomes before the posterior rule applies (count, 1 to a billion).
    theta_rec
        Mean of the last ``n_rec`` outcomes below which an Active precedent is revoked (0 to 1).
    n_rec
        Length of the recent window (count, 1 to 62).
    theta_pro
        Posterior of the tally from which a Hypothesis becomes Active (0 to 1).
    alpha, beta
        Beta prior of the posterior (counts, above 0).
    revokes
        False switches every revocation off: TEPA-NoRev.
    trial_budget
        Trials held before an activation in TEPA-Full (count, 1 to 18).
    trial_pass
        Share of them that must be positive (0 to 1); at least one support trial must succeed.

    Raises
    ------
    ValueError
        If a threshold is out of its range; the message names it and the range.

    Examples
    --------
    >>> Thresholds().posterior(60, 2)
    0.953125
    """

    theta_prop: int = 3
    theta_rev: float = 0.3
    n_min: int = 5
    theta_rec: float = 0.34
    n_rec: int = 3
    theta_pro: float = 0.6
    alpha: float = 1.0
    beta: float = 1.0
    revokes: bool = True
    trial_budget: int = 3
    trial_pass: float = 0.6

    def __post_init__(self) -> None:
        for name, low, high in (
            ("theta_prop", 1, MAX_COUNT),
            ("n_min", 1, MAX_COUNT),
            ("n_rec", 1, MAX_N_REC),
            ("trial_budget", 1, MAX_TRIAL_BUDGET),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ValueError(f"{name} must be a whole number, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be from {low} to {high:,}, not {value}")
        for name in ("theta_rev", "theta_rec", "theta_pro", "trial_pass", "alpha", "beta"):
            # Text of a number would pass every comparison below and fail the first one elsewhere.
            if isinstance(getattr(self, name), bool) or not isinstance(getattr(self, name), Real):
                raise ValueError(f"{name} must be a number, not {getattr(self, name)!r}")
        for name in ("theta_rev", "theta_rec", "theta_pro", "trial_pass"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        for name in ("alpha", "beta"):
            if not 0.0 < getattr(self, name) <= MAX_COUNT:
                raise ValueError(f"{name} must be above 0 and at most {MAX_COUNT:,}, not {getattr(self, name)}")
        if not isinstance(self.revokes, bool | np.bool_):
            raise ValueError(f"revokes must be true or false, not {self.revokes!r}")

    def posterior(self, support: float, conflict: float) -> float:
        """Posterior mean q = (s + alpha) / (s + f + alpha + beta) of paper section 3.1."""
        return (support + self.alpha) / (support + conflict + self.alpha + self.beta)

    def parameters(self) -> RuleParameters:
        """Return the thresholds in the shape of the compiled rule."""
        return RuleParameters(
            int(self.theta_prop),
            float(self.theta_rev),
            int(self.n_min),
            float(self.theta_rec),
            int(self.n_rec),
            float(self.theta_pro),
            float(self.alpha),
            float(self.beta),
            bool(self.revokes),
        )

    def changed(self, settings: Mapping[str, str | float | bool]) -> Thresholds:
        """Return a copy with some thresholds replaced, given as numbers or as text.

        Raises
        ------
        ValueError
            If a name is no threshold or a value is not of its kind or range.
        """
        kinds = {field.name: type(field.default) for field in dataclasses.fields(self)}
        values: dict[str, int | float | bool] = {}
        for name, value in settings.items():
            if name not in kinds:
                raise ValueError(f"{name} is no threshold; the thresholds are {', '.join(kinds)}")
            values[name] = _as_kind(name, value, kinds[name])
        return dataclasses.replace(self, **values)  # type: ignore[arg-type]


def _as_kind(name: str, value: str | float | bool, kind: type) -> int | float | bool:
    if kind is bool:
        if str(value).lower() in ("true", "1", "yes", "on"):
            return True
        if str(value).lower() in ("false", "0", "no", "off"):
            return False
        raise ValueError(f"{name} must be true or false, not {value!r}")
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    if kind is int:
        if not number.is_integer():
            raise ValueError(f"{name} must be a whole number, not {value!r}")
        return int(number)
    return number


#: Named settings. ``direct_facts`` is for logs in which each fact is stated once and replaces the one before it: one
#: statement is believed until the next, whatever was said of the value before, so nothing is asked of its posterior.
PRESETS: Mapping[str, Thresholds] = MappingProxyType(
    {"default": Thresholds(), "direct_facts": Thresholds(theta_prop=1, n_rec=1, theta_pro=0.0)}
)
