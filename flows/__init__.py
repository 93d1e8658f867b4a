"""The flows: one pipeline a file, the command line, and the Prefect server a run brings along."""

import tasks  # noqa: F401  it limits the thread pools of libraries that are imported later, so it comes first
