"""The flows, one a file; the command line and what they tell Prefect have rooms of their own."""

import tasks  # noqa: F401  it limits the thread pools of libraries that are imported later, so it comes first
