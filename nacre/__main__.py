"""The command line, as ``nacre`` or ``python -m nacre``."""

from flows.cli import main

if __name__ == "__main__":
    main()
