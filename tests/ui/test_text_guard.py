"""What reaches Markdown is a sentence of ours, a number, or a text that passed `plain_text`: read off the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "tepa_core" / "ui").rglob("*.py")))

#: Calls whose words Markdown obeys, and which of their arguments are such words: positions and names.
CALLS: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "markdown",
            "caption",
            "title",
            "header",
            "subheader",
            "info",
            "warning",
            "error",
            "success",
            "toast",
            "badge",
        ),
        ((0,), ("body", "label", "help")),
    ),
    **dict.fromkeys(
        (
            "selectbox",
            "multiselect",
            "text_input",
            "text_area",
            "number_input",
            "slider",
            "select_slider",
            "date_input",
        ),
        ((0,), ("label", "help")),
    ),
    **dict.fromkeys(("radio", "segmented_control", "pills"), ((0,), ("label", "help", "captions", "format_func"))),
    **dict.fromkeys(("checkbox", "toggle", "file_uploader", "popover", "expander"), ((0,), ("label", "help"))),
    **dict.fromkeys(("button", "form_submit_button", "download_button"), ((0,), ("label", "help"))),
    "metric": ((0, 1, 2), ("label", "value", "delta", "help")),
    "page_link": ((), ("label", "help")),
    "spinner": ((0,), ("text",)),
    "progress": ((1,), ("text",)),
    "status": ((0,), ("label",)),
    "update": ((), ("label",)),
    "dialog": ((0,), ()),
}

#: Those whose options Markdown obeys as well.
OPTIONS = {"radio", "segmented_control", "pills"}

#: Functions that make a text inert.
INERT = {"plain_text", "one_line", "visible", "lines", "method_label"}

#: Names of what people and logs write: fields of rows and objects, parameters, and what an address or a form says.
TEXTS = {
    "value", "key", "subject", "user", "phase", "text", "actor", "source", "source_ref", "name", "reviewer", "reason",
    "reasons", "scope", "file", "right", "retrieved", "followed", "program", "query_params", "session_state", "said",
    "asked", "named", "search", "error", "refusal", "problem", "problems", "redacted", "sentence", "gold", "answer",
    "backend", "model",
}  # fmt: skip


#: Read as texts, and ours: a field of a dataclass, a role, a story in Markdown, what a click left to be told.
OURS = {"field.name", "actor.role", "side.retrieved", "st.session_state.pop"}

#: Parameter -> the expression that it was given, where that stands, and what was given there.
Given = dict[str, tuple[ast.expr, "Place", "Given"]]


@dataclass(frozen=True)
class Place:
    """A function, or the top of a module, and the file that it is in."""

    node: Any
    file: Path


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


@cache
def functions() -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(Place(node, path))
    return found


def meant(call: ast.Call, place: Place) -> list[Place]:
    """Return the functions of the ui that a call may mean: those of its own file before others, of fitting arity."""
    known = [one for one in functions().get(_name(call), []) if len(call.args) <= len(one.node.args.args)]
    return [one for one in known if one.file == place.file] or known


def loose(
    node: ast.AST | None, place: Place, given: Given | None = None, seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the texts of people that an expression lets through, followed through names and functions of the ui."""
    given = given or {}
    match node:
        case None | ast.Constant() | ast.Compare():
            return
        case ast.Lambda():
            # Its parameters are options, which are judged by themselves where Markdown obeys them.
            yield from loose(node.body, place, given, seen | {one.arg for one in node.args.args})
        case ast.Name() if node.id in seen:
            return
        case ast.Name() if node.id in given:
            expression, there, before = given[node.id]
            yield from loose(expression, there, before)
        case ast.Name():
            values = list(assigned(node.id, place.node))
            for value in values:
                yield from loose(value, place, given, seen | {node.id})
            if not values and node.id in TEXTS and not _counts(node.id, place.node):
                yield node.id
        case ast.Attribute() | ast.Subscript():
            field = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
            root = _root(node)
            whole = ast.unparse(node)
            if whole in OURS:
                return
            unknown = root in TEXTS and not isinstance(field, str) and not list(assigned(root, place.node))
            if field in TEXTS or unknown or "query_params" in whole or "session_state" in whole:
                yield whole
        case ast.FormattedValue():
            if node.format_spec is None:
                yield from loose(node.value, place, given, seen)
        case ast.IfExp():
            yield from loose(node.body, place, given, seen)
            yield from loose(node.orelse, place, given, seen)
        case ast.ListComp() | ast.GeneratorExp():
            yield from loose(node.elt, place, given, seen)
        case ast.Call():
            name = _name(node)
            if name in INERT or name in ("len", "sum"):
                return
            called = [one for one in meant(node, place) if f"{name}()" not in seen]
            for one in called:
                handed = dict(given_to(node, one, place, given))
                for inner in ast.walk(one.node):
                    if isinstance(inner, ast.Return):
                        yield from loose(inner.value, one, handed, seen | {f"{name}()"})
            if not called and not meant(node, place):
                for part in (node.func, *node.args):
                    yield from loose(part, place, given, seen)
        case ast.expr():
            for child in ast.iter_child_nodes(node):
                yield from loose(child, place, given, seen)


def given_to(
    call: ast.Call, function: Place, place: Place, given: Given
) -> Iterator[tuple[str, tuple[ast.expr, Place, Given]]]:
    """Yield the parameters of a function with what a call gives them."""
    for parameter, value in zip(function.node.args.args, call.args, strict=False):
        yield parameter.arg, (value, place, given)
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, (keyword.value, place, given)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return getattr(node, "id", "")


def assigned(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    """Yield everything that a name is set to in a scope."""
    for node in ast.walk(scope):
        match node:
            case ast.Assign() if any(name in _targets(target) for target in node.targets):
                yield node.value
            case ast.AugAssign() | ast.NamedExpr() if name in _targets(node.target):
                yield node.value
            case ast.For() | ast.comprehension() if name in _targets(node.target):
                yield node.iter
            case ast.AnnAssign() if name in _targets(node.target) and node.value is not None:
                yield node.value


def _counts(name: str, scope: ast.AST) -> bool:
    """Whether a name is a parameter that is a number."""
    found = [node.annotation for node in ast.walk(scope) if isinstance(node, ast.arg) and node.arg == name]
    return any(isinstance(one, ast.Name) and one.id in ("int", "float", "bool") for one in found)


def _targets(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def suspects(sources: Sequence[Path] = SOURCES) -> Iterator[str]:
    """Yield the place and the text of each call that hands a text of people to Markdown."""
    for path in sources:
        tree = ast.parse(path.read_text("utf-8"))
        for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))):
            place = Place(scope, path)
            for node in (inner for part in getattr(scope, "body", []) for inner in _within(part)):
                positions, names = CALLS[_name(node)]
                words = [node.args[at] for at in positions if at < len(node.args)]
                words += [keyword.value for keyword in node.keywords if keyword.arg in names]
                if _name(node) in OPTIONS and not any(keyword.arg == "format_func" for keyword in node.keywords):
                    words += node.args[1:2]
                for word in words:
                    for text in loose(word, place):
                        yield f"{path.name}:{word.lineno}: {text} in {ast.unparse(word)[:120]}"


def _within(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that draw words in a scope, and not in a function inside it."""
    if isinstance(node, ast.FunctionDef):
        return
    if isinstance(node, ast.Call) and _name(node) in CALLS:
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _within(child)


def test_no_text_of_people_reaches_markdown_unread() -> None:
    assert list(suspects()) == []


HOLES = (
    "st.caption(f'Run {info.name}')",
    "words = f'by {row[\"reviewer\"]}'\n    st.toast(words)",
    "for sentence in check.problems:\n        st.warning(sentence)",
    "column.selectbox('Key', keys, help=info.name)",
    "try:\n        pass\n    except ValueError as error:\n        st.error(f'Not saved: {error}')",
    "st.info(f'There is no {st.query_params[\"run\"]}')",
    "st.segmented_control('Phase', [phase for phase in phases['phase']])",
    "st.markdown(' '.join(['a', info.source]))",
)


@pytest.mark.parametrize("hole", HOLES)
def test_the_guard_sees_a_hole(tmp_path: Path, hole: str) -> None:
    page = tmp_path / "page.py"
    page.write_text(f"def draw(info, row, check, column, keys, phases):\n    {hole}\n", "utf-8")
    assert list(suspects([page]))
    page.write_text("def draw(info):\n    st.caption(f'Run {plain_text(info.name)}, {info.seeds:,} seeds')\n", "utf-8")
    assert not list(suspects([page]))
