"""From a fact file to a stored run: read, fed to every method, asked, kept."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from tepa_core.experiment import AnswerError, ChatBackend, FactSpec, Progress, run_facts
from tepa_core.experiment.facts import DETERMINISTIC
from tepa_core.isolated import ReadingFailed, Waiting, measured
from tepa_core.lifecycle import Thresholds
from tepa_core.limits import LimitExceeded, Limits
from tepa_core.store import Store, StoredAnswers, queries, save_facts
from tepa_core.streams import FactFile, FactFileError, read_fact_file

#: Who answers: the deterministic reader, or a language model that the environment names.
ANSWERERS: Final = (DETERMINISTIC, "chat")

__all__ = [
    "ANSWERERS",
    "AnswerError",
    "FactFileError",
    "FactReport",
    "planned",
    "read_facts",
    "run_fact_file",
    "run_facts_and_keep",
]


@dataclass(frozen=True, slots=True)
class FactReport:
    """What a fact run did.

    Attributes
    ----------
    run_id
        The stored run.
    spec
        What was run.
    facts, unparsed, questions
        Statements read, statements that no template reads, and questions.
    attribution
        Of questions through several relations: ``method``, ``attribution``, ``n`` (answers, over all orders).
    calls, cache_hits
        Answers asked of a language model, and found among those kept.
    elapsed
        Seconds.
    """

    run_id: str
    spec: FactSpec
    facts: int
    unparsed: int
    questions: int
    attribution: pd.DataFrame
    calls: int
    cache_hits: int
    elapsed: float


def planned(
    file: FactFile,
    *,
    methods: Sequence[str] | None = None,
    thresholds: Thresholds | None = None,
    orders: int = 3,
    answerer: str = DETERMINISTIC,
) -> FactSpec:
    """Check what a person asked for and return the spec of the run.

    Parameters
    ----------
    methods
        Ids of methods; all that need no trials when left out.
    thresholds
        Of the precedents; the ``direct_facts`` preset when left out.
    orders
        How many orders the questions are asked in.
    answerer
        One of `ANSWERERS`.

    Raises
    ------
    AnswerError
        If the language model is not configured.
    ValueError
        If a setting is unknown or out of range.
    """
    if answerer not in ANSWERERS:
        raise ValueError(f"the answerer must be {' or '.join(ANSWERERS)}, not {answerer!r}")
    backend = DETERMINISTIC if answerer == DETERMINISTIC else ChatBackend.from_environment().id
    return FactSpec.build(file, methods=methods, thresholds=thresholds, orders=orders, backend=backend)


def run_facts_and_keep(
    store: Store, file: FactFile, spec: FactSpec, name: str | None = None, progress: Progress | None = None
) -> FactReport:
    """Run what `planned` returned and keep the run.

    Raises
    ------
    AnswerError
        If the language model is not configured or does not answer; nothing is stored but the answers it gave.
    """
    with contextlib.ExitStack() as open_things:
        backend = None
        if spec.backend != DETERMINISTIC:
            backend = open_things.enter_context(ChatBackend.from_environment(cache=StoredAnswers(store)))
        result = run_facts(file, spec, backend, progress)
    run_id = save_facts(store, result, len(file.facts), name)
    return FactReport(
        run_id,
        spec,
        len(file.facts),
        len(file.unparsed),
        len(file.questions),
        queries.attributions(store, run_id),
        result.usage.calls,
        result.usage.cache_hits,
        result.elapsed,
    )


def read_facts(path: Path, label: str | None = None, waiting: Waiting | None = None) -> FactFile:
    """Read a fact file in a child process that may take only so much memory and time.

    Parameters
    ----------
    path, label
        As for `read_fact_file`.
    waiting
        Called again and again in the meantime; what it raises ends the reading.

    Raises
    ------
    FactFileError
        If it cannot be read, or takes more than the limits allow.
    """
    limits = Limits.from_environment()
    try:
        limits.check_text(path)
        return measured(limits, partial(read_fact_file, path, label=label), waiting)[0]
    except (ReadingFailed, LimitExceeded) as error:
        raise FactFileError(str(error)) from None
    except OSError as error:
        raise FactFileError(f"{path} cannot be read: {error.strerror or 'it cannot be opened'}.") from None


def run_fact_file(
    store: Store,
    path: Path,
    *,
    methods: Sequence[str] | None = None,
    thresholds: Thresholds | None = None,
    orders: int = 3,
    answerer: str = DETERMINISTIC,
    name: str | None = None,
    progress: Progress | None = None,
) -> FactReport:
    """Read a fact file, run it and keep the run.

    Parameters
    ----------
    methods, thresholds, orders, answerer
        As for `planned`.

    Raises
    ------
    FactFileError
        If the file cannot be read; the message says what is expected.
    AnswerError
        If the language model is not configured or does not answer.
    ValueError
        If a setting is unknown or out of range.
    """
    file = read_facts(path)
    spec = planned(file, methods=methods, thresholds=thresholds, orders=orders, answerer=answerer)
    return run_facts_and_keep(store, file, spec, name, progress)
