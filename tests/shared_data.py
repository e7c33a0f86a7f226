"""Published sets that are not handed on with the program: a test of them runs where they lie beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "data"

#: How the reason ends for which alone a test may be skipped where everything is installed.
ABSENT = "not part of the project and not on this machine"


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test where a file or folder of the published sets is absent."""
    return pytest.mark.skipif(not (FOLDER / name).exists(), reason=f"{name} is {ABSENT}")
