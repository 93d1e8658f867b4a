"""A Flower network on this machine: a SuperLink and a SuperNode for each ward, which talk over gRPC on loopback."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.wards import CLASSES, INPUTS

ROOT = Path(__file__).parents[2]
APP = ROOT / "nacre" / "flower" / "app"
BINARIES = Path(sys.executable).parent
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
        "privacy": {"target_epsilon": 3.0, "delta": 1e-5},
        "runtime": {"home": str(folder / f"home-{client}")},
    }
    return content | changes


@contextmanager
def network(folder: Path, clients: Sequence[str], path: str = str(ROOT)) -> Iterator[dict[str, str]]:
    """Start a network, whose processes import from ``path``, and yield the environment in which ``flwr`` finds it."""
    ports = _free_ports(len(APIS) + len(clients))
    home = folder / "flower"
    home.mkdir()
    address = {api: f"127.0.0.1:{port}" for api, port in zip(APIS, ports, strict=False)}
    connection = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{address["control"]}"\ninsecure = true\n'
    (home / "config.toml").write_text(connection)
    environment = os.environ | {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": path, "PATH": f"{BINARIES}{os.pathsep}{os.environ['PATH']}"}
    apis = [word for api in APIS for word in (f"--{api}-api-address", address[api])]
    with ExitStack() as stack:

        def begin(name: str, *words: str) -> None:
            stack.enter_context(_running(folder / f"{name}.log", environment, *words))

        begin("superlink", "flower-superlink", "--insecure", "--disable-runtime-dependency-installation", *apis)
        for client, port in zip(clients, ports[len(APIS) :], strict=True):
            file = folder / f"{client}.yaml"
            file.write_text(yaml.safe_dump(agreement(folder, client)))
            place = ["--superlink", address["fleet"], "--clientappio-api-address", f"127.0.0.1:{port}"]
            begin(client, "flower-supernode", "--insecure", *place, "--node-config", f'nacre="{file}"')
        yield environment


def flower_run(config: Path, out: Path, environment: Mapping[str, str]) -> str:
    """Run the app until its hand-off is there or it has failed; return what it said."""
    words = [BINARIES / "flwr", "run", APP, "here", "--stream", "--run-config", f'config="{config}"']
    for _ in range(10):  # the SuperLink may not listen yet
        done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, timeout=240)
        if done.returncode == 0:
            break
        time.sleep(1)
    assert done.returncode == 0 and out.exists(), done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def _running(log: Path, environment: Mapping[str, str], program: str, *words: str) -> Iterator[None]:
    with log.open("w") as file:
        process = subprocess.Popen([BINARIES / program, *words], env=environment, stdout=file, stderr=file)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
