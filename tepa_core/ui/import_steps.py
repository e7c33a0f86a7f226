"""From a dropped file to a run: choose it, say what its columns mean, look at what would be loaded, load it."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import BinaryIO

import pandas as pd
import streamlit as st

from tepa_core.decisions import PermissionRefused
from tepa_core.figures.theme import STATE_STYLE
from tepa_core.importers import (
    FIELDS,
    IMPORTERS,
    REQUIRED,
    TEMPLATE_CSV,
    ColumnMapping,
    EvidenceLog,
    ImportRefused,
    Table,
    apply,
)
from tepa_core.lifecycle import PRESETS
from tepa_core.limits import Limits
from tepa_core.logs import ImportReport, first_records, import_log
from tepa_core.store import queries
from tepa_core.ui import badges, boundary, cache, state, who, widgets
from tepa_core.ui.import_meaning import FIELD_WORDS
from tepa_core.ui.text import plain_text

DATA = Path(__file__).resolve().parents[2] / "data"

#: Sample log -> its preset, the words on its button, what it shows.
SAMPLES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "travel_preferences.csv": (
            "default",
            "Travel preferences",
            "A year of 40 invented travellers: habits change, some return, and some revocations are wrong.",
        ),
        "heads_of_government.csv": (
            "direct_facts",
            "Heads of government",
            "Who led five governments, 1990 to 2024: each statement replaces the one before it.",
        ),
    }
)

FORMAT_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "csv": "CSV",
        "jsonl": "JSON Lines",
        "json": "a JSON array",
        "mcp": "an MCP memory graph",
        "parquet": "Parquet",
    }
)

PRESET_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "default": (
            "Habits and preferences (default)",
            f"A value is believed after {PRESETS['default'].theta_prop} statements and revoked when two of its last "
            f"{PRESETS['default'].n_rec} outcomes go against it: one remark proves little.",
        ),
        "direct_facts": (
            "Facts stated once (direct_facts)",
            "One statement makes a value active, and the next other one replaces it: who holds an office, where "
            "somebody lives.",
        ),
    }
)

#: Records that are checked before loading, and rows that are shown of them.
PREVIEWED = 100_000
_FIRST_ROWS = 8
_FIRST_ISSUES = 1_000

_CHOICE, _TABLE, _PREVIEW, _REPORT = "import_choice", "import_table", "import_preview", "import_report"
_UPLOAD = "import_upload"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to be imported.

    Attributes
    ----------
    token
        Tells this file from another one of the same name.
    name
        Its name for people; never part of a path.
    preset
        The preset that suits it.
    content
        The bytes of an upload; None for a sample, which lies in the folder ``data``.
    """

    token: str
    name: str
    preset: str
    content: BinaryIO | None

    @contextmanager
    def as_file(self) -> Iterator[Path]:
        """Give a path to read; an upload is written to a temporary file, which is removed afterwards."""
        if self.content is None:
            yield DATA / self.name
            return
        ending = Path(self.name).suffix.lower()
        known = {extension for importer in IMPORTERS.values() for extension in importer.extensions}
        with TemporaryDirectory(prefix="tepa-import-") as folder:
            path = Path(folder) / f"upload{ending if ending in known else ''}"
            self.content.seek(0)
            with path.open("wb") as file:
                shutil.copyfileobj(self.content, file)
            yield path


def choose_file() -> Source | None:
    """Draw the upload, the samples and the template; return the file that was chosen last."""
    left, right = st.columns([3, 2], gap="medium")
    uploaded = left.file_uploader(
        "Your evidence log: CSV, JSON Lines, JSON or Parquet",
        key=_UPLOAD,
        on_change=_choose,
        args=("upload",),
        help="CSV with comma, semicolon or tab; one JSON object per line, or an array of them; Parquet. The format is "
        "found by the content. The file stays on this machine.",
    )
    with right:
        st.markdown("Or load a sample with one click:")
        for name, (preset, label, words) in SAMPLES.items():
            if (DATA / name).exists() and st.button(
                label, key=f"sample_{name}", icon=":material/science:", help=words, on_click=_choose, args=(name,)
            ):
                load(Source(name, name, preset, None), None, preset, None)
        st.download_button(
            "Template (CSV)",
            TEMPLATE_CSV,
            file_name="evidence_template.csv",
            mime="text/csv",
            key="import_template",
            icon=":material/download:",
            help="A small file with every column, to fill in.",
            on_click="ignore",
            type="tertiary",
        )
    choice = st.session_state.get(_CHOICE, "upload")
    if choice in SAMPLES:
        return Source(choice, choice, SAMPLES[choice][0], None)
    return None if uploaded is None else Source(uploaded.file_id, uploaded.name, "default", uploaded)


@boundary.callback
def _choose(choice: str) -> None:
    st.session_state[_CHOICE] = choice


def read(source: Source) -> Table | None:
    """Read the file into a table of text and say what it is; None, with the reason, when it is refused."""
    held = st.session_state.get(_TABLE)
    if held is None or held[0] != source.token:
        st.session_state.pop(_TABLE, None)
        st.session_state.pop(_PREVIEW, None)
        with source.as_file() as path:
            words = f"Reading {plain_text(source.name)}"
            bar = st.progress(0.0, words)
            try:
                # Drawing the bar again is also where the reading ends when its visitor goes elsewhere.
                begin = first_records(path, PREVIEWED, lambda: bar.progress(0.0, words))
            except ImportRefused as refusal:
                _refuse(refusal, source, path)
                return None
            finally:
                bar.empty()
        # Each visitor's session holds what the preview needs and no more; at loading the file is read again.
        held = (source.token, begin.table, begin.records)
        st.session_state[_TABLE] = held
    table: Table = held[1]
    records: int = held[2]
    known = FORMAT_WORDS.get(table.format, table.format)
    st.markdown(
        f"**{plain_text(source.name)}** is read as **{known}**: {counted(records, 'record')}, "
        f"{counted(len(table.columns), 'column')}."
    )
    if table.inside is not None:
        st.caption(f"The records are the array “{plain_text(table.inside)}” inside the file’s object.")
    return table


def preview(source: Source, table: Table, mapping: ColumnMapping) -> EvidenceLog | None:
    """Show what would be loaded, before anything is; None, with the reason, when nothing can be."""
    held = st.session_state.get(_PREVIEW)
    if held is None or held[0] != (source.token, mapping):
        with st.spinner("Checking every record"):
            try:
                found = apply(table, mapping, Limits.from_environment())
            except ImportRefused as refusal:
                st.error(plain_text(refusal, limit=500), icon=":material/block:")
                return None
        held = (
            (source.token, mapping),
            dataclasses.replace(
                found, evidence=found.evidence.head(_FIRST_ROWS).copy(), issues=found.issues.head(_FIRST_ISSUES).copy()
            ),
        )
        st.session_state[_PREVIEW] = held
    log: EvidenceLog = held[1]
    st.markdown(f"#### {counted(log.read, 'record')} read · {log.loaded:,} can be loaded · {log.rejected:,} rejected")
    records: int = st.session_state[_TABLE][2]
    if log.read < records:
        st.caption(f"This is what the first {log.read:,} of {records:,} records come to; all are read when you load.")
    _say_columns(log.mapping, log.unused)
    say_badges(log.badges)
    if log.loaded:
        head = log.evidence
        people = pd.DataFrame(
            {
                "time (UTC)": head["event_time"],
                "user": head["subject"],
                "key": head["key"],
                "value": head["value"],
                "says": head["supports"].map({True: "supports it", False: "refutes it"}),
                "sentence": head["text"],
                "who": head["actor"],
                "source": head["source_ref"],
            }
        )
        st.caption("The first rows, as evidence")
        people = people.loc[:, [name for name in people.columns if (people[name].notna() & (people[name] != "")).any()]]
        st.dataframe(people, key="import_first_rows", hide_index=True, alt="The first rows of the file, as evidence")
    rejected(log.issues, log.rejected, "import_rejected_preview")
    if log.loaded == 0:
        st.error(
            "No record can be loaded this way. The reasons stand above: choose other columns, or correct the file.",
            icon=":material/block:",
        )
        return None
    return log


def load_label(log: EvidenceLog) -> str:
    """Say on the button what it does."""
    whole = log.read >= st.session_state[_TABLE][2]
    return f"Load {counted(log.loaded, 'record')}" if whole else "Load the whole file"


def _say_columns(mapping: ColumnMapping, unused: Sequence[str]) -> None:
    """Say what each column was taken for, and which mean nothing here."""
    taken = ", ".join(
        f"{FIELD_WORDS[field][0].lower()} = {plain_text(column, 40)}" for field, column in mapping.columns
    )
    template = f"; key = {plain_text(mapping.key_template)}" if mapping.key_template else ""
    left = ", ".join(plain_text(column, 40) for column in unused[:40]) or "none"
    st.caption(f"Columns taken: {taken}{template}. Not used: {left}.")


def say_badges(counts: Mapping[str, int]) -> None:
    """Say in words what a reader should know about the rows."""
    for badge, count in counts.items():
        st.markdown(f":material/info: {badges.in_words(badge, count)}")


def rejected(issues: pd.DataFrame, count: int, key: str, run_id: str | None = None) -> None:
    """List the first of `count` rejected rows with their reasons; all of them are downloaded once they are stored."""
    if not count:
        return
    with st.expander(f"{count:,} rejected, with the reason of each", expanded=True):
        if len(issues) < count:
            st.caption(f"The first {len(issues):,} are listed.")
        st.dataframe(issues, key=key, hide_index=True, width="stretch")
        whole: pd.DataFrame | Callable[[], pd.DataFrame] = issues
        if run_id is not None:
            whole = functools.partial(queries.issues, cache.store(), run_id)
        widgets.download(whole, key, "Download the rejected rows (CSV)")


def choose_preset(source: Source) -> str:
    """Draw the choice of thresholds, explained."""
    names = list(PRESET_WORDS)
    preset: str = st.radio(
        "What kind of log is it?",
        names,
        index=names.index(source.preset),
        format_func=lambda name: PRESET_WORDS[name][0],
        captions=[PRESET_WORDS[name][1] for name in names],
        key=f"preset_{source.token}",
    )
    return preset


def load(source: Source, mapping: ColumnMapping | None, preset: str, name: str | None) -> None:
    """Import the file, make it the current run, and run the page again with the report; or say why not."""
    known = set(cache.runs()["run_id"])
    bar = st.progress(0.0, f"Reading {plain_text(source.name)}")
    with source.as_file() as path:
        try:
            report = import_log(
                who.writing(),
                path,
                mapping=mapping,
                preset=preset,
                name=name,
                source=source.name,
                guess=mapping is None,
                progress=widgets.progress_into(bar),
            )
        except PermissionRefused as error:
            bar.empty()
            st.error(plain_text(error, limit=400), icon=":material/block:")
            return
        except ImportRefused as refusal:
            bar.empty()
            _refuse(refusal, source, path)
            return
    cache.forget()
    shown = dataclasses.replace(report, issues=report.issues.head(_FIRST_ISSUES).copy())
    st.session_state[_REPORT] = (shown, report.run_id in known)
    state.follow("run", report.run_id)
    st.rerun()


def show_report() -> None:
    """Show what the last import did, as long as its run is the current one."""
    held = st.session_state.get(_REPORT)
    if held is None or held[0].run_id != state.chosen_run():
        return
    report: ImportReport = held[0]
    info = state.current_run()
    with st.container(border=True, key="import_report_card"):
        again = (
            f" {plain_text(report.kinship, limit=600)}"
            if report.kinship
            else " It was here already, with the same columns and thresholds: it was replaced, not added."
            if held[1]
            else ""
        )
        st.markdown(
            f"#### {plain_text(info.name)}: read {report.read:,} · loaded {report.loaded:,} · "
            f"rejected {report.rejected:,}"
        )
        st.markdown(f"It is now the run that every page shows.{again}")
        memories = counted(report.precedents, "memory", "memories")
        states = ", ".join(f"{count:,} {STATE_STYLE[name].label.lower()}" for name, count in report.states.items())
        st.markdown(f"It makes **{memories}**: {states}. ({report.elapsed:.1f} s)")
        _say_columns(report.mapping, report.unused)
        say_badges(report.badges)
        rejected(report.issues, report.rejected, "import_rejected", report.run_id)
        run = {"run": report.run_id}
        with st.container(horizontal=True):
            st.page_link("pages/explore/lifecycle.py", label="Lifecycle", icon=":material/timeline:", query_params=run)
            st.page_link("pages/audit/archive.py", label="Archive", icon=":material/inventory_2:", query_params=run)
            st.page_link("pages/explore/overview.py", label="Overview", icon=":material/monitoring:", query_params=run)


def column_guide() -> None:
    """Explain the columns of an evidence log."""
    rows = [
        (FIELD_WORDS[field][0], field, "yes" if field in REQUIRED else "", FIELD_WORDS[field][1]) for field in FIELDS
    ]
    st.markdown(
        "One row for each time somebody said, confirmed or refuted something. A column that has the name given here, "
        "or a usual other one, is found by itself."
    )
    st.dataframe(
        pd.DataFrame(rows, columns=["field", "column name", "required", "what it holds"]),
        key="import_guide",
        hide_index=True,
        alt="The columns of an evidence log",
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: "1 record", "2 memories"."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _refuse(refusal: ImportRefused, source: Source, path: Path) -> None:
    """Show a refusal under the name that the person knows."""
    words = str(refusal).replace(str(path), source.name).replace(path.name, source.name)
    st.error(f"{plain_text(words, limit=600)} Nothing was written.", icon=":material/block:")
