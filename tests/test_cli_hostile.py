"""Case 51 on the command line: no text of a log moves a cursor, colours, or forges a line; JSON is left alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tepa_core import cli
from tests.hostile import EVERY, TEXTS, UNSEEN, Hostile, build

#: What acts on a terminal; a line end is judged apart.
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Hostile]:
    folder = tmp_path_factory.mktemp("hostile")
    return folder / "hostile.duckdb", build(folder / "hostile.duckdb", folder / "files")


def said(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> str:
    cli.main([*arguments, "--db", str(path)])
    out, err = capsys.readouterr()
    assert not ACTING.search(out + err), arguments
    # The part of a text behind its line end would begin a line of its own, as if the program had said it.
    assert not re.search(r"^forged", out + err, re.MULTILINE), arguments
    return out + err


def test_no_command_lets_a_text_act(capsys: pytest.CaptureFixture[str], hostile: tuple[Path, Hostile]) -> None:
    path, runs = hostile
    assert TEXTS[0] in said(capsys, path, "runs")
    listed = said(capsys, path, "precedents", runs.log)
    for shown in (r"esc\x1b[31mred\x07", r"over\u202egnp.exe", r"c1\x9b2J", r"line\nforged\rline"):
        assert shown in listed
    ledger = said(capsys, path, "ledger", runs.log)
    assert r"line\nforged\rline" in ledger
    said(capsys, path, "runs", "--search", UNSEEN[0])


@pytest.mark.parametrize("number", range(len(EVERY)))
def test_explain_decide_and_trace_show_any_text_as_typed(
    capsys: pytest.CaptureFixture[str], hostile: tuple[Path, Hostile], number: int
) -> None:
    path, runs = hostile
    explained = said(capsys, path, "explain", runs.log, runs.precedents[number])
    if number < len(TEXTS):
        assert TEXTS[number] in explained
    said(capsys, path, "trace", runs.log, "--key", EVERY[number])
    options = ("--reviewer", EVERY[number], "--reason", EVERY[number], "--dry-run")
    said(capsys, path, "decide", runs.log, runs.precedents[number], "undo", *options)


@pytest.mark.parametrize("text", EVERY)
def test_no_refusal_lets_what_was_typed_act(
    capsys: pytest.CaptureFixture[str], hostile: tuple[Path, Hostile], text: str, tmp_path: Path
) -> None:
    path, runs = hostile
    for arguments in (
        ("explain", text, "p1"),
        ("explain", runs.log, text),
        ("trace", runs.log, "--key", f"not {text}"),
        ("precedents", runs.log, "--method", text),
        ("decide", runs.log, runs.precedents[0], "reactivate", "--reviewer", "a", "--reason", "b", "--at", text),
        ("run", text),
        ("run", "controlled", "--set", f"theta_rec={text}"),
        ("import", str(tmp_path / text.replace("/", "_")), "--map", text),
        (text,),
    ):
        said(capsys, path, *arguments)


def test_json_keeps_the_text_itself(capsys: pytest.CaptureFixture[str], hostile: tuple[Path, Hostile]) -> None:
    path, runs = hostile
    assert cli.main(["precedents", runs.log, "--json", "--db", str(path)]) == 0
    out = capsys.readouterr().out
    assert not ACTING.search(out)
    assert set(EVERY) <= {row["key"] for row in json.loads(out)["precedents"]}
