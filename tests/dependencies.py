"""What is installed with the program, and the committed list of what was checked: ``python -m tests.dependencies``.

It renews `constraints.txt` and the table of `DEPENDENCIES.md` from what is installed here. A row whose version stayed
keeps what was checked; a new one says `NOT_YET`, which the tests refuse until somebody has looked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LIST = ROOT / "DEPENDENCIES.md"
CONSTRAINTS = ROOT / "constraints.txt"
NOT_YET = "not yet"

_ROW = re.compile(r"^\| ([a-z0-9-]+) \| (\S+) \| (.*?) \| (run|test) \| (.*?) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """One package: its version, which others ask for it, whether the program or the tests need it, what was checked."""

    name: str
    version: str
    asked_by: str
    use: str
    checked: str

    def __str__(self) -> str:
        return f"| {self.name} | {self.version} | {self.asked_by} | {self.use} | {self.checked} |"


def asked_for(file: str) -> Iterator[Requirement]:
    """Return the pins of a requirements file, without those of the files that it names."""
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        pin = line.split("#")[0].strip()
        if pin and not pin.startswith("-"):
            yield Requirement(pin)


def _closure(asked: list[Requirement]) -> dict[str, set[str]]:
    """Return every installed package that some requirements lead to, with who asks for it ("" is the file itself)."""
    found: dict[str, set[str]] = {}
    open_: list[tuple[Requirement, str]] = [(requirement, "") for requirement in asked]
    done: set[tuple[str, str]] = set()
    while open_:
        requirement, by = open_.pop()
        name = canonicalize_name(requirement.name)
        found.setdefault(name, set()).add(by)
        for extra in {"", *requirement.extras}:
            if (name, extra) in done:
                continue
            done.add((name, extra))
            for text in distribution(name).requires or ():
                further = Requirement(text)
                if further.marker is None or further.marker.evaluate({"extra": extra}):
                    open_.append((further, name))
    return found


def installed() -> list[Row]:
    """Return a row for each package that is installed because the requirements ask for it, by name; unchecked."""
    run, test = list(asked_for("requirements.txt")), list(asked_for("requirements-dev.txt"))
    needed, everything = _closure(run), _closure(run + test)
    return [
        Row(
            name,
            distribution(name).version,
            ", ".join(sorted(by or "requirements" for by in everything[name])),
            "run" if name in needed else "test",
            NOT_YET,
        )
        for name in sorted(everything)
    ]


def listed() -> list[Row]:
    """Return the rows of the committed list."""
    return [Row(*cells) for cells in _ROW.findall(LIST.read_text(encoding="utf-8"))]


def main() -> int:
    """Write both files anew; 1 when something was not checked yet."""
    checked = {(row.name, row.version): row.checked for row in listed()}
    rows = [
        Row(row.name, row.version, row.asked_by, row.use, checked.get((row.name, row.version), NOT_YET))
        for row in installed()
    ]
    before = _ROW.split(LIST.read_text(encoding="utf-8"))[0]
    LIST.write_text(before + "\n".join(map(str, rows)) + "\n", encoding="utf-8")
    CONSTRAINTS.write_text(
        "# Every version that is installed, as DEPENDENCIES.md lists it; written by `python -m tests.dependencies`.\n"
        + "".join(f"{row.name}=={row.version}\n" for row in rows),
        encoding="utf-8",
    )
    missing = [row.name for row in rows if row.checked == NOT_YET]
    sys.stdout.write(f"{len(rows)} packages; not checked yet: {', '.join(missing) or 'none'}\n")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
