"""The story of one change, made by hand: four tasks, the second after the change revokes."""

from __future__ import annotations

import pandas as pd
import pytest

from tepa_core.ui import story


def episodes(
    method: str, rows: list[tuple[int, str, str, bool, str | None, str | None, bool | None, int]]
) -> pd.DataFrame:
    columns = ["t", "key", "action", "success", "followed", "retrieved", "exposed", "size"]
    return pd.DataFrame(rows, columns=columns).assign(method=method)


OURS = episodes(
    "tepa",
    [
        (9, "csv", "A", True, "A", "A", False, 1),
        (10, "csv", "A", False, "A", "A", True, 1),
        (11, "csv", "A", False, "A", "A", True, 0),
        (12, "csv", "B", True, "B", None, False, 0),
    ],
)
OTHER = episodes(
    "append_only",
    [
        (9, "csv", "A", True, "A", "A", False, 5),
        (10, "csv", "A", False, "A", "A", True, 5),
        (11, "csv", "A", False, "A", "A", True, 5),
        (12, "csv", "B", True, None, "A", True, 6),
    ],
)
EVIDENCE = pd.DataFrame(
    {"t": [9, 10, 11, 12], "key": "csv", "value": ["A", "A", "A", "B"], "supports": [True, False, False, True]}
)
TRANSITIONS = pd.DataFrame(
    {
        "occurred": [11],
        "key": "csv",
        "key_id": "csv",
        "value": ["A"],
        "from_state": "active",
        "to_state": "revoked",
        "rule": "recent",
        "life": 1,
        "transition_id": "p1.3",
        "precedent_id": "p1",
    }
)
TRUTH = pd.DataFrame({"key": ["csv", "csv"], "value": ["A", "B"], "start": [0, 10], "end": [10, 20]})


@pytest.fixture
def steps() -> tuple[story.Step, ...]:
    return story.tell(OURS, OTHER, EVIDENCE, TRANSITIONS, TRUTH, 10, 13)


def test_it_starts_at_the_change_and_counts_from_there(steps: tuple[story.Step, ...]) -> None:
    assert [step.t for step in steps] == [10, 11, 12]
    assert [(step.ours.won, step.other.won) for step in steps] == [(0, 0), (0, 0), (1, 1)]
    assert {step.right for step in steps} == {"B"}


def test_a_stale_value_is_called_so(steps: tuple[story.Step, ...]) -> None:
    assert steps[0].ours.retrieved == "Its active memory offers **A**. It no longer holds."
    assert steps[0].ours.did == "It follows that and uses **A**."
    assert steps[0].ours.learned == "It learns: one conflict for **A**."


def test_a_candidate_is_not_called_memory(steps: tuple[story.Step, ...]) -> None:
    assert steps[2].ours.retrieved == "Nothing is active. Its best candidate is **B**."
    assert steps[2].ours.learned == "It learns: one support for **B**."


def test_acting_against_memory_is_said(steps: tuple[story.Step, ...]) -> None:
    assert steps[2].other.did == "It uses **B**, against its memory."


def test_the_other_ones_memory_is_told_by_its_size(steps: tuple[story.Step, ...]) -> None:
    assert steps[1].other.learned == "Nothing changes: its 5 memories stay as they are, all of them active."
    assert steps[2].other.learned == "It stores one more: 6 memories, all of them active."


def test_a_change_of_state_stands_at_its_task(steps: tuple[story.Step, ...]) -> None:
    assert [len(step.changes) for step in steps] == [0, 1, 0]
    (change,) = steps[1].changes
    assert (change.transition_id, change.precedent_id) == ("p1.3", "p1")
    assert change.words == "**A** goes from Active to **Revoked**."


def test_the_table_holds_every_task(steps: tuple[story.Step, ...]) -> None:
    table = story.table(steps)
    assert table["task"].tolist() == [10, 11, 12]
    assert table["TEPA"].tolist() == ["failure", "failure", "success"]
    assert table["what changed"].tolist() == ["", "A goes from Active to Revoked", ""]


def test_the_opening_says_what_changed_in_the_world() -> None:
    assert "what works goes from **A** to **B**" in story.opening(TRUTH, "reversal", 10)
    assert "goes from" not in story.opening(TRUTH, "light", 12)


def test_texts_of_a_stream_are_never_markdown() -> None:
    rows = OURS.assign(action="**x** $y$", retrieved=None, followed=None)
    (step, *_) = story.tell(rows, OTHER, EVIDENCE, TRANSITIONS, TRUTH, 10, 13)
    assert "\\*\\*x\\*\\* \\$y\\$" in step.ours.did


def test_two_methods_must_have_played_the_same_tasks() -> None:
    with pytest.raises(ValueError, match="same tasks"):
        story.tell(OURS, OTHER.head(2), EVIDENCE, TRANSITIONS, TRUTH, 10, 13)
