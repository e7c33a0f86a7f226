from __future__ import annotations

import csv
from types import SimpleNamespace

import numpy as np
import pytest

from tepa_core import bench as module
from tepa_core.bench import Fact, bench, drift_log
from tepa_core.streams.fact_file import fact_file


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(3))


def test_a_drift_log_mostly_holds_one_value_per_key() -> None:
    log = drift_log(40_000, 4, generator())
    assert log.key.shape == log.value.shape == (40_000,)
    assert set(log.key.tolist()) == {0, 1, 2, 3}
    assert set(log.value.tolist()) == {0, 1, 2, 3}
    one = log.value[log.key == 0]
    # Two items in a row differ when the value changes (0.02) or when noise hits one of them (about 2 x 0.05 x 0.95,
    # and with 2/3 x 0.05^2 when it hits both): 0.115 in all.
    assert np.mean(one[1:] != one[:-1]) == pytest.approx(0.115, abs=0.015)
    # Ten items apart the value has changed at least once with 1 - 0.98^10 = 0.18: it is not noise alone.
    assert np.mean(one[10:] != one[:-10]) > 0.2


def test_every_cell_of_a_log_is_a_text_of_its_own() -> None:
    keys, values = drift_log(50, 1, generator()).texts()
    assert len(set(keys)) == 1
    assert len({id(key) for key in keys}) == 50
    assert all(value.startswith("value ") for value in values)


def test_the_append_scan_answers_with_the_most_frequent_value() -> None:
    assert module._append_scan(["a", "b", "a", "a"], ["x", "y", "z", "z"], "a") == "z"


def test_a_small_bench_has_every_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUERIES", 200)
    said: list[str] = []
    numbers, facts = bench(2000, 50, said.append)
    for name in (
        *("replay_ns", "lww_ns", "append_scan_query_us", "tepa_query_ns", "dict_get_ns", "tepa_update_ns"),
        *("replay_one_key_ns", "import_s", "rank_s", "encode_s", "surface_s", "sliders_s"),
    ):
        assert numbers[name] > 0, name
    assert (numbers["updates"], numbers["keys"], numbers["import_rows"]) == (2000, 50, 2000)
    ratios = numbers["ratios"]
    assert ratios["replay_over_lww"] == pytest.approx(numbers["replay_ns"] / numbers["lww_ns"])
    assert ratios["tepa_query_over_dict_get"] == pytest.approx(numbers["tepa_query_ns"] / numbers["dict_get_ns"])
    assert ratios["append_scan_over_tepa_query"] == pytest.approx(
        1000 * numbers["append_scan_query_us"] / numbers["tepa_query_ns"]
    )
    assert {keys: set(by) for keys, by in numbers["replay_ns_at"].items()} == {
        "5": {"200", "2000"},
        "50": {"200", "2000"},
    }
    growth = numbers["replay_ns_at"]["50"]["2000"] / numbers["replay_ns_at"]["50"]["200"]
    assert ratios["growth_on_50_keys"] == pytest.approx(growth)
    assert ratios["rank_over_import"] == pytest.approx(numbers["rank_s"] / numbers["import_s"])
    assert [fact.limit for fact in facts] == [0.6, 1.0, 0.5, 2.0, 0.5, 0.15, 3.0, 2.0, 2.0, 2.0, 2.0]
    assert [fact.value for fact in facts[2:5]] == [
        ratios["rank_over_import"],
        ratios["growth_of_facts"],
        numbers["surface_s"],
    ]
    assert facts[0].value == ratios["replay_over_lww"]
    assert set(numbers["explain_s_at"]) == {"20", "200", "2000"}
    growth = 200 * numbers["explain_s_at"]["2000"] / (2000 * numbers["explain_s_at"]["200"])
    assert ratios["explain_growth_to_2000_items"] == pytest.approx(growth)
    by_rule = {fact.rule: fact.value for fact in facts}
    assert by_rule["explaining 2,000 items on one key costs at most {limit:g} times as much per item as 200"] == (
        pytest.approx(growth)
    )
    asked = "explaining a value of one key with 2,000 items takes at most {limit:g} s"
    assert by_rule[asked] == numbers["explain_s_at"]["2000"]
    assert said[0] == "Compiling the rule"


def test_facts_hold_up_to_their_limit() -> None:
    assert Fact("at most {limit:g}", 0.6, 0.6).holds
    assert not Fact("at most {limit:g}", 0.61, 0.6).holds
    assert Fact("at most {limit:g}", 0.614, 0.6).sentence == "at most 0.6: measured 0.61"


def test_the_imported_file_is_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    ranked: list[str] = []

    def read(store: object, path: object) -> SimpleNamespace:
        with open(str(path), newline="", encoding="utf-8") as file:
            seen.extend(csv.reader(file))
        return SimpleNamespace(run_id="made")

    monkeypatch.setattr(module, "import_log", read)
    monkeypatch.setattr(module, "triaged", lambda store, run_id, as_of=None: ranked.append(run_id))
    assert min(module._import_seconds(drift_log(3, 2, generator()))) > 0
    assert set(ranked) == {"made"}
    assert seen[0] == ["ts", "key", "value"]
    assert [row[0] for row in seen[1:]] == ["1600000000", "1600000001", "1600000002"]


def test_the_facts_that_are_read_are_as_many_as_it_says() -> None:
    read = fact_file(module._facts(200), "made")
    assert (len(read.facts), read.unparsed) == (200, ())
    # P131 and P276 share a form, so they state of one key: 44 relations are 43 keys, with two values or with four.
    of_first = [fact for fact in read.facts if fact.subject == "Place 0"]
    assert len(of_first) == 88
    assert len({fact.key for fact in of_first}) == 43
    assert {question.subject for question in read.questions} == {"Place 0"}


@pytest.mark.parametrize(("updates", "keys"), [(0, 1), (1, 0)])
def test_a_bench_of_nothing_is_refused(updates: int, keys: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        bench(updates, keys)
