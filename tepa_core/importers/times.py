"""Times as people and programs write them, read as microseconds since 1970 UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime

__all__ = ["NOT_A_TIME", "Instant", "instant"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
#: Stands for a missing time among microseconds.
NOT_A_TIME = -(2**63)

_EPOCH_SECONDS = re.compile(r"([0-9]{10})(?:\.([0-9]+))?")
#: Digits of whole numbers since 1970 -> how many of the unit make a microsecond, or how many microseconds it is.
_EPOCH_UNITS = {13: 1000, 16: 1}
_NANOSECONDS = re.compile(r"[0-9]{19}")
_FRACTION = re.compile(r"(\.[0-9]{6})[0-9]*?([1-9][0-9]*|0*)(?=$|[Z+-])", re.IGNORECASE)
_PARTIAL = re.compile(r"([0-9]{4})-([0-9]{2})(?:-([0-9]{2}))?")
_ISO_SHAPE = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ].*)?", re.IGNORECASE)
_SLASHED = re.compile(r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2})(?=$|[T ])", re.IGNORECASE)
_MAIL = re.compile(r"(?:[A-Z][a-z]{2}, )?[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{5,8}(?: .*)?")


@dataclass(frozen=True, slots=True)
class Instant:
    """A time that was read.

    Attributes
    ----------
    micros
        Microseconds since 1970 UTC.
    naive
        It had no offset, and was read in the zone of the log.
    partial
        It named a year or month alone, and stands for its first day.
    finer
        It was written finer than microseconds, and cut.
    """

    micros: int
    naive: bool = False
    partial: bool = False
    finer: bool = False


def instant(text: str, zone: tzinfo) -> Instant:
    """Read one time.

    Parameters
    ----------
    text
        ISO 8601 as databases and languages write it, dates with slashes and the year first, RFC 2822, a month or year
        with zeros for what is not known, or seconds, milli-, micro- or nanoseconds since 1970.
    zone
        Of times without an offset.

    Raises
    ------
    ValueError
        With the end of a sentence about the text.
    """
    if text.isascii() and text.isdecimal() and len(text) in (10, *_EPOCH_UNITS, 19):
        if len(text) == 10:
            return Instant(int(text) * 1_000_000)
        nanoseconds = int(text) % 1000 if len(text) == 19 else 0
        micros = int(text) // 1000 if len(text) == 19 else int(text) * _EPOCH_UNITS[len(text)]
        return Instant(micros, finer=nanoseconds != 0)
    seconds = _EPOCH_SECONDS.fullmatch(text)
    if seconds:
        digits = seconds[2] or ""
        return Instant(int(seconds[1]) * 1_000_000 + int(digits.ljust(6, "0")[:6]), finer=bool(digits[6:].strip("0")))
    partial = _PARTIAL.fullmatch(text)
    if partial and (partial[2] == "00" or partial[3] in (None, "00")):
        text = f"{partial[1]}-{'01' if partial[2] == '00' else partial[2]}-01"
    else:
        partial = None
    fraction = _FRACTION.search(text)
    finer = fraction is not None and bool(fraction[0][7:].strip("0"))
    moment = _moment(text)
    naive = moment.tzinfo is None
    if naive:
        moment = moment.replace(tzinfo=zone)
        # The two folds disagree exactly where the clock jumps: forward over the gap, or back through the same hour.
        early, late = moment.utcoffset(), moment.replace(fold=1).utcoffset()
        if early is not None and late is not None and early != late:
            happens = "never happened" if early < late else "happened twice"
            raise ValueError(f"{happens} in the zone {zone}, where the clock was changed; add an offset")
    micros = (moment - _EPOCH) // _MICROSECOND
    if not _FIRST <= micros <= _LAST:
        raise ValueError("lies outside the years 1 to 9999 in UTC")
    return Instant(micros, naive, partial is not None, finer)


def _moment(text: str) -> datetime:
    if text[10:11] in ("T", " ", ""):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
    return _spelled(text)


def _spelled(text: str) -> datetime:
    """Read the spellings that databases, mails and other languages write, or say what is wrong with the text."""
    if text.isdecimal() and text.isascii():
        if len(text) > 8:
            raise ValueError(
                f"has {len(text)} digits: neither epoch seconds (10), milliseconds (13), microseconds (16) nor "
                "nanoseconds (19)"
            )
        if len(text) < 8:
            raise ValueError("is a number of a step rather than a time; the order of the file can stand for time")
    if _MAIL.fullmatch(text):
        try:
            return parsedate_to_datetime(text)
        except (ValueError, IndexError):
            raise ValueError("does not exist") from None
    slashed = _SLASHED.match(text)
    if slashed:
        text = f"{slashed[1]}-{slashed[2]:0>2}-{slashed[3]:0>2}{text[slashed.end() :]}"
    if not _ISO_SHAPE.fullmatch(text):
        raise ValueError("is not a time in ISO 8601, such as 2026-03-02T09:15:00Z, nor epoch seconds or milliseconds")
    spelled = re.sub(r" ?(?:UTC|GMT|Z)$", "+00:00", text.upper())
    spelled = re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", spelled)
    try:
        return datetime.fromisoformat(re.sub(r" (?=[+-][0-9:]+$)", "", spelled))
    except ValueError as error:
        # The words about a text that is no time at all repeat the text, however long it is.
        what = "" if "isoformat" in str(error) else f" ({error})"
        raise ValueError(f"does not exist or is not ISO 8601{what}") from None
