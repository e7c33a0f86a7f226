"""Write ``facts_small.json`` and ``facts_small_multihop.json``: an invented world in the form of FactConsolidation.

Each key has one sentence, or two of which the one with the later number holds. Both files state the same facts; the
first asks for single keys, the second through several relations. The same seed always gives the same bytes.

Run ``python data/make_facts_small.py`` to rewrite the committed files, or add ``--to FOLDER`` to write elsewhere.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

SEED = 20260810

#: What is said of each key, from old to new. The misspelt forms are the format's own.
SENTENCES: tuple[tuple[str, ...], ...] = (
    ("The capital of Verrin is Ostmar.", "The capital of Verrin is Lindhaven."),
    ("The official language of Verrin is Verric.", "The official language of Verrin is Low Tarnic."),
    (
        "The name of the current head of state in Verrin is Ilsa Brandeker.",
        "The name of the current head of state in Verrin is Odo Merriwick.",
    ),
    ("Verrin is located in the continent of Aurelia.",),
    ("Maren Tolk is a citizen of Verrin.", "Maren Tolk is a citizen of Casteron."),
    ("Maren Tolk is employed by Halden & Co..", "Maren Tolk is employed by Quill Institute."),
    ("Maren Tolk was born in the city of Ostmar.",),
    ("Maren Tolk is married to Jory Venn.", "Maren Tolk is married to Pell Arden."),
    ("The author of The Salt Ledger is Maren Tolk.", "The author of The Salt Ledger is Edda Kroll."),
    ("The Salt Ledger was written in the language of Verric.",),
    ("Edda Kroll is famous for The Glass Ferry.", "Edda Kroll is famous for The Salt Ledger."),
    ("Edda Kroll was born in the city of Port Sable, N.H..",),
    ("Edda Kroll is married to Tam Oster.", "Edda Kroll is married to Bram Lioret."),
    ("Bram Lioret works in the field of cartography.",),
    ("Bram Lioret speaks the language of Verric.", "Bram Lioret speaks the language of Casteric."),
    (
        "The chief executive officer of Halden & Co. is Jory Venn.",
        "The chief executive officer of Halden & Co. is Suri Vale.",
    ),
    (
        "The headquarters of Halden & Co. is located in the city of Ostmar.",
        "The headquarters of Halden & Co. is located in the city of Fennick.",
    ),
    ("Halden & Co. was founded by Otto Halden.",),
    ("Halden & Co. was founded in the city of Ostmar.",),
    ("The director of Quill Institute is Anselm Roe.", "The director of Quill Institute is Nadja Birk."),
    ("Quill Institute is located in Lindhaven.",),
    ("Tidewheel was developed by Halden & Co..", "Tidewheel was developed by Quill Institute."),
    ("The company that produced Skiff 9 is Halden & Co..",),
    ("Skiff 9 was created in the country of Casteron.",),
    ("Dov Sarrin plays the position of left keeper.", "Dov Sarrin plays the position of far runner."),
    ("Dov Sarrin is associated with the sport of net-row.", "Dov Sarrin is associated with the sport of dune hurling."),
    ("The head coach of Ostmar Herons is Dov Sarrin.", "The head coach of Ostmar Herons is Lise Ambrey."),
    ("Ostmar Herons is associated with the sport of net-row.",),
    ("net-row was created in the country of Verrin.", "net-row was created in the country of Casteron."),
    ("Lise Ambrey is a citizen of Casteron.",),
    ("The capital of Casteron is Fennick.", "The capital of Casteron is Marrowgate."),
    ("Casteron is located in the continent of Boreth.",),
    (
        "Nadja Birk is affiliated with the religion of the Quiet Hour.",
        "Nadja Birk is affiliated with the religion of the Lantern Way.",
    ),
    ("The univeristy where Nadja Birk was educated is Lindhaven Polytechnic.",),
    ("Lindhaven Polytechnic is located in Lindhaven.",),
    (
        "The origianl broadcaster of Harbor Nine is Radio Ostmar.",
        "The origianl broadcaster of Harbor Nine is Tern One.",
    ),
    ("Harbor Nine was created by Pell Arden.",),
    (
        "The type of music that Pell Arden plays is tide jazz.",
        "The type of music that Pell Arden plays is kettle folk.",
    ),
    ("Pell Arden is represented by Brass Moth Records.",),
    ("The Speaker of the Verrin Council is Ivo Lantz.",),
)

#: Questions for one key, fourteen of them for a key that changed, with the right answers.
SINGLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What is the capital of Verrin?", ("Lindhaven",)),
    ("What is the official language of Verrin?", ("Low Tarnic", "Tarnic")),
    ("What is the name of the current head of state in Verrin?", ("Odo Merriwick",)),
    ("Which continent is Verrin located in?", ("Aurelia",)),
    ("What is the country of citizenship of Maren Tolk?", ("Casteron",)),
    ("Who is the employer of Maren Tolk?", ("Quill Institute",)),
    ("Who is the author of The Salt Ledger?", ("Edda Kroll",)),
    ("Which city was Edda Kroll born in?", ("Port Sable, N.H.", "Port Sable")),
    ("Who is Edda Kroll married to?", ("Bram Lioret",)),
    ("What language does Bram Lioret speak?", ("Casteric",)),
    ("Who is the chief executive officer of Halden & Co.?", ("Suri Vale",)),
    ("Which city is the headquarter of Halden & Co. located in?", ("Fennick",)),
    ("Where is Quill Institute located?", ("Lindhaven",)),
    ("Who is the developer of Tidewheel?", ("Quill Institute",)),
    ("What position does Dov Sarrin play?", ("far runner",)),
    ("Who is the head coach of Ostmar Herons?", ("Lise Ambrey",)),
    ("Which religion is Nadja Birk affiliated with?", ("Lantern Way",)),
    ("Which university was Nadja Birk educated at?", ("Lindhaven Polytechnic",)),
    ("What music label is Pell Arden represented by?", ("Brass Moth Records",)),
    ("Who is the Speaker of the Verrin Council?", ("Ivo Lantz",)),
)

#: Questions through two or three relations. The last two cannot be answered from what holds: of the first of them the
#: given answer is an overwritten value, as happens in the published files, and that of the second is stated nowhere.
MULTI_HOP: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Which country is the coach of Ostmar Herons a citizen of?", ("Casteron",)),
    ("Which language does the spouse of the author of The Salt Ledger speak?", ("Casteric",)),
    ("On which continent lies the country that net-row comes from?", ("Boreth",)),
    ("Who directs the employer of Maren Tolk?", ("Nadja Birk",)),
    ("In which city is the developer of Tidewheel located?", ("Lindhaven",)),
    ("Which music does the creator of Harbor Nine play?", ("kettle folk",)),
    ("What is the capital of the country that Lise Ambrey is a citizen of?", ("Marrowgate",)),
    ("Who leads the company that produced Skiff 9?", ("Suri Vale",)),
    ("Who is head of state in the country whose capital is Lindhaven?", ("Ilsa Brandeker",)),
    ("Which school did the founder of Halden & Co. go to?", ("Sandbar Academy",)),
)


def context(seed: int = SEED) -> str:
    """Return the numbered facts: all keys mixed, the sentences of each in their order."""
    keys = [key for key, sentences in enumerate(SENTENCES) for _ in sentences]
    order = np.random.Generator(np.random.PCG64(seed)).permutation(keys).tolist()
    left = [list(sentences) for sentences in SENTENCES]
    lines = [f"{number}. {left[key].pop(0)}" for number, key in enumerate(order)]
    return "\n".join(["Here is a list of facts:", *lines, ""])


def content(name: str, questions: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """Return one file as text."""
    document = {
        "context": context(),
        "questions": [text for text, _ in questions],
        "answers": [list(golds) for _, golds in questions],
        "metadata": {"qa_pair_ids": [f"{name}_no{number}" for number in range(len(questions))]},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent, help="folder to write to")
    folder = parser.parse_args(arguments).to
    for name, questions in (("facts_small", SINGLE), ("facts_small_multihop", MULTI_HOP)):
        (folder / f"{name}.json").write_bytes(content(name, questions).encode())


if __name__ == "__main__":
    main()
