"""What an import claims, and what a deletion leaves, on the pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import Action, Actor, Category, Role
from tepa_core.signing import KEY_VARIABLE, own_public_key
from tepa_core.store import Store, delete_run
from tepa_core.store.archive_file import export_run
from tepa_core.store.heads import sign_heads
from tepa_core.store.ledger import decisions_of
from tepa_core.ui import who
from tests.app.test_decisions import CONVENTIONAL, OpenPage, decide, words
from tests.store.test_events import rewrite, rewritten

BOSS = "boss@house.example"


@pytest.fixture
def taken_in(open_page: OpenPage, own: Store, simulation: str, tmp_path: Path) -> AppTest:
    """Delete a run with a decision, and take it in again rewritten as somebody else's, who had signed in."""
    decide(own, simulation, 0, Action.REACTIVATE, Category.WRONG_REVOCATION)
    path = tmp_path / "run.zip"
    export_run(own, simulation, path)
    rewritten(path, reviewer=BOSS, authenticated=True)
    delete_run(own, simulation)
    at = open_page("audit/decisions")
    at.file_uploader(key="archive_file").set_value(("run.zip", path.read_bytes(), "application/zip"))
    return at.button(key="import_archive").click().run()


def test_a_rewritten_archive_is_a_claim_on_every_page(
    open_page: OpenPage,
    taken_in: AppTest,
    own: Store,
    simulation: str,
) -> None:
    (row,) = decisions_of(own, simulation)
    assert (row.reviewer, row.authenticated) == (BOSS, True)
    said = words(taken_in)
    assert "Decision 1 is claimed elsewhere, imported by" in said
    assert "the ledger here now is another one." in said
    assert f"{BOSS} (claimed elsewhere, imported by" in said
    assert "by 1 reviewer. 1 of 1 claimed elsewhere." in said
    assert "1 of these judgements came with a file, claimed elsewhere." in said
    ledger = next(frame.value for frame in taken_in.dataframe if "foreseen" in frame.value)
    assert ledger["who"].tolist() == [f"{BOSS} (claimed elsewhere)"]
    assert ledger["signed in"].iloc[0].startswith("no, claimed elsewhere, imported by")
    taken_in.button(key="verify").click().run()
    said = words(taken_in)
    assert "The ledger is as it was written: 1 decision" in said
    assert "Nobody here vouches for who took them." in said
    events = next(frame.value for frame in taken_in.dataframe if "file digest" in frame.value)
    assert events["what"].tolist() == ["run imported", "run deleted"]
    for page in ("audit/archive", "explore/lifecycle"):
        at = open_page(page, run=simulation, precedent=CONVENTIONAL, show="all", in_method="tepa", in_seed="0")
        said = words(at) + "".join(str(frame.value.to_dict()) for frame in at.dataframe)
        said += "".join(chart.proto.spec for chart in at.get("plotly_chart"))
        assert BOSS in said, page
        assert said.count(BOSS) == said.count(f"{BOSS} (claimed elsewhere"), page


def test_the_ledger_of_the_database_names_what_was_changed(
    open_page: OpenPage,
    own: Store,
    simulation: str,
    log: str,
) -> None:
    assert "No run was deleted or imported here." in words(open_page("audit/decisions", run=log))
    delete_run(own, simulation)
    assert "the chain holds" in words(open_page("audit/decisions", run=log))
    with own.write() as cursor:
        cursor.execute("UPDATE event SET who = 'nobody'")
    at = open_page("audit/decisions", run=log)
    assert "Event 1 was changed." in words(at)


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a key outside the database, which is not there yet."""
    path = tmp_path / "outside" / "signing.pem"
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


def check(at: AppTest, content: bytes) -> AppTest:
    at.file_uploader(key="heads_file").set_value(("heads.json", content, "application/json"))
    return at.button(key="check_heads").click().run()


def test_heads_are_signed_and_checked_on_the_page(open_page: OpenPage, own: Store, simulation: str, key: Path) -> None:
    decide(own, simulation, 0, Action.REACTIVATE, Category.WRONG_REVOCATION)
    at = open_page("audit/decisions", run=simulation)
    at.button(key="check_heads").click().run()
    assert "Choose a file first" in words(at)
    at.button(key="sign_heads").click().run()
    assert not at.exception
    public = own_public_key(key)
    assert public is not None
    assert f"Public key: `{public.hex()}`" in words(at)
    signed = sign_heads(own, key)
    at = check(open_page("audit/decisions", run=simulation), signed)
    assert "Every ledger still begins with what was signed" in words(at)
    assert f"Run {simulation}: the ledger still begins with the 1 decision that was signed." in words(at)
    rewrite(own, simulation, reviewer="Mallory")
    at = check(open_page("audit/decisions", run=simulation), signed)
    at.button(key="verify").click().run()
    assert "The ledger is as it was written" in words(at)
    at = check(at, signed)
    assert "1 thing that does not fit, before what does" in words(at)
    assert "decision 1 is not the one that was signed: the ledger was written anew" in words(at)
    at = check(at, b"{}")
    assert "heads.json is no file of signed heads" in words(at)
    assert not at.exception


def test_a_viewer_checks_and_signs_nothing(
    open_page: OpenPage, own: Store, log: str, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("audit/decisions", run=log)
    monkeypatch.setattr(who, "current_actor", lambda: Actor("vic@house.example", True, Role.VIEWER))
    # The role went between drawing and click.
    at.button(key="sign_heads").click().run()
    assert not key.exists()
    assert "sign_heads" not in {str(button.key) for button in at.button}
    assert "check_heads" in {str(button.key) for button in at.button}
