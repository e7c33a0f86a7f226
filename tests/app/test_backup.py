"""The button that makes a backup, and what a page says when the file of the database is gone or full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

from tepa_core.store import StoreError, queries
from tepa_core.store.backup import restore
from tepa_core.store.connection import Store
from tepa_core.ui import backup_view, cache

pytestmark = pytest.mark.usefixtures("own_database")


def words(at: AppTest) -> str:
    return " ".join(str(one.value) for kind in ("error", "warning", "info", "success") for one in at.get(kind))


def test_a_backup_is_offered_and_can_be_restored(open_page: Any, simulation: str, log: str, tmp_path: Path) -> None:
    saved: list[bytes] = []
    at = open_page("data/run", run=simulation)
    with pytest.MonkeyPatch.context() as patch:
        offered = backup_view.st.download_button
        patch.setattr(
            backup_view.st,
            "download_button",
            lambda label, content, **options: (saved.append(content), offered(label, content, **options)),
        )
        at.button("make_backup").click().run()
    assert not at.exception
    [button] = at.get("download_button")[-1:]
    assert "checked: 2 runs, 0 decisions" in button.proto.label
    content = saved[-1]  # tables have downloads of their own above it
    (tmp_path / "saved.duckdb").write_bytes(content)
    restore(tmp_path / "saved.duckdb", tmp_path / "new.duckdb")
    with Store(tmp_path / "new.duckdb") as store:
        assert set(queries.runs(store)["run_id"]) == {simulation, log}


def test_every_page_says_that_the_file_is_gone_and_a_click_saves_nothing(
    open_page: Any, simulation: str, own_database: Path, tmp_path: Path
) -> None:
    at = open_page("data/run", run=simulation)
    own_database.rename(tmp_path / "moved.duckdb")
    at.text_input(f"rename_{simulation}").set_value("Another name").run()
    at.button("rename").click().run()
    assert not at.exception
    assert words(at).count("was deleted or moved while this program had it open") == 2  # the click, and the page
    assert "has its new name" not in words(at)
    assert "Six seeds" in at.sidebar.selectbox[0].options
    # The page still reads, and what is open can be saved.
    at.button("make_backup").click().run()
    assert "checked: 2 runs" in at.get("download_button")[-1].proto.label
    (tmp_path / "moved.duckdb").rename(own_database)
    at.run()
    assert "deleted or moved" not in words(at)


def test_pages_come_back_by_themselves_after_a_full_disk(open_page: Any, simulation: str) -> None:
    at = open_page("explore/overview", run=simulation)

    def full() -> None:
        with cache.store().read():
            raise duckdb.FatalException("database has been invalidated: No space left on device")

    with pytest.raises(StoreError, match="no space left"):
        full()
    at.run()
    assert not at.exception
    assert words(at).count("space") == 0
    assert at.sidebar.selectbox[0].options
