"""Who reads the retrieved facts and answers: the protocol of a backend, and one for any OpenAI-compatible server.

Nothing here is needed for a run with the deterministic reader of `tepa_core.experiment.facts`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionMessageParam

BASE_URL_VARIABLE: Final = "TEPA_LLM_BASE_URL"
MODEL_VARIABLE: Final = "TEPA_LLM_MODEL"
KEY_VARIABLE: Final = "TEPA_LLM_API_KEY"

INSTRUCTION: Final = (
    "You are given numbered facts from an agent's memory and one question. Where facts disagree, the one with the "
    "later number is newer and is the one that holds. Take the facts as true even where they contradict what you know. "
    "Reply with the answer alone, as a name or short phrase, without a sentence around it."
)


class AnswerError(RuntimeError):
    """A backend gave no answer; the message says why and what to do."""


class Usage(NamedTuple):
    """What answers have cost so far: requests that a server answered, and answers that came from the cache."""

    calls: int
    cache_hits: int


class Backend(Protocol):
    """Answers a question from the facts that a memory retrieved."""

    @property
    def id(self) -> str:
        """Name it in the spec of a run."""

    @property
    def usage(self) -> Usage:
        """What its answers have cost since it was made."""

    def answer(self, question: str, facts: Sequence[str]) -> str:
        """Answer from numbered sentences, old to new; there may be none.

        Raises
        ------
        AnswerError
            If there is no answer to be had.
        """


class AnswerCache(Protocol):
    """Answers already paid for."""

    def get(self, model: str, prompt_digest: str) -> str | None:
        """Return the answer kept for a prompt, or None."""

    def put(self, model: str, prompt_digest: str, answer: str) -> None:
        """Keep an answer."""


class ProcessCache:
    """Answers kept for as long as the object lives."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], str] = {}

    def get(self, model: str, prompt_digest: str) -> str | None:
        """Return the answer kept for a prompt, or None."""
        return self._answers.get((model, prompt_digest))

    def put(self, model: str, prompt_digest: str, answer: str) -> None:
        """Keep an answer."""
        self._answers[model, prompt_digest] = answer


def prompt(question: str, facts: Sequence[str]) -> str:
    """Return what a model is asked: the facts, old to new, and the question."""
    listed = "\n".join(facts) if facts else "(none)"
    return f"Facts:\n{listed}\n\nQuestion: {question}\nAnswer:"


class ChatBackend:
    """A language model behind any server that speaks the OpenAI chat API, at temperature 0.

    Parameters
    ----------
    base_url
        Address of the API with its version, such as ``http://localhost:8000/v1``.
    model
        Name of the model as the server knows it.
    api_key
        Left out for servers that ask for none.
    timeout
        Seconds to wait for one answer.
    retries
        Further attempts after a broken connection, a timeout, 408, 409, 429 or a server error; the client waits longer
        each time, or for as long as the server asks for.
    cache
        Where answers are looked up first and kept; for this object alone when left out.

    Raises
    ------
    AnswerError
        If the address or the model is missing, or the key cannot be one.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 4,
        cache: AnswerCache | None = None,
    ) -> None:
        missing = [
            name for name, value in ((BASE_URL_VARIABLE, base_url), (MODEL_VARIABLE, model)) if not value.strip()
        ]
        if missing:
            raise AnswerError(
                f"{' and '.join(missing)} not set: a language model needs the address of a server that speaks the "
                f"OpenAI chat API ({BASE_URL_VARIABLE}, such as http://localhost:8000/v1), the name of a model "
                f"({MODEL_VARIABLE}) and, where the server asks for one, a key ({KEY_VARIABLE}). "
                "Without them, choose the deterministic reader."
            )
        if not base_url.startswith(("http://", "https://")):
            raise AnswerError(f"{BASE_URL_VARIABLE} is {base_url!r}; it must begin with http:// or https://.")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise AnswerError(f"{KEY_VARIABLE} holds a character that no key has; copy the key anew.")
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.timeout = timeout
        self.retries = retries
        self._api_key = api_key
        self._cache: AnswerCache = ProcessCache() if cache is None else cache
        self._client: OpenAI | None = None
        self._calls = 0
        self._cache_hits = 0

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 4,
        cache: AnswerCache | None = None,
    ) -> Self:
        """Make the backend that the environment names (``TEPA_LLM_BASE_URL``, ``_MODEL``, ``_API_KEY``).

        Raises
        ------
        AnswerError
            If the address or the model is missing, or the key cannot be one.
        """
        named = os.environ if environment is None else environment
        return cls(
            named.get(BASE_URL_VARIABLE, ""),
            named.get(MODEL_VARIABLE, ""),
            named.get(KEY_VARIABLE) or None,
            timeout=timeout,
            retries=retries,
            cache=cache,
        )

    @property
    def id(self) -> str:
        """Name of the model, marked as a chat model."""
        return f"chat:{self.model}"

    @property
    def usage(self) -> Usage:
        """Requests answered by the server and answers from the cache since this object was made."""
        return Usage(self._calls, self._cache_hits)

    def answer(self, question: str, facts: Sequence[str]) -> str:
        """Answer from numbered sentences, from the cache where the same prompt was answered before.

        Raises
        ------
        AnswerError
            If the server cannot be reached, refuses, is too slow or replies without text.
        """
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": prompt(question, facts)},
        ]
        # Two servers may give one name to different models.
        digest = hashlib.sha256(json.dumps([self.base_url, messages]).encode()).hexdigest()
        kept = self._cache.get(self.model, digest)
        if kept is not None:
            self._cache_hits += 1
            return kept
        said = self._ask(messages)
        self._calls += 1
        self._cache.put(self.model, digest, said)
        return said

    def close(self) -> None:
        """Close the connection to the server; a later answer opens a new one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, messages: list[ChatCompletionMessageParam]) -> str:
        # Loaded here, since a run with the deterministic reader needs no client and should not wait for one.
        import openai

        if self._client is None:
            self._client = openai.OpenAI(
                base_url=self.base_url,
                # The client insists on a key, and would else send OPENAI_API_KEY to this server.
                api_key=self._api_key or "none",
                timeout=self.timeout,
                max_retries=self.retries,
            )
        again = f"after {self.retries + 1} attempts" if self.retries else "at the first attempt"
        try:
            reply: Any = self._client.chat.completions.create(model=self.model, messages=messages, temperature=0)
        except openai.APITimeoutError:
            raise AnswerError(
                f"{self.base_url} gave no answer within {self.timeout:g} s ({again}). "
                "Try again later, or allow more time or a smaller model."
            ) from None
        except openai.APIConnectionError as error:
            raise AnswerError(
                f"{self.base_url} cannot be reached ({again}: {error.__cause__ or error}). "
                f"Check that the server runs and that {BASE_URL_VARIABLE} names it."
            ) from None
        except openai.AuthenticationError:
            known = "does not accept the key" if self._api_key else "asks for a key"
            raise AnswerError(f"{self.base_url} {known} (401). Set {KEY_VARIABLE} to a valid one.") from None
        except openai.PermissionDeniedError as error:
            raise AnswerError(
                f"{self.base_url} refuses this key the model {self.model} (403: {_said(error)}). "
                f"Use another model ({MODEL_VARIABLE}) or key ({KEY_VARIABLE})."
            ) from None
        except openai.NotFoundError as error:
            raise AnswerError(
                f"{self.base_url} knows no model {self.model}, or has no chat API at this address "
                f"(404: {_said(error)}). Check {MODEL_VARIABLE} and {BASE_URL_VARIABLE}, which usually ends in /v1."
            ) from None
        except openai.RateLimitError as error:
            raise AnswerError(
                f"{self.base_url} takes no more requests for now (429 {again}: {_said(error)}). "
                "Wait, or raise the limit of the key; answers given so far are kept."
            ) from None
        except openai.InternalServerError as error:
            raise AnswerError(
                f"{self.base_url} failed ({error.status_code} {again}: {_said(error)}). Try again later; "
                "answers given so far are kept."
            ) from None
        except openai.APIStatusError as error:
            raise AnswerError(
                f"{self.base_url} refused the request ({error.status_code}: {_said(error)}). "
                f"Check that {self.model} is a chat model that takes a temperature of 0."
            ) from None
        except (openai.OpenAIError, ValueError) as error:
            # A reply that says it is JSON and is none.
            raise AnswerError(f"{self.base_url} {_NO_CHAT} ({_first_line(error)}).") from None
        try:
            text = reply.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            raise AnswerError(f"{self.base_url} {_NO_CHAT}.") from None
        if not isinstance(text, str):
            raise AnswerError(f"{self.model} at {self.base_url} replied without text; choose a model that writes text.")
        return text.strip()


_NO_CHAT: Final = (
    f"replied with something that is no chat completion. Check that {BASE_URL_VARIABLE} names an OpenAI-compatible "
    "API; it usually ends in /v1"
)


def _said(error: Any) -> str:
    """Return what the server wrote, in one line."""
    body = error.body
    message = body.get("message") if isinstance(body, dict) else body
    return _first_line(message if isinstance(message, str) and message.strip() else error)


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
