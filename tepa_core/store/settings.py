"""Named settings of the thresholds, which belong to no run."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json

from tepa_core.lifecycle import Thresholds
from tepa_core.store.connection import Store

#: Longest name of a setting, in characters.
LONGEST_NAME = 60


def settings(store: Store) -> dict[str, Thresholds]:
    """Return every saved setting by its name, in order of the names."""
    with store.read() as cursor:
        rows = cursor.execute("SELECT name, thresholds FROM setting ORDER BY lower(name), name").fetchall()
    return {name: Thresholds(**json.loads(content)) for name, content in rows}


def save_setting(store: Store, name: str, thresholds: Thresholds) -> str:
    """Keep thresholds under a name; the same name again replaces what it stood for.

    Returns
    -------
    str
        The name as it was stored: one line without spaces at its ends.

    Raises
    ------
    ValueError
        If the name is empty or too long.
    """
    name = " ".join(name.split())
    if not name:
        raise ValueError("a setting needs a name; type one")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"the name of a setting has at most {LONGEST_NAME} characters, not {len(name)}; shorten it")
    content = json.dumps(dataclasses.asdict(thresholds), sort_keys=True)
    with store.write() as cursor:
        cursor.execute("INSERT OR REPLACE INTO setting VALUES (?, ?, ?)", [name, content, dt.datetime.now(dt.UTC)])
    return name


def delete_setting(store: Store, name: str) -> bool:
    """Forget a setting; False when there is none of that name."""
    with store.write() as cursor:
        return cursor.execute("DELETE FROM setting WHERE name = ? RETURNING name", [name]).fetchone() is not None
