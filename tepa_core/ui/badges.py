"""What a reader should know of an imported log, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Badge -> what the count counts, and what it means for a reader.
BADGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "missing_user": ("rows without a user", "they count as one user of their own"),
        "naive_time": ("times without a zone", "they were read in the zone chosen at import"),
        "tied_time": (
            "rows at the very time of another value of their key",
            "the order of the file decides which came first",
        ),
        "late_arrival": (
            "rows that arrived more than a day after the event",
            "on Lifecycle, switch to the order of arrival to see what was known when",
        ),
        "batch_revocation": (
            "memories revoked together with at least two others at one instant",
            "one job or one import, rather than as many changes of mind",
        ),
    }
)


def in_words(badge: str, count: int) -> str:
    """Say what a badge counts and means: "52 rows that arrived ...: on Lifecycle, ..."."""
    what, meaning = BADGES.get(badge, (badge.replace("_", " "), ""))
    return f"{count:,} {what}{f': {meaning}' if meaning else ''}."
