"""A log from upload to explanation in a real browser: import, lifecycle, chart clicks, the archive's rows and keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.pointer import click_row

pytestmark = pytest.mark.e2e

TRAVEL = Path(__file__).parents[2] / "data" / "travel_preferences.csv"
AtRest = Callable[[Page], None]

#: Where the state changes stand on the screen: [transition id, x, y].
MARKERS = """() => [...document.querySelectorAll('.js-plotly-plot .scatterlayer .trace')].flatMap(group => {
    const trace = [group.__data__].flat()[0].trace;
    if (trace.name !== 'state change') return [];
    return [...group.querySelectorAll('.point')].map((point, i) => {
        const box = point.getBoundingClientRect();
        return [trace.customdata[i][0], box.x + box.width / 2, box.y + box.height / 2];
    });
})"""


@pytest.fixture(scope="module")
def log(own_server: str, browser: Browser) -> str:
    """Upload the travel log as a person does, and return the id of its run from the address bar."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{own_server}/import")
    page.locator("input[type=file]").set_input_files(TRAVEL)
    expect(page.get_by_text("3,835 records read · 3,835 can be loaded · 0 rejected")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Load 3,835 records").click()
    expect(page.get_by_text("travel_preferences.csv: read 3,835 · loaded 3,835 · rejected 0")).to_be_visible(
        timeout=60_000
    )
    found = re.search(r"run=([^&]+)", page.url)
    assert found is not None
    context.close()
    return found[1]


@pytest.fixture
def seat(own_server: str, log: str, visitor: BrowserContext, at_rest: AtRest) -> Page:
    """Open the lifecycle of u-mara's seat by link."""
    page = visitor.new_page()
    page.goto(f"{own_server}/lifecycle?run={log}&subject=u-mara&key=seat")
    expect(page.locator(".js-plotly-plot .point").first).to_be_visible(timeout=60_000)
    at_rest(page)
    return page


def card(page: Page) -> Any:
    return page.locator(".st-key-why_card")


def click_marker(page: Page, transition: str) -> None:
    """Click a state change in the chart."""
    x, y = {name: (x, y) for name, x, y in page.evaluate(MARKERS)}[transition]
    page.mouse.move(x, y)
    page.mouse.click(x, y)


def precedents(page: Page) -> list[str]:
    """Ids of the values in the order of the chart: window, then aisle."""
    return list(dict.fromkeys(name.rpartition(".")[0] for name, _, _ in page.evaluate(MARKERS)))


def test_uploaded_log_tells_the_seat_story(seat: Page) -> None:
    told = seat.get_by_test_id("stMain")
    expect(told).to_contain_text(
        "window: active since 31 January 2025, revoked on 16 July 2025 by the recent rule, back since 17 October 2025."
    )
    expect(told).to_contain_text("aisle: active since 21 July 2025, revoked on 10 October 2025 by the recent rule.")


def test_click_on_a_marker_changes_the_why_card(seat: Page, at_rest: AtRest) -> None:
    expect(card(seat)).to_contain_text("aisle, Active → Revoked")
    window, _ = precedents(seat)
    click_marker(seat, f"{window}.2")
    expect(card(seat)).to_contain_text("window, Active → Revoked")
    expect(card(seat)).to_contain_text("16 July 2025, 07:55 UTC by the recent rule")
    expect(card(seat)).to_contain_text("Fresh supports brought it back on 17 October 2025.")
    expect(seat).to_have_url(re.compile(rf"transition={window}\.2"))
    at_rest(seat)
    # By list, and then the same marker again: the chart must not hold on to what was clicked before.
    seat.get_by_role("combobox", name="Value to explain").click()
    seat.get_by_role("option", name="aisle, revoked").click()
    expect(card(seat)).to_contain_text("aisle, Active → Revoked")
    at_rest(seat)
    click_marker(seat, f"{window}.2")
    expect(card(seat)).to_contain_text("window, Active → Revoked")


def test_copied_address_shows_the_same_card(seat: Page, browser: Browser) -> None:
    window, _ = precedents(seat)
    click_marker(seat, f"{window}.3")
    expect(card(seat)).to_contain_text("window, Revoked → Active")
    expect(seat).to_have_url(re.compile(rf"transition={window}\.3"))
    elsewhere = browser.new_context(viewport={"width": 1280, "height": 900})
    page = elsewhere.new_page()
    page.goto(seat.url)
    expect(card(page)).to_contain_text("window, Revoked → Active", timeout=60_000)
    elsewhere.close()


def test_archive_opens_a_row_by_click_and_by_key(
    own_server: str, log: str, visitor: BrowserContext, at_rest: AtRest
) -> None:
    page = visitor.new_page()
    page.goto(f"{own_server}/archive?run={log}")
    expect(card(page)).to_contain_text("Fjordlink, Active → Revoked", timeout=60_000)
    at_rest(page)
    first = re.search(r"precedent=(\w+)", page.url)
    assert first is not None
    click_row(page.get_by_test_id("stDataFrame").first, 3)
    expect(page.get_by_text(re.compile(r"^3 of \d+$"))).to_be_visible()
    expect(page).not_to_have_url(re.compile(first[1]))
    at_rest(page)
    page.keyboard.press("p")
    expect(page.get_by_text(re.compile(r"^2 of \d+$"))).to_be_visible()
    at_rest(page)
    opened = card(page).inner_text().splitlines()[0]
    page.get_by_role("link", name="See its whole life on Lifecycle").click()
    expect(page.locator(".js-plotly-plot .point").first).to_be_visible(timeout=60_000)
    expect(card(page)).to_contain_text(opened)


@pytest.mark.parametrize("path", ["lifecycle", "archive", "import"])
def test_narrow_screen_does_not_overflow(
    own_server: str, log: str, browser: Browser, at_rest: AtRest, path: str
) -> None:
    phone = browser.new_context(viewport={"width": 390, "height": 844})
    page = phone.new_page()
    page.goto(f"{own_server}/{path}?run={log}")
    at_rest(page)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    # Streamlit scrolls its own box.
    assert page.evaluate(
        "(() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth <= m.clientWidth })()"
    )
    phone.close()
