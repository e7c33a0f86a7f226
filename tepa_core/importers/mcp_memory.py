"""The graph that an MCP memory server keeps: entities with observations, and relations between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tepa_core.importers.base import ROW, ImportRefused, Issue, Measure, Table, clipped, scan_text
from tepa_core.limits import USUAL, Limits

__all__ = ["McpMemory"]

_BOM = b"\xef\xbb\xbf"
#: ``Status: proposed``: what an observation is about, and what it says of that.
_LABELLED = re.compile(r"([^:\n]{1,60}):\s+(\S.*)", re.DOTALL)
_COLUMNS = ("ts", "user", "key", "value", "text")

#: What an observation without a label asserts of itself: it has no other value that could contradict it.
STATED = "stated"


@dataclass(frozen=True, slots=True)
class McpMemory:
    """Reads the JSON lines of an MCP memory server, one piece of evidence for each observation.

    The entity is whose memory it is. ``Status: proposed`` asserts ``proposed`` of the key ``Status``. An observation
    without a label, and a relation, contradicts nothing: it is a key of its own, with the value `STATED`. Times are
    those of the last change where the server kept them.
    """

    name: str = "mcp"
    extensions: tuple[str, ...] = (".jsonl", ".json", ".ndjson")

    def sniff(self, path: Path, head: bytes) -> bool:
        """Accept lines of which the first is an entity or a relation."""
        for line in head.removeprefix(_BOM).splitlines():
            if line.strip():
                try:
                    first = json.loads(line)
                except (ValueError, RecursionError):
                    return False
                return isinstance(first, dict) and (_is_entity(first) or _is_relation(first))
        return False

    def read(self, path: Path, limits: Limits = USUAL) -> Table:
        """Read the file. Raises ImportRefused when nothing in it is an observation or a relation."""
        digest = scan_text(path, whole=False, limits=limits)
        rows: list[tuple[str | None, ...]] = []
        numbers: list[int] = []
        issues: list[Issue] = []
        measure = Measure(limits)
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                raw = (line.removeprefix(_BOM) if number == 1 else line).strip()
                if not raw:
                    continue
                measure.add(1, len(raw))
                try:
                    found = list(_evidence(json.loads(raw.decode())))
                except (ValueError, RecursionError):
                    issues.append(Issue(number, _NEITHER, clipped(raw.decode(errors="replace"))))
                    continue
                rows += found
                numbers += [number] * len(found)
        if not rows:
            raise ImportRefused("The memory graph holds no observation and no relation, so there is nothing to load.")
        frame = pd.DataFrame(
            {name: pd.Series([row[at] for row in rows], dtype=object) for at, name in enumerate(_COLUMNS)}
        )
        frame[ROW] = np.asarray(numbers, dtype=np.int64)
        return Table(self.name, frame, tuple(issues), digest)


_NEITHER = "the line is neither an entity with observations nor a relation"


def _is_entity(node: dict[str, Any]) -> bool:
    return isinstance(node.get("name"), str) and isinstance(node.get("observations"), list)


def _is_relation(node: dict[str, Any]) -> bool:
    return all(isinstance(node.get(name), str) for name in ("from", "to", "relationType"))


def _evidence(node: Any) -> Iterator[tuple[str | None, ...]]:
    if not isinstance(node, dict) or not (_is_entity(node) or _is_relation(node)):
        raise ValueError(_NEITHER)
    at = node.get("updatedAt", node.get("createdAt"))
    time = None if at is None else str(at)
    if _is_relation(node):
        said = f"{node['relationType']} {node['to']}"
        yield time, node["from"], said, STATED, said
        return
    for observation in node["observations"]:
        text = observation.get("content") if isinstance(observation, dict) else observation
        if not isinstance(text, str):
            raise ValueError(_NEITHER)
        own = observation.get("timestamp", time) if isinstance(observation, dict) else time
        labelled = _LABELLED.fullmatch(text.strip())
        key, value = (labelled[1], labelled[2]) if labelled else (text, STATED)
        yield None if own is None else str(own), node["name"], key, value, text
