"""One change of the world, step by step: what two agents retrieved, did and learned on the same draws."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from tepa_core.figures.theme import STATE_STYLE, method_label
from tepa_core.ui.text import plain_text


@dataclass(frozen=True, slots=True)
class Side:
    """What one method did at one task; sentences in markdown.

    Attributes
    ----------
    method
        Which.
    retrieved, did, learned
        What its memory offered, what it acted on, what it made of the outcome.
    success
        Whether the task was done.
    won
        Successes since the change, this task included.
    """

    method: str
    retrieved: str
    did: str
    learned: str
    success: bool
    won: int


@dataclass(frozen=True, slots=True)
class Change:
    """One change of state caused by a task's evidence."""

    transition_id: str
    precedent_id: str
    key: str
    key_id: str
    value: str
    words: str


@dataclass(frozen=True, slots=True)
class Step:
    """One task of the story.

    Attributes
    ----------
    number
        Tasks since the change, this one included.
    right
        The value that really held for the key, None where no value does.
    ours, other
        The method with a lifecycle, and the one beside it.
    changes
        States of the first method that changed.
    """

    t: int
    number: int
    key: str
    right: str | None
    ours: Side
    other: Side
    changes: tuple[Change, ...]


def tell(
    ours: pd.DataFrame,
    other: pd.DataFrame,
    evidence: pd.DataFrame,
    transitions: pd.DataFrame,
    truth: pd.DataFrame,
    start: int,
    end: int,
) -> tuple[Step, ...]:
    """Tell the tasks from ``start`` to ``end`` (exclusive) of one seed.

    Parameters
    ----------
    ours, other
        Episodes of the two methods on this seed, one row per task, ordered.
    evidence
        What the first method learned from: ``t``, ``key``, ``value``, ``supports``.
    transitions
        Of the first method, as `tepa_core.store.queries.lane_transitions` lists them.
    truth
        ``key``, ``value``, ``start``, ``end`` of this seed.

    Raises
    ------
    ValueError
        If the two methods did not play the same tasks.
    """
    if ours["t"].tolist() != other["t"].tolist():
        raise ValueError("The two methods of a story must have played the same tasks of the same seed.")
    learned = {int(item["t"]): _from_evidence(item) for _, item in evidence[evidence["t"] >= start].iterrows()}
    size_before = other["size"].shift(fill_value=0)
    here = ours["t"].between(start, end - 1)
    ours_won, other_won = ours.loc[here, "success"].cumsum(), other.loc[here, "success"].cumsum()
    steps = []
    for number, row in enumerate(ours.index[here], start=1):
        mine, its = ours.loc[row], other.loc[row]
        t = int(mine["t"])
        changed = transitions[transitions["occurred"] == t]
        steps.append(
            Step(
                t=t,
                number=number,
                key=str(mine["key"]),
                right=_right(truth, mine["key"], t),
                ours=_side(mine, learned[t], int(ours_won[row])),
                other=_side(its, _from_size(int(size_before[row]), int(its["size"])), int(other_won[row])),
                changes=tuple(_change(one) for _, one in changed.iterrows()),
            )
        )
    return tuple(steps)


def opening(truth: pd.DataFrame, phase: str, start: int) -> str:
    """Say what changed in the world when the phase began, which no method is told.

    Parameters
    ----------
    truth
        ``key``, ``value``, ``start``, ``end`` of one seed.
    phase, start
        The phase and its first task.
    """
    before = truth[(truth["start"] < start) & (truth["end"] >= start)].set_index("key")["value"]
    after = truth[(truth["start"] <= start) & (start < truth["end"])].set_index("key")["value"]
    changed = [key for key in after.index if key in before.index and before[key] != after[key]]
    what = [
        f"on *{plain_text(key)}* what works goes from **{plain_text(before[key])}** to **{plain_text(after[key])}**"
        for key in changed
    ]
    told = "Both agents meet the same tasks, and neither is told."
    if not what:
        return f"{plain_text(phase)} begins at task {start}. {told}"
    return f"At task {start} {plain_text(phase)} begins: {', '.join(what)}. {told}"


def _side(row: pd.Series, learned: str, won: int) -> Side:
    followed, action = row["followed"], plain_text(row["action"])
    if pd.notna(row["retrieved"]):
        stale = " It no longer holds." if pd.notna(row["exposed"]) and bool(row["exposed"]) else ""
        retrieved = f"Its active memory offers **{plain_text(row['retrieved'])}**.{stale}"
    elif pd.notna(followed):
        retrieved = f"Nothing is active. Its best candidate is **{plain_text(followed)}**."
    else:
        retrieved = "Nothing is active: it does what it would do without memory."
    if pd.notna(followed):
        did = f"It follows that and uses **{action}**."
    else:
        did = f"It uses **{action}**" + (", against its memory." if pd.notna(row["retrieved"]) else ".")
    return Side(str(row["method"]), retrieved, did, learned, bool(row["success"]), won)


def _from_evidence(item: pd.Series) -> str:
    value = plain_text(item["value"])
    return f"It learns: one {'support' if item['supports'] else 'conflict'} for **{value}**."


def _from_size(before: int, after: int) -> str:
    if after > before:
        return f"It stores one more: {after} memories, all of them active."
    if after < before:
        return f"It clears its memory: {after} memories left."
    return f"Nothing changes: its {after} memories stay as they are, all of them active."


def _right(truth: pd.DataFrame, key: object, t: int) -> str | None:
    held = truth[(truth["key"] == key) & (truth["start"] <= t) & (t < truth["end"])]
    return None if held.empty else str(held["value"].iloc[0])


def _change(row: pd.Series) -> Change:
    before, after = (STATE_STYLE[str(row[name])].label for name in ("from_state", "to_state"))
    words = f"**{plain_text(row['value'])}** goes from {before} to **{after}**"
    if row["rule"] == "reactivated":
        words += f": back from the archive, life {int(row['life'])}"
    return Change(
        str(row["transition_id"]),
        str(row["precedent_id"]),
        str(row["key"]),
        str(row["key_id"]),
        str(row["value"]),
        f"{words}.",
    )


def table(steps: tuple[Step, ...]) -> pd.DataFrame:
    """Return the story as a table, one row per task."""
    outcome = {True: "success", False: "failure"}
    return pd.DataFrame(
        {
            "task": [step.t for step in steps],
            "key": [step.key for step in steps],
            **{
                method_label(sides[0].method): [outcome[side.success] for side in sides]
                for sides in ([step.ours for step in steps], [step.other for step in steps])
                if sides
            },
            "what changed": ["; ".join(c.words.replace("*", "").rstrip(".") for c in step.changes) for step in steps],
        }
    )
