"""A program of others that holds a hand-off to its data contract, where it is installed."""

import json
import shutil
import subprocess
from pathlib import Path

from dpmodels.hand_off.manifest import CONTRACT

PROGRAM = shutil.which("datacontract")


def run(command: str, folder: Path, *more: object) -> "subprocess.CompletedProcess[str]":
    words = [str(PROGRAM), command, CONTRACT, *map(str, more)]
    return subprocess.run(words, cwd=folder, capture_output=True, timeout=120, text=True)


def failures(folder: Path) -> list[tuple[str | None, str]]:
    """Return what the program says that rows fail, by column; that it looks at no types in files is a warning."""
    text = run("test", folder, "--output-format", "json", "--output", "/dev/stdout").stdout
    checks = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["checks"]
    assert not [check for check in checks if check["result"] == "error"] and len(checks) > 5
    return [(check.get("field"), check["name"]) for check in checks if check["result"] == "failed"]
