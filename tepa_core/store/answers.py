"""Answers of language models, kept across runs: what was paid for once is not asked again."""

from __future__ import annotations

import datetime as dt

from tepa_core.store.connection import Store


class StoredAnswers:
    """The answer cache of `tepa_core.experiment.answer_backends` in the database.

    Answers belong to no run: they stay when a run is deleted.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, model: str, prompt_digest: str) -> str | None:
        """Return the answer kept for a prompt, or None."""
        with self._store.read() as cursor:
            row = cursor.execute(
                "SELECT answer FROM answer WHERE model = ? AND prompt_digest = ?", [model, prompt_digest]
            ).fetchone()
        return None if row is None else str(row[0])

    def put(self, model: str, prompt_digest: str, answer: str) -> None:
        """Keep an answer; the first one given to a prompt stays, so that a run repeats."""
        with self._store.write() as cursor:
            cursor.execute(
                "INSERT INTO answer VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [model, prompt_digest, answer, dt.datetime.now(dt.UTC)],
            )

    def __len__(self) -> int:
        """Return the number of answers kept."""
        with self._store.read() as cursor:
            row = cursor.execute("SELECT count(*) FROM answer").fetchone()
        return int(row[0]) if row else 0
