"""The one open database of the server, apart from the questions that are asked of it.

The server opens it before it serves anybody, and the caches of the questions need a server that runs.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from tepa_core.store import Store


@st.cache_resource(show_spinner=False)
def opened(path: str) -> Store:
    """Open a database, once in this process.

    Raises
    ------
    StoreError
        If it cannot be opened; asked again, it is tried again.
    """
    return Store(Path(path))
