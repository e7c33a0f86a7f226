"""Everything that streamlit runs by itself passes the error boundary: read off the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "tepa_core" / "ui").rglob("*.py")))

CALLED_BY_A_WIDGET = ("on_click", "on_change", "on_select", "on_asked_change", "on_submit")

#: Streamlit's own, which change nothing here.
ITS_OWN = {"st.logout", "st.login"}


def guarded() -> set[str]:
    """Names of the functions that are made by `boundary.callback`."""
    return {
        node.name
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one) == "boundary.callback" for one in node.decorator_list)
    }


def callbacks() -> Iterator[tuple[str, ast.expr]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg in CALLED_BY_A_WIDGET and not isinstance(keyword.value, ast.Constant):
                        yield f"{path.name}:{node.lineno}", keyword.value


def is_guarded(value: ast.expr, names: set[str]) -> bool:
    match value:
        case ast.Lambda(body=ast.Call(func=called)):
            return is_guarded(called, names)
        case ast.Call(func=called):
            return ast.unparse(called) == "boundary.callback"
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names or ast.unparse(value) in ITS_OWN
    return False


def test_no_click_runs_outside_the_boundary() -> None:
    # A figure hands on what its page gives it: the pages are read as well.
    handed_on = {"select if callable(select) else 'rerun' if select else 'ignore'"}
    names, found = guarded(), list(callbacks())
    assert len(found) > 25
    loose = [(at, ast.unparse(value)) for at, value in found if not is_guarded(value, names)]
    assert [(at, value) for at, value in loose if value not in handed_on] == []


def test_no_part_of_a_page_is_drawn_alone_outside_the_boundary() -> None:
    using = [path.name for path in SOURCES if "st.fragment" in path.read_text("utf-8")]
    assert using == ["boundary.py"]
