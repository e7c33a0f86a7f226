"""Where to point: places on a page that have come to rest, as a person sees them before clicking."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import FloatRect, Locator, expect

#: Header and rows of a table, in pixels.
ROW_PX = 35

_SECONDS = 60


def until(seen: Callable[[], bool]) -> None:
    """Wait until something is so, for which the page has no element to wait for."""
    deadline = time.monotonic() + _SECONDS
    while not seen():
        assert time.monotonic() < deadline, "it did not come to be so"
        time.sleep(0.05)


def resting_box(drawn: Locator) -> FloatRect:
    """Return the box of an element once it has stood still for some frames: a chart moves while it is being drawn."""
    expect(drawn).to_be_visible(timeout=1000 * _SECONDS)
    drawn.scroll_into_view_if_needed()
    seen: list[FloatRect | None] = []

    def still() -> bool:
        drawn.page.wait_for_timeout(50)
        seen.append(drawn.bounding_box())
        return len(seen) >= 4 and seen[-1] is not None and seen[-4:] == [seen[-1]] * 4

    until(still)
    assert seen[-1] is not None
    return seen[-1]


def click_row(table: Locator, number: int) -> None:
    """Choose a row of a table, the first is 1, as a person does: in the column of choice, which is the first."""
    expect(table.locator("canvas[data-testid=data-grid-canvas]")).to_be_visible(timeout=1000 * _SECONDS)
    box = resting_box(table)
    table.page.mouse.click(box["x"] + 18, box["y"] + ROW_PX * number + ROW_PX / 2)


def cells(table: Locator, name: str) -> list[str]:
    """Return the texts of a column by its name, as the table says them to a screen reader; those in view."""

    def named() -> list[str]:
        # A sorted column has an arrow before its name.
        return [text.lstrip("↑↓ ") for text in table.locator("canvas th").all_text_contents()]

    # They come a moment after the picture.
    until(lambda: name in named())
    return table.locator(f"canvas td[aria-colindex='{named().index(name) + 1}']").all_text_contents()
