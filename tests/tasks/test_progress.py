"""A notebook, which is no terminal, shows how far slow work is; a script whose output goes elsewhere shows nothing."""

import logging
import sys
from types import SimpleNamespace

import pytest

from tasks.engine import progress

SLOWLY = [("25 %", "about 30 s left"), ("50 %", "about 20 s left")]


@pytest.mark.parametrize("is_notebook", [True, False])
def test_a_notebook_shows_a_line_with_an_estimate_and_takes_it_away(is_notebook, monkeypatch, capsys) -> None:
    clock = [0.0]
    shell = SimpleNamespace(kernel=1) if is_notebook else SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with progress.progress_bar("sample") as tick:
        for clock[0], done in ((1.0, 1), (10.0, 25), (10.1, 26), (20.0, 50)):
            tick(done, 100, "some note")
        tick(99)  # of a total that is private
    lines = capsys.readouterr().err.split("\r")
    if not is_notebook:
        assert lines == [""]
        return
    assert lines[1:-2] == [f"sample: {percent}, {left}, some note" for percent, left in SLOWLY]
    assert lines[0] == lines[-1] == "" and lines[-2] == " " * len(lines[1])


def test_quiet_work_shows_nothing_in_a_notebook_either(monkeypatch, capsys) -> None:
    shell = SimpleNamespace(kernel=1)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(progress, "SLOW", 0.0)
    before = progress.LOG.level
    progress.LOG.setLevel(logging.ERROR)
    try:
        with progress.progress_bar("sample") as tick:
            tick(1, 2)
    finally:
        progress.LOG.setLevel(before)
    assert capsys.readouterr().err == ""
