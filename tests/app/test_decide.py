"""Deciding on the archive page: the preview, saving, refusing, undoing, batches, and who may."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import Action, Actor, Category, Role
from tepa_core.experiment import Override, RunSpec, play
from tepa_core.experiment.run import setting
from tepa_core.lifecycle import Verdict
from tepa_core.methods import METHODS
from tepa_core.store import Store, precedent_id, queries
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.ledger import decisions_of, verify_ledger
from tepa_core.ui import cache, who

OpenPage = Callable[..., AppTest]

CONVENTIONAL = precedent_id("tepa", 0, "", "read csv", "conventional")
BO = Actor("Bo", authenticated=False, role=Role.REVIEWER)
DERIVED = ("precedent", "transition", "episode", "evidence", "trial")


def words(at: AppTest) -> str:
    said = [*at.markdown, *at.text, *at.caption, *at.warning, *at.info, *at.error, *at.success]
    return "\n".join(str(element.value) for element in said).replace("\\", "").replace("\u2060", "")


def save(at: AppTest, name: str = "Ana Lima", why: str = "The knee is fine.") -> AppTest:
    if name:
        at.text_input(key="name_choice").set_value(name)
    at.text_area(key="reason_choice").set_value(why)
    return at.button(key="decide_save").click().run()


def everything(store: Store, run: str) -> dict[str, pd.DataFrame]:
    """All that decisions change, as stored."""
    with store.read() as cursor:
        return {
            table: cursor.execute(f"SELECT * FROM {table} WHERE run_id = ? ORDER BY ALL", [run]).df()  # noqa: S608
            for table in DERIVED
        }


def reversal_success(store: Store, run: str, overrides: list[Override]) -> float:
    """Let the agent play seed 0 and return its success in reversal."""
    spec = RunSpec.from_dict(queries.run_info(store, run).spec)
    stream = spec.stream_spec.make(0)
    played = play(stream, METHODS["tepa"].make(setting(spec, stream)), overrides)
    return float(np.mean(played.success[stream.phase == list(stream.phase_names).index("reversal")]))


def test_preview_says_what_reactivating_costs_before_it_is_saved(
    open_page: OpenPage, store: Store, simulation: str
) -> None:
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="reactivate")
    stream = RunSpec.from_dict(queries.run_info(store, simulation).spec).stream_spec.make(0)
    key, value = stream.keys.index("read csv"), stream.values.index("conventional")
    without = reversal_success(store, simulation, [])
    with_it = reversal_success(store, simulation, [Override(81, key, value, Verdict.REACTIVATE)])
    assert with_it < without
    assert at.selectbox(key="when_choice").value == "fall"
    points = 100 * (without - with_it)
    assert (
        f"It lowers success in reversal of seed 0 from {without:.3f} to {with_it:.3f}, by {points:.1f} points"
        in words(at)
    )
    metrics = {(one.label, one.value) for one in at.metric}
    assert ("Success as it is", f"{without:.3f}") in metrics
    assert ("With it", f"{with_it:.3f}") in metrics
    # Without and with, one above the other on one axis.
    figures = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    assert len(figures) == 2
    assert figures[0]["layout"]["xaxis"]["range"] == figures[1]["layout"]["xaxis"]["range"]
    assert any(shape.get("name") == "difference" for shape in figures[0]["layout"]["shapes"])
    assert not decisions_of(store, simulation)


def test_pinning_costs_more_and_every_seed_has_an_interval(open_page: OpenPage, store: Store, simulation: str) -> None:
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="reactivate", pin=1)
    stream = RunSpec.from_dict(queries.run_info(store, simulation).spec).stream_spec.make(0)
    key, value = stream.keys.index("read csv"), stream.values.index("conventional")
    pinned = reversal_success(store, simulation, [Override(81, key, value, Verdict.PIN)])
    assert f"to {pinned:.3f}, by" in words(at)
    assert pinned < reversal_success(store, simulation, [Override(81, key, value, Verdict.REACTIVATE)])
    at.toggle(key="every_choice").set_value(True).run()
    assert at.query_params["every"] == "1"
    assert "means of all 6 seeds with 95 % bootstrap intervals" in words(at)
    assert any("[" in str(one.delta) for one in at.metric)


def test_saving_writes_one_row_and_the_life_changes(open_page: OpenPage, own: Store, simulation: str) -> None:
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="reactivate")
    save(at)
    assert "Reactivated: conventional. In the ledger: number 1." in words(at)
    (decision,) = decisions_of(own, simulation)
    assert (decision.precedent_id, decision.action, decision.reviewer) == (CONVENTIONAL, Action.REACTIVATE, "Ana Lima")
    assert (decision.authenticated, decision.reason, decision.effective_at) == (False, "The knee is fine.", 81)
    assert json.loads(decision.effect)["success"]["reversal"]["difference"] < 0
    assert verify_ledger(own, simulation).ok
    assert "decided" in set(queries.transitions(own, simulation, CONVENTIONAL)["rule"])
    # The memory stays open, the form is closed, and the page says who decided.
    assert at.query_params["precedent"] == CONVENTIONAL
    assert "verb" not in at.query_params
    assert "Reactivated by Ana Lima (not authenticated) on" in words(at).replace("*", "")
    # Opening the page again does not save again.
    again = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL)
    assert not again.success
    assert len(decisions_of(own, simulation)) == 1


def test_undo_gives_back_the_exact_state(open_page: OpenPage, own: Store, simulation: str) -> None:
    before = everything(own, simulation)
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="reactivate", pin=1)
    save(at)
    assert not everything(own, simulation)["episode"].equals(before["episode"])
    at.button(key="verb_undo").click().run()
    assert "Takes back number 1 by Ana Lima" in words(at)
    save(at, name="", why="Too early.")
    assert "Undone: conventional. In the ledger: number 2." in words(at)
    after = everything(own, simulation)
    for table, frame in before.items():
        pd.testing.assert_frame_equal(after[table], frame)
    first, second = decisions_of(own, simulation)
    assert second.undoes == first.decision_id
    # The undone one is still told.
    assert "Undone by number 2." in words(at)


def test_second_reviewer_is_refused_with_what_changed(open_page: OpenPage, own: Store, simulation: str) -> None:
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="reactivate")
    record(
        own.acting(BO), DecisionRequest(simulation, CONVENTIONAL, Action.CONFIRM, Category.OBSOLETE, "It was right.")
    )
    save(at)
    (error,) = at.error
    assert "Bo confirmed the revocation of it at" in str(error.value).replace("\\", "")
    assert [one.reviewer for one in decisions_of(own, simulation)] == ["Bo"]
    # Nothing can be saved that was not looked at again; the words are not lost.
    assert "verb" not in at.query_params
    at.button(key="look_again").click().run()
    assert at.text_area(key="reason_choice").value == "The knee is fine."
    save(at)
    assert [one.reviewer for one in decisions_of(own, simulation)] == ["Bo", "Ana Lima"]


@pytest.mark.parametrize(("name", "why", "said"), [("", "x", "needs the name"), ("Ana", "", "needs a reason")])
def test_name_and_reason_are_asked_for(
    open_page: OpenPage, own: Store, simulation: str, name: str, why: str, said: str
) -> None:
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="confirm")
    save(at, name, why)
    assert said in words(at)
    assert not decisions_of(own, simulation)
    assert at.query_params["verb"] == "confirm"


def test_viewer_sees_no_verbs(open_page: OpenPage, simulation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(who, "current_actor", lambda: Actor("vic@house.example", True, Role.VIEWER))
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="reactivate")
    assert "you may look, and reviewers decide" in words(at)
    assert not [button for button in at.button if str(button.key).startswith(("verb_", "decide_"))]


def test_role_that_went_between_drawing_and_click_decides_nothing(
    open_page: OpenPage, own: Store, simulation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="reactivate")
    monkeypatch.setattr(who, "current_actor", lambda: Actor("vic@house.example", True, Role.VIEWER))
    save(at)
    assert "Nothing was saved." in words(at)
    assert not decisions_of(own, simulation)


def test_batch_gets_one_reason_and_a_row_each(open_page: OpenPage, own: Store, log: str) -> None:
    # On 12 June 2025 eight memories of the travel log fell at one instant (README of the data); all came back later.
    at = open_page("audit/archive", run=log, as_of="2025-06-12", fell="batch", verb="reactivate")
    assert len(next(frame.value for frame in at.dataframe if "would_prevent" in frame.value)) == 8
    batch = next(box for box in at.checkbox if "7 others that fell at the same instant" in box.label)
    batch.set_value(True).run()
    assert at.button(key="decide_save").label == "Save 8 decisions"
    save(at, why="A job that renamed languages.")
    rows = decisions_of(own, log)
    assert [one.number for one in rows] == list(range(1, 9))
    assert len({one.precedent_id for one in rows}) == 8
    assert {one.reason for one in rows} == {"A job that renamed languages."}
    assert all(json.loads(one.effect)["transitions_changed"] > 0 for one in rows)
    assert verify_ledger(own, log).ok


def test_archive_as_of_a_moment(open_page: OpenPage, store: Store, simulation: str) -> None:
    at = open_page("audit/archive", run=simulation, in_seed=0, as_of=100)
    assert "At task 100: 1 memory is in the archive." in words(at)
    listed = next(frame.value for frame in at.dataframe if "would_prevent" in frame.value)
    falls = queries.lane_transitions(store, simulation, "tepa", 0)
    falls = falls[(falls["to_state"] == "revoked") & (falls["occurred"] <= 100)]
    assert listed["value"].tolist() == ["conventional"]
    assert listed["revoked_at"].tolist() == falls["occurred"].tolist()
    # What happened later is not known then: no support of it came between its fall and task 100.
    assert listed["supports_since"].tolist() == [0]


def test_date_that_is_none_is_said(open_page: OpenPage, log: str) -> None:
    assert "yesterday is no date" in words(open_page("audit/archive", run=log, as_of="yesterday"))


def test_confirmed_and_asserted_again_returns_to_the_queue(open_page: OpenPage, own: Store, log: str) -> None:
    # u-mara's window seat fell on 16 July 2025 and fresh supports brought it back on 17 October.
    window = queries.precedents(own, log, subject="u-mara", key="seat").set_index("value").loc["window", "id"]
    at = open_page("audit/archive", run=log, show="all", precedent=window, verb="confirm", when="fall")
    assert "keeps window from coming back on 17 October 2025" in words(at)
    save(at, why="Her knee.")
    assert queries.precedents(own, log).set_index("id").loc[window, "state"] == "revoked"
    at = open_page("audit/archive", run=log, show="all", review="reasserted")
    listed = next(frame.value for frame in at.dataframe if "would_prevent" in frame.value)
    assert listed[["subject", "value"]].to_numpy().tolist() == [["u-mara", "window"]]
    assert listed["review"].iloc[0].startswith("confirmed by Ana Lima, re-asserted")


def test_both_valid_ends_the_conflict(open_page: OpenPage, own: Store, log: str) -> None:
    seat = queries.precedents(own, log, subject="u-mara", key="seat").set_index("value")
    gone = seat.index[seat["state"] == "revoked"][0]
    at = open_page("audit/archive", run=log, show="all", precedent=seat.loc[gone, "id"], verb="both_valid")
    save(at, why="Window by day, aisle by night.")
    after = queries.precedents(own, log, subject="u-mara", key="seat").set_index("value")["state"]
    assert after[gone] in ("active", "deprecated")
    assert sorted(value for value, state in after.items() if state in ("active", "deprecated")) == sorted(
        {gone, *seat.index[seat["state"].isin(["active", "deprecated"])]}
    )


def test_unknown_verb_in_a_link_opens_nothing(open_page: OpenPage, simulation: str) -> None:
    at = open_page("audit/archive", run=simulation, show="all", precedent=CONVENTIONAL, verb="explode")
    assert not [button for button in at.button if button.key == "decide_save"]
    assert "verb" not in at.query_params


def test_preview_beside_a_decision_that_stands(open_page: OpenPage, own: Store, log: str) -> None:
    seat = queries.precedents(own, log, subject="u-mara", key="seat").set_index("value")
    aisle = seat.loc["aisle", "id"]
    record(own.acting(BO), DecisionRequest(log, aisle, Action.CONFIRM, Category.OBSOLETE, "It was right."))
    at = open_page("audit/archive", run=log, show="all", precedent=aisle, verb="reactivate")
    assert "Active again, aisle would have stood" in words(at)


def test_as_of_a_day_names_the_day(open_page: OpenPage, log: str) -> None:
    assert "On 12 June 2025: 19 memories are in the archive" in words(
        open_page("audit/archive", run=log, as_of="2025-06-12")
    )


def test_every_page_shows_the_life_after_the_decision(open_page: OpenPage, own: Store, simulation: str) -> None:
    record(
        own.acting(BO),
        DecisionRequest(
            simulation, CONVENTIONAL, Action.REACTIVATE, Category.POLICY, "A rule of the house.", pinned=True
        ),
    )
    at = open_page("explore/lifecycle", run=simulation, precedent=CONVENTIONAL)
    assert "back since task 81 by decision" in words(at)
    figure = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert any(note.get("name") == "decision" for note in figure["layout"]["annotations"])
    decided = next(
        step for step in queries.transitions(own, simulation, CONVENTIONAL).itertuples() if step.rule == "decided"
    )
    at = open_page("explore/lifecycle", run=simulation, precedent=CONVENTIONAL, transition=decided.transition_id)
    assert "Made active again at task 81 by a decision of Bo" in words(at)
    means = cache.success(simulation).set_index(["method", "phase"])["mean"]
    by_hand = queries.episodes(own, simulation, "tepa")
    by_hand = by_hand[by_hand["phase"] == "reversal"]["success"].mean()
    assert means["tepa", "reversal"] == pytest.approx(by_hand)
