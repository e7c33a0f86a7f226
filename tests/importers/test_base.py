import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tepa_core.importers.base import ImportRefused, check_names, digest, kind_of, scan_text
from tepa_core.importers.identity import canonical
from tepa_core.limits import LimitExceeded


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Window", " window "),
        ("window  seat", "Window\tseat"),
        ("Caf\u00e9", "CAFE\u0301"),
        ("STRASSE", "straße"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ],
)
def test_spellings_that_are_one(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ASR1603", "ASR1605"),
        ("007", "7"),
        ("咖啡", "茶"),
        ("咖啡", "кофе"),
        ("茶", "кофе"),
        ("", "x"),
        ("1e5", "100000"),
    ],
)
def test_spellings_that_are_two(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


def test_leading_zeros_stay() -> None:
    assert canonical("007") == "007"


@given(st.text())
def test_canonical_of_canonical_is_itself(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)


def test_names_that_occur_twice_are_named() -> None:
    with pytest.raises(ImportRefused, match="'value'"):
        check_names(["key", "value", "value"])


def test_too_many_names_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="1,001"):
        check_names([f"c{i}" for i in range(1001)])


def test_the_reserved_name_is_refused() -> None:
    with pytest.raises(ImportRefused, match="__row__"):
        check_names(["__row__"])


def test_both_digests_are_sha256_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"a,b\n" * 700_000)
    expected = hashlib.sha256(b"a,b\n" * 700_000).hexdigest()
    assert digest(path) == expected
    assert scan_text(path, whole=True) == expected


def test_a_character_that_straddles_two_pieces_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    text = ("a" * (1024 * 1024 - 1) + "é\n").encode()
    path.write_bytes(text)
    assert scan_text(path, whole=True) == hashlib.sha256(text).hexdigest()


def test_a_character_cut_off_at_the_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes("a\né".encode()[:-1])
    with pytest.raises(ImportRefused, match=r"Line 2 is not UTF-8"):
        scan_text(path, whole=True)


@pytest.mark.parametrize(
    ("size", "fits"), [(16 * 1024 * 1024, True), (16 * 1024 * 1024 + 1, False)], ids=["16 MB", "one byte more"]
)
def test_sixteen_megabytes_is_the_longest_line(tmp_path: Path, size: int, fits: bool) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"short\n" + b"x" * size + b"\nshort\n")
    if fits:
        assert scan_text(path, whole=False)
    else:
        with pytest.raises(ImportRefused, match="Line 2 is longer than 16 MB"):
            scan_text(path, whole=False)


def test_many_short_lines_are_no_long_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"0123456789\n" * 2_000_000)
    assert scan_text(path, whole=True)


def test_kinds_are_known_by_their_signature() -> None:
    assert kind_of(b"\x89PNG\r\n\x1a\n") == "a PNG picture"
    assert kind_of(b"SQLite format 3\0") == "an SQLite database"
    assert kind_of(b"ts,key,value\n") is None
