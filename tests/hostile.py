"""Texts that would do something where they are obeyed, and a database that has them in every field that takes text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tepa_core.decisions import Action, Actor, Category, Role
from tepa_core.experiment import FactSpec, RunSpec, run, run_facts
from tepa_core.lifecycle import PRESETS
from tepa_core.logs import import_log
from tepa_core.store import Store, queries, save_facts, save_run
from tepa_core.store.decide import DecisionRequest, record
from tepa_core.store.settings import save_setting
from tepa_core.streams import read_fact_file

#: Each would fetch, link, draw, colour, turn or forge something. No two blanks stand together, so that a page which
#: joins blanks shows each as it is written here.
TEXTS: tuple[str, ...] = (
    "![x](http://127.0.0.1:1/p.png)",
    "[k](http://e.example)",
    ":material/home: :red[x]",
    "$x^2$ and $$y$$",
    "<b>bold</b><img src=http://127.0.0.1:1/q.png>",
    "# h",
    "| a | b |",
    "`code` **strong** _soft_",
    "javascript:alert(1) <a href=javascript:alert(1)>",
    "www.e.example http://e.example a@e.example",
    "- [ ] item :smile: :+1:",
    "\u05de\u05e4\u05ea\u05d7 3 \u05e9\u05dc\u05d9",
)
#: And those with characters that nobody sees; a page and a terminal write them out.
UNSEEN: tuple[str, ...] = ("esc\x1b[31mred\x07", "over\u202egnp.exe", "c1\x9b2J", "line\nforged\rline")

EVERY = (*TEXTS, *UNSEEN)

#: What is left of one of them when it is obeyed, once everything behind a backslash is taken away.
OBEYED = (
    "](", "![", ":material/home", ":red[", "$x", "$$y", "<b>", "<img", "# h", "| a", "`code", "**strong", "_soft",
    "javascript:a", "http://", "www.e", "a@e", ":smile:", ":+1:",
    "\x1b", "\x07", "\u202e", "\x9b", "line\nforged", "forged\r",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hostile:
    """The runs of a hostile database, and the ids of the log's revoked precedents by the number of their text."""

    simulation: str
    log: str
    facts: str
    precedents: tuple[str, ...]


def shifted(number: int, by: int) -> str:
    """Return the text that a field holds where the key holds the one of this number."""
    return EVERY[(number + by) % len(EVERY)]


def log_rows() -> list[dict[str, object]]:
    """Per text one user, whose value is supported three times, refuted twice and replaced."""
    rows: list[dict[str, object]] = []
    for number in range(len(EVERY)):
        value, other = shifted(number, 1), shifted(number, 2)
        course = [(value, 1)] * 3 + [(value, 0)] * 2 + [(other, 1)] * 3
        for step, (said, outcome) in enumerate(course):
            rows.append(
                {
                    "ts": f"2025-{1 + number // 2:02d}-{1 + 14 * (number % 2):02d}T{8 + step:02d}:00:00Z",
                    "user": shifted(number, 3),
                    "key": EVERY[number],
                    "value": said,
                    "outcome": outcome,
                    "text": shifted(number, 4),
                    "phase": shifted(number, 5),
                    "actor": shifted(number, 6),
                    "source_ref": f"{shifted(number, 7)} {number}.{step}",
                }
            )
    return rows


def build(path: Path, folder: Path) -> Hostile:
    """Write the database; ``folder`` is for the files that it is read from."""
    folder.mkdir(parents=True, exist_ok=True)
    log_file = folder / "log.jsonl"
    log_file.write_text("".join(json.dumps(row) + "\n" for row in log_rows()), encoding="utf-8")
    content = json.loads((Path(__file__).parents[1] / "data" / "facts_small.json").read_text("utf-8"))
    for name, text in zip(("Skiff 9", "Verrin", "Jory Venn", "Maren Tolk", "Edda Kroll"), TEXTS, strict=False):
        content = json.loads(json.dumps(content).replace(name, json.dumps(text)[1:-1]))
    fact_file = folder / "facts.json"
    fact_file.write_text(json.dumps(content), encoding="utf-8")
    with Store(path, Actor(TEXTS[0], authenticated=False, role=Role.REVIEWER)) as store:
        log = import_log(store, log_file, name=TEXTS[0], source=TEXTS[1]).run_id
        simulation = save_run(store, run(RunSpec.build("controlled", seeds=2)), TEXTS[2])
        file = read_fact_file(fact_file, label=TEXTS[4])
        spec = FactSpec.build(file, methods=("tepa",), thresholds=PRESETS["direct_facts"], orders=1)
        facts = save_facts(store, run_facts(file, spec), len(file.facts), TEXTS[3])
        save_setting(store, TEXTS[0], PRESETS["direct_facts"])
        gone = queries.precedents(store, log, state="revoked").set_index("key")["id"]
        known = {row["key"]: str(row["id"]) for row in gone.reset_index().to_dict("records")}
        precedents = tuple(known[text] for text in EVERY)
        for number, precedent in enumerate(precedents):
            reviewer = Actor(shifted(number, 8), authenticated=False, role=Role.REVIEWER)
            record(
                store.acting(reviewer),
                DecisionRequest(log, precedent, Action.CONFIRM, Category.OBSOLETE, shifted(number, 9)),
            )
    return Hostile(simulation, log, facts, precedents)
