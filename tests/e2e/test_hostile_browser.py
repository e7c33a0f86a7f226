"""Case 51 in a real browser: every page, hostile text in every field; nothing is requested, nothing made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from tepa_core.inert import one_line
from tests.e2e.conftest import serving
from tests.hostile import EVERY, Hostile, build, shifted

pytestmark = pytest.mark.e2e

AtRest = Callable[[Page], None]

PAGES = (
    "",
    "phases",
    "lifecycle",
    "thresholds",
    "archive",
    "decisions",
    "reproduction",
    "theory",
    "run",
    "import",
)

#: What a hostile text would become in the document, each with the text that a person sees there.
MADE = """() => {
    const made = [];
    const at = (element) => `${element.tagName} ${(element.outerHTML || "").slice(0, 200)}`;
    const shown = document.querySelector("[data-testid=stApp]");
    for (const image of shown.querySelectorAll("img"))
        if (!image.src.startsWith("data:") && !image.src.startsWith(location.origin)) made.push(at(image));
    for (const link of shown.querySelectorAll("a[href], svg a")) {
        const to = link.getAttribute("href") ?? link.getAttribute("xlink:href") ?? "";
        const url = new URL(to, location.href);
        if (url.origin !== location.origin || /^javascript:/i.test(to)) made.push(at(link));
    }
    for (const name of [".katex", "mjx-container", "[data-testid=stMarkdownColoredText]"])
        for (const element of shown.querySelectorAll(name)) made.push(at(element));
    for (const element of shown.querySelectorAll("b, h1, em, input[type=checkbox], code, table"))
        if (/^(bold|h|soft|code| item)$/.test(element.textContent.trim())) made.push(at(element));
    for (const icon of shown.querySelectorAll("[data-testid=stIconMaterial], [role=img]"))
        if (icon.textContent.trim() === "home") made.push(at(icon));
    for (const tspan of shown.querySelectorAll("svg tspan"))
        if (tspan.style.fontWeight === "bold" && tspan.textContent === "bold") made.push(at(tspan));
    if (/\\u{1F604}|\\u{1F44D}/u.test(shown.textContent)) made.push("an emoji");
    return made;
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Hostile]]:
    """Serve a database with hostile text in every field; give the address and the runs."""
    folder = tmp_path_factory.mktemp("hostile_server")
    made = build(folder / "e2e.duckdb", folder / "files")
    with serving(folder) as address:
        yield address, made


class Requests:
    """Every request that is not for the dashboard itself."""

    def __init__(self, page: Page, home: str) -> None:
        self.home, self.outside = urlsplit(home).netloc, list[str]()
        page.on("request", self.seen)

    def seen(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != self.home:
            self.outside.append(request.url)


def readable(text: str) -> str:
    """Return a text without the signs that nobody sees."""
    return "".join(one for one in text if one not in "\u2060\u2068\u2069")


def opened(page: Page, home: str, path: str, at_rest: AtRest, **query: str) -> None:
    page.goto(f"{home}/{path}?{urlencode(query)}")
    at_rest(page)
    # What is folded away is drawn as well once it is opened.
    page.evaluate("document.querySelectorAll('details:not([open]) > summary').forEach((one) => one.click())")
    at_rest(page)


def test_no_page_of_any_run_makes_anything_of_a_text(
    hostile: tuple[str, Hostile], visitor: object, at_rest: AtRest
) -> None:
    home, runs = hostile
    page = visitor.new_page()  # type: ignore[attr-defined]
    requests = Requests(page, home)
    for path in PAGES:
        # Reproduction shows the paper's runs, whichever is chosen.
        for run in (runs.log,) if path == "reproduction" else (runs.simulation, runs.log, runs.facts):
            opened(page, home, path, at_rest, run=run)
            assert page.evaluate(MADE) == [], (path, run)
            assert page.get_by_test_id("stException").count() == 0
            assert requests.outside == [], (path, run)
    for text in EVERY:
        page.goto(f"{home}/?{urlencode({'run': text})}")
        at_rest(page)
        alert = page.get_by_test_id("stAlert").first
        expect(alert).to_be_visible()
        assert readable(one_line(text)) in readable(alert.inner_text())
        assert page.evaluate(MADE) == [], text
    assert requests.outside == []


def test_every_text_is_read_as_it_was_typed(hostile: tuple[str, Hostile], visitor: object, at_rest: AtRest) -> None:
    home, runs = hostile
    page = visitor.new_page()  # type: ignore[attr-defined]
    requests = Requests(page, home)
    for number, precedent in enumerate(runs.precedents):
        # Value, sentence and actor on the why card; key, user, reviewer and words on the decision.
        # The pages are the same for every text, so Lifecycle, which draws more, is opened for a few.
        for path, query, fields in (
            ("archive", {"precedent": precedent, "show": "all"}, (0, 1, 3, 4, 6, 8, 9)),
            *([("lifecycle", {"precedent": precedent}, (1, 4, 6))] if number % 4 == 0 else []),
        ):
            opened(page, home, path, at_rest, run=runs.log, **query)
            assert page.evaluate(MADE) == [], (path, number)
            read = readable(" ".join(page.get_by_test_id("stMain").inner_text().split()))
            missing = [shifted(number, by) for by in fields if readable(one_line(shifted(number, by))) not in read]
            assert missing == [], (path, number)
    assert requests.outside == []


def test_the_scan_sees_what_is_made(page_of: Callable[[str], Page]) -> None:
    page = page_of(
        "<div data-testid=stApp><img src='http://127.0.0.1:1/p.png'><a href='http://e.example'>k</a><b>bold</b>"
        "<span data-testid=stIconMaterial>home</span><span class=katex>x</span></div>"
    )
    assert len(page.evaluate(MADE)) == 5


@pytest.fixture
def page_of(hostile: tuple[str, Hostile], visitor: object, tmp_path: Path) -> Callable[[str], Page]:
    def made(content: str) -> Page:
        page: Page = visitor.new_page()  # type: ignore[attr-defined]
        page.route("**/*", lambda route: route.fulfill(body=content, content_type="text/html"))
        page.goto(hostile[0])
        return page

    return made
