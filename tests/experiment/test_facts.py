"""The fact stream: what is known of the published sets, the same on our own small files, and each column by hand."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tepa_core.experiment.answer_backends import Usage
from tepa_core.experiment.facts import (
    ANSWERED,
    ATTRIBUTIONS,
    CHAIN_NOT_FOUND,
    DETERMINISTIC,
    FACT_METHODS,
    MULTI_HOP,
    NEVER_STATED,
    STATE_WRONG,
    FactResult,
    FactSpec,
    coin,
    newest,
    oldest,
    question_order,
    reader_success,
    run_facts,
)
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.methods import METHODS
from tepa_core.streams.fact_file import FactFile, fact_file, read_fact_file
from tests import shared_data

ROOT = Path(__file__).parents[2]
PUBLISHED = shared_data.FOLDER / "factconsolidation"
published = shared_data.needs("factconsolidation")

ONE_VALUE = ("tepa", "last_write_wins")
ALL_VALUES = ("tepa_norev", "append_only")


def official(name: str) -> FactFile:
    return read_fact_file(PUBLISHED / f"factconsolidation_{name}.json")


@pytest.fixture(scope="module")
def small() -> FactFile:
    return read_fact_file(ROOT / "data" / "facts_small.json")


@pytest.fixture(scope="module")
def small_result(small: FactFile) -> FactResult:
    return run_facts(small, FactSpec.build(small))


@pytest.fixture(scope="module")
def chained() -> FactResult:
    facts = read_fact_file(ROOT / "data" / "facts_small_multihop.json")
    return run_facts(facts, FactSpec.build(facts))


def made(
    *statements: str, ask: Sequence[tuple[str, str]] = (("What is the capital of Verrin?", "Lindhaven"),)
) -> FactFile:
    context = "\n".join(f"{number}. {statement}" for number, statement in enumerate(statements))
    questions, answers = [text for text, _ in ask], [[gold] for _, gold in ask]
    return fact_file({"context": context, "questions": questions, "answers": answers}, "made")


def success(result: FactResult) -> dict[str, float]:
    return result.episodes.groupby("method")["success"].mean().to_dict()


# --- the readers alone


@published
@pytest.mark.parametrize(("name", "expected"), [("sh_6k", 1.00), ("sh_32k", 0.98), ("sh_262k", 0.97)])
def test_the_newest_value_is_right_but_for_errors_of_the_published_answers(name: str, expected: float) -> None:
    assert reader_success(official(name), newest) == pytest.approx(expected)


@published
def test_first_wins_and_the_coin_on_the_smallest_set() -> None:
    facts = official("sh_6k")
    assert reader_success(facts, oldest) == pytest.approx(0.26)
    # 26 questions on settled keys and half of 74: 63 expected; four standard deviations of 100 orders are 0.017.
    over_orders = [reader_success(facts, coin, seed) for seed in range(100)]
    assert np.mean(over_orders) == pytest.approx(0.63, abs=0.02)


def test_the_readers_on_the_small_file(small: FactFile) -> None:
    # 14 of the 20 questions ask for a key with two values.
    assert reader_success(small, newest) == 1.0
    assert reader_success(small, oldest) == pytest.approx(6 / 20)
    assert np.mean([reader_success(small, coin, seed) for seed in range(200)]) == pytest.approx(13 / 20, abs=0.03)


def test_a_file_without_single_key_questions_has_no_reader_success() -> None:
    assert np.isnan(reader_success(made("The capital of Verrin is Ostmar.", ask=[("Why?", "x")]), newest))


# --- runs


@published
def test_methods_on_the_smallest_published_set() -> None:
    facts = official("sh_6k")
    result = run_facts(facts, FactSpec.build(facts))
    rates = success(result)
    for method in ONE_VALUE:
        assert rates[method] == 1.0
    for method in ALL_VALUES:
        # Reported with a language model: norev 0.630, append_only 0.583.
        assert 0.55 <= rates[method] <= 0.71
    assert rates["no_memory"] == 0
    size = result.episodes.groupby("method")["size"].unique().map(list).to_dict()
    assert (size["tepa"], size["tepa_norev"], size["append_only"]) == ([294], [455], [455])
    exposed = result.episodes.groupby("method")["exposed"].mean()
    assert exposed["tepa"] == 0
    assert exposed["append_only"] == pytest.approx(0.74)


@published
def test_tepa_on_the_middle_published_set() -> None:
    facts = official("sh_32k")
    assert success(run_facts(facts, FactSpec.build(facts, methods=ONE_VALUE, orders=1))) == {
        "tepa": pytest.approx(0.98),
        "last_write_wins": pytest.approx(0.98),
    }


@published
def test_through_several_relations_the_state_is_right_and_the_chain_is_not_found() -> None:
    facts = official("mh_6k")
    result = run_facts(facts, FactSpec.build(facts, methods=("tepa", "append_only", "no_memory"), orders=1))
    counts = result.attribution.groupby("method")["attribution"].value_counts().unstack(fill_value=0)
    assert counts.loc["tepa", [ANSWERED, CHAIN_NOT_FOUND]].sum() == 98
    assert counts.loc["tepa", STATE_WRONG] == 2
    assert counts.loc["append_only", [ANSWERED, CHAIN_NOT_FOUND]].sum() == 100
    assert counts.loc["no_memory", STATE_WRONG] == 100


def test_methods_on_the_small_file(small_result: FactResult) -> None:
    rates = success(small_result)
    assert {rates[method] for method in ONE_VALUE} == {1.0}
    # Both values are in play, and the coin is the same for both methods.
    assert rates["append_only"] == rates["tepa_norev"]
    assert 6 / 20 < rates["append_only"] < 1
    assert rates["no_memory"] == 0
    assert small_result.usage == Usage(0, 0)
    assert small_result.attribution.empty
    size = small_result.episodes.groupby("method")["size"].first()
    assert (size["tepa"], size["append_only"], size["no_memory"], size["sliding_window"]) == (40, 62, 0, 40)


def test_every_method_answers_every_question_once_per_order(small: FactFile, small_result: FactResult) -> None:
    episodes = small_result.episodes
    assert episodes["method"].unique().tolist() == list(FACT_METHODS)
    assert len(episodes) == len(FACT_METHODS) * 3 * 20
    assert set(episodes["phase"]) == {"questions"}
    for (_, seed), asked in episodes.groupby(["method", "seed"]):
        assert asked["t"].tolist() == list(range(20))
        assert asked["key"].tolist() == [small.questions[n].key for n in question_order(20, seed)]
    placed = small_result.questions
    assert placed.columns.tolist() == ["seed", "t", "question", "text", "gold"]
    for _, order in placed.groupby("seed"):
        assert sorted(order["question"]) == list(range(20))
    assert placed.loc[placed["question"] == 7, "gold"].unique().tolist() == ["Port Sable, N.H. | Port Sable"]
    assert len({tuple(order["question"]) for _, order in placed.groupby("seed")}) == 3


def test_what_was_retrieved_followed_and_exposed(small_result: FactResult) -> None:
    asked = small_result.episodes.query("key == 'capital · Verrin' and seed == 0").set_index("method")
    assert asked.loc["append_only", "retrieved"] == "Ostmar | Lindhaven"
    assert asked.loc["tepa", "retrieved"] == asked.loc["tepa", "followed"] == asked.loc["tepa", "action"] == "Lindhaven"
    assert (asked.loc["append_only", "exposed"], asked.loc["tepa", "exposed"]) == (True, False)
    assert asked["retrieved"].isna()["no_memory"]
    assert asked["followed"].isna()["no_memory"]
    assert asked.loc["no_memory", "action"] == ""
    settled = small_result.episodes.query("key == 'continent · Verrin'")
    assert not settled["exposed"].any()


def test_evidence_is_each_fact_once_for_each_method_with_a_lifecycle(small: FactFile, small_result: FactResult) -> None:
    evidence = small_result.evidence
    assert evidence.columns.tolist() == ["method", "seed", "seq", "t", "key", "value", "supports", "text", "source_ref"]
    assert set(evidence["method"]) == {"tepa", "tepa_norev"}
    lane = evidence[evidence["method"] == "tepa"]
    assert lane["t"].tolist() == lane["seq"].tolist() == list(range(62))
    assert lane["text"].tolist() == [fact.sentence for fact in small.facts]
    assert lane["source_ref"].tolist() == [f"fact {fact.number}" for fact in small.facts]
    assert lane["key"].tolist() == [fact.key for fact in small.facts]
    assert lane["supports"].all()
    assert set(lane["seed"]) == {0}


def test_attribution_on_the_small_file(chained: FactResult) -> None:
    assert set(chained.episodes["key"]) == {MULTI_HOP}
    assert set(chained.attribution["attribution"]) <= set(ATTRIBUTIONS)
    assert len(chained.attribution) == len(FACT_METHODS) * 3 * 10
    first = chained.attribution[chained.attribution["seed"] == 0]
    why = {method: rows.set_index("question")["attribution"] for method, rows in first.groupby("method")}
    # Question 8 has the overwritten value for an answer, question 9 one that is nowhere stated.
    assert why["tepa"][8] == why["last_write_wins"][8] == STATE_WRONG
    assert why["append_only"][8] == CHAIN_NOT_FOUND
    assert all(reasons[9] == NEVER_STATED for reasons in why.values())
    assert set(why["tepa"].drop([8, 9])) <= {ANSWERED, CHAIN_NOT_FOUND}
    assert set(why["no_memory"].drop(9)) == {STATE_WRONG}
    answered = chained.episodes.groupby("method")["success"].sum()
    counted = (chained.attribution["attribution"] == ANSWERED).groupby(chained.attribution["method"]).sum()
    assert answered.to_dict() == counted.to_dict()


def test_a_question_through_several_relations_gets_the_closest_active_fact() -> None:
    facts = made(
        "Harbor Nine was created by Pell Arden.",
        "The author of The Salt Ledger is Maren Tolk.",
        "The author of The Salt Ledger is Edda Kroll.",
        "The capital of Casteron is Fennick.",
        ask=[("Which author wrote the famous Salt Ledger?", "Edda Kroll"), ("Why zzz?", "x")],
    )
    result = run_facts(facts, FactSpec.build(facts, methods=("tepa", "append_only"), orders=1))
    asked = result.episodes.merge(result.questions, on=["seed", "t"]).query("question == 0").set_index("method")
    assert asked["key"].unique().tolist() == [MULTI_HOP]
    assert asked.loc["tepa", "retrieved"] == "Edda Kroll"
    # Both sentences are equally close: the newer is the answer.
    assert asked.loc["append_only", "retrieved"] == "Maren Tolk | Edda Kroll"
    assert asked["action"].tolist() == ["Edda Kroll", "Edda Kroll"]
    assert asked["exposed"].to_dict() == {"tepa": False, "append_only": True}
    assert result.attribution.query("question == 0")["attribution"].tolist() == [ANSWERED, ANSWERED]
    no_word_in_common = result.episodes.merge(result.questions, on=["seed", "t"]).query("question == 1")
    assert no_word_in_common["retrieved"].isna().all()


def test_top_k_bounds_what_comes_back() -> None:
    facts = made(
        *(f"Boat {n} was created by Maker {n}." for n in range(9)), ask=[("Name one boat somebody created!", "x")]
    )
    for top_k in (1, 4):
        result = run_facts(facts, FactSpec.build(facts, methods=["append_only"], orders=1, top_k=top_k))
        assert result.episodes["retrieved"][0].split(" | ") == [f"Maker {n}" for n in range(9 - top_k, 9)]


def test_a_value_stated_again_is_the_newest_and_returns() -> None:
    facts = made(
        "The capital of Verrin is Lindhaven.",
        "The capital of Verrin is Ostmar.",
        "The capital of Verrin is Lindhaven.",
        "The capital of Verrin is Lindhaven.",
    )
    result = run_facts(facts, FactSpec.build(facts, methods=("tepa", "append_only"), orders=1))
    asked = result.episodes.set_index("method")
    assert asked.loc["tepa", "retrieved"] == "Lindhaven"
    assert asked.loc["append_only", "retrieved"] == "Ostmar | Lindhaven"
    assert reader_success(facts, newest) == 1.0
    assert reader_success(facts, oldest) == 0.0


def test_the_default_thresholds_hold_no_fact_that_is_stated_once(small: FactFile) -> None:
    spec = FactSpec.build(small, methods=["tepa"], thresholds=PRESETS["default"], orders=1)
    result = run_facts(small, spec)
    assert result.episodes["size"].unique().tolist() == [0]
    assert not result.episodes["success"].any()


def test_the_same_spec_gives_the_same_tables(small: FactFile, small_result: FactResult) -> None:
    again = run_facts(small, small_result.spec)
    assert again.episodes.equals(small_result.episodes)
    assert again.evidence.equals(small_result.evidence)


def test_progress_reaches_the_end_and_can_stop_a_run(small: FactFile) -> None:
    seen: list[float] = []
    run_facts(small, FactSpec.build(small, methods=["tepa"]), progress=lambda done, _: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0

    def stop(done: float, sentence: str) -> None:
        raise KeyboardInterrupt(sentence)

    with pytest.raises(KeyboardInterrupt, match="tepa: order 1 of 3, question 10"):
        run_facts(small, FactSpec.build(small, methods=["tepa"]), progress=stop)


# --- a backend


class Parrot:
    """Says the last sentence that it is given."""

    id = "parrot"

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    @property
    def usage(self) -> Usage:
        return Usage(len(self.asked), 2 * len(self.asked))

    def answer(self, question: str, facts: Sequence[str]) -> str:
        self.asked.append((question, tuple(facts)))
        return facts[-1] if facts else "no idea"


def test_a_backend_gets_numbered_sentences_and_its_words_are_scored(small: FactFile) -> None:
    parrot = Parrot()
    parrot.answer("before the run", [])
    methods = ("append_only", "no_memory")
    result = run_facts(small, FactSpec.build(small, methods=methods, orders=2, backend="parrot"), parrot)
    numbers = {fact.sentence: fact.number for fact in small.facts}
    old, new = (f"The capital of Verrin is {city}." for city in ("Ostmar", "Lindhaven"))
    assert ("What is the capital of Verrin?", (f"{numbers[old]}. {old}", f"{numbers[new]}. {new}")) in parrot.asked
    asked = result.episodes.query("key == 'capital · Verrin' and seed == 1").set_index("method")
    assert asked.loc["append_only", "action"] == f"{numbers[new]}. {new}"
    assert asked.loc["append_only", "followed"] == "Lindhaven"
    assert asked["success"].to_dict() == {"append_only": True, "no_memory": False}
    assert asked.loc["no_memory", "action"] == "no idea"
    # Two methods, two orders, twenty questions; what it was asked before does not count.
    assert result.usage == Usage(80, 160)


def test_a_run_refuses_another_backend_or_file_than_its_spec_names(small: FactFile) -> None:
    with pytest.raises(ValueError, match="asks deterministic for answers, not parrot"):
        run_facts(small, FactSpec.build(small), Parrot())
    with pytest.raises(ValueError, match="asks parrot for answers, not deterministic"):
        run_facts(small, FactSpec.build(small, backend="parrot"))
    with pytest.raises(ValueError, match="about another file than this made"):
        run_facts(made("The capital of Verrin is Ostmar."), FactSpec.build(small))


# --- the spec


def test_a_spec_round_trips_and_its_id_follows_its_content(small: FactFile) -> None:
    spec = FactSpec.build(
        small, methods=["append_only", "tepa"], orders=5, top_k=3, thresholds=Thresholds(theta_prop=2)
    )
    assert spec.methods == ("tepa", "append_only")
    assert FactSpec.from_dict(json.loads(json.dumps(spec.as_dict()))) == spec
    assert spec.run_id.startswith("facts-facts-small-")
    assert spec.run_id != FactSpec.build(small).run_id
    default = FactSpec.build(small)
    assert (default.thresholds, default.orders, default.backend, default.top_k) == (
        PRESETS["direct_facts"],
        3,
        DETERMINISTIC,
        10,
    )
    assert default.methods == FACT_METHODS
    assert set(METHODS) - set(FACT_METHODS) == {entry.id for entry in METHODS.values() if entry.trials}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"methods": ["tepa", "magic"]}, "magic: no such method; the methods are tepa,"),
        ({"methods": []}, "choose at least one method"),
        ({"orders": 0}, "orders must be from 1 to 100, not 0"),
        ({"top_k": 0}, "top_k must be from 1 to 1000, not 0"),
    ],
)
def test_a_spec_refuses_what_cannot_run(small: FactFile, asked: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        FactSpec.build(small, **asked)


def test_a_method_that_validates_by_trials_is_refused(small: FactFile, monkeypatch: pytest.MonkeyPatch) -> None:
    on_trial = dataclasses.replace(METHODS["tepa"], id="on_trial", trials=True)
    monkeypatch.setattr("tepa_core.experiment.facts.METHODS", {**METHODS, "on_trial": on_trial})
    with pytest.raises(
        ValueError, match="on_trial validates by trials, and a fact file has none; the methods are tepa,"
    ):
        FactSpec.build(small, methods=["tepa", "on_trial"])
