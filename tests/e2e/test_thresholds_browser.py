"""The sliders in a real browser: they answer while dragged, without the server, and keep their setting everywhere."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.pointer import click_row, resting_box
from tests.prove.sliders import count_messages, measure

pytestmark = pytest.mark.e2e

AtRest = Callable[[Page], None]
TRAVEL = Path(__file__).parents[2] / "data" / "travel_preferences.csv"


def drawn(page: Page) -> None:
    """Wait until sliders and chart stand."""
    expect(page.locator(".th-board")).to_have_attribute("aria-busy", "false", timeout=60_000)
    expect(page.locator(".th-plot .main-svg").first).to_be_visible(timeout=60_000)


def value(page: Page, name: str) -> str:
    return page.locator(f"#th-{name}").input_value()


def query_of(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def typed(page: Page, name: str, text: str) -> None:
    box = page.locator(f"#th-{name}")
    box.fill(text)
    box.press("Enter")


@pytest.fixture
def board(server: str, visitor: BrowserContext, at_rest: AtRest) -> Page:
    page = visitor.new_page()
    page.goto(f"{server}/thresholds")
    at_rest(page)
    drawn(page)
    return page


def test_dragging_is_answered_in_the_browser_and_letting_go_by_the_server(
    server: str, visitor: BrowserContext, at_rest: AtRest, watch: Callable[[Page], object]
) -> None:
    page = visitor.new_page()
    seen = watch(page)
    messages = count_messages(page)
    page.goto(f"{server}/thresholds")
    at_rest(page)
    drawn(page)
    # The first question of a server compiles; what is measured is how it answers from then on.
    typed(page, "theta_rec", "0.5")
    drawn(page)
    at_rest(page)
    found = measure(page, messages, "theta_rec", end=0.1)
    assert found.sent == 0
    assert found.updates >= 30
    assert found.values >= 3
    # How soon is for a machine with nothing else to do: `make prove ARGS=sliders`.
    assert float(value(page, "theta_rec")) == pytest.approx(0.1)
    expect(page).to_have_url(re.compile(r"theta_rec=0\.1(&|$)"))
    assert (seen.errors, seen.outside) == ([], [])  # type: ignore[attr-defined]


def test_twenty_fast_arrow_keys_end_on_the_right_value_and_the_zoom_stays(board: Page) -> None:
    pane = resting_box(board.locator(".th-plot .nsewdrag").first)
    board.mouse.move(pane["x"] + 60, pane["y"] + 20)
    board.mouse.down()
    board.mouse.move(pane["x"] + 200, pane["y"] + 120, steps=5)
    board.mouse.up()
    ranges = "() => [...document.querySelector('.th-plot')._fullLayout.yaxis.range]"
    # Playwright's own waiting evaluates text in the page, which the policy of the page refuses.
    deadline = time.monotonic() + 30
    while (zoomed := board.evaluate(ranges))[0] <= 0.1:
        assert time.monotonic() < deadline, "the chart was not zoomed"
        board.wait_for_timeout(50)
    slider = board.locator(".th-range[data-name=theta_rec]")
    slider.focus()
    for _ in range(20):
        board.keyboard.press("ArrowRight")
    # Steps of 0.02 from 0.34.
    assert value(board, "theta_rec") == "0.74"
    expect(board).to_have_url(re.compile(r"theta_rec=0\.74(&|$)"))
    drawn(board)
    assert value(board, "theta_rec") == "0.74"
    assert board.evaluate(ranges) == zoomed


def test_a_value_is_typed_and_what_cannot_be_is_refused_in_a_sentence(board: Page) -> None:
    typed(board, "n_rec", "2.5")
    expect(board.locator(".th-refusal")).to_have_text(
        "Recent window (n_rec) must be a whole number from 1 to 62, not 2.5. It stays at 3."
    )
    assert value(board, "n_rec") == "3"
    typed(board, "theta_rec", "0,333")
    expect(board).to_have_url(re.compile(r"theta_rec=0\.333(&|$)"))
    drawn(board)
    expect(board.locator(".th-refusal")).to_be_hidden()
    expect(board.locator(".th-headline")).to_contain_text("At this setting TEPA succeeds in")
    board.get_by_role("button", name="Recent mean that revokes: back to the paper's 0.34").click()
    expect(board).not_to_have_url(re.compile("theta_rec="))
    expect(board.locator(".th-headline")).to_contain_text("At the paper's setting TEPA succeeds in")


def test_a_click_on_the_surface_sets_both_thresholds(board: Page, at_rest: AtRest) -> None:
    board.get_by_role("radio", name="Two thresholds").click()
    at_rest(board)
    drawn(board)
    expect(board.locator(".th-plot .heatmaplayer image")).to_be_visible()
    pane = resting_box(board.locator(".th-plot .nsewdrag").first)
    board.mouse.move(pane["x"] + pane["width"] * 0.75, pane["y"] + pane["height"] * 0.25)
    board.mouse.click(pane["x"] + pane["width"] * 0.75, pane["y"] + pane["height"] * 0.25)
    expect(board).to_have_url(re.compile(r"theta_rec=.*theta_rev=|theta_rev=.*theta_rec="))
    drawn(board)
    assert 0.55 < float(value(board, "theta_rev")) < 0.8
    assert 0.65 < float(value(board, "theta_rec")) < 0.85


def test_thresholds_survive_pages_and_a_fresh_browser(board: Page, browser: Browser, at_rest: AtRest) -> None:
    typed(board, "theta_rec", "0.2")
    expect(board).to_have_url(re.compile(r"theta_rec=0\.2(&|$)"))
    drawn(board)
    at_rest(board)
    copied, said = board.url, query_of(board)
    told = board.locator(".th-headline").inner_text()
    board.get_by_role("link", name="Phases", exact=True).click()
    expect(board.get_by_role("heading", name="Phases", exact=True)).to_be_visible()
    at_rest(board)
    board.get_by_role("link", name="Thresholds", exact=True).click()
    expect(board.get_by_role("heading", name="Thresholds", exact=True)).to_be_visible()
    drawn(board)
    at_rest(board)
    assert value(board, "theta_rec") == "0.2"
    assert query_of(board) == said
    elsewhere = browser.new_context(viewport={"width": 1280, "height": 900})
    page = elsewhere.new_page()
    page.goto(copied)
    drawn(page)
    at_rest(page)
    assert value(page, "theta_rec") == "0.2"
    assert query_of(page) == said
    expect(page.locator(".th-headline")).to_have_text(told)
    elsewhere.close()


def test_a_row_of_the_impact_list_opens_its_memory(own_server: str, visitor: BrowserContext, at_rest: AtRest) -> None:
    page = visitor.new_page()
    page.goto(f"{own_server}/import")
    page.locator("input[type=file]").set_input_files(TRAVEL)
    page.get_by_role("button", name="Load 3,835 records").click(timeout=60_000)
    expect(page.get_by_text("loaded 3,835")).to_be_visible(timeout=60_000)
    log = query_of(page)["run"]
    page.goto(f"{own_server}/thresholds?run={log}&theta_rec=0.2")
    drawn(page)
    at_rest(page)
    expect(page.get_by_text("memories of this log would live another life")).to_be_visible()
    click_row(page.get_by_test_id("stDataFrame").first, 1)
    page.get_by_role("link", name=re.compile("See the life of")).click()
    expect(page.get_by_role("heading", name="Lifecycle", exact=True)).to_be_visible()
    expect(page.locator(".js-plotly-plot .point").first).to_be_visible(timeout=60_000)
    assert query_of(page)["run"] == log
    assert "precedent" in query_of(page)


def test_a_telephone_needs_no_scrolling_sideways(server: str, browser: Browser, at_rest: AtRest) -> None:
    telephone = browser.new_context(viewport={"width": 390, "height": 844})
    page = telephone.new_page()
    page.goto(f"{server}/thresholds")
    drawn(page)
    at_rest(page)
    main = "document.querySelector('[data-testid=stMain]')"
    inner = page.evaluate(f"() => {main}.scrollWidth - {main}.clientWidth")
    assert inner <= 0
    telephone.close()
