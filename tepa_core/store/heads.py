"""Heads of ledgers, signed and kept outside the database: they tell when a ledger was written anew, its head included.

A chain holds when all of it is rewritten. What it cannot do is become the old one again: the hash of decision n stands
for every decision up to it. So a small file with the count and the hash, signed with a key that is not in the database,
shows later whether the ledger still begins with what it was then.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tepa_core import __version__
from tepa_core.decisions import Decision, Event, Head, Occasion, begins_with, utc
from tepa_core.signing import fingerprint, public_bytes, sign, signature_holds, signing_key
from tepa_core.store import queries
from tepa_core.store.connection import Store
from tepa_core.store.events import DatabaseLedger, database_ledger
from tepa_core.store.ledger import decisions_of, verify_ledger

#: More runs than one signs by hand, and little enough to read at once.
MAX_BYTES: Final = 4_000_000
_SHOWN: Final = 16
_NAMED: Final = 5


class HeadRefused(ValueError):  # noqa: N818 - it names what happens, and is shown to people
    """Heads cannot be signed, or a file of them not be read; the message says why and what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Head(_Strict):
    count: Annotated[int, Field(ge=0, le=2**53)]
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _RunHead(_Head):
    run_id: Annotated[str, Field(min_length=1, max_length=200)]


class _Content(_Strict):
    format: Literal["tepa-audit signed heads 1"] = "tepa-audit signed heads 1"
    signed_at: Annotated[str, Field(max_length=40)]
    program: Annotated[str, Field(pattern=r"^[\w.+-]{1,40}$")]
    runs: list[_RunHead]
    database: _Head | None


class _File(_Strict):
    signed: _Content
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


@dataclass(frozen=True, slots=True)
class SignedHeads:
    """A file of signed heads, of a form that can be compared; whether its signature holds is not said yet.

    Attributes
    ----------
    signed_at
        When, by the clock of who signed, in UTC.
    runs
        Head of each run's ledger, by id.
    database
        Head of the ledger of the database; None when one run alone was signed.
    public_key
        Of who says to have signed, 32 bytes.
    genuine
        Whether the holder of that key signed exactly this.
    """

    signed_at: dt.datetime
    runs: Mapping[str, Head]
    database: Head | None
    public_key: bytes
    genuine: bool


@dataclass(frozen=True, slots=True)
class HeadCheck:
    """What signed heads say of the ledgers that are here.

    Attributes
    ----------
    problems
        What is wrong, one sentence each.
    found
        What holds, one sentence each, who signed first.
    fingerprint
        Of the key that signed.
    """

    problems: tuple[str, ...]
    found: tuple[str, ...]
    fingerprint: str

    @property
    def ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems


def sign_heads(store: Store, key_path: Path, run_id: str | None = None) -> bytes:
    """Sign the head of a run's ledger, or those of all runs and of the database, and return the file.

    Parameters
    ----------
    key_path
        Of the private key, which is made when absent.
    run_id
        The run; left out, everything.

    Raises
    ------
    HeadRefused
        If a ledger does not verify: what is broken is not to be vouched for.
    SigningRefused
        If the key cannot be made or used.
    UnknownRunError
        If there is no such run.
    """
    runs = queries.runs(store)["run_id"].tolist() if run_id is None else [queries.run_info(store, run_id).run_id]
    heads = []
    for name in sorted(map(str, runs)):
        check = verify_ledger(store, name)
        if not check.ok:
            raise HeadRefused(f"The ledger of run {name} does not verify, so nothing was signed. {check.problems[0]}")
        heads.append(_RunHead(run_id=name, count=check.head.count, hash=check.head.hash))
    database = None
    if run_id is None:
        ledger = database_ledger(store)
        if not ledger.ok:
            raise HeadRefused(
                f"The ledger of the database does not verify, so nothing was signed. {ledger.problems[0]}"
            )
        database = _Head(**dataclasses.asdict(ledger.head))
    key = signing_key(key_path)
    at = dt.datetime.now(dt.UTC).isoformat(timespec="microseconds")
    content = _Content(signed_at=at, program=__version__, runs=heads, database=database).model_dump()
    file = _File(
        signed=_Content.model_validate(content),
        public_key=public_bytes(key).hex(),
        signature=sign(content, key).hex(),
    )
    return (json.dumps(file.model_dump(), indent=1) + "\n").encode()


def read_heads(content: bytes, name: str) -> SignedHeads:
    """Read a file that `sign_heads` wrote.

    Parameters
    ----------
    content, name
        Of the file; of a larger one than `MAX_BYTES` its beginning is enough.

    Raises
    ------
    HeadRefused
        If it is no such file.
    """
    refused = HeadRefused(f"{name} is no file of signed heads; choose one that 'ledger --head-to' or this page wrote.")
    if len(content) > MAX_BYTES:
        raise refused
    try:
        file = _File.model_validate_json(content)
        signed_at = dt.datetime.fromisoformat(file.signed.signed_at).astimezone(dt.UTC)
    except (ValidationError, ValueError, OverflowError):
        raise refused from None
    runs = {head.run_id: Head(head.count, head.hash) for head in file.signed.runs}
    if len(runs) != len(file.signed.runs):
        raise refused
    database = file.signed.database
    public = bytes.fromhex(file.public_key)
    return SignedHeads(
        signed_at,
        runs,
        None if database is None else Head(database.count, database.hash),
        public,
        signature_holds(file.signed.model_dump(), bytes.fromhex(file.signature), public),
    )


def check_heads(store: Store, heads: SignedHeads, trusted: bytes | None, run_id: str | None = None) -> HeadCheck:
    """Say whether the ledgers here still begin with what was signed, and by whom it was.

    Parameters
    ----------
    trusted
        The public key that counts: the one somebody named, else this installation's own; None when there is neither.
    run_id
        Only this run; left out, everything the file has a head of.

    Raises
    ------
    UnknownRunError
        If there is no such run.
    """
    problems, found = _signer(heads, trusted)
    ledger = database_ledger(store)
    here = set(map(str, queries.runs(store)["run_id"]))
    if run_id is not None:
        queries.run_info(store, run_id)
    if run_id is not None and run_id not in heads.runs:
        some = ", ".join([*list(heads.runs)[:_NAMED], *(["..."] if len(heads.runs) > _NAMED else [])])
        problems.append(f"The file has no head of run {run_id}" + (f"; it has those of {some}." if some else "."))
    for name, head in heads.runs.items():
        if run_id is None or name == run_id:
            wrong, holds = _run(store, name, head, ledger.events) if name in here else _gone(name, head, ledger.events)
            problems += wrong
            found += holds
    if run_id is None:
        wrong, holds = _database(ledger, heads.database)
        problems += wrong
        found += holds
    return HeadCheck(tuple(problems), tuple(found), fingerprint(heads.public_key))


def _signer(heads: SignedHeads, trusted: bytes | None) -> tuple[list[str], list[str]]:
    if not heads.genuine:
        return ["The signature does not fit what the file says: it was changed after it was signed, or forged."], []
    key = f"the key with the fingerprint {fingerprint(heads.public_key)[:_SHOWN]}…"
    if trusted is None:
        return [
            f"It was signed with {key}, and there is no key to hold it against: name one, or check it where it was "
            "signed."
        ], []
    if heads.public_key != trusted:
        return [
            f"It was signed with {key}, which is unknown here: the key that counts has the fingerprint "
            f"{fingerprint(trusted)[:_SHOWN]}…"
        ], []
    return [], [f"Signed at {utc(heads.signed_at)} with {key}."]


def _run(store: Store, run_id: str, head: Head, events: Sequence[Event]) -> tuple[list[str], list[str]]:
    decisions, check = decisions_of(store, run_id), verify_ledger(store, run_id)
    problems = [f"Run {run_id}: {problem}" for problem in check.problems]
    differs = _differs(decisions, head, "decision")
    if differs:
        problems.append(f"Run {run_id}: {differs}{_deleted_since(run_id, events)}")
    elif not problems:
        more = len(decisions) - head.count
        since = f", and {_counted(more, 'decision')} came since" if more else ""
        return [], [f"Run {run_id}: the ledger still begins {_begins(head, 'decision')}{since}."]
    return problems, []


def _differs(rows: Sequence[Decision] | Sequence[Event], head: Head, noun: str) -> str | None:
    """Say how rows that were signed differ from those that are here."""
    if len(rows) < head.count:
        return f"it had {_counted(head.count, noun)} when it was signed and has {len(rows):,} now."
    if begins_with(rows, head):
        return None
    return f"{noun} {head.count:,} is not the one that was signed: the ledger was written anew, its head included."


def _deleted_since(run_id: str, events: Sequence[Event]) -> str:
    """Say that a run was deleted here and is back, which explains other decisions and does not excuse them."""
    deleted = [event for event in events if event.run_id == run_id and event.what is Occasion.DELETED]
    return f" {deleted[-1].in_words()}." if deleted else ""


def _gone(run_id: str, head: Head, events: Sequence[Event]) -> tuple[list[str], list[str]]:
    deleted = [event for event in events if event.run_id == run_id and event.what is Occasion.DELETED]
    if not deleted:
        return [f"Run {run_id} is not here, and the ledger of the database does not say that it was deleted."], []
    went = deleted[-1]
    if went.decisions < head.count or (went.decisions == head.count and went.head_hash != head.hash):
        return [
            f"{went.in_words()}: that is not the ledger that was signed, with {_counted(head.count, 'decision')}."
        ], []
    return [], [f"{went.in_words()}."]


def _database(ledger: DatabaseLedger, head: Head | None) -> tuple[list[str], list[str]]:
    """Check the ledger that says which runs were deleted, against its signed head where there is one."""
    problems = [f"The ledger of the database: {problem}" for problem in ledger.problems]
    differs = None if head is None else _differs(ledger.events, head, "event")
    if differs:
        problems.append(f"The ledger of the database: {differs}")
    if problems or head is None:
        return problems, []
    return [], [f"The ledger of the database still begins {_begins(head, 'event')}."]


def _begins(head: Head, noun: str) -> str:
    if head.count == 0:
        return "empty, as signed"
    return f"with the {_counted(head.count, noun)} that {'was' if head.count == 1 else 'were'} signed"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def describe(content: bytes) -> dict[str, Any]:
    """Return what a file of signed heads says, as JSON-ready data for who just had it written."""
    file = _File.model_validate_json(content)
    return file.signed.model_dump() | {
        "public_key": file.public_key,
        "fingerprint": fingerprint(bytes.fromhex(file.public_key)),
    }
