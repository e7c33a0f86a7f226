"""The pages through the router, over one small database: a controlled run of six seeds and the travel log."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ElementList

from tepa_core.decisions import PROGRAM
from tepa_core.experiment import RunSpec, run
from tepa_core.logs import import_log
from tepa_core.store import PATH_VARIABLE, Store, save_run
from tepa_core.ui import boundary, cache

ROOT = Path(__file__).parents[2]
SPEC = RunSpec.build("controlled", seeds=6)

#: Opens a page with query parameters: ``open_page("explore/phases", run="...")``.
OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="session", autouse=True)
def widgets_by_name() -> Iterator[None]:
    """Let tests name a widget by the name of its value; page and kind of run, which its key has too, are theirs."""

    def named(self: ElementList[Any], key: str) -> Any:
        found = [one for one in self if f".{getattr(one, 'key', '')}".endswith(f".{key}")]
        if not found:
            raise KeyError(key)
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ElementList, "__call__", named)
        yield


@pytest.fixture(autouse=True)
def unexpected(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Exception]]:
    """Fail a test in which a page met an error that nobody foresaw; one that means to cause it clears the list."""
    met: list[Exception] = []
    logged = boundary.logged

    def kept(error: Exception, what: str) -> str:
        met.append(error)
        return logged(error, what)

    monkeypatch.setattr(boundary, "logged", kept)
    yield met
    assert not met, "".join(traceback.format_exception(met[0]))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Make the database once; return its closed file, the simulated run and the log."""
    path = tmp_path_factory.mktemp("prepared") / "pages.duckdb"
    with Store(path, PROGRAM) as store:
        log = import_log(store, ROOT / "data" / "travel_preferences.csv").run_id
        simulation = save_run(store, run(SPEC), "Six seeds")
    return path, simulation, log


@pytest.fixture(scope="session")
def shared_database(prepared: tuple[Path, str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep one copy open for all tests that only read, so that they share its cached answers."""
    path = tmp_path_factory.mktemp("shared") / "pages.duckdb"
    shutil.copy(prepared[0], path)
    yield path
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def simulation(prepared: tuple[Path, str, str]) -> str:
    """Return the id of the simulated run."""
    return prepared[1]


@pytest.fixture
def log(prepared: tuple[Path, str, str]) -> str:
    """Return the id of the imported travel log."""
    return prepared[2]


@pytest.fixture(autouse=True)
def reading(shared_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the pages to the shared database; a test that writes asks for `own_database` instead."""
    monkeypatch.setenv(PATH_VARIABLE, str(shared_database))
    monkeypatch.chdir(ROOT)
    return shared_database


@pytest.fixture
def own_database(
    reading: Path, prepared: tuple[Path, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Point the pages to a copy of the database that the test may change."""
    path = tmp_path / "own.duckdb"
    shutil.copy(prepared[0], path)
    monkeypatch.setenv(PATH_VARIABLE, str(path))
    yield path
    cache.store().close()
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def store(reading: Path) -> Store:
    """Return the open store behind the pages, to recompute from the data what they say."""
    return cache.store().acting(PROGRAM)


@pytest.fixture
def own(own_database: Path) -> Store:
    """Return the open store behind the pages, which this test may change."""
    return cache.store().acting(PROGRAM)


@pytest.fixture
def open_page() -> OpenPage:
    """Open a page through the router, as a link with query parameters does."""

    def opened(page: str, **query: str | int) -> AppTest:
        at = AppTest.from_file(ROOT / "app.py", default_timeout=60).run()
        assert not at.exception
        for name in list(at.query_params):
            del at.query_params[name]
        for name, value in query.items():
            at.query_params[name] = str(value)
        at.switch_page(f"pages/{page}.py").run()
        assert not at.exception
        return at

    return opened
