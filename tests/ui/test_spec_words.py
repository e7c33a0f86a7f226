"""What runs are made of and how they differ, in words."""

from __future__ import annotations

import dataclasses

from tepa_core.experiment import FactSpec, RunSpec
from tepa_core.lifecycle import PRESETS
from tepa_core.ui import spec_words

FACTS = FactSpec("some_facts", "d" * 64)


def plain(words: str) -> str:
    return words.replace("\\", "").replace("\u2060", "")


def test_simulated_run_is_told_by_its_seeds() -> None:
    spec = RunSpec.build("preference", seeds=4, first_seed=2, methods=["tepa", "no_memory"])
    assert (
        plain(spec_words.made_of(spec, {"tasks": 160})) == "Preference drift, seeds 2 to 5, 160 tasks each, 2 methods"
    )
    one = dataclasses.replace(spec, seeds=1, methods=("tepa",))
    assert plain(spec_words.made_of(one, {"tasks": 160})) == "Preference drift, seed 2, 160 tasks each, 1 method"


def test_fact_run_is_told_by_its_file_and_who_answers() -> None:
    counts = {"facts": 62, "tasks": 20}
    assert plain(spec_words.made_of(FACTS, counts)) == (
        "Fact consolidation, file some_facts, 62 facts, 20 questions in 3 orders, 12 methods, answered by the "
        "deterministic reader"
    )
    asked = dataclasses.replace(FACTS, backend="chat:Some-Model", orders=1)
    assert plain(spec_words.made_of(asked, counts)).endswith(
        "one order, 12 methods, answered by the language model Some-Model"
    )


def test_choices_name_what_is_assumed_and_changed() -> None:
    assumed, settings = spec_words.choices(FACTS)
    assert "throws a coin among several" in assumed
    assert plain(settings) == "Settings: all at their defaults."
    changed = dataclasses.replace(FACTS, thresholds=PRESETS["direct_facts"].changed({"n_rec": 3}), top_k=5)
    assert plain(spec_words.choices(changed)[1]) == "Settings: n_rec = 3, top_k = 5."
    drift = RunSpec.build("controlled", seeds=7, world={"key_noise": 0.2})
    assert spec_words.choices(drift)[0].startswith("Without an Active precedent TEPA tries the best candidate")
    assert plain(spec_words.choices(drift)[1]) == "Settings: key_noise = 0.2."


def test_differences_name_both_sides() -> None:
    a = RunSpec.build("controlled", seeds=5)
    b = RunSpec.build("controlled", seeds=6, methods=["tepa"], world={"key_noise": 0.2})
    told = plain(spec_words.differences(a, b))
    assert "seeds 5 here and 6 there" in told
    assert "key_noise default here and 0.2 there" in told
    assert f"methods {len(a.methods)} here and 1 there" in told
    assert spec_words.differences(a, a) == "nothing but the version of the program"


def test_differences_of_fact_runs_tell_the_files_apart() -> None:
    renamed = dataclasses.replace(FACTS, name="others", digest="e" * 64, orders=5)
    assert plain(spec_words.differences(FACTS, renamed)) == (
        "file some_facts here and others there; orders 3 here and 5 there"
    )
    edited = dataclasses.replace(FACTS, digest="e" * 64)
    assert plain(spec_words.differences(FACTS, edited)) == "content of the file not the same"
