"""The why card: what one change of state was, by which rule, with which numbers, on which sentences, and what now."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from tepa_core.experiment import spec_from_dict
from tepa_core.figures.theme import STATE_STYLE, method_label
from tepa_core.inert import lines, one_line
from tepa_core.lifecycle import Line, Thresholds
from tepa_core.methods import METHODS
from tepa_core.store import KeyLife, in_words_at
from tepa_core.ui import cache, trial_words
from tepa_core.ui.text import plain_text

#: What put a value into the archive, as the end of "revoked by".
REVOKED_BY: Mapping[str, str] = MappingProxyType(
    {
        "recent": "the recent rule",
        "posterior": "the posterior rule",
        "superseded": "another value that became active",
    }
)

#: Changes that a headline tells one by one; of more it tells the first and the last.
TOLD = 5

#: Evidence items quoted on the card; the rest stands in the evidence table.
QUOTED = 6


def moment(life: KeyLife, x: Any, *, exact: bool = False) -> str:
    """Write a moment of a key's life: "on 16 July 2025", "at task 81", "before the first task"."""
    words = in_words_at(x, life.info.is_log, life.info.is_facts)
    return words if exact else words.split(",")[0]


def since(life: KeyLife, x: Any, *, exact: bool = False) -> str:
    """Write a moment after "since": "31 January 2025", "task 3"."""
    return moment(life, x, exact=exact).removeprefix("on ").removeprefix("at ")


def history(life: KeyLife, precedent: str) -> str:
    """Tell the life of one precedent in one sentence, in Markdown.

    It reads like "window: active since 31 January 2025, revoked on 16 July 2025 by the recent rule, back since 17
    October 2025."
    """
    value = plain_text(_value(life, precedent)) or "(empty text)"
    steps = life.transitions[(life.transitions["id"] == precedent) & life.transitions["to_state"].isin(_LIFE)]
    if steps.empty:
        return f"**{value}**: never active. {_standing(life, precedent)}"
    told = [_told(life, step) for step in steps.to_dict("records")]
    if len(told) > TOLD:
        falls = int(((steps["to_state"] == "revoked") & (steps["from_state"] == "active")).sum())
        told = [told[0], f"revoked {falls:,} times in all", f"lately {told[-2]}", told[-1]]
    return f"**{value}**: {', '.join(told)}."


def place(life: KeyLife) -> str:
    """Name whose memory it is, in Markdown: "seat of u-mara", "read csv, TEPA, seed 3"."""
    if life.info.is_log:
        return f"{plain_text(life.key)} of {plain_text(life.subject)}" if life.subject else plain_text(life.key)
    if life.info.is_facts:
        return f"{plain_text(life.key)}, {method_label(life.method)}"
    return f"{plain_text(life.key)}, {method_label(life.method)}, seed {life.seed}"


def others(life: KeyLife, precedent: str) -> list[str]:
    """Tell the lives of the key's other values that were ever active, at most three, the latest first."""
    lived = life.values[(life.values["lives"] > 0) & (life.values["id"] != precedent)]
    chosen = lived.sort_values("changed_at", ascending=False)["id"].head(3)
    left = len(lived) - len(chosen)
    told = [history(life, str(name)) for name in chosen]
    return [*told, f"And {left:,} more value{'' if left == 1 else 's'} of this key."] if left else told


_LIFE = ("active", "revoked")
_RISES = ("promoted", "reactivated")


def _told(life: KeyLife, step: Mapping[Hashable, Any]) -> str:
    if step["rule"] == "reasserted":
        return f"re-asserted {moment(life, step['x'])}"
    if step["to_state"] == "revoked":
        return f"revoked {moment(life, step['x'])} by {REVOKED_BY[step['rule']]}"
    decided = " by decision" if step["rule"] == "decided" else ""
    return f"{'active' if step['life'] == 1 else 'back'} since {since(life, step['x'])}{decided}"


def change(life: KeyLife, step: Mapping[Hashable, Any]) -> str:
    """Name a change of state for a list of choices: "16 Jul 2025, 07:55: Active → Revoked"."""
    at = step["x"]
    at = f"{at.day} {at:%b %Y, %H:%M}" if isinstance(at, pd.Timestamp) else since(life, at).capitalize()
    return f"{at}: {STATE_STYLE[step['from_state']].label} → {STATE_STYLE[step['to_state']].label}"


def _which(life: KeyLife, precedent: str, transition_id: str) -> str:
    """Give the number of a change that day, minute and states do not tell from another one of the same memory."""
    own = life.transitions[life.transitions["id"] == precedent]
    step = _step(life, transition_id)
    # Only changes between the same states on the same day can be told alike.
    same = own[(own["from_state"] == step["from_state"]) & (own["to_state"] == step["to_state"])]
    if isinstance(step["x"], pd.Timestamp):
        same = same[same["x"].dt.floor("D") == step["x"].floor("D")]
    else:
        same = same[same["x"] == step["x"]]
    alike = [row for row in same.to_dict("records") if change(life, row) == change(life, step)]
    return f", change {step['number'] + 1:,} of {len(own):,}" if len(alike) > 1 else ""


def rule_in_words(rule: str, th: Thresholds) -> str:
    """Say what a rule does, with the thresholds of the run, for a person who has never seen the method."""
    posterior = (
        f"The posterior is the share of supports among the outcomes, with {th.alpha:g} support and {th.beta:g} "
        "conflict added to begin with"
    )
    supports = f"{th.theta_prop} fresh support{'' if th.theta_prop == 1 else 's'}"
    rising = f"at least {supports} and a posterior of at least {th.theta_pro:g}. {posterior}"
    recent = (
        "its latest outcome is a conflict"
        if th.n_rec == 1
        else f"the share of supports among its last {th.n_rec} outcomes is below {th.theta_rec:g}"
    )
    return {
        "recent": f"The recent rule revokes a value when {recent}.",
        "posterior": f"The posterior rule revokes a value when, from {th.n_min} outcomes on, its posterior is below "
        f"{th.theta_rev:g}. {posterior}.",
        "superseded": "A key holds one active value: when another one becomes active, this one is revoked.",
        "proposed": f"A value becomes a hypothesis after {supports}. A hypothesis is not used yet.",
        "promoted": f"A value becomes active, and is used from then on, with {rising}.",
        "reactivated": f"An archived value comes back as a new one starts: with {rising}.",
        "decided": "A person may overrule the rule: the value is active again with its own counts and an empty window.",
        "reasserted": f"A person confirmed the revocation, so what would have brought it back, {rising[0].lower()}"
        f"{rising[1:]}, asks for another look instead.",
    }[rule]


def show(life: KeyLife, precedent: str, transition_id: str | None) -> None:
    """Draw the card for one change of state; for a precedent that never changed, where it stands."""
    with st.container(border=True, key="why_card"):
        value = plain_text(_value(life, precedent)) or "(empty text)"
        if transition_id is None:
            st.markdown(f"**Why {value} is not used**")
            st.markdown(_standing(life, precedent))
            _refused(life, precedent)
            return
        step, reason = _step(life, transition_id), life.why(transition_id)
        st.markdown(f"**Why: {value}, {_arrow(step)}{_which(life, precedent, transition_id)}**")
        st.markdown(plain_text(reason.sentence, limit=600))
        st.caption(rule_in_words(step["rule"], life.thresholds))
        st.table(_arithmetic(reason.lines), hide_index=True, border="horizontal", alt="The numbers that decided")
        _tried(life, step)
        if reason.counterfactual:
            st.markdown(
                f":material/undo: **What would have prevented it.** {plain_text(reason.counterfactual, limit=600)}"
            )
        st.markdown(f":material/update: **What happened then.** {_sequel(life, precedent, step)}")
        st.markdown(f":material/flag: **Where it stands now.** {_standing(life, precedent)}")
        _refused(life, precedent)
        _sources(life, value, step, reason.evidence)


def _standing(life: KeyLife, precedent: str) -> str:
    """Say where a precedent stands now, and for methods that hold trials that these must be passed as well."""
    words = plain_text(life.standing(precedent), limit=600)
    stands = life.values.loc[life.values["id"] == precedent, "state"].iloc[0]
    on_trial = life.method in METHODS and METHODS[life.method].trials and stands != "active"
    return f"{words} It must pass its trials as well." if on_trial else words


def _tried(life: KeyLife, step: Mapping[Hashable, Any]) -> None:
    """Say which trials a value passed before it became active, for methods that hold trials."""
    if step["rule"] not in _RISES or life.info.is_log:
        return
    trials = cache.trials(life.info.run_id, life.method, life.seed, life.key)
    if told := trial_words.of_activation(trials, str(step["value"]), int(step["x"])):
        st.markdown(f":material/experiment: **Trials.** {told}", help=trial_words.EXPLAINED)


def _refused(life: KeyLife, precedent: str) -> None:
    """Say when trials kept a value from becoming active."""
    if life.info.is_log:
        return
    value = _value(life, precedent)
    kept_out = life.items[(life.items["value"] == value) & life.items["admitted"].eq(False).fillna(False)]
    trials = cache.trials(life.info.run_id, life.method, life.seed, life.key)
    if told := trial_words.of_refusals(trials, value, [int(x) for x in kept_out["x"]]):
        st.markdown(f":material/block: **Trials kept it out.** {told}", help=trial_words.EXPLAINED)


def _arithmetic(lines: tuple[Line, ...]) -> pd.DataFrame:
    """Write the numbers as a table for a narrow card: threshold and verdict stand under the quantity they judge."""
    rows = []
    for line in lines:
        judged = "; ".join(part for part in (line.threshold, line.verdict) if part)
        name = f"{line.quantity}  \n:small[{judged}]" if judged else line.quantity
        rows.append((name, line.before or "–", line.after or "–"))
    return pd.DataFrame(rows, columns=["quantity", "before", "after"])


def _arrow(step: Mapping[Hashable, Any]) -> str:
    return f"{STATE_STYLE[step['from_state']].label} → {STATE_STYLE[step['to_state']].label}"


def _sequel(life: KeyLife, precedent: str, step: Mapping[Hashable, Any]) -> str:
    later = life.transitions[(life.transitions["id"] == precedent) & (life.transitions["number"] > step["number"])]
    if later.empty:
        return "Nothing: it has been in this state since."
    following = later.to_dict("records")[0]
    if following["rule"] == "reasserted":
        return f"It was asserted again {moment(life, following['x'])}, and stayed, because a person had confirmed it."
    if following["rule"] == "decided":
        return f"A decision made it active again {moment(life, following['x'])}."
    if following["to_state"] == "revoked":
        return f"It was revoked {moment(life, following['x'])} by {REVOKED_BY[following['rule']]}."
    if following["rule"] == "reactivated":
        return f"Fresh supports brought it back {moment(life, following['x'])}."
    return f"It became {following['to_state']} {moment(life, following['x'])}."


def _sources(life: KeyLife, escaped: str, step: Mapping[Hashable, Any], evidence: tuple[int, ...]) -> None:
    chosen = life.items[life.items["seq"].isin(evidence)]
    st.markdown(f"**On this evidence** ({len(chosen)} item{'' if len(chosen) == 1 else 's'}, the oldest first)")
    if len(chosen) > QUOTED:
        st.caption(f"The last {QUOTED} are quoted; all stand in the evidence table.")
    for item in chosen.tail(QUOTED).to_dict("records"):
        own = item["value_id"] == step["value_id"]
        if own and item["supports"]:
            side = f":material/add_circle: For **{escaped}**"
        elif own:
            side = f":material/do_not_disturb_on: Against **{escaped}**"
        elif item["supports"]:
            side = f":material/do_not_disturb_on: Against **{escaped}**, for **{plain_text(item['value'])}**"
        else:
            side = f":material/remove: Against **{plain_text(item['value'])}**"
        known = [
            since(life, item["x"], exact=True),
            *(str(item[name]) for name in ("actor", "source_ref") if pd.notna(item[name])),
        ]
        known = list(dict.fromkeys(known))
        st.markdown(f"{side}  \n:small[{' · '.join(plain_text(part) for part in known)}]")
        st.text(said(life, item))


def said(life: KeyLife, item: Mapping[Hashable, Any]) -> str:
    """Quote an evidence item, or say what happened when nobody said anything. Plain text."""
    if pd.notna(item["text"]) and str(item["text"]).strip():
        return f"“{lines(str(item['text']).strip())}”"
    value = one_line(item["value"])
    if life.info.is_log:
        return f"{'States' if item['supports'] else 'Refutes'} {value}; the log has no sentence for it."
    if spec_from_dict(life.info.spec).asserts:
        who = "The profile that memory starts with" if item["x"] < 0 else "Feedback"
        return f"{who} {'states' if item['supports'] else 'refutes'} {value}."
    return f"{value} was used and {'succeeded' if item['supports'] else 'failed'}."


def _value(life: KeyLife, precedent: str) -> str:
    return str(life.values.loc[life.values["id"] == precedent, "value"].iloc[0])


def _step(life: KeyLife, transition_id: str) -> dict[Hashable, Any]:
    rows: list[dict[Hashable, Any]] = life.transitions[life.transitions["transition_id"] == transition_id].to_dict(
        "records"
    )
    return rows[0]
