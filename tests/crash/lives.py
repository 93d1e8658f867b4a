"""One run whose every operation is recorded, and the lives of runs that went on from any state which it passed."""

import errno
import importlib
import json
import os
import pickle
import re
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from tests.crash.disk import LEDGER, Disk, Tree, lay_out, torn, without_power
from tests.kit.children import forked
from tests.kit.support import charges, run_cli, synthesize_words, write_clinic

STATES: dict[str, Callable[[Disk, int], Tree]] = {
    "killed": lambda disk, number: disk.points[number].tree,
    "torn": torn,
    "renamed but empty": lambda disk, number: without_power(disk, number, "new"),
    "forgotten": lambda disk, number: without_power(disk, number, "old"),
    "half of each": lambda disk, number: without_power(disk, number, "mixed"),
}
FAULTS = {"disk is full": errno.ENOSPC, "disk fails": errno.EIO}
Choose = Callable[[Disk], list[tuple[int, str]]]
ROWS = 60


@dataclass(frozen=True)
class Life:
    """What became of a run that went on: how it ended, what it printed, and what is wrong, if anything is."""

    number: int
    state: str
    operation: str
    faults: list[str]


def record(root: Path) -> Path:
    """Run a whole pipeline in a folder and write down every state that it passed; return the file of these."""
    write_clinic(root, rows=ROWS)
    target = root.with_name("recorded.pickle")
    _in_child(_record, root, target)
    return target


def live_on(recorded: Path, choose: Choose) -> list[Life]:
    """Let a run go on from each of some states; they share a process that has imported what a run imports."""
    target = recorded.with_name("lives.jsonl")
    _in_child(_lives, recorded, target, choose)
    return [Life(**json.loads(line)) for line in target.read_text().splitlines()]


def _in_child(work: Callable[..., None], *args: object) -> None:
    child = forked.Process(target=work, args=args)
    child.start()
    child.join()
    assert child.exitcode == 0


def _words(root: Path) -> list[object]:
    return synthesize_words(root, config=root / "config.yaml")


def _record(root: Path, target: Path) -> None:
    disk = Disk(root)
    disk.watch()
    code, _, err = run_cli(*_words(root))
    disk.on = False
    assert code == 0, err
    os.link(root / "home" / LEDGER, root.with_name("kept-" + LEDGER))
    with target.open("wb") as file:
        pickle.dump((disk.root, disk.points, disk.contents, disk.scan(), list(sys.modules)), file)


def _lives(recorded: Path, target: Path, choose: Choose) -> None:
    with recorded.open("rb") as file:
        root, points, contents, end, modules = pickle.load(file)
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)
    disk = Disk(root, points, contents)
    with target.open("w") as file:
        for number, state in choose(disk):
            life = Life(number, state, points[number].operation, _live(disk, end, number, state))
            print(json.dumps(asdict(life)), file=file, flush=True)


def _live(disk: Disk, end: Tree, number: int, state: str) -> list[str]:
    """Bring a run into a state and let it go on; return what is wrong then."""
    root, ledger = disk.root, disk.root.with_name("kept-" + LEDGER)
    answer, said = root.with_name("answer.json"), root.with_name("said.txt")
    for file in (answer, said):
        file.unlink(missing_ok=True)
    if state in STATES:
        lay_out(disk, STATES[state](disk, number), ledger)
    else:
        lay_out(disk, disk.points[0].tree, ledger)
        _fork(lambda: _fail(root, number, state))
    before = disk.points[number].tree if state in STATES else {}
    code = _fork(lambda: answer.write_text(json.dumps(_go_on(root, disk, end, before))))
    faults = json.loads(answer.read_text()) if answer.exists() else [f"the process ended with {code}"]
    return faults + (_said(said.read_text(), "the run that failed") if said.exists() else [])


def _fork(work: Callable[[], Any]) -> int:
    """Do something in a copy of this process, and return how that ended."""
    sys.stdout.flush()
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _fail(root: Path, number: int, state: str) -> None:
    """Run until an operation fails, or kills the process."""
    disk = Disk(root)

    def fail(count: int, what: str) -> None:
        if count == number and state == "killed at once":
            os.kill(os.getpid(), signal.SIGKILL)
        if count == number:
            raise OSError(FAULTS[state], os.strerror(FAULTS[state]), what.split()[-1])

    disk.before = fail
    disk.watch()
    _, _, err = run_cli(*_words(root))
    root.with_name("said.txt").write_text(err)


def _go_on(root: Path, disk: Disk, end: Tree, before: Tree) -> list[str]:
    """Go on with the run that lies in the folder, or begin again if there is none; return what is wrong then."""
    home, out, faults = root / "home", root / "out", list[str]()
    if out.exists() and run_cli("verify", out)[0] != 3:
        faults.append("a hand-off is visible that is not whole")
    runs = [path.parent.name for path in home.glob("control/*/settings.json")]
    words = ["resume", runs[0], "--home", home, "--no-prefect"] if runs else _words(root)
    code, _, err = run_cli(*words)
    faults += _said(err, "the run that goes on")
    if code:
        return [*faults, f"it ended with {code}: {err[-300:]}"]
    if (verified := run_cli("verify", out))[0] != 3:
        faults.append(f"the hand-off is not whole: {verified}")
    if run_cli("ledger", "verify", "--home", home)[0]:
        faults.append("the ledger is not whole")
    kinds = charges(home)
    if [kinds.count(kind) for kind in ("reserve", "seal", "commit")] != [1, 1, 1]:
        faults.append(f"the charges are {kinds}")
    faults += _differences(root, disk, end, before)
    return faults


def _said(err: str, who: str) -> list[str]:
    return [f"{who} printed a traceback: {err[-1500:]}"] if "Traceback" in err else []


def _nameless(name: str, run: str) -> str:
    """Take out of a file's name the run's, and the hashes of contents, which each home keys by a secret of its own."""
    return re.sub(r"(/sensitive/\.contents)/.*", r"\1", name.replace(run, "RUN"))


def _differences(root: Path, disk: Disk, end: Tree, before: Tree) -> list[str]:
    """Compare what lies in the folder with what the run that nothing stopped left there."""
    (run,) = {Path(name).parts[2] for name in end if name.startswith("home/control/2") and name.count("/") == 2}
    now = Disk(root).scan()
    (this,) = {Path(name).parts[2] for name in now if name.startswith("home/control/2") and name.count("/") == 2}
    names, wanted = {_nameless(name, this) for name in now}, {_nameless(name, run) for name in end}
    wanted.add("home/sensitive/RUN/error.txt")  # of a stage that failed; it is there to be read
    faults = [f"left over: {name}" for name in sorted(names - wanted) if LEDGER not in name]
    faults += [f"missing: {name}" for name in sorted(wanted - names) if LEDGER not in name and "error.txt" not in name]
    if f"home/released/{this}/release.parquet" in before:  # sealed by then, so all that follows is the same again
        made = {name: node.content for name, node in end.items() if name.startswith("out/synthetic/p")}
        faults += [f"other bytes: {name}" for name in made if name in now and now[name].content != made[name]]
    if not (root / "out" / MANIFEST).is_file() or read_manifest(root / "out").made_by != this:
        faults.append("the hand-off is of another run")
    return faults
