"""The form that runs a fact file: one that is dropped, or a sample by one click."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, BinaryIO

import streamlit as st

from tepa_core.decisions import PermissionRefused
from tepa_core.experiment import FACT_METHODS, AnswerError, ChatBackend
from tepa_core.experiment.answer_backends import BASE_URL_VARIABLE, KEY_VARIABLE, MODEL_VARIABLE
from tepa_core.experiment.facts import DETERMINISTIC
from tepa_core.fact_runs import FactFileError, planned, read_facts, run_facts_and_keep
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.ui import cache, spec_form, state, who
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import progress_into

DATA = Path(__file__).resolve().parents[2] / "data"

#: Sample file -> the words on its button, what it asks.
SAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "facts_small.json": (
            "20 questions about one fact each",
            "62 invented facts, 20 of which replace an earlier one. Who only keeps the newest does well here.",
        ),
        "facts_small_multihop.json": (
            "10 questions through several facts",
            "The same facts, asked so that one answer leads to the next. The deterministic reader cannot do that; the "
            "run shows whether the memory still holds the answer.",
        ),
    }
)

ANSWERER_WORDS: Mapping[str, str] = MappingProxyType(
    {DETERMINISTIC: "the deterministic reader", "chat": "a language model"}
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the form asks for.

    Attributes
    ----------
    label
        Name of the file for people; never part of a path.
    content
        The bytes of an upload; None for a sample, which lies in the folder ``data``.
    name
        Of the run; empty to be made from the file.
    methods, thresholds, orders, answerer
        As `tepa_core.fact_runs.planned` takes them; ``thresholds`` by their names.
    """

    label: str
    content: BinaryIO | None
    name: str
    methods: Sequence[str]
    thresholds: Mapping[str, Any]
    orders: int
    answerer: str

    @contextmanager
    def as_file(self) -> Iterator[Path]:
        """Give a path to read; an upload is written to a temporary file, which is removed afterwards."""
        if self.content is None:
            yield DATA / self.label
            return
        with TemporaryDirectory(prefix="tepa-facts-") as folder:
            path = Path(folder) / "upload.json"
            self.content.seek(0)
            with path.open("wb") as file:
                shutil.copyfileobj(self.content, file)
            yield path


def draw() -> Wanted | None:
    """Draw the form; return what it asks for once one of its buttons is pressed with a file at hand, else None."""
    st.markdown(
        "A file of numbered facts, where a later one replaces an earlier one on the same thing, and questions about "
        "them. Every memory reads the facts; then the questions show which of them still knows what holds."
    )
    with st.form("fact_form"):
        left, right = st.columns([3, 2], gap="medium")
        uploaded = left.file_uploader(
            "Your fact file: FactConsolidation, as JSON or JSON Lines",
            key="fact_upload",
            help="An object with context (the numbered facts as one text), questions and answers. Of a list the first "
            "object is taken. The file stays on this machine.",
        )
        send = left.form_submit_button("Run this file", type="primary", icon=":material/play_circle:", key="run_facts")
        right.markdown("Or run a sample with one click:")
        sample = None
        for name, (label, words) in SAMPLES.items():
            if (DATA / name).exists() and right.form_submit_button(
                label, key=f"run_{name}", icon=":material/science:", help=words
            ):
                sample = name
        title = spec_form.run_name("made from the name of the file")
        methods = spec_form.choose_methods(list(FACT_METHODS), "fact_methods")
        one, two = st.columns(2)
        orders = one.number_input(
            "Orders of the questions",
            value=3,
            step=1,
            key="fact_orders",
            persist_state="session",
            help="All questions are asked in each order, for intervals. They change no memory.",
        )
        answerer = _answerer(two)
        with st.expander("Thresholds of the lifecycle"):
            st.markdown(
                "To begin with as for facts stated once: one statement holds, and the next other one replaces it."
            )
            thresholds = spec_form.fields(PRESETS["direct_facts"], "fact_threshold")
    if not send and sample is None:
        return None
    settings = (title, methods, thresholds, int(orders), answerer)
    if sample is not None:
        return Wanted(sample, None, *settings)
    if uploaded is None:
        st.error("There is no file to run yet: drop one above, or run a sample.")
        return None
    return Wanted(uploaded.name, uploaded, *settings)


def _answerer(column: st.delta_generator.DeltaGenerator) -> str:
    """Draw who answers; a language model can be chosen only where the environment names one."""
    try:
        model, missing = ChatBackend.from_environment().model, ""
    except AnswerError as error:
        model, missing = "", str(error)
    with column:
        answerer: str | None = st.radio(
            "Who answers",
            list(ANSWERER_WORDS) if model else [DETERMINISTIC],
            format_func=lambda name: (
                f"the model {plain_text(model)}" if name == "chat" else ANSWERER_WORDS.get(name, name)
            ),
            key="fact_answerer",
            persist_state="session",
            help="The deterministic reader answers with the retrieved value, and throws a coin among several. It "
            "cannot chain several facts, as a language model may.",
        )
        if missing:
            st.caption(
                f"For answers of a language model, start the dashboard with {BASE_URL_VARIABLE} (a server that speaks "
                f"the OpenAI chat API), {MODEL_VARIABLE} and, where the server asks for one, {KEY_VARIABLE} set."
                if "not set" in missing
                else plain_text(missing, limit=300)
            )
    return answerer or DETERMINISTIC


def start(wanted: Wanted) -> None:
    """Run a file and store the run, or open the run if it exists already; then show the page anew with it."""
    try:
        with wanted.as_file() as path:
            words = f"Reading {plain_text(wanted.label)}"
            reading = st.progress(0.0, words)
            try:
                file = read_facts(path, wanted.label, lambda: reading.progress(0.0, words))
            finally:
                reading.empty()
        spec = planned(
            file,
            methods=wanted.methods,
            thresholds=Thresholds(**wanted.thresholds),
            orders=wanted.orders,
            answerer=wanted.answerer,
        )
    except FactFileError as error:
        st.error(f"This file cannot be run: {plain_text(error, limit=600)}")
        return
    except (AnswerError, ValueError) as error:
        st.error(f"This run cannot start: {plain_text(error, limit=600)}. Correct it above.")
        return
    if not spec_form.exists(spec.run_id):
        what = f"{len(file.questions):,} questions about {len(file.facts):,} facts"
        with st.status(f"Asking {what}", expanded=True) as status:
            bar = st.progress(0.0, "Reading the facts")
            try:
                report = run_facts_and_keep(who.writing(), file, spec, wanted.name.strip() or None, progress_into(bar))
            except PermissionRefused as error:
                status.update(label="The run was not stored", state="error")
                st.error(plain_text(error, limit=400), icon=":material/block:")
                return
            except AnswerError as error:
                status.update(label="The run stopped; nothing of it was stored", state="error")
                st.error(f"{plain_text(error, limit=600)} Answers given so far are kept and are not asked again.")
                return
        cache.forget()
        unread = f", {report.unparsed:,} statements were not understood" if report.unparsed else ""
        asked = f", {report.calls:,} answers asked, {report.cache_hits:,} kept from before" if report.calls else ""
        spec_form.tell(f"The run is stored, after {report.elapsed:.1f} seconds{unread}{asked}. It is chosen now.")
    state.follow("run", spec.run_id)
    st.rerun()
