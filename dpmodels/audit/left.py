"""Whatever a measurement or a run leaves: names and bytes of files, the ledger, and every word that was said.

What no two runs share is held meanwhile: the clock and the nonces of the ledger, and the place of temporary files,
which are looked at too. So whatever differs between two runs follows from their data.
"""

import io
import logging
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from dpmodels.audit.tap import replaced
from dpmodels.ledger import store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMES = "nacre.seconds"
"""The log of how long stages took, which --verbose shows; that times tell nothing is not promised."""
OURS = {"root", "nacre", "dpmodels", "tasks", "flows"}
"""Loggers that may know a record, by the first word of their names."""
LEDGER = "ledger.sqlite"


@contextmanager
def held(folder: Path) -> Iterator[io.StringIO]:
    """Hold what no two runs share, and collect all that is printed, logged and warned of.

    Of libraries' logs these are the warnings alone, for some tell of their first use.
    """
    output, root, temporary = io.StringIO(), logging.getLogger(), folder / "temporary"
    handler, level = logging.StreamHandler(output), root.level
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or record.name.split(".")[0] in OURS)
    handler.addFilter(lambda record: record.name != TIMES)
    temporary.mkdir(parents=True)
    with ExitStack() as stack:
        for held_back in (
            replaced(store, "datetime", SimpleNamespace(now=lambda zone: NOON)),
            replaced(store, "token_hex", lambda size: "00" * size),
            replaced(tempfile, "tempdir", str(temporary)),
            redirect_stdout(output),
            redirect_stderr(output),
            warnings.catch_warnings(),
        ):
            stack.enter_context(held_back)
        for log in (one for one in root.manager.loggerDict.values() if isinstance(one, logging.Logger)):
            if not log.propagate or log.name in OURS:  # the command line keeps its own lines from the root
                stack.enter_context(replaced(log, "propagate", True))
                if log.name in OURS:  # whose handler would print each line a second time, with what takes time
                    stack.enter_context(replaced(log, "handlers", []))
                # at a lower level a library with a handler of its own would fill the terminal
                stack.enter_context(replaced(log, "level", logging.NOTSET if log.name in OURS else logging.WARNING))
        warnings.simplefilter("always")
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            yield output
        finally:
            root.removeHandler(handler)
            root.setLevel(level)


def left_below(folder: Path, *inside: Path) -> dict[str, bytes]:
    """Return the files below a folder but those that lie ``inside`` of somewhere, and all tables of the ledgers."""
    contents = dict[str, bytes]()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or any(zone in path.parents for zone in inside):
            continue
        name, content = str(path.relative_to(folder)), path.read_bytes()
        if path.name == LEDGER:
            with closing(sqlite3.connect(path)) as ledger:
                content = "\n".join(ledger.iterdump()).encode()
        if not path.name.startswith(LEDGER + "-"):  # SQLite's own, which say how far it has written
            contents[name] = content.replace(str(folder).encode(), b"")
    return contents
