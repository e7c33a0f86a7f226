"""What an imported run says of itself: decisions that this installation did not see being taken."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

#: Enough of a digest to tell files apart by eye.
_SHOWN = 12


def utc(at: dt.datetime) -> str:
    """Write a moment as people and programs read it, to the second."""
    return at.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def named(name: str, authenticated: bool) -> str:
    """Write who acted here, and say so where no login vouches for the name."""
    return name if authenticated else f"{name} (not authenticated)"


@dataclass(frozen=True, slots=True)
class Claim:
    """Where the first decisions of an imported run come from.

    A chain of hashes that verifies shows that a ledger hangs together, not who wrote it: whoever hands over a file can
    write all of it anew. So what is in it stays as it is, byte for byte, and is shown as claimed.

    Attributes
    ----------
    imported_by, authenticated
        Who took the file in here, and whether a login of this installation vouches for that name.
    imported_at
        When, in UTC.
    file_digest
        SHA-256 of the file, in hexadecimal.
    decisions, head_hash
        The decisions numbered 1 to ``decisions`` came with it; the last of them has this hash.
    """

    imported_by: str
    authenticated: bool
    imported_at: dt.datetime
    file_digest: str
    decisions: int
    head_hash: str

    def in_words(self) -> str:
        """Say where a decision comes from, as a part of a sentence."""
        return (
            f"claimed elsewhere, imported by {named(self.imported_by, self.authenticated)} at {utc(self.imported_at)} "
            f"from file digest {self.file_digest[:_SHOWN]}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what is shown with each claimed decision, as JSON-ready data."""
        return {
            "imported_by": self.imported_by,
            "imported_by_authenticated": self.authenticated,
            "imported_at": utc(self.imported_at),
            "file_digest": self.file_digest,
        }
