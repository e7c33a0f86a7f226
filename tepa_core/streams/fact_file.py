"""FactConsolidation files: numbered facts of which the later hold, and questions about them (paper section 5.4)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from tepa_core.inert import one_line
from tepa_core.streams.templates import Relation, parse_sentence, question_readings

#: Said with every complaint about the shape of a file.
EXPECTED: Final = (
    'expected is an object with "context" (a text with one fact per line: "0. Some sentence."), "questions" (a list of '
    'texts) and "answers" (for each question a list of right answers)'
)

# Eighteen digits fit a 64-bit clock.
_NUMBERED = re.compile(r"\s*([0-9]{1,18})\.\s+(\S.*)")


class FactFileError(ValueError):
    """A file is no fact file; the message says what is wrong and what is expected."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement; a larger number is newer. Relation and subject together are its conflict key."""

    number: int
    relation: Relation
    subject: str
    value: str
    sentence: str

    @property
    def key(self) -> str:
        """The conflict key as text: what is said, and of whom."""
        return key_text(self.relation, self.subject)


@dataclass(frozen=True, slots=True)
class UnparsedSentence:
    """A statement that no template fits: it has no conflict key, so no memory can hold it."""

    number: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its right answers, numbered from 0 in the order of the file.

    ``relation`` and ``subject`` name the asked conflict key; both are None where no single template asks for a subject
    of the file: the answer lies several relations away.
    """

    number: int
    text: str
    golds: tuple[str, ...]
    relation: Relation | None
    subject: str | None

    @property
    def key(self) -> str | None:
        """The asked conflict key as text, None for a question through several relations."""
        if self.relation is None or self.subject is None:
            return None
        return key_text(self.relation, self.subject)


@dataclass(frozen=True, slots=True)
class FactFile:
    """Facts in the order of their numbers, the questions, and what could not be read.

    Attributes
    ----------
    name
        Name of the file without its ending, with the position of the object where a file holds several.
    facts
        Statements that a template fits.
    questions
        In the order of the file.
    unparsed
        Statements that no template fits.
    digest
        SHA-256 of facts, questions and answers as they were given.
    """

    name: str
    facts: tuple[Fact, ...]
    questions: tuple[Question, ...]
    unparsed: tuple[UnparsedSentence, ...]
    digest: str


def key_text(relation: Relation, subject: str) -> str:
    """Return a conflict key as text, such as "place of birth · Thomas Kyd"."""
    return f"{relation.name} · {subject}"


def read_fact_file(path: Path, index: int = 0, label: str | None = None) -> FactFile:
    """Read a FactConsolidation file of any size.

    Parameters
    ----------
    path
        JSON with one object or a list of objects, or JSON Lines with one object per line; UTF-8.
    index
        Which object, from 0, where the file holds several.
    label
        Name of the file for messages and runs, where the path is a temporary copy; never used as a path. That of the
        path when left out.

    Raises
    ------
    FactFileError
        If the file cannot be read or has another shape; the message says what is wrong and what is expected.
    """
    named = path.name if label is None else label
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FactFileError(
            f"{path} cannot be read: {error.strerror or error}. Name a file that exists and may be read."
        ) from None
    except UnicodeDecodeError as error:
        raise FactFileError(f"{named} is no UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    objects = _objects(named, text)
    if not 0 <= index < len(objects):
        held = "one object, number 0" if len(objects) == 1 else f"{len(objects)} objects, 0 to {len(objects) - 1}"
        raise FactFileError(f"{named} holds {held}; there is no number {index}.")
    stem = PurePath(named).stem
    name = stem if len(objects) == 1 else f"{stem}[{index}]"
    try:
        return fact_file(objects[index], name)
    except FactFileError as error:
        raise FactFileError(f"{named}: {error}") from None


def fact_file(content: object, name: str) -> FactFile:
    """Build a `FactFile` from one decoded object of the format.

    Raises
    ------
    FactFileError
        If the object has another shape.
    """
    if not isinstance(content, Mapping):
        raise FactFileError(f"found {_kind(content)}; {EXPECTED}.")
    missing = [field for field in ("context", "questions", "answers") if field not in content]
    if missing:
        raise FactFileError(f"{' and '.join(missing)} missing; {EXPECTED}.")
    sentences = _numbered(content["context"])
    texts = _texts(content["questions"], "questions")
    golds = _golds(content["answers"])
    if len(texts) != len(golds):
        raise FactFileError(
            f"{len(texts)} questions but answers to {len(golds)}; give a list of right answers for each question."
        )
    facts, unparsed = [], []
    for number, sentence in sentences:
        parsed = parse_sentence(sentence)
        if parsed is None:
            unparsed.append(UnparsedSentence(number, sentence))
        else:
            facts.append(Fact(number, *parsed, sentence))
    if not facts:
        raise FactFileError(
            f"none of {len(sentences)} sentences has a form of FactConsolidation, such as "
            '"The capital of France is Paris."; the first is '
            f'"{one_line(sentences[0][1], 80)}".'
        )
    subjects = {fact.subject for fact in facts}
    digest = hashlib.sha256(json.dumps([sentences, texts, golds]).encode()).hexdigest()
    questions = tuple(
        Question(i, text, right, *_asked(text, subjects))
        for i, (text, right) in enumerate(zip(texts, golds, strict=True))
    )
    return FactFile(name, tuple(facts), questions, tuple(unparsed), digest)


def _asked(text: str, subjects: set[str]) -> tuple[Relation, str] | tuple[None, None]:
    for relation, subject in question_readings(text):
        if subject in subjects:
            return relation, subject
    return None, None


def _objects(name: str, text: str) -> list[Any]:
    if not text.strip():
        raise FactFileError(f"{name} is empty; {EXPECTED}.")
    try:
        whole = json.loads(text)
    except RecursionError:
        raise FactFileError(f"{name} is nested too deeply; {EXPECTED}.") from None
    except ValueError as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) == 1 or not lines[0][1].rstrip().endswith("}"):
            raise FactFileError(f"{name} is no JSON: {error}; {EXPECTED}.") from None
        return [_line(name, number, line) for number, line in lines]
    if isinstance(whole, list):
        if not whole:
            raise FactFileError(f"{name} is an empty list; {EXPECTED}.")
        return whole
    return [whole]


def _line(name: str, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FactFileError(f"{name}, line {number} is no JSON object: {error}; {EXPECTED}, one per line.") from None


def _numbered(context: object) -> tuple[tuple[int, str], ...]:
    """Return (number, sentence) in the order of the numbers."""
    if not isinstance(context, str):
        raise FactFileError(f"context is {_kind(context)}; {EXPECTED}.")
    _encodable(context, "context")
    sentences: dict[int, str] = {}
    for line_number, line in enumerate(context.split("\n"), 1):
        if not line.strip():
            continue
        found = _NUMBERED.fullmatch(line)
        if found is None:
            if not sentences:
                continue  # what stands before the first fact introduces the list
            raise FactFileError(
                f'line {line_number} of context has no number: "{one_line(line, 80)}"; '
                'each fact stands on a line of its own, such as "7. The capital of France is Paris."'
            )
        number = int(found[1])
        if number in sentences:
            raise FactFileError(
                f"line {line_number} of context: a fact {number} stands above; "
                "each fact needs a number of its own, since a larger number means newer."
            )
        sentences[number] = found[2].rstrip()
    if not sentences:
        raise FactFileError(f"context has no numbered fact; {EXPECTED}.")
    return tuple(sorted(sentences.items()))


def _texts(content: object, field: str) -> tuple[str, ...]:
    if not isinstance(content, list) or not all(isinstance(text, str) for text in content):
        raise FactFileError(f"{field} is {_kind(content)}; it must be a list of texts.")
    if not content:
        raise FactFileError(f"{field} is empty; there is nothing to ask.")
    for i, text in enumerate(content):
        _encodable(text, f"{field}, number {i},")
    return tuple(content)


def _golds(content: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(content, list):
        raise FactFileError(
            f"answers is {_kind(content)}; it must be a list with a list of right answers per question."
        )
    golds = []
    for i, right in enumerate(content):
        alternatives = [right] if isinstance(right, str) else right
        if (
            not isinstance(alternatives, list)
            or not alternatives
            or not all(isinstance(gold, str) and gold.strip() for gold in alternatives)
        ):
            raise FactFileError(
                f"the answers to question {i} are {json.dumps(right)[:80]}; give at least one right answer, as text."
            )
        for gold in alternatives:
            _encodable(gold, f"answers, number {i},")
        golds.append(tuple(alternatives))
    return tuple(golds)


def _encodable(text: str, where: str) -> None:
    # JSON can spell half a character (a lone surrogate), which no file or database takes.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FactFileError(
            f"{where} holds half a character (\\u{ord(text[error.start]):04x}); write the file anew as UTF-8."
        ) from None


def _kind(content: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(content), "a number")
