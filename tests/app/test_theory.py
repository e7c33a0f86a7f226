"""The theory page: measured terms against the stored episodes, bounds against their formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import FactSpec, run_facts
from tepa_core.experiment.stationary import BOTH, ONCE, POSTERIOR
from tepa_core.store import Store, queries, save_facts
from tepa_core.streams.fact_file import read_fact_file
from tepa_core.ui import cache

OpenPage = Callable[..., AppTest]
ROOT = Path(__file__).parents[2]


def words(at: AppTest) -> str:
    said = [*at.title, *at.markdown, *at.caption, *at.warning, *at.info, *at.error]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def shown_table(at: AppTest, column: str) -> pd.DataFrame:
    """Return the table on the page that has a column."""
    (found,) = [element.value for element in at.dataframe if column in element.value]
    return found


@pytest.fixture
def terms(store: Store, simulation: str) -> dict[str, float]:
    """The terms of reversal, straight from the episodes."""
    played = queries.episodes(store, simulation)
    here = played[played["phase"] == "reversal"].set_index(["seed", "t"])
    append, tepa, nomem = (here[here["method"] == name] for name in ("append_only", "tepa", "no_memory"))
    exposed = append["exposed"].fillna(False).astype(bool)
    misled = exposed & append["followed"].notna()
    lost = nomem["success"].astype(int) - append["success"].astype(int)
    return {
        "q": exposed.mean(),
        "eta": misled.sum() / exposed.sum(),
        "delta": lost[misled].mean(),
        "gain": tepa["success"].mean() - append["success"].mean(),
    }


def test_the_headline_compares_the_gain_with_its_bound(
    open_page: OpenPage, simulation: str, terms: dict[str, float]
) -> None:
    at = open_page("evidence/theory", run=simulation)
    assert at.title[0].value == "Theory and cost"
    assert at.caption[0].value == "What does revocation guarantee, and what does it cost?"
    bound = terms["q"] * terms["eta"] * terms["delta"]
    said = words(at)
    assert f"In reversal revocation must save at least **{100 * bound:.1f} %" in said
    assert f"TEPA saves **{100 * terms['gain']:.1f} %" in said
    assert "✓ The bound holds" in said
    assert f"at {100 * terms['q']:.1f} % of the tasks (q)" in said
    assert f"loses {terms['delta']:.2f} more than an agent without memory" in said


def test_the_table_has_the_terms_of_every_phase(open_page: OpenPage, simulation: str, terms: dict[str, float]) -> None:
    frame = shown_table(open_page("evidence/theory", run=simulation), "measured gain").set_index("phase")
    assert list(frame.index) == ["stable", "light", "reversal", "return"]
    assert frame.loc["reversal", "q: exposed (share of tasks)"].startswith(f"{terms['q']:.3f}")
    assert frame.loc["stable", "Δ: loss per error"] == "none"
    assert frame.loc["reversal", "bound"] == "✓ holds"


def test_the_sliders_start_at_the_measured_values_and_stand_in_the_url(
    open_page: OpenPage, simulation: str, terms: dict[str, float]
) -> None:
    at = open_page("evidence/theory", run=simulation)
    assert at.slider(key="q_choice").value == round(100 * terms["q"])
    assert f"measured: {100 * terms['q']:.1f} %" in words(at)
    at = open_page("evidence/theory", run=simulation, q=50, eta=40, delta=30, b=10)
    said = words(at)
    # 0.5 * 0.4 * 0.3 = 6.0 %; without the value 70 % fail, with it 0.4 + 0.6 * 0.7 = 82 %.
    assert "q·η·Δ = 0.50 · 0.40 · 0.30 = **6.0 %** of the tasks" in said
    assert "fails 70.0 % of its tasks without the value fails 82.0 % with a superseded one" in said
    assert "not worse than none" in said
    at.slider(key="b_choice").set_value(2).run()
    assert at.query_params["b"] in ("2", ["2"])
    assert "**worse than none**" in words(at)
    at.button(key="theory_reset").click().run()
    assert at.slider(key="q_choice").value == round(100 * terms["q"])


def test_a_phase_without_exposure_says_so(open_page: OpenPage, simulation: str) -> None:
    at = open_page("evidence/theory", run=simulation, theory_phase="stable")
    assert "In stable append-only never offers a superseded value" in words(at)


def test_false_revocations_stand_beside_their_bound(open_page: OpenPage, simulation: str) -> None:
    at = open_page("evidence/theory", run=simulation, mu=60, theta=30, n=40)
    frame = shown_table(at, "judged")
    assert frame["n"].max() == 40
    last = frame[frame["n"] == 40].set_index("judged")
    # eps = 0.15, exp(-2 * 40 * 0.0225) = exp(-1.8)
    assert last.loc[ONCE, "bound"] == pytest.approx(np.exp(-1.8), abs=5e-5)
    assert last.loc[ONCE, "share"] <= last.loc[POSTERIOR, "share"] <= last.loc[BOTH, "share"]
    said = words(at)
    assert f"exp(−2nε²) = **{np.exp(-1.8):.3f}**" in said
    assert f"with the recent rule as well it is {100 * last.loc[BOTH, 'share']:.1f} %" in said
    at = open_page("evidence/theory", run=simulation, mu=20, theta=30, n=40)
    assert "such a value is meant to be revoked" in words(at)


def test_the_measured_support_stands_beside_its_slider(open_page: OpenPage, simulation: str, store: Store) -> None:
    rates = queries.support_rates(store, simulation).set_index("phase")
    share = rates.loc["light", "supports"] / rates.loc["light", "items"]
    assert f"light {100 * share:.0f} %" in words(open_page("evidence/theory", run=simulation))


def test_a_log_gets_the_theory_and_a_way_to_the_measurement(open_page: OpenPage, log: str) -> None:
    at = open_page("evidence/theory", run=log)
    assert "is an imported log" in words(at)
    assert at.slider(key="q_choice").value == 80
    assert "no measured value" in words(at)
    assert shown_table(at, "judged")["n"].max() == 200


def test_a_fact_run_is_told_apart(own_database: Path, open_page: OpenPage) -> None:
    file = read_fact_file(ROOT / "data" / "facts_small.json")
    result = run_facts(file, FactSpec.build(file, methods=("tepa", "append_only", "no_memory"), orders=1))
    run_id = save_facts(cache.store().acting(PROGRAM), result, len(file.facts))
    at = open_page("evidence/theory", run=run_id)
    assert "a run without all of what the bound compares" in words(at)


def test_an_unknown_run_leads_to_one_that_is_there(open_page: OpenPage) -> None:
    at = open_page("evidence/theory", run="nothing")
    assert "There is no run nothing in this database" in words(at)
    assert "P3" in words(at)
