"""What an exported run must look like: everything of it is checked here, before the first of it is stored.

`read_archive` is a function of a file alone: it knows no database. What it returns can be stored and shown on every
page; what it refuses is refused in one sentence that names the place, never the content.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from tepa_core.decisions import Decision, Head, verify
from tepa_core.experiment import FACT_STREAM, FactSpec, RunSpec, spec_from_dict
from tepa_core.inert import one_line
from tepa_core.lifecycle import Thresholds
from tepa_core.limits import LimitExceeded, Limits, unpacked
from tepa_core.store.archive_shapes import (
    MOMENTS,
    TASKS,
    ArchiveRefused,
    DecisionContent,
    EffectContent,
    FactSettings,
    HeadContent,
    LogSettings,
    ManifestContent,
    RunContent,
    RunSettings,
    damaged,
    json_of,
    shaped,
)
from tepa_core.store.archive_tables import TABLES, table_of
from tepa_core.store.archive_together import check_ledger, check_together

#: Version of the format. A reader refuses a higher one.
FORMAT: Final = 1

MANIFEST, RUN, DECISIONS, HEAD = "manifest.json", "run.json", "decisions.jsonl", "head.json"
_NEEDED: Final = (MANIFEST, RUN, DECISIONS, HEAD)
_MEMBERS: Final = frozenset([*_NEEDED, *(f"{table}.parquet" for table in TABLES)])
_DAY: Final = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True, eq=False)
class CheckedArchive:
    """An exported run of which every part was checked.

    Attributes
    ----------
    run
        The fields of `RunContent` as JSON-ready data.
    thresholds
        Of the run.
    tables
        By name, with the columns of the schema's table but for ``run_id``.
    decisions, head
        The ledger, which verifies.
    digest
        SHA-256 of the file, in hexadecimal.
    """

    run: Mapping[str, Any]
    thresholds: Thresholds
    tables: Mapping[str, pd.DataFrame]
    decisions: tuple[Decision, ...]
    head: Head
    digest: str


def read_archive(path: Path, limits: Limits | None = None) -> CheckedArchive:
    """Read and check an exported run; nothing of it is trusted, and nothing is stored.

    Raises
    ------
    ArchiveRefused
        If any of it is not as `tepa_core.store.archive_file.export_run` writes it, or its ledger does not verify.
    """
    limits = limits or Limits.from_environment()
    name = path.name
    try:
        limits.check_file(path)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        members = _members(path, limits)
        run, thresholds = _run_of(members, name, limits)
        decisions, head = _ledger_of(members, run, name, limits)
        tables = {
            table: table_of(members[f"{table}.parquet"], table, name, limits)
            for table in TABLES
            if f"{table}.parquet" in members
        }
    except LimitExceeded as error:
        raise ArchiveRefused(f"{name} is not taken in. {error}") from None
    except OSError as error:
        raise ArchiveRefused(f"{name} cannot be read: {error.strerror or 'it cannot be opened'}") from None
    check_together(run, tables, name)
    check_ledger(run, tables, decisions, name)
    return CheckedArchive(run.model_dump(), thresholds, tables, decisions, head, digest)


def _members(path: Path, limits: Limits) -> dict[str, bytes]:
    name = path.name
    try:
        with zipfile.ZipFile(path) as file:
            listed = file.infolist()
            names = [one.filename for one in listed]
            foreign = [one for one in names if one not in _MEMBERS]
            if foreign:
                raise damaged(name, f"it holds {one_line(foreign[0], 60)!r}, which does not belong there")
            if len(set(names)) != len(names):
                raise damaged(name, "it holds a member twice")
            lacking = [one for one in _NEEDED if one not in names]
            if lacking:
                raise damaged(name, f"it lacks {', '.join(lacking)}")
            members: dict[str, bytes] = {}
            for one in listed:
                members[one.filename] = unpacked(file, one, limits, sum(map(len, members.values())))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError):
        raise damaged(name, "it is damaged or cut off") from None
    found = json_of(members.pop(MANIFEST), MANIFEST, name, limits)
    written = found.get("format") if isinstance(found, dict) else None
    if isinstance(written, int) and written != FORMAT:
        raise ArchiveRefused(
            f"{name} has format {str(written)[:10]}, this program reads {FORMAT}; use the program that wrote it."
        )
    manifest = shaped(ManifestContent, found, MANIFEST, name)
    if set(manifest.sha256) != set(members):
        raise damaged(name, "its manifest does not list what it holds")
    for member, content in members.items():
        if hashlib.sha256(content).hexdigest() != manifest.sha256[member]:
            raise damaged(name, f"{member} was changed after the export")
    return members


def _run_of(members: Mapping[str, bytes], name: str, limits: Limits) -> tuple[RunContent, Thresholds]:
    run = shaped(RunContent, json_of(members[RUN], RUN, name, limits), RUN, name)
    created_at = _moment(run.created_at)
    if created_at is None:
        raise damaged(name, "its time of creation is no time with a time zone, or lies in the future")
    try:
        thresholds = Thresholds(**run.thresholds)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise damaged(name, "its thresholds cannot be read, or are out of range") from None
    if set(run.thresholds) != {field.name for field in dataclasses.fields(Thresholds)}:
        raise damaged(name, "its thresholds are not all there")
    if run.kind == "log":
        if run.stream != "log" or run.source is None:
            raise damaged(name, "a log needs the stream log and the name of its file")
        shaped(LogSettings, run.spec, "the spec", name)
        wanted = {"read", "loaded", "rejected", "arrival_times"}
    else:
        _check_settings(run, thresholds, name)
        wanted = {"seeds", "tasks"} | ({"facts"} if run.stream == FACT_STREAM else set())
    if set(run.counts) != wanted:
        raise damaged(name, f"its counts need {', '.join(sorted(wanted))} and nothing else")
    return run, thresholds


def _check_settings(run: RunContent, thresholds: Thresholds, name: str) -> None:
    """Check that a simulation's settings are some that a run can be started with, and are those of this run."""
    shaped(FactSettings if run.stream == FACT_STREAM else RunSettings, run.spec, "the settings", name)
    try:
        spec: RunSpec | FactSpec = spec_from_dict(run.spec)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise damaged(name, "its settings cannot be read") from None
    # As text: to Python True is 1 and 1 is 1.0, to a reader of the settings they are not.
    written, meant = (json.dumps(content, sort_keys=True) for content in (run.spec, spec.as_dict()))
    if spec.stream != run.stream or spec.thresholds != thresholds or written != meant:
        raise damaged(name, "its settings do not agree with each other")
    if run.badges:
        raise damaged(name, "a simulation has nothing of a log to tell its reader")
    if isinstance(spec, FactSpec):
        if run.source is None:
            raise damaged(name, "a fact run needs the name of its file")
        agreed = run.counts.get("seeds") == spec.orders and run.counts.get("facts", 0) > 0
    else:
        agreed = run.counts.get("seeds") == spec.seeds and run.counts.get("tasks") == spec.stream_spec.tasks
    if not agreed:
        raise damaged(name, "its counts do not agree with its settings")


def _moment(text: str) -> dt.datetime | None:
    """Read a time with a zone that has come to pass; clocks of two machines may be a day apart."""
    try:
        at = dt.datetime.fromisoformat(text)
        return at if at.tzinfo is not None and at.astimezone(dt.UTC) <= dt.datetime.now(dt.UTC) + _DAY else None
    except (ValueError, OverflowError):
        return None


def _ledger_of(
    members: Mapping[str, bytes], run: RunContent, name: str, limits: Limits
) -> tuple[tuple[Decision, ...], Head]:
    kept = shaped(HeadContent, json_of(members[HEAD], HEAD, name, limits), HEAD, name)
    head = Head(kept.count, kept.hash)
    try:
        lines = members[DECISIONS].decode().splitlines()
    except UnicodeDecodeError:
        raise damaged(name, "its ledger cannot be read") from None
    if len(lines) > limits.rows:
        raise limits.refuse("The ledger has too many decisions", "rows")
    decisions = tuple(_decision(line, position, run, name, limits) for position, line in enumerate(lines, start=1))
    problems = verify(decisions, head)
    if any(decision.run_id != run.run_id for decision in decisions):
        problems = ("It holds decisions of another run.", *problems)
    if problems:
        what = " ".join(one_line(problem, 200) for problem in problems[:10])
        raise ArchiveRefused(f"The ledger of {name} does not verify, so nothing was stored. {what}")
    return decisions, head


def _decision(line: str, position: int, run: RunContent, name: str, limits: Limits) -> Decision:
    what = f"row {position} of its ledger"
    content = json_of(line, what, name, limits)
    shape = shaped(DecisionContent, content, what, name)
    try:
        decision = Decision.from_dict(content)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise damaged(name, f"{what} has a field that no decision has, or lacks one") from None
    if _moment(shape.decided_at) is None:
        raise damaged(name, f"{what} was decided at no time with a time zone, or in the future")
    low, high = MOMENTS if run.kind == "log" else TASKS
    if not low <= decision.effective_at <= high:
        raise damaged(name, f"{what} takes effect outside the run")
    shaped(
        EffectContent, json_of(decision.effect, f"the effect in {what}", name, limits), f"the effect in {what}", name
    )
    return decision
