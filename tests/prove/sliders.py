"""A dragged slider of the thresholds page is painted within 100 ms without the server; let go, it is fresh within 2 s.

Medians over five drags. ``python -m tests.prove.sliders`` starts a dashboard of its own; with an address, and perhaps
a run, it measures one that is running. The browser test of the page makes one such drag and counts, but does not time.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.sync_api import Page, WebSocket, sync_playwright

from tests.conftest import SWITCHES, chromium
from tests.e2e.conftest import serving

#: Milliseconds from an input event to the painted headline and chart.
PAINT_MS = 100

#: Milliseconds from letting go until the page is fresh.
FRESH_MS = 2000

DRAGS = (("theta_rec", 0.1), ("n_rec", 0.6), ("theta_pro", 0.9), ("theta_rec", 0.6), ("n_min", 0.8))

#: Notes, for each input event of a slider, when the frame that shows the headline and the chart has been painted.
WATCH = """() => {
    const board = document.querySelector('.th-board');
    const watched = window.seen !== undefined;
    window.seen = {painted: [], plots: 0, values: []};
    if (watched) return;
    const plot = board.querySelector('.th-plot');
    plot.on('plotly_afterplot', () => { window.seen.plots += 1; });
    board.addEventListener('input', () => {
        const began = performance.now();
        const plots = window.seen.plots;
        // The board draws in the next frame; the one after it comes once that has been painted.
        requestAnimationFrame(() => requestAnimationFrame(() => {
            if (window.seen.plots > plots) {
                window.seen.painted.push(performance.now() - began);
                window.seen.values.push(board.querySelector('.th-tile-value').textContent);
            }
        }));
    }, true);
}"""

#: Notes when the mouse button goes up.
LET_GO = (
    """() => addEventListener('mouseup', () => { window.began = performance.now(); }, {once: true, capture: true})"""
)

#: Resolves once the answer of the server is drawn; null when it takes too long.
SETTLED = """async began => {
    const board = document.querySelector('.th-board');
    while (board.getAttribute('aria-busy') !== 'false') {
        await new Promise(requestAnimationFrame);
        if (performance.now() - began > 20000) return null;
    }
    await new Promise(requestAnimationFrame);
    return performance.now() - began;
}"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one drag from end to end took.

    Attributes
    ----------
    updates
        Input events whose headline and chart were painted.
    paint_ms
        Median from an input event to the painted headline and chart.
    sent
        Messages to the server while dragging.
    board_ms
        From letting go until the board has drawn the server's answer.
    fresh_ms
        From letting go until the whole page is fresh.
    values
        Different headline numbers seen on the way.
    """

    updates: int
    paint_ms: float
    sent: int
    board_ms: float
    fresh_ms: float
    values: int


def measure(page: Page, messages: list[int], slider: str = "theta_rec", end: float = 0.2, stops: int = 60) -> Measured:
    """Drag one slider across its range on an open page, let it go, and say what that took.

    Parameters
    ----------
    page
        The thresholds page, drawn.
    messages
        From `count_messages`, asked for before the page was opened.
    slider
        Which one.
    end
        Where it is let go, as a share of its range.
    stops
        How often the mouse moves on the way.
    """
    page.evaluate(WATCH)
    handle = page.locator(f".th-range[data-name={slider}]")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    at = float(handle.input_value())
    low, high = (float(handle.get_attribute(end) or 0) for end in ("min", "max"))
    start = box["x"] + 8 + (at - low) / (high - low) * (box["width"] - 16)
    page.mouse.move(start, y)
    page.mouse.down()
    page.wait_for_timeout(200)
    before = len(messages)
    for i in range(stops):
        # To the right end, then back to the left.
        share = i / (stops / 2) if i < stops / 2 else 2 - i / (stops / 2)
        page.mouse.move(box["x"] + 8 + share * (box["width"] - 16), y)
        page.wait_for_timeout(20)
    page.mouse.move(box["x"] + 8 + end * (box["width"] - 16), y)
    page.wait_for_timeout(300)
    sent = len(messages) - before
    seen = page.evaluate("window.seen")
    page.evaluate(LET_GO)
    page.mouse.up()
    board_ms = page.evaluate(f"({SETTLED})(window.began)")
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    fresh_ms = page.evaluate("performance.now() - window.began")
    return Measured(
        len(seen["painted"]),
        statistics.median(seen["painted"]) if seen["painted"] else float("inf"),
        sent,
        board_ms,
        fresh_ms,
        len(set(seen["values"])),
    )


def count_messages(page: Page) -> list[int]:
    """Return a list that grows by one for each message that the page sends to the server from now on."""
    sent: list[int] = []

    def opened(socket: WebSocket) -> None:
        socket.on("framesent", lambda _: sent.append(1))

    page.on("websocket", opened)
    return sent


def main(arguments: Sequence[str]) -> int:
    """Drag five sliders and write what each drag took as JSON; 0 when the claim holds."""
    address, run = [*arguments, "", ""][:2]
    with (
        tempfile.TemporaryDirectory() as folder,
        nullcontext(address) if address else serving(Path(folder)) as dashboard,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=SWITCHES) as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        messages = count_messages(page)
        page.goto(f"{dashboard}/thresholds" + (f"?run={run}" if run else ""))
        page.locator(".th-plot .main-svg").first.wait_for(timeout=60_000)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        drags = []
        for slider, end in DRAGS:
            drags.append(measure(page, messages, slider, end))
            sys.stdout.write(f"{slider}: {json.dumps(asdict(drags[-1]))}\n")
    paint = statistics.median(drag.paint_ms for drag in drags)
    fresh = statistics.median(drag.fresh_ms for drag in drags)
    sent = sum(drag.sent for drag in drags)
    sys.stdout.write(f"painted in {paint:.0f} ms (at most {PAINT_MS}), fresh in {fresh:.0f} ms (at most {FRESH_MS}), ")
    sys.stdout.write(f"{sent} messages while dragging (0)\n")
    return int(not (paint <= PAINT_MS and fresh <= FRESH_MS and sent == 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
