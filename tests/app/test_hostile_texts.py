"""Case 51: whatever text a field holds, no page obeys it, and a reader sees it as it was typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest

from tepa_core.inert import one_line
from tepa_core.store import PATH_VARIABLE
from tepa_core.ui import cache
from tests.app.conftest import OpenPage
from tests.hostile import EVERY, OBEYED, Hostile, build, shifted

PAGES = (
    "explore/overview",
    "explore/phases",
    "explore/lifecycle",
    "explore/thresholds",
    "audit/archive",
    "audit/decisions",
    "evidence/reproduction",
    "evidence/theory",
    "data/run",
    "data/import",
)

#: Where Streamlit knows no Markdown: by kind of element the fields that are shown as they are, or never.
PLAIN = {
    "selectbox": {"options", "raw_value", "default_value", "set_value", "placeholder"},
    "multiselect": {"options", "raw_values", "default", "placeholder"},
    "text": {"body"},
    "code": {"code_text"},
    "arrow_data_frame": {"*"},
    "plotly_chart": {"spec", "figure", "alt", "config"},
    "text_input": {"value", "default", "placeholder"},
    "text_area": {"value", "default", "placeholder"},
    "page_link": {"page", "query_string", "page_script_hash"},
    "download_button": {"url"},
    "file_uploader": set(),
    "bidi_component": {"*"},
    "component_instance": {"*"},
}
#: What plotly would draw, or a browser not show, of a hostile text.
IN_A_FIGURE = ("<img", "<a ", "<b>bold", "\x1b", "\x07", "\u202e", "\x9b", "\r")

NEVER_SHOWN = {"id", "key", "form_id", "element_id", "query_param_key", "user_key", "icon"}


def strings(message: Message, kind: str) -> Iterator[tuple[str, str]]:
    """Yield every string of an element that may be Markdown, with the name of its field."""
    plain = PLAIN.get(kind, set())
    for field, value in message.ListFields():
        if "*" in plain or field.name in plain or field.name in NEVER_SHOWN:
            continue
        many = value if hasattr(value, "append") or hasattr(value, "add") else [value]
        for one in many:
            if isinstance(one, str):
                yield f"{kind}.{field.name}", one
            elif isinstance(one, Message):
                yield from strings(one, kind)


def elements(at: AppTest) -> Iterator[tuple[str, Message]]:
    """Yield every block and element of a page with its kind."""

    def walk(node: object) -> Iterator[tuple[str, Message]]:
        proto = getattr(node, "proto", None)
        if isinstance(proto, Message):
            yield getattr(node, "type", ""), proto
        for child in getattr(node, "children", {}).values():
            yield from walk(child)

    yield from walk(at._tree)


def kind_of(kind: str, message: Message) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", message.DESCRIPTOR.name).lower() or kind


def drawn(told: object, name: str = "") -> Iterator[str]:
    """Yield the texts that plotly writes into a figure."""
    match told:
        case dict():
            for inner, part in told.items():
                # Data of a mark, names of groups, and the words beside the figure are not drawn.
                if inner not in ("customdata", "legendgroup", "meta", "template"):
                    yield from drawn(part, inner)
        case list():
            for part in told:
                yield from drawn(part, name)
        case str():
            yield told


def obeyed(at: AppTest) -> list[str]:
    """Return the places of a page in which Markdown, or plotly, would make something of a hostile text."""
    found = []
    for chart in at.get("plotly_chart"):
        words = list(drawn(json.loads(chart.proto.spec)))
        found += [f"plotly: {sign!r} in {text[:200]!r}" for text in words for sign in IN_A_FIGURE if sign in text]
    for kind, message in elements(at):
        for place, text in strings(message, kind_of(kind, message)):
            left = re.sub(r"\\.", "", text, flags=re.DOTALL)
            found += [f"{place}: {sign!r} in {text[:200]!r}" for sign in OBEYED if sign in left]
    return found


def everything(at: AppTest) -> str:
    """Return all text of a page as a reader sees it."""
    parts = []
    for _kind, message in elements(at):
        for field, value in message.ListFields():
            for one in value if hasattr(value, "append") else [value]:
                if isinstance(one, str) and field.name not in ("spec", "id"):
                    parts.append(one)
    read = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", "\n".join(parts))
    return re.sub("[\u2060\u2068\u2069]", "", read)


def seen(text: str) -> str:
    """Return a text as a reader sees it: on one line, the unseen written out."""
    return re.sub("[\u2068\u2069]", "", one_line(text)).replace("\\", "")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Hostile]]:
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "hostile.duckdb"
    made = build(path, folder / "files")
    yield path, made
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def reading(hostile: tuple[Path, Hostile], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(PATH_VARIABLE, str(hostile[0]))
    monkeypatch.chdir(Path(__file__).parents[2])
    return hostile[0]


@pytest.mark.parametrize("kind", ["simulation", "log", "facts"])
@pytest.mark.parametrize("page", PAGES)
def test_no_page_obeys_a_text_of_its_run(
    hostile: tuple[Path, Hostile], open_page: OpenPage, page: str, kind: str
) -> None:
    if page == "evidence/reproduction" and kind != "log":
        return  # It shows the paper's runs, whichever is chosen.
    at = open_page(page, run=getattr(hostile[1], kind))
    assert obeyed(at) == []


@pytest.mark.parametrize("number", range(len(EVERY)))
def test_any_field_with_any_text_is_shown_as_typed_on_lifecycle_archive_and_decisions(
    hostile: tuple[Path, Hostile], open_page: OpenPage, number: int
) -> None:
    run, precedent = hostile[1].log, hostile[1].precedents[number]
    shown = {
        "explore/lifecycle": (0, 1, 2, 3, 4, 6),
        "audit/archive": (0, 1, 3, 4, 6, 8, 9),
        "audit/decisions": (8, 9),
    }
    for page, fields in shown.items():
        query = {"decision": str(number + 1)} if page == "audit/decisions" else {"precedent": precedent}
        at = open_page(page, run=run, show="all", **query)
        assert obeyed(at) == []
        read = everything(at).replace("\\", "")
        assert [by for by in fields if seen(shifted(number, by)) not in read] == [], page


@pytest.mark.parametrize("text", EVERY)
def test_no_page_obeys_what_an_address_says(hostile: tuple[Path, Hostile], open_page: OpenPage, text: str) -> None:
    log, simulation = hostile[1].log, hostile[1].simulation
    addresses = (
        ("explore/overview", {"run": text}),
        ("explore/lifecycle", {"run": log, "precedent": text, "subject": text, "key": text, "q": text}),
        ("explore/lifecycle", {"run": simulation, "method": text, "seed": text, "key": text, "transition": text}),
        ("audit/archive", {"run": log, "precedent": text, "as_of": text, "find": text, "user": text, "verb": text}),
        ("audit/decisions", {"run": log, "decision": text, "by": text}),
        ("explore/thresholds", {"run": simulation, "theta_rec": text, "pin": text, "tasks": text}),
    )
    for page, query in addresses:
        at = open_page(page, **query)
        assert obeyed(at) == [], page
    # The one address whose text every page repeats.
    at = open_page("explore/overview", run=text)
    assert seen(text) in everything(at).replace("\\", "")


def test_the_scan_finds_what_is_obeyed() -> None:
    def page() -> None:
        import streamlit as st

        st.caption("see ![x](http://127.0.0.1:1/p.png)")
        st.selectbox("a label with [k](http://e.example)", ["[k](http://e.example)"], help="<b>help</b>")

    places = {one.split(":")[0] for one in obeyed(AppTest.from_function(page).run())}
    assert places == {"markdown.body", "selectbox.label", "selectbox.help"}


def test_the_database_is_read_from_the_hostile_file(reading: Path) -> None:
    assert cache.store().path == reading
