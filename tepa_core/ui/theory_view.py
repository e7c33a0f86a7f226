"""The paper's three propositions beside what a run measured: terms, bounds and simulation, in words and figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from tepa_core.experiment import REFERENCE
from tepa_core.experiment.exposure import APPEND
from tepa_core.experiment.stationary import BOTH, ONCE, POSTERIOR, TRIALS
from tepa_core.figures.theme import method_label
from tepa_core.figures.theory import false_revocation, gain_and_bound
from tepa_core.methods import METHODS
from tepa_core.stats import Interval
from tepa_core.stats.theory import (
    ExposureTerms,
    false_revocation_bound,
    loss_with_superseded,
    revocation_gain_bound,
)
from tepa_core.store import RunInfo
from tepa_core.ui import boundary, cache, headline, state
from tepa_core.ui.text import plain_text
from tepa_core.ui.widgets import figure, table

#: Outcomes at which the false-revocation curves are drawn, up to the chosen number.
AT_OUTCOMES = (5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 200, 300, 400)

PERCENT = range(101)


def revoking_methods(info: RunInfo) -> list[str]:
    """Return the methods of a run that revoke; none when the run lacks what the bound compares with."""
    methods = info.spec.get("methods", [])
    if info.is_log or not {APPEND, REFERENCE} <= set(methods) or "fallback" not in info.spec:
        return []
    return [name for name in methods if name in METHODS and METHODS[name].revokes]


def offer_another_run(info: RunInfo) -> None:
    """Say why the bound cannot be measured in a run, and offer one in which it can."""
    what = "an imported log" if info.is_log else "a run without all of what the bound compares"
    st.info(
        f"{plain_text(info.name)} is {what}. The bound is measured in a simulated run that has append-only, no memory "
        "and TEPA; the rest of this page does not need one.",
        icon=":material/info:",
    )
    listed = cache.runs()
    for run_id, name in listed[listed["stream"] == "controlled"][["run_id", "name"]].itertuples(index=False):
        other = cache.run_info(run_id)
        if revoking_methods(other):
            st.page_link(
                "pages/evidence/theory.py",
                label=f"Measure it in {plain_text(name)}",
                icon=":material/arrow_forward:",
                query_params={"run": run_id},
            )
            return
    st.page_link("pages/data/run.py", label="Start such a run", icon=":material/play_circle:")


def hardest(terms: Mapping[str, ExposureTerms]) -> str:
    """Return the phase in which superseded values cost append-only most."""
    return max(terms, key=lambda phase: terms[phase].bound.estimate)


def of_bound(phase: str, terms: ExposureTerms, revoking: str) -> list[str]:
    """Say what q, eta and delta are in a phase, and whether the gain of revocation reaches their product."""
    where, name = plain_text(phase), method_label(revoking)
    if not terms.exposed:
        return [
            f"In {where} append-only never offers a superseded value, so the bound promises nothing (0). {name} saves "
            f"**{_points(terms.gain, sign=False)}** of the tasks.",
            *([] if terms.holds else [_why_not(terms, name)]),
        ]
    sentences = [
        f"In {where} revocation must save at least **{_points(terms.bound, sign=False)}** of the tasks; {name} saves "
        f"**{_points(terms.gain, sign=False)}**. {verdict(terms)}.",
        f"Append-only offers a superseded value at {headline.percent(terms.q.estimate)} of the tasks (q), the agent "
        f"follows it in {headline.percent(terms.eta.estimate)} of those (η), and each time it does it loses "
        f"{terms.delta.estimate:.2f} more than an agent without memory on the same task (Δ).",
    ]
    if not terms.holds:
        sentences.append(_why_not(terms, name))
    elif terms.learned.estimate > 0:
        sentences.append(
            f"The bound counts only what no longer misleads. {name} gains more because a new value takes the place of "
            f"the old one: {_points(terms.learned)} of the tasks."
        )
    return sentences


def verdict(terms: ExposureTerms) -> str:
    """Say whether the bound holds in a phase."""
    if terms.holds:
        return "✓ The bound holds"
    if terms.slack.hi >= 0:
        return "≈ The gain is below the bound, by less than its interval"
    return "✗ The gain stays below the bound"


def _why_not(terms: ExposureTerms, name: str) -> str:
    return (
        f"The proposition speaks of an agent that excludes every superseded value at once, and nothing else; {name} "
        f"has to find out. Where superseded values misled append-only it gets {_points(terms.learned)} of the tasks "
        "against no memory (it notices late, or misreads a reply); on all others "
        f"{_points(terms.side_effect)} against append-only (it revokes what holds, or tries after a change)."
    )


def of_pollution(phase: str, terms: ExposureTerms) -> str:
    """Say whether append-only is worse than no memory by the condition of P2."""
    sign = ">" if terms.pollution.estimate > 0 else "≤"
    outcome = "worse than no memory (MPI above 0)" if terms.pollution.estimate > 0 else "not worse than no memory"
    return (
        f"Pollution: superseded values cost append-only {_points(terms.bound, sign=False)} in {plain_text(phase)}, "
        f"what still holds brings it {_points(terms.benefit, sign=False)} (b). ξ·η = {terms.bound.estimate:.3f} {sign} "
        f"b = {terms.benefit.estimate:.3f}, so append-only is {outcome}."
    )


def terms_table(terms: Mapping[str, ExposureTerms]) -> pd.DataFrame:
    """Return the measured terms with their intervals, a row per phase."""
    names = {
        "q": "q: exposed (share of tasks)",
        "eta": "η: followed (share of exposed)",
        "delta": "Δ: loss per error",
        "bound": "q·η·Δ: least gain",
        "gain": "measured gain",
        "slack": "gain − bound",
        "benefit": "b: benefit of what holds",
    }
    rows = []
    for phase, one in terms.items():
        cells = {label: _cell(getattr(one, name)) for name, label in names.items()}
        rows.append({"phase": phase, **cells, "bound": verdict(one).split(" ")[0] + " " + _short(one)})
    return pd.DataFrame(rows)


def _short(terms: ExposureTerms) -> str:
    if terms.holds:
        return "holds"
    return "within interval" if terms.slack.hi >= 0 else "gain below it"


def show_gain(terms: Mapping[str, ExposureTerms], revoking: str, setting: float) -> None:
    """Draw bound and gain of every phase, with the bound that the sliders make."""
    frame = pd.DataFrame(
        [
            {
                "phase": phase,
                **{
                    name + end: getattr(getattr(one, name), part)
                    for name in ("bound", "gain")
                    for end, part in (("", "estimate"), ("_lo", "lo"), ("_hi", "hi"))
                },
            }
            for phase, one in terms.items()
        ]
    )
    figure(gain_and_bound(frame, revoking, setting), "gain_and_bound")
    with st.expander("The measured terms with their intervals, phase by phase"):
        table(terms_table(terms), "theory_terms")
        st.caption(
            "95 % intervals from a bootstrap over seeds. Δ compares with an agent without memory on the very tasks "
            "where append-only followed a superseded value."
        )


def sliders(measured: ExposureTerms | None) -> tuple[float, float, float, float]:
    """Draw the sliders of q, eta, delta and b with the measured values beside them; return them as shares."""
    drawn = []
    for column, (name, label, term, fallback, meaning) in zip(
        (*st.columns(2), *st.columns(2)),
        (
            ("q", "q: exposure", "q", 80, "How often memory offers a superseded value (% of tasks)."),
            ("eta", "η: following", "eta", 100, "How often the agent then follows it (%)."),
            ("delta", "Δ: loss per error", "delta", 12, "What each such error costs against no memory (% of a task)."),
            ("b", "b: benefit of what holds", "benefit", 0, "What still-current memories add (% of tasks)."),
        ),
        strict=True,
    ):
        value = None if measured is None else getattr(measured, term).estimate
        default = fallback if value is None or pd.isna(value) else min(max(round(100 * value), 0), 100)
        with column:
            chosen = st.slider(label, 0, 100, key=state.remember(name, PERCENT, default), format="%d %%", help=meaning)
            st.caption("no measured value" if value is None or pd.isna(value) else f"measured: {100 * value:.1f} %")
        drawn.append(chosen / 100)
    if measured is not None:
        st.button(
            "Set to the measured values",
            key="theory_reset",
            icon=":material/restart_alt:",
            on_click=_reset,
            args=(measured,),
        )
    q, eta, delta, b = drawn
    return q, eta, delta, b


@boundary.callback
def _reset(measured: ExposureTerms) -> None:
    for name, term in (("q", "q"), ("eta", "eta"), ("delta", "delta"), ("b", "benefit")):
        value = getattr(measured, term).estimate
        if not pd.isna(value):
            state.choose(name, min(max(round(100 * value), 0), 100))


def of_setting(q: float, eta: float, delta: float, b: float) -> str:
    """Say what P1, P2 and the condition for pollution make of a setting."""
    without = 1 - delta
    bound = revocation_gain_bound(q, eta, delta)
    polluted = bound > b
    return "\n".join(
        (
            f"- **P1, one key.** An agent that fails {headline.percent(without)} of its tasks without the value fails "
            f"{headline.percent(loss_with_superseded(eta, without))} with a superseded one in its prompt. Excluding it "
            + ("strictly helps." if eta > 0 and delta > 0 else "changes nothing here, and never hurts."),
            f"- **P2, all tasks.** Revocation saves at least q·η·Δ = {q:.2f} · {eta:.2f} · {delta:.2f} = "
            f"**{headline.percent(bound)}** of the tasks.",
            f"- **Pollution.** With a benefit b of {headline.percent(b)}, an append-only memory is "
            + ("**worse than none**: " if polluted else "not worse than none: ")
            + f"{headline.percent(bound)} lost {'>' if polluted else '≤'} {headline.percent(b)} gained.",
        )
    )


def false_revocations(info: RunInfo) -> None:
    """Draw P3: the bound against simulation through the rule, with sliders for mu, theta_rev and n."""
    rates = None if info.is_log or "fallback" not in info.spec else cache.support_rates(info.run_id)
    columns = st.columns(3)
    with columns[0]:
        mu = st.slider(
            "μ: mean support",
            1,
            99,
            key=state.remember("mu", range(1, 100), 50),
            format="%d %%",
            help="Of a value that still holds: how often its outcomes support it.",
        )
        if rates is not None and len(rates):
            share = 100 * rates["supports"] / rates["items"]
            shares = [f"{plain_text(name)} {value:.0f} %" for name, value in zip(rates["phase"], share, strict=True)]
            st.caption(f"measured: {', '.join(shares)}")
    with columns[1]:
        theta = st.slider(
            "θ: theta_rev",
            0,
            90,
            key=state.remember("theta", range(91), 30),
            format="%d %%",
            help="The posterior below which a memory is revoked.",
        )
        st.caption(f"this run: {100 * info.thresholds.theta_rev:.0f} %; the paper: 30 %")
    with columns[2]:
        n = st.select_slider(
            "n: outcomes",
            AT_OUTCOMES,
            key=state.remember("n", AT_OUTCOMES, 200),
            help="How many outcomes the value meets while it holds.",
        )
        st.caption(f"judged from {info.thresholds.n_min} outcomes on (n_min)")
    thresholds = dataclasses.replace(info.thresholds, theta_rev=theta / 100)
    with st.spinner("Simulating 2,000 memories"):
        curve = cache.false_revocations(mu / 100, thresholds, tuple(at for at in AT_OUTCOMES if at <= n))
    st.markdown(of_false_revocation(mu / 100, thresholds.theta_rev, n, curve))
    figure(false_revocation(curve), "false_revocation")
    with st.expander("The simulated numbers"):
        table(curve.round(4), "false_revocation_table")
    st.caption(
        f"{TRIALS:,} simulated memories, each made Active by one support; then nothing changes and every outcome goes "
        "through the same compiled rule that every page uses. Bands are 95 % binomial intervals."
    )


def of_false_revocation(mu: float, theta: float, n: int, curve: pd.DataFrame) -> str:
    """Say what P3 promises at a setting, and what the rule does there."""
    last = curve[curve["n"] == n].set_index("judged")["share"]
    rules = (
        f"Within {n} outcomes the posterior rule archives it in {headline.percent(last[POSTERIOR])} of the "
        f"simulations, because it judges after every conflict; with the recent rule as well it is "
        f"{headline.percent(last[BOTH])}."
    )
    if mu <= theta:
        return (
            f"**P3.** With a mean support of {mu:.2f}, not above θ = {theta:.2f}, the posterior falls below the "
            f"threshold sooner or later: such a value is meant to be revoked. {rules}"
        )
    bound = float(false_revocation_bound(mu, theta, n))
    return (
        f"**P3.** A value that holds, with mean support {mu:.2f} above θ = {theta:.2f}, has a posterior below the "
        f"threshold after {n} outcomes with probability at most exp(−2nε²) = **{bound:.3f}** "
        f"(ε = {(mu - theta) / 2:.3f}); simulated, it is archived at that judgement in "
        f"**{headline.percent(last[ONCE])}**. {rules}"
        + (
            " The proposition covers the posterior rule alone: the recent rule reacts fast, and that is its price."
            if last[BOTH] > last[POSTERIOR] + 0.05
            else ""
        )
    )


def _points(value: Interval, *, sign: bool = True) -> str:
    text = f"{100 * value.estimate:{'+' if sign else ''}.1f} %".replace("-", "−")
    if pd.isna(value.lo):
        return text
    return f"{text} [{100 * value.lo:.1f}, {100 * value.hi:.1f}]".replace("-", "−")


def _cell(value: Interval) -> str:
    if pd.isna(value.estimate):
        return "none"
    span = "" if pd.isna(value.lo) else f" [{value.lo:.3f}, {value.hi:.3f}]"
    return f"{value.estimate:.3f}{span}".replace("-", "−")
