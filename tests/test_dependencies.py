"""What is installed is what the committed list says was checked; a changed version needs a renewed list."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

from tests import dependencies
from tests.dependencies import CONSTRAINTS, LIST, NOT_YET, ROOT, Row, asked_for, installed, listed

PINS = [*asked_for("requirements.txt"), *asked_for("requirements-dev.txt")]


def test_every_version_that_is_asked_for_is_listed() -> None:
    versions = {row.name: row.version for row in listed()}
    for pin in PINS:
        name = dependencies.canonicalize_name(pin.name)
        assert str(pin.specifier) == f"=={versions.get(name)}", f"{name}: renew the list as DEPENDENCIES.md says"
    assert len(PINS) >= 20


def test_every_package_that_is_installed_is_listed() -> None:
    versions = {row.name: row.version for row in listed()}
    for row in installed():
        assert row.version == versions.get(row.name), f"{row.name}: renew the list as DEPENDENCIES.md says"


def test_pip_installs_by_the_list() -> None:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    assert lines[1:] == [f"{row.name}=={row.version}" for row in listed()]
    assert "-c constraints.txt" in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert "-r requirements.txt" in (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()


def test_the_list_says_when_and_what_was_checked() -> None:
    text = LIST.read_text(encoding="utf-8")
    [day] = re.findall(r"^Checked by hand on (\S+)\.$", text, flags=re.MULTILINE)
    assert dt.date.fromisoformat(day) >= dt.date(2026, 12, 1)
    marks = set(re.findall(r"^\| ([A-Z]) \|", text, flags=re.MULTILINE))
    for row in listed():
        assert row.checked != NOT_YET, f"{row.name} {row.version} was not checked"
        assert {part.strip()[0] for part in row.checked.split(";")} <= marks, row
    looked_up = sum(not row.checked.startswith("D") for row in listed())
    assert f"{looked_up} of {len(listed())} packages were looked up" in text
    by_program = {dependencies.canonicalize_name(pin.name) for pin in asked_for("requirements.txt")}
    assert all(not row.checked.startswith("D") for row in listed() if row.name in by_program)


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the list and the constraints be written in another folder."""
    for name in ("LIST", "CONSTRAINTS"):
        of_project = getattr(dependencies, name)
        copy = tmp_path / of_project.name
        copy.write_bytes(of_project.read_bytes())
        monkeypatch.setattr(dependencies, name, copy)
    return tmp_path


def test_a_new_version_is_not_checked_yet(copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [
        Row("duckdb", "2.0.1", "requirements", "run", NOT_YET),
        Row("plotly", "9.9.9", "requirements", "run", NOT_YET),
    ]
    monkeypatch.setattr(dependencies, "installed", lambda: now)
    assert dependencies.main() == 1
    assert [(row.name, row.version, row.checked) for row in listed()] == [
        ("duckdb", "2.0.1", "A: none"),
        ("plotly", "9.9.9", NOT_YET),
    ]
    assert (copies / "constraints.txt").read_text().splitlines()[1:] == ["duckdb==2.0.1", "plotly==9.9.9"]
    assert (copies / "DEPENDENCIES.md").read_text().startswith(LIST.read_text().split("## The list")[0])
