"""What a reader should know of an imported log, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Badge -> what the count counts, and what it means for a reader.
BADGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "missing_user": ("rows without a user", "they count as one user of their own"),
        "naive_time": ("times without a zone", "they were read in the zone chosen at import"),
        "partial_time": ("times that name a month or year alone", "they count from its first day"),
        "finer_time": ("times finer than a microsecond", "they were cut there"),
        "time_from_order": ("rows without a time", "the order of the file stands for it, a second for each row"),
        "tied_time": (
            "rows at the very time of another value or the opposite outcome of their key",
            "the order of the file decides which came first",
        ),
        "deletion": ("rows that say their memory was deleted", "they count as evidence against its value"),
        "end_of_validity": ("values that ceased to hold", "evidence against each at the time of its end"),
        "end_ahead": ("values that will cease to hold later than now", "they hold until then"),
        "repeated_source": ("rows that repeat what the same source says", "each statement of a source counts once"),
        "lookalike": (
            "rows whose value, key or user looks like another one",
            "they were not merged: compare their spelling",
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
