"""Every tampered archive and hostile log there is gets refused with a sentence, or taken in with every page opening.

``python -m tests.prove.tampered``. The tests try every 17th of them; this is the same file of tests with all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Run the tests over everything; 0 when they pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/app/test_tampered.py"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "TEPA_PROVE_EVERY": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
