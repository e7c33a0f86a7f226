"""Run the scripts beside this file, each in a process of its own, and say at the end which claims hold."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


def names(folder: Path = FOLDER) -> list[str]:
    """Return the scripts there are, by name."""
    return sorted(path.stem for path in folder.glob("[a-z]*.py"))


def say(line: str) -> None:
    """Write a line at once, so that it stands before what the next script writes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(asked: Sequence[str]) -> int:
    """Run the scripts asked for, or all; 0 when every claim holds, 1 when one does not, 2 when a name is unknown."""
    known = names()
    unknown = [name for name in asked if name not in known]
    if unknown:
        sys.stderr.write(f"There is no script {', '.join(unknown)} in tests/prove. There are: {', '.join(known)}.\n")
        return 2
    verdicts = []
    for name in asked or known:
        sys.stdout.write(f"\n== {name}\n")
        began = time.monotonic()
        code = subprocess.run([sys.executable, "-m", f"tests.prove.{name}"], cwd=ROOT, check=False).returncode
        verdict = {0: "holds", 1: "DOES NOT HOLD"}.get(code, f"COULD NOT BE MEASURED (it ended with {code})")
        verdicts.append((code, f"{name:16} {verdict}, {time.monotonic() - began:.0f} s"))
    say("\n== what was proved")
    for _, line in verdicts:
        say(line)
    return int(any(code for code, _ in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
