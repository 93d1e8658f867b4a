"""The flows, one in each file; the command line and the code that talks to Prefect have packages of their own."""

import tasks  # noqa: F401  it comes first, because it limits the thread pools of libraries imported later
