"""``python -m tepa_core``: see `tepa_core.cli`."""

import sys

from tepa_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
