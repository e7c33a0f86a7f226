"""The launcher: one visit before it says ready, one process tree that ends when asked, refusals in a sentence."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tepa_core.store import Store
from tepa_core.ui import launch

SERVE = "import sys; from pathlib import Path; from tepa_core.ui.launch import serve; sys.exit(serve({}))"

WAITS_FOR_A_FILE = """import time
from pathlib import Path
for _ in range(2400):
    if Path(__file__).parents[2].joinpath("called_ready").exists():
        break
    time.sleep(0.05)
"""


@pytest.fixture(autouse=True)
def no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no access log in the project's folder."""
    monkeypatch.setenv("TEPA_ACCESS_LOG", "off")


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Write a two-page app with a folder named `pages`, which notes every run of its script in a file."""
    section = tmp_path / "pages" / "section"
    section.mkdir(parents=True)
    (section / "first.py").write_text("import streamlit as st\nst.write('This is the first page.')\n")
    (section / "second.py").write_text("import streamlit as st\nst.write('This is the second page.')\n")
    script = tmp_path / "app.py"
    script.write_text(
        "import os\n"
        "from pathlib import Path\n"
        "import streamlit as st\n"
        "page = st.navigation([st.Page('pages/section/first.py', default=True), st.Page('pages/section/second.py')])\n"
        "page.run()\n"
        "with Path(__file__).with_name('runs.txt').open('a') as log:\n"
        "    log.write(os.environ.get('TEPA_DB', '') + '\\n')\n"
    )
    return script


@pytest.fixture
def port() -> int:
    """Find a port that is free now."""
    with socket.socket() as probe:
        probe.bind((launch.ADDRESS, 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a command from the project's folder and end it whatever happens."""
    with subprocess.Popen(command, cwd=launch.APP.parent, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


def serving(app: Path, port: int, arguments: str = "") -> list[str]:
    return [sys.executable, "-c", SERVE.format(f"{port}, app=Path({str(app)!r}), {arguments}")]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def never(address: str) -> None:
    pytest.fail(f"{address} was called ready")


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((launch.ADDRESS, port)) == 0


def test_ready_comes_after_one_whole_run_of_the_script(app: Path, port: int) -> None:
    with running(serving(app, port, "db='some.duckdb'")) as process:
        assert first_line(process) == f"Ready: http://127.0.0.1:{port}"
        runs = app.with_name("runs.txt").read_text().splitlines()
    assert runs == [str(launch.APP.parent / "some.duckdb")]


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_an_interruption_ends_launcher_and_server(app: Path, port: int, asked: signal.Signals) -> None:
    with running(serving(app, port)) as process:
        first_line(process)
        assert answers(port)
        process.send_signal(asked)
        assert process.wait(timeout=60) == 0
    assert not answers(port)


def test_ready_is_called_with_the_address(app: Path, port: int) -> None:
    with running(serving(app, port, "ready=lambda address: print('up at', address, flush=True)")) as process:
        assert first_line(process) == f"up at http://127.0.0.1:{port}"


def test_a_first_page_slower_than_the_patience_is_ready_all_the_same(app: Path, port: int) -> None:
    # The page is over only once it has been called ready, or when nobody calls it so for two minutes.
    app.with_name("pages").joinpath("section", "first.py").write_text(WAITS_FOR_A_FILE)
    with running(serving(app, port, "patience=1")) as process:
        assert first_line(process) == f"Ready: http://127.0.0.1:{port}"
        assert not app.with_name("runs.txt").exists()
        app.with_name("called_ready").touch()


def test_a_script_that_does_not_compile_is_not_ready(app: Path, port: int) -> None:
    app.write_text("def broken(:\n")
    with pytest.raises(launch.StartError, match="does not compile"):
        launch.serve(port, app=app, ready=never)
    assert not answers(port)


def test_a_server_that_stops_while_starting_is_not_ready(tmp_path: Path, port: int) -> None:
    with pytest.raises(launch.StartError, match="stopped while it started"):
        launch.serve(port, app=tmp_path / "missing.py", ready=never)


def test_the_handler_of_sigterm_is_put_back(tmp_path: Path, port: int) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(launch.StartError):
        launch.serve(port, app=tmp_path / "missing.py", ready=never)
    assert signal.getsignal(signal.SIGTERM) is before


def children(process: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def gone(process: int) -> bool:
    """Whether a process has ended; one that waits for nobody to ask for its code has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("by_command", [False, True])
def test_a_killed_launcher_takes_the_server_with_it(app: Path, port: int, tmp_path: Path, by_command: bool) -> None:
    command = serving(app, port)
    if by_command:
        command = [sys.executable, "-m", "tepa_core", "app", "--port", str(port), "--db", str(tmp_path / "a.duckdb")]
    with running(command) as process:
        assert first_line(process) == f"Ready: http://127.0.0.1:{port}"
        below = children(process.pid)
        below += [grandchild for child in below for grandchild in children(child)]
        assert len(below) == (2 if by_command else 1)
        process.kill()
        until = time.monotonic() + 30
        while not all(map(gone, below)) and time.monotonic() < until:
            time.sleep(0.05)
        assert all(map(gone, below))
        assert not answers(port)


def test_a_second_dashboard_on_the_same_database_is_not_ready(tmp_path: Path, port: int) -> None:
    path = tmp_path / "a.duckdb"
    with Store(path):
        second = subprocess.run(
            [sys.executable, "-m", "tepa_core", "app", "--port", str(port), "--db", str(path)],
            cwd=launch.APP.parent,
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 2
    assert "Ready" not in second.stdout
    assert f"{path} is open in another process. Close the dashboard or command that uses it" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_dashboard_on_what_is_no_database_is_not_ready(tmp_path: Path, port: int) -> None:
    (tmp_path / "notes.txt").write_text("buy milk")
    refused = subprocess.run(
        [sys.executable, "-m", "tepa_core.ui.launch", "--port", str(port), "--db", str(tmp_path / "notes.txt")],
        cwd=launch.APP.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stdout == ""
    [said] = refused.stderr.splitlines()
    assert "is no DuckDB file" in said


def test_a_port_in_use_is_a_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server((launch.ADDRESS, 0)) as taken:
        port = taken.getsockname()[1]
        assert launch.main(["--port", str(port)]) == 2
    message = capfd.readouterr().err
    assert f"Port {port} is in use" in message
    assert "--port" in message
    assert "Traceback" not in message


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(launch.PortError, match=rf"^{port} is not a port"):
        launch.serve(port)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open an empty page in a browser that has never been here."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.e2e
def test_the_first_deep_link_shows_its_page_and_no_dialog(app: Path, port: int, page: Page) -> None:
    with running(serving(app, port)) as process:
        page.goto(first_line(process).removeprefix("Ready: ") + "/second")
        expect(page.get_by_text("This is the second page.")).to_be_visible(timeout=60_000)
        # In the control below the server sends the dialog before the page's text.
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_text("Page not found")).to_have_count(0)


@pytest.mark.e2e
def test_without_the_visit_the_first_deep_link_shows_the_dialog(app: Path, port: int, page: Page) -> None:
    command = [sys.executable, "-m", "streamlit", "run", str(app), f"--server.port={port}"]
    command += [f"--server.address={launch.ADDRESS}", "--server.headless=true", "--browser.gatherUsageStats=false"]
    with running(command):
        deadline = time.monotonic() + 60
        while not answers(port):
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)
        page.goto(f"http://{launch.ADDRESS}:{port}/second")
        expect(page.get_by_role("dialog")).to_contain_text("Page not found", timeout=60_000)
        expect(page.get_by_text("This is the second page.")).to_be_visible()
