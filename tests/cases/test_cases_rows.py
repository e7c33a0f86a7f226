"""Cases 39 to 49: rows are read as what they are, in files written here and, where there are, in the shared ones."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.cli import main
from tepa_core.decisions import PROGRAM
from tepa_core.importers import ColumnMapping, EvidenceLog, ImportRefused, apply, open_log, suggest
from tepa_core.importers.identity import canonical, cleaned, skeleton
from tepa_core.logs import import_log
from tepa_core.store import Store, queries
from tests.shared_data import ABSENT

LOGS = Path(__file__).parents[2].parent / "shared" / "cases" / "logs"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "db" / "audit.duckdb", PROGRAM) as opened:
        yield opened


def shared(name: str) -> Path:
    """Return a file of the shared cases; a machine that has them not says so."""
    path = LOGS / name
    if not path.exists():
        pytest.skip(f"{name} is {ABSENT}")
    return path


def read(path: Path, **mapping: Any) -> EvidenceLog:
    table = open_log(path)
    meaning = suggest(table).updated(ColumnMapping.of(mapping.pop("columns", {}), **mapping))
    return apply(table, meaning, now=NOW)


def written(folder: Path, content: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def said(log: EvidenceLog) -> list[tuple[str, str, bool]]:
    return [(row.key, row.value, row.supports) for row in log.evidence.itertuples()]


def run_cli(capsys: pytest.CaptureFixture[str], db: Path, *arguments: object) -> tuple[int, Any, str]:
    code = main(["--db", str(db), "--json", "import", *map(str, arguments)])
    told = capsys.readouterr()
    return code, json.loads(told.out) if told.out else None, told.err


# 39 -----------------------------------------------------------------------------------------------------------------


def test_39_text_behind_a_closing_quote_costs_its_row_alone(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'ts,user,key,value\n2026-03-01,u1,drink,"\\"oat\\" milk"\n2026-03-02,u1,drink,"tea ""black"""\n'
        '2026-03-03,u1,drink,"a"b\n2026-03-04,u1,drink,5" cup\n',
    )
    log = read(path)
    assert [value for _, value, _ in said(log)] == ['tea "black"', '5" cup']
    assert log.issues["row"].tolist() == [2, 4]
    assert log.issues["reason"].str.contains("backslash").all()


def test_39_the_shared_file_is_refused_with_the_escape_named() -> None:
    with pytest.raises(ImportRefused, match=r"line 2.*backslash"):
        open_log(shared("backslash_min.csv"))


# 40 -----------------------------------------------------------------------------------------------------------------


def test_40_not_a_number_is_missing_and_the_text_stays(tmp_path: Path) -> None:
    rows = '{"ts":"2026-03-03","user":NaN,"key":"seat","value":NaN}\n{"ts":"2026-03-03","key":"seat","value":"NaN"}\n'
    log = read(written(tmp_path, rows, "log.jsonl"))
    assert said(log) == [("seat", "NaN", True)]
    assert log.issues["reason"].tolist() == ["the value is missing"]


# 41 -----------------------------------------------------------------------------------------------------------------

UPDATED = """id,user_id,key,value,created_at,updated_at,is_deleted,event
1,u1,city,Graz,2026-01-01T00:00:00-08:00,,0,ADD
1,u1,city,Wien,2026-01-01T00:00:00-08:00,2026-03-01T00:00:00-08:00,0,UPDATE
1,u1,city,Wien,2026-01-01T00:00:00-08:00,2026-04-01T00:00:00-08:00,1,DELETE
"""


def test_41_a_deletion_is_evidence_against_its_value_at_its_time(tmp_path: Path) -> None:
    log = read(written(tmp_path, UPDATED))
    assert said(log) == [("city", "Graz", True), ("city", "Wien", True), ("city", "Wien", False)]
    assert [str(at)[:10] for at in log.evidence["event_time"]] == ["2026-01-01", "2026-03-01", "2026-04-01"]
    assert log.badges["deletion"] == 1
    assert dict(log.mapping.columns)["deleted"] == "is_deleted"
    assert log.unused == ()


def test_41_an_end_of_validity_is_evidence_against_it_then(tmp_path: Path) -> None:
    row = {"key": "employer", "user": "u1", "value": "Acme", "valid_from": "2023-01-01", "valid_to": "2024-06-30"}
    row["created_at"] = "2026-05-01T08:00:00Z"
    log = read(written(tmp_path, json.dumps(row) + "\n", "log.jsonl"))
    assert said(log) == [("employer", "Acme", True), ("employer", "Acme", False)]
    assert [str(at)[:10] for at in log.evidence["event_time"]] == ["2023-01-01", "2024-06-30"]
    assert (log.read, log.loaded, log.badges["end_of_validity"]) == (1, 1, 1)
    assert log.unused == ("created_at",)


def test_41_an_end_that_lies_ahead_has_not_come(tmp_path: Path) -> None:
    log = read(written(tmp_path, "ts,key,value,valid_to\n2026-01-01,pass,gold,2027-01-01\n"))
    assert said(log) == [("pass", "gold", True)]
    assert log.badges["end_ahead"] == 1


def test_41_what_seems_to_change_the_meaning_is_asked_about(tmp_path: Path) -> None:
    path = written(tmp_path, "ts,key,value,valid_to,expired_at\n2026-01-01,k,v,2026-02-01,2026-03-01\n")
    with pytest.raises(ImportRefused, match=r"'expired_at' seems to say that something ended.*ignore expired_at"):
        read(path)
    assert read(path, ignored=["expired_at"]).unused == ("expired_at",)
    empty = written(tmp_path, "ts,key,value,valid_to,expired_at\n2026-01-01,k,v,,\n", "empty.csv")
    assert read(empty).loaded == 1


def test_41_what_held_goes_before_what_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, "created_at,valid_at,key,value\n2026-05-01,2023-09-21,k,v\n")
    assert str(read(path).evidence["event_time"].iloc[0])[:10] == "2023-09-21"


def test_41_mapping_and_unused_columns_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "when_said,slot,value,mood,ts\nx,seat,window,good,2026-01-01\n")
    code, told, _ = run_cli(capsys, tmp_path / "a.duckdb", path)
    assert code == 0
    assert told["mapping"] == {"ts": "ts", "key": "slot", "value": "value"}
    assert told["unused"] == ["when_said", "mood"]
    assert main(["--db", str(tmp_path / "a.duckdb"), "import", str(path)]) == 0
    assert "columns not used: when_said, mood" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["updated.csv", "ended.jsonl"])
def test_41_the_shared_files_lose_their_value_at_the_end(store: Store, name: str) -> None:
    found = import_log(store, shared(name))
    assert {"deletion", "end_of_validity"} & set(found.badges)


# 42 -----------------------------------------------------------------------------------------------------------------

SAME = ("window", "WINDOW", " window ", "window\u200b", "\ufeffwindow", "win\u00addow", "\uff37indow", "w\u2060indow")


@pytest.mark.parametrize("spelling", SAME)
def test_42_one_value_in_many_spellings(spelling: str) -> None:
    assert canonical(spelling) == "window"


@pytest.mark.parametrize(("a", "b"), [("\ufb01sh", "fish"), ("stra\u00dfe", "STRASSE"), ("cafe\u0301", "CAF\u00c9")])
def test_42_ligatures_and_folds_are_one(a: str, b: str) -> None:
    assert canonical(a) == canonical(b)


def test_42_users_and_keys_too(tmp_path: Path) -> None:
    rows = ["2026-03-01,u1,drink,tea", "2026-03-02,u1\u200b ,drink\u200b,tea", "2026-03-03,U1,drink,tea"]
    log = read(written(tmp_path, "\n".join(["ts,user,key,value", *rows])))
    # Case tells users apart, and says so.
    assert log.evidence["subject"].tolist() == ["u1", "u1", "U1"]
    assert log.evidence["key_id"].nunique() == 1
    assert log.badges["lookalike"] == 3


def test_42_what_only_looks_alike_is_not_merged_and_is_badged(tmp_path: Path) -> None:
    rows = ["2026-03-01,u,seat,window", "2026-03-02,u,seat,w\u0456ndow", "2026-03-03,u,seat,aisle"]
    log = read(written(tmp_path, "\n".join(["ts,user,key,value", *rows])))
    assert log.evidence["value_id"].nunique() == 3
    assert log.badges["lookalike"] == 2
    assert skeleton("007") != skeleton("7")


@given(st.text(max_size=20))
def test_42_identity_settles(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)
    assert cleaned(cleaned(text)) == cleaned(text)


# 43 -----------------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.sampled_from([("seat", "window", 1), ("seat", "window", 0), ("seat", "aisle", 1)]), min_size=2, max_size=5
    )
)
def test_43_whatever_the_order_could_decide_has_a_badge(rows: list[tuple[str, str, int]]) -> None:
    logs = []
    for order in itertools.islice(itertools.permutations(rows), 24):
        frame = pd.DataFrame(order, columns=["key", "value", "outcome"]).astype(str).assign(ts="2026-03-01")
        logs.append(_applied(frame))
    states = {tuple(sorted(_states(log).items())) for log in logs}
    badges = {log.badges.get("tied_time", 0) for log in logs}
    assert len(badges) == 1
    # Whether it is badged never depends on the order, and where the order matters it is.
    assert len(states) == 1 or badges != {0}


def _applied(frame: pd.DataFrame) -> EvidenceLog:
    from tepa_core.importers.base import ROW, Table

    table = Table("csv", frame.astype(object).assign(**{ROW: range(2, len(frame) + 2)}), (), "d" * 64)
    return apply(table, suggest(table))


def _states(log: EvidenceLog) -> dict[str, str]:
    from tepa_core.lifecycle import Thresholds, encode, replay, tables

    rows = log.evidence.assign(occurred=log.evidence["event_time"].astype("int64"))
    encoded, labels = encode(rows, time="occurred")
    thresholds = Thresholds()
    found, _ = tables(encoded, labels, replay(encoded, thresholds), thresholds)
    return dict(zip(found["value_id"], found["state"].astype(str), strict=True))


def test_43_the_shared_files_differ_and_say_so(store: Store) -> None:
    first, second = import_log(store, shared("tie_min.csv")), import_log(store, shared("tie_min_reversed.csv"))
    assert dict(first.states) != dict(second.states)
    assert (first.badges["tied_time"], second.badges["tied_time"]) == (5, 5)


# 44 -----------------------------------------------------------------------------------------------------------------


def test_44_decimals_of_one_and_nought_are_known(tmp_path: Path) -> None:
    rows = [f"2026-03-0{day},k,v,{word}" for day, word in enumerate(("1.0", "0.0", "", "1.00", "0"), start=1)]
    log = read(written(tmp_path, "\n".join(["ts,key,value,outcome", *rows])))
    assert log.evidence["supports"].tolist() == [True, False, True, True, False]


PAIRS = (("pass", "fail"), ("y", "n"), ("C", "I"), ("T", "F"), ("1", "-1"))


@pytest.mark.parametrize(("good", "bad"), PAIRS)
def test_44_words_by_a_mapping_that_is_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], good: str, bad: str
) -> None:
    path = written(tmp_path, f"ts,key,value,outcome\n2026-03-01,k,v,1\n2026-03-02,k,v,{good}\n2026-03-03,k,v,{bad}\n")
    code, told, _ = run_cli(capsys, tmp_path / "a.duckdb", path)
    assert code == 0
    reasons = " ".join(issue["reason"] for issue in told["issues"])
    assert f"{bad}=0" in reasons
    assert f"{bad!r}" in reasons
    offer = ",".join(f"{word}={int(word == good)}" for word in (good, bad) if word != "1")
    code, told, _ = run_cli(capsys, tmp_path / "a.duckdb", path, f"--outcomes={offer}")
    assert (code, told["rejected"]) == (0, 0)


def test_44_what_stays_unknown_lists_the_words_seen(tmp_path: Path) -> None:
    log = read(written(tmp_path, "ts,key,value,outcome\n2026-03-01,k,v,maybe\n2026-03-02,k,v,2\n"))
    assert log.loaded == 0
    assert all("seen: 'maybe', '2'" in reason for reason in log.issues["reason"])


# 45 -----------------------------------------------------------------------------------------------------------------


def test_45_one_item_per_observation_and_labels_are_keys(tmp_path: Path) -> None:
    lines = [
        {"name": "Ana", "entityType": "Person", "observations": ["Lives in Graz", "Likes tea"]},
        {"name": "Shop", "entityType": "Project", "observations": ["Status: proposed"], "createdAt": 1768061136},
        {"from": "Ana", "to": "Shop", "relationType": "owns"},
    ]
    log = read(written(tmp_path, "\n".join(map(json.dumps, lines)), "memory.jsonl"), order="file")
    found = log.evidence[["subject", "key_id", "value_id"]].to_numpy().tolist()
    assert found == [
        ["Ana", "lives in graz", "stated"],
        ["Ana", "likes tea", "stated"],
        ["Shop", "status", "proposed"],
        ["Ana", "owns shop", "stated"],
    ]
    assert log.badges["time_from_order"] == 4


def test_45_the_array_inside_an_object_is_found_and_named(tmp_path: Path) -> None:
    rows = [
        {"ts": "2026-03-01", "key": "seat", "value": "window"},
        {"ts": "2026-03-02", "key": "seat", "value": "aisle"},
    ]
    whole = {"exported_at": "2026-03-10", "count": 2, "memories": rows}
    table = open_log(written(tmp_path, json.dumps(whole, indent=2), "wrapped.json"))
    assert (table.format, table.inside, len(table.frame)) == ("json", "memories", 2)
    with pytest.raises(ImportRefused, match="several arrays in it: memories, others"):
        open_log(written(tmp_path, json.dumps(whole | {"others": rows}, indent=2), "two.json"))
    alone = open_log(written(tmp_path, json.dumps(rows[0], indent=2), "one.json"))
    assert alone.frame["value"].tolist() == ["window"]


def test_45_what_is_wrong_is_said_in_plain_words(tmp_path: Path) -> None:
    row = json.dumps({"ts": "2026-03-01", "key": "seat", "value": "window"})
    for content, says in (
        (f"{row},\n{row},\n", "a comma follows the object"),
        (f"{row}{row}\n", "two objects stand on one"),
    ):
        with pytest.raises(ImportRefused, match=says):
            open_log(written(tmp_path, content, "log.jsonl"))


# 46 -----------------------------------------------------------------------------------------------------------------


def test_46_names_with_dots_and_brackets_in_a_template(tmp_path: Path) -> None:
    path = written(tmp_path, "ts,user.id,slot[0],value\n2026-03-01,u1,seat,window\n")
    assert read(path, key_template="{user.id}/{slot[0]}", ignored=["user.id"]).evidence["key"].tolist() == ["u1/seat"]


@pytest.mark.parametrize(
    "content",
    [
        "ts|user|key|value\n2026-03-01|u1|seat|window\n",
        "# exported by agent\n# rows: 1\nts,user,key,value\n2026-03-01,u1,seat,window\n",
        "sep=;\nts;user;key;value\n2026-03-01;u1;seat;window\n",
        "ts,user,key,value,\n2026-03-01,u1,seat,window,\n",
    ],
    ids=["bars", "comments", "sep line", "trailing"],
)
def test_46_odd_layouts_are_read(tmp_path: Path, content: str) -> None:
    assert said(read(written(tmp_path, content))) == [("seat", "window", True)]


# 47 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["uid", "user_id", "UserID", "namespace", "account_id", "customer"])
def test_47_whose_memory_it_is_is_found(tmp_path: Path, column: str) -> None:
    log = read(written(tmp_path, f"ts,{column},key,value\n2026-03-01,a,seat,window\n2026-03-02,b,seat,aisle\n"))
    assert log.evidence["subject"].tolist() == ["a", "b"]


def test_47_users_are_never_merged_without_a_word(tmp_path: Path) -> None:
    path = written(tmp_path, "ts,end_user_hash,key,value\n2026-03-01,a,seat,window\n2026-03-02,b,seat,aisle\n")
    with pytest.raises(ImportRefused, match=r"'end_user_hash' seems to say whose memory.*user=end_user_hash"):
        read(path)
    assert read(path, columns={"user": "end_user_hash"}).evidence["subject"].tolist() == ["a", "b"]
    assert read(path, ignored=["end_user_hash"]).badges["missing_user"] == 2


def test_47_one_source_says_a_thing_once(tmp_path: Path) -> None:
    rows = [f"2026-03-0{day},u1,seat,window,m1" for day in (2, 1, 3)] + ["2026-03-04,u1,seat,aisle,m1"]
    log = read(written(tmp_path, "\n".join(["ts,user,key,value,source_ref", *rows])))
    assert [value for _, value, _ in said(log)] == ["window", "aisle"]
    assert str(log.evidence["event_time"].iloc[0])[:10] == "2026-03-01"
    assert (log.read, log.loaded, log.badges["repeated_source"]) == (4, 4, 2)


# 48 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "micros", "badge"),
    [
        ("2026/01/02", datetime(2026, 1, 2, tzinfo=UTC), "naive_time"),
        ("Mon, 02 Mar 2026 10:00:00 +0100", datetime(2026, 3, 2, 9, tzinfo=UTC), None),
        ("1768061136000001", datetime(2026, 1, 10, 16, 5, 36, 1, tzinfo=UTC), None),
        ("1768061136000001002", datetime(2026, 1, 10, 16, 5, 36, 1, tzinfo=UTC), "finer_time"),
        ("2026-01", datetime(2026, 1, 1, tzinfo=UTC), "partial_time"),
        ("1894-00-00", datetime(1894, 1, 1, tzinfo=UTC), "partial_time"),
    ],
)
def test_48_times_are_read_with_their_precision_said(
    tmp_path: Path, text: str, micros: datetime, badge: str | None
) -> None:
    log = read(written(tmp_path, f'ts,key,value\n"{text}",k,v\n'))
    assert log.evidence["event_time"].tolist() == [pd.Timestamp(micros)]
    assert badge is None or log.badges[badge] == 1


def test_48_steps_are_no_times_and_the_order_of_the_file_is_offered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "ts,key,value\n1,k,a\n2,k,b\n")
    code, _, err = run_cli(capsys, tmp_path / "a.duckdb", path)
    assert code == 2
    assert "--order file" in err
    code, told, _ = run_cli(capsys, tmp_path / "a.duckdb", path, "--order", "file")
    assert (code, told["loaded"], told["badges"]["time_from_order"]) == (0, 2, 2)


@pytest.mark.parametrize("year", ["0001", "1492", "2300", "9998"])
def test_48_far_years_work_on_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], year: str) -> None:
    rows = [f"{year}-03-{day:02d}T10:00:00Z,u1,drink,{'tea' if day < 6 else 'coffee'}" for day in range(1, 12)]
    path = written(tmp_path, "\n".join(["ts,user,key,value", *rows]))
    db = tmp_path / "a.duckdb"
    code, told, _ = run_cli(capsys, db, path)
    assert code == 0
    run_id = told["run_id"]

    def command(*arguments: str) -> Any:
        code = main(["--db", str(db), "--json", *arguments])
        out = capsys.readouterr()
        assert code == 0, out.err
        return json.loads(out.out)

    archived = command("precedents", run_id, "--state", "revoked")["precedents"][0]
    assert archived["revoked_at"].startswith(f"{year}-03-")
    command("explain", run_id, archived["id"])
    command("trace", run_id, "--key", "drink")
    decided = ("decide", run_id, archived["id"], "reactivate", "--reviewer", "ana", "--reason", "it holds")
    assert command(*decided, "--dry-run")["decision_id"] is None
    at = f"{year}-03-11T10:00:00Z"
    assert command(*decided, "--at", at)["at"].startswith(f"{year}-03-11")
    assert len(command("ledger", run_id)["decisions"]) == 1
    command("runs")


# 49 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refuted", [1, 2, 5])
def test_49_one_statement_is_believed_until_the_next(store: Store, tmp_path: Path, refuted: int) -> None:
    rows = ["2026-03-01,u1,city,Graz,1", *(f"2026-03-{day:02d},u1,city,Graz,0" for day in range(2, 2 + refuted))]
    path = written(tmp_path, "\n".join(["ts,user,key,value,outcome", *rows]))
    gone = import_log(store, path, preset="direct_facts")
    assert dict(gone.states) == {"revoked": 1}
    path = written(tmp_path, "\n".join(["ts,user,key,value,outcome", *rows, "2026-03-20,u1,city,Graz,1"]))
    back = import_log(store, path, preset="direct_facts")
    found = queries.precedents(store, back.run_id)
    assert found[["value", "state"]].to_numpy().tolist() == [["Graz", "active"]]


# 53 -----------------------------------------------------------------------------------------------------------------


def test_53_a_phase_that_comes_again_is_shaded_again(store: Store, tmp_path: Path) -> None:
    labels = ["calm"] * 4 + ["storm"] * 4 + ["calm"] * 4
    rows = [f"2026-03-{day:02d},u1,seat,window,{label}" for day, label in enumerate(labels, start=1)]
    found = import_log(store, written(tmp_path, "\n".join(["ts,user,key,value,phase", *rows])))
    phases = queries.phases(store, found.run_id)
    assert phases["phase"].tolist() == ["calm", "storm", "calm"]
    assert [str(at)[:10] for at in phases["start"]] == ["2026-03-01", "2026-03-05", "2026-03-09"]
