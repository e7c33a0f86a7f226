"""What trials found, in words."""

from __future__ import annotations

import pandas as pd

from tepa_core.ui import trial_words


def trials(*rows: tuple[int, str, str, bool]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["t", "value", "kind", "success"])
    frame.insert(2, "number", frame.groupby(["t", "value"]).cumcount())
    return frame


HELD = trials(
    (8, "b", "support", False),
    (8, "b", "counterfactual", True),
    (8, "b", "contamination", False),
    (9, "b", "support", True),
    (9, "b", "counterfactual", False),
    (9, "b", "contamination", True),
    (9, "a", "support", True),
)


def test_activation_tells_each_kind_of_trial_of_its_value() -> None:
    assert trial_words.of_activation(HELD, "b", 9) == (
        "3 trials at this task: support succeeded, counterfactual harmed, contamination none."
    )
    assert trial_words.of_activation(HELD, "a", 9) == "1 trial at this task: support succeeded."
    assert trial_words.of_activation(HELD, "a", 8) == ""


def test_more_trials_of_a_kind_are_counted() -> None:
    six = trials(*[(1, "a", kind, n != 1) for n in range(2) for kind in ("support", "contamination")])
    assert trial_words.of_activation(six, "a", 1) == (
        "4 trials at this task: support succeeded in 1 of 2, contamination free in 1 of 2."
    )


def test_refusals_name_their_tasks_and_the_last_trials() -> None:
    assert trial_words.of_refusals(HELD, "b", [8]) == (
        "At task 8 it had support enough to become active and did not pass: support failed, counterfactual unharmed, "
        "contamination found."
    )
    assert trial_words.of_refusals(HELD, "b", [2, 8]).startswith("At tasks 2 and 8 it had support enough to become ")
    assert "did not pass; the last time: support failed" in trial_words.of_refusals(HELD, "b", [2, 8])
    assert trial_words.of_refusals(HELD, "b", []) == ""
