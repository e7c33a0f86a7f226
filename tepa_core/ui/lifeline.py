"""A process that ends with the one that started it, however that one ends: killed, crashed or closed.

The parent holds the other end of the standard input and never writes. When it is gone, whatever took it, the system
closes that end, and reading here comes to its end. This works wherever pipes do.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Final

#: Told to a child whose standard input is a lifeline; a person's terminal or an empty input is none.
OPTION: Final = "--with-parent"

_SECONDS_TO_END = 5.0


def end_with_parent() -> None:
    """End this process, first as SIGTERM does, as soon as its standard input comes to an end."""
    threading.Thread(target=_wait, name="lifeline", daemon=True).start()


def _wait() -> None:
    with suppress(OSError):
        while os.read(0, 1024):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_END)
    os._exit(1)
