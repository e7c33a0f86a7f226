"""The pages in a real browser: they draw, ask nobody outside, keep their links, and fit a telephone."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

pytestmark = pytest.mark.e2e

PAGES = ("overview", "phases", "lifecycle", "archive", "run", "import")
DRAWN = ("overview", "phases", "lifecycle")

AtRest = Callable[[Page], None]


def address(server: str, page: str, query: str = "") -> str:
    return f"{server}/{'' if page == 'overview' else page}{'?' + query if query else ''}"


def query_of(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def chosen(page: Page, label: str, value: str) -> None:
    """Expect a list of the page to hold a value."""
    box = page.get_by_test_id("stMain").get_by_role("combobox", name=label, exact=True)
    expect(box).to_have_value(re.compile(f"^{value}"))


def test_a_deep_link_as_the_first_visit_shows_its_page(
    own_server: str, visitor: BrowserContext, at_rest: AtRest
) -> None:
    # This test stands first: nobody but the launcher has visited the server yet.
    page = visitor.new_page()
    page.goto(address(own_server, "phases"))
    at_rest(page)
    expect(page.get_by_role("heading", name="Phases", exact=True)).to_be_visible()
    expect(page.get_by_text("Page not found")).to_have_count(0)


@pytest.mark.parametrize("name", DRAWN)
def test_a_page_draws_without_an_error_or_a_request_outside(
    server: str, visitor: BrowserContext, at_rest: AtRest, watch: Callable[[Page], object], name: str
) -> None:
    page = visitor.new_page()
    seen = watch(page)
    page.goto(address(server, name))
    at_rest(page)
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=30_000)
    assert (seen.errors, seen.outside) == ([], [])  # type: ignore[attr-defined]


def test_a_copied_address_opens_the_same_view_in_a_fresh_browser(
    server: str, browser: Browser, visitor: BrowserContext, at_rest: AtRest
) -> None:
    page = visitor.new_page()
    page.goto(address(server, "lifecycle", "key=read+json&seed=3"))
    at_rest(page)
    chosen(page, "Key", "read json")
    copied, said = page.url, query_of(page)
    assert {"run", "method", "key", "seed"} <= said.keys()
    assert (said["key"], said["seed"]) == ("read json", "3")
    other = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        fresh = other.new_page()
        fresh.goto(copied)
        at_rest(fresh)
        assert query_of(fresh) == said
        chosen(fresh, "Seed", "3")
        chosen(fresh, "Key", "read json")
    finally:
        other.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_telephone_needs_no_scrolling_sideways(server: str, browser: Browser, at_rest: AtRest, name: str) -> None:
    telephone = browser.new_context(viewport={"width": 390, "height": 844})
    try:
        page = telephone.new_page()
        page.goto(address(server, name))
        at_rest(page)
        widths = page.evaluate("[document.scrollingElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1]
        inner = page.evaluate(
            "() => { const main = document.querySelector('[data-testid=stMain]');"
            " return main.scrollWidth - main.clientWidth; }"
        )
        assert inner <= 0
    finally:
        telephone.close()


def test_the_story_is_stepped_by_buttons_and_by_the_arrow_keys(
    server: str, visitor: BrowserContext, at_rest: AtRest
) -> None:
    page = visitor.new_page()
    page.goto(address(server, "overview"))
    at_rest(page)
    page.get_by_role("button", name="Next task").click()
    expect(page.get_by_text("Task 81 (2 of 40 in reversal)")).to_be_visible()
    slider = page.get_by_role("slider", name="Task")
    slider.focus()
    slider.press("ArrowRight")
    expect(page.get_by_text("Task 82 (3 of 40 in reversal)")).to_be_visible()
    page.get_by_role("button", name="Next change of state").click()
    # By the rule three supports are needed: tasks 82, 83 and 84 of seed 0 bring them.
    expect(page.get_by_text("Task 84 (5 of 40 in reversal)")).to_be_visible()
    expect(page.get_by_text("alternative goes from Hypothesis to Active")).to_be_visible()
    at_rest(page)
    assert query_of(page)["task"] == "84"


def test_the_way_from_the_story_to_the_reason(server: str, visitor: BrowserContext, at_rest: AtRest) -> None:
    page = visitor.new_page()
    page.goto(address(server, "overview"))
    at_rest(page)
    page.get_by_role("button", name="Next change of state").click()
    page.get_by_role("link", name="Why: the life of").first.click()
    expect(page.get_by_role("heading", name="Lifecycle", exact=True)).to_be_visible()
    at_rest(page)
    said = query_of(page)
    assert (said["method"], said["seed"], said["key"]) == ("tepa", "0", "read csv")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()


def test_a_run_is_started_and_opened(own_server: str, visitor: BrowserContext, at_rest: AtRest) -> None:
    page = visitor.new_page()
    page.goto(address(own_server, "run"))
    at_rest(page)
    seeds = page.get_by_role("spinbutton", name="Seeds", exact=True)
    seeds.fill("2")
    seeds.press("Tab")
    page.get_by_role("button", name="Run", exact=True).dblclick()
    expect(page.get_by_text("It is chosen now")).to_be_visible(timeout=60_000)
    run_id = query_of(page)["run"]
    assert run_id.startswith("controlled-2x-")
    page.get_by_role("link", name="Open on Overview").first.click()
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    at_rest(page)
    assert query_of(page)["run"] == run_id
    expect(page.get_by_text("2 seeds × 160 tasks").first).to_be_visible()
