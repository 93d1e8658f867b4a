"""Whether the memory of this machine has room for all records of a table, for the methods that hold them."""

import os
from pathlib import Path

import pyarrow.dataset as ds

from dpmodels.errors import NacreError

LIMITS = tuple(map(Path, ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")))
"""Where Linux says how much memory the processes of a container may take."""
SHARE = 0.8
"""Of the memory; the rest is for the program and for what else runs."""


def check_room(each: int, method: str, encoded: Path) -> None:
    """Refuse a table of which more records would be held than the memory has room for; ``each`` is of one, in bytes.

    Privacy: that there are too many shows, as it would if the memory ran out; how many there are does not.

    Raises:
        NacreError: there is no room.
    """
    if not each:
        return
    memory = memory_of_machine()
    most = int(SHARE * memory) // each
    if ds.dataset(sorted(map(str, encoded.glob("*.arrow"))), format="ipc").count_rows() > most:
        raise NacreError(
            f"{method} holds all records in memory, about {each:,} bytes of each, so the {memory / 2**30:.1f} GiB of "
            f"this machine have room for {most:,} at most, and the table has more; take a method that streams (nacre, "
            "moments, pearl, dp-merf) or a machine with more memory; nothing was charged"
        )


def memory_of_machine() -> int:
    """Return the memory in bytes: that of the machine, or what its container may take."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in LIMITS:
        text = limit.read_text(encoding="ascii").strip() if limit.exists() else ""
        limits += [int(text)] if text.isdigit() else []
    return min(limits)
