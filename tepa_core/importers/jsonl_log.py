"""JSON, one object per line or one array of objects; numbers keep the text they have in the file."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tepa_core.importers.base import ROW, ImportRefused, Issue, Measure, Table, check_names, clipped, quoted, scan_text
from tepa_core.inert import one_line
from tepa_core.limits import USUAL, Limits

__all__ = ["JsonArrayLog", "JsonlLog"]

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n]*")


class _Literal(str):
    """A number as it is written in the file, kept apart from a quoted text of the same letters."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Stands for a record, or a part of one, that cannot be taken as it is."""

    reason: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Unreadable:
    record = dict(pairs)
    if len(record) < len(pairs):
        # Taking the first or the last of two values would be a guess.
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        return _Unreadable(f"the name {quoted(name)} occurs twice in one object")
    return record


def _constant(word: str) -> _Literal | None:
    """Read what JSON has no word for and programs write all the same: not a number is missing."""
    return None if word == "NaN" else _Literal(word)


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(
        parse_float=_Literal, parse_int=_Literal, parse_constant=_constant, object_pairs_hook=_object
    )


def _compact(node: Any) -> str:
    if isinstance(node, _Literal):
        return str(node)
    if isinstance(node, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_compact(v)}" for k, v in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ",".join(_compact(item) for item in node) + "]"
    if isinstance(node, _Unreadable):
        raise ValueError(node.reason)
    return json.dumps(node, ensure_ascii=False)


def _text(node: Any) -> str | None:
    if node is None:
        return None
    return str(node) if isinstance(node, str) else _compact(node)


def _cells(node: Any) -> dict[str, str | None]:
    """Turn one decoded record into text cells; raises ValueError with the reason when it is not a usable record."""
    if isinstance(node, _Unreadable):
        raise ValueError(node.reason)
    if not isinstance(node, dict):
        raise ValueError("the record is not a JSON object")
    cells = {name: _text(item) for name, item in node.items()}
    for text in (*cells, *cells.values()):
        if text is not None and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise ValueError("the record holds half of a surrogate pair, which is no character") from None
    return cells


def _deeper(node: Any, levels: int) -> bool:
    if not isinstance(node, dict | list):
        return False
    return levels == 0 or any(_deeper(part, levels - 1) for part in (node.values() if isinstance(node, dict) else node))


@dataclass(frozen=True, slots=True)
class JsonlLog:
    """Reads JSON Lines. A line that is not a JSON object becomes an issue and the rest is read.

    Numbers keep their text, true and false become those words, null is missing, nested arrays and objects become
    compact JSON text. Blank lines are passed over.
    """

    name: str = "jsonl"
    extensions: tuple[str, ...] = (".jsonl", ".ndjson")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Accept text which begins with ``{``, or a file named .jsonl in which some line does."""
        text = head.removeprefix(_BOM)
        if _is_one_object(text):
            return False
        if path.suffix.lower() in self.extensions:
            return any(line.lstrip().startswith(b"{") for line in text.splitlines())
        return text.lstrip().startswith(b"{")

    def read(self, path: Path, limits: Limits = USUAL) -> Table:
        """Read the file. Raises ImportRefused when not one line is a JSON object."""
        digest = scan_text(path, whole=False, limits=limits)
        return _table(self.name, _lines(path), digest, limits)


def _is_one_object(text: bytes) -> bool:
    """Say whether a file begins as one object over several lines, rather than one object a line."""
    first = text.lstrip().split(b"\n", 1)[0].decode(errors="replace").rstrip()
    if not first.startswith("{"):
        return False
    try:
        _decoder().raw_decode(first)
    except json.JSONDecodeError as error:
        # What ends in the middle goes on below; anything else is one line that is broken.
        return error.pos >= len(first) - 1 or first in ("{", "{}")
    except RecursionError:
        return False
    return False


@dataclass(frozen=True, slots=True)
class JsonArrayLog:
    """Reads one JSON array of objects, with cells as in :class:`JsonlLog`.

    Elements which are not objects become issues. Broken JSON spoils the array, so such a file is refused. Where the
    file is an object, the one array of objects inside it is taken and named; an object without one is one record.
    """

    name: str = "json"
    extensions: tuple[str, ...] = (".json",)

    def sniff(self, path: Path, head: bytes) -> bool:
        """Accept text which begins with ``[`` and then ``{`` or ``]``, or with an object over several lines."""
        text = head.removeprefix(_BOM).lstrip()
        return (text.startswith(b"[") and text[1:].lstrip()[:1] in (b"{", b"]")) or _is_one_object(text)

    def read(self, path: Path, limits: Limits = USUAL) -> Table:
        """Read the file. Raises ImportRefused when the array is broken, empty, or holds no object."""
        digest = scan_text(path, whole=True, limits=limits)
        text = path.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("{"):
            inside, records = _inside(text)
            return dataclasses.replace(_table(self.name, iter(records), digest, limits), inside=inside)
        return _table(self.name, _elements(text), digest, limits)


def _inside(text: str) -> tuple[str | None, list[_Record]]:
    """Find the records of a file that is one object: its one array of objects, wherever that stands, or itself."""
    try:
        whole = _decoder().decode(text)
    except json.JSONDecodeError as error:
        raise ImportRefused(
            f"The JSON object is broken on line {error.lineno}: {error.msg}. Repair it there, or write one object per "
            "line (JSONL), where a broken line costs only itself."
        ) from None
    except RecursionError:
        raise ImportRefused("The JSON object is nested too deeply to be a log.") from None
    found = dict(_arrays(whole, "", 4))
    if len(found) > 1:
        raise ImportRefused(
            f"The file is one object with several arrays in it: {', '.join(one_line(name, 60) for name in found)}. "
            "Write the one that is the log into a file of its own."
        )
    for name, records in found.items():
        return name, [(number, _compact_or_nothing(each), each) for number, each in enumerate(records, start=1)]
    return None, [(1, clipped(text), whole)]


def _arrays(node: Any, place: str, levels: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield the arrays of objects in an object, by the names that lead to them."""
    if not isinstance(node, dict) or levels == 0:
        return
    for name, part in node.items():
        here = f"{place}.{name}" if place else name
        if isinstance(part, list) and part and all(isinstance(each, dict) for each in part):
            yield here, part
        else:
            yield from _arrays(part, here, levels - 1)


def _compact_or_nothing(node: Any) -> str:
    try:
        return _compact(node)
    except (ValueError, RecursionError):
        return ""


_Record = tuple[int, str, Any]
"""Line on which the record begins, the record as written, and what it decodes to."""


def _lines(path: Path) -> Iterator[_Record]:
    decode = _decoder().decode
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            raw = (line.removeprefix(_BOM) if number == 1 else line).strip()
            if not raw:
                continue
            node: Any
            try:
                node = decode(raw.decode())
            except UnicodeDecodeError:
                node = _Unreadable("the line is not UTF-8 text")
            except json.JSONDecodeError as error:
                node = _Unreadable(_in_plain_words(raw.decode(), error))
            except RecursionError:
                node = _Unreadable("the record is nested too deeply")
            yield number, raw.decode(errors="replace"), node


def _in_plain_words(line: str, error: json.JSONDecodeError) -> str:
    """Say what is wrong with a line that is no JSON value, for the two ways in which it usually is none."""
    try:
        _, end = _decoder().raw_decode(line)
    except (json.JSONDecodeError, RecursionError):
        return f"not valid JSON: {error.msg} at character {error.colno}"
    rest = line[end:].strip()
    if rest == ",":
        return (
            "a comma follows the object, as inside an array: remove the commas at the ends of the lines, or put the "
            "whole into brackets [ ]"
        )
    if rest.startswith("{"):
        return "two objects stand on one line: put each on a line of its own"
    return f"not valid JSON: something follows the object at character {end + 1}"


def _elements(text: str) -> Iterator[_Record]:
    decoder = _decoder()
    line = 1
    counted = 0

    def skip_space(at: int) -> int:
        found = _SPACE.match(text, at)
        return found.end() if found else at

    def broken(at: int, problem: str) -> ImportRefused:
        number = line + text.count("\n", counted, at)
        return ImportRefused(
            f"The JSON array is broken on line {number}: {problem}. Repair it there, or write one object per line "
            "(JSONL), where a broken line costs only itself."
        )

    start = skip_space(0)
    if not text.startswith("[", start):
        raise broken(start, "it does not begin with an opening bracket")
    at = skip_space(start + 1)
    while not text.startswith("]", at):
        line += text.count("\n", counted, at)
        counted = at
        try:
            node, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise broken(error.pos, error.msg) from None
        except RecursionError:
            raise broken(at, "the element is nested too deeply") from None
        yield line, text[at:end], node
        at = skip_space(end)
        if text.startswith(",", at):
            at = skip_space(at + 1)
            if text.startswith("]", at):
                raise broken(at, "a comma with no element after it")
        elif not text.startswith("]", at):
            raise broken(at, "expected a comma or the closing bracket")
    rest = skip_space(at + 1)
    if rest < len(text):
        raise broken(rest, "something follows the closing bracket")


def _table(name: str, records: Iterator[_Record], digest: str, limits: Limits) -> Table:
    # A list per column, not a dictionary per row: of a million rows the dictionaries would be most of the memory.
    columns: dict[str, list[str | None]] = {}
    numbers: list[int] = []
    issues: list[Issue] = []
    measure = Measure(limits)
    for number, raw, node in records:
        measure.add(1, len(raw))
        try:
            if _deeper(node, limits.depth):
                raise ValueError(f"the record is nested more than {limits.depth} levels deep")
            cells = _cells(node)
        except ValueError as error:
            issues.append(Issue(number, str(error), clipped(raw)))
            continue
        except RecursionError:
            issues.append(Issue(number, "the record is nested too deeply", clipped(raw)))
            continue
        for column, text in cells.items():
            held = columns.setdefault(column, [])
            held += [None] * (len(numbers) - len(held))
            held.append(text)
        numbers.append(number)
        limits.check_table(len(numbers), len(columns))
    if not numbers:
        first = f" (line {issues[0].row}: {issues[0].reason})" if issues else ""
        raise ImportRefused(
            f"The file holds no JSON object that could be a log entry{first}. Write one object per line, or one "
            "array of objects."
        )
    check_names(list(columns), limits)
    frame = pd.DataFrame(
        {
            column: pd.Series(held + [None] * (len(numbers) - len(held)), dtype=object)
            for column, held in columns.items()
        },
        index=range(len(numbers)),
    )
    frame[ROW] = np.asarray(numbers, dtype=np.int64)
    return Table(name, frame, tuple(issues), digest)
