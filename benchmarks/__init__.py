"""Published tables we answer to, each one command: ``python -m benchmarks.NAME [--quick] [--json FILE]``."""

import tasks  # noqa: F401  it limits the thread pools of libraries that are imported later, the judges' too
