"""Labels of options, no two alike: what a list shows of things that only their ids tell apart.

Streamlit knows an option by the text that it shows. Two options of one text are one option to it, the first, whatever
their ids are. So every list whose words come from people, files or times takes its labels from here.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import pandas as pd

from tepa_core.inert import one_line
from tepa_core.store import KeyLife
from tepa_core.ui.why_card import change

K = TypeVar("K")


def told_apart(labels: Mapping[K, str], *details: Mapping[K, str] | Callable[[K], str]) -> dict[K, str]:
    """Make labels unique: those that look alike get details, one after the other, and in the end a number.

    Parameters
    ----------
    labels
        Id of each option -> its text, in the order of the list.
    details
        What may be added, the most telling first: by id, or a function of the id. A detail that tells nothing apart is
        left out, and so is an empty one.

    Returns
    -------
    dict
        Id -> label, in the same order. No two look alike, whatever the texts are.

    Examples
    --------
    >>> told_apart({1: "export.csv", 2: "export.csv", 3: "other.csv"}, {1: "Monday", 2: "Tuesday", 3: "Monday"})
    {1: 'export.csv · Monday', 2: 'export.csv · Tuesday', 3: 'other.csv'}
    >>> told_apart({1: "seat", 2: "seat"})
    {1: 'seat (1)', 2: 'seat (2)'}
    """
    made = dict(labels)
    for detail in details:
        of = detail if callable(detail) else detail.__getitem__
        for alike in _alike(made):
            added = {one: of(one) for one in alike}
            if len({_seen(text) for text in added.values()}) > 1:
                made |= {one: f"{made[one]} · {text}" if text else made[one] for one, text in added.items()}
    taken = {_seen(text) for text in made.values()}
    for alike in _alike(made):
        number = 0
        for one in alike:
            # Somebody may have called a thing "seat (1)" already.
            number += 1
            while _seen(f"{made[one]} ({number})") in taken:
                number += 1
            made[one] = f"{made[one]} ({number})"
            taken.add(_seen(made[one]))
    return made


def _alike(labels: Mapping[K, str]) -> list[list[K]]:
    groups: dict[str, list[K]] = defaultdict(list)
    for one, text in labels.items():
        groups[_seen(text)].append(one)
    return [group for group in groups.values() if len(group) > 1]


def _seen(text: str) -> str:
    """Return what a reader sees of a text: composed, blanks joined, without characters that have no shape."""
    composed = unicodedata.normalize("NFC", text)
    return " ".join("".join(one for one in composed if unicodedata.category(one) != "Cf").split())


def of_runs(listed: pd.DataFrame) -> dict[str, str]:
    """Label the runs: id -> name, with the time at which it was made and in the end the id where names are alike.

    Parameters
    ----------
    listed
        As `tepa_core.store.queries.runs` returns them.
    """
    names = {run_id: one_line(name) for run_id, name in _pairs(listed, "name")}
    made = dict(_pairs(listed, "created_at"))
    return told_apart(
        names,
        {run_id: f"{at:%d %b %Y, %H:%M}" for run_id, at in made.items()},
        {run_id: f"{at:%H:%M:%S}" for run_id, at in made.items()},
        one_line,
    )


def _pairs(listed: pd.DataFrame, column: str) -> Iterable[tuple[str, Any]]:
    return zip(listed["run_id"].astype(str), listed[column], strict=True)


def of_names(names: Iterable[K], words: Callable[[K], str] = one_line) -> dict[K, str]:
    """Label things by their own texts, which may differ in nothing that is seen."""
    return told_apart({name: words(name) for name in names})


def of_changes(life: KeyLife, steps: Iterable[str]) -> dict[str, str]:
    """Label changes of state of one memory, the oldest first: day, minute and states, then what tells them apart.

    Changes within a minute get their second, those within a second what is left of it, those at one instant their
    number.
    """
    steps = list(steps)
    shown = life.transitions[life.transitions["transition_id"].isin(steps)]
    rows = {str(row["transition_id"]): row for row in shown.to_dict("records")}
    at = {step: row["x"] for step, row in rows.items()}
    of = int(life.transitions["id"].isin(shown["id"]).sum())
    seconds = {step: f"{at[step]:%H:%M:%S}" if isinstance(at[step], pd.Timestamp) else "" for step in steps}
    exact = {step: f"{at[step]:%H:%M:%S.%f}" if isinstance(at[step], pd.Timestamp) else "" for step in steps}
    return told_apart(
        {step: change(life, rows[step]) for step in steps},
        seconds,
        exact,
        {step: f"change {rows[step]['number'] + 1} of {of}" for step in steps},
    )
