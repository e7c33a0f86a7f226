"""What the columns of a log mean: the boxes in which a person says it, prefilled with what their names say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from zoneinfo import available_timezones

import streamlit as st

from tepa_core.importers import (
    FIELDS,
    REQUIRED,
    ColumnMapping,
    ImportRefused,
    Table,
    asked_about,
    offered,
    suggest,
    unknown_outcomes,
)
from tepa_core.inert import one_line
from tepa_core.ui import labels
from tepa_core.ui.text import plain_text

#: Field -> its name for people, and what its column holds.
FIELD_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ts": ("Time", "When it was said or happened: ISO 8601, or epoch seconds or milliseconds."),
        "key": ("Key", "What the memory is about, such as seat. Values of one key exclude each other."),
        "value": ("Value", "What is said of the key, such as window."),
        "user": ("User", "Whose memory it is. Keys of different users never touch each other."),
        "outcome": ("Outcome", "Empty, 1, yes or success: supports the value. 0, no or failure: refutes it."),
        "text": ("Sentence", "The source sentence. It is shown, never interpreted."),
        "phase": ("Phase", "A name for the stretch of time, shaded in figures."),
        "actor": ("Who", "Who wrote the row: a person, an agent, a job."),
        "source_ref": ("Source", "Where it can be found: a message id, a ticket."),
        "ingested_at": ("Arrival", "When it reached the log, if that is not when it happened."),
        "changed_at": ("Changed", "When the row was last changed, where its time is when it was first written."),
        "ends_at": ("End", "When the value ceased to hold: evidence against it at that time."),
        "deleted": ("Deleted", "A yes says that the memory was deleted: the row refutes its value."),
        "event": ("Event", "What the row does: add or update states the value, delete refutes it."),
    }
)


#: What a word of the outcome column can mean, and how it is said.
MEANINGS: Mapping[str, tuple[str, bool | None]] = MappingProxyType(
    {
        "supports": ("supports", True),
        "refutes": ("refutes", False),
        "asserts": ("states it", None),
    }
)
_REJECT = "reject"


def choose_meaning(token: str, table: Table) -> ColumnMapping | None:
    """Draw a choice of column for each field, prefilled; None, with a sentence, while something is missing."""
    guess = suggest(table)
    chosen: dict[str, str] = {}
    required = st.columns(len(REQUIRED))
    for column, field in zip(required, REQUIRED, strict=True):
        with column:
            _column_box(field, token, table, guess, chosen)
    optional = [field for field in FIELDS if field not in REQUIRED]
    found = [FIELD_WORDS[field][0].lower() for field in optional if guess.column(field)]
    with st.expander(f"Optional columns; found: {', '.join(found) or 'none'}"):
        for start in range(0, len(optional), 3):
            for column, field in zip(st.columns(3), optional[start : start + 3], strict=False):
                with column:
                    _column_box(field, token, table, guess, chosen)
    template, zone, order = _key_and_time(token, lacks_time="ts" not in chosen)
    try:
        mapping = ColumnMapping.of(chosen, key_template=template or None, tz=zone, order=order)
        ignored = _left_out(token, table, mapping)
        outcomes = _outcome_words(token, table, mapping)
        mapping = ColumnMapping.of(
            chosen, key_template=template or None, tz=zone, order=order, ignored=ignored, outcomes=outcomes
        )
    except ImportRefused as refusal:
        st.error(plain_text(refusal, limit=500), icon=":material/block:")
        return None
    missing = [FIELD_WORDS[field][0] for field in mapping.missing(table.columns)]
    if missing:
        st.warning(
            f"Choose the column that holds: {', '.join(missing)}. Without it no row can be loaded.",
            icon=":material/help:",
        )
        return None
    return mapping


def _key_and_time(token: str, *, lacks_time: bool) -> tuple[str, str, str]:
    with st.expander("Key from several columns, time zone and order", expanded=lacks_time):
        template = st.text_input(
            "Key template",
            key=f"map_template_{token}",
            placeholder="{user}/{slot}",
            help="Makes the key from several columns: write their names in braces. It replaces the key column.",
        ).strip()
        zones = ["UTC", *sorted(available_timezones() - {"UTC"})]
        zone = st.selectbox("Time zone of times without an offset", zones, key=f"map_zone_{token}", help="IANA name.")
        by_file = st.checkbox(
            "No column holds a time: the order of the file stands for it",
            key=f"map_order_{token}",
            help="The rows count as a second apart, from 1970 on.",
        )
    return template, zone, "file" if by_file else "time"


def _left_out(token: str, table: Table, mapping: ColumnMapping) -> list[str]:
    """Ask about columns that seem to change what a row means and that nothing was said about."""
    asked = asked_about(mapping.unused(table.columns), user_known=mapping.column("user") is not None)
    if not asked:
        return []
    written = labels.of_names(asked)
    return st.multiselect(
        "Columns that seem to change what a row means, or whose memory it is: choose above what they hold, or leave "
        "them out on purpose here",
        list(asked),
        format_func=lambda name: written.get(name, one_line(name)),
        key=f"map_ignored_{token}",
    )


def _outcome_words(token: str, table: Table, mapping: ColumnMapping) -> dict[str, bool | None]:
    """Ask what the words of the outcome column mean that are not known by themselves."""
    words = unknown_outcomes(table, mapping)
    if not words:
        return {}
    usual = offered(words)
    with st.expander(f"Words of the outcome column that are not known: {len(words):,}", expanded=True):
        take = bool(usual) and st.checkbox(
            "Take their usual meanings: "
            + ", ".join(
                f"{plain_text(word, 20)} {'supports' if means else 'refutes'}" for word, means in usual.items()
            ),
            key=f"map_usual_{token}",
        )
        st.caption("Rows with a word that stays not known are rejected. “States it” counts as an empty cell does.")
        told: dict[str, bool | None] = {}
        for start in range(0, min(len(words), 24), 4):
            for column, word in zip(st.columns(4), words[start : start + 4], strict=False):
                prefilled = {True: "supports", False: "refutes"}[usual[word]] if take and word in usual else _REJECT
                with column:
                    meaning = st.selectbox(
                        f"“{plain_text(word, 30)}”",
                        [_REJECT, *MEANINGS],
                        index=[_REJECT, *MEANINGS].index(prefilled),
                        format_func=lambda name: MEANINGS[name][0] if name in MEANINGS else "not known",
                        key=f"map_word_{words.index(word)}_{take}_{token}",
                    )
                if meaning in MEANINGS:
                    told[word] = MEANINGS[meaning][1]
    return told


def _column_box(field: str, token: str, table: Table, guess: ColumnMapping, chosen: dict[str, str]) -> None:
    label, words = FIELD_WORDS[field]
    options = [None, *table.columns]
    written = labels.told_apart({name: "–" if name is None else one_line(name) for name in options})
    column = st.selectbox(
        f"{label} (required)" if field in REQUIRED else label,
        options,
        index=options.index(guess.column(field)),
        format_func=lambda name: written.get(name, "–"),
        key=f"map_{field}_{token}",
        help=words,
    )
    if column is not None:
        chosen[field] = column
