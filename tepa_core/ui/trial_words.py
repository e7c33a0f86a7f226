"""What trial-by-execution found before a value could become active, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd

from tepa_core.figures.theme import listed

#: Kind of trial -> what to say where all succeed, and where all fail.
OUTCOMES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "support": ("support succeeded", "support failed"),
        "counterfactual": ("counterfactual unharmed", "counterfactual harmed"),
        "contamination": ("contamination none", "contamination found"),
    }
)

#: What the kinds mean, for a person who has never seen the method.
EXPLAINED = (
    "Before a value becomes active it is tried. Support: a fresh task like this one is done with it. Counterfactual: "
    "keys that hold another value must keep it. Contamination: so must all other keys."
)


def of_activation(trials: pd.DataFrame, value: str, task: int) -> str:
    """Say which trials a value passed or failed at one task; empty where none were held.

    Parameters
    ----------
    trials
        ``t``, ``value``, ``number``, ``kind``, ``success``, of one key.
    value
        As the trials name it.
    """
    held = trials[(trials["value"] == value) & (trials["t"] == task)]
    if held.empty:
        return ""
    return f"{len(held)} trial{'' if len(held) == 1 else 's'} at this task: {_outcomes(held)}."


def of_refusals(trials: pd.DataFrame, value: str, tasks: list[int]) -> str:
    """Say at which tasks a value had enough support to become active and trials kept it out; empty where none did.

    Parameters
    ----------
    trials
        As for `of_activation`.
    tasks
        Tasks at which the trials of the value were not passed.
    """
    if not tasks:
        return ""
    named = listed([str(task) for task in tasks])
    held = trials[(trials["value"] == value) & (trials["t"] == tasks[-1])]
    return (
        f"At task{'' if len(tasks) == 1 else 's'} {named} it had support enough to become active and did not pass"
        f"{'' if len(tasks) == 1 else '; the last time'}: {_outcomes(held)}."
    )


def _outcomes(held: pd.DataFrame) -> str:
    parts = []
    for kind, (good, bad) in OUTCOMES.items():
        outcomes = held.loc[held["kind"] == kind, "success"]
        won = int(outcomes.sum())
        if len(outcomes) and won in (0, len(outcomes)):
            parts.append(good if won else bad)
        elif len(outcomes):
            word = good.split()[1]
            parts.append(f"{kind} {word if word != 'none' else 'free'} in {won} of {len(outcomes)}")
    return ", ".join(parts)
