"""The decisions page: the ledger, its verification, agreement, undoing, redacting, and the files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import binomtest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import Action, Actor, Category, Role
from tepa_core.store import Store, delete_run, precedent_id, queries
from tepa_core.store.archive_file import export_run
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.ledger import decisions_of, verify_ledger
from tepa_core.ui import cache, who

OpenPage = Callable[..., AppTest]

BO = Actor("Bo", authenticated=False, role=Role.REVIEWER)
CONVENTIONAL = precedent_id("tepa", 0, "", "read csv", "conventional")


def words(at: AppTest) -> str:
    said = [*at.markdown, *at.text, *at.caption, *at.warning, *at.info, *at.error, *at.success]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "").replace("*", "")


def decide(store: Store, run: str, seed: int, action: Action, category: Category, why: str = "Because.") -> None:
    precedent = precedent_id("tepa", seed, "", "read csv", "conventional")
    record(store.acting(BO), DecisionRequest(run, precedent, action, category, why))


@pytest.fixture
def judged(own: Store, simulation: str) -> Store:
    """Decide on four revocations: three right, one wrong."""
    for seed in range(3):
        decide(own, simulation, seed, Action.CONFIRM, Category.OBSOLETE)
    decide(own, simulation, 3, Action.REACTIVATE, Category.WRONG_REVOCATION, "The <b>knee</b> of *Ana*")
    return own


def test_empty_ledger_says_what_decisions_are(open_page: OpenPage, log: str) -> None:
    at = open_page("audit/decisions", run=log)
    assert "Nobody has decided anything in this run." in words(at)
    at.button(key="verify").click().run()
    assert "0 decisions" in words(at)


def test_ledger_and_agreement(open_page: OpenPage, judged: Store, simulation: str) -> None:
    at = open_page("audit/decisions", run=simulation)
    assert "4 decisions in effect, by 1 reviewer." in words(at)
    ledger = next(frame.value for frame in at.dataframe if "foreseen" in frame.value)
    assert ledger["number"].tolist() == [4, 3, 2, 1]
    assert ledger["who"].unique().tolist() == ["Bo"]
    assert ledger["signed in"].unique().tolist() == ["no, typed name"]
    assert ledger["in words"].iloc[0] == "The <b>knee</b> of *Ana*"
    interval = binomtest(3, 4).proportion_ci(method="wilson")
    assert (
        f"Reviewers found 3 of 4 revocations right: 75%, 95 % interval {interval.low:.0%} to {interval.high:.0%}."
        in words(at)
    )
    assert at.query_params["decision"] == "4"


def test_effect_then_and_now(open_page: OpenPage, own: Store, simulation: str) -> None:
    request = DecisionRequest(
        simulation,
        CONVENTIONAL,
        Action.REACTIVATE,
        Category.POLICY,
        "A rule of the house.",
        effect=cache.preview_of(simulation, CONVENTIONAL, Action.REACTIVATE).effect.as_dict(),
    )
    record(own.acting(BO), request)
    points = 100 * json.loads(decisions_of(own, simulation)[0].effect)["success"]["reversal"]["difference"]
    at = open_page("audit/decisions", run=simulation)
    assert f"Foreseen when it was taken: success reversal −{-points:.1f}" in words(at)
    assert "Now, beside the other decisions: the same." in words(at)


def test_verification_names_what_was_changed(open_page: OpenPage, judged: Store, simulation: str) -> None:
    at = open_page("audit/decisions", run=simulation)
    at.button(key="verify").click().run()
    assert "The ledger is as it was written: 4 decisions" in words(at)
    with judged.write() as cursor:
        cursor.execute("UPDATE decision SET reason = 'Never mind.' WHERE number = 2")
        cursor.execute("DELETE FROM decision WHERE number = 4")
    at = open_page("audit/decisions", run=simulation)
    at.button(key="verify").click().run()
    said = words(at)
    assert "The reason of decision 2 was changed." in said
    assert "1 decision is missing at the end." in said


def test_undo_from_the_ledger(open_page: OpenPage, judged: Store, simulation: str) -> None:
    at = open_page("audit/decisions", run=simulation, decision=4)
    at.text_input(key="name_choice").set_value("Ana Lima")
    at.text_input(key="undo_reason").set_value("It did not hold.")
    at.button(key="undo_save").click().run()
    assert "Undone. In the ledger: number 5." in words(at)
    *_, undone, undo = decisions_of(judged, simulation)
    assert (undo.action, undo.undoes, undo.reviewer) == (Action.UNDO, undone.decision_id, "Ana Lima")
    assert "3 decisions in effect, by 2 reviewers; 1 undone." in words(at)
    at = open_page("audit/decisions", run=simulation, decision=4)
    assert "Undone by number 5." in words(at)
    assert not [button for button in at.button if button.key == "undo_save"]


def test_redaction_takes_two_steps(open_page: OpenPage, judged: Store, simulation: str) -> None:
    at = open_page("audit/decisions", run=simulation, decision=4)
    at.button(key="redact").click().run()
    assert decisions_of(judged, simulation)[3].reason is not None
    at.text_input(key="name_choice").set_value("Ana Lima")
    at.button(key="redact_yes").click().run()
    assert decisions_of(judged, simulation)[3].reason is None
    assert "knee" not in words(at)
    assert verify_ledger(judged, simulation).ok
    at.button(key="verify").click().run()
    assert "The reason of decision 4 was redacted." in words(at)


def test_viewer_reads_the_ledger_and_changes_nothing(
    open_page: OpenPage, judged: Store, simulation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("audit/decisions", run=simulation)
    monkeypatch.setattr(who, "current_actor", lambda: Actor("vic@house.example", True, Role.VIEWER))
    # The role went between drawing and click.
    at.text_input(key="undo_reason").set_value("No.")
    at.button(key="undo_save").click().run()
    assert len(decisions_of(judged, simulation)) == 4
    assert "Nothing was saved" in words(at)
    keys = {str(button.key) for button in at.button}
    assert not keys & {"undo_save", "redact", "import_archive"}


def test_unknown_decision_in_a_link_is_said(open_page: OpenPage, judged: Store, simulation: str) -> None:
    assert "There is no decision 99 in this run" in words(open_page("audit/decisions", run=simulation, decision=99))


def test_exported_run_is_taken_in_again(open_page: OpenPage, judged: Store, simulation: str, tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    export_run(judged, simulation, path)
    ledger = decisions_of(judged, simulation)
    before = queries.precedents(judged, simulation)
    delete_run(judged, simulation)
    at = open_page("audit/decisions")
    at.file_uploader(key="archive_file").set_value(("run.zip", path.read_bytes(), "application/zip"))
    at.button(key="import_archive").click().run()
    assert at.query_params["run"] == simulation
    assert decisions_of(judged, simulation) == ledger
    assert queries.precedents(judged, simulation).equals(before)
    assert "was taken in as run" in words(at)


def test_foreign_zip_is_refused_in_a_sentence(open_page: OpenPage, own: Store, log: str, tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("../x", "y")
    at = open_page("audit/decisions", run=log)
    at.file_uploader(key="archive_file").set_value(("other.zip", path.read_bytes(), "application/zip"))
    at.button(key="import_archive").click().run()
    (error,) = at.error
    assert "other.zip" in str(error.value).replace("\\", "").replace("\u2060", "")
    assert not at.exception
