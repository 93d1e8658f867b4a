"""The command line, as ``nacre`` or ``python -m nacre``."""

from flows.command_line.app import main

if __name__ == "__main__":
    main()
