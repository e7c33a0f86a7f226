"""The login in a real browser, against a real OpenID Connect provider on this machine."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from urllib.error import URLError

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, WebSocket, expect

pytestmark = pytest.mark.e2e

REVIEWER, VIEWER = "ana@house.example", "vic@house.example"

#: After the sign of an address the page writes a joiner that nobody sees, so that no link comes of it.
SHOWN = {name: name.replace("@", "@\u2060") for name in (REVIEWER, VIEWER)}

#: Seconds for which a token of the provider named "brief" holds.
BRIEF = 25

SECRETS = """
[auth]
redirect_uri = "ADDRESS/oauth2callback"
cookie_secret = "only for these tests, but of a decent length"

[auth.house]
client_id = "dashboard"
client_secret = "dashboard"
server_metadata_url = "http://127.0.0.1:{house}/.well-known/openid-configuration"

[auth.brief]
client_id = "dashboard"
client_secret = "dashboard"
server_metadata_url = "http://127.0.0.1:{brief}/.well-known/openid-configuration"

[roles]
reviewers = ["Ana@house.example"]
"""

#: Sends bytes to the server from the page itself, with its cookies, as a page that was tampered with could.
SEND = """([frames, token]) => new Promise((done, failed) => {
    const address = location.origin.replace('http', 'ws') + '/_stcore/stream';
    const socket = new WebSocket(address, ['streamlit', token]);
    socket.binaryType = 'arraybuffer';
    let answers = 0;
    socket.onmessage = () => { answers += 1; };
    socket.onerror = () => failed(new Error('the server refused the connection'));
    socket.onopen = async () => {
        for (const frame of frames) {
            socket.send(new Uint8Array(frame));
            await new Promise(resolve => setTimeout(resolve, 2500));
        }
        socket.close();
        done(answers);
    };
})"""


def _provider(seconds: int) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--token-max-age", str(seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}/.well-known/openid-configuration"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return process, port
        except URLError:
            time.sleep(0.1)
    process.terminate()
    pytest.fail("The provider did not start.")


@pytest.fixture(scope="module")
def guarded(serve_with_secrets: Callable[[str], str]) -> Iterator[str]:
    """Start two providers, one whose tokens soon expire, and a dashboard that asks them; return its address."""
    started = [_provider(3600), _provider(BRIEF)]
    yield serve_with_secrets(SECRETS.format(house=started[0][1], brief=started[1][1]))
    for process, _ in started:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
def somebody(browser: Browser) -> Iterator[Callable[[], BrowserContext]]:
    """Open browsers that have never been here."""
    contexts: list[BrowserContext] = []

    def opened() -> BrowserContext:
        context = browser.new_context(viewport={"width": 1280, "height": 1400})
        context.set_default_timeout(30_000)
        contexts.append(context)
        return context

    yield opened
    for context in contexts:
        context.close()


def sign_in(page: Page, address: str, name: str, provider: str = "house") -> None:
    """Sign in as a person does: over the provider's own page, and back."""
    page.goto(address)
    page.get_by_role("button", name=f"Sign in with {provider}").click()
    page.get_by_placeholder("sub").fill(name)
    page.get_by_role("button", name="Authorize").click()
    expect(page.get_by_text(f"Signed in as {SHOWN[name]}")).to_be_visible(timeout=90_000)


def open_archive(page: Page, address: str, query: str = "") -> Locator:
    page.goto(f"{address}/archive?in_seed=0&show=all{query}")
    card = page.locator(".st-key-why_card")
    expect(card).to_be_visible(timeout=60_000)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=60_000)
    return card


def decide(page: Page, words: str) -> None:
    """Fill the open form; saving is left to the test."""
    expect(page.locator(".st-key-decide")).to_be_visible(timeout=60_000)
    page.get_by_role("textbox", name="In words").fill(words)


def test_nobody_sees_anything_without_signing_in(guarded: str, somebody: Callable[[], BrowserContext]) -> None:
    page = somebody().new_page()
    page.goto(f"{guarded}/archive")
    expect(page.get_by_text("Sign in to see the memories of this dashboard.")).to_be_visible(timeout=60_000)
    expect(page.locator(".st-key-why_card")).to_have_count(0)
    expect(page.get_by_role("combobox", name="Run")).to_have_count(0)


def test_viewer_reads_and_has_no_verbs(guarded: str, somebody: Callable[[], BrowserContext]) -> None:
    page = somebody().new_page()
    sign_in(page, guarded, VIEWER)
    expect(page.get_by_text(f"Signed in as {SHOWN[VIEWER]}, viewer.")).to_be_visible()
    open_archive(page, guarded, "&verb=reactivate")
    expect(page.get_by_text("You are signed in as a viewer: you may look, and reviewers decide.")).to_be_visible()
    expect(page.locator(".st-key-verbs, .st-key-decide")).to_have_count(0)
    page.keyboard.press("a")
    page.wait_for_timeout(1000)
    expect(page.locator(".st-key-decide")).to_have_count(0)
    page.goto(f"{guarded}/run")
    expect(page.get_by_text("You are signed in as a viewer: to start, import and delete runs")).to_be_visible()


def test_reviewer_decides_under_the_name_of_the_login(guarded: str, somebody: Callable[[], BrowserContext]) -> None:
    page = somebody().new_page()
    sign_in(page, guarded, REVIEWER)
    expect(page.get_by_text(f"Signed in as {SHOWN[REVIEWER]}, reviewer.")).to_be_visible()
    open_archive(page, guarded, "&verb=confirm")
    # Nobody types a name where a login vouches for one.
    expect(page.get_by_role("textbox", name="Your name")).to_have_count(0)
    decide(page, "The regime changed at task 80.")
    page.get_by_role("button", name="Save this decision").click()
    expect(page.get_by_text("In the ledger: number 1.")).to_be_visible()
    page.goto(f"{guarded}/decisions")
    row = page.locator(".st-key-decision")
    expect(row).to_contain_text(f"Confirmed by {SHOWN[REVIEWER]} on", timeout=60_000)
    expect(row).not_to_contain_text("not authenticated")


def test_forged_messages_of_a_viewer_decide_nothing(guarded: str, somebody: Callable[[], BrowserContext]) -> None:
    reviewer = somebody().new_page()
    sent: list[bytes] = []

    def listen(socket_: WebSocket) -> None:
        socket_.on("framesent", lambda frame: sent.append(frame) if isinstance(frame, bytes) else None)

    reviewer.on("websocket", listen)
    sign_in(reviewer, guarded, REVIEWER)
    open_archive(reviewer, guarded, "&verb=both_valid")
    decide(reviewer, "Both tools read it.")
    before = len(sent)
    reviewer.get_by_role("button", name="Save this decision").click()
    expect(reviewer.get_by_text(re.compile(r"In the ledger: number \d+\."))).to_be_visible()
    saving = [list(frame) for frame in sent[before:]]
    assert saving, "the browser sent nothing when the decision was saved"

    page = somebody().new_page()
    sign_in(page, guarded, VIEWER)
    page.goto(f"{guarded}/decisions")
    headline = page.get_by_role("heading", level=4).first
    expect(headline).to_contain_text("in effect", timeout=60_000)
    said = headline.inner_text()
    token = next(one["value"] for one in page.context.cookies() if one["name"] == "_streamlit_xsrf")
    # The same bytes that saved for the reviewer, over the viewer's own session; twice, as the first draws the page.
    assert page.evaluate(SEND, [[saving[0], saving[0]], token]) > 0
    page.reload()
    expect(page.get_by_role("heading", level=4).first).to_have_text(said, timeout=60_000)


def test_forged_cookie_is_nobody(guarded: str, somebody: Callable[[], BrowserContext]) -> None:
    context = somebody()
    page = context.new_page()
    sign_in(page, guarded, VIEWER)
    cookie = next(one for one in context.cookies() if one["name"].startswith("_streamlit_user"))
    # Another text under the old signature.
    forged = re.sub(r"[A-Za-z]", lambda letter: letter[0].swapcase(), cookie["value"], count=8)
    assert forged != cookie["value"]
    context.add_cookies([{**cookie, "value": forged}])
    page.goto(f"{guarded}/archive")
    expect(page.get_by_text("Sign in to see the memories of this dashboard.")).to_be_visible(timeout=60_000)


def test_expired_session_cannot_decide(guarded: str, somebody: Callable[[], BrowserContext]) -> None:
    page = somebody().new_page()
    sign_in(page, guarded, REVIEWER, provider="brief")
    signed_in = time.monotonic()
    open_archive(page, guarded, "&verb=reactivate")
    decide(page, "Too late.")
    page.wait_for_timeout(max(0.0, 1000 * (BRIEF + 2 - (time.monotonic() - signed_in))))
    # The button still stands there, drawn for a reviewer; the store asks who it is now.
    page.get_by_role("button", name="Save this decision").click()
    expect(page.get_by_text("Your sign-in has expired.")).to_be_visible()
    expect(page.locator(".st-key-decide")).to_have_count(0)
    other = somebody().new_page()
    sign_in(other, guarded, VIEWER)
    other.goto(f"{guarded}/decisions")
    expect(other.get_by_role("heading", level=4).first).to_be_visible(timeout=60_000)
    expect(other.get_by_text("Too late.")).to_have_count(0)


def test_signing_out_ends_every_copy_of_the_cookie(guarded: str, somebody: Callable[[], BrowserContext]) -> None:
    context = somebody()
    page, other = context.new_page(), context.new_page()
    sign_in(page, guarded, VIEWER)
    open_archive(other, guarded)
    kept = [cookie for cookie in context.cookies() if cookie["name"].startswith("_streamlit")]
    signed = [cookie for cookie in kept if cookie["name"].startswith("_streamlit_user")]
    assert {"_streamlit_user", "_streamlit_user_tokens"} <= {cookie["name"] for cookie in signed}
    for cookie in signed:
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Lax"
        assert 23 * 3600 < cookie["expires"] - time.time() <= 24 * 3600
    # The page in the other tab was open all the time: it is cut off, and comes back as nobody's.
    with other.expect_event("websocket", timeout=60_000):
        page.get_by_role("button", name="Sign out").click()
    expect(other.get_by_test_id("stApp")).to_have_attribute("data-test-connection-state", "CONNECTED", timeout=60_000)
    other.get_by_role("button", name="Next").click()
    expect(other.get_by_text("Sign in to see the memories of this dashboard.")).to_be_visible(timeout=60_000)
    thief = somebody()
    thief.add_cookies([{**cookie, "expires": time.time() + 1e6} for cookie in kept])
    stolen = thief.new_page()
    stolen.goto(f"{guarded}/archive")
    expect(stolen.get_by_text("Sign in to see the memories of this dashboard.")).to_be_visible(timeout=60_000)
    expect(stolen.locator(".st-key-why_card")).to_have_count(0)
