"""The dashboard as one server: Streamlit with the guard round it (`tepa_core.ui.guard`).

``python -m tepa_core.ui.serve app.py --server.port=8501`` serves until it is interrupted, where ``streamlit run`` would
serve without the guard. People start it by `tepa_core.ui.launch`, which also makes the first visit.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import streamlit as st
from starlette.middleware import Middleware
from streamlit.web.cli import configurator_options

from tepa_core.inert import visible
from tepa_core.store import StoreError, default_path
from tepa_core.ui import lifeline
from tepa_core.ui.access_log import AccessLog, log_path
from tepa_core.ui.database import opened
from tepa_core.ui.guard import Guard
from tepa_core.ui.launch import APP, CANNOT_OPEN
from tepa_core.ui.sign_ins import SignOuts


def dashboard(script: Path, database: Path) -> st.App:
    """Make the application.

    Parameters
    ----------
    script
        The Streamlit script to run.
    database
        Database of the dashboard; the list of sign-outs stands beside it, and by default the access log.
    """
    # Neither waits for the first script run, which makes the folder together with the database, or says why it can't.
    with suppress(OSError):
        database.parent.mkdir(parents=True, exist_ok=True)
    sign_outs = SignOuts(database.with_suffix(".signed-out.json"))
    return st.App(script, middleware=[Middleware(Guard, sign_outs=sign_outs, log=AccessLog(log_path(database)))])


@click.command()
@configurator_options
@click.option(lifeline.OPTION, is_flag=True, help="End when the standard input does.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path))
def main(script: Path, with_parent: bool, **options: Any) -> None:
    """Serve a Streamlit script until interrupted.

    Takes the options of ``streamlit run``, also from the environment (``STREAMLIT_...``).
    """
    if with_parent:
        lifeline.end_with_parent()
    given = {name.replace("_", "."): value for name, value in options.items() if value not in (None, ())}
    # Streamlit looks for .streamlit/ and static/ beside what it takes for the program.
    sys.argv = [str(script)]
    if script == APP:
        # Before anybody is served: what the first page would say, whoever starts this is told, and no port is opened.
        try:
            opened(str(default_path()))
        except StoreError as error:
            sys.stderr.write(f"{visible(str(error))}\n")
            sys.exit(CANNOT_OPEN)
    dashboard(script, default_path()).run(config=given)


if __name__ == "__main__":
    main()
