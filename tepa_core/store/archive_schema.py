"""What an exported run must look like: everything of it is checked here, before the first of it is stored.

`read_archive` is a function of a file alone: it knows no database. What it returns can be stored and shown on every
page; what it refuses is refused in one sentence that names the place, never the content.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from tepa_core.decisions import Decision, Head, verify
from tepa_core.experiment import FACT_STREAM, RunSpec, spec_from_dict
from tepa_core.lifecycle import Thresholds
from tepa_core.limits import LimitExceeded, Limits, bounded_table, unpacked
from tepa_core.methods import METHODS

#: Version of the format. A reader refuses a higher one.
FORMAT: Final = 1

#: Tables that are stored as they are; precedents and transitions are derived and do not travel.
TABLES: Final = ("evidence", "phase", "episode", "truth", "trial", "question", "attribution", "import_issue")
MANIFEST, RUN, DECISIONS, HEAD = "manifest.json", "run.json", "decisions.jsonl", "head.json"
_NEEDED: Final = (MANIFEST, RUN, DECISIONS, HEAD)
_MEMBERS: Final = frozenset([*_NEEDED, *(f"{table}.parquet" for table in TABLES)])

MAX_NAME: Final = 200
_LONG: Final = 4_000
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
#: Moments of a log, in microseconds since 1970: the years 1 to 9999.
_MOMENTS: Final = (
    (dt.datetime.min.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND,
    (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND,
)
#: Tasks of a simulation; what was learned before the first lies below 0.
_TASKS: Final = (-10_000_000, 10_000_000)
_COUNTS: Final = (0, 2**53)
_DAY: Final = dt.timedelta(days=1)


class ArchiveRefused(ValueError):  # noqa: N818 - it names what happens to the file, and is shown to people
    """The file cannot be taken in, or not be written; the message says why and what to do. Nothing was stored."""


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


# JSON ---------------------------------------------------------------------------------------------------------------

_Label = Annotated[str, Field(max_length=MAX_NAME, pattern=r"^[^\x00]*$")]
_Word = Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
_Count = Annotated[int, Field(ge=_COUNTS[0], le=_COUNTS[1])]
_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Share = Annotated[float, Field(allow_inf_nan=False)] | None


Shape = TypeVar("Shape", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Manifest(_Strict):
    format: int
    program: Annotated[str, Field(pattern=r"^[\w.+-]{1,40}$")]
    sha256: dict[str, _Sha]


class _Head(_Strict):
    count: _Count
    hash: _Sha


class RunContent(_Strict):
    """The row of a run, as its file carries it."""

    run_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
    kind: Literal["simulation", "log"]
    stream: _Word
    name: Annotated[_Label, Field(min_length=1)]
    created_at: Annotated[str, Field(max_length=40)]
    program: Annotated[str, Field(pattern=r"^[\w.+-]{1,40}$")]
    spec: dict[str, JsonValue]
    thresholds: dict[str, JsonValue]
    source: _Label | None
    counts: dict[_Word, _Count]
    badges: dict[_Word, _Count]
    elapsed_s: Annotated[float, Field(ge=0, le=1e9)]


class _Mapping(_Strict):
    columns: dict[_Word, _Label]
    key_template: Annotated[str, Field(max_length=_LONG)] | None
    tz: _Label
    # What a mapping of a later form says besides; each is left out where it says nothing.
    outcomes: dict[_Label, bool | None] = {}
    ignored: list[_Label] = []
    order: _Word = "time"


class _LogSpec(_Strict):
    format: _Word
    mapping: _Mapping
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{1,64}$")]


class _Change(_Strict):
    before: _Share
    after: _Share
    difference: _Share = None
    lo: _Share = None
    hi: _Share = None


class _EverySeed(_Strict):
    seeds: _Count
    matched: _Count
    success: dict[_Label, _Change]
    mpi: dict[_Label, _Change]


_Moment = int | Annotated[str, Field(max_length=40)] | None


class _Effect(_Strict):
    """What a decision was going to change; `tepa_core.experiment.effect` and `tepa_core.decisions.effect` write it."""

    success: dict[_Label, _Change] | None = None
    mpi: dict[_Label, _Change] | None = None
    every_seed: _EverySeed | None = None
    episodes_changed: _Count | None = None
    transitions_changed: _Count | None = None
    at: _Moment = None
    end: _Moment = None
    exposure: _Change | None = None
    later_supports: _Count | None = None
    later_conflicts: _Count | None = None
    stands_until: _Moment = None


class _DecisionShape(BaseModel):
    """Forms and lengths of a decision; `Decision.from_dict` knows the fields and their kinds."""

    model_config = ConfigDict(strict=True, frozen=True)

    number: Annotated[int, Field(ge=1, le=_COUNTS[1])]
    decision_id: Annotated[str, Field(pattern=r"^d[0-9a-f]{16}$")]
    precedent_id: Annotated[str, Field(pattern=r"^p[0-9a-f]{16}$")]
    reason: Annotated[str, Field(min_length=1, max_length=_LONG, pattern=r"^[^\x00]*$")] | None
    reviewer: Annotated[_Label, Field(min_length=1)]
    decided_at: Annotated[str, Field(max_length=40)]
    version: Annotated[str, Field(pattern=r"^[0-9a-f]{12}-[0-9]{1,16}-[0-9]{1,16}(-[A-Za-z0-9_:,.+-]{1,400})?$")]
    effect: Annotated[str, Field(max_length=100_000)]
    undoes: Annotated[str, Field(pattern=r"^d[0-9a-f]{16}$")] | None
    reason_salt: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None
    reason_digest: _Sha
    previous_hash: _Sha
    hash: _Sha


def _shaped(shape: type[Shape], content: object, what: str, name: str) -> Shape:
    try:
        return shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(part if isinstance(part, str) and part.isidentifier() else "…" for part in first["loc"])
        raise damaged(name, f"{what} cannot be read ({place[:80] or 'all of it'}: {first['msg'][:120]})") from None


def _json(content: bytes | str, what: str, name: str, limits: Limits) -> Any:
    try:
        text = content.decode() if isinstance(content, bytes) else content
        found = json.loads(text, parse_constant=_no_constant)
        _check_depth(found, limits.depth)
    except (ValueError, RecursionError):
        raise damaged(name, f"{what} is no JSON of a form that is taken in") from None
    return found


def _no_constant(word: str) -> None:
    raise ValueError(word)


def _check_depth(node: Any, left: int) -> None:
    if left < 0:
        raise ValueError("nested too deeply")
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _check_depth(part, left - 1)


# Tables -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Column:
    kind: pa.DataType
    nullable: bool = False
    low: int | None = None
    high: int | None = None
    #: Characters, for text; None stands for the limit of a label.
    longest: int | None = None


_TEXT, _SEED = _Column(pa.string()), _Column(pa.int32(), low=0, high=2**31 - 1)
_MAYBE = _Column(pa.string(), nullable=True)
_AT = _Column(pa.int64(), low=_MOMENTS[0], high=_MOMENTS[1])
_TASK = _Column(pa.int32(), low=_TASKS[0], high=_TASKS[1])
_NUMBER = _Column(pa.int32(), low=0, high=2**31 - 1)
_FLAG = _Column(pa.bool_())
_SENTENCE = _Column(pa.string(), longest=1_000_000)

_COLUMNS: Final[Mapping[str, Mapping[str, _Column]]] = {
    "evidence": {
        "method": _TEXT,
        "seed": _SEED,
        "seq": _Column(pa.int64(), low=_TASKS[0], high=_COUNTS[1]),
        "occurred": _AT,
        "arrived": _AT,
        "subject": _TEXT,
        "key": _TEXT,
        "key_id": _TEXT,
        "value": _TEXT,
        "value_id": _TEXT,
        "supports": _FLAG,
        "text": _Column(pa.string(), nullable=True, longest=1_000_000),
        "phase": _MAYBE,
        "actor": _MAYBE,
        "source_ref": _MAYBE,
        "source_row": _Column(pa.int64(), nullable=True, low=0, high=_COUNTS[1]),
        "admitted": _Column(pa.bool_(), nullable=True),
    },
    "phase": {"phase": _TEXT, "start_at": _AT, "end_at": _Column(pa.int64(), low=_MOMENTS[0], high=_MOMENTS[1] + 1)},
    "episode": {
        "method": _TEXT,
        "seed": _SEED,
        "t": _TASK,
        "phase": _TEXT,
        "key": _TEXT,
        "action": _TEXT,
        "success": _FLAG,
        "followed": _MAYBE,
        "retrieved": _Column(pa.string(), nullable=True, longest=1_000_000),
        "exposed": _Column(pa.bool_(), nullable=True),
        "size": _NUMBER,
    },
    "truth": {"seed": _SEED, "key": _TEXT, "value": _TEXT, "start_at": _AT, "end_at": _AT},
    "trial": {
        "method": _TEXT,
        "seed": _SEED,
        "t": _TASK,
        "key": _TEXT,
        "value": _TEXT,
        "number": _NUMBER,
        "kind": _TEXT,
        "success": _FLAG,
    },
    "question": {"seed": _SEED, "t": _TASK, "question": _NUMBER, "text": _SENTENCE, "gold": _SENTENCE},
    "attribution": {"method": _TEXT, "seed": _SEED, "question": _NUMBER, "attribution": _TEXT},
    "import_issue": {
        "source_row": _Column(pa.int64(), low=0, high=_COUNTS[1]),
        "reason": _SENTENCE,
        "raw": _SENTENCE,
    },
}


def _table(content: bytes, table: str, name: str, limits: Limits) -> pd.DataFrame:
    try:
        found = bounded_table(io.BytesIO(content), limits)
        found.validate(full=True)
    except LimitExceeded:
        raise
    except (pa.ArrowException, OSError, ValueError, UnicodeDecodeError, OverflowError):
        raise damaged(name, f"{table}.parquet cannot be read") from None
    wanted = _COLUMNS[table]
    if len(found.column_names) != len(wanted) or set(found.column_names) != set(wanted):
        raise damaged(name, f"{table}.parquet needs the columns {', '.join(wanted)}, each once, and no other")
    columns = {}
    for column, rules in wanted.items():
        cells = found.column(column)
        problem = _problem(cells, rules, limits)
        if problem:
            raise damaged(name, f"the column {column} of {table}.parquet {problem}")
        columns[column] = cells.cast(rules.kind)
    frame: pd.DataFrame = pa.table(columns).to_pandas()
    return frame


def _problem(cells: pa.ChunkedArray, rules: _Column, limits: Limits) -> str | None:
    """Say what is wrong with a column, as the end of a sentence."""
    if pa.types.is_null(cells.type):
        return None if rules.nullable or len(cells) == 0 else "lacks values"
    if cells.null_count and not rules.nullable:
        return "lacks values"
    if pa.types.is_string(rules.kind):
        if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
            return f"is no text but {cells.type}"[:60]
        longest = rules.longest or limits.label
        if (pc.max(pc.utf8_length(cells)).as_py() or 0) > longest:
            return f"has a text of more than {longest:,} characters"
        if pc.any(pc.match_substring(cells, "\0")).as_py():
            return "has a text with a NUL character"
        return None
    if pa.types.is_boolean(rules.kind):
        return None if pa.types.is_boolean(cells.type) else "is not yes or no"
    if not pa.types.is_integer(cells.type):
        return "has no whole numbers"
    bounds = pc.min_max(cells).as_py()
    if bounds["min"] is not None and not (rules.low <= bounds["min"] and bounds["max"] <= rules.high):
        return f"has a number that is not from {rules.low:,} to {rules.high:,}"
    return None


# The whole ----------------------------------------------------------------------------------------------------------


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
            table: _table(members[f"{table}.parquet"], table, name, limits)
            for table in TABLES
            if f"{table}.parquet" in members
        }
    except LimitExceeded as error:
        raise ArchiveRefused(f"{name} is not taken in. {error}") from None
    except OSError as error:
        raise ArchiveRefused(f"{name} cannot be read: {error.strerror or 'it cannot be opened'}") from None
    _check_together(run, tables, name)
    return CheckedArchive(run.model_dump(), thresholds, tables, decisions, head, digest)


def damaged(name: str, what: str) -> ArchiveRefused:
    """Make the refusal of a file that is not as an export is written; ``what`` ends the sentence."""
    return ArchiveRefused(f"{name} is no complete export of a run: {what}. Export it again; nothing was stored.")


def _members(path: Path, limits: Limits) -> dict[str, bytes]:
    name = path.name
    try:
        with zipfile.ZipFile(path) as file:
            listed = file.infolist()
            names = [one.filename for one in listed]
            foreign = [one for one in names if one not in _MEMBERS]
            if foreign:
                raise damaged(name, f"it holds {foreign[0][:60]!r}, which does not belong there")
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
    found = _json(members.pop(MANIFEST), MANIFEST, name, limits)
    written = found.get("format") if isinstance(found, dict) else None
    if isinstance(written, int) and written != FORMAT:
        raise ArchiveRefused(
            f"{name} has format {str(written)[:10]}, this program reads {FORMAT}; use the program that wrote it."
        )
    manifest = _shaped(_Manifest, found, MANIFEST, name)
    if set(manifest.sha256) != set(members):
        raise damaged(name, "its manifest does not list what it holds")
    for member, content in members.items():
        if hashlib.sha256(content).hexdigest() != manifest.sha256[member]:
            raise damaged(name, f"{member} was changed after the export")
    return members


def _run_of(members: Mapping[str, bytes], name: str, limits: Limits) -> tuple[RunContent, Thresholds]:
    run = _shaped(RunContent, _json(members[RUN], RUN, name, limits), RUN, name)
    created_at = _moment(run.created_at)
    if created_at is None:
        raise damaged(name, "its time of creation is no time with a time zone, or lies in the future")
    try:
        thresholds = Thresholds(**run.thresholds)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise damaged(name, "its thresholds cannot be read, or are out of range") from None
    if run.kind == "log":
        if run.stream != "log" or run.source is None:
            raise damaged(name, "a log needs the stream log and the name of its file")
        _shaped(_LogSpec, run.spec, "the spec", name)
        wanted = {"read", "loaded", "rejected", "arrival_times"}
    else:
        try:
            spec = spec_from_dict(run.spec)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            raise damaged(name, "its settings cannot be read") from None
        if spec.stream != run.stream or spec.thresholds != thresholds or spec.as_dict() != run.spec:
            raise damaged(name, "its settings do not agree with each other")
        facts = spec.stream == FACT_STREAM
        if facts and run.source is None:
            raise damaged(name, "a fact run needs the name of its file")
        seeds = spec.seeds if isinstance(spec, RunSpec) else spec.orders
        wanted = {"seeds", "tasks"} | ({"facts"} if facts else set())
        if run.counts.get("seeds") != seeds:
            raise damaged(name, "its counts do not agree with its settings")
    if set(run.counts) != wanted:
        raise damaged(name, f"its counts need {', '.join(sorted(wanted))} and nothing else")
    return run, thresholds


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
    kept = _shaped(_Head, _json(members[HEAD], HEAD, name, limits), HEAD, name)
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
        raise ArchiveRefused(f"The ledger of {name} does not verify, so nothing was stored. {' '.join(problems[:10])}")
    return decisions, head


def _decision(line: str, position: int, run: RunContent, name: str, limits: Limits) -> Decision:
    what = f"row {position} of its ledger"
    content = _json(line, what, name, limits)
    shape = _shaped(_DecisionShape, content, what, name)
    try:
        decision = Decision.from_dict(content)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise damaged(name, f"{what} has a field that no decision has, or lacks one") from None
    if _moment(shape.decided_at) is None:
        raise damaged(name, f"{what} was decided at no time with a time zone, or in the future")
    low, high = _MOMENTS if run.kind == "log" else _TASKS
    if not low <= decision.effective_at <= high:
        raise damaged(name, f"{what} takes effect outside the run")
    _shaped(_Effect, _json(decision.effect, f"the effect in {what}", name, limits), f"the effect in {what}", name)
    return decision


def _check_together(run: RunContent, tables: Mapping[str, pd.DataFrame], name: str) -> None:
    """Check what no table shows by itself: that the rows belong to the run, and to each other."""
    log = run.kind == "log"
    foreign = [table for table in tables if log and table not in ("evidence", "phase", "import_issue")]
    if foreign:
        raise damaged(name, f"a log has no {foreign[0]}.parquet")
    evidence = tables.get("evidence")
    if evidence is not None:
        if evidence.duplicated(["method", "seed", "seq"]).any():
            raise damaged(name, "two items of its evidence have one number")
        within = evidence["occurred"].between(*(_MOMENTS if log else _TASKS)).all()
        if not within:
            raise damaged(name, "its evidence lies outside the time of the run")
    if log:
        if evidence is None:
            raise damaged(name, "it lacks evidence.parquet")
        if len(evidence) != run.counts["loaded"]:
            raise damaged(name, "its evidence is not as much as its counts say")
        if (evidence["method"] != "").any() or (evidence["seed"] != 0).any():
            raise damaged(name, "the evidence of a log has no method and no seed")
    else:
        _check_played(run, tables, name)
    if "phase" in tables:
        _check_stretches(tables["phase"], "phases", name)


def _check_played(run: RunContent, tables: Mapping[str, pd.DataFrame], name: str) -> None:
    spec = spec_from_dict(run.spec)
    first = spec.first_seed if isinstance(spec, RunSpec) else 0
    seeds = range(first, first + run.counts["seeds"])
    for table, frame in tables.items():
        if "method" in frame and not set(frame["method"].unique()) <= set(spec.methods):
            raise damaged(name, f"{table}.parquet has a method that the run has not")
        if "seed" in frame and len(frame) and not frame["seed"].between(seeds.start, seeds.stop - 1).all():
            raise damaged(name, f"{table}.parquet has a seed that the run has not")
    _check_learned(spec.methods, seeds, tables.get("evidence"), run.counts.get("facts") or run.counts["tasks"], name)
    episodes, phases = tables.get("episode"), tables.get("phase")
    if episodes is None or phases is None or phases.empty:
        raise damaged(name, "a simulation needs its episodes and phases")
    facts, tasks = run.counts.get("facts", 0), run.counts["tasks"]
    _check_whole(phases, 0, facts + tasks, "phases", name)
    if len(episodes) != math.prod((len(spec.methods), len(seeds), tasks)):
        raise damaged(name, "its episodes are not one for each method, seed and task")
    if episodes.duplicated(["method", "seed", "t"]).any() or not episodes["t"].between(facts, facts + tasks - 1).all():
        raise damaged(name, "its episodes are not one for each method, seed and task")
    rows = phases.sort_values("start_at")
    at = rows["start_at"].searchsorted(episodes["t"], side="right") - 1
    if (rows["phase"].to_numpy(object)[at] != episodes["phase"].to_numpy(object)).any():
        raise damaged(name, "it has an episode that is not of the phase of its time")
    truth = tables.get("truth")
    if truth is not None:
        for _, of_key in truth.groupby(["seed", "key"]):
            _check_whole(of_key, 0, tasks, "truth of one key", name)
    elif not facts:
        raise damaged(name, "a simulation needs its truth")
    if spec.stream == FACT_STREAM and "question" not in tables:
        raise damaged(name, "a fact run needs its questions")


def _check_learned(methods: Sequence[str], seeds: range, evidence: pd.DataFrame | None, times: int, name: str) -> None:
    """Check that each method with precedents learned once at each time of each seed, in one spelling."""
    lanes = {(method, seed) for method in methods if METHODS[method].lifecycle for seed in seeds}
    found = set() if evidence is None else set(zip(evidence["method"], evidence["seed"], strict=True))
    if lanes != found:
        raise damaged(name, "it has not for each method that keeps precedents its evidence on each seed")
    if evidence is None:
        return
    # What was learned before the first task lies below 0.
    learned = evidence[evidence["occurred"] >= 0]
    if len(learned) != len(lanes) * times or learned.duplicated(["method", "seed", "occurred"]).any():
        raise damaged(name, "its evidence is not one item for each method, seed and time")
    spelled = (evidence["key"] == evidence["key_id"]) & (evidence["value"] == evidence["value_id"])
    if not (spelled & (evidence["subject"] == "")).all():
        raise damaged(name, "the evidence of a simulation has keys and values of one spelling, and no user")


def _check_whole(rows: pd.DataFrame, begin: int, end: int, what: str, name: str) -> None:
    """Check that stretches follow each other without a gap, from the first task to the last."""
    _check_stretches(rows, what, name)
    rows = rows.sort_values("start_at")
    starts, ends = rows["start_at"].to_numpy(), rows["end_at"].to_numpy()
    if starts[0] != begin or ends[-1] != end or (starts[1:] != ends[:-1]).any():
        raise damaged(name, f"the stretches of the {what} leave a gap")


def _check_stretches(rows: pd.DataFrame, what: str, name: str) -> None:
    rows = rows.sort_values("start_at")
    starts, ends = rows["start_at"].to_numpy(), rows["end_at"].to_numpy()
    if (starts >= ends).any() or (starts[1:] < ends[:-1]).any():
        raise damaged(name, f"the stretches of the {what} overlap, or one ends before it begins")
