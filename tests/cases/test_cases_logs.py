"""Small cases that must hold, from a file on disk to the explanation of one precedent."""

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tepa_core.decisions import PROGRAM
from tepa_core.importers import ColumnMapping, ImportRefused
from tepa_core.lifecycle import Thresholds
from tepa_core.logs import ImportReport, import_log
from tepa_core.store import Store, explanation, key_life, queries

START = pd.Timestamp("2026-03-01T00:00:00Z")


def minute(n: int) -> str:
    return (START + pd.Timedelta(minutes=n)).isoformat()


@dataclass(frozen=True)
class Life:
    """What is known of the precedents after an import."""

    store: Store
    report: ImportReport

    @property
    def all(self) -> pd.DataFrame:
        return queries.precedents(self.store, self.report.run_id)

    def of(self, value: str, user: str | None = None) -> Any:
        rows = self.all
        rows = rows[(rows["value"] == value) & ((rows["subject"] == user) if user else True)]
        assert len(rows) == 1, rows
        return rows.iloc[0]

    def told(self, value: str, user: str | None = None) -> dict[str, Any]:
        told = explanation(self.store, self.report.run_id, self.of(value, user)["id"])
        parsed: dict[str, Any] = json.loads(json.dumps(told, allow_nan=False))
        assert parsed == told
        return parsed

    def transitions(self) -> pd.DataFrame:
        """Every transition of the run without the numbers of rows, which alone may depend on the order of a file."""
        with self.store.read() as cursor:
            return cursor.execute(
                "SELECT * EXCLUDE (run_id, seq) FROM transition WHERE run_id = ? ORDER BY precedent_id, number",
                [self.report.run_id],
            ).df()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "db" / "audit.duckdb", PROGRAM) as opened:
        yield opened


@pytest.fixture
def load(store: Store, tmp_path: Path) -> Callable[..., Life]:
    """Import a text as a file, or rows (user, key, value, outcome) at one minute after the other."""

    def load(content: str | Sequence[tuple[str, str, str, str]], name: str = "log.csv", **options: Any) -> Life:
        if not isinstance(content, str):
            lines = [",".join((minute(n), *row)) for n, row in enumerate(content)]
            content = "\n".join(["ts,user,key,value,outcome", *lines])
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return Life(store, import_log(store, path, **options))

    return load


def said(*values: str, outcome: str = "") -> list[tuple[str, str, str, str]]:
    return [("u1", "employer", value, outcome) for value in values]


def is_empty(store: Store) -> bool:
    with store.read() as cursor:
        tables = cursor.execute(
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE column_name = 'run_id'"
        ).fetchall()
        return all(cursor.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,) for (name,) in tables)  # noqa: S608


def test_case_1_another_key_never_revokes(load: Any) -> None:
    life = load(said(*["Acme"] * 5) + [("u1", "duty", "Payroll", "")] * 5)
    acme = life.of("Acme")
    assert (acme["state"], acme["support"], acme["conflict"], acme["rule"]) == ("active", 5, 0, "promoted")
    assert life.report.states == {"active": 2}


def test_case_2_eight_revocations_at_one_instant_are_one_batch(load: Any) -> None:
    lines = ["ts,user,key,value,outcome"]
    for n in range(8):
        lines += [f"{minute(10 * n + m)},u{n % 2},key {n},old,1" for m in range(5)]
        lines += [f"{minute(10 * n + 6)},u{n % 2},key {n},old,0", f"{minute(500)},u{n % 2},key {n},old,0"]
    # Two more fall together at another instant, one alone, and one survives the instant of the batch.
    for n, second in ((8, 600), (9, 600), (10, 700)):
        lines += [f"{minute(100 + m)},u,key {n},old,1" for m in range(5)]
        lines += [f"{minute(590)},u,key {n},old,0", f"{minute(second)},u,key {n},old,0"]
    lines += [f"{minute(200 + m)},u,key 11,old,1" for m in range(5)] + [f"{minute(500)},u,key 11,old,0"]
    life = load("\n".join(lines))
    assert life.report.states == {"active": 1, "revoked": 11}
    batch = queries.precedents(life.store, life.report.run_id, batch=True)
    assert sorted(batch["key"]) == [f"key {n}" for n in range(8)]
    assert set(batch["batch_size"]) == {8}
    assert set(batch["revoked_at"]) == {START + pd.Timedelta(minutes=500)}
    assert life.report.badges == {"batch_revocation": 8}


def test_case_3_the_same_value_again_is_support(load: Any) -> None:
    life = load(said(*["Acme"] * 10))
    acme = life.of("Acme")
    assert (acme["state"], acme["support"], acme["conflict"], acme["lives"]) == ("active", 10, 0, 1)
    assert life.transitions()["to_state"].tolist() == ["hypothesis", "active"]
    assert queries.precedents(life.store, life.report.run_id, state="revoked").empty


class TestCase4FactsThatAreStatedOnce:
    LOG = (("u1", "team", "Ronaldo", ""), ("u1", "team", "Messi", ""))

    def test_the_preset_for_direct_facts_replaces_at_once(self, load: Any) -> None:
        life = load(self.LOG, preset="direct_facts")
        assert (life.of("Messi")["state"], life.of("Ronaldo")["state"]) == ("active", "revoked")
        told = life.told("Ronaldo")
        assert told["transitions"][-1]["sentence"].startswith("Revoked on 1 March 2026, 00:01 UTC by the recent rule")
        assert [item["value"] for item in told["transitions"][-1]["evidence"]] == ["Messi"]

    def test_the_defaults_promote_neither_and_say_why(self, load: Any) -> None:
        life = load(self.LOG)
        assert life.report.states == {"candidate": 2}
        # With n supports against one conflict the posterior (n + 1) / (n + 3) first reaches 0.6 at n = 2, and three
        # supports are asked for anyway: two more in each case.
        assert life.told("Messi")["standing"] == (
            "A candidate: one support against no conflicts so far, and three supports with a posterior of 0.6 are "
            "needed. Two fresh supports in a row make it active."
        )
        assert life.told("Ronaldo")["standing"] == (
            "A candidate: one support against one conflict so far, and three supports with a posterior of 0.6 are "
            "needed. Two fresh supports in a row make it active."
        )
        assert life.told("Ronaldo")["would_reactivate"] == 2


def changing_seats() -> list[str]:
    """Rows at distinct times, with several spellings of one value, of which every rule makes something."""
    rng = np.random.default_rng(3)
    lines = []
    for n in range(400):
        favoured = n // 60 % 3
        value = favoured if rng.random() < 0.8 else rng.integers(3)
        spelled = ("Window", "aisle", "middle")[value]
        spelled = rng.choice([spelled, spelled.upper(), f"  {spelled} "])
        key = rng.choice(["Seat", "seat", "Row"])
        lines.append(f"{minute(n)},u{rng.integers(2)},{key},{spelled},{int(rng.random() < 0.9)}")
    return lines


class TestCase6AnyOrderOfTheFile:
    def test_newest_first_and_shuffled_give_identical_precedents_and_transitions(self, load: Any) -> None:
        lines = changing_seats()
        rng = np.random.default_rng(4)
        header = "ts,user,key,value,outcome"
        straight = load("\n".join([header, *lines]), "straight.csv")
        assert {"promoted", "recent", "reactivated"} <= set(straight.transitions()["rule"])
        assert len(straight.all) == 12
        orders = [lines[::-1], *([lines[i] for i in rng.permutation(len(lines))] for _ in range(4))]
        for number, order in enumerate(orders):
            other = load("\n".join([header, *order]), f"order-{number}.csv")
            pd.testing.assert_frame_equal(other.all, straight.all)
            pd.testing.assert_frame_equal(other.transitions(), straight.transitions())

    def test_the_newest_first_the_oldest_last(self, load: Any) -> None:
        lines = [f"{minute(n)},u,k,{'old' if n < 4 else 'new'}," for n in range(8)]
        lines = [lines[-1], *lines[1:-1], lines[0]]
        life = load("\n".join(["ts,user,key,value,outcome", *lines]))
        assert (life.of("new")["state"], life.of("old")["state"]) == ("active", "revoked")
        assert life.of("old")["created_at"] == START


def test_case_8_two_refutations_in_a_row_revoke_by_the_recent_rule(load: Any) -> None:
    life = load(said(*["Acme"] * 60, outcome="1") + said("Acme", "Acme", outcome="0"))
    acme = life.of("Acme")
    assert (acme["state"], acme["rule"], acme["support"], acme["conflict"]) == ("revoked", "recent", 60, 2)
    fall = life.told("Acme")["transitions"][-1]
    assert fall["recent"] == [1, 0, 0]
    assert fall["posterior"] == pytest.approx(61 / 64)
    assert fall["would_prevent"] == 1
    assert fall["counterfactual"] == "One more support among the last three would have prevented it."
    assert [item["supports"] for item in fall["evidence"]] == [True, False, False]
    card = key_life(life.store, life.report.run_id, "employer", subject="u1").why(fall["transition_id"])
    before = {line.quantity: line.before for line in card.lines}
    # Two supports and one refutation stood in the window before the second refutation: 2 / 3.
    assert (before["last 3 outcomes"], before["their mean"]) == ("support support conflict", "0.667")
    lines = {line.quantity: (line.after, line.threshold, line.verdict) for line in card.lines}
    assert lines["their mean"] == ("0.333", "at least 0.34", "below: revoked")
    assert lines["posterior"] == ("0.953", "at least 0.3 from 5 outcomes", "holds")
    # The same log with that one more support: it stands.
    prevented = load(said(*["Acme"] * 61, outcome="1") + said("Acme", outcome="0"), "prevented.csv")
    assert prevented.of("Acme")["state"] == "deprecated"


class TestCase9Reactivation:
    def test_three_fresh_supports_bring_back_what_another_value_had_replaced(self, load: Any) -> None:
        life = load(said(*["Acme"] * 3, *["Brill"] * 3))
        assert (life.of("Acme")["state"], life.of("Brill")["state"]) == ("revoked", "active")
        life = load(said(*["Acme"] * 3, *["Brill"] * 3, "Acme", "Acme"), "two.csv")
        assert life.of("Acme")["state"] == "revoked"
        life = load(said(*["Acme"] * 3, *["Brill"] * 3, *["Acme"] * 3), "three.csv")
        assert len(life.all) == 2
        acme = life.of("Acme")
        assert (acme["state"], acme["rule"], acme["lives"]) == ("active", "reactivated", 2)
        assert (life.of("Brill")["state"], life.of("Brill")["lives"]) == ("revoked", 1)
        told = life.told("Acme")["transitions"]
        assert [(step["to"], step["life"]) for step in told] == [
            ("hypothesis", 0),
            ("active", 1),
            ("revoked", 1),
            ("active", 2),
        ]
        assert told[-1]["sentence"].startswith("Came back out of the archive (life 2)")

    def test_straight_after_two_conflicts_a_fourth_support_is_needed(self, load: Any) -> None:
        # The conflicts that revoked it start its new tally: (0, 2). Three supports make 4 / 7 = 0.571 < 0.6, a fourth
        # 5 / 8 = 0.625. With another value in between, that value's fall restarts the tally without them (above).
        fallen = said(*["Acme"] * 5, outcome="1") + said("Acme", "Acme", outcome="0")
        life = load(fallen, "none.csv")
        assert (life.of("Acme")["trial_support"], life.of("Acme")["trial_conflict"]) == (0, 2)
        assert life.told("Acme")["would_reactivate"] == 4
        life = load(fallen + said(*["Acme"] * 3, outcome="1"), "three.csv")
        acme = life.of("Acme")
        assert (acme["state"], acme["posterior"]) == ("revoked", pytest.approx(4 / 7))
        assert life.told("Acme")["standing"] == (
            "In the archive: its tally since then is three supports against two conflicts. "
            "One fresh support brings it back."
        )
        life = load(fallen + said(*["Acme"] * 4, outcome="1"), "four.csv")
        acme = life.of("Acme")
        assert len(life.all) == 1
        assert (acme["state"], acme["lives"], acme["support"], acme["conflict"]) == ("active", 2, 9, 4)


class TestCase10TheRecentRuleNeedsThreeOutcomes:
    def test_outcomes_1_and_0_do_not_revoke(self, load: Any) -> None:
        thresholds = Thresholds(theta_prop=1, n_rec=3, theta_rec=0.34)
        life = load(said("Acme", outcome="1") + said("Acme", outcome="0"), thresholds=thresholds)
        acme = life.of("Acme")
        assert (acme["state"], acme["support"], acme["conflict"]) == ("deprecated", 1, 1)

    def test_neither_do_two_conflicts_of_a_life_that_has_no_third_outcome(self, load: Any) -> None:
        active = said(*["Acme"] * 3, outcome="1")
        assert load(active + said("Acme", "Acme", outcome="0"), "two.csv").of("Acme")["state"] == "deprecated"
        life = load(active + said("Acme", "Acme", "Acme", outcome="0"), "three.csv")
        assert (life.of("Acme")["state"], life.of("Acme")["rule"]) == ("revoked", "recent")


def test_case_20_every_spelling_of_time_has_its_place_in_one_order(load: Any) -> None:
    life = load(
        "ts,user,key,value\n"
        "2024-11-10T09:00:00-08:00,u,k,fourth\n"
        "2024-07-20T17:00:01,u,k,third\n"
        "2024-07-20T16:59:59Z,u,k,first\n"
        "2024-07-20T10:00:00-07:00,u,k,second\n"
    )
    items = key_life(life.store, life.report.run_id, "k", subject="u").items
    assert items["value"].tolist() == ["first", "second", "third", "fourth"]
    assert [str(at) for at in items["x"]] == [
        "2024-07-20 16:59:59+00:00",
        "2024-07-20 17:00:00+00:00",
        "2024-07-20 17:00:01+00:00",
        "2024-11-10 17:00:00+00:00",
    ]
    assert life.report.badges == {"naive_time": 1}
    assert queries.run_info(life.store, life.report.run_id).badges == {"naive_time": 1}


def test_case_21_a_broken_line_is_reported_by_its_number(load: Any) -> None:
    lines = [json.dumps({"ts": minute(n), "user": "u", "key": "k", "value": "v"}) for n in range(5)]
    lines[2] = '{"ts": "2026-03-01T00:02:00Z", "user": "u", "key":'
    life = load("\n".join(lines), "log.jsonl")
    assert (life.report.read, life.report.loaded, life.report.rejected) == (5, 4, 1)
    stored = queries.issues(life.store, life.report.run_id)
    assert stored["row"].tolist() == [3]
    assert stored["raw"].tolist() == [lines[2]]
    assert life.of("v")["support"] == 4


def test_case_22_values_are_text_and_stay_as_they_are(load: Any) -> None:
    values = ["007", "41_10_1", "true", "NA", "1e5", "null", "None", "nan", "0.10", "7"]
    lines = [f"{minute(n)},u,k{n},{value},1" for n, value in enumerate(values)]
    lines += [f'{minute(50)},u,empty,"",1', f"{minute(51)},u,missing,,1"]
    life = load("\n".join(["ts,user,key,value,outcome", *lines]))
    found = life.all.set_index("key")["value"]
    assert [found[f"k{n}"] for n in range(len(values))] == values
    assert found["empty"] == ""
    assert "missing" not in found
    assert life.report.issues["reason"].tolist() == ["the value is missing"]
    assert life.told("007")["value"] == "007"
    assert life.told("")["value"] == ""


class TestCase23WhatIsOneAndWhatIsTwo:
    def test_two_users_have_two_keys_of_one_name(self, load: Any) -> None:
        life = load(
            [(user, "seat", value, "") for user, value in (("u1", "window"), ("u2", "aisle")) for _ in range(3)]
        )
        assert life.report.states == {"active": 2}
        assert len(queries.keys(life.store, life.report.run_id)) == 2
        assert (life.of("window", "u1")["conflict"], life.of("aisle", "u2")["conflict"]) == (0, 0)

    def test_keys_in_any_script(self, load: Any) -> None:
        life = load([("u", key, "да", "") for key in ("咖啡", "茶", "кофе", "Кофе")])
        assert sorted(queries.keys(life.store, life.report.run_id)["key"]) == sorted(["咖啡", "茶", "кофе"])
        assert queries.precedents(life.store, life.report.run_id, search="КОФЕ")["support"].tolist() == [0]
        assert queries.precedents(life.store, life.report.run_id, key="кофе")["trial_support"].tolist() == [2]

    def test_spellings_are_one_value_and_near_names_are_two(self, load: Any) -> None:
        life = load(
            [("u", "seat", spelled, "") for spelled in ("Window", " window ", "WINDOW")]
            + [("u", "part", "ASR1603", ""), ("u", "part", "ASR1605", "")]
        )
        window = life.of("Window")
        assert (window["state"], window["support"]) == ("active", 3)
        originals = [item["value"] for item in life.told("Window")["transitions"][-1]["evidence"]]
        assert originals == ["Window", " window ", "WINDOW"]
        assert life.of("ASR1603")["id"] != life.of("ASR1605")["id"]


class TestCase24NoKeyColumn:
    TEXT = f"ts,user,topic,value\n{minute(0)},u,seat,window\n"

    def test_the_message_says_what_is_missing_and_what_to_do(self, load: Any, store: Store) -> None:
        with pytest.raises(ImportRefused) as refusal:
            load(self.TEXT)
        message = str(refusal.value)
        assert "no column for: key" in message
        assert "ts, user, topic, value" in message
        assert "key=COLUMN" in message
        assert "key template" in message
        assert "template file" in message
        assert is_empty(store)

    def test_a_mapping_or_a_template_mends_it(self, load: Any) -> None:
        mapped = load(self.TEXT, mapping=ColumnMapping.of({"key": "topic"}))
        assert mapped.of("window")["key"] == "seat"
        templated = load(self.TEXT, mapping=ColumnMapping.of({}, key_template="{user}/{topic}"))
        assert templated.of("window")["key"] == "u/seat"
        assert mapped.report.run_id != templated.report.run_id


def test_case_27_backfill_stands_at_the_time_of_its_event_and_a_switch_shows_arrival(load: Any) -> None:
    lines = [f"2024-05-0{n}T00:00:00Z,u,city,Berlin,2024-05-0{n}T00:00:05Z" for n in (1, 2, 3)]
    lines += [f"2023-05-0{n}T00:00:00Z,u,city,Bonn,2026-02-0{n}T00:00:00Z" for n in (1, 2, 3)]
    life = load("\n".join(["ts,user,key,value,ingested_at", *lines]))
    assert life.report.badges == {"late_arrival": 3}
    assert (life.of("Berlin")["state"], life.of("Bonn")["state"]) == ("active", "revoked")
    event = key_life(life.store, life.report.run_id, "city", subject="u")
    assert event.items["value"].tolist() == ["Bonn"] * 3 + ["Berlin"] * 3
    assert event.items["x"].dt.year.tolist() == [2023] * 3 + [2024] * 3
    assert event.x_title == "event time (UTC)"
    arrival = key_life(life.store, life.report.run_id, "city", subject="u", order="arrival")
    assert arrival.items["value"].tolist() == ["Berlin"] * 3 + ["Bonn"] * 3
    assert arrival.items["x"].dt.year.tolist() == [2024] * 3 + [2026] * 3
    assert arrival.x_title == "arrival time (UTC)"
    assert arrival.values.set_index("value")["state"].to_dict() == {"Berlin": "revoked", "Bonn": "active"}
    # The switch is a view: what is stored goes by event time.
    assert life.of("Berlin")["state"] == "active"


class TestCase28WhatIsNoLog:
    def refusal(self, store: Store, path: Path) -> str:
        before = sorted(path.parent.rglob("*"))
        with pytest.raises(ImportRefused) as refusal:
            import_log(store, path)
        assert is_empty(store)
        assert sorted(path.parent.rglob("*")) == before
        return str(refusal.value)

    def test_an_empty_file(self, store: Store, tmp_path: Path) -> None:
        path = tmp_path / "empty.csv"
        path.touch()
        assert "is empty (0 bytes)" in self.refusal(store, path)

    def test_a_picture_called_csv(self, store: Store, tmp_path: Path) -> None:
        path = tmp_path / "picture.csv"
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
        assert "picture.csv looks like a PNG picture" in self.refusal(store, path)

    def test_a_line_of_two_gigabytes(self, store: Store, tmp_path: Path) -> None:
        path = tmp_path / "long.csv"
        with path.open("wb") as file:
            file.write(b"ts,user,key,value\n" + b"a" * (17 << 20))
            file.truncate(2 << 30)  # sparse: the rest takes no room
        # A file of that size is not looked into; a smaller one names the line.
        assert "The file has 2,147 MB; at most 500 MB is taken in" in self.refusal(store, path)
        with path.open("r+b") as file:
            file.truncate(200 << 20)
        message = self.refusal(store, path)
        assert "Line 2 is longer than 16 MB" in message

    def test_a_zip_that_points_outside(self, store: Store, tmp_path: Path) -> None:
        folder = tmp_path / "inbox"
        folder.mkdir()
        path = folder / "log.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("../x", "ts,user,key,value\n")
        assert "zip archive" in self.refusal(store, path)
        assert not (tmp_path / "x").exists()
