"""The JSON of an exported run: the form of every field, and the one refusal of what is not like that."""

from __future__ import annotations

import datetime as dt
import json
from typing import Annotated, Any, Final, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from tepa_core.limits import Limits

MAX_NAME: Final = 200
_LONG: Final = 4_000
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
#: Moments of a log, in microseconds since 1970: the years 1 to 9999.
MOMENTS: Final = (
    (dt.datetime.min.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND,
    (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND,
)
#: Tasks of a simulation; what was learned before the first lies below 0.
TASKS: Final = (-10_000_000, 10_000_000)
COUNTS: Final = (0, 2**53)


class ArchiveRefused(ValueError):  # noqa: N818 - it names what happens to the file, and is shown to people
    """The file cannot be taken in, or not be written; the message says why and what to do. Nothing was stored."""


def damaged(name: str, what: str) -> ArchiveRefused:
    """Make the refusal of a file that is not as an export is written; ``what`` ends the sentence."""
    return ArchiveRefused(f"{name} is no complete export of a run: {what}. Export it again; nothing was stored.")


_Label = Annotated[str, Field(max_length=MAX_NAME, pattern=r"^[^\x00]*$")]
_Word = Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
_Count = Annotated[int, Field(ge=COUNTS[0], le=COUNTS[1])]
_Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]


#: What an import counts for its reader; `tepa_core.importers.mapping` and `tepa_core.store.write` count it.
_Badge = Literal[
    "missing_user",
    "naive_time",
    "partial_time",
    "finer_time",
    "time_from_order",
    "tied_time",
    "late_arrival",
    "deletion",
    "end_of_validity",
    "end_ahead",
    "repeated_source",
    "lookalike",
    "batch_revocation",
]
BADGES: Final[tuple[str, ...]] = get_args(_Badge)

Shape = TypeVar("Shape", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ManifestContent(_Strict):
    """What an export says that it holds."""

    format: int
    program: Annotated[str, Field(pattern=r"^[\w.+-]{1,40}$")]
    sha256: dict[str, _Sha]


class HeadContent(_Strict):
    """How many decisions there are, and the hash of the last."""

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
    badges: dict[_Badge, _Count]
    elapsed_s: Annotated[float, Field(ge=0, le=1e9)]


class _Mapping(_Strict):
    columns: dict[_Word, _Label]
    key_template: Annotated[str, Field(max_length=_LONG)] | None
    tz: _Label
    # What a mapping of a later form says besides; each is left out where it says nothing.
    outcomes: dict[_Label, bool | None] = {}
    ignored: list[_Label] = []
    order: _Word = "time"


_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{1,64}$")]


class LogSettings(_Strict):
    """What a log keeps of its import."""

    format: _Word
    mapping: _Mapping
    digest: _Digest
    # Files that the run was loaded from before its own grew; left out where there is none.
    earlier: list[_Digest] = []


class RunSettings(_Strict):
    """Kinds of what `tepa_core.experiment.RunSpec` says of itself; the class knows the ranges."""

    stream: _Word
    seeds: int
    first_seed: int
    methods: list[_Word]
    thresholds: dict[_Word, JsonValue]
    world: dict[_Word, int | _Number]
    fallback: _Word


class FactSettings(_Strict):
    """Kinds of what `tepa_core.experiment.FactSpec` says of itself."""

    stream: _Word
    name: _Label
    digest: _Sha
    methods: list[_Word]
    thresholds: dict[_Word, JsonValue]
    orders: int
    backend: _Label
    top_k: int


class _Change(_Strict):
    before: _Number | None
    after: _Number | None
    difference: _Number | None = None
    lo: _Number | None = None
    hi: _Number | None = None


class _Success(_Change):
    before: _Share
    after: _Share
    difference: Annotated[float, Field(ge=-1, le=1)]


class _EverySeed(_Strict):
    seeds: _Count
    matched: _Count
    success: dict[_Label, _Success]
    mpi: dict[_Label, _Change]


def _within_years(moment: int | str) -> int | str:
    """Refuse what is no moment: every text is one with a zone, every number lies in the years 1 to 9999."""
    if isinstance(moment, str):
        if dt.datetime.fromisoformat(moment).tzinfo is None:
            raise ValueError("a time needs a zone")
    elif not MOMENTS[0] <= moment <= MOMENTS[1]:
        raise ValueError("a time lies outside the years 1 to 9999")
    return moment


_Moment = Annotated[int | Annotated[str, Field(max_length=40)], AfterValidator(_within_years)]


class EffectContent(_Strict):
    """What a decision was going to change; `tepa_core.experiment.effect` and `tepa_core.decisions.effect` write it.

    Any of it may be left out, as for a decision that was taken without a preview; nothing else may be null.
    """

    success: dict[_Label, _Success] = {}
    mpi: dict[_Label, _Change] = {}
    every_seed: _EverySeed | None = None
    episodes_changed: _Count = 0
    transitions_changed: _Count = 0
    at: _Moment = 0
    end: _Moment = 0
    exposure: _Change | None = None
    later_supports: _Count = 0
    later_conflicts: _Count = 0
    stands_until: _Moment | None = None

    @model_validator(mode="after")
    def _told_together(self) -> Self:
        if ("later_supports" in self.model_fields_set) != ("later_conflicts" in self.model_fields_set):
            raise ValueError("later_supports and later_conflicts are told together")
        return self


class DecisionContent(BaseModel):
    """Forms and lengths of a decision; `Decision.from_dict` knows the fields and their kinds."""

    model_config = ConfigDict(strict=True, frozen=True)

    number: Annotated[int, Field(ge=1, le=COUNTS[1])]
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


def shaped(shape: type[Shape], content: object, what: str, name: str) -> Shape:
    """Return content in a shape.

    Parameters
    ----------
    what, name
        What it is, and of which file, for the refusal.

    Raises
    ------
    ArchiveRefused
        If it has another shape; the field is named, what it holds is not.
    """
    try:
        return shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(part if isinstance(part, str) and part.isidentifier() else "…" for part in first["loc"])
        raise damaged(name, f"{what} cannot be read ({place[:80] or 'all of it'}: {first['msg'][:120]})") from None


def json_of(content: bytes | str, what: str, name: str, limits: Limits) -> Any:
    """Read JSON that nests no deeper than is taken in and has no number that is none.

    Raises
    ------
    ArchiveRefused
        If it is not like that.
    """
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
