"""What the real server refuses: foreign frames, hosts and origins, ended and expired sign-ins, forged messages."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed

from tepa_core.store import Store
from tests.e2e.conftest import serving
from tests.e2e.wire import Session, ask, opening, session, signed_in

pytestmark = pytest.mark.e2e

SECRET = "only for these tests, but of a decent length"  # noqa: S105
REVIEWER, VIEWER = {"email": "ana@house.example"}, {"email": "vic@house.example"}
SIGN_IN, EXPIRED = "Sign in to see the memories of this dashboard.", "Your sign-in has expired."

#: Nobody listens where the settings of the provider should be: these tests sign the cookies themselves.
SECRETS = f"""
[auth]
redirect_uri = "ADDRESS/oauth2callback"
cookie_secret = "{SECRET}"
client_id = "dashboard"
client_secret = "dashboard"
server_metadata_url = "http://127.0.0.1:9/.well-known/openid-configuration"

[roles]
reviewers = ["ana@house.example"]
"""

#: One path of every kind that the server answers: the page, its parts, and what Streamlit answers beside them.
PATHS = [
    "/",
    "/archive",
    "/no/such/page",
    "/favicon.png",
    "/app/static/missing.js",
    "/static/missing.js",
    "/media/missing.csv",
    "/component/missing",
    "/_stcore/health",
    "/_stcore/metrics",
    "/_stcore/host-config",
    "/_stcore/upload_file/session/file",
    "/_stcore/bidi-components/missing",
    "/_stcore/agent/openapi.json",
    "/auth/login",
    "/auth/logout",
    "/oauth2callback",
    "/..%2f..%2fetc/passwd",
    "//evil.example",
]


@dataclass(frozen=True)
class Guarded:
    """A dashboard where people sign in."""

    address: str
    folder: Path

    def cookies(self, who: dict[str, str], seconds: float = 3600) -> str:
        return signed_in(self.address, SECRET, who, seconds)

    def content(self) -> dict[str, list[str]]:
        """Return every row of every table, from a copy; the file itself belongs to the server."""
        with_log = [self.folder / "e2e.duckdb", self.folder / "e2e.duckdb.wal"]
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in filter(Path.exists, with_log):
            shutil.copy(file, copy)
        store = Store(copy / "e2e.duckdb")
        try:
            with store.read() as cursor:
                names = [name for (name,) in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
                return {name: sorted(map(repr, cursor.sql(f'FROM "{name}"').fetchall())) for name in names}
        finally:
            store.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    with serving(folder, SECRETS) as address:
        yield Guarded(address, folder)


# --- every answer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_refuses_frames_sniffing_and_foreign_scripts(server: str, path: str) -> None:
    for method in ("GET", "HEAD", "OPTIONS", "PUT", "POST", "DELETE"):
        headers = ask(server, path, method).headers
        policy = headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy.split("style-src")[0]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in headers if name.lower().startswith("access-control-")]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8501"},
        {"Host": ""},
        {"Origin": "http://127.0.0.1:9"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
    ids=lambda headers: " ".join(headers.values()) or "no host",
)
def test_another_host_or_origin_is_refused(server: str, path: str, headers: dict[str, str]) -> None:
    for method in ("GET", "PUT", "OPTIONS"):
        answer = ask(server, path, method, headers)
        assert answer.status == 403
        assert answer.headers["X-Frame-Options"] == "DENY"


def test_the_own_page_is_not_refused(server: str) -> None:
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Origin": server}
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for headers in ({}, own, link):
        assert ask(server, "/archive", headers=headers).status == 200
        assert ask(server, "/_stcore/metrics", headers=headers).status == 200


def test_the_websocket_takes_only_the_own_origin(server: str) -> None:
    host = server.removeprefix("http://")
    assert opening(server, {"Origin": server}) == 101
    # A program, such as the launcher; no browser sends its cookies there.
    assert opening(server, {}) == 101
    for refused in (
        {"Origin": "http://127.0.0.1:9"},
        {"Origin": server.replace("127.0.0.1", "localhost")},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Host": f"evil.example:{host.split(':')[1]}"},
    ):
        assert opening(server, refused) == 403, refused


def test_nobody_empties_everybodys_caches(server: str) -> None:
    with session(server, page="archive") as one:
        assert one.run().widgets
        one.socket.send(BackMsg(clear_cache=True).SerializeToString())
        one.socket.send(BackMsg(load_git_info=True).SerializeToString())
        # Clearing would empty the session too, and the script would be told of it before this run.
        assert one.run().widgets


# --- in a browser ---------------------------------------------------------------------------------------------------


class _Hostile(BaseHTTPRequestHandler):
    """A page on another local origin."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>hostile</title><p>another page</p>")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Serve a page on another local origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hostile) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{other.server_port}"
        other.shutdown()


FRAME = """(address) => new Promise(done => {
    const frame = document.createElement('iframe');
    frame.onload = () => done();
    frame.src = address;
    document.body.append(frame);
})"""

REACH = """async (address) => {
    const socket = await new Promise(done => {
        const one = new WebSocket(address.replace('http', 'ws') + '/_stcore/stream', ['streamlit']);
        one.onopen = () => done('opened');
        one.onerror = () => done('refused');
    });
    const loaded = tag => new Promise(done => {
        const one = document.createElement(tag);
        one.onload = () => done('loaded');
        one.onerror = () => done('refused');
        one.src = address + (tag === 'img' ? '/favicon.png' : '/static/js/none.js');
        document.body.append(one);
    });
    const read = await fetch(address + '/_stcore/metrics').then(() => 'read', () => 'refused');
    return [socket, await loaded('img'), read];
}"""

RUN = """(address) => new Promise(done => {
    const broken = [];
    document.addEventListener('securitypolicyviolation', one => {
        broken.push(one.effectiveDirective);
        if (broken.length === 3) done(broken.sort());
    });
    const inline = document.createElement('script');
    inline.textContent = 'window.obeyed = 1';
    document.body.append(inline);
    const foreign = document.createElement('script');
    foreign.src = address;
    document.body.append(foreign);
    const beacon = document.createElement('img');
    beacon.src = address;
    document.body.append(beacon);
})"""


def test_another_page_can_neither_frame_nor_reach_the_dashboard(server: str, elsewhere: str, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    opened: list[str] = []
    page.on("websocket", lambda socket: opened.append(socket.url))
    page.goto(elsewhere)
    # That a page elsewhere can be framed shows that the test would see a frame.
    page.evaluate(FRAME, f"{elsewhere}/framed")
    page.evaluate(FRAME, f"{server}/archive")
    assert [frame.url for frame in page.frames[1:]] == [f"{elsewhere}/framed", "chrome-error://chromewebdata/"]
    assert opened == []
    assert page.evaluate(REACH, server) == ["refused", "refused", "refused"]
    context.close()


def test_a_script_that_gets_into_the_page_is_not_run(server: str, elsewhere: str, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server}/archive")
    expect(page.get_by_test_id("stHeading").first).to_be_visible(timeout=60_000)
    assert page.evaluate(RUN, elsewhere) == ["img-src", "script-src-elem", "script-src-elem"]
    assert page.evaluate("() => window.obeyed") is None
    context.close()


# --- sign-ins -------------------------------------------------------------------------------------------------------


def test_metrics_files_and_uploads_are_for_those_who_signed_in(guarded: Guarded) -> None:
    personal = ["/_stcore/metrics", "/media/a.csv", "/_stcore/upload_file/session/file"]
    expired = guarded.cookies(REVIEWER, seconds=-1)
    for path in personal:
        for method in ("GET", "PUT", "DELETE"):
            assert ask(guarded.address, path, method).status == 403
            assert ask(guarded.address, path, method, {"Cookie": expired}).status == 403
            # Whatever becomes of it, it is not for want of a sign-in.
            answer = ask(guarded.address, path, method, {"Cookie": guarded.cookies(VIEWER)})
            assert "Sign in first" not in answer.body
    assert ask(guarded.address, "/_stcore/metrics", headers={"Cookie": guarded.cookies(VIEWER)}).status == 200


def test_a_copy_of_the_cookie_ends_with_the_sign_out(guarded: Guarded) -> None:
    stolen, other = guarded.cookies(REVIEWER), guarded.cookies(REVIEWER)
    with session(guarded.address, stolen, "decisions") as thief, session(guarded.address, other) as elsewhere:
        assert thief.run().says("Signed in as")
        assert elsewhere.run().says("Signed in as")
        answer = ask(guarded.address, "/auth/logout", headers={"Cookie": stolen})
        assert answer.status == 302
        assert "_streamlit_user=" in str(answer.headers)
        # What is open is closed, and only that.
        with pytest.raises(ConnectionClosed):
            thief.drawn()
        assert elsewhere.run().says("Signed in as")
    with session(guarded.address, stolen, "decisions") as again:
        drawn = again.run()
    assert drawn.says(SIGN_IN)
    assert not drawn.says("Signed in as")
    assert ask(guarded.address, "/_stcore/metrics", headers={"Cookie": stolen}).status == 403
    assert "ana" not in (guarded.folder / "e2e.signed-out.json").read_text()


def test_another_page_signs_nobody_out(guarded: Guarded) -> None:
    cookies = guarded.cookies(REVIEWER)
    marks = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(guarded.address, "/auth/logout", headers={"Cookie": cookies, **marks}).status == 403
    with session(guarded.address, cookies) as one:
        assert one.run().says("Signed in as")


def test_nothing_is_served_past_the_end_of_the_token(guarded: Guarded) -> None:
    began, seconds = time.time(), 20.0
    with session(guarded.address, guarded.cookies(REVIEWER, seconds), "overview") as one:
        one.page = ""
        drawn = one.run()
        assert drawn.says("Signed in as")
        # A part of a page runs alone, without the script above it that asks for the sign-in.
        assert drawn.fragments
        time.sleep(max(0.0, began + seconds + 1 - time.time()))
        for fragment in ("", *drawn.fragments):
            after = one.run(one.message(drawn, "", {}, fragment))
            assert after.says(EXPIRED), fragment
            assert not after.says("Signed in as")
            assert set(after.widgets) == {"sign_in_"}
            assert not after.fragments


# --- forged messages ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Write:
    """A click that writes, and how its page is brought to draw it.

    ``values`` are typed before the click, by the key of their field; ``before`` are clicks before it.
    """

    name: str
    page: str
    click: str
    query: str = ""
    values: dict[str, str | float] = field(default_factory=dict)
    before: tuple[str, ...] = ()


SAVE = Write("save a setting", "thresholds", "setting_save", "closer=keep", {"setting_name": "forged"})
DECIDE = Write(
    "take a decision",
    "archive",
    "decide_save",
    "in_seed=0&show=all&verb=confirm",
    {"category_": "Other", "reason_choice": "It is gone."},
)
#: In an order in which a reviewer can take them all.
WRITES = [
    SAVE,
    Write("delete a setting", "thresholds", "setting_delete", "closer=keep"),
    DECIDE,
    Write("redact a decision", "decisions", "redact_yes", before=("redact",)),
    Write("rename a run", "run", "rename", values={"rename_": "Forged"}),
    Write("start a run", "run", "run_it", values={"new_seeds": 2.0}),
    Write("delete a run", "run", "delete_it"),
]


def click(one: Session, write: Write) -> list[bytes]:
    """Bring a page to draw the click, and return the messages of all clicks, the one that writes last."""
    drawn = one.run()
    messages = []
    for name in write.before:
        messages.append(one.message(drawn, name, {}))
        drawn = one.run(messages[-1])
    # The key of a field may end in the id of what it belongs to.
    typed = {
        next(key for key in drawn.widgets if key.startswith(start)): value for start, value in write.values.items()
    }
    return [*messages, one.message(drawn, write.click, typed)]


@pytest.fixture(scope="module")
def forged(guarded: Guarded) -> dict[str, list[bytes]]:
    """Return what a reviewer's browser sends for every write, after a first setting and decision have been saved."""
    reviewer = guarded.cookies(REVIEWER)

    def of(write: Write) -> list[bytes]:
        with session(guarded.address, reviewer, write.page, write.query) as one:
            return click(one, write)

    for write in (SAVE, DECIDE):
        with session(guarded.address, reviewer, write.page, write.query) as one:
            one.run(click(one, write)[-1])
    return {write.name: of(write) for write in WRITES}


def test_a_viewers_forged_messages_write_nothing(guarded: Guarded, forged: dict[str, list[bytes]]) -> None:
    before = guarded.content()
    assert before["setting"]
    assert before["decision"]
    for write in WRITES:
        with session(guarded.address, guarded.cookies(VIEWER), write.page, write.query) as one:
            assert one.run().says("viewer.")
            # Twice, as the first of them may only draw what the second clicks.
            for message in forged[write.name] * 2:
                one.run(message)
        assert guarded.content() == before, write.name


def test_without_a_sign_in_forged_messages_write_nothing(guarded: Guarded, forged: dict[str, list[bytes]]) -> None:
    before = guarded.content()
    for write in WRITES:
        with session(guarded.address, page=write.page, query=write.query) as one:
            for message in forged[write.name] * 2:
                assert one.run(message).says(SIGN_IN)
    assert guarded.content() == before


def test_a_reviewers_clicks_past_the_end_of_the_token_write_nothing(
    guarded: Guarded, forged: dict[str, list[bytes]]
) -> None:
    before = guarded.content()
    # One session for each page, with the clicks that it draws.
    pages = {(write.page, write.query): [other for other in WRITES if other.page == write.page] for write in WRITES}
    # As long as it may take to draw them, measured by drawing the slowest.
    began = time.monotonic()
    with session(guarded.address, guarded.cookies(REVIEWER), DECIDE.page, DECIDE.query) as one:
        click(one, DECIDE)
    seconds = 10 + (1 + len(pages)) * (time.monotonic() - began)
    began = time.monotonic()
    cookies = guarded.cookies(REVIEWER, seconds)
    with ExitStack() as open_sessions:
        held: list[tuple[Session, list[bytes]]] = []
        for (page, query), writes in pages.items():
            one = open_sessions.enter_context(session(guarded.address, cookies, page, query))
            held.append((one, [click(one, write)[-1] for write in writes]))
        time.sleep(max(0.0, began + seconds + 1 - time.monotonic()))
        for one, messages in held:
            for message in messages:
                assert one.run(message).says(EXPIRED), one.page
    assert guarded.content() == before


def test_the_same_messages_of_a_reviewer_write(guarded: Guarded) -> None:
    # Last: it shows that the messages above were refused for who sent them, and changes what they were about.
    for write in WRITES:
        before = guarded.content()
        with session(guarded.address, guarded.cookies(REVIEWER), write.page, write.query) as one:
            one.run(click(one, write)[-1])
        assert guarded.content() != before, write.name


def test_the_log_tells_it_all_and_no_secret(guarded: Guarded) -> None:
    stolen = guarded.cookies(REVIEWER)
    with session(guarded.address, stolen) as one:
        one.run()
    ask(guarded.address, "/oauth2callback?code=secretcode&state=secretstate", headers={"Cookie": stolen})
    ask(guarded.address, "/archive", headers={"Origin": "http://127.0.0.1:9"})
    ask(guarded.address, "/media/secretid.csv", headers={"Cookie": stolen})
    lines = [
        r" [0-9a-f]{12} GET /oauth2callback 302 \d+ms\n",
        r" - GET /archive 403 \d+ms refused=origin\n",
        r" [0-9a-f]{12} GET /media/\.\.\. 404 \d+ms\n",
        r" [0-9a-f]{12} WS /_stcore/stream 101 \d+ms\n",
    ]
    deadline = time.monotonic() + 30
    # A line is written after its answer.
    while not all(re.search(line, log := (guarded.folder / "e2e.access.log").read_text()) for line in lines):
        assert time.monotonic() < deadline, log
        time.sleep(0.1)
    for secret in ("secretcode", "secretstate", "secretid", "house.example", "_streamlit", SECRET):
        assert secret not in log
