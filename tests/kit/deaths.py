"""A command that dies at each point of its life in turn, however often it goes on."""

import importlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from flows.command_line import app
from tests.kit.children import forked

POINTS = {
    "create the run": ("tasks.run.store", "Run.create"),
    "charge": ("dpmodels.ledger.ledger", "Ledger.reserve"),
    "begin to draw": ("dpmodels.ledger.ledger", "Ledger.begin_draw"),
    "write the release": ("dpmodels.releases.draw", "write_release"),
    "seal": ("dpmodels.ledger.ledger", "Ledger.seal"),
    "publish the release": ("dpmodels.artifact", "publish"),
    "commit": ("dpmodels.ledger.ledger", "Ledger.commit"),
    "record": ("tasks.run.store", "Run.finish"),
    "hand over": ("dpmodels.hand_off.writer", "replace_folder"),
}
"""What every run does that lasts."""
BESIDE = POINTS.keys() - {"charge", "hand over"}
"""Points right after which a run is as it is right before the next."""
LIMIT = 120
"""Seconds that a command has."""


def killed_anew(words: list[object], deaths: Path, points: Mapping[str, tuple[str, str]] = POINTS) -> str:
    """Run a command that is killed at the first point where none was before; return the point, or nothing if it ended.

    A point is where something of the product is about to be called, or has just been; the file of ``deaths`` keeps
    those where a command was killed.
    """
    before = _points(deaths)
    child = forked.Process(target=_mortal, args=([str(word) for word in words], str(deaths), points))
    child.start()
    child.join(LIMIT)
    if child.exitcode is None:
        child.kill()
    assert child.exitcode in (0, -signal.SIGKILL), child.exitcode
    new = _points(deaths)[len(before) :]
    assert bool(new) == (child.exitcode != 0)
    return new[0] if new else ""


def _points(deaths: Path) -> list[str]:
    return deaths.read_text().splitlines() if deaths.exists() else []


def _mortal(words: list[str], deaths: str, points: Mapping[str, tuple[str, str]]) -> None:
    for name, (module, path) in points.items():
        *owners, attribute = path.split(".")
        owner = reduce(getattr, owners, importlib.import_module(module))
        setattr(owner, attribute, _deadly(name, getattr(owner, attribute), Path(deaths)))
    sys.argv = ["nacre", *words]
    app.main()


def _deadly(name: str, real: Callable[..., Any], deaths: Path) -> Callable[..., Any]:
    def deadly(*args: Any, **options: Any) -> Any:
        stage = f" {args[1]}" if name == "record" else ""
        _die(f"{name}{stage}", deaths)
        done = real(*args, **options)
        if name not in BESIDE:
            _die(f"after: {name}{stage}", deaths)
        return done

    return deadly


def _die(point: str, deaths: Path) -> None:
    if point not in _points(deaths):
        with deaths.open("a") as file:
            file.write(point + "\n")
        os.kill(os.getpid(), signal.SIGKILL)
