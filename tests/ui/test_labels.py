"""Labels of options: no two alike, whatever the texts are, and what tells them apart stands in them."""

from __future__ import annotations

import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

from tepa_core.experiment.facts import DETERMINISTIC
from tepa_core.figures.theme import method_label
from tepa_core.methods import METHODS
from tepa_core.streams import STREAMS
from tepa_core.ui import archive_table, decide_form, fact_form, import_steps, labels
from tepa_core.ui.text import plain_text

#: Texts that collide often: few letters, blanks, what nobody sees, and numbers as this module adds them.
TEXTS = st.text(alphabet=list("ab \n\u200b\u00ad()12·ée\u0301"), max_size=5)
STARTED = pd.Timestamp("2026-03-01T09:00:10Z")


def seen(text: str) -> str:
    """What is left of a label for the eye, by another way than the module's: letters and signs in their order."""
    return " ".join("".join(one for one in text if one not in "\u200b\u00ad").replace("e\u0301", "é").split())


@given(st.lists(TEXTS, max_size=8), st.lists(TEXTS, min_size=8, max_size=8))
@example(["seat", "seat", "seat (1)"], [""] * 8)
@example(["seat (1)", "seat", "seat", "seat (1)"], [""] * 8)
@example(["a", "a · b", "a"], ["b", "c", "", "", "", "", "", ""])
def test_any_texts_stay_as_many_options(texts: list[str], details: list[str]) -> None:
    made = labels.told_apart(dict(enumerate(texts)), dict(enumerate(details)))
    assert list(made) == list(range(len(texts)))
    assert len({seen(text) for text in made.values()}) == len(texts)
    assert all(made[number].startswith(text) for number, text in enumerate(texts))


@given(st.lists(TEXTS, max_size=6), st.integers(0, 3))
def test_any_runs_of_equal_names_and_times_stay_as_many_options(names: list[str], apart: int) -> None:
    listed = pd.DataFrame(
        {
            "run_id": [f"log-{number}" for number in range(len(names))],
            "name": names,
            "created_at": [STARTED + pd.Timedelta(seconds=apart * number) for number in range(len(names))],
        }
    )
    assert len({seen(text) for text in labels.of_runs(listed).values()}) == len(names)


def test_runs_of_one_name_are_told_apart_by_what_differs() -> None:
    listed = pd.DataFrame(
        {
            "run_id": ["log-c", "log-b", "log-a", "log-0", "log-x"],
            "name": ["export.csv"] * 4 + ["other.csv"],
            "created_at": [STARTED + pd.Timedelta(seconds=n) for n in (90_000, 5, 0, 0, 0)],
        }
    )
    assert labels.of_runs(listed) == {
        "log-c": "export.csv · 02 Mar 2026, 10:00",
        "log-b": "export.csv · 01 Mar 2026, 09:00 · 09:00:15",
        "log-a": "export.csv · 01 Mar 2026, 09:00 · 09:00:10 · log-a",
        "log-0": "export.csv · 01 Mar 2026, 09:00 · 09:00:10 · log-0",
        "log-x": "other.csv",
    }


def test_texts_that_markdown_makes_alike_stay_two() -> None:
    # Both are shortened to the same eighty characters.
    long = ["x" * 100, "x" * 100 + "y"]
    assert len(set(labels.of_names(long, plain_text).values())) == 2


def test_every_fixed_list_has_words_of_its_own_for_each_option() -> None:
    for words in (
        [method_label(name) for name in METHODS],
        [spec.title for spec in STREAMS.values()],
        list(decide_form.CATEGORIES.values()),
        [label for label, *_ in decide_form.VERBS.values()],
        list(archive_table.SHOW.values()),
        list(archive_table.REVIEW.values()),
        list(archive_table.ORDERS.values()),
        list(archive_table.RULES.values()),
        [label for label, _ in import_steps.PRESET_WORDS.values()],
        list(fact_form.ANSWERER_WORDS.values()),
    ):
        assert len(set(words)) == len(words) > 1
    assert DETERMINISTIC in fact_form.ANSWERER_WORDS
