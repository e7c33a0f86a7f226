"""A real browser on the real server, which listens on this machine only."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

ROOT = Path(__file__).parents[2]
SECONDS_TO_START = 120
AT_HOME = {"127.0.0.1", "localhost"}
#: A page opened by its own address asks for these below that address first, and then where they are.
LOOKED_FOR = ("/_stcore/health", "/_stcore/host-config")


@dataclass
class Watch:
    """What a page said on its console and asked for outside this machine."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def console(self, message: ConsoleMessage) -> None:
        """Keep an error of the console."""
        place = str(message.location.get("url", ""))
        if message.type == "error" and not ("404" in message.text and place.endswith(LOOKED_FOR)):
            self.errors.append(f"{message.text} ({place})")

    def failure(self, error: Exception) -> None:
        """Keep an error that no script caught."""
        self.errors.append(str(error))

    def request(self, request: Request) -> None:
        """Keep a request that leaves the machine."""
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.hostname not in AT_HOME:
            self.outside.append(request.url)


@pytest.fixture
def watch() -> Callable[[Page], Watch]:
    """Record a page's console errors and outside requests from now on."""

    def watched(page: Page) -> Watch:
        seen = Watch()
        page.on("console", seen.console)
        page.on("pageerror", seen.failure)
        page.on("request", seen.request)
        return seen

    return watched


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _pass_on(lines: IO[str], said: queue.Queue[str]) -> None:
    for line in lines:
        said.put(line)
    said.put("")


@contextmanager
def serving(folder: Path, secrets: str | None = None) -> Iterator[str]:
    """Run the dashboard on a new database in a folder; give its address.

    ``secrets`` is the content of its secrets file, with ADDRESS where its own address belongs.
    """
    log = (folder / "server.log").open("w+", encoding="utf-8")
    port = str(_free_port())
    # Whatever secrets this machine has are not those of the tests.
    file = folder / "secrets.toml"
    environment = {**os.environ, "STREAMLIT_SECRETS_FILES": str(file)}
    if secrets is not None:
        file.write_text(secrets.replace("ADDRESS", f"http://127.0.0.1:{port}"), encoding="utf-8")
    command = [sys.executable, "-m", "tepa_core.ui.launch", "--port", port]
    process = subprocess.Popen(
        [*command, "--db", str(folder / "e2e.duckdb")],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    assert process.stdout is not None
    said: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_pass_on, args=(process.stdout, said), daemon=True).start()
    try:
        line = ""
        while not line.startswith("Ready: "):
            try:
                line = said.get(timeout=SECONDS_TO_START)
            except queue.Empty:
                line = ""
            if not line:
                log.seek(0)
                pytest.fail(f"The dashboard did not say that it is ready. Its log:\n{log.read()}")
        yield line.removeprefix("Ready: ").strip()
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()
        log.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the dashboard on a new database and return its address; for tests that only read."""
    with serving(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a dashboard for the tests of one file, which may write."""
    with serving(tmp_path_factory.mktemp("own_server")) as address:
        yield address


@pytest.fixture(scope="module")
def serve_with_secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Start a dashboard with a secrets file (see `serving`) and return its address."""
    with ExitStack() as open_servers:
        yield lambda secrets: open_servers.enter_context(serving(tmp_path_factory.mktemp("with_secrets"), secrets))


@pytest.fixture
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """Return a browser that has never been here, with a screen of 1280 x 900."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    yield context
    context.close()


@pytest.fixture
def at_rest() -> Callable[[Page], None]:
    """Wait until a page has been drawn: its script is over and nothing shows as stale."""

    def wait(page: Page) -> None:
        app = page.get_by_test_id("stApp")
        expect(page.get_by_test_id("stHeading").first).to_be_visible(timeout=60_000)
        expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=60_000)

    return wait
