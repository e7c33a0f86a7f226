"""Questions behind the evidence pages, on hand-made rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tepa_core.experiment import FactSpec, RunResult, run_facts
from tepa_core.store import Store, queries, save_facts, save_run
from tepa_core.streams.fact_file import read_fact_file

DATA = Path(__file__).parents[2] / "data"


def test_questions_are_averaged_over_their_orders(store: Store) -> None:
    file = read_fact_file(DATA / "facts_small.json")
    spec = FactSpec.build(file, methods=("tepa", "tepa_norev"), orders=3)
    result = run_facts(file, spec)
    found = queries.success_per_question(store, save_facts(store, result, len(file.facts)))
    joined = result.episodes.merge(result.questions, on=["seed", "t"])
    expected = joined.groupby(["method", "question"])["success"].mean()
    assert len(found) == 2 * len(file.questions)
    assert found.set_index(["method", "question"])["success"].to_dict() == pytest.approx(expected.to_dict())
    assert set(found["success"].mul(3).round(9)) <= {0.0, 1.0, 2.0, 3.0}


def test_attributions_are_counted_per_method(store: Store) -> None:
    file = read_fact_file(DATA / "facts_small_multihop.json")
    result = run_facts(file, FactSpec.build(file, methods=("tepa", "append_only"), orders=2))
    found = queries.attributions(store, save_facts(store, result, len(file.facts)))
    assert found.groupby("method")["n"].sum().to_dict() == {"append_only": 20, "tepa": 20}
    own = result.attribution.groupby(["method", "attribution"]).size()
    assert found.set_index(["method", "attribution"])["n"].to_dict() == own.to_dict()


def test_support_rates_count_evidence_for_and_against_what_is_right(store: Store, simulation: RunResult) -> None:
    found = queries.support_rates(store, save_run(store, simulation)).set_index("phase")
    assert list(found.index) == ["stable", "light", "reversal", "return"]
    # In the stable phase TEPA acts right on every task of both families but for the base policy's first tries on csv:
    # evidence about the wrong value (a refutation of it) says nothing of the right one.
    evidence = simulation.evidence
    mine = evidence[(evidence["method"] == "tepa") & (evidence["phase"] == "stable") & (evidence["t"] >= 0)]
    right = mine[mine["value"] == "conventional"]
    assert found.loc["stable", "items"] == len(right)
    assert found.loc["stable", "supports"] == right["supports"].sum() == len(right)
    assert (found["supports"] <= found["items"]).all()
    # Light: 3 % of the csv tasks need the other tool, so the right value is refuted there, and not always supported.
    assert found.loc["light", "supports"] < found.loc["light", "items"]
