"""Start the dashboard, and call it ready only once a page has really been shown.

``python -m tepa_core.ui.launch --port 8501 --db data/tepa.duckdb`` starts the server (`tepa_core.ui.serve`) on this
machine's loopback address. Before it prints ``Ready: http://127.0.0.1:8501`` it makes one visit of its own, over the
WebSocket a browser would use, because two things happen in the first script run of a server only:

* Streamlit takes the folder named ``pages`` for its older page mode until ``st.navigation`` has run once. A deep link
  that comes first shows a "Page not found" dialog over the right page. Asking for a page over HTTP does not help: only
  a WebSocket session runs the script.
* The caches are filled, the rule is compiled and, on a new machine, the database is made. The person who opens the
  first page does not wait for any of it.
"""

from __future__ import annotations

import argparse
import errno
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState, ContextInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tepa_core.ui import lifeline

ADDRESS = "127.0.0.1"
APP = Path(__file__).resolve().parents[2] / "app.py"
_SECONDS_TO_ANSWER = 60.0
_SECONDS_TO_END = 5.0


#: With what the server ends when the database cannot be used; it has said why.
CANNOT_OPEN = 3


class PortError(ValueError):
    """The port cannot be used; the message says which one and what to do."""


class StartError(RuntimeError):
    """The dashboard did not come up; the message says how far it got."""


class DatabaseRefused(StartError):  # noqa: N818 - it names what happened; the server has said why
    """The database cannot be used: held by another process, damaged, not writable."""


def serve(
    port: int = 8501,
    db: str | os.PathLike[str] | None = None,
    *,
    ready: Callable[[str], object] | None = None,
    app: Path = APP,
    patience: float = 120.0,
) -> int:
    """Run the dashboard until it is interrupted (Ctrl-C or SIGTERM) or ends by itself.

    Must be called from the main thread, because it takes over SIGTERM while it runs.

    Parameters
    ----------
    port : int
        Port on the loopback address, 1 to 65535.
    db : path, optional
        Database file, handed to the app as ``TEPA_DB``; by default the app decides (``TEPA_DB`` of the caller, else its
        own default).
    ready : callable, optional
        Called once with the address, after the first visit; by default it prints ``Ready: <address>``.
    app : Path
        The Streamlit script to run.
    patience : float
        Seconds the first visit may take. A page that needs longer is called ready all the same: its navigation has long
        run by then, and it goes on working.

    Returns
    -------
    int
        0 after an interruption, else the exit code of the server.

    Raises
    ------
    PortError
        If the port is taken or not allowed.
    StartError
        If the server stops or does not answer, or if the script does not compile.
    DatabaseRefused
        If the database cannot be used. The server has written the reason to stderr.
    """
    _check_port(port)
    environment = dict(os.environ)
    if db is not None:
        environment["TEPA_DB"] = str(Path(db).resolve())
    command = [sys.executable, "-m", "tepa_core.ui.serve", lifeline.OPTION, str(app)]
    command += [f"--server.address={ADDRESS}", f"--server.port={port}", "--server.headless=true"]
    # Streamlit's own greeting names the address before the first visit is over.
    command += ["--browser.gatherUsageStats=false", "--logger.hideWelcomeMessage=true"]
    # An app without that folder would be told off on stdout, which is for the address.
    command.append(f"--server.enableStaticServing={str((app.parent / 'static').is_dir()).lower()}")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = None
    try:
        # The command is built here, without a shell. The pipe ends the server with this process, should it be killed.
        server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)  # noqa: S603
        _wait_for_answer(server, port)
        _visit(server, port, patience)
        (ready or _announce)(f"http://{ADDRESS}:{port}")
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        if server is not None:
            _end(server)
        signal.signal(signal.SIGTERM, before)


def _announce(address: str) -> None:
    sys.stdout.write(f"Ready: {address}\n")
    sys.stdout.flush()


def _check_port(port: int) -> None:
    if not 1 <= port <= 65535:
        raise PortError(f"{port} is not a port: choose one from 1 to 65535 with --port.")
    with socket.socket() as probe:
        if os.name == "posix":
            # As the server does it: a port left in TIME_WAIT by the run before is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            if error.errno == errno.EACCES:
                raise PortError(f"Port {port} needs administrator rights: choose a higher one with --port.") from error
            other = port + 1 if port < 65535 else port - 1
            raise PortError(
                f"Port {port} is in use, perhaps by a dashboard that still runs: "
                f"stop that, or choose another port with --port {other}."
            ) from error


def _wait_for_answer(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _SECONDS_TO_ANSWER
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise _stopped(server)
        connection = http.client.HTTPConnection(ADDRESS, port, timeout=2)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/_stcore/health")
            if connection.getresponse().status == http.HTTPStatus.OK:
                connection.close()
                return
        connection.close()
        time.sleep(0.1)
    raise StartError(f"The dashboard did not answer on port {port} within {_SECONDS_TO_ANSWER:.0f} s: start it again.")


def _visit(server: subprocess.Popen[bytes], port: int, patience: float) -> None:
    """Run the script once as a browser session would, and wait until that run is over."""
    context = ContextInfo(timezone="UTC", locale="en", url=f"http://{ADDRESS}:{port}/")
    request = BackMsg(rerun_script=ClientState(context_info=context))
    deadline = time.monotonic() + patience
    try:
        with connect(
            f"ws://{ADDRESS}:{port}/_stcore/stream",
            subprotocols=[Subprotocol("streamlit")],
            proxy=None,  # a proxy named in the environment does not know this machine's loopback
            open_timeout=patience,
            max_size=None,  # a figure may be larger than the library's limit of 1 MiB
        ) as session:
            session.send(request.SerializeToString())
            while True:
                answer = session.recv(timeout=max(deadline - time.monotonic(), 0.0), decode=False)
                message = ForwardMsg.FromString(answer)
                if message.WhichOneof("type") != "script_finished":
                    continue
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    raise StartError("The app's script does not compile; the line is named in the log above.")
                if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    return
    except TimeoutError:
        return
    except (OSError, ConnectionClosed) as error:
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=_SECONDS_TO_END)
            raise _stopped(server) from error
        raise StartError(f"The dashboard on port {port} broke off its first page; see the log above.") from error


def _stopped(server: subprocess.Popen[bytes]) -> StartError:
    if server.returncode == CANNOT_OPEN:
        return DatabaseRefused("The database cannot be used; the reason stands above.")
    return StartError(f"The dashboard stopped while it started (exit code {server.returncode}); see the log above.")


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ask the server to end, and make it end when it does not."""
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(timeout=_SECONDS_TO_END)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()
        server.wait()
    finally:
        if server.stdin is not None:
            server.stdin.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line, serve, and turn a refusal into one sentence on stderr.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program name; by default those of the process.

    Returns
    -------
    int
        Exit code: 0 done, 1 the dashboard did not start or failed, 2 bad usage, or a database that cannot be used.
    """
    parser = argparse.ArgumentParser(prog="python -m tepa_core app", description="Start the dashboard.")
    parser.add_argument("--port", type=int, default=8501, help="port on 127.0.0.1 (default 8501)")
    parser.add_argument("--db", type=Path, help="database file (default: TEPA_DB, else data/tepa.duckdb)")
    parser.add_argument(lifeline.OPTION, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.with_parent:
        lifeline.end_with_parent()
    try:
        return serve(options.port, options.db)
    except DatabaseRefused:
        return 2
    except (PortError, StartError) as error:
        sys.stderr.write(f"{error}\n")
        return 2 if isinstance(error, PortError) else 1


if __name__ == "__main__":
    sys.exit(main())
