"""What every test shares: how hypothesis searches, and the one browser of a test run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright

from tests.shared_data import ABSENT

# Compiled code is slow on its first call and fast after it, so a deadline per example says nothing.
settings.register_profile(
    "default", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("default")

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def no_silent_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a skip a failure where CI is set: there everything is installed, so what is missing is missed by mistake."""
    if not report.skipped or not os.environ.get("CI") or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if not reason.endswith(ABSENT):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, and on this machine (CI is set) nothing may be: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    no_silent_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    no_silent_skip(report)
    return report


def chromium() -> str:
    """Return the program of this machine's chromium."""
    program = os.environ.get("TEPA_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if program is None:
        pytest.fail("These tests need a browser: install chromium, or name its program in TEPA_CHROMIUM.")
    return program


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start the chromium of this machine. One for the whole run: playwright allows one loop at a time."""
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=SWITCHES) as started,
    ):
        yield started
