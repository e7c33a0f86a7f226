"""Trial-by-execution: what a value must show before it is written into memory (paper section 3.3).

Three kinds of trial take turns until the budget is used: *support* (a fresh task like this one, acted on with the
candidate in the prompt: right or not), *counterfactual* (a task of another key on which another value is active: does
memory still offer what it offered before) and *contamination* (the same for all other keys).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tepa_core.lifecycle import Thresholds


class TrialKind(StrEnum):
    """What a trial asks."""

    SUPPORT = "support"
    COUNTERFACTUAL = "counterfactual"
    CONTAMINATION = "contamination"


class Trial(NamedTuple):
    """One trial of one candidate at one task."""

    t: int
    key: int
    value: int
    kind: TrialKind
    success: bool


@dataclass(frozen=True, slots=True)
class SupportTrials:
    """Fresh tasks, drawn up front so that all methods and settings meet the same ones.

    Attributes
    ----------
    success
        Success of the n-th support trial at each task with each value injected, shape (T, budget, A).
    """

    success: npt.NDArray[np.bool_]

    def run(self, t: int, number: int, value: int) -> bool:
        """Act on the ``number``-th fresh task at task ``t`` with the value in the prompt."""
        return bool(self.success[t, number, value])


def hold(
    trials: SupportTrials,
    thresholds: Thresholds,
    t: int,
    key: int,
    value: int,
    *,
    opposite_unharmed: bool,
    others_untouched: bool,
) -> tuple[Trial, ...]:
    """Hold the trials of one candidate, within the budget.

    Parameters
    ----------
    opposite_unharmed, others_untouched
        What the memory offers for other keys once it holds the candidate, compared with before.
    """
    held = []
    for n in range(thresholds.trial_budget):
        kind = tuple(TrialKind)[n % len(TrialKind)]
        if kind is TrialKind.SUPPORT:
            success = trials.run(t, n // len(TrialKind), value)
        else:
            success = opposite_unharmed if kind is TrialKind.COUNTERFACTUAL else others_untouched
        held.append(Trial(t, key, value, kind, success))
    return tuple(held)


def passed(held: Sequence[Trial], thresholds: Thresholds) -> bool:
    """At least the required share of trials is positive, and at least one support trial succeeded."""
    positive = sum(trial.success for trial in held)
    supported = any(trial.success for trial in held if trial.kind is TrialKind.SUPPORT)
    return supported and positive / len(held) >= thresholds.trial_pass
