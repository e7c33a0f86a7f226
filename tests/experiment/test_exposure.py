from __future__ import annotations

import pandas as pd
import pytest

from tepa_core.experiment import RunSpec, run
from tepa_core.experiment.exposure import terms_by_phase


@pytest.fixture(scope="module")
def episodes() -> pd.DataFrame:
    methods = ("tepa", "append_only", "no_memory")
    return run(RunSpec.build("controlled", seeds=4, methods=methods, world={"key_noise": 0.2})).episodes


def test_terms_are_those_of_the_episodes(episodes: pd.DataFrame) -> None:
    terms = terms_by_phase(episodes)
    assert list(terms) == ["stable", "light", "reversal", "return"]
    here = episodes[episodes["phase"] == "reversal"].set_index(["seed", "t"])
    append, tepa, nomem = (here[here["method"] == name] for name in ("append_only", "tepa", "no_memory"))
    exposed = append["exposed"].fillna(False).astype(bool)
    misled = exposed & append["followed"].notna()
    measured = terms["reversal"]
    assert measured.q.estimate == pytest.approx(exposed.mean())
    assert measured.eta.estimate == pytest.approx(misled.sum() / exposed.sum())
    lost = nomem["success"].astype(int) - append["success"].astype(int)
    assert measured.delta.estimate == pytest.approx(lost[misled].mean())
    assert measured.gain.estimate == pytest.approx(tepa["success"].mean() - append["success"].mean())
    # Under key noise some tasks are on keys without a right value: they expose to nothing.
    assert append["exposed"].isna().any()


def test_reversal_exposes_and_the_stable_phase_does_not(episodes: pd.DataFrame) -> None:
    terms = terms_by_phase(episodes)
    assert terms["stable"].exposed == 0
    assert terms["reversal"].q.estimate > 0.4
    assert terms["reversal"].holds


def test_a_missing_method_is_named(episodes: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="no_memory missing"):
        terms_by_phase(episodes[episodes["method"] != "no_memory"])
