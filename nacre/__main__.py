"""The command line, as ``nacre`` or ``python -m nacre``."""

import os
import signal
import sys
from typing import Any, NoReturn


def main() -> NoReturn:
    """Run the command line; the error for a missing package names the extra that installs it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)  # until a command calls `unwind`
    from dpmodels.late import lacking
    from flows.command_line import app

    try:
        app.main()
    except ModuleNotFoundError as fault:
        if (error := lacking(fault.name or "")) is None:
            raise
        sys.exit(f"error: {error}")


def _leave(*_: Any) -> NoReturn:
    """End at once: libraries that are being loaded may take an error for one of their own, and nothing was begun."""
    os.write(sys.stderr.fileno(), b"interrupted: nothing was charged\n")
    os._exit(130)


if __name__ == "__main__":
    main()
