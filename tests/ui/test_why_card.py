"""The sentences of the why card, against logs whose story is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.lifecycle import PRESETS, Thresholds
from tepa_core.logs import import_log
from tepa_core.store import KeyLife, Store, key_life
from tepa_core.ui import why_card

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(tmp_path_factory.mktemp("why") / "why.duckdb", PROGRAM) as opened:
        yield opened


@pytest.fixture(scope="module")
def italy(store: Store) -> KeyLife:
    run_id = import_log(store, ROOT / "data" / "heads_of_government.csv", preset="direct_facts").run_id
    return key_life(store, run_id, "head of government", subject="Italy")


def precedent(life: KeyLife, value: str) -> str:
    return str(life.values.loc[life.values["value"] == value, "id"].iloc[0])


def test_long_life_is_told_by_its_ends(italy: KeyLife) -> None:
    # Three cabinets apart: May 1994 to January 1995, June 2001 to May 2006, May 2008 to November 2011.
    assert why_card.history(italy, precedent(italy, "Silvio Berlusconi")) == (
        "**Silvio Berlusconi**: active since 10 May 1994, revoked 3 times in all, lately back since 8 May 2008, "
        "revoked on 16 November 2011 by the recent rule."
    )


def test_short_life_is_told_whole(italy: KeyLife) -> None:
    assert why_card.history(italy, precedent(italy, "Mario Draghi")) == (
        "**Mario Draghi**: active since 13 February 2021, revoked on 22 October 2022 by the recent rule."
    )


def test_others_are_the_latest_three_and_a_count(italy: KeyLife) -> None:
    told = why_card.others(italy, precedent(italy, "Mario Draghi"))
    assert [line.split("**")[1] for line in told[:3]] == ["Giorgia Meloni", "Giuseppe Conte", "Paolo Gentiloni"]
    assert told[3] == f"And {italy.values['value'].nunique() - 4} more values of this key."


def test_value_that_never_was_active(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "one.csv"
    log.write_text("ts,user,key,value\n2026-01-01T00:00:00Z,u,drink,tea *cold*\n", encoding="utf-8")
    life = key_life(store, import_log(store, log).run_id, "drink", subject="u")
    told = why_card.history(life, life.values["id"].iloc[0])
    assert told.startswith("**tea \\*cold\\***: never active.")


def test_rules_name_the_thresholds_of_the_run() -> None:
    th = Thresholds(theta_rec=0.5, n_rec=4, n_min=6, theta_rev=0.2)
    assert "last 4 outcomes is below 0.5" in why_card.rule_in_words("recent", th)
    assert "from 6 outcomes on, its posterior is below 0.2" in why_card.rule_in_words("posterior", th)
    assert why_card.rule_in_words("recent", PRESETS["direct_facts"]).endswith("when its latest outcome is a conflict.")
    assert "at least 1 fresh support and" in why_card.rule_in_words("promoted", PRESETS["direct_facts"])


def test_place_of_a_log_without_user(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "nobody.csv"
    log.write_text("ts,key,value\n2026-01-01T00:00:00Z,drink,tea\n", encoding="utf-8")
    assert why_card.place(key_life(store, import_log(store, log).run_id, "drink")) == "drink"
