"""What every request and every answer of the dashboard passes, whatever Streamlit does with it.

Requests: the Host must be one of ``server.allowedHosts``, so that no other name leads a browser here. A page may ask
only for what is its own: the Origin, where a browser sends one, is this address, and what another page embeds or
fetches is refused, framed or not. Where people sign in, files in memory, uploads and metrics are for those whose
sign-in counts, a cookie that was signed out of is nobody's, and an open WebSocket obtains nothing past the end of its
sign-in.

A request without an Origin and without the marks of a browser comes from a program. It is let in: it has no cookie of
a browser, and Streamlit signs nobody in over a WebSocket without an Origin.

Answers: nothing frames the page, runs a script that is not served here, or guesses at the type of a file.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import streamlit as st
from google.protobuf.message import DecodeError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import file_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web.server.starlette.starlette_server_config import SESSION_COOKIE_NAME, USER_COOKIE_NAME
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from tepa_core.files import FileRefused
from tepa_core.ui.access_log import AccessLog
from tepa_core.ui.sign_ins import LONGEST, SignIn, SignOuts, login_is_on, login_over_tls, sign_in_of

_LOG: Final = logging.getLogger(__name__)

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})

#: What a page of the dashboard sends. Clearing everybody's cache and reading the server's repository are not in it.
MESSAGES: Final = frozenset(
    {"rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "backend_operation_request"}
)
#: What is left of that once the sign-in has expired: a run of the page, which says so.
AFTER_THE_END: Final = frozenset({"rerun_script", "stop_script", "app_heartbeat"})

#: Below these stands what is for people who have signed in, where people sign in.
_PERSONAL: Final = ("/media/", "/_stcore/upload_file/", "/_stcore/metrics")
_SIGNING: Final = ("/auth/", "/oauth2callback")
_SIGN_OUT: Final = "/auth/logout"

_REFUSALS: Final = {
    "host": "This dashboard is not reached under that name. Whoever runs it lists the names in server.allowedHosts.",
    "origin": "This dashboard answers its own pages only, not another page that asks for it or shows it in a frame.",
    "sign-in": "Sign in first: this is for people whose sign-in counts.",
}
_FAILED: Final = "This request failed, and the log of the server says why. Load the page again."

#: A host and a port as they may stand in a header of an answer.
_NETLOC: Final = re.compile(r"[A-Za-z0-9.\-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


def own_host(values: Iterable[str]) -> str | None:
    """Return the one Host of a request if the dashboard goes by that name, else None."""
    hosts = list(values)
    if len(hosts) != 1 or not _NETLOC.fullmatch(hosts[0]) or not is_host_allowed(hosts[0]):
        return None
    listed = st.get_option("server.allowedHosts")
    return hosts[0] if listed or urlsplit(f"//{hosts[0]}").hostname in LOOPBACK else None


def own_origin(origin: str, host: str, *, secure: bool) -> bool:
    """Tell whether an Origin is the address under which the browser sees this dashboard.

    Parameters
    ----------
    origin
        Scheme, host and port of the page that asks, as its browser says.
    host
        Host that was asked for, checked by `own_host`.
    secure
        Whether the request came over TLS, as far as is known: a proxy that ends TLS may not say so. Then a page of
        the same name under https is the dashboard behind that proxy.
    """
    try:
        page = urlsplit(origin)
        usual = {"https": 443, "http": 80}[page.scheme]
        asked = urlsplit(f"//{host}")
        same = page.hostname == asked.hostname and (page.port or usual) == (asked.port or usual)
    except (ValueError, KeyError):
        return False
    bare = f"{page.scheme}://{page.netloc}".casefold() == origin.casefold() and "@" not in page.netloc
    return same and bare and (page.scheme == "https" or not secure)


def from_another_page(headers: Headers, method: str, path: str) -> bool:
    """Tell whether a browser marks the request as made by another page, and not by following a link to here."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return not followed or method not in ("GET", "HEAD") or path.startswith("/auth/")


def content_policy(host: str, inline: Iterable[str]) -> str:
    """Say what a page may load: what is served here, and the scripts of Streamlit's own first page.

    Parameters
    ----------
    host
        Host of the request, checked by `own_host`; not every browser counts a WebSocket to it as ``'self'``.
    inline
        Hashes of the scripts in that page, as `inline_hashes` gives them.
    """
    # A component comes as a module in a blob of the page itself. Streamlit and plotly set styles by script all over.
    rules = {
        "default-src": "'self'",
        "script-src": " ".join(["'self'", "blob:", *inline]),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": f"'self' ws://{host} wss://{host}",
        "worker-src": "'self' blob:",
        "frame-src": "'none'",
        "frame-ancestors": "'none'",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def inline_hashes() -> tuple[str, ...]:
    """Hash the scripts that stand in the first page of the installed Streamlit, as a policy names them."""
    page = Path(file_util.get_static_dir(), "index.html").read_text(encoding="utf-8")
    scripts: list[str] = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    return tuple(f"'sha256-{digest}'" for digest in digests)


@dataclass(slots=True)
class _Visit:
    """One request: what is known of it, and what became of it."""

    scope: Scope
    headers: Headers
    path: str
    host: str | None
    sign_in: SignIn | None
    login: bool
    began: float
    status: int = 0
    why: str = ""

    @property
    def method(self) -> str:
        return "WS" if self.scope["type"] == "websocket" else str(self.scope["method"])


class Guard:
    """The ASGI layer round the dashboard.

    Parameters
    ----------
    app
        What answers, of any kind.
    sign_outs
        What was signed out of.
    log
        Where each request is noted.
    """

    def __init__(self, app: ASGIApp, *, sign_outs: SignOuts, log: AccessLog) -> None:
        self._app = app
        self._sign_outs = sign_outs
        self._log = log
        self._inline = inline_hashes()
        # Digest of a sign-in -> what wakes its open WebSockets when it is signed out of.
        self._open: dict[str, set[asyncio.Event]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request or hold one WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        visit = self._visit(scope)
        try:
            visit.why = self._refusal(visit)
            if visit.why:
                await self._refuse(visit, receive, send)
            elif scope["type"] == "http":
                await self._answer(visit, receive, send)
            else:
                await self._hold(visit, receive, send)
        finally:
            self._note(visit)

    def _visit(self, scope: Scope) -> _Visit:
        headers = Headers(scope=scope)
        base = str(st.get_option("server.baseUrlPath") or "").strip("/")
        path = str(scope["path"])
        login = login_is_on()
        return _Visit(
            scope=scope,
            headers=headers,
            path=path.removeprefix(f"/{base}") if base else path,
            host=own_host(headers.getlist("host")),
            sign_in=sign_in_of(HTTPConnection(scope).cookies) if login else None,
            login=login,
            began=time.monotonic(),
        )

    def _refusal(self, visit: _Visit) -> str:
        if visit.host is None:
            return "host"
        secure = visit.scope["scheme"] in ("https", "wss")
        if any(not own_origin(origin, visit.host, secure=secure) for origin in visit.headers.getlist("origin")):
            return "origin"
        if visit.scope["type"] == "http" and from_another_page(visit.headers, visit.method, visit.path):
            return "origin"
        if visit.login and visit.path.startswith(_PERSONAL) and not self._counts(visit.sign_in):
            return "sign-in"
        return ""

    def _counts(self, sign_in: SignIn | None) -> bool:
        return sign_in is not None and not sign_in.expired() and not self._sign_outs.ended(sign_in)

    async def _refuse(self, visit: _Visit, receive: Receive, send: Send) -> None:
        visit.status = 403
        if visit.scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        answer = PlainTextResponse(_REFUSALS[visit.why], status_code=403)
        await answer(visit.scope, receive, self._sending(visit, send))

    async def _answer(self, visit: _Visit, receive: Receive, send: Send) -> None:
        if visit.path == _SIGN_OUT and visit.sign_in is not None:
            self._end(visit.sign_in)
        guarded = self._sending(visit, send)
        try:
            await self._app(self._without_ended(visit), receive, guarded)
        except Exception:
            # Starlette would answer outside of this layer, without its headers; it still notes the traceback.
            if not visit.status:
                await PlainTextResponse(_FAILED, status_code=500)(visit.scope, receive, guarded)
            raise

    def _end(self, sign_in: SignIn) -> None:
        try:
            self._sign_outs.end(sign_in)
        except FileRefused as error:
            _LOG.error("A sign-out holds only until the server is restarted: %s.", error)
        finally:
            for wake in self._open.get(sign_in.digest, set()):
                wake.set()

    def _without_ended(self, visit: _Visit) -> Scope:
        """Return the request without the cookies of a sign-in that does not count; Streamlit would believe them.

        One whose token has expired is left: the page tells that person so. The routes of signing in and out get what
        was sent, and clear it.
        """
        if not visit.login or visit.path.startswith(_SIGNING):
            return visit.scope
        if visit.sign_in is not None and not self._sign_outs.ended(visit.sign_in):
            return visit.scope
        kept = [
            (name, _without_sign_in(value) if name.lower() == b"cookie" else value)
            for name, value in visit.scope["headers"]
        ]
        return {**visit.scope, "headers": kept}

    def _sending(self, visit: _Visit, send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = int(message["status"])
                message.setdefault("headers", [])
                self._guard_headers(MutableHeaders(scope=message), visit.host)
            await send(message)

        return guarded

    def _guard_headers(self, headers: MutableHeaders, host: str | None) -> None:
        headers["Content-Security-Policy"] = content_policy(host or "127.0.0.1", self._inline)
        headers["X-Content-Type-Options"] = "nosniff"
        headers["X-Frame-Options"] = "DENY"
        headers["Referrer-Policy"] = "same-origin"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        for name in [name for name in headers if name.startswith("access-control-")]:
            del headers[name]
        cookies = headers.getlist("set-cookie")
        if cookies:
            secure = login_over_tls()
            del headers["set-cookie"]
            for cookie in cookies:
                headers.append("set-cookie", short_lived(cookie, secure=secure))

    async def _hold(self, visit: _Visit, receive: Receive, send: Send) -> None:
        """Hold a WebSocket: end it with its sign-in, and pass on only what a page of the dashboard sends."""
        ended = asyncio.Event()
        digest = visit.sign_in.digest if visit.sign_in else ""
        waiting = self._open.setdefault(digest, set())
        waiting.add(ended)

        async def guarded_receive() -> Message:
            while True:
                message = await _unless(ended, receive)
                if message is None:
                    with contextlib.suppress(RuntimeError):
                        await send({"type": "websocket.close", "code": 1008, "reason": ""})
                    return {"type": "websocket.disconnect", "code": 1008}
                passed = self._passed(message, visit)
                if passed is not None:
                    return passed

        async def guarded_send(message: Message) -> None:
            if message["type"] == "websocket.accept":
                visit.status = 101
                self._note(visit)
            if not ended.is_set():
                await send(message)

        try:
            await self._app(self._without_ended(visit), guarded_receive, guarded_send)
        finally:
            waiting.discard(ended)
            if not waiting:
                self._open.pop(digest, None)

    def _passed(self, message: Message, visit: _Visit) -> Message | None:
        """Return a message of a WebSocket as it may go on, or None for one that may not."""
        content = message.get("bytes")
        if message["type"] != "websocket.receive" or content is None:
            return message
        try:
            asked = BackMsg.FromString(content)
        except DecodeError:
            return message  # Streamlit closes the connection over it
        over = visit.sign_in is not None and visit.sign_in.expired()
        if asked.WhichOneof("type") not in (AFTER_THE_END if over else MESSAGES):
            return None
        if over and asked.rerun_script.fragment_id:
            # A part of a page runs without the script above it, which asks for the sign-in.
            asked.rerun_script.ClearField("fragment_id")
            return {**message, "bytes": asked.SerializeToString()}
        return message

    def _note(self, visit: _Visit) -> None:
        client = visit.scope.get("client")
        self._log.write(
            method=visit.method,
            path=visit.path,
            status=visit.status,
            began=visit.began,
            client=client[0] if client else "",
            person=visit.sign_in.name if visit.sign_in and not self._sign_outs.ended(visit.sign_in) else "",
            why=visit.why,
        )


def short_lived(cookie: str, *, secure: bool) -> str:
    """Return a Set-Cookie line whose cookie lives a day at most where it lives on, over TLS only where that is used.

    Examples
    --------
    >>> short_lived("_streamlit_user=x; HttpOnly; Max-Age=2592000; Path=/", secure=True)
    '_streamlit_user=x; HttpOnly; Max-Age=86400; Path=/; Secure'
    """
    value, *attributes = (part.strip() for part in cookie.split(";"))
    if value.startswith((USER_COOKIE_NAME, SESSION_COOKIE_NAME)):
        attributes = [
            f"Max-Age={min(int(number), LONGEST)}" if name.casefold() == "max-age" and number.isdigit() else attribute
            for attribute in attributes
            for name, _, number in [attribute.partition("=")]
        ]
    if secure and "secure" not in (attribute.casefold() for attribute in attributes):
        attributes.append("Secure")
    return "; ".join([value, *attributes])


def _without_sign_in(header: bytes) -> bytes:
    cookies = (cookie.strip() for cookie in header.split(b";"))
    return b"; ".join(cookie for cookie in cookies if not cookie.startswith(USER_COOKIE_NAME.encode()))


async def _unless(ended: asyncio.Event, receive: Receive) -> Message | None:
    """Wait for the next message, or for the end, which gives None."""
    message, end = asyncio.ensure_future(receive()), asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({message, end}, return_when=asyncio.FIRST_COMPLETED)
        return None if ended.is_set() else message.result()
    finally:
        for task in (message, end):
            task.cancel()
