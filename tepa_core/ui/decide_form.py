"""Deciding on the open memory: the verbs, the form, and what happens when it is saved."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from tepa_core import __version__
from tepa_core.decisions import (
    DEFAULT_CATEGORY,
    Action,
    Category,
    Decision,
    DecisionRefused,
    StaleVersion,
    in_effect,
    microseconds,
)
from tepa_core.figures.theme import method_label
from tepa_core.store import KeyLife, RunInfo, UnknownPrecedentError, in_words_at
from tepa_core.store.decide import MAX_REASON, DecisionRequest, record
from tepa_core.store.queries import BATCH_SIZE
from tepa_core.ui import boundary, cache, preview, state, who
from tepa_core.ui.archive_rows import DONE, Archive, fall_of
from tepa_core.ui.archive_table import JUST_DECIDED
from tepa_core.ui.text import plain_text

#: What a verb does, its icon, its key and, in a sentence, what follows. Streamlit keeps R and C for itself.
VERBS: Mapping[Action, tuple[str, str, str, str]] = MappingProxyType(
    {
        Action.REACTIVATE: (
            "Reactivate",
            "replay",
            "A",
            "It becomes active again, in the place of any other active value of its key.",
        ),
        Action.CONFIRM: (
            "Confirm",
            "inventory_2",
            "K",
            "The revocation was right: it is kept in the archive. Fresh evidence asks for another look instead of "
            "bringing it back silently.",
        ),
        Action.BOTH_VALID: (
            "Both valid",
            "call_split",
            "B",
            "Its key holds several values: it becomes active beside the others, and from then on a support of one is "
            "no conflict for another.",
        ),
        Action.UNDO: (
            "Undo",
            "undo",
            "U",
            "The decision that stands on it is taken back, and everything is as it was before it. Both rows stay in "
            "the ledger.",
        ),
    }
)
CATEGORIES: Mapping[Category, str] = MappingProxyType(
    {
        Category.WRONG_REVOCATION: "Wrong: it held when it was revoked",
        Category.OBSOLETE: "Obsolete: it was right once, and the revocation was right",
        Category.KEY_ERROR: "Wrong key: the evidence is about something else",
        Category.DUPLICATE: "Duplicate: two spellings of one value",
        Category.POLICY: "Policy: a rule of the house, whatever the evidence says",
        Category.OTHER: "Other",
    }
)
#: From when on a decision applies.
WHEN_FELL, WHEN_NOW, WHEN_AS_OF = "fall", "now", "as_of"

_NOTICE = "decide_notice"
_REQUEST = "decide_request"
#: The words of a refused decision, which outlive the form.
_TYPED = "decide_words"


@dataclass(frozen=True, slots=True)
class Draft:
    """A decision as it stands in the form.

    Attributes
    ----------
    where
        The open memory's key, user or lane, and run, in Markdown.
    members
        (id, version, effect) of each memory it is about, the open one first; the versions are those of this drawing,
        and the effect goes into the ledger.
    at
        When it takes effect, in the stored clock; None: the store's own default.
    request_id
        Made when the form was opened, so that a double click is one decision.
    """

    run_id: str
    value: str
    where: str
    action: Action
    pinned: bool
    members: tuple[tuple[str, str, Mapping[str, Any]], ...]
    at: int | None
    request_id: str


def tell() -> None:
    """Say once what became of the last decision."""
    notice = st.session_state.pop(_NOTICE, None)
    if notice is None:
        return
    kind, words, again = notice
    box, icon = (st.success, "check_circle") if kind == "saved" else (st.error, "block")
    box(words, icon=f":material/{icon}:")
    if again:
        st.button("Look again", key="look_again", icon=":material/visibility:", on_click=_open_verb, args=(again,))


def show(info: RunInfo, archive: Archive, row: Mapping[Hashable, Any], life: KeyLife, version: str) -> None:
    """Draw what was decided on the open memory, the verbs, and the form of the chosen one.

    Parameters
    ----------
    row
        Of the open memory, from the archive's rows.
    life
        Of its key.
    version
        Of the memory, read before ``life`` was.
    """
    precedent = str(row["id"])
    own = [one for one in cache.decisions(info.run_id) if one.precedent_id == precedent]
    standing = [one for one in in_effect(own)]
    for decision in own:
        st.markdown(told(decision, own, info))
    reason = _why_not(info)
    if reason:
        st.info(reason, icon=":material/lock:")
        return
    if not who.may_decide():
        st.info("You are signed in as a viewer: you may look, and reviewers decide.", icon=":material/visibility:")
        return
    allowed = [action for action in VERBS if action is not Action.UNDO or standing]
    with st.container(horizontal=True, vertical_alignment="center", key="verbs"):
        for action in allowed:
            label, icon, key, help_ = VERBS[action]
            st.button(
                label,
                key=f"verb_{action}",
                icon=f":material/{icon}:",
                shortcut=key,
                help=help_,
                on_click=_open_verb,
                args=(action,),
                type="primary" if _chosen(allowed) is action else "secondary",
            )
        if st.button("Keys", key="keys_help", icon=":material/keyboard:", shortcut="H", type="tertiary"):
            _keys()
    chosen = _chosen(allowed)
    state.write("verb", chosen or "")
    if chosen is not None:
        with st.container(border=True, key="decide"):
            _form(info, archive, row, life, chosen, version, standing)


def told(decision: Decision, decisions: Sequence[Decision], info: RunInfo) -> str:
    """Tell one row of the ledger in Markdown: who did what, when and why, and whether it still stands."""
    undone = next((one for one in decisions if one.undoes == decision.decision_id), None)
    what = DONE[decision.action]
    if decision.pinned:
        what += ", pinned"
    said = plain_text(decision.reason, 300) if decision.reason is not None else "*reason redacted*"
    by = plain_text(decision.reviewer)
    if decision.claim is not None:
        by += f" ({plain_text(decision.claim.in_words(), 300)})"
    elif not decision.authenticated:
        by += " (not authenticated)"
    words = (
        f":material/gavel: **{what.capitalize()}** by {by} on "
        f"{_when(decision)}, number {decision.number}: {CATEGORIES[decision.category].split(':')[0].lower()}, “{said}”."
    )
    if decision.action is not Action.UNDO:
        words += f" Takes effect {in_words_at(clock(decision.effective_at, info), info.is_log)}."
    return f"{words} *Undone by number {undone.number}.*" if undone else words


def clock(at: int, info: RunInfo) -> int | pd.Timestamp:
    """Write a stored moment in the run's clock."""
    return pd.Timestamp(at, unit="us", tz="UTC") if info.is_log else at


def _when(decision: Decision) -> str:
    return f"{decision.decided_at.day} {decision.decided_at:%B %Y, %H:%M} UTC"


def _why_not(info: RunInfo) -> str:
    """Say why nobody can decide in this run; empty where somebody can."""
    if info.stream == "facts":
        return (
            "Nobody can decide in a fact run: it states each fact once and is not played on. Decide in a log or in a "
            "run of a drift stream."
        )
    if not info.is_log and info.program != __version__:
        return (
            f"Version {plain_text(info.program)} of this program played this run, and version {__version__} cannot "
            "replay it with a decision. Start it again on Run, then decide."
        )
    return ""


def _chosen(allowed: Sequence[Action]) -> Action | None:
    said = state.news("verb")
    if said is not None:
        state.choose("verb", said)
    held = state.held("verb", "")
    return next((action for action in allowed if action == held), None)


@boundary.callback
def _open_verb(action: Action) -> None:
    """Open the form of a verb; a callback."""
    _close()
    state.choose("verb", str(action))


@boundary.callback
def _close() -> None:
    state.choose("verb", "")
    st.session_state.pop(_REQUEST, None)


@st.dialog("Keys")
def _keys() -> None:
    rows = [("N, P", "open the next, the previous memory")]
    rows += [(key, label) for label, _, key, _ in VERBS.values()]
    rows += [("Ctrl + Enter", "save the open form"), ("Esc", "close it without saving"), ("H", "show this list")]
    st.table(pd.DataFrame(rows, columns=["key", "what it does"]), hide_index=True, border="horizontal")
    st.caption("They work while no text field has the focus. R and C belong to Streamlit: rerun, and clear its cache.")


def _form(
    info: RunInfo,
    archive: Archive,
    row: Mapping[Hashable, Any],
    life: KeyLife,
    action: Action,
    version: str,
    standing: Sequence[Decision],
) -> None:
    precedent, value = str(row["id"]), plain_text(row["value"]) or "(empty text)"
    label, _, _, explained = VERBS[action]
    where = place_of(info, row)
    st.markdown(f"**{label}: {value}.** {explained}")
    st.caption(f"It is about {where}.")
    pinned, at, found = False, None, None
    if action is not Action.UNDO:
        left, right = st.columns(2)
        when = _when_box(left, info, archive, row, life)
        at = _stored_moment(info, archive, life, precedent, when)
        if action is Action.REACTIVATE:
            pinned = (
                right.segmented_control(
                    "How long",
                    [0, 1],
                    format_func=lambda pin: "Pinned until another decision" if pin else "Until contradicted",
                    key=state.remember("pin", [0, 1], 0),
                    required=True,
                    help="Until contradicted: evidence may revoke it again. Pinned: no evidence does, and no other "
                    "value of its key becomes active.",
                )
                == 1
            )
            state.write("pin", int(pinned))
        every = False
        if not info.is_log and info.counts["seeds"] > 1:
            every = st.toggle(
                "Preview in every seed, at the matching revocation",
                key=state.remember("every", [0, 1], 0),
                help="The decision is saved for this seed alone; this says whether what it does here is typical.",
            )
            state.write("every", int(every))
        # A decision at the end of a log has nothing left to change; what it would have done since is what tells.
        shown_at = at if when != WHEN_NOW else None
        found = preview.ask(info, precedent, action, pinned, shown_at, every)
        if found is None:
            return
        preview.numbers(found, now=when == WHEN_NOW)
    undoes = standing[-1].decision_id if action is Action.UNDO else None
    wanted = DecisionRequest(
        info.run_id, precedent, action, Category.OTHER, "foreseen", pinned=pinned, at=at, undoes=undoes
    )
    effect = foreseen_or_nothing(wanted) if found is None else found.effect.as_dict()
    members = ((precedent, version, effect), *_batch(info, archive, row, wanted))
    request = st.session_state.get(_REQUEST)
    if request is None or request[:2] != (precedent, action):
        request = (precedent, action, secrets.token_hex(16))
        st.session_state[_REQUEST] = request
    draft = Draft(info.run_id, str(row["value"]), where, action, pinned, members, at, request[2])
    _words(draft, standing)
    if found is not None:
        preview.changes(found)


def whose(info: RunInfo, row: Mapping[Hashable, Any]) -> str:
    """Name the user of a log's memory, or method and seed of a simulation's."""
    return str(row["subject"]) if info.is_log else f"{method_label(row['method'])}, seed {row['seed']}"


def place_of(info: RunInfo, row: Mapping[Hashable, Any]) -> str:
    """Say in Markdown which memory of which run a decision touches: key, user or lane, name and id of the run."""
    of = plain_text(whose(info, row))
    return (
        f"{plain_text(row['key'])}{f' of {of}' if of else ''}, in the run **{plain_text(info.name)}** "
        f"(id {plain_text(info.run_id)})"
    )


def _when_box(column: Any, info: RunInfo, archive: Archive, row: Mapping[Hashable, Any], life: KeyLife) -> str:
    """Choose from when on it applies, of the moments at which the memory is in the archive."""
    fell = _fell(archive, life, str(row["id"]))
    words = {}
    if info.is_log and life.values.loc[life.values["id"] == row["id"], "state"].iloc[0] == "revoked":
        words[WHEN_NOW] = "From now on: the end of the log"
    if archive.as_of is not None and row["state"] == "revoked":
        words[WHEN_AS_OF] = f"As of the moment chosen above, {in_words_at(archive.as_of, info.is_log)}"
    words[WHEN_FELL] = f"Right after its revocation {in_words_at(fell, info.is_log)}"
    # What nobody knew at the moment looked back at cannot be the default.
    order = [name for name in (WHEN_AS_OF, WHEN_NOW, WHEN_FELL) if name in words]
    when: str = column.selectbox(
        "Takes effect",
        order,
        format_func=lambda name: words.get(name, name),
        key=state.remember("when", order, order[0] if info.is_log else WHEN_FELL),
        help="It takes effect after the evidence of that moment.",
    )
    state.write("when", when)
    return when


def _fell(archive: Archive, life: KeyLife, precedent: str) -> Any:
    steps = life.transitions
    return steps.loc[steps["transition_id"] == fall_of(archive, life, precedent), "x"].iloc[0]


def _stored_moment(info: RunInfo, archive: Archive, life: KeyLife, precedent: str, when: str) -> int | None:
    if when == WHEN_NOW:
        return None
    x: Any = archive.as_of if when == WHEN_AS_OF else _fell(archive, life, precedent)
    # The day that is looked back at may end after the log does.
    return min(microseconds(x), cache.span(info.run_id)[1]) if info.is_log else int(x)


def _batch(
    info: RunInfo, archive: Archive, row: Mapping[Hashable, Any], wanted: DecisionRequest
) -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
    """Offer to decide the same on the rest of a batch; return the others that are to be decided on."""
    if not info.is_log or wanted.action is Action.UNDO or row["batch_size"] < BATCH_SIZE:
        return ()
    rows = archive.rows
    others = rows[(rows["revoked_at"] == row["revoked_at"]) & (rows["id"] != row["id"]) & (rows["state"] == "revoked")]
    others = others[~others["decided"]]
    if others.empty:
        return ()
    listed = ", ".join(
        f"{plain_text(value)} ({plain_text(key)}{f' of {plain_text(user)}' if user else ''})"
        for value, key, user in zip(others["value"], others["key"], others["subject"], strict=True)
    )
    chosen = st.checkbox(
        f"Decide the same on the {len(others):,} other{'' if len(others) == 1 else 's'} that fell at the same instant",
        key=f"batch_{row['id']}",
        help="One reason for all; each gets a row of its own in the ledger and can be undone by itself. Those that "
        "were decided on already or came back are left out.",
    )
    st.caption(listed)
    if not chosen:
        return ()
    names = [str(name) for name in others["id"]]
    return tuple(
        (name, cache.version_of(info.run_id, name), foreseen_or_nothing(replace(wanted, precedent_id=name)))
        for name in names
    )


def foreseen_or_nothing(request: DecisionRequest) -> Mapping[str, Any]:
    """Return what a decision is going to change; nothing where it cannot be taken, which saving it will say."""
    try:
        return cache.foreseen_of(request)
    except DecisionRefused:
        return {}


def _words(draft: Draft, standing: Sequence[Decision]) -> None:
    """Draw the form with the reason, the name and the buttons."""
    with st.form("decide_form", border=False):
        if draft.action is Action.UNDO:
            foreseen = plain_text(preview.of_ledger(draft.members[0][2]), limit=400)
            st.caption(
                f"Takes back number {standing[-1].number} by {plain_text(standing[-1].by, 120)}"
                f"{f': {foreseen}' if foreseen else ''}."
            )
        options = [
            category
            for category in CATEGORIES
            if not (draft.action is Action.CONFIRM and category is Category.WRONG_REVOCATION)
        ]
        left, right = st.columns(2)
        with left:
            st.selectbox(
                "Reason",
                options,
                index=options.index(DEFAULT_CATEGORY[draft.action]),
                format_func=lambda category: CATEGORIES[category],
                key=f"category_{draft.action}",
            )
        with right:
            who.name_field()
        st.text_area(
            "In words",
            key="reason_choice",
            value=st.session_state.get(_TYPED, ""),
            max_chars=MAX_REASON,
            height=68,
            placeholder="Why, for whoever reads the ledger later",
        )
        count = len(draft.members)
        with st.container(horizontal=True):
            st.form_submit_button(
                f"Save {count} decisions" if count > 1 else "Save this decision",
                key="decide_save",
                type="primary",
                icon=":material/save:",
                shortcut="Ctrl+Enter",
                on_click=save,
                args=(draft, standing[-1].decision_id if draft.action is Action.UNDO else None),
            )
            st.form_submit_button("Cancel", key="decide_cancel", shortcut="Esc", type="tertiary", on_click=_close)


@boundary.callback
def save(draft: Draft, undoes: str | None = None) -> None:
    """Write the decision, or one for each memory of a batch; a callback.

    Who acts is asked again for each, and the store refuses whoever may not.
    """
    state.must_show(draft.run_id)
    who.keep_name()
    category = Category(st.session_state[f"category_{draft.action}"])
    reason = st.session_state[_TYPED] = str(st.session_state.get("reason_choice", ""))
    saved, refused = [], []
    for position, (precedent, version, effect) in enumerate(draft.members):
        request = DecisionRequest(
            draft.run_id,
            precedent,
            draft.action,
            category,
            reason,
            pinned=draft.pinned,
            at=draft.at,
            expect_version=version,
            request_id=f"{draft.request_id}.{position}",
            effect=effect,
            undoes=undoes,
        )
        try:
            saved.append(record(who.writing(), request))
        except (DecisionRefused, UnknownPrecedentError) as error:
            refused.append((precedent, error))
            if not isinstance(error, StaleVersion):
                break
    if saved:
        cache.forget()
        st.session_state[JUST_DECIDED] = draft.members[0][0]
        st.session_state.pop(_TYPED)
        st.session_state.pop("reason_choice", None)
        _close()
    st.session_state[_NOTICE] = _outcome(draft, saved, refused)


def _outcome(
    draft: Draft, saved: Sequence[Decision], refused: Sequence[tuple[str, Exception]]
) -> tuple[str, str, Action | None]:
    """Say what was saved and what was not: kind, words in Markdown, and the verb to look at again."""
    if not refused:
        first = saved[0]
        what = (
            "Declared valid beside the others" if draft.action is Action.BOTH_VALID else DONE[draft.action].capitalize()
        )
        rows = f"number {first.number}"
        if len(saved) > 1:
            rows = f"numbers {first.number} to {saved[-1].number}, one for each"
        again = "Decide anew where it was wrong." if draft.action is Action.UNDO else "U takes it back."
        words = f"{what}: {plain_text(draft.value)}. In the ledger: {rows}. {again} It is about {draft.where}."
        return "saved", words, None
    words = " ".join(plain_text(error, 600) for _, error in refused[:1])
    if len(refused) > 1:
        words += f" And {len(refused) - 1:,} more were refused."
    if saved:
        words = f"{len(saved):,} of {len(draft.members):,} were saved, the others were not. The first of these: {words}"
    stale = isinstance(refused[0][1], StaleVersion)
    if stale and not saved:
        # The form is closed, so that nothing is saved that was not looked at again.
        _close()
    return "refused", words, draft.action if stale else None
