"""Executable drift: the controlled stream with every outcome earned by reading a real file (paper section 5.1)."""

from __future__ import annotations

import dataclasses
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tepa_core.streams import file_tools
from tepa_core.streams.controlled import ControlledSpec
from tepa_core.streams.stream import TRIALS_DRAWN, Stream

_CUSTOMERS = ("Åsa Lindqvist", "Baker, Ltd", "Chen; Wu", 'D. "Dee" Ofori', "Ēvita Ozola", "Ferreira & Filhos")


@dataclass(frozen=True, slots=True)
class ExecutableSpec(ControlledSpec):
    """Parameters of the executable stream: those of `ControlledSpec`.

    The regime decides which dialect the producer of a csv file writes; the two actions are tools that read one dialect
    each. Each task's file is written once and read once by each tool, so all methods share its outcomes.
    """

    id: ClassVar[str] = "executable"
    title: ClassVar[str] = "Executable drift"

    def make(self, seed: int) -> Stream:
        """Draw one seed, write its files into a temporary folder and read them back.

        Raises
        ------
        OSError
            If the temporary folder cannot be written.
        """
        plan = ControlledSpec.make(self, seed)
        rng = np.random.Generator(np.random.PCG64([seed, 1]))
        tasks = len(plan)
        amounts = np.round(rng.random((tasks, 4)) * 1000, 2)
        customers = rng.integers(0, len(_CUSTOMERS), (tasks, 4))
        days = rng.integers(1, 29, (tasks, 4))
        trial_draw = rng.random((tasks, TRIALS_DRAWN))
        outcome = np.zeros((tasks, 2), np.bool_)
        text = np.full((tasks, 2), None, object)
        with (
            tempfile.TemporaryDirectory(prefix="tepa-executable-") as folder,
            file_tools.reader_of(Path(folder)) as connection,
        ):
            tools = file_tools.toolbox(connection)
            for t in range(tasks):
                rows = [
                    (4 * t + i, _CUSTOMERS[customers[t, i]], float(amounts[t, i]), f"2025-03-{days[t, i]:02d}")
                    for i in range(4)
                ]
                # The plan says which dialect the producer writes; whether a tool copes with it is found out below.
                family = "csv" if plan.drifting is not None and plan.drifting[t] else "json"
                path = Path(folder) / f"task-{t}.{family}"
                if family == "json":
                    file_tools.write_json(path, rows)
                else:
                    dialect = file_tools.COMMA if plan.outcome[t, 0] else file_tools.SEMICOLON
                    file_tools.write_delimited(path, rows, dialect)
                for action, readers in enumerate(tools[family]):
                    outcome[t, action], text[t, action] = file_tools.attempt(readers[t % len(readers)], path, rows)
        return dataclasses.replace(
            plan, outcome=outcome, outcome_text=text, trial_support=_trials(plan, outcome, trial_draw)
        )


def _trials(plan: Stream, outcome: npt.NDArray[np.bool_], draw: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Take as fresh tasks other tasks of the same phase and family, whose files were really read."""
    fresh = np.empty(draw.shape, np.int64)
    kind = plan.phase * 2 + (0 if plan.drifting is None else plan.drifting)
    for code in np.unique(kind):
        members = np.flatnonzero(kind == code)
        fresh[members] = members[np.floor(draw[members] * len(members)).astype(np.int64)]
    return outcome[fresh]
