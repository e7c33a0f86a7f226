"""Sentences against numbers worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from tepa_core.ui import headline

SUCCESS = pd.DataFrame(
    [
        ("no_memory", "stable", 0.90),
        ("append_only", "stable", 0.99),
        ("tepa", "stable", 0.99),
        ("no_memory", "reversal", 0.309),
        ("append_only", "reversal", 0.210),
        ("tepa", "reversal", 0.950),
        ("no_memory", "overall", 0.6045),
        ("append_only", "overall", 0.60),
        ("tepa", "overall", 0.97),
    ],
    columns=["method", "phase", "mean"],
)


def pollution(**changed: tuple[float, float, float]) -> pd.DataFrame:
    """The paper's controlled numbers: (0.309 - 0.210) / 0.309 = 0.32 and (0.309 - 0.950) / 0.309 = -2.07."""
    index = {
        ("no_memory", "reversal"): (0.0, 0.0, 0.0),
        ("append_only", "reversal"): (0.3204, 0.275, 0.362),
        ("tepa", "reversal"): (-2.0744, -2.31, -1.86),
        ("append_only", "stable"): (-0.10, -0.12, -0.08),
        ("tepa", "stable"): (-0.10, -0.12, -0.08),
        ("append_only", "overall"): changed.get("overall", (-0.05, -0.06, -0.04)),
        ("tepa", "overall"): (-0.29, -0.3, -0.28),
    }
    return pd.DataFrame(
        [(*where, *numbers) for where, numbers in index.items()], columns=["method", "phase", "mpi", "lo", "hi"]
    )


def test_the_hardest_phase_is_where_memory_harms_most() -> None:
    assert headline.hardest_phase(pollution()) == "reversal"
    assert headline.hardest_phase(pollution().head(0)) is None


def test_a_simulation_is_told_by_its_harm_and_its_help() -> None:
    first, second, third = headline.of_simulation(SUCCESS, pollution())
    assert first == "In reversal, append-only succeeds 32 % less often than no memory at all; TEPA 207 % more often."
    assert "append-only 21.0 %, no memory 30.9 % and TEPA 95.0 %" in second
    assert "append-only 28 to 36 % less and TEPA 186 to 231 % more" in second
    assert "still succeeds 5 % more often" in third


def test_the_average_hides_nothing_when_it_shows_the_harm() -> None:
    assert len(headline.of_simulation(SUCCESS, pollution(overall=(0.01, 0.005, 0.02)))) == 2


def test_without_the_reference_nothing_is_claimed_about_pollution() -> None:
    first, second = headline.of_simulation(SUCCESS, pollution().head(0))
    assert first == "**TEPA** succeeds most often: in 97.0 % of all tasks."
    assert "no_memory" in second


@pytest.mark.parametrize(
    ("lo", "hi", "words"),
    [(0.01, 0.2, "10 % less often"), (-0.01, 0.2, "about as often"), (float("nan"), float("nan"), "10 % less often")],
)
def test_an_interval_with_zero_claims_no_difference(lo: float, hi: float, words: str) -> None:
    assert headline.compared(0.1, lo, hi) == words


def test_one_seed_has_no_interval() -> None:
    assert headline.interval(float("nan"), float("nan")) == "unknown from one seed"


def comparisons(diff: float) -> pd.DataFrame:
    return pd.DataFrame(
        [("tepa", "win_stay_lose_shift", "overall", diff, diff - 0.002, diff + 0.002)],
        columns=["a", "b", "scope", "diff", "lo", "hi"],
    )


@pytest.mark.parametrize(
    ("diff", "words"), [(-0.003, "keeps up with TEPA"), (0.2, "falls behind"), (-0.1, "does better than TEPA")]
)
def test_the_simple_rule_is_judged_by_this_run(diff: float, words: str) -> None:
    assert words in headline.of_simple_rule(comparisons(diff), evidence_asserts=False)


def test_the_simple_rule_stops_competing_where_evidence_asserts() -> None:
    told = headline.of_simple_rule(comparisons(0.2), evidence_asserts=True)
    assert "+20.0 points [+19.8 points, +20.2 points]" in told
    assert "believes the last statement" in told
    assert headline.of_simple_rule(comparisons(0.2).head(0), evidence_asserts=True) == ""


def test_phases_part_the_methods_where_one_falls_furthest() -> None:
    first, second = headline.of_phases(SUCCESS, ["no_memory", "append_only", "tepa"])
    assert first == "In **reversal** the methods part ways: from 21.0 % (append-only) to **95.0 %** (TEPA)."
    assert second == "In every other phase they lie within 9 points of each other."


def test_methods_that_do_alike_do_not_part_ways() -> None:
    alike = SUCCESS.assign(mean=0.5)
    assert headline.of_phases(alike, ["no_memory", "append_only", "tepa"])[0].endswith(
        "all 3 methods succeed alike: **50.0 %**."
    )
    assert "TEPA succeeds: **" in headline.of_phases(SUCCESS, ["tepa"])[0]


def test_the_simple_rule_that_keeps_up_on_assertions_is_not_called_weak() -> None:
    told = headline.of_simple_rule(comparisons(0.0), evidence_asserts=True)
    assert "serves as well here as weighing all of them" in told
    assert "misread" not in told


def facts(**means: float) -> pd.DataFrame:
    return pd.DataFrame({"method": list(means), "phase": "overall", "mean": list(means.values())})


def test_facts_are_told_by_the_number_of_questions() -> None:
    first, *rest = headline.of_facts(facts(tepa=1.0, tepa_norev=11 / 15, last_write_wins=1.0, no_memory=0.0), 20, 3)
    assert first == "TEPA answers 20 of 20 questions; a memory that never revokes 14.7."
    assert rest[0] == "It is not alone: last write wins answers as many."
    assert "undefined" in rest[1]
    assert "means over 3 orders" in rest[2]


def test_facts_without_tepa_name_the_best() -> None:
    first, *rest = headline.of_facts(facts(last_write_wins=0.5, append_only=0.25), 4, 1)
    assert first == "last write wins answers 2 of 4 questions; a memory that never revokes 1."
    assert rest == ["The questions were asked in one order, so there are no intervals."]


def test_facts_that_nobody_answers() -> None:
    assert headline.of_facts(facts(tepa=0.0, no_memory=0.0), 10, 3) == ["No method answers any of the 10 questions."]
    assert headline.of_facts(facts(tepa=0.0), 1, 3) == ["No method answers the question."]


def test_a_log_counts_its_memories_and_its_worst_month() -> None:
    at = pd.to_datetime(["2025-07-01", "2025-08-02", "2025-08-03", "2025-09-01"], utc=True)
    transitions = pd.DataFrame(
        {
            "occurred": at,
            "from_state": ["active", "active", "active", "revoked"],
            "to_state": ["revoked", "revoked", "revoked", "active"],
            "rule": ["recent", "recent", "recent", "reactivated"],
        }
    )
    said = headline.of_log({"active": 4, "revoked": 2, "candidate": 3}, 5, transitions)
    assert said == [
        "6 memories of 5 users: 4 active and 2 revoked now",
        "3 more have too little support to be used.",
        "There were 3 revocations, most in August 2025 (2); 1 came back later.",
    ]
    assert "Nothing was ever revoked" in headline.of_log({"active": 4}, 1, transitions.head(0))[-1]


def test_memories_are_told_by_their_delay() -> None:
    means = pd.Series(
        {
            "revocation_delay_tasks": 2.46,
            "revocation_delay_uses": 1.97,
            "false_revocation_share": 0.027,
            "never_revoked": 0.0,
        }
    )
    said = headline.of_memories("tepa", means)
    assert "2.5 tasks after the change" in said
    assert "3 % of its revocations" in said
    never = means.mask(means.index != "never_revoked").fillna({"never_revoked": 1.0})
    assert "archives no outdated value" in headline.of_memories("tepa_norev", never)
