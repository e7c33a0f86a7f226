"""The fact stream: what a memory makes of numbered facts, and what a reader answers from it (paper section 5.4).

Every fact is fed to each method in the order of the numbers; then the questions are asked, in several orders. Questions
change no memory, so each method's memory is built once.

What a question retrieves is the same whoever reads it. One that asks for a conflict key of the file brings back the
values that the method holds active for that key. A question through several relations brings back the lexically closest
active facts (BM25 over all sentences of the file, inactive ones skipped).

The deterministic reader answers a key by the retrieved value, by a seeded coin where there are several: it has nothing
that tells the newer one, as a model that is handed an unsorted memory. It cannot chain: a question through several
relations gets the value of the closest fact, so it is mostly wrong there, and the attribution says whether the memory
is to blame.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import bm25s
import numpy as np
import numpy.typing as npt
import pandas as pd

from tepa_core import __version__
from tepa_core.experiment.answer_backends import Backend, Usage
from tepa_core.experiment.run import Progress
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.methods import METHODS, Experience, Method, Setting, thresholds_of
from tepa_core.stats.exact_match import normalized, substring_exact_match
from tepa_core.streams.fact_file import Fact, FactFile, Question

#: Id of the stream of a fact run, beside those of `tepa_core.streams.STREAMS`.
FACT_STREAM: Final = "facts"
#: Id of the reader that needs no language model.
DETERMINISTIC: Final = "deterministic"
#: The one phase of a fact run.
PHASE: Final = "questions"
#: Key of the episodes whose question goes through several relations.
MULTI_HOP: Final = "(multi-hop)"
#: Between several retrieved values of one episode.
SEPARATOR: Final = " | "

#: Methods that a fact file can be fed to: all but those that validate by trials, of which it has none.
FACT_METHODS: Final = tuple(entry.id for entry in METHODS.values() if not entry.trials)

# Why a question through several relations was answered or not.
ANSWERED: Final = "answered"
CHAIN_NOT_FOUND: Final = "state right, chain not found"
STATE_WRONG: Final = "state wrong"
NEVER_STATED: Final = "never stated"

#: In the order in which tables show them.
ATTRIBUTIONS: Final = (ANSWERED, CHAIN_NOT_FOUND, STATE_WRONG, NEVER_STATED)

#: Chooses among facts on one key, given from old to new, at least one.
Pick = Callable[[Sequence[Fact], np.random.Generator], Fact]


def newest(facts: Sequence[Fact], rng: np.random.Generator) -> Fact:
    """Pick the newest: the most that a reader can do where the later number holds."""
    return facts[-1]


def oldest(facts: Sequence[Fact], rng: np.random.Generator) -> Fact:
    """Pick the oldest: right only where nothing changed (first wins)."""
    return facts[0]


def coin(facts: Sequence[Fact], rng: np.random.Generator) -> Fact:
    """Pick any, each with the same probability: the deterministic reader."""
    return facts[int(rng.integers(len(facts)))]


@dataclass(frozen=True, slots=True)
class FactSpec:
    """One fact run, as names and numbers.

    Attributes
    ----------
    name, digest
        Of the fact file.
    methods
        Ids of methods, in the order of the registry.
    thresholds
        Of the precedents of tepa and tepa_norev. A fact is stated once, so ``direct_facts`` replaces at once.
    orders
        How many orders the questions are asked in; seeds 0 to ``orders - 1``.
    backend
        `DETERMINISTIC`, or the id of the backend that answers.
    top_k
        Facts that a question through several relations brings back.
    """

    name: str
    digest: str
    methods: tuple[str, ...] = FACT_METHODS
    thresholds: Thresholds = PRESETS["direct_facts"]
    orders: int = 3
    backend: str = DETERMINISTIC
    top_k: int = 10

    @property
    def stream(self) -> str:
        """Id of the stream."""
        return FACT_STREAM

    @property
    def title(self) -> str:
        """Name of the stream for people."""
        return "Fact consolidation"

    @property
    def asserts(self) -> bool:
        """Evidence states values: a fact says what holds, nobody has tried it."""
        return True

    @classmethod
    def build(
        cls,
        facts: FactFile,
        *,
        methods: Sequence[str] | None = None,
        thresholds: Thresholds | None = None,
        orders: int = 3,
        backend: str = DETERMINISTIC,
        top_k: int = 10,
    ) -> FactSpec:
        """Check what a person asked for and return the spec.

        Raises
        ------
        ValueError
            If anything is unknown or out of range; the message says what there is.
        """
        return cls._checked(facts.name, facts.digest, methods, thresholds, orders, backend, top_k)

    @classmethod
    def _checked(
        cls,
        name: str,
        digest: str,
        methods: Sequence[str] | None,
        thresholds: Thresholds | None,
        orders: int,
        backend: str,
        top_k: int,
    ) -> FactSpec:
        unknown = [method for method in methods or () if method not in METHODS]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no such method; the methods are {', '.join(FACT_METHODS)}")
        on_trial = [method for method in methods or () if METHODS[method].trials]
        if on_trial:
            raise ValueError(
                f"{', '.join(on_trial)} validates by trials, and a fact file has none; "
                f"the methods are {', '.join(FACT_METHODS)}"
            )
        chosen = tuple(method for method in FACT_METHODS if methods is None or method in methods)
        if not chosen:
            raise ValueError(f"choose at least one method of {', '.join(FACT_METHODS)}")
        for what, number, high in (("orders", orders, 100), ("top_k", top_k, 1000)):
            if not 1 <= number <= high:
                raise ValueError(f"{what} must be from 1 to {high}, not {number}")
        return cls(name, digest, chosen, thresholds or PRESETS["direct_facts"], orders, backend, top_k)

    @property
    def run_id(self) -> str:
        """A stable, readable id: the same file under the same settings is the same run."""
        content = json.dumps([self.as_dict(), __version__], sort_keys=True)
        stem = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "facts"
        return f"facts-{stem[:40]}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def as_dict(self) -> dict[str, Any]:
        """Return the spec as JSON-ready names and numbers."""
        return {
            "stream": FACT_STREAM,
            "name": self.name,
            "digest": self.digest,
            "methods": list(self.methods),
            "thresholds": dataclasses.asdict(self.thresholds),
            "orders": self.orders,
            "backend": self.backend,
            "top_k": self.top_k,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FactSpec:
        """Read back what `as_dict` wrote."""
        return cls._checked(
            content["name"],
            content["digest"],
            content["methods"],
            Thresholds(**content["thresholds"]),
            content["orders"],
            content["backend"],
            content["top_k"],
        )

    def command(self) -> str:
        """Return the command that repeats this run, given the file in the folder where it is called.

        The name of the server and the key of a language model come from the environment.
        """
        file = shlex.quote(f"{self.name}.json")
        parts = [f"python -m tepa_core run {FACT_STREAM} --file {file} --orders {self.orders}"]
        if self.methods != FACT_METHODS:
            parts.append(f"--methods {','.join(self.methods)}")
        usual = PRESETS["direct_facts"]
        changed = [
            f"{field.name}={getattr(self.thresholds, field.name)}"
            for field in dataclasses.fields(Thresholds)
            if getattr(self.thresholds, field.name) != getattr(usual, field.name)
        ]
        if changed:
            parts.append("--set " + " ".join(changed))
        if self.backend != DETERMINISTIC:
            parts.append("--answerer chat")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class FactResult:
    """What a fact run produced.

    Attributes
    ----------
    episodes
        One row per method, order and question: ``method``, ``seed`` (the order), ``t`` (position in that order),
        ``phase``, ``key`` (the asked key or `MULTI_HOP`), ``action`` (the answer, empty for none), ``success``
        (substring exact match), ``followed`` (the retrieved value that the answer is, missing where none),
        ``retrieved`` (retrieved values from old to new, joined by `SEPARATOR`, missing where none), ``exposed`` (a
        superseded value was among them), ``size`` (items that the memory could retrieve).
    evidence
        Of the methods with a lifecycle: ``method``, ``seed`` (0: no order changes a memory), ``seq``, ``t`` (the
        fact's place among those that were understood), ``key``, ``value``, ``supports``, ``text`` (the sentence),
        ``source_ref`` (its number in the file, "fact 7").
    attribution
        One row per method, order and question through several relations: ``method``, ``seed``, ``question`` (its
        number), ``attribution`` (one of `ATTRIBUTIONS`).
    questions
        What stands at each position of each order: ``seed``, ``t``, ``question`` (its number), ``text``, ``gold``
        (the right answers, joined by `SEPARATOR`).
    usage
        What a backend's answers cost; zeros for the deterministic reader.
    elapsed
        Seconds.
    """

    spec: FactSpec
    episodes: pd.DataFrame
    evidence: pd.DataFrame
    attribution: pd.DataFrame
    questions: pd.DataFrame
    usage: Usage
    elapsed: float


def run_facts(
    facts: FactFile, spec: FactSpec, backend: Backend | None = None, progress: Progress | None = None
) -> FactResult:
    """Feed a fact file to every method and ask its questions in every order.

    Parameters
    ----------
    facts
        The file that the spec names.
    spec
        What to run.
    backend
        Who answers; the deterministic reader when left out.
    progress
        Called with the fraction done; an exception raised in it stops the run, nothing is kept.

    Raises
    ------
    ValueError
        If the spec names another file or another backend.
    AnswerError
        If the backend gives no answer.
    """
    began = time.perf_counter()
    if spec.digest != facts.digest:
        raise ValueError(f"the run is about another file than this {facts.name}; read the file that it names")
    named = DETERMINISTIC if backend is None else backend.id
    if spec.backend != named:
        raise ValueError(f"the run asks {spec.backend} for answers, not {named}; hand over the backend that it names")
    before = Usage(0, 0) if backend is None else backend.usage
    stated = _Statements(facts)
    orders = [question_order(len(facts.questions), seed) for seed in range(spec.orders)]
    episodes: list[dict[str, object]] = []
    attribution: list[dict[str, object]] = []
    done, total = 0, len(spec.methods) * spec.orders * len(facts.questions)
    for method in spec.methods:
        memory = _Memory(stated, _fed(stated, method, spec.thresholds))
        for seed, order in enumerate(orders):
            for t, number in enumerate(order.tolist()):
                question = facts.questions[number]
                retrieved, best = memory.retrieve(question, spec.top_k)
                if backend is None:
                    rng = np.random.Generator(np.random.PCG64([seed, number]))
                    chosen = _read(question, retrieved, best, coin, rng)
                    answer = "" if chosen is None else chosen.value
                else:
                    answer = backend.answer(question.text, [f"{fact.number}. {fact.sentence}" for fact in retrieved])
                    chosen = next((f for f in reversed(retrieved) if substring_exact_match(answer, [f.value])), None)
                success = substring_exact_match(answer, question.golds)
                episodes.append(
                    {
                        "method": method,
                        "seed": seed,
                        "t": t,
                        "phase": PHASE,
                        "key": question.key or MULTI_HOP,
                        "action": answer,
                        "success": success,
                        "followed": None if chosen is None else chosen.value,
                        "retrieved": SEPARATOR.join(fact.value for fact in retrieved) or None,
                        "exposed": any(stated.superseded(fact) for fact in retrieved),
                        "size": len(memory),
                    }
                )
                if question.key is None:
                    why = ANSWERED if success else memory.attribute(question)
                    attribution.append({"method": method, "seed": seed, "question": number, "attribution": why})
                done += 1
                if progress is not None and done % 10 == 0:
                    progress(done / total, f"{method}: order {seed + 1} of {spec.orders}, question {t + 1}")
    after = Usage(0, 0) if backend is None else backend.usage
    return FactResult(
        spec,
        pd.DataFrame(episodes),
        _evidence(facts, spec.methods),
        pd.DataFrame(attribution, columns=["method", "seed", "question", "attribution"]),
        _questions(facts, orders),
        Usage(after.calls - before.calls, after.cache_hits - before.cache_hits),
        time.perf_counter() - began,
    )


def reader_success(facts: FactFile, pick: Pick, seed: int = 0) -> float:
    """Return the success of a reader that finds every value ever stated: what the reader alone is good for.

    `newest` gives the ceiling, `oldest` what first wins would earn, `coin` what a reader earns to whom all look alike.

    Parameters
    ----------
    facts
        The file; its questions for one conflict key are asked.
    pick
        How the reader chooses.
    seed
        Order that the coin is drawn for.

    Returns
    -------
    float
        Share answered right, NaN for a file that asks for no single key.
    """
    stated = _Statements(facts)
    right = []
    for question in facts.questions:
        if question.key is not None:
            rng = np.random.Generator(np.random.PCG64([seed, question.number]))
            chosen = _read(question, stated.on_key(question.key), None, pick, rng)
            right.append(chosen is not None and substring_exact_match(chosen.value, question.golds))
    return float(np.mean(right)) if right else float("nan")


def question_order(questions: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the questions in the order in which a seed asks them, shape (questions,)."""
    return np.random.Generator(np.random.PCG64(seed)).permutation(questions)


def _read(
    question: Question, retrieved: Sequence[Fact], best: Fact | None, pick: Pick, rng: np.random.Generator
) -> Fact | None:
    """Choose the fact whose value is the answer: by `pick` on one key, else the closest."""
    if question.key is None:
        return best
    return pick(retrieved, rng) if retrieved else None


class _Statements:
    """What a file states, by key and value, each pair once with its newest sentence."""

    def __init__(self, facts: FactFile) -> None:
        self.keys: dict[str, int] = {}
        self.values: dict[str, int] = {}
        self.fed: list[Experience] = []
        self.newest: dict[int, int] = {}
        pairs: dict[tuple[int, int], Fact] = {}
        for fact in facts.facts:
            key = self.keys.setdefault(fact.key, len(self.keys))
            value = self.values.setdefault(fact.value, len(self.values))
            self.fed.append(Experience(fact.number, key, value, True, None))
            self.newest[key] = value
            # Taken out first, so that the pairs stay in the order of their newest sentence.
            pairs.pop((key, value), None)
            pairs[key, value] = fact
        self.pairs = pairs
        self._by_key: dict[int, list[Fact]] = {}
        self._by_meaning: dict[str, list[tuple[int, int]]] = {}
        for (key, value), fact in pairs.items():
            self._by_key.setdefault(key, []).append(fact)
            self._by_meaning.setdefault(normalized(fact.value), []).append((key, value))
        self._in_order = tuple(pairs.items())
        self._index: bm25s.BM25 | None = None
        self._ranked: dict[int, tuple[tuple[tuple[int, int], Fact], ...]] = {}

    def on_key(self, key: str) -> list[Fact]:
        """Return every value of a key, from old to new."""
        number = self.keys.get(key)
        return [] if number is None else self._by_key[number]

    def superseded(self, fact: Fact) -> bool:
        return self.newest[self.keys[fact.key]] != self.values[fact.value]

    def meaning(self, golds: Sequence[str]) -> list[tuple[int, int]]:
        """Return the (key, value) pairs whose value is one of the golds, but for case, articles and punctuation."""
        return [pair for gold in golds for pair in self._by_meaning.get(normalized(gold), ())]

    def closest(self, question: Question) -> tuple[tuple[tuple[int, int], Fact], ...]:
        """Return what shares a word with a question, the lexically closest first, among equals the newer."""
        ranked = self._ranked.get(question.number)
        if ranked is None:
            [words] = _words([question.text])
            scores = np.zeros(len(self._in_order))
            if words:
                scores = np.asarray(self._lexical().get_scores(words), np.float64)
            order = np.lexsort((-np.arange(len(scores)), -scores))
            ranked = tuple(self._in_order[i] for i in order.tolist() if scores[i] > 0)
            self._ranked[question.number] = ranked
        return ranked

    def _lexical(self) -> bm25s.BM25:
        if self._index is None:
            self._index = bm25s.BM25()
            self._index.index(_words([fact.sentence for _, fact in self._in_order]), show_progress=False)
        return self._index


class _Memory:
    """A method that was fed, and what a question brings back from it."""

    def __init__(self, stated: _Statements, method: Method) -> None:
        self._stated = stated
        self._method = method
        self._active: dict[int, tuple[int, ...]] = {}
        self._retrieved: dict[int, tuple[tuple[Fact, ...], Fact | None]] = {}

    def __len__(self) -> int:
        return len(self._method)

    def active(self, key: int) -> tuple[int, ...]:
        """Return the active values of a key, from old to new."""
        if key not in self._active:
            self._active[key] = self._method.active(key)
        return self._active[key]

    def retrieve(self, question: Question, top_k: int) -> tuple[tuple[Fact, ...], Fact | None]:
        """Return the facts that a question brings back, from old to new, and the lexically closest of them."""
        if question.number not in self._retrieved:
            self._retrieved[question.number] = self._retrieve(question, top_k)
        return self._retrieved[question.number]

    def _retrieve(self, question: Question, top_k: int) -> tuple[tuple[Fact, ...], Fact | None]:
        if question.key is not None:
            key = self._stated.keys.get(question.key)
            values = () if key is None else self.active(key)
            return tuple(self._stated.pairs[key, value] for value in values if key is not None), None
        found: list[Fact] = []
        if len(self):
            for (key, value), fact in self._stated.closest(question):
                if value in self.active(key):
                    found.append(fact)
                    if len(found) == top_k:
                        break
        return tuple(sorted(found, key=lambda fact: fact.number)), found[0] if found else None

    def attribute(self, question: Question) -> str:
        """Say why a question was not answered."""
        pairs = self._stated.meaning(question.golds)
        if not pairs:
            return NEVER_STATED
        return CHAIN_NOT_FOUND if any(value in self.active(key) for key, value in pairs) else STATE_WRONG


def _fed(stated: _Statements, method_id: str, thresholds: Thresholds) -> Method:
    method = METHODS[method_id].make(
        Setting(tuple(stated.keys), len(stated.values), True, thresholds_of(method_id, thresholds))
    )
    for experience in stated.fed:
        method.learn(experience)
    return method


def _evidence(facts: FactFile, methods: Sequence[str]) -> pd.DataFrame:
    columns = ["method", "seed", "seq", "t", "key", "value", "supports", "text", "source_ref"]
    rows = [
        (method, 0, seq, seq, fact.key, fact.value, True, fact.sentence, f"fact {fact.number}")
        for method in methods
        if METHODS[method].lifecycle
        for seq, fact in enumerate(facts.facts)
    ]
    return pd.DataFrame(rows, columns=columns)


def _questions(facts: FactFile, orders: Sequence[npt.NDArray[np.int64]]) -> pd.DataFrame:
    rows = []
    for seed, order in enumerate(orders):
        for t, number in enumerate(order.tolist()):
            question = facts.questions[number]
            rows.append((seed, t, number, question.text, SEPARATOR.join(question.golds)))
    return pd.DataFrame(rows, columns=["seed", "t", "question", "text", "gold"])


def _words(texts: list[str]) -> list[list[str]]:
    """Split texts into lower-case words, without those that every sentence shares ("of", "the")."""
    words: list[list[str]] = bm25s.tokenize(
        texts,
        stopwords="en",
        token_pattern=r"\w+",  # noqa: S106 - a pattern of words, no password
        return_ids=False,
        show_progress=False,
    )
    return words
