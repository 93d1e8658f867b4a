"""Dask workers as processes, and how one is killed."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


START = """
import asyncio, sys
from distributed import Scheduler, Worker

async def main(kind, address):
    if kind == "scheduler":
        server = Scheduler(host="127.0.0.1", port=0, dashboard=False, protocol=sys.argv[4])
    else:
        own = {"protocol": sys.argv[4], "local_directory": sys.argv[3]}
        server = Worker(address, host="127.0.0.1", nthreads=1, dashboard=False, **own)
    async with server:
        print(server.address, flush=True)
        await server.finished()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


class Processes:
    """The scheduler and the workers of one cluster, each a process of its own."""

    def __init__(self, folder: Path, protocol: str = "tcp://", **named: str) -> None:
        self.folder, self.running, self.protocol, self.named = folder, [], protocol, named
        self.scheduler, self.address = self.start("scheduler", "")
        self.workers, self.read = list[subprocess.Popen[str]](), 0
        self.heal()

    def start(self, kind: str, address: str) -> tuple[subprocess.Popen[str], str]:
        words = [sys.executable, "-c", START, kind, address, str(self.folder), self.protocol]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_LOGGING__DISTRIBUTED": "error", **self.named}
        with open(self.folder / "log", "a") as log:
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self.running.append(process)
        return process, process.stdout.readline().strip()

    def heal(self) -> None:
        """Start a worker for each that was killed."""
        alive = [worker for worker in self.workers if worker.poll() is None]
        self.workers = alive + [self.start("worker", self.address)[0] for _ in range(2 - len(alive))]
        self.read = (self.folder / "log").stat().st_size

    def said(self) -> str:
        """Return what was logged since the cluster was last healed."""
        return (self.folder / "log").read_text()[self.read :]

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
            process.stdout.close()


def begun(marks: Path, process: subprocess.Popen[str]) -> set[str]:
    return {path.name.partition("-")[2] for path in marks.glob(f"{process.pid}-*")}


def kill_in_the_middle(marks: Path, process: subprocess.Popen[str]) -> threading.Thread:
    """Kill a worker with SIGKILL while it is at its second part."""

    def watch() -> None:
        end = time.monotonic() + 60
        while len(begun(marks, process)) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        process.kill()
        process.wait(30)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread
