"""What the README lists is what there is: every method, state, page, command and setting, and nothing else."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path

from tepa_core.cli import parser
from tepa_core.decisions import Action, Category
from tepa_core.lifecycle import DEPRECATED, Rule, State
from tepa_core.methods import METHODS
from tepa_core.streams import STREAMS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def table_under(heading: str) -> set[str]:
    """First cells, in code marks, of the tables under a heading of the README."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `([^`]+)`", section, flags=re.MULTILINE))


def test_every_method_is_listed() -> None:
    assert table_under("Methods") == set(METHODS)


def test_every_state_and_rule_is_listed() -> None:
    rules = {rule.label for rule in Rule if rule is not Rule.NONE}
    assert table_under("States") == {state.label for state in State} | {DEPRECATED} | rules


def test_every_stream_is_listed() -> None:
    assert table_under("Streams") == set(STREAMS) | {"facts"}


def test_every_action_and_category_of_a_decision_is_listed() -> None:
    assert table_under("Decide") == {str(name) for name in (*Action, *Category)}


def test_every_command_is_listed() -> None:
    listed = {row.split()[0] for row in table_under("Command line")}
    commands = next(
        set(action.choices) for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    assert listed == commands


def test_every_setting_from_the_environment_is_listed() -> None:
    used = {
        match
        for path in (ROOT / "tepa_core").rglob("*.py")
        for match in re.findall(r"\"(TEPA_[A-Z_]+)\"", path.read_text(encoding="utf-8"))
    }
    assert used <= table_under("Settings")


def test_every_page_is_named() -> None:
    tree = ast.parse((ROOT / "app.py").read_text(encoding="utf-8"))
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "PAGES"
    )
    pages = {f"{row[0]}.py" for rows in ast.literal_eval(table).values() for row in rows}
    assert table_under("The pages") == {Path(page).stem for page in pages}
    assert {str(path.relative_to(ROOT / "pages")) for path in (ROOT / "pages").rglob("*.py")} == pages


def test_no_page_stands_directly_in_pages() -> None:
    # Streamlit would switch into its older page mode, in which a deep link runs the page without app.py.
    assert list((ROOT / "pages").glob("*.py")) == []
    assert max(len(path.read_text().splitlines()) for path in (ROOT / "pages").rglob("*.py")) <= 80
