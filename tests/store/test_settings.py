"""Named settings of the thresholds: kept, replaced, forgotten, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.lifecycle import Thresholds
from tepa_core.store import Store
from tepa_core.store.settings import LONGEST_NAME, delete_setting, save_setting, settings

STRICT = Thresholds(theta_rec=0.2, n_rec=5, alpha=0.5, beta=0.5)


def test_a_setting_outlives_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with Store(path, PROGRAM) as store:
        assert settings(store) == {}
        assert save_setting(store, "  strict \n one ", STRICT) == "strict one"
    with Store(path, PROGRAM) as store:
        assert settings(store) == {"strict one": STRICT}


def test_the_same_name_stands_for_the_last_one_saved(store: Store) -> None:
    save_setting(store, "mine", STRICT)
    save_setting(store, "mine", Thresholds())
    save_setting(store, "Bold", STRICT)
    assert list(settings(store).items()) == [("Bold", STRICT), ("mine", Thresholds())]


def test_forgetting_says_whether_there_was_anything(store: Store) -> None:
    save_setting(store, "mine", STRICT)
    assert delete_setting(store, "mine") is True
    assert delete_setting(store, "mine") is False
    assert settings(store) == {}


@pytest.mark.parametrize(("name", "words"), [("  ", "needs a name"), ("x" * (LONGEST_NAME + 1), "at most 60")])
def test_a_name_that_cannot_be_is_refused(store: Store, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        save_setting(store, name, STRICT)
    assert settings(store) == {}


def test_a_name_is_text_and_nothing_else(store: Store) -> None:
    name = "'); DROP TABLE setting; --"
    save_setting(store, name, STRICT)
    assert settings(store) == {name: STRICT}
