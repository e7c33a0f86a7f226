"""The README states every limit with its default."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tepa_core.limits import USUAL, Limits

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Limits)])
def test_limit_is_in_the_readme(field: str) -> None:
    assert f"| `{field}` | {getattr(USUAL, field):,} |" in README
