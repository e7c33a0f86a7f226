"""The 44 relations of FactConsolidation: the grammar that its facts and questions are written in.

A cloze form has a subject ``[X]`` and a value ``__``; a question form has the subject alone. Both are part of the file
format, its misspellings ("univeristy", "origianl") included: a corrected form would match no file.

References
----------
The forms are those of MQuAKE: Zhong, Wu, Manning, Potts and Chen (2023), "MQuAKE: Assessing Knowledge Editing in
Language Models via Multi-Hop Questions", MIT licence. MemoryAgentBench (Hu, Wang and McAuley 2025, arXiv 2507.05257)
writes its FactConsolidation files with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

SUBJECT: Final = "[X]"
VALUE: Final = "__"


@dataclass(frozen=True, slots=True)
class Relation:
    """What can be said of a subject.

    Attributes
    ----------
    id
        Number of the property in Wikidata.
    name
        In a word or two, for people; the same for relations with the same cloze form.
    cloze
        The sentence that states it, without its final dot.
    question
        The question that asks for it.
    """

    id: str
    name: str
    cloze: str
    question: str

    def sentence(self, subject: str, value: str) -> str:
        """Return the sentence that states a value, with its final dot."""
        before, after = self.cloze.split(SUBJECT)
        between, end = after.split(VALUE)
        return f"{before}{subject}{between}{value}{end}."

    def ask(self, subject: str) -> str:
        """Return the question for a subject."""
        before, after = self.question.split(SUBJECT)
        return f"{before}{subject}{after}"


#: In the order of the published list.
RELATIONS: Final[tuple[Relation, ...]] = (
    Relation("P17", "country", "[X] is located in the country of __", "Which country is [X] located in?"),
    Relation("P19", "place of birth", "[X] was born in the city of __", "Which city was [X] born in?"),
    Relation("P20", "place of death", "[X] died in the city of __", "Which city did [X] die in?"),
    Relation("P26", "spouse", "[X] is married to __", "Who is [X] married to?"),
    Relation("P30", "continent", "[X] is located in the continent of __", "Which continent is [X] located in?"),
    Relation("P36", "capital", "The capital of [X] is __", "What is the capital of [X]?"),
    Relation("P40", "child", "[X]'s child is __", "Who is [X]'s child?"),
    Relation("P50", "author", "The author of [X] is __", "Who is the author of [X]?"),
    Relation(
        "P69", "educated at", "The univeristy where [X] was educated is __", "Which university was [X] educated at?"
    ),
    Relation("P106", "field of work", "[X] works in the field of __", "What kind of work does [X] do?"),
    Relation("P112", "founder", "[X] was founded by __", "Who founded [X]?"),
    Relation("P127", "owner", "[X] is owned by __", "Who owns [X]?"),
    Relation("P131", "location", "[X] is located in __", "Where is [X] located?"),
    Relation("P136", "type of music", "The type of music that [X] plays is __", "What type of music does [X] play?"),
    Relation(
        "P159",
        "headquarters",
        "The headquarters of [X] is located in the city of __",
        "Which city is the headquarter of [X] located in?",
    ),
    Relation("P170", "creator", "[X] was created by __", "Who was [X] created by?"),
    Relation("P175", "performer", "[X] was performed by __", "Who performed [X]?"),
    Relation("P176", "manufacturer", "The company that produced [X] is __", "Which company is [X] produced by?"),
    Relation("P264", "record label", "[X] is represented by __", "What music label is [X] represented by?"),
    Relation("P276", "location", "[X] is located in __", "Where is [X] located?"),
    Relation(
        "P407", "language of the work", "[X] was written in the language of __", "Which language was [X] written in?"
    ),
    Relation("P413", "position played", "[X] plays the position of __", "What position does [X] play?"),
    Relation("P495", "country of origin", "[X] was created in the country of __", "Which country was [X] created in?"),
    Relation("P740", "place of foundation", "[X] was founded in the city of __", "Where was [X] founded?"),
    Relation("P800", "famous for", "[X] is famous for __", "What is [X] famous for?"),
    Relation(
        "P364", "original language", "The original language of [X] is __", "What is the original language of [X]?"
    ),
    Relation("P1412", "language spoken", "[X] speaks the language of __", "What language does [X] speak?"),
    Relation("P27", "citizenship", "[X] is a citizen of __", "What is the country of citizenship of [X]?"),
    Relation("P937", "place of work", "[X] worked in the city of __", "Which city did [X] work in?"),
    Relation("P37", "official language", "The official language of [X] is __", "What is the official language of [X]?"),
    Relation("P140", "religion", "[X] is affiliated with the religion of __", "Which religion is [X] affiliated with?"),
    Relation("P178", "developer", "[X] was developed by __", "Who is the developer of [X]?"),
    Relation("P108", "employer", "[X] is employed by __", "Who is the employer of [X]?"),
    Relation("P641", "sport", "[X] is associated with the sport of __", "Which sport is [X] associated with?"),
    Relation(
        "P190",
        "twinned body",
        "The twinned administrative body of [X] is __",
        "What is the twinned administrative body of [X]?",
    ),
    Relation("P463", "member of", "[X] is a member of __", "Which organization is [X] a member of?"),
    Relation(
        "P449",
        "original broadcaster",
        "The origianl broadcaster of [X] is __",
        "Who is the original broadcaster of [X]?",
    ),
    Relation(
        "P35",
        "head of state",
        "The name of the current head of state in [X] is __",
        "What is the name of the current head of state in [X]?",
    ),
    Relation("P286", "head coach", "The head coach of [X] is __", "Who is the head coach of [X]?"),
    Relation("P1308", "officeholder", "The [X] is __", "Who is the [X]?"),
    Relation("P488", "chairperson", "The chairperson of [X] is __", "Who is the chairperson of [X]?"),
    Relation(
        "P169",
        "chief executive officer",
        "The chief executive officer of [X] is __",
        "Who is the chief executive officer of [X]?",
    ),
    Relation("P1037", "director", "The director of [X] is __", "Who is the director of [X]?"),
    Relation(
        "P6",
        "head of government",
        "The name of the current head of the [X] government is __",
        "What is the name of the current head of the [X] government?",
    ),
)


def _conflict_relations() -> Mapping[str, Relation]:
    by_cloze: dict[str, Relation] = {}
    for relation in RELATIONS:
        by_cloze.setdefault(relation.cloze, relation)
    return MappingProxyType({relation.id: by_cloze[relation.cloze] for relation in RELATIONS})


#: The relation that stands for each id in conflict keys: the first with the same cloze form. Sentences with one form
#: cannot be told apart (P131 and P276), so they speak of one key.
CONFLICT_RELATION: Final = _conflict_relations()


def _pattern(form: str) -> re.Pattern[str]:
    literal = re.escape(form).replace(re.escape(SUBJECT), "(?P<subject>.+?)").replace(VALUE, "(?P<value>.+)")
    return re.compile(literal, re.DOTALL)


def _longest_literal_first(forms: Mapping[str, Relation]) -> tuple[tuple[re.Pattern[str], Relation], ...]:
    """Compile forms so that the most specific is tried first: "The capital of [X] is __" before "The [X] is __"."""
    ordered = sorted(forms, key=lambda form: len(form.replace(SUBJECT, "").replace(VALUE, "")), reverse=True)
    return tuple((_pattern(form), forms[form]) for form in ordered)


_CLOZE_PATTERNS: Final = _longest_literal_first({relation.cloze: relation for relation in CONFLICT_RELATION.values()})
_QUESTION_PATTERNS: Final = _longest_literal_first(
    {relation.question: CONFLICT_RELATION[relation.id] for relation in RELATIONS}
)


def parse_sentence(sentence: str) -> tuple[Relation, str, str] | None:
    """Read a fact by the template with the longest literal that fits.

    Parameters
    ----------
    sentence
        One final dot is dropped; what stands before it belongs to the value ("Apple Inc.." states "Apple Inc.").

    Returns
    -------
    tuple of Relation, str, str, or None
        The relation of the conflict key, the subject and the value; None when no template fits.

    Examples
    --------
    >>> relation, subject, value = parse_sentence("Cessna was founded in the city of Washington, D.C..")
    >>> relation.name, subject, value
    ('place of foundation', 'Cessna', 'Washington, D.C.')
    """
    stated = sentence.removesuffix(".")
    for pattern, relation in _CLOZE_PATTERNS:
        found = pattern.fullmatch(stated)
        if found is not None:
            return relation, found["subject"], found["value"]
    return None


def question_readings(question: str) -> tuple[tuple[Relation, str], ...]:
    """Return every (relation of the conflict key, subject) that a template reads in a question, best first.

    A question through several relations fits a template as well, with a phrase in the place of the subject ("Who is the
    [spouse of the author of Emma]?"). Only what a file states tells a subject from such a phrase.

    Examples
    --------
    >>> [(relation.name, subject) for relation, subject in question_readings("Who is the author of Emma?")]
    [('author', 'Emma'), ('officeholder', 'author of Emma')]
    """
    readings = []
    for pattern, relation in _QUESTION_PATTERNS:
        found = pattern.fullmatch(question)
        if found is not None:
            readings.append((relation, found["subject"]))
    return tuple(readings)
