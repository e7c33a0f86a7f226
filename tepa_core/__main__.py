"""``python -m tepa_core``: see `tepa_core.cli`."""

import sys
import traceback
from types import TracebackType

from tepa_core.cli import main
from tepa_core.inert import visible


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback in which what a file or an address said moves no cursor."""
    sys.stderr.write(visible("".join(traceback.format_exception(kind, error, trace)), keep="\n"))


if __name__ == "__main__":
    sys.excepthook = _tell
    sys.exit(main())
