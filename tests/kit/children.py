"""Commands that die: each in a process of its own, forked from one that has imported what every command imports.

A fresh interpreter would spend six of its eight seconds on imports, and no test is about those.
"""

import importlib
import multiprocessing
import os
import signal
import sys
from typing import Any

from flows.command_line import app

IMPORTED = [
    *(
        "flows.synthesize",
        "flows.kinds.tables",
        "flows.kinds.each_document",
        "flows.kinds.federations",
        "flows.discover",
        "flows.command_line.show",
    ),
    *("torch", "torch._dynamo", "opendp.prelude", "great_expectations", "sklearn.ensemble", "tests.kit.deaths"),
    *("dpmodels.generators.critic", "dpmodels.generators.mixture_network", "dpmodels.methods.federations.classifier"),
]
forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.kit.warm"])


def begun(*words: object) -> Any:
    """Begin a command and return its process."""
    child = forked.Process(target=_command, args=([str(word) for word in words],))
    child.start()
    return child


def ends_at(module: str, name: str, before: bool, *words: object) -> int | None:
    """Run a command that kills itself before or after it calls what ``module`` knows by this name; return its code."""
    child = forked.Process(target=_deadly, args=(module, name, before, [str(word) for word in words]))
    child.start()
    child.join(120)
    if child.exitcode is None:
        child.kill()
    return child.exitcode


def _command(words: list[str]) -> None:
    sys.argv = ["nacre", *words]
    app.main()


def _deadly(module: str, name: str, before: bool, words: list[str]) -> None:
    place = importlib.import_module(module)
    real = getattr(place, name)

    def deadly(*args: Any, **kwargs: Any) -> None:
        if not before:
            real(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(place, name, deadly)
    _command(words)
