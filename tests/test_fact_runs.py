"""A fact file from the disk into the database: what is stored, under which clock, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import FACT_METHODS, AnswerError, FactSpec, spec_from_dict
from tepa_core.experiment.answer_backends import BASE_URL_VARIABLE, MODEL_VARIABLE
from tepa_core.fact_runs import FactFileError, planned, run_fact_file, run_facts_and_keep
from tepa_core.lifecycle import PRESETS
from tepa_core.store import Store, queries
from tepa_core.streams import read_fact_file

DATA = Path(__file__).parents[1] / "data"
SMALL = DATA / "facts_small.json"

#: Two facts on one key, one on another, numbered with gaps, and a sentence that no template fits.
NUMBERED = (
    "3. The capital of Verrin is Ostmar.\n10. It rained all week.\n"
    "70. The capital of Verrin is Lindhaven.\n900. The author of The Salt Ledger is Edda Kroll."
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "facts.duckdb", PROGRAM) as opened:
        yield opened


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    path = tmp_path / "gaps.json"
    content = {
        "context": NUMBERED,
        "questions": ["What is the capital of Verrin?", "Who is the author of The Salt Ledger?"],
        "answers": [["Lindhaven"], ["Edda Kroll"]],
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_report_says_what_was_read_and_asked(store: Store, gaps: Path) -> None:
    report = run_fact_file(store, gaps, methods=["tepa"], orders=2, name="With gaps")
    assert (report.facts, report.unparsed, report.questions) == (3, 1, 2)
    assert (report.calls, report.cache_hits) == (0, 0)
    assert report.attribution.empty
    info = queries.run_info(store, report.run_id)
    assert (info.name, info.kind, info.stream, info.source) == ("With gaps", "simulation", "facts", "gaps")
    assert info.is_facts
    assert not info.is_log
    assert info.counts == {"seeds": 2, "tasks": 2, "facts": 3}


def test_stored_spec_reads_back_as_a_fact_spec(store: Store, gaps: Path) -> None:
    report = run_fact_file(store, gaps, orders=1)
    spec = spec_from_dict(queries.run_info(store, report.run_id).spec)
    assert spec == report.spec
    assert isinstance(spec, FactSpec)
    assert spec.run_id == report.run_id


def test_clock_counts_facts_then_questions_whatever_the_numbers(store: Store, gaps: Path) -> None:
    run_id = run_fact_file(store, gaps, methods=["tepa"], orders=2).run_id
    phases = queries.phases(store, run_id)
    assert phases.to_dict("records") == [
        {"phase": "facts", "start": 0, "end": 3},
        {"phase": "questions", "start": 3, "end": 5},
    ]
    evidence = queries.lane_evidence(store, run_id, "tepa", 0)
    assert evidence["t"].tolist() == [0, 1, 2]
    assert sorted(queries.episodes(store, run_id, "tepa", 1)["t"]) == [3, 4]
    on_key = queries.evidence_of_key(store, run_id, "tepa", 0, "", "capital · Verrin")
    assert on_key["source_ref"].tolist() == ["fact 3", "fact 70"]
    fell = queries.revocations(store, run_id)
    assert fell[fell["to_state"] == "revoked"][["occurred", "value"]].values.tolist() == [[1, "Ostmar"]]


def test_same_file_again_replaces_itself(store: Store) -> None:
    first = run_fact_file(store, SMALL, orders=1).run_id
    assert run_fact_file(store, SMALL, orders=1).run_id == first
    assert queries.runs(store)["run_id"].tolist() == [first]
    assert len(queries.success_per_seed(store, first)) == 2 * len(FACT_METHODS)


def test_label_names_the_run_whatever_the_file_is_called(store: Store, tmp_path: Path) -> None:
    copy = tmp_path / "upload.json"
    copy.write_bytes(SMALL.read_bytes())
    file = read_fact_file(copy, label="../facts_small.json")
    spec = planned(file)
    assert spec == planned(read_fact_file(SMALL))
    report = run_facts_and_keep(store, file, spec)
    assert queries.run_info(store, report.run_id).source == "facts_small"
    copy.write_text("[]", encoding="utf-8")
    with pytest.raises(FactFileError, match=r"^mine\.json is an empty list"):
        read_fact_file(copy, label="mine.json")


def test_progress_reaches_the_end(store: Store) -> None:
    seen: list[float] = []
    run_fact_file(store, SMALL, methods=["tepa"], orders=1, progress=lambda done, _: seen.append(done))
    assert seen == [0.5, 1.0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"answerer": "parrot"}, "the answerer must be deterministic or chat, not 'parrot'"),
        ({"orders": 0}, "orders must be from 1 to 100, not 0"),
        ({"methods": ["tepa_full"]}, "a fact file has none"),
    ],
)
def test_settings_out_of_range_are_refused(store: Store, settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        run_fact_file(store, SMALL, **settings)  # type: ignore[arg-type]
    assert queries.runs(store).empty


def test_model_that_nobody_named_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BASE_URL_VARIABLE, raising=False)
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    with pytest.raises(AnswerError, match=f"{BASE_URL_VARIABLE} and {MODEL_VARIABLE} not set"):
        run_fact_file(store, SMALL, answerer="chat")
    assert queries.runs(store).empty


def test_model_that_is_named_is_part_of_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BASE_URL_VARIABLE, "http://127.0.0.1:9/v1")
    monkeypatch.setenv(MODEL_VARIABLE, "some-model")
    spec = planned(read_fact_file(SMALL), answerer="chat")
    assert spec.backend == "chat:some-model"
    assert spec.command().endswith("--answerer chat")


def test_missing_file_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(FactFileError, match="cannot be read"):
        run_fact_file(store, tmp_path / "nowhere.json")


def test_command_repeats_the_run() -> None:
    file = read_fact_file(SMALL)
    assert planned(file).command() == "python -m tepa_core run facts --file facts_small.json --orders 3"
    changed = planned(
        file,
        methods=["no_memory", "tepa"],
        thresholds=PRESETS["direct_facts"].changed({"theta_prop": 2}),
        orders=5,
    )
    assert changed.command() == (
        "python -m tepa_core run facts --file facts_small.json --orders 5 --methods tepa,no_memory --set theta_prop=2"
    )
