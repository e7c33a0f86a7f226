"""From any page with any kind of run to any other: what one page holds never reaches another as something it is not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import FactSpec, RunSpec, run, run_facts
from tepa_core.lifecycle import PRESETS
from tepa_core.logs import import_log
from tepa_core.store import PATH_VARIABLE, Store, save_facts, save_run
from tepa_core.streams import read_fact_file

ROOT = Path(__file__).parents[2]

TITLES = {
    "explore/overview": "Overview",
    "explore/phases": "Phases",
    "explore/lifecycle": "Lifecycle",
    "explore/thresholds": "Thresholds",
    "audit/archive": "Archive",
    "audit/decisions": "Decisions",
    "evidence/reproduction": "Reproduction",
    "evidence/theory": "Theory and cost",
    "data/run": "Run",
    "data/import": "Import",
}
KINDS = ("simulation", "log", "facts")

LOG = """ts,user,key,value,outcome
2025-01-01,ana,seat,aisle,1
2025-01-02,ana,seat,aisle,1
2025-01-03,ana,seat,aisle,1
2025-02-01,ana,seat,window,1
2025-02-02,ana,seat,window,1
2025-02-03,ana,seat,window,1
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A small run of each kind."""
    folder = tmp_path_factory.mktemp("transitions")
    (folder / "log.csv").write_text(LOG, encoding="utf-8")
    methods = ("tepa", "append_only", "no_memory")
    with Store(folder / "runs.duckdb", PROGRAM) as store:
        file = read_fact_file(ROOT / "data" / "facts_small.json")
        spec = FactSpec.build(file, methods=("tepa",), thresholds=PRESETS["direct_facts"], orders=1)
        made = {
            "simulation": save_run(store, run(RunSpec.build("controlled", seeds=2, methods=methods))),
            "log": import_log(store, folder / "log.csv").run_id,
            "facts": save_facts(store, run_facts(file, spec), len(file.facts)),
        }
    yield folder / "runs.duckdb", made
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def reading(runs: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(runs[0]))
    monkeypatch.chdir(ROOT)


def tour(places: list[Any]) -> Iterator[Any]:
    """Visit places so that each follows each, itself too, once: a de Bruijn sequence of order two, closed."""
    for first in range(len(places)):
        yield places[first]
        for second in range(first + 1, len(places)):
            yield places[first]
            yield places[second]
    yield places[0]


def test_the_tour_has_every_ordered_pair_once() -> None:
    steps = list(tour(list(range(5))))
    pairs = list(pairwise(steps))
    assert sorted(pairs) == [(a, b) for a in range(5) for b in range(5)]


def step(at: AppTest, before: tuple[str, str], after: tuple[str, str], runs: dict[str, str]) -> None:
    """Go as a person does: by the menu, by the list of runs, or by a link where both change."""
    (page, kind), (old_page, old_kind) = after, before
    if page == old_page:
        at.sidebar.selectbox(key="run_choice").set_value(runs[kind]).run()
        return
    for name in list(at.query_params):
        del at.query_params[name]
    if kind != old_kind:
        at.query_params["run"] = runs[kind]
    at.switch_page(f"pages/{page}.py").run()


def meddle(at: AppTest) -> None:
    """Leave every widget of the page at another value than it had."""
    for box in at.main.selectbox:
        box.set_value(box.options[-1]) if box.proto.options and not box.format_func else None
    for slider in at.main.slider:
        if isinstance(slider.value, int):
            slider.set_value(slider.min)
    for number in at.main.number_input:
        if isinstance(number.value, int) and number.key and number.key.endswith("seeds_choice"):
            number.set_value(3)
    for text in at.main.text_input:
        if text.key and text.key.endswith(("q_choice", "find_choice")):
            text.set_value("a")
    for day in at.main.date_input:
        day.set_value("2025-02-02")
    at.run()


def judged(at: AppTest, place: tuple[str, str], after: object) -> None:
    said = f"{place} after {after}"
    assert not at.exception, f"{said}: {[one.message for one in at.exception]}"
    assert [title.value for title in at.title] == [TITLES[place[0]]], said
    assert not at.error, f"{said}: {[one.value for one in at.error]}"
    assert not at.warning, f"{said}: {[one.value for one in at.warning]}"


def test_any_page_and_run_opens_after_any_other(runs: tuple[Path, dict[str, str]]) -> None:
    places = [(page, kind) for page in TITLES for kind in KINDS]
    at = AppTest.from_file(ROOT / "app.py", default_timeout=60)
    at.query_params["run"] = runs[1]["simulation"]
    at.run()
    before, met = ("explore/overview", "simulation"), set()
    for place in tour(places):
        step(at, before, place, runs[1])
        judged(at, place, before)
        assert at.query_params["run"] in (runs[1][place[1]], [runs[1][place[1]]])
        if place not in met:
            met.add(place)
            meddle(at)
            judged(at, place, "its widgets were moved")
        before = place
    assert len(met) == len(places)
