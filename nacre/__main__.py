"""The command line, as ``nacre`` or ``python -m nacre``."""

import sys
from typing import NoReturn

from dpmodels.late import lacking
from flows.command_line import app


def main() -> NoReturn:
    """Run the command line; the error for a missing package names the extra that installs it."""
    try:
        app.main()
    except ModuleNotFoundError as fault:
        if (error := lacking(fault.name or "")) is None:
            raise
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
