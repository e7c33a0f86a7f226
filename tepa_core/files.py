"""Files that a person asked for: whole under their name, or not there at all, and no old one lost on the way.

A file is written under a name of its own beside its target, synced, and renamed once it is whole. A kill or a full
disk leaves the file that was there before; what a killed writer left behind has a name that says so
(``.NAME.PID-HEX.partial``) and goes with the next file of that name.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: The disk or the quota is full, or a file may not grow any more.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
#: What `beside` names a file that is not whole yet, after the dot and the name of its target.
_PARTIAL = re.compile(r"\.(\d+)-[0-9a-f]{8}\.partial(\..+)?")


class FileRefused(ValueError):  # noqa: N818 - named as the outcome it is
    """A file cannot be written or read; the message says why and what to do."""


def reason(error: OSError) -> str:
    """Say in words why the system refused, and what to do about it: the end of a sentence.

    >>> reason(OSError(28, "No space left on device"))
    'there is no space left on that disk; free some, or name a folder on another one'
    """
    # Libraries that read and write natively put the number of the system into their text only.
    number = error.errno
    if number is None and (named := re.search(r"[Ee]rrno (\d+)", str(error))):
        number = int(named[1])
    if number in _NO_SPACE:
        return "there is no space left on that disk; free some, or name a folder on another one"
    if number in _NOT_ALLOWED:
        return "it or its folder may not be written; change the permissions, or name another file"
    if number == errno.ENOENT:
        return "its folder does not exist; make it first, or name another one"
    if number == errno.ENOTDIR:
        return "what should be its folder is a file; name another one"
    if number == errno.ENAMETOOLONG:
        return "the name is too long; choose a shorter one"
    return (error.strerror or str(error) or type(error).__name__).strip()


def check_target(path: Path, *, replace: bool) -> Path:
    """Return where a file asked for as ``path`` will stand, links followed; for asking before long work.

    Raises
    ------
    FileRefused
        If something is there and may not be replaced, or no file can be there.
    """
    try:
        target = path.resolve()
        found = target.stat()
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileRefused(f"{path} cannot be written: {reason(OSError(errno.ENOENT, ''))}") from None
        return target
    except (OSError, RuntimeError) as error:
        why = reason(error) if isinstance(error, OSError) else "its links lead back to themselves"
        raise FileRefused(f"{path} cannot be written: {why}") from None
    if stat.S_ISDIR(found.st_mode):
        raise FileRefused(f"{path} is a folder; name a file in it")
    if not replace:
        raise FileRefused(f"{path} exists; choose another name, or add --force to replace it")
    if not stat.S_ISREG(found.st_mode):
        raise FileRefused(f"{path} is no ordinary file and cannot be replaced; choose another name")
    if not os.access(target, os.W_OK):
        raise FileRefused(f"{path} is read-only; choose another name, or make it writable first")
    return target


@contextmanager
def beside(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Give the name of an empty file beside ``path`` to write to; at the end it becomes ``path``, whole and synced.

    Whatever goes wrong inside, nothing is left of it and ``path`` is what it was.

    Parameters
    ----------
    path
        The file asked for.
    replace
        Whether a file that is there already may be replaced.

    Raises
    ------
    FileRefused
        If something is there that may not be replaced, or the system refuses: full disk, permissions, no such folder.
    """
    target = check_target(path, replace=replace)
    _clear(target)
    part = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        try:
            part.open("xb").close()
            yield part
            _sync(part)
            if replace and target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            put_in_place(part, target, replace=replace)
        except OSError as error:
            if isinstance(error, FileExistsError):
                raise FileRefused(f"{path} exists by now; choose another name, or add --force to replace it") from None
            raise FileRefused(f"{path} cannot be written: {reason(error)}") from None
    finally:
        for left in target.parent.glob(f"{_glob(part.name)}*"):
            _remove(left)


def put_in_place(part: Path, target: Path, *, replace: bool) -> None:
    """Rename a whole, synced file, so that after a crash there is the old one or the new one.

    Raises
    ------
    FileExistsError
        If something is there and ``replace`` is false.
    """
    if replace:
        os.replace(part, target)
    else:
        try:
            # A link is refused where a file has come in the meantime; a rename would replace it.
            os.link(part, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if target.exists():
                raise FileExistsError(errno.EEXIST, "exists", str(target)) from None
            os.replace(part, target)
        else:
            part.unlink()
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make what was renamed in a folder outlast a power cut, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems do not sync folders; the rename holds all the same
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _clear(target: Path) -> None:
    """Remove what killed writers of the same target left behind."""
    for left in target.parent.glob(f".{_glob(target.name)}.*.partial*"):
        match = _PARTIAL.fullmatch(left.name.removeprefix(f".{target.name}"))
        if match is not None and not _runs(int(match[1])):
            _remove(left)


def _glob(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _runs(process: int) -> bool:
    if os.name != "posix":
        return False  # there a file that is open cannot be removed, and `_remove` leaves it
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove(path: Path) -> None:
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
