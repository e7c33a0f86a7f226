"""Deciding in a real browser: double clicks, sorting, undo, keys, and two reviewers at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.e2e.pointer import ROW_PX, cells, click_row, resting_box, until

pytestmark = pytest.mark.e2e

TRAVEL = Path(__file__).parents[2] / "data" / "travel_preferences.csv"
AtRest = Callable[[Page], None]
Watched = Callable[[Page], Any]


@pytest.fixture(scope="module")
def log(own_server: str, browser: Browser) -> str:
    """Upload the travel log and return the id of its run from the address bar."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{own_server}/import")
    page.locator("input[type=file]").set_input_files(TRAVEL)
    page.get_by_role("button", name="Load 3,835 records").click(timeout=60_000)
    expect(page.get_by_text("travel_preferences.csv: read 3,835")).to_be_visible(timeout=60_000)
    found = re.search(r"run=([^&]+)", page.url)
    assert found is not None
    context.close()
    return found[1]


@pytest.fixture
def archive(own_server: str, log: str, visitor: BrowserContext, at_rest: AtRest) -> Callable[..., Page]:
    """Open the archive of the log in the visitor's browser."""

    def opened(query: str = "", context: BrowserContext = visitor) -> Page:
        page = context.new_page()
        page.goto(f"{own_server}/archive?run={log}{query}")
        expect(page.locator(".st-key-why_card")).to_be_visible(timeout=60_000)
        at_rest(page)
        return page

    return opened


def opened_by_address(page: Page) -> str:
    found = re.search(r"precedent=(\w+)", page.url)
    assert found is not None
    return found[1]


def press(page: Page, key: str, opens: Locator) -> None:
    """Press a key until what it opens is there: a page that has just been drawn does not listen yet."""
    for _ in range(10):
        page.keyboard.press(key)
        with suppress(AssertionError):
            expect(opens).to_be_visible(timeout=2000)
            return
    pytest.fail(f"The key {key} opened nothing.")


def form(page: Page) -> Locator:
    """Return the open form, once it has been drawn with its preview."""
    decide = page.locator(".st-key-decide")
    expect(decide.get_by_role("button", name="Save this decision")).to_be_visible(timeout=60_000)
    expect(decide.locator(".js-plotly-plot")).to_have_count(2, timeout=60_000)
    return decide


def write(page: Page, words: str, name: str = "Ana Lima") -> None:
    page.get_by_role("textbox", name="Your name").fill(name)
    page.get_by_role("textbox", name="In words").fill(words)


def decisions(page: Page, own_server: str, log: str) -> str:
    """Return the first sentence of the ledger's page."""
    page.goto(f"{own_server}/decisions?run={log}")
    expect(page.get_by_role("button", name="Verify the ledger")).to_be_visible(timeout=60_000)
    return page.get_by_role("heading", level=4).first.inner_text()


def test_double_click_is_one_decision_and_undo_gives_back_the_state(
    archive: Callable[..., Page], own_server: str, log: str, at_rest: AtRest, watch: Watched
) -> None:
    page = archive()
    seen = watch(page)
    card = page.locator(".st-key-why_card")
    fjordlink = opened_by_address(page)
    stood = card.get_by_text("Where it stands now.").locator("..").inner_text()
    # By key, and letters typed into a field are letters.
    press(page, "a", page.locator(".st-key-decide"))
    form(page)
    at_rest(page)
    write(page, "bank")
    expect(page.get_by_role("textbox", name="In words")).to_have_value("bank")
    page.get_by_role("button", name="Save this decision").dblclick()
    expect(page.get_by_text("Reactivated: Fjordlink. In the ledger: number 1.")).to_be_visible()
    at_rest(page)
    expect(card).to_contain_text("A decision made it active again")
    page.reload()
    expect(page.locator(".st-key-why_card")).to_be_visible(timeout=60_000)
    assert decisions(page, own_server, log).startswith("1 decision in effect")
    page.goto(f"{own_server}/archive?run={log}&show=all&precedent={fjordlink}")
    expect(page.get_by_role("button", name="Undo")).to_be_visible(timeout=60_000)
    at_rest(page)
    press(page, "u", page.get_by_text("Takes back number 1 by Ana Lima"))
    at_rest(page)
    write(page, "Not yet.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Undone: Fjordlink. In the ledger: number 2.")).to_be_visible()
    expect(page.locator(".st-key-why_card")).to_contain_text(stood)
    # The undone one is still told.
    expect(page.get_by_text("Undone by number 2.")).to_be_visible()
    assert seen.errors == []
    assert seen.outside == []


def test_decision_hits_the_selected_row_after_sorting(archive: Callable[..., Page], at_rest: AtRest) -> None:
    page = archive()
    table = page.get_by_test_id("stDataFrame").first
    box = resting_box(table)
    by_harm = cells(table, "key")
    # By the grid's own sorting: the menu of the second column, the key.
    page.mouse.click(box["x"] + 200, box["y"] + ROW_PX / 2)
    page.get_by_text("Sort ascending").click()
    until(lambda: cells(table, "key") != by_harm)
    assert cells(table, "key")[:4] == sorted(cells(table, "key"))[:4]
    value = cells(table, "value")[3]
    first = opened_by_address(page)
    click_row(table, 4)
    expect(page).not_to_have_url(re.compile(first))
    at_rest(page)
    press(page, "k", page.locator(".st-key-decide"))
    form(page)
    at_rest(page)
    chosen = opened_by_address(page)
    title = page.locator(".st-key-why_card").inner_text().splitlines()[0]
    # The row that was clicked, not the one that stood there before.
    assert value in title
    write(page, "It was right.")
    page.get_by_role("button", name="Save this decision").click()
    expect(page.get_by_text(re.compile(r"Confirmed: .* In the ledger: number \d+\."))).to_be_visible()
    assert opened_by_address(page) == chosen
    expect(page.locator(".st-key-why_card")).to_contain_text(title)
    expect(page.locator(".st-key-why_card")).to_contain_text("Its revocation is confirmed")


def test_second_of_two_reviewers_is_told_what_changed(
    archive: Callable[..., Page], browser: Browser, own_server: str, log: str, at_rest: AtRest
) -> None:
    elsewhere = browser.new_context(viewport={"width": 1280, "height": 900})
    first = archive("&sort=name")
    address = f"&sort=name&precedent={opened_by_address(first)}&verb="
    second = archive(f"{address}reactivate", elsewhere)
    form(second)
    write(second, "It still holds.", "Bo")
    press(first, "k", first.locator(".st-key-decide"))
    form(first)
    write(first, "It is over.")
    first.get_by_role("button", name="Save this decision").click()
    expect(first.get_by_text("Confirmed:")).to_be_visible()
    second.get_by_role("button", name="Save this decision").click()
    expect(second.get_by_text("Ana Lima confirmed the revocation of it at")).to_be_visible()
    second.get_by_role("button", name="Look again").click()
    form(second)
    # What was typed is not lost, and what the other decided stands on the page.
    expect(second.get_by_role("textbox", name="In words")).to_have_value("It still holds.")
    expect(second.get_by_text(re.compile("Confirmed by Ana Lima"))).to_be_visible()
    expect(second.get_by_text(re.compile("“It is over.”"))).to_be_visible()
    page = second
    page.goto(f"{own_server}/decisions?run={log}")
    page.get_by_role("button", name="Verify the ledger").click(timeout=60_000)
    expect(page.get_by_text("The ledger is as it was written")).to_be_visible()
    expect(page.get_by_text("It still holds.")).to_have_count(0)
    elsewhere.close()


@pytest.mark.parametrize("path", ["archive?verb=reactivate", "decisions?"])
def test_narrow_screen_does_not_overflow(
    own_server: str, log: str, browser: Browser, at_rest: AtRest, path: str
) -> None:
    phone = browser.new_context(viewport={"width": 390, "height": 844})
    page = phone.new_page()
    page.goto(f"{own_server}/{path}&run={log}")
    at_rest(page)
    if "archive" in path:
        form(page)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "(() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth <= m.clientWidth })()"
    )
    phone.close()
