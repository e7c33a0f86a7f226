"""Lines of the access log: what is in them, and above all what is not."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest

from tepa_core.ui.access_log import AccessLog, log_path, shown_path


def note(where: str, path: str, **said: str) -> None:
    with closing(AccessLog(where)) as log:
        log.write(
            method=said.get("method", "GET"),
            path=path,
            status=200,
            began=time.monotonic() - 0.25,
            client=said.get("client", "127.0.0.1"),
            person=said.get("person", ""),
            why=said.get("why", ""),
        )


def written(file: Path, path: str, **said: str) -> str:
    note(str(file), path, **said)
    return file.read_text(encoding="utf-8").splitlines()[-1]


def test_a_line_says_when_who_what_and_how_it_ended(tmp_path: Path) -> None:
    line = written(tmp_path / "log", "/archive", person="0a1b2c")
    found = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 127\.0\.0\.1 0a1b2c GET /archive 200 (\d+)ms", line)
    assert found is not None
    assert int(found[1]) >= 250


def test_a_refusal_says_why(tmp_path: Path) -> None:
    assert written(tmp_path / "log", "/", why="host", client="").endswith(" refused=host")


@pytest.mark.parametrize("path", ["/media/2b4c.svg", "/_stcore/upload_file/session/file", "/base/media/2b4c.svg"])
def test_ids_that_open_something_are_left_out(path: str) -> None:
    shown = shown_path(path)
    assert shown.endswith("/...")
    assert not {"2b4c", "session/"} & {part for part in ("2b4c", "session/") if part in shown}


def test_a_path_ends_neither_its_place_nor_the_line(tmp_path: Path) -> None:
    file = tmp_path / "log"
    line = written(file, "/a b\n2026 forged \x1b[2J" + "x" * 5000, method="GET\r\n")
    assert len(file.read_text().splitlines()) == 1
    assert len(line.split(" ")) == 7
    assert "\x1b" not in line
    assert len(line) < 350


def test_the_log_stands_beside_the_database_unless_the_environment_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEPA_ACCESS_LOG", raising=False)
    assert log_path(tmp_path / "audit.duckdb") == str(tmp_path / "audit.access.log")
    monkeypatch.setenv("TEPA_ACCESS_LOG", "off")
    assert log_path(tmp_path / "audit.duckdb") == "off"


def test_off_writes_nothing_and_a_dash_to_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for where, said in (("off", ""), ("-", "GET /archive 200")):
        note(where, "/archive")
        assert said in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    note(str(tmp_path / "no folder" / "log"), "/archive")
    said = capfd.readouterr().err.splitlines()
    assert "TEPA_ACCESS_LOG" in said[0]
    assert "GET /archive 200" in said[1]


def test_a_full_disk_stops_no_request(capfd: pytest.CaptureFixture[str]) -> None:
    note("/dev/full", "/archive")
    assert capfd.readouterr().err == ""
