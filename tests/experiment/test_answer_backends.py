"""The chat backend against a real HTTP server on the loopback interface that speaks just enough of the chat API."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment.answer_backends import (
    BASE_URL_VARIABLE,
    KEY_VARIABLE,
    MODEL_VARIABLE,
    AnswerError,
    ChatBackend,
    ProcessCache,
    Usage,
    prompt,
)
from tepa_core.experiment.facts import FactSpec, run_facts
from tepa_core.store import Store
from tepa_core.store.answers import StoredAnswers
from tepa_core.streams.fact_file import fact_file

QUESTION = "What is the capital of Verrin?"
FACTS = ["3. The capital of Verrin is Ostmar.", "9. The capital of Verrin is Lindhaven."]


@dataclass
class ChatServer:
    """Replies in turn with what is scripted, then with the value of the last fact."""

    url: str = ""
    replies: list[tuple[int, bytes, threading.Event | None]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)

    def script(
        self, status: int, body: object = None, *, raw: bytes | None = None, after: threading.Event | None = None
    ) -> None:
        self.replies.append((status, json.dumps(body).encode() if raw is None else raw, after))

    def handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, asked))
                status, body, after = server.replies.pop(0) if server.replies else (200, completion(last(asked)), None)
                if after is not None:
                    after.wait(60)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                # The client waits as long as the server asks for: a test should not take the seconds of its own guess.
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                try:
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def last(asked: dict[str, Any]) -> str:
    facts = asked["messages"][1]["content"].split("\n\nQuestion:")[0].splitlines()[1:]
    return f" {facts[-1].split(' is ')[-1]}\n"


def completion(text: str | None) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [choice]}
    ).encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    state = ChatServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), state.handler())
    state.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


def test_an_answer(server: ChatServer) -> None:
    with ChatBackend(server.url, "tiny", "secret") as backend:
        assert backend.id == "chat:tiny"
        assert backend.answer(QUESTION, FACTS) == "Lindhaven."
        assert backend.usage == Usage(1, 0)
    [(path, headers, asked)] = server.requests
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == "Bearer secret"
    assert (asked["model"], asked["temperature"]) == ("tiny", 0)
    system, user = asked["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "later number is newer" in system["content"]
    assert user["content"] == (
        f"Facts:\n3. The capital of Verrin is Ostmar.\n9. The capital of Verrin is Lindhaven.\n\n"
        f"Question: {QUESTION}\nAnswer:"
    )


def test_no_facts_are_said_to_be_none() -> None:
    assert prompt(QUESTION, []) == f"Facts:\n(none)\n\nQuestion: {QUESTION}\nAnswer:"


def test_another_programs_key_is_not_sent_along(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    with ChatBackend(server.url, "tiny") as backend:
        backend.answer(QUESTION, FACTS)
    assert "sk-of-another-service" not in str(server.requests)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(server: ChatServer, status: int) -> None:
    server.script(status, {"error": {"message": "busy"}})
    server.script(status, {"error": {"message": "busy"}})
    with ChatBackend(server.url, "tiny") as backend:
        assert backend.answer(QUESTION, FACTS) == "Lindhaven."
        assert backend.usage == Usage(1, 0)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (429, r"takes no more requests for now \(429 after 3 attempts: out of quota\)\. Wait, or raise the limit"),
        (500, r"failed \(500 after 3 attempts: out of quota\)\. Try again later"),
    ],
)
def test_a_lasting_failure_ends_after_the_retries(server: ChatServer, status: int, says: str) -> None:
    for _ in range(5):
        server.script(status, {"error": {"message": "out of quota\nsecond line"}})
    with ChatBackend(server.url, "tiny", retries=2) as backend, pytest.raises(AnswerError, match=says):
        backend.answer(QUESTION, FACTS)
    assert len(server.requests) == 3
    assert backend.usage == Usage(0, 0)


@pytest.mark.parametrize(
    ("status", "key", "says"),
    [
        (401, "wrong", "does not accept the key (401). Set TEPA_LLM_API_KEY to a valid one."),
        (401, None, "asks for a key (401). Set TEPA_LLM_API_KEY"),
        (403, "k", "refuses this key the model tiny (403: no)"),
        (404, "k", "knows no model tiny, or has no chat API at this address (404: no). Check TEPA_LLM_MODEL"),
        (400, "k", "refused the request (400: no). Check that tiny is a chat model"),
    ],
)
def test_a_refusal_is_not_tried_again(server: ChatServer, status: int, key: str | None, says: str) -> None:
    server.script(status, {"error": {"message": "no"}})
    with ChatBackend(server.url, "tiny", key) as backend, pytest.raises(AnswerError) as refusal:
        backend.answer(QUESTION, FACTS)
    assert says in str(refusal.value)
    assert server.url in str(refusal.value)
    assert len(server.requests) == 1


def test_a_slow_server_is_given_up(server: ChatServer) -> None:
    given_up = threading.Event()
    server.script(200, raw=completion("late"), after=given_up)
    with ChatBackend(server.url, "tiny", timeout=0.2, retries=0) as backend:
        with pytest.raises(AnswerError, match=r"gave no answer within 0\.2 s \(at the first attempt\)"):
            backend.answer(QUESTION, FACTS)
        assert backend.usage == Usage(0, 0)
    given_up.set()


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        ChatBackend(f"http://127.0.0.1:{port}/v1", "tiny", retries=0) as backend,
        pytest.raises(AnswerError, match=r"cannot be reached .+ Check that the server runs and that TEPA_LLM_BASE_URL"),
    ):
        backend.answer(QUESTION, FACTS)


@pytest.mark.parametrize(
    "raw", [b"<html>hello</html>", b'"text"', b"[]", b"{}", b'{"choices": []}', b'{"choices": null}', b"null", b""]
)
def test_a_reply_that_is_no_completion(server: ChatServer, raw: bytes) -> None:
    server.script(200, raw=raw)
    with (
        ChatBackend(server.url, "tiny", retries=0) as backend,
        pytest.raises(AnswerError, match=r"no chat completion.+usually ends in /v1"),
    ):
        backend.answer(QUESTION, FACTS)


def test_a_reply_without_text(server: ChatServer) -> None:
    server.script(200, raw=completion(None))
    with (
        ChatBackend(server.url, "tiny") as backend,
        pytest.raises(AnswerError, match=r"tiny at .+ replied without text"),
    ):
        backend.answer(QUESTION, FACTS)


# --- the cache


def test_the_same_prompt_is_asked_once(server: ChatServer) -> None:
    with ChatBackend(server.url, "tiny") as backend:
        first = backend.answer(QUESTION, FACTS)
        assert backend.answer(QUESTION, FACTS) == first
        assert backend.usage == Usage(1, 1)
        backend.answer(QUESTION, FACTS[:1])
        assert backend.usage == Usage(2, 1)
    assert len(server.requests) == 2


def test_a_failure_is_not_kept(server: ChatServer) -> None:
    server.script(401, {"error": {"message": "no"}})
    with ChatBackend(server.url, "tiny", "k") as backend:
        with pytest.raises(AnswerError):
            backend.answer(QUESTION, FACTS)
        assert backend.answer(QUESTION, FACTS) == "Lindhaven."


def test_models_and_servers_do_not_share_answers(server: ChatServer) -> None:
    cache = ProcessCache()
    for url, model in ((server.url, "tiny"), (server.url, "large"), (server.url.replace("/v1", "/v2"), "tiny")):
        with ChatBackend(url, model, cache=cache) as backend:
            backend.answer(QUESTION, FACTS)
            assert backend.usage == Usage(1, 0)


def test_answers_outlive_the_process_in_the_database(server: ChatServer, tmp_path: Path) -> None:
    for expected in (Usage(1, 0), Usage(0, 1)):
        with Store(tmp_path / "a.duckdb", PROGRAM) as store:
            kept = StoredAnswers(store)
            with ChatBackend(server.url + "/", "tiny", cache=kept) as backend:
                assert backend.answer(QUESTION, FACTS) == "Lindhaven."
                assert backend.usage == expected
            assert len(kept) == 1
    assert len(server.requests) == 1


def test_the_first_answer_to_a_prompt_stays(tmp_path: Path) -> None:
    with Store(tmp_path / "a.duckdb", PROGRAM) as store:
        kept = StoredAnswers(store)
        assert kept.get("tiny", "d") is None
        kept.put("tiny", "d", "it's “Łódź”\n")
        kept.put("tiny", "d", "another")
        kept.put("large", "d", "")
        assert (kept.get("tiny", "d"), kept.get("large", "d"), len(kept)) == ("it's “Łódź”\n", "", 2)


def test_a_whole_run_asks_each_prompt_once(server: ChatServer) -> None:
    content = {
        "context": "0. The capital of Verrin is Ostmar.\n1. The capital of Verrin is Lindhaven.\n",
        "questions": [QUESTION, "Where is Ostmar on the map?"],
        "answers": [["Lindhaven"], ["Lindhaven"]],
    }
    facts = fact_file(content, "two")
    with ChatBackend(server.url, "tiny") as backend:
        spec = FactSpec.build(facts, methods=["tepa", "append_only"], backend=backend.id)
        result = run_facts(facts, spec, backend)
        # Of each question tepa retrieves other facts than append_only; three orders repeat what was asked.
        assert result.usage == Usage(4, 8)
    assert len(server.requests) == 4
    keyed = result.episodes[result.episodes["key"] == "capital · Verrin"]
    assert keyed["success"].all()
    assert set(keyed["action"]) == {"Lindhaven."}
    assert set(keyed["followed"]) == {"Lindhaven"}


# --- the configuration


def test_the_environment_names_server_model_and_key(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BASE_URL_VARIABLE, server.url)
    monkeypatch.setenv(MODEL_VARIABLE, "tiny")
    monkeypatch.setenv(KEY_VARIABLE, "from the environment")
    with ChatBackend.from_environment() as backend:
        backend.answer(QUESTION, FACTS)
    assert server.requests[0][1]["authorization"] == "Bearer from the environment"


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({}, "TEPA_LLM_BASE_URL and TEPA_LLM_MODEL not set"),
        ({BASE_URL_VARIABLE: "http://localhost/v1", MODEL_VARIABLE: " "}, "TEPA_LLM_MODEL not set"),
        ({MODEL_VARIABLE: "tiny"}, "TEPA_LLM_BASE_URL not set"),
        ({BASE_URL_VARIABLE: "localhost:8000", MODEL_VARIABLE: "tiny"}, "it must begin with http:// or https://"),
        (
            {BASE_URL_VARIABLE: "http://localhost/v1", MODEL_VARIABLE: "tiny", KEY_VARIABLE: "schlüssel"},
            "TEPA_LLM_API_KEY holds a character that no key has",
        ),
        (
            {BASE_URL_VARIABLE: "http://localhost/v1", MODEL_VARIABLE: "tiny", KEY_VARIABLE: "two\nlines"},
            "TEPA_LLM_API_KEY holds a character that no key has",
        ),
    ],
)
def test_what_is_missing_is_named(environment: dict[str, str], says: str) -> None:
    with pytest.raises(AnswerError) as refusal:
        ChatBackend.from_environment(environment)
    assert says in str(refusal.value)


def test_the_deterministic_path_does_not_load_the_client() -> None:
    code = "import sys, tepa_core.experiment.facts as f; f.run_facts; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False).returncode == 0
