"""What a run says, in sentences computed from its numbers. Markdown; nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from tepa_core.experiment import OVERALL, REFERENCE
from tepa_core.figures.facts import count
from tepa_core.figures.theme import in_legend_order, listed, method_label
from tepa_core.ui.text import plain_text

#: The method whose harm the paper shows, and the one that answers it; named first where a run has them.
NAIVE, OURS, SIMPLE = "append_only", "tepa", "win_stay_lose_shift"
#: TEPA with revocation switched off.
KEEPS = "tepa_norev"

FALLBACKS: Mapping[str, str] = {
    "candidate": "Without an Active precedent TEPA tries the best candidate of the key, so its archive steers the next "
    "try without entering the prompt.",
    "base_policy": "Without an Active precedent TEPA leaves the task to the base policy, as if it had no memory.",
}


#: Why a run has no pollution index although it has an agent without memory.
NO_POLLUTION = (
    "The pollution index says which share of the successes of an agent without memory a memory loses. Without memory "
    "nothing succeeds in this run, so there is nothing to lose, and the index is undefined. Success says how the "
    "methods compare."
)


def percent(share: float) -> str:
    """Write a share for a person: ``0.192`` is "19.2 %"."""
    return f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """Write a difference of two shares in percentage points, with its sign."""
    return f"{100 * difference:+.1f}".replace("-", "−") + " points"


def hardest_phase(pollution: pd.DataFrame) -> str | None:
    """Return the phase in which some memory does most harm; None when the run has no agent without memory."""
    phases = pollution[(pollution["phase"] != OVERALL) & (pollution["method"] != REFERENCE)].dropna(subset="mpi")
    return None if phases.empty else str(phases["phase"].iloc[int(phases["mpi"].argmax())])


def compared(mpi: float, lo: float, hi: float) -> str:
    """Say what a pollution index means: how much less or more often a method succeeds than no memory.

    An interval with zero in it says neither.

    Examples
    --------
    >>> compared(0.357, 0.314, 0.401), compared(-2.19, -2.4, -2.0), compared(-0.02, -0.05, 0.01)
    ('36 % less often', '219 % more often', 'about as often')
    """
    if lo <= 0 <= hi:
        return "about as often"
    return f"{_whole(mpi)} {'less' if mpi > 0 else 'more'} often"


def interval(lo: float, hi: float) -> str:
    """Write the interval of a pollution index in the same words.

    Examples
    --------
    >>> interval(0.314, 0.401), interval(-0.05, 0.01)
    ('31 to 40 % less', '5 % more to 1 % less')
    """
    if pd.isna(lo):
        return "unknown from one seed"
    if lo <= 0 <= hi:
        return f"{_whole(lo)} more to {_whole(hi)} less"
    near, far = sorted((abs(lo), abs(hi)))
    return f"{100 * near:.0f} to {_whole(far)} {'less' if lo > 0 else 'more'}"


def _whole(share: float) -> str:
    return f"{100 * abs(share):.0f} %"


def of_simulation(success: pd.DataFrame, pollution: pd.DataFrame) -> list[str]:
    """Say where memory hurts and where it helps.

    Parameters
    ----------
    success
        ``method``, ``phase``, ``mean``, ``lo``, ``hi``.
    pollution
        ``method``, ``phase``, ``mpi``, ``lo``, ``hi``.
    """
    phase = hardest_phase(pollution)
    if phase is None:
        overall = success[success["phase"] == OVERALL].set_index("method")["mean"]
        return [
            f"**{method_label(str(overall.idxmax()))}** succeeds most often: in {percent(overall.max())} of all tasks.",
            "Nothing says whether memory helps, since this run has no agent without memory: start one with no_memory "
            "on Run.",
        ]
    here = pollution[(pollution["phase"] == phase) & (pollution["method"] != REFERENCE)].set_index("method")
    means = success[success["phase"] == phase].set_index("method")["mean"]
    harmful = here[here["mpi"] > 0]
    naive = NAIVE if NAIVE in harmful.index else str(here["mpi"].idxmax())
    best = OURS if OURS in here.index and naive != OURS else str(here["mpi"].idxmin())
    said = {str(method): compared(row["mpi"], row["lo"], row["hi"]) for method, row in here.iterrows()}
    headline = f"In {plain_text(phase)}, {method_label(naive)} succeeds {said[naive]} "
    headline += f"{'as' if said[naive].startswith('about') else 'than'} no memory at all"
    named = list(dict.fromkeys((naive, REFERENCE, best)))
    levels = [f"{method_label(method)} {percent(means[method])}" for method in named]
    spans = [
        f"{method_label(method)} {interval(here['lo'][method], here['hi'][method])}"
        for method in named
        if method != REFERENCE
    ]
    headline += f"; {method_label(best)} {said[best]}." if best != naive else "."
    sentences = [
        headline,
        f"Tasks done in {plain_text(phase)}: {listed(levels)} ({_whole(0.95)} intervals of the comparison: "
        f"{listed(spans)}).",
    ]
    on_average = pollution[(pollution["phase"] == OVERALL) & (pollution["method"] == naive)]["mpi"]
    if naive in harmful.index and (on_average < 0).any():
        sentences.append(
            f"The average hides this: over all phases {method_label(naive)} still succeeds "
            f"{_whole(on_average.iloc[0])} more often than no memory."
        )
    return sentences


def of_facts(success: pd.DataFrame, questions: int, orders: int) -> list[str]:
    """Say how many questions about facts are answered, and what revocation has to do with it.

    Parameters
    ----------
    success
        ``method``, ``phase``, ``mean``, ``lo``, ``hi``.
    questions, orders
        How many there are, and how often all were asked.
    """
    means = success[success["phase"] == OVERALL].set_index("method")["mean"]
    asked = f"{questions:,} question{'' if questions == 1 else 's'}"
    if means.max() == 0:
        first = f"No method answers {'the question' if questions == 1 else f'any of the {asked}'}."
    else:
        best = OURS if OURS in means.index else str(means.idxmax())
        first = f"{method_label(best)} answers {count(means[best] * questions)} of {asked}"
        other = next((name for name in (KEEPS, NAIVE) if name in means.index and name != best), None)
        first += f"; a memory that never revokes {count(means[other] * questions)}." if other else "."
    sentences = [first]
    alike = [name for name in in_legend_order(means.index[means == means.get(OURS)]) if name != OURS]
    if means.max() > means.min() and alike:
        sentences.append(
            f"It is not alone: {listed([method_label(name) for name in alike])} "
            f"answer{'s' if len(alike) == 1 else ''} as many."
        )
    if REFERENCE in means.index and means[REFERENCE] == 0 and means.max() > 0:
        sentences.append(
            "Without memory none is answered, so the pollution index, a share of what an agent without memory gets "
            "right, is undefined."
        )
    if means.max() == 0:
        return sentences
    if orders == 1:
        sentences.append("The questions were asked in one order, so there are no intervals.")
    else:
        sentences.append(
            f"Numbers are means over {orders} orders of the same questions"
            + ("; so few say little about chance, and intervals over them are thin." if orders < 10 else ".")
        )
    return sentences


def of_exposure(harm: pd.DataFrame, method: str) -> str:
    """Say why a method loses: the outdated value stood in its prompt. Empty when it loses nowhere."""
    known = harm.dropna(subset="exposed")
    if known.empty:
        return ""
    worst = known.iloc[0]
    return (
        f"Why: in {plain_text(worst['phase'])}, {method_label(method)} kept retrieving a value that no longer held, in "
        f"{100 * float(worst['exposed']):.0f} % of the tasks on *{plain_text(worst['key'])}*. "
        f"That cost it {worst['lost']:.1f} of {worst['tasks']:.1f} such tasks per seed against an agent without memory."
    )


def of_phases(success: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Say which method survives the hardest phase best, and which falls furthest there."""
    chosen = success[success["method"].isin(methods)]
    phases = chosen[chosen["phase"] != OVERALL]
    if phases.empty:
        return []
    floor = phases.groupby("phase", sort=False)["mean"].min()
    phase = str(floor.idxmin())
    part = phases[phases["phase"] == phase].set_index("method")
    best, worst = part["mean"].max(), part["mean"].min()
    leaders = in_legend_order(part.index[part["mean"] == best])
    last = in_legend_order(part.index[part["mean"] == worst])
    if best == worst:
        who = f"{method_label(leaders[0])} succeeds"
        if len(leaders) > 1:
            who = f"all {len(leaders)} methods succeed alike"
        return [f"In **{plain_text(phase)}** {who}: **{percent(best)}**."]
    sentence = (
        f"In **{plain_text(phase)}** the methods part ways: from {percent(worst)} "
        f"({listed([method_label(method) for method in last])}) to **{percent(best)}** "
        f"({listed([method_label(method) for method in leaders])})."
    )
    others = phases[phases["phase"] != phase].groupby("phase", sort=False)["mean"].agg(["min", "max"])
    if others.empty:
        return [sentence]
    spread = (others["max"] - others["min"]).max()
    return [sentence, f"In every other phase they lie within {100 * spread:.0f} points of each other."]


def of_simple_rule(comparisons: pd.DataFrame, evidence_asserts: bool) -> str:
    """Say honestly how the simplest rule that competes does in this run: win-stay lose-shift.

    Parameters
    ----------
    comparisons
        Paired comparisons of tepa, with those against `SIMPLE`; empty text when there are none.
    evidence_asserts
        The stream's evidence asserts values, instead of being the outcome of the action.
    """
    here = (comparisons["a"] == OURS) & (comparisons["b"] == SIMPLE) & (comparisons["scope"] == OVERALL)
    if not here.any():
        return ""
    row = comparisons[here].iloc[0]
    gap = f"{points(row['diff'])}" + ("" if pd.isna(row["lo"]) else f" [{points(row['lo'])}, {points(row['hi'])}]")
    if abs(row["diff"]) < 0.02:
        verdict = f"keeps up with TEPA here: TEPA − win-stay lose-shift is {gap} overall."
    elif row["diff"] > 0:
        verdict = f"falls behind here: TEPA − win-stay lose-shift is {gap} overall."
    else:
        verdict = f"does better than TEPA here: TEPA − win-stay lose-shift is {gap} overall."
    why = (
        "Believing the last statement serves as well here as weighing all of them. It keeps no archive to audit."
        if evidence_asserts and row["diff"] < 0.02
        else "Evidence that asserts values gives it nothing to win or lose: it believes the last statement, and every "
        "one-off request or misread reply overturns what it held."
        if evidence_asserts
        else "With two tools and honest outcomes one failure points to the only alternative, so a rule this simple is "
        "enough. It stops competing where evidence is noisy (one misleading item overturns what it held) or where "
        "there are more than two values, and it keeps no archive to audit."
    )
    return f"**The simplest rule that competes**, win-stay lose-shift, {verdict} {why}"


def of_memories(method: str, means: pd.Series) -> str:
    """Say how fast and how rightly a method archives what no longer holds.

    Parameters
    ----------
    means
        Mean per measure of `tepa_core.experiment.measures`.
    """
    name = method_label(method)
    delay, uses = means.get("revocation_delay_tasks"), means.get("revocation_delay_uses")
    if pd.isna(delay):
        return f"**{name}** archives no outdated value: {means['never_revoked']:.1f} per seed stay active."
    wrong = means["false_revocation_share"]
    judged = "" if pd.isna(wrong) else f" {100 * wrong:.0f} % of its revocations archive a value that still holds."
    when = f"{delay:.1f} tasks after the change on average ({uses:.1f} uses of its key)"
    return f"**{name}** archives an outdated value {when}.{judged}"


def of_log(states: Mapping[str, int], subjects: int, transitions: pd.DataFrame) -> list[str]:
    """Say what a log holds: its memories by state, and when most of them were revoked.

    Parameters
    ----------
    states
        Precedents by state.
    subjects
        Distinct subjects of the keys.
    transitions
        ``occurred``, ``to_state``, ``rule`` and more, of the whole log.
    """
    total = sum(states.values())
    whose = f" of {subjects:,} users" if subjects > 1 else ""
    standing = f"{states.get('active', 0):,} active and {states.get('revoked', 0):,} revoked now"
    weak = states.get("hypothesis", 0) + states.get("candidate", 0)
    sentences = [f"{total - weak:,} memories{whose}: {standing}", f"{weak:,} more have too little support to be used."]
    fell = transitions[(transitions["to_state"] == "revoked") & (transitions["from_state"] == "active")]
    if fell.empty:
        return [*sentences, "Nothing was ever revoked in this log."]
    months = fell["occurred"].dt.strftime("%B %Y").value_counts(sort=False)
    back = int((transitions["rule"] == "reactivated").sum())
    sentences.append(
        f"There were {len(fell):,} revocation{'s' if len(fell) > 1 else ''}, most in {months.idxmax()} "
        f"({months.max():,}); {back:,} came back later."
    )
    return sentences
