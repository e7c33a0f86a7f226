"""Whatever goes wrong on a page, a person reads what happened, what is safe and what to do, and the rest goes on."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tepa_core.decisions import PROGRAM, PermissionRefused
from tepa_core.store import PATH_VARIABLE, Store, UnknownPrecedentError, delete_run
from tepa_core.ui import cache, headline, theory_view
from tests.app.conftest import OpenPage
from tests.app.test_transitions import TITLES

ROOT = Path(__file__).parents[2]

Unexpected = list[Exception]

#: Pages that show a run; the others open whatever is chosen.
OF_A_RUN = [page for page in TITLES if page not in ("evidence/reproduction", "data/run", "data/import")]


def words(at: AppTest) -> str:
    said = [*at.error, *at.warning, *at.markdown, *at.caption, *at.success]
    return "\n".join(str(one.value) for one in said).replace("\\", "").replace("\u2060", "")


def test_a_page_that_raises_says_what_is_safe_and_leaves_the_rest(
    open_page: OpenPage,
    simulation: str,
    log: str,
    unexpected: Unexpected,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret \x1b[31m payload")

    monkeypatch.setattr(headline, "of_simulation", broken)
    with caplog.at_level(logging.ERROR):
        at = open_page("explore/overview", run=simulation)
    (error,) = at.error
    for part in ("an unexpected RuntimeError", "as they were", "choose another run", "the number"):
        assert part in error.value
    assert "payload" not in error.value
    (number,) = re.findall(r"number ([0-9a-f]{8})", error.value)
    (record,) = [one for one in caplog.records if number in one.getMessage()]
    assert "Traceback" in record.getMessage()
    assert r"secret \x1b[31m payload" in record.getMessage()
    assert "\x1b" not in record.getMessage()
    # The frame is whole, and another run and another page open from here.
    assert at.sidebar.selectbox(key="run_choice").value == simulation
    at.sidebar.selectbox(key="run_choice").set_value(log).run()
    assert not at.error
    at.switch_page("pages/explore/phases.py").run()
    assert at.title[0].value == "Phases"
    unexpected.clear()


def test_an_error_in_a_part_that_is_drawn_alone_ends_inside_it(
    open_page: OpenPage, simulation: str, unexpected: Unexpected, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lane")

    monkeypatch.setattr("tepa_core.ui.story.opening", broken)
    at = open_page("explore/overview", run=simulation)
    (error,) = at.error
    assert error.value.startswith("This part of the page could not be shown: an unexpected KeyError")
    # What stands below the part is drawn.
    assert "Where to go from here" in [one.value for one in at.subheader]
    unexpected.clear()


def test_a_click_that_raises_is_told_and_the_page_is_drawn(
    open_page: OpenPage, simulation: str, own_database: Path, unexpected: Unexpected, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("evidence/theory", run=simulation)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(theory_view.state, "choose", broken)
    at.button(key="theory_reset").click().run()
    (error,) = at.error
    assert error.value.startswith("What you clicked did not work: an unexpected ZeroDivisionError")
    assert at.subheader[-1].value == "Where to go from here"
    assert not at.exception
    at.run()
    assert not at.error
    unexpected.clear()


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (UnknownPrecedentError("the run has no precedent p1"), "Choose another memory"),
        (PermissionRefused("Your sign-in has expired."), "Your sign-in has expired."),
    ],
)
def test_what_is_foreseen_has_words_of_its_own(
    open_page: OpenPage, simulation: str, monkeypatch: pytest.MonkeyPatch, error: Exception, part: str
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(headline, "of_simulation", broken)
    at = open_page("explore/overview", run=simulation)
    assert part in words(at)
    assert "unexpected" not in words(at)


def test_a_run_that_is_deleted_elsewhere_is_said_so(
    open_page: OpenPage, simulation: str, log: str, own_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_page("explore/overview", run=log)
    asked = headline.of_log

    def deleted_meanwhile(*arguments: object) -> list[str]:
        # In the middle of the drawing, as from another tab.
        delete_run(cache.store().acting(PROGRAM), log)
        cache.forget()
        return asked(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(headline, "of_log", deleted_meanwhile)
    at.run()
    assert "This run was deleted meanwhile" in words(at)
    monkeypatch.setattr(headline, "of_log", asked)
    at.run()
    assert not at.error
    assert at.sidebar.selectbox(key="run_choice").value == simulation


FIELDS = ("spec", "thresholds", "counts", "badges")
BROKEN = ("", "{", "null", "[]", "7", '{"loaded": "many"}', '{"theta_rev": "x"}')


@pytest.fixture(scope="module")
def damaged(
    prepared: tuple[Path, str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[str, tuple[str, str]]]]:
    """A database with, beside its sound runs, one for each field of a run's row and each way to break it."""
    path = tmp_path_factory.mktemp("damaged") / "damaged.duckdb"
    path.write_bytes(prepared[0].read_bytes())
    made: dict[str, tuple[str, str]] = {}
    with Store(path, PROGRAM) as store, store.write() as cursor:
        for whole in prepared[1:]:
            for field in FIELDS:
                for number, text in enumerate(BROKEN):
                    name = f"{whole}.{field}.{number}"
                    cursor.execute(
                        f"INSERT INTO run SELECT * REPLACE ('{name}' AS run_id, '{name}' AS name, ? AS {field}, "  # noqa: S608
                        "TIMESTAMPTZ '2020-01-01 00:00:00Z' AS created_at) FROM run WHERE run_id = ?",
                        [text, whole],
                    )
                    made[name] = (field, text)
    yield path, made
    st.cache_data.clear()
    st.cache_resource.clear()


def test_no_damaged_run_keeps_a_page_from_opening(
    damaged: tuple[Path, dict[str, tuple[str, str]]], unexpected: Unexpected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(damaged[0]))
    at = AppTest.from_file(ROOT / "app.py", default_timeout=60).run()
    pages = list(TITLES)
    for number, run in enumerate(damaged[1]):
        # Each damaged run meets Run and two other pages, each page several damaged runs of every field.
        for page in ("data/run", pages[number % len(pages)], pages[(number * 3 + 1) % len(pages)]):
            at.query_params["run"] = run
            at.switch_page(f"pages/{page}.py").run()
            where = f"{page} with {run}"
            assert not at.exception, where
            assert at.title[0].value == TITLES[page], where
            assert at.sidebar.selectbox(key="run_choice").value == run, where
            if page == "data/run":
                assert at.button(key="delete_it"), where
                assert at.selectbox(key="stream_choice"), where
    unexpected.clear()


def test_run_deletes_a_damaged_run(
    damaged: tuple[Path, dict[str, tuple[str, str]]],
    tmp_path: Path,
    unexpected: Unexpected,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(damaged[0].read_bytes())
    monkeypatch.setenv(PATH_VARIABLE, str(copy))
    run = next(name for name, (field, text) in damaged[1].items() if (field, text) == ("thresholds", "{"))
    at = AppTest.from_file(ROOT / "app.py", default_timeout=60).run()
    at.query_params["run"] = run
    at.switch_page("pages/data/run.py").run()
    assert "This run cannot be read" in words(at) + at.sidebar.caption[-1].value
    at.button(key="delete_it").click().run()
    assert run not in set(cache.runs()["run_id"])
    assert not at.exception
    assert "deleted" in words(at)
    cache.store().close()
    unexpected.clear()


def test_the_sound_runs_beside_damaged_ones_are_as_before(
    damaged: tuple[Path, dict[str, tuple[str, str]]], simulation: str, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(damaged[0]))
    for page in OF_A_RUN:
        for run in (simulation, log):
            at = AppTest.from_file(ROOT / "app.py", default_timeout=60).run()
            at.query_params["run"] = run
            at.switch_page(f"pages/{page}.py").run()
            assert not at.error, (page, run)
