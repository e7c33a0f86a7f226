"""What a browser sends to the server, made by hand, so that a test may also send what no browser would."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState, ContextInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

STREAM = "/_stcore/stream"
PATIENCE = 90.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer over HTTP."""

    status: int
    headers: http.client.HTTPMessage
    body: str


def ask(address: str, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
    """Send one request with exactly these headers; a Host among them stands instead of the right one."""
    where = urlsplit(address)
    sent = {"Host": where.netloc, **(headers or {})}
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        # The answer to a WebSocket's opening has no end.
        body = "" if answer.status == 101 else answer.read().decode("utf-8", "replace")
        return Answer(answer.status, answer.headers, body)
    finally:
        connection.close()


def opening(address: str, headers: Mapping[str, str]) -> int:
    """Ask for a WebSocket and return the status: 101 where it is opened."""
    handshake = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    return ask(
        address, STREAM, headers={**handshake, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", **headers}
    ).status


def signed_in(address: str, secret: str, claims: Mapping[str, Any], seconds: float = 3600) -> str:
    """Return the Cookie header of somebody whom the server has signed in, as it would write it itself."""
    now = time.time()
    whole = {
        "iss": "http://house.example",
        "sub": claims["email"],
        "iat": now,
        "exp": now + seconds,
        "origin": address,
        "is_logged_in": True,
        "provider": "default",
        **claims,
    }
    token = ask(address, "/_stcore/health").headers["set-cookie"].split(";")[0]
    return f"{token}; _streamlit_user={create_signed_value(secret, '_streamlit_user', json.dumps(whole)).decode()}"


@dataclass(slots=True)
class Drawn:
    """What a run of a script drew: texts, and widgets and fragments by their ids."""

    texts: list[str] = field(default_factory=list)
    widgets: dict[str, str] = field(default_factory=dict)
    fragments: set[str] = field(default_factory=set)

    def add(self, message: ForwardMsg) -> None:
        """Note one message."""
        delta = message.delta
        if delta.fragment_id:
            self.fragments.add(delta.fragment_id)
        if delta.WhichOneof("type") != "new_element":
            return
        kind = delta.new_element.WhichOneof("type")
        element = getattr(delta.new_element, kind)
        self.texts += [str(getattr(element, name)) for name in ("body", "label") if hasattr(element, name)]
        id_ = getattr(element, "id", "")
        if id_.startswith("$$ID"):
            self.widgets[id_.split("-", 2)[2]] = id_

    def says(self, words: str) -> bool:
        """Tell whether some text contains the words."""
        return any(words in text for text in self.texts)


@dataclass(slots=True)
class Session:
    """One open WebSocket."""

    address: str
    socket: ClientConnection
    page: str = ""
    query: str = ""

    def message(self, drawn: Drawn, click: str, values: Mapping[str, str | float], fragment: str = "") -> bytes:
        """Return the message of a click, with texts and numbers typed before it."""
        states = [
            WidgetState(id=drawn.widgets[name], **{"string_value" if isinstance(value, str) else "double_value": value})
            for name, value in values.items()
        ]
        if click:
            states.append(WidgetState(id=drawn.widgets[click], trigger_value=True))
        state = ClientState(
            query_string=self.query,
            page_name=self.page,
            widget_states=WidgetStates(widgets=states),
            context_info=ContextInfo(timezone="UTC", locale="en", url=f"{self.address}/{self.page}"),
            fragment_id=fragment,
        )
        return BackMsg(rerun_script=state).SerializeToString()

    def run(self, message: bytes | None = None) -> Drawn:
        """Send a message, by default that of opening the page, and return what was drawn."""
        self.socket.send(self.message(Drawn(), "", {}) if message is None else message)
        return self.drawn()

    def drawn(self) -> Drawn:
        """Wait for the end of a run."""
        drawn = Drawn()
        deadline = time.monotonic() + PATIENCE
        while True:
            message = ForwardMsg.FromString(self.socket.recv(max(0.0, deadline - time.monotonic()), decode=False))
            drawn.add(message)
            ends = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
            if message.WhichOneof("type") == "script_finished" and message.script_finished in ends:
                return drawn


@contextmanager
def session(address: str, cookies: str = "", page: str = "", query: str = "") -> Iterator[Session]:
    """Open a WebSocket as the page itself does."""
    tokens = [part.split("=", 1)[1] for part in cookies.split("; ") if part.startswith("_streamlit_xsrf=")]
    with connect(
        address.replace("http", "ws", 1) + STREAM,
        origin=Origin(address),
        subprotocols=[Subprotocol(name) for name in ("streamlit", *tokens)],
        additional_headers={"Cookie": cookies} if cookies else {},
        proxy=None,
        open_timeout=60,
        max_size=None,
    ) as socket:
        yield Session(address, socket, page, query)
