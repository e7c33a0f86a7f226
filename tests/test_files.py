"""Files asked for by a person: whole or not there, the old one kept, nothing left behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tepa_core.files import FileRefused, beside, check_target, reason

ROOT = Path(__file__).parents[1]
OLD, NEW = b"the good old file", b"n" * 5000

#: Writes 5,000 bytes to a file that may have 1,000, as on a full disk: the system refuses in the middle.
FULL = """
import resource, signal, sys
from pathlib import Path
from tepa_core.files import FileRefused, beside
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    with beside(Path(sys.argv[1]), replace=True) as part:
        part.write_bytes(b"n" * 5000)
except FileRefused as refusal:
    print(refusal)
    sys.exit(2)
"""

#: Is killed once half of the file is written.
KILLED = """
import os, signal, sys
from pathlib import Path
from tepa_core.files import beside
with beside(Path(sys.argv[1]), replace=True) as part:
    part.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def write(path: Path, content: bytes = NEW, *, replace: bool = False) -> None:
    with beside(path, replace=replace) as part:
        assert part.parent == path.parent
        part.write_bytes(content)


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture
def target(tmp_path: Path) -> Path:
    # Characters that mean something in a pattern are part of this name.
    path = tmp_path / "run [1]*.zip"
    path.write_bytes(OLD)
    return path


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == NEW
    assert names(tmp_path / "a.zip") == ["a.zip"]
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE((tmp_path / "a.zip").stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_a_file_that_exists_is_replaced_only_when_told_and_keeps_its_permissions(target: Path) -> None:
    target.chmod(0o640)
    with pytest.raises(FileRefused, match=r"exists; choose another name, or add --force to replace it"):
        write(target)
    assert target.read_bytes() == OLD
    write(target, replace=True)
    assert target.read_bytes() == NEW
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert names(target) == [target.name]


def test_a_link_is_followed_and_stays(target: Path) -> None:
    link = target.with_name("link.zip")
    link.symlink_to(target.name)
    write(link, replace=True)
    assert link.is_symlink()
    assert target.read_bytes() == NEW


def test_a_file_that_came_in_the_meantime_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"

    def late() -> None:
        with beside(path) as part:
            part.write_bytes(NEW)
            path.write_bytes(OLD)

    with pytest.raises(FileRefused, match="exists by now"):
        late()
    assert path.read_bytes() == OLD
    assert names(path) == ["a.zip"]


@pytest.mark.parametrize("error", [ValueError("no such run"), KeyboardInterrupt(), OSError(28, "No space left")])
def test_whatever_goes_wrong_inside_leaves_the_old_file_alone(target: Path, error: BaseException) -> None:
    def broken() -> None:
        with beside(target, replace=True) as part:
            part.write_bytes(b"half")
            part.with_name(f"{part.name}.wal").write_bytes(b"what a database puts beside its file")
            raise error

    with pytest.raises(FileRefused if isinstance(error, OSError) else type(error)):
        broken()
    assert target.read_bytes() == OLD
    assert names(target) == [target.name]


def test_a_full_disk_is_a_sentence_and_the_old_file_is_whole(target: Path) -> None:
    full = run(FULL, target)
    assert full.returncode == 2, full.stderr
    assert "there is no space left on that disk; free some" in full.stdout
    assert target.read_bytes() == OLD
    assert names(target) == [target.name]


def test_a_kill_leaves_the_old_file_and_its_remains_go_with_the_next_write(target: Path) -> None:
    assert run(KILLED, target).returncode == -signal.SIGKILL
    assert target.read_bytes() == OLD
    [partial] = set(names(target)) - {target.name}
    assert partial.startswith(f".{target.name}.")
    assert partial.endswith(".partial")
    others = [target.with_name(name) for name in (f".{target.name}.mine.partial", ".other.zip.1-00000000.partial")]
    for other in others:
        other.touch()
    # That of a writer that is still at work is not taken away from it.
    working = target.with_name(f".{target.name}.{os.getppid()}-0123abcd.partial")
    working.touch()
    write(target, replace=True)
    assert target.read_bytes() == NEW
    assert names(target) == sorted([target.name, working.name, *(other.name for other in others)])


def folder(path: Path) -> Path:
    return path


def missing_parent(path: Path) -> Path:
    return path / "none" / "a.zip"


def inside_a_file(path: Path) -> Path:
    (path / "file").touch()
    return path / "file" / "a.zip"


def too_long(path: Path) -> Path:
    return path / ("a" * 300)


def round_and_round(path: Path) -> Path:
    (path / "a").symlink_to("b")
    (path / "b").symlink_to("a")
    return path / "a"


def no_file(path: Path) -> Path:
    os.mkfifo(path / "pipe")
    return path / "pipe"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (folder, "is a folder; name a file in it"),
        (missing_parent, "its folder does not exist; make it first"),
        (inside_a_file, "what should be its folder is a file"),
        (too_long, "the name is too long"),
        (round_and_round, "links lead back|[Tt]oo many levels"),
        (no_file, "no ordinary file"),
    ],
)
def test_where_no_file_can_be_is_told_before_the_work(
    tmp_path: Path, place: Callable[[Path], Path], words: str
) -> None:
    with pytest.raises(FileRefused, match=words):
        check_target(place(tmp_path), replace=True)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "x"), "no space left"),
        (OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"), "no space"),
        (OSError(27, "x"), "no space left"),
        (OSError(30, "x"), "may not be written; change the permissions"),
        (PermissionError(13, "x"), "may not be written"),
        (OSError(5, "Input/output error"), "^Input/output error$"),
        (OSError(), "^OSError$"),
    ],
)
def test_the_reason_of_the_system_in_words(error: OSError, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        raise ValueError(reason(error))
