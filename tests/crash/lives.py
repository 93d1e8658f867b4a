"""One run whose every operation is recorded, and the lives of runs that went on from any state which it passed."""

import importlib
import json
import os
import pickle
import shutil
import signal
import sys, time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from tests.children import forked
from tests.crash.disk import LEDGER, Disk, Tree, lay_out, torn, without_power
from tests.support import charges, run_cli, synthesize_words, write_clinic

STATES: dict[str, Callable[[Disk, int], Tree]] = {
    "killed": lambda disk, number: disk.points[number].tree,
    "torn": torn,
    "renamed but empty": lambda disk, number: without_power(disk, number, "new"),
    "forgotten": lambda disk, number: without_power(disk, number, "old"),
    "half of each": lambda disk, number: without_power(disk, number, "mixed"),
}
FAULTS = {"disk is full": 28, "disk fails": 5}
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


def live_on(recorded: Path, choose: Callable[[Disk], list[tuple[int, str]]]) -> list[Life]:
    """Let a run go on from each of some states; they share a process that has imported what a run imports."""
    target = recorded.with_name("lives.pickle")
    _in_child(_lives, recorded, target, choose)
    with target.open("rb") as file:
        return list(pickle.load(file))


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


def _lives(recorded: Path, target: Path, choose: Callable[[Disk], list[tuple[int, str]]]) -> None:
    with recorded.open("rb") as file:
        root, points, contents, end, modules = pickle.load(file)
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    T=open('/tmp/lives.log','w'); print('imports', time.process_time(),file=T)
    disk, ledger = Disk(root, points, contents), root.with_name("kept-" + LEDGER)
    lives = []; began=time.time()
    for number, state in choose(disk):
        if state in STATES:
            tree = STATES[state](disk, number)
        else:  # it begins again
            tree = {name: node for name, node in points[0].tree.items()}
        lay_out(disk, tree, ledger)
        if state not in STATES:
            _fork(lambda n=number, s=state: _fail(root, n, s))
        answer = root.with_name("answer.json")
        answer.unlink(missing_ok=True)
        code = _fork(lambda: answer.write_text(json.dumps(_go_on(root, disk, end, points[number].tree))))
        faults = json.loads(answer.read_text()) if answer.exists() else [f"the process ended with {code}"]
        if state not in STATES and (said := root.with_name("said.txt")).exists():
            faults += _said(1, said.read_text(), "the run that failed")
        print(number, state, time.time()-began, os.times(), file=T,flush=True); began=time.time()
        lives.append(Life(number, state, points[number].operation, faults))
    with target.open("wb") as file:
        pickle.dump(lives, file)


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
        import traceback

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
    if out.exists() and run_cli("verify", out)[0] != 0:
        faults.append("a hand-off is visible that is not whole")
    runs = [path.parent.name for path in home.glob("control/*/settings.json")]
    words = ["resume", runs[0], "--home", home, "--no-prefect"] if runs else _words(root)
    code, _, err = run_cli(*words)
    faults += _said(code, err, "the run that goes on")
    if code:
        return [*faults, f"it ended with {code}: {err[-300:]}"]
    if (verified := run_cli("verify", out))[0]:
        faults.append(f"the hand-off is not whole: {verified}")
    if run_cli("ledger", "verify", "--home", home)[0]:
        faults.append("the ledger is not whole")
    kinds = charges(home)
    if [kinds.count(kind) for kind in ("reserve", "seal", "commit")] != [1, 1, 1]:
        faults.append(f"the charges are {kinds}")
    faults += _differences(root, disk, end, before)
    return faults


def _said(code: int, err: str, who: str) -> list[str]:
    return [f"{who} printed a traceback: {err[-1500:]}"] if "Traceback" in err else []


def _differences(root: Path, disk: Disk, end: Tree, before: Tree) -> list[str]:
    """Compare what lies in the folder with what the run that nothing stopped left there."""
    (run,) = {Path(name).parts[2] for name in end if name.startswith("home/control/2") and name.count("/") == 2}
    now = Disk(root).scan()
    (this,) = {Path(name).parts[2] for name in now if name.startswith("home/control/2") and name.count("/") == 2}
    names, wanted = {name.replace(this, "RUN") for name in now}, {name.replace(run, "RUN") for name in end}
    faults = [f"left over: {name}" for name in sorted(names - wanted) if LEDGER not in name]
    faults += [f"missing: {name}" for name in sorted(wanted - names) if LEDGER not in name]
    if this == run and any(name.endswith(f"{run}/release.parquet") and "released" in name for name in before):
        whole = {name: node.content for name, node in end.items() if name.startswith("out/synthetic/")}
        faults += [f"other bytes: {name}" for name, sha in whole.items() if name in now and now[name].mode and
                   Disk(root).keep((root / name).read_bytes()) != sha]
    if not (root / "out" / MANIFEST).is_file() or read_manifest(root / "out").made_by != this:
        faults.append("the hand-off is of another run")
    return faults


def sweep_away(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
