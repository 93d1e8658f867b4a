"""A Ctrl-C at any moment ends with one sentence: while a command is still being loaded, too."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kit.letters import embed_words, write_letters
from tests.kit.support import synthesize_words, write_clinic
from tests.kit.wards import write_wards

pytestmark = pytest.mark.processes

NUMPY, ARROW, TORCH, PREFECT = "/numpy/", "/pyarrow/", "/torch/lib/", "/pydantic_core/"
"""What a process has mapped once it loads a library."""
SWALLOWING = """
import os, signal, sys

class Swallowing:
    def find_spec(self, name, *_):
        if name == "torch":
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                pass

sys.meta_path.insert(0, Swallowing())
"""
"""A library that takes a Ctrl-C which comes while it is being loaded for an error of its own."""


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


@pytest.mark.parametrize("command", ["embed-documents", "federate", "plan-federation"])
@pytest.mark.nightly_if("plan-federation")  # beside the run that it plans
def test_a_ctrl_c_that_a_library_swallows_ends_a_command_about_documents_or_clients(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SWALLOWING)
    if command == "embed-documents":
        write_letters(tmp_path)
        words = embed_words(tmp_path)[1:]
    else:
        words = [write_wards(tmp_path)]
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    asked = [sys.executable, "-m", "nacre", command, *map(str, words)]
    done = subprocess.run(asked, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=120)
    assert (done.returncode, done.stderr.splitlines()) == (130, ["interrupted: nothing was charged"])
    assert not (tmp_path / "home").exists()


def test_a_limit_on_the_size_of_files_is_said_in_a_sentence(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    words = ["ledger", "open", "clinic", "--schema", "clinic.yaml", "--epsilon", "1", "--delta", "1e-5"]
    ended = subprocess.run(
        [
            "/bin/sh",
            "-c",
            f'ulimit -f 8; exec "$@" --home {tmp_path / "home"}',
            "sh",
            sys.executable,
            "-m",
            "nacre",
            *words,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1 and "a file could not be written" in ended.stderr and "Traceback" not in ended.stderr
