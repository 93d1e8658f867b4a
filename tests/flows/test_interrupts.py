"""A Ctrl-C at any moment ends with one sentence: while a command is still being loaded, too."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import synthesize_words, write_clinic

NUMPY, ARROW, TORCH, PREFECT = "/numpy/", "/pyarrow/", "/torch/lib/", "/pydantic_core/"
"""What a process has mapped once it loads a library."""


def interrupted(folder: Path, library: str, *words: object) -> tuple[int, str]:
    """Send a Ctrl-C to a command as soon as it loads a library; return its exit code and standard error."""
    command = [sys.executable, "-m", "nacre", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        while process.poll() is None and library not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        return process.wait(60), process.communicate()[1]


@pytest.mark.parametrize(
    ("command", "library"),
    [("synthesize", NUMPY), ("synthesize", TORCH), ("plan", ARROW), ("schema init", ARROW), ("serve", PREFECT)],
)
def test_a_ctrl_c_in_the_first_seconds_says_that_nothing_was_charged(
    tmp_path: Path, command: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    data, _, _ = write_clinic(tmp_path)
    words = synthesize_words(tmp_path)[1:]
    named = {
        "synthesize": ["synthesize", *words],
        "plan": ["plan", *words],
        "schema init": ["schema", "init", data],
        "serve": ["serve", "--home", tmp_path / "home"],
    }
    code, err = interrupted(tmp_path, library, *named[command])
    assert (code, err.splitlines()) == (130, ["interrupted: nothing was charged"])
    assert not (tmp_path / "home" / "control").exists()
