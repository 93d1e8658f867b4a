"""A Flower network on this machine: a SuperLink and a SuperNode for each ward, which talk over gRPC on loopback."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from tests.kit.wards import CLASSES, INPUTS

ROOT = Path(__file__).parents[2]
APP = ROOT / "nacre" / "flower" / "app"
BINARIES = Path(sys.executable).parent
RUNTIME = ["--disable-runtime-dependency-installation"]
APIS = ("serverappio", "fleet", "control")


def agreement(folder: Path, client: str, **changes: Any) -> dict[str, Any]:
    """Return what a ward's operator agrees to."""
    content = {
        "name": "wards",
        "client": client,
        "data": str(folder / client),
        "most_records": 1000,
        "classes": list(CLASSES),
        "records": {"inputs": list(INPUTS)},
        "privacy": {"target_epsilon": 3.0, "delta": 1e-5, "cap_epsilon": 3.0},
        "runtime": {"home": str(folder / f"home-{client}")},
    }
    return content | changes


@dataclass
class Network:
    """The network's processes by name, and the environment in which ``flwr`` finds it."""

    folder: Path
    environment: dict[str, str]
    address: dict[str, str]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def link(self) -> None:
        """Start the SuperLink, which knows its SuperNodes again after it was killed."""
        state = ["--database", str(self.folder / "flower" / "state.db")]
        apis = [word for api in APIS for word in (f"--{api}-api-address", self.address[api])]
        self._begin("superlink", "flower-superlink", "--insecure", *state, *RUNTIME, *apis)

    def join(self, client: str) -> None:
        """Start a ward's SuperNode."""
        file = self.folder / f"{client}.yaml"
        file.write_text(yaml.safe_dump(agreement(self.folder, client)))
        place = ["--superlink", self.address["fleet"], "--clientappio-api-address", self.address[client]]
        self._begin(client, "flower-supernode", "--insecure", *place, "--node-config", f'nacre="{file}"')

    def kill(self, name: str) -> None:
        """Kill a process and all that it started, at once."""
        process = self.processes.pop(name)
        for one in (*psutil.Process(process.pid).children(recursive=True), process):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()

    def run(self, config: Path) -> "subprocess.Popen[str]":
        """Begin the app, which ends with the federation."""
        words = [BINARIES / "flwr", "run", APP, "here", "--stream", "--run-config", f'config="{config}"']
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(list(map(str, words)), env=self.environment, **pipes)

    def finished(self, config: Path, out: Path) -> str:
        """Run the app until its hand-off is there; return what it said."""
        for _ in range(10):  # the SuperLink may not listen yet
            running = self.run(config)
            said = running.communicate(timeout=400)[0]
            if running.returncode == 0:
                break
            time.sleep(1)
        assert running.returncode == 0 and out.exists(), said
        return said

    def _begin(self, name: str, program: str, *words: str) -> None:
        with (self.folder / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen(
                [BINARIES / program, *words], env=self.environment, stdout=log, stderr=log
            )


@contextmanager
def network(folder: Path, clients: Sequence[str], path: str = str(ROOT)) -> Iterator[Network]:
    """Start a network, whose processes import from ``path``, and end all of it at the end."""
    names = [*APIS, *clients]
    address = {name: f"127.0.0.1:{port}" for name, port in zip(names, _free_ports(len(names)), strict=True)}
    home = folder / "flower"
    home.mkdir()
    connection = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{address["control"]}"\ninsecure = true\n'
    (home / "config.toml").write_text(connection)
    environment = os.environ | {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": path, "PATH": f"{BINARIES}{os.pathsep}{os.environ['PATH']}"}
    made = Network(folder, environment, address)
    try:
        made.link()
        for client in clients:
            made.join(client)
        yield made
    finally:
        for name in list(made.processes):
            made.kill(name)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
