from __future__ import annotations

import numpy as np
import pytest

from tepa_core import cost
from tepa_core.bench import drift_log
from tepa_core.lifecycle import Ledger, Thresholds, replay


def test_a_small_measurement_has_every_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "COST_SIZES", {"tiny": 600, "small": 1_200})
    said: list[tuple[float, str]] = []
    rows = cost.measure(("tiny", "small"), lambda done, words: said.append((done, words)), rounds=3)
    assert [done for done, _ in said] == [0.0, 0.5]
    assert rows.groupby("scope", sort=False).size().to_dict() == {"tiny": 4, "small": 3}
    assert set(rows.loc[rows["scope"] == "small", "method"]) == {
        "tepa / last_write_wins",
        "tepa / append_only",
        "append_only / tepa",
    }
    assert (rows["lo"] > 0).all()
    assert ((rows["lo"] <= rows["ours"]) & (rows["ours"] <= rows["hi"])).all()


def test_the_measured_replay_is_the_rule_on_the_same_log() -> None:
    log = drift_log(3_000, 20, np.random.Generator(np.random.PCG64(4)))
    result = replay(cost._encoded(log.key, log.value), Thresholds())
    memory = Ledger(Thresholds())
    for key, value in zip(log.key.tolist(), log.value.tolist(), strict=True):
        memory.observe(str(key), value)
    active = [int(p["support"]) for p in result.precedents if p["state"] == 2]
    live = [memory.recall(str(key)) for key in range(20)]
    assert len(active) == sum(value is not None for value in live) > 10


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(ValueError, match="100k updates"):
        cost.measure(("3 updates",))
    with pytest.raises(ValueError, match="rounds"):
        cost.measure(rounds=0)
