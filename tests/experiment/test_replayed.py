"""One seed played again: without decisions as in the run, with them as the rule says of what was then learned."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tepa_core.experiment import Override, RunSpec, play, replay_seed, run, setting
from tepa_core.lifecycle import State, Verdict, encode, replay, tables
from tepa_core.methods import METHODS, thresholds_of
from tepa_core.methods.tepa import Tepa


@pytest.mark.parametrize("stream", ["controlled", "preference"])
def test_without_decisions_it_is_what_the_run_gave(stream: str) -> None:
    spec = RunSpec.build(stream, seeds=2, first_seed=3, methods=["tepa", "tepa_norev", "no_memory"])
    whole = run(spec)
    for method in ("tepa", "tepa_norev"):
        again = replay_seed(spec, method, 4)
        for name in ("episodes", "evidence", "trials"):
            table = getattr(whole, name)
            own = table[(table["method"] == method) & (table["seed"] == 4)].reset_index(drop=True)
            pd.testing.assert_frame_equal(getattr(again, name), own, check_dtype=False, obj=name)


@pytest.mark.parametrize("method", ["tepa", "tepa_full", "tepa_norev"])
@pytest.mark.parametrize("number", range(4))
def test_replaying_what_was_learned_gives_the_memory_that_the_agent_had(method: str, number: int) -> None:
    stream_id = "preference" if method == "tepa_full" else ("controlled", "preference")[number % 2]
    spec = RunSpec.build(stream_id, seeds=1, methods=[method])
    stream = spec.stream_spec.make(0)
    rng = np.random.default_rng(number)
    tasks = np.sort(rng.integers(20, len(stream), 6)).tolist()
    decided = [
        (
            task,
            stream.keys[rng.integers(len(stream.keys))],
            stream.values[rng.integers(len(stream.values))],
            Verdict(int(rng.integers(1, 5))),
        )
        for task in tasks
    ]
    played = replay_seed(spec, method, 0, decided)
    agent = METHODS[method].make(setting(spec, stream))
    assert isinstance(agent, Tepa)
    play(
        stream,
        agent,
        [Override(t, stream.keys.index(key), stream.values.index(value), what) for t, key, value, what in decided],
    )
    rows = pd.DataFrame(
        [
            {"seq": -2 - i, "t": t, "key": key, "value": value, "supports": False, "verdict": int(what)}
            for i, (t, key, value, what) in enumerate(decided)
        ]
    )
    learned = played.evidence.assign(key=played.evidence["key"].astype(str), value=played.evidence["value"].astype(str))
    both = pd.concat([learned.assign(verdict=0), rows], ignore_index=True)
    both = both.assign(subject="", key_id=both["key"], value_id=both["value"], supports=both["supports"].astype(bool))
    log, labels = encode(both, time="t")
    thresholds = thresholds_of(method, spec.thresholds)
    found, _ = tables(log, labels, replay(log, thresholds), thresholds)
    live = {(stream.keys[p.key], stream.values[p.value]): p for p in agent.memory.precedents()}  # type: ignore[index]
    assert len(found) == len(live)
    for row in found.itertuples():
        had = live[row.key_id, row.value_id]
        assert (State[row.state.upper()], row.support, row.conflict, row.lives, row.rule) == (
            had.state,
            had.support,
            had.conflict,
            had.lives,
            had.rule.label,
        )
        assert (row.trial_support, row.trial_conflict) == (had.trial_support, had.trial_conflict)


def test_what_cannot_be_replayed_is_named() -> None:
    spec = RunSpec.build("controlled", seeds=1, methods=["tepa", "no_memory"])
    with pytest.raises(ValueError, match="no_memory has no precedents"):
        replay_seed(spec, "no_memory", 0)
    with pytest.raises(ValueError, match="no value 'blue'"):
        replay_seed(spec, "tepa", 0, [(81, "read csv", "blue", Verdict.CONFIRM)])
    with pytest.raises(ValueError, match="task 160"):
        replay_seed(spec, "tepa", 0, [(160, "read csv", "conventional", Verdict.CONFIRM)])
