"""Write ``heads_of_government.csv``: who led the governments of five countries from 1990 to 2024.

A log of directly supplied facts in which a value really changes and really returns (A, B, A). Every tenure is stated
on its first day, confirmed on each 1 July, and stated once more on its last full day. The table of tenures below is the
only source; nothing is drawn.

Run ``python data/make_heads_of_government.py`` to rewrite the committed file, or add ``--to FILE`` to write elsewhere.
"""

import argparse
import csv
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

COLUMNS = ("ts", "user", "key", "value", "outcome", "text", "phase", "actor", "source_ref", "ingested_at")
KEY = "head of government"
FIRST_DAY = date(1990, 1, 1)
AS_OF = date(2024, 12, 31)
HOUR = 12


@dataclass(frozen=True, slots=True)
class Tenure:
    """One uninterrupted time in office.

    Attributes
    ----------
    country, person : str
        Who led which government. Two cabinets of one person without a break are one tenure.
    start : date
        First day in office; it may lie before the log begins.
    end : date or None
        Day on which the successor took over; None for who was still in office on ``AS_OF``.
    """

    country: str
    person: str
    start: date
    end: date | None


def tenures(country: str, *starts: tuple[str, str], until: str | None = None) -> tuple[Tenure, ...]:
    """Return the tenures of a country whose heads of government followed each other without a gap.

    Parameters
    ----------
    country : str
        Name of the country.
    *starts : tuple of (str, str)
        First day in office (ISO date) and person, oldest first. Each tenure ends on the day the next one starts.
    until : str, optional
        Day on which the last tenure ended; without it that person was still in office on ``AS_OF``.
    """
    days = [date.fromisoformat(day) for day, _ in starts]
    ends = [*days[1:], date.fromisoformat(until) if until is not None else None]
    return tuple(
        Tenure(country, person, start, end) for (_, person), start, end in zip(starts, days, ends, strict=True)
    )


# Prime Ministers, whatever the office is called at home. Stand-ins during an illness or an absence are left out; who
# led on after a death or a resignation and was then confirmed counts from the first day.
TENURES = (
    *tenures(
        "Hungary",
        ("1990-05-23", "József Antall"),
        ("1993-12-12", "Péter Boross"),
        ("1994-07-15", "Gyula Horn"),
        ("1998-07-06", "Viktor Orbán"),
        ("2002-05-27", "Péter Medgyessy"),
        ("2004-09-29", "Ferenc Gyurcsány"),
        ("2009-04-14", "Gordon Bajnai"),
        ("2010-05-29", "Viktor Orbán"),
    ),
    *tenures(
        "Israel",
        ("1986-10-20", "Yitzhak Shamir"),
        ("1992-07-13", "Yitzhak Rabin"),
        ("1995-11-04", "Shimon Peres"),
        ("1996-06-18", "Benjamin Netanyahu"),
        ("1999-07-06", "Ehud Barak"),
        ("2001-03-07", "Ariel Sharon"),
        ("2006-04-14", "Ehud Olmert"),
        ("2009-03-31", "Benjamin Netanyahu"),
        ("2021-06-13", "Naftali Bennett"),
        ("2022-07-01", "Yair Lapid"),
        ("2022-12-29", "Benjamin Netanyahu"),
    ),
    *tenures(
        "Italy",
        ("1989-07-22", "Giulio Andreotti"),
        ("1992-06-28", "Giuliano Amato"),
        ("1993-04-28", "Carlo Azeglio Ciampi"),
        ("1994-05-10", "Silvio Berlusconi"),
        ("1995-01-17", "Lamberto Dini"),
        ("1996-05-17", "Romano Prodi"),
        ("1998-10-21", "Massimo D'Alema"),
        ("2000-04-25", "Giuliano Amato"),
        ("2001-06-11", "Silvio Berlusconi"),
        ("2006-05-17", "Romano Prodi"),
        ("2008-05-08", "Silvio Berlusconi"),
        ("2011-11-16", "Mario Monti"),
        ("2013-04-28", "Enrico Letta"),
        ("2014-02-22", "Matteo Renzi"),
        ("2016-12-12", "Paolo Gentiloni"),
        ("2018-06-01", "Giuseppe Conte"),
        ("2021-02-13", "Mario Draghi"),
        ("2022-10-22", "Giorgia Meloni"),
    ),
    *tenures(
        "Japan",
        ("1989-08-10", "Toshiki Kaifu"),
        ("1991-11-05", "Kiichi Miyazawa"),
        ("1993-08-09", "Morihiro Hosokawa"),
        ("1994-04-28", "Tsutomu Hata"),
        ("1994-06-30", "Tomiichi Murayama"),
        ("1996-01-11", "Ryutaro Hashimoto"),
        ("1998-07-30", "Keizo Obuchi"),
        ("2000-04-05", "Yoshiro Mori"),
        ("2001-04-26", "Junichiro Koizumi"),
        ("2006-09-26", "Shinzo Abe"),
        ("2007-09-26", "Yasuo Fukuda"),
        ("2008-09-24", "Taro Aso"),
        ("2009-09-16", "Yukio Hatoyama"),
        ("2010-06-08", "Naoto Kan"),
        ("2011-09-02", "Yoshihiko Noda"),
        ("2012-12-26", "Shinzo Abe"),
        ("2020-09-16", "Yoshihide Suga"),
        ("2021-10-04", "Fumio Kishida"),
        ("2024-10-01", "Shigeru Ishiba"),
    ),
    *tenures(
        "Norway",
        ("1989-10-16", "Jan P. Syse"),
        ("1990-11-03", "Gro Harlem Brundtland"),
        ("1996-10-25", "Thorbjørn Jagland"),
        ("1997-10-17", "Kjell Magne Bondevik"),
        ("2000-03-17", "Jens Stoltenberg"),
        ("2001-10-19", "Kjell Magne Bondevik"),
        ("2005-10-17", "Jens Stoltenberg"),
        ("2013-10-16", "Erna Solberg"),
        ("2021-10-14", "Jonas Gahr Støre"),
    ),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """That a person was head of government of a country on a day, in one sentence."""

    day: date
    tenure: Tenure
    text: str
    actor: str


def spelled(day: date) -> str:
    """Return a date as "1 July 1990", the same in every locale."""
    months = (
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    )  # fmt: skip
    return f"{day.day} {months[day.month - 1]} {day.year}"


def statements(tenure: Tenure) -> Iterator[Statement]:
    """Yield the statements of one tenure inside the span of the log, oldest first."""
    who, where = tenure.person, tenure.country
    last = AS_OF if tenure.end is None else tenure.end - timedelta(days=1)
    if tenure.start >= FIRST_DAY:
        text = f"{who} took office as head of government of {where} on {spelled(tenure.start)}."
        yield Statement(tenure.start, tenure, text, "appointment")
    for year in range(max(tenure.start, FIRST_DAY).year, last.year + 1):
        day = date(year, 7, 1)
        if tenure.start < day < last:
            text = f"On {spelled(day)} the head of government of {where} was {who}."
            yield Statement(day, tenure, text, "yearbook")
    if tenure.end is None:
        text = f"At the end of {last.year} {who} was in office as head of government of {where}."
    else:
        text = f"{who} was head of government of {where} until {spelled(tenure.end)}."
    yield Statement(last, tenure, text, "yearbook" if tenure.end is None else "handover")


def write(to: Path) -> int:
    """Write the log to ``to``, ordered by day and country; return the number of rows."""
    log = sorted(
        (statement for tenure in TENURES for statement in statements(tenure)),
        key=lambda statement: (statement.day, statement.tenure.country),
    )
    with to.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for number, statement in enumerate(log, start=1):
            ts = datetime.combine(statement.day, time(HOUR), tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            said = (statement.tenure.country, KEY, statement.tenure.person, "", statement.text)
            phase = f"{statement.day.year // 10 * 10}s"
            out.writerow((ts, *said, phase, statement.actor, f"gov-{number:04d}", ""))
    return len(log)


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line and write the file."""
    parser = argparse.ArgumentParser(description="Write the log of heads of government, 1990 to 2024.")
    parser.add_argument(
        "--to", type=Path, default=Path(__file__).with_name("heads_of_government.csv"), help="where the log goes"
    )
    given = parser.parse_args(argv)
    rows = write(given.to)
    logging.getLogger(__name__).info("%d rows in %s", rows, given.to)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
