"""`make prove` runs every script of its folder, and one that fails or breaks makes the whole fail."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.prove import __main__ as prove


@dataclass
class Scripts:
    """Stands in for the processes: what ran, and with what number each ends."""

    ran: list[str] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)

    def run(self, command: list[str], **_: object) -> SimpleNamespace:
        self.ran.append(command[-1].removeprefix("tests.prove."))
        return SimpleNamespace(returncode=self.codes.get(self.ran[-1], 0))


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Scripts:
    stand_in = Scripts()
    monkeypatch.setattr(subprocess, "run", stand_in.run)
    return stand_in


def test_every_script_runs_on_its_own_and_begins_with_its_claim() -> None:
    assert len(prove.names()) >= 3
    for name in prove.names():
        tree = ast.parse((prove.FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), name
        assert ast.unparse(tree.body[-1]).startswith("if __name__ == '__main__':\n    sys.exit(main("), name


def test_all_are_run_or_those_that_are_named(scripts: Scripts, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove.main([]) == 0
    assert scripts.ran == prove.names()
    scripts.ran.clear()
    assert prove.main(["sliders"]) == 0
    assert scripts.ran == ["sliders"]
    assert "sliders          holds" in capsys.readouterr().out


@pytest.mark.parametrize(("code", "says"), [(1, "DOES NOT HOLD"), (2, "ended with 2"), (-9, "ended with -9")])
def test_one_that_fails_fails_the_whole_after_the_rest_has_run(
    scripts: Scripts, capsys: pytest.CaptureFixture[str], code: int, says: str
) -> None:
    first = prove.names()[0]
    scripts.codes[first] = code
    assert prove.main([]) == 1
    assert scripts.ran == prove.names()
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith(first)]
    assert says in line


def test_a_name_that_is_not_there_is_refused_with_those_that_are(
    scripts: Scripts, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prove.main(["sliders", "nothing"]) == 2
    assert "no script nothing" in capsys.readouterr().err
    assert scripts.ran == []


def test_the_folder_is_where_make_looks() -> None:
    assert prove.FOLDER == Path(__file__).parent / "prove"
    assert "-m tests.prove $(ARGS)" in (prove.ROOT / "Makefile").read_text(encoding="utf-8")
