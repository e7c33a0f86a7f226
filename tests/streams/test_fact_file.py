"""Fact files: the published sets where they are at hand, our own small one always, and what is refused."""

from __future__ import annotations

import importlib.util
import json
from collections import defaultdict
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tepa_core.streams.fact_file import Fact, FactFile, FactFileError, fact_file, read_fact_file
from tepa_core.streams.templates import CONFLICT_RELATION, RELATIONS, parse_sentence, question_readings
from tests import shared_data
from tests.work import work_of

ROOT = Path(__file__).parents[2]
DATA = ROOT / "data"
PUBLISHED = shared_data.FOLDER / "factconsolidation"
published = shared_data.needs("factconsolidation")


def values_by_key(facts: FactFile) -> dict[str, set[str]]:
    values: dict[str, set[str]] = defaultdict(set)
    for fact in facts.facts:
        values[fact.key].add(fact.value)
    return values


def document(**changes: Any) -> dict[str, Any]:
    content = {
        "context": (
            "Here is a list of facts:\n0. The capital of Verrin is Ostmar.\n1. The capital of Verrin is Lindhaven.\n"
        ),
        "questions": ["What is the capital of Verrin?"],
        "answers": [["Lindhaven"]],
        "metadata": {},
    }
    return {**content, **changes}


# --- the grammar


def test_there_are_44_relations_and_only_one_pair_shares_a_form() -> None:
    assert len(RELATIONS) == len({relation.id for relation in RELATIONS}) == 44
    assert {i for i, relation in CONFLICT_RELATION.items() if relation.id != i} == {"P276"}
    assert CONFLICT_RELATION["P276"].id == "P131"


def test_a_name_stands_for_one_form_so_that_key_texts_do_not_collide() -> None:
    by_name: dict[str, set[str]] = defaultdict(set)
    for relation in RELATIONS:
        by_name[relation.name].add(relation.cloze)
    assert all(len(forms) == 1 for forms in by_name.values())
    assert not any("·" in name for name in by_name)


@published
def test_the_forms_are_the_published_ones() -> None:
    cloze = json.loads((PUBLISHED / "cloze_templates.json").read_text(encoding="utf-8"))
    question = json.loads((PUBLISHED / "question_templates.json").read_text(encoding="utf-8"))
    assert {relation.id: relation.cloze for relation in RELATIONS} == cloze
    assert {relation.id: relation.question for relation in RELATIONS} == question


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.id)
def test_what_a_relation_writes_is_read_back(relation: Any) -> None:
    meant = CONFLICT_RELATION[relation.id]
    # A dot at the end of a value and a literal of another form in it are the hard cases.
    for subject, value in (("Halden & Co.", "Port Sable, N.H."), ("(Q*x)", "The [Tern] is one"), ("S", "v")):
        assert parse_sentence(relation.sentence(subject, value)) == (meant, subject, value)
        assert question_readings(relation.ask(subject))[0] == (meant, subject)


@pytest.mark.parametrize(
    ("sentence", "name", "subject", "value"),
    [
        ("The capital of France is Paris.", "capital", "France", "Paris"),
        ("The Speaker of the House is Ivo Lantz.", "officeholder", "Speaker of the House", "Ivo Lantz"),
        ("The Hague is located in the continent of Europe.", "continent", "The Hague", "Europe"),
        ("The headquarters of X is located in the city of Y.", "headquarters", "X", "Y"),
        ("Q was founded in the city of Z", "place of foundation", "Q", "Z"),
        ("Q was founded by Z...", "founder", "Q", "Z.."),
    ],
)
def test_the_longest_literal_wins_and_one_dot_goes(sentence: str, name: str, subject: str, value: str) -> None:
    found = parse_sentence(sentence)
    assert found is not None
    assert (found[0].name, found[1], found[2]) == (name, subject, value)


@pytest.mark.parametrize("sentence", ["It rained in Ostmar.", "The capital of is", "", "."])
def test_a_sentence_without_a_form_is_not_forced_into_one(sentence: str) -> None:
    assert parse_sentence(sentence) is None


# --- the published files


@published
@pytest.mark.parametrize(
    ("name", "facts", "keys", "conflicted", "asked_conflicted"),
    [("sh_6k", 455, 294, 161, 74), ("sh_32k", 2310, None, None, None), ("sh_262k", 18332, None, None, None)],
)
def test_single_hop_files(
    name: str, facts: int, keys: int | None, conflicted: int | None, asked_conflicted: int | None
) -> None:
    found = read_fact_file(PUBLISHED / f"factconsolidation_{name}.json")
    assert (len(found.facts), found.unparsed, len(found.questions)) == (facts, (), 100)
    values = values_by_key(found)
    assert all(question.key in values for question in found.questions)
    assert {len(held) for held in values.values()} == {1, 2}
    if keys is not None:
        assert len(values) == keys
        assert sum(len(held) == 2 for held in values.values()) == conflicted
        assert sum(len(values[question.key or ""]) == 2 for question in found.questions) == asked_conflicted


@published
def test_no_multi_hop_question_is_taken_for_a_single_one() -> None:
    found = read_fact_file(PUBLISHED / "factconsolidation_mh_6k.json")
    assert len(found.facts) == 455
    assert [question.key for question in found.questions] == [None] * 100


# --- our own


def test_each_further_fact_costs_as_much_as_the_one_before() -> None:
    def made(n: int) -> dict[str, Any]:
        stated = (RELATIONS[i % 44].sentence(f"Place {i // 88}", f"Value {i}") for i in range(n))
        return document(context="\n".join(f"{i}. {sentence}" for i, sentence in enumerate(stated)))

    sizes = (1100, 2200, 4400)
    work = [work_of(partial(fact_file, made(n), "made"))[1] for n in sizes]
    earlier, later = (work[1] - work[0]) / 1100, (work[2] - work[1]) / 2200
    assert 0 < later <= 1.1 * earlier


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_facts_small", DATA / "make_facts_small.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_files_are_what_the_script_writes(tmp_path: Path) -> None:
    script().main(["--to", str(tmp_path)])
    for name in ("facts_small.json", "facts_small_multihop.json"):
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()


def test_the_small_file_is_as_its_readme_says() -> None:
    found = read_fact_file(DATA / "facts_small.json")
    values = values_by_key(found)
    assert (found.name, len(found.facts), found.unparsed, len(values)) == ("facts_small", 62, (), 40)
    assert sum(len(held) == 2 for held in values.values()) == 22
    assert len(found.questions) == 20
    assert sum(len(values[question.key or ""]) == 2 for question in found.questions) == 14
    through_several = read_fact_file(DATA / "facts_small_multihop.json")
    assert through_several.facts == found.facts
    assert [question.key for question in through_several.questions] == [None] * 10
    # A template fits one of these, with a phrase in the place of the subject.
    assert [subject for q in through_several.questions for _, subject in question_readings(q.text)] == [
        "the country that Lise Ambrey is a citizen of"
    ]


# --- shapes


def test_facts_questions_and_keys() -> None:
    found = fact_file(document(), "two")
    capital = next(relation for relation in RELATIONS if relation.id == "P36")
    assert found.facts == (
        Fact(0, capital, "Verrin", "Ostmar", "The capital of Verrin is Ostmar."),
        Fact(1, capital, "Verrin", "Lindhaven", "The capital of Verrin is Lindhaven."),
    )
    [question] = found.questions
    assert (question.number, question.golds, question.key) == (0, ("Lindhaven",), "capital · Verrin")


def test_facts_stand_in_the_order_of_their_numbers_and_gaps_are_fine() -> None:
    context = "9. The capital of Verrin is Lindhaven.\r\n\n  3. The capital of Verrin is Ostmar.  \n"
    assert [(f.number, f.value) for f in fact_file(document(context=context), "x").facts] == [
        (3, "Ostmar"),
        (9, "Lindhaven"),
    ]


def test_what_no_template_fits_is_kept_and_counted() -> None:
    context = document()["context"] + "2. It rained in Ostmar.\n"
    found = fact_file(document(context=context), "x")
    assert [(s.number, s.sentence) for s in found.unparsed] == [(2, "It rained in Ostmar.")]
    assert len(found.facts) == 2


def test_a_question_about_a_subject_that_the_file_never_names_has_no_key() -> None:
    questions = ["What is the capital of the country where net-row was created?", "Why?"]
    found = fact_file(document(questions=questions, answers=[["Lindhaven"], ["no"]]), "x")
    assert [question.key for question in found.questions] == [None, None]


def test_a_known_subject_asked_for_an_unstated_relation_keeps_its_key() -> None:
    found = fact_file(document(questions=["What is the official language of Verrin?"]), "x")
    assert found.questions[0].key == "official language · Verrin"


def test_the_digest_depends_on_the_content_alone(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(document()), encoding="utf-8")
    (tmp_path / "b.json").write_text("\ufeff" + json.dumps([document()], indent=3), encoding="utf-8")
    a, b = read_fact_file(tmp_path / "a.json"), read_fact_file(tmp_path / "b.json")
    assert (a.name, b.name) == ("a", "b")
    assert a.digest == b.digest != fact_file(document(answers=[["Ostmar"]]), "a").digest


@pytest.mark.parametrize("form", ["list", "lines"])
def test_several_objects_in_one_file(tmp_path: Path, form: str) -> None:
    several = [document(), document(answers=["Ostmar"]), document(answers=[["a", "b"]])]
    path = tmp_path / "many.json"
    text = json.dumps(several) if form == "list" else "\n".join(json.dumps(each) for each in several) + "\n"
    path.write_text(text, encoding="utf-8")
    assert [read_fact_file(path, i).questions[0].golds for i in range(3)] == [("Lindhaven",), ("Ostmar",), ("a", "b")]
    assert read_fact_file(path, 2).name == "many[2]"
    with pytest.raises(FactFileError, match=r"many\.json holds 3 objects, 0 to 2; there is no number 3"):
        read_fact_file(path, 3)
    with pytest.raises(FactFileError, match="there is no number -1"):
        read_fact_file(path, -1)


# --- refusals: each says what is wrong and what to do


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (document(context=7), "context is a number"),
        (document(context="no facts here"), "context has no numbered fact"),
        (document(context="0. A\nand more"), 'line 2 of context has no number: "and more"'),
        (document(context="0. A\n0. B"), "line 2 of context: a fact 0 stands above"),
        (document(context="1234567890123456789. The capital of X is Y."), "context has no numbered fact"),
        (document(context="0. It rained."), "none of 1 sentences has a form of FactConsolidation"),
        (document(context="0. The capital of \ud800 is Y."), "half a character"),
        (document(questions="What?"), "questions is a text; it must be a list of texts"),
        (document(questions=[1]), "must be a list of texts"),
        (document(questions=[], answers=[]), "there is nothing to ask"),
        (document(questions=["\udfff?"]), "questions, number 0, holds half a character"),
        (document(answers={"0": "x"}), "answers is an object"),
        (document(answers=[]), "1 questions but answers to 0"),
        (document(answers=[[]]), "at least one right answer"),
        (document(answers=[None]), "the answers to question 0 are null"),
        (document(answers=[["  "]]), "at least one right answer"),
        (document(answers=[["\ud800"]]), "answers, number 0, holds half a character"),
        ({"context": "0. A"}, "questions and answers missing"),
        ([], "found a list"),
        (None, "found null"),
    ],
)
def test_another_shape_is_refused(content: object, says: str) -> None:
    with pytest.raises(FactFileError) as refusal:
        fact_file(content, "x")
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "f.json is empty"),
        (b" \n ", "f.json is empty"),
        (b"[]", "f.json is an empty list"),
        (b"{not json", "f.json is no JSON"),
        (b'{\n "context": \n', "f.json is no JSON"),
        (b'{"context": ""}\n{oops}\n', "f.json, line 2 is no JSON object"),
        (b"\xff\xfe\x00", "f.json is no UTF-8 text (byte 0)"),
        (b"[" * 100_000, "f.json is nested too deeply"),
        (b'{"questions": []}', "f.json: context and answers missing"),
        (b"3", "f.json: found a number"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(raw)
    with pytest.raises(FactFileError) as refusal:
        read_fact_file(path)
    assert says in str(refusal.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(FactFileError, match=r"cannot be read: .+ Name a file that exists"):
            read_fact_file(path)
