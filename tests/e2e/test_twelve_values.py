"""One key with twelve values and 5,000 items: its lifecycle is drawn soon, with every change of state."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tepa_core.lifecycle import Ledger

pytestmark = pytest.mark.e2e

ITEMS, VALUES = 5_000, 12
#: On a quiet machine 3 s; here other tests run at the same time.
SECONDS = 12

#: Points of the trace that carries the changes of state.
CHANGES = """() => {
    const trace = document.querySelector('.js-plotly-plot')._fullData.find(one => one.name === 'state change');
    return trace.customdata.length;
}"""


def test_twelve_values_of_five_thousand_points(
    own_server: str, visitor: BrowserContext, at_rest: Callable[[Page], None], tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    favoured = np.arange(ITEMS) // (ITEMS // 60) % VALUES
    value = np.where(rng.random(ITEMS) < 0.7, favoured, rng.integers(0, VALUES, ITEMS))
    at = pd.Timestamp("2025-01-01", tz="UTC") + pd.to_timedelta(np.arange(ITEMS) * 10, unit="min")
    file = tmp_path / "twelve.csv"
    pd.DataFrame({"ts": at, "user": "u", "key": "k", "value": [f"v{v}" for v in value]}).to_csv(file, index=False)
    memory = Ledger()
    changes = sum(len(memory.observe("k", f"v{v}")) for v in value)

    page = visitor.new_page()
    page.goto(f"{own_server}/import")
    at_rest(page)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Load 5,000 records").click(timeout=60_000)
    expect(page.get_by_text("loaded 5,000")).to_be_visible(timeout=60_000)
    at_rest(page)
    began = time.perf_counter()
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Lifecycle", exact=True).click()
    expect(page.locator(".js-plotly-plot .point").first).to_be_visible(timeout=60_000)
    took = time.perf_counter() - began
    assert page.evaluate(CHANGES) == changes > 400
    assert took < SECONDS
