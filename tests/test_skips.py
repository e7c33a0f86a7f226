"""Where CI is set a test is not skipped unseen; a published set that is not handed on may be absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TESTS = """
import pytest
from tests import shared_data

@pytest.mark.skipif(True, reason="no browser here")
def test_needs_a_browser():
    pass

def test_says_so_itself():
    pytest.skip("no server here")

@shared_data.needs("no/such/set.json")
def test_needs_a_published_set():
    pass

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""

MODULE = """
import pytest
pytest.importorskip("no_such_package_at_all")
"""


def outcomes(folder: Path, ci: str | None) -> tuple[int, str]:
    """Run two files of tests that skip, under the conftest of this project."""
    (folder / "test_two.py").write_text(TESTS)
    (folder / "test_whole.py").write_text(MODULE)
    environment = {name: value for name, value in os.environ.items() if name != "CI" and "XDIST" not in name}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", str(folder)]
    command += ["--continue-on-collection-errors", "--rootdir", str(folder), "-c", os.devnull]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment | ({"CI": ci} if ci else {}) | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_skip_fails_where_everything_is_installed(tmp_path: Path) -> None:
    code, said = outcomes(tmp_path, "true")
    assert code != 0
    assert "no browser here" in said
    assert "no server here" in said
    assert "no_such_package_at_all" in said
    assert "nothing may be" in said
    assert "1 failed, 1 skipped, 1 xfailed, 2 errors" in said


def test_elsewhere_it_is_a_skip(tmp_path: Path) -> None:
    code, said = outcomes(tmp_path, None)
    assert code == 0
    assert "4 skipped, 1 xfailed" in said


@pytest.mark.parametrize("part", ["export CI=true", "make check", "make test"])
def test_ci_runs_everything_with_skips_forbidden(part: str) -> None:
    assert part in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
