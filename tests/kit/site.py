"""A site with data: its folder, its worker, and the Prefect server that says what is due."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from flows.with_prefect.operators import SHIPPED
from tests.kit.api import Api, wait_until
from tests.kit.support import read_only, write_clinic

ROOT = Path(__file__).parents[2]
CAP = PrivacyBudget(epsilon=2, delta=1e-5)
WAIT = 240  # seconds; a flow run imports for ten of them on a free core


@dataclass
class Site:
    """A folder with data, the home of its workers, and the server they ask for work."""

    folder: Path
    api: Api
    ledger_url: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.ledger_url or self.home / "ledger.sqlite")

    @property
    def file(self) -> Path:
        """The operator's file."""
        return self.folder / "prefect.yaml"

    def environment(self, home: Path) -> dict[str, str]:
        own = {"PREFECT_API_URL": self.api.url, "PREFECT_HOME": str(self.folder / "prefect"), "NACRE_HOME": str(home)}
        own |= {"PREFECT_WORKER_QUERY_SECONDS": "1", "PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "1"}
        return {**os.environ, **own} | ({"NACRE_LEDGER": self.ledger_url} if self.ledger_url else {})

    def config(self, out: str, **changes: Any) -> dict[str, Any]:
        """Return the parameters of a quick synthesis; ``{night}`` is the flow's to fill in."""
        model = yaml.safe_load((self.folder / "config.yaml").read_text())["model"]
        model["training"]["steps"] = changes.pop("steps", 6)
        privacy = {"target_epsilon": 0.5, "delta": 1e-5, "account": "clinic"}
        data = changes.pop("data", str(self.folder / "{night}.parquet"))
        schema = str(self.folder / "clinic.yaml")
        own = {"data": data, "schema": schema, "out": str(self.folder / out), "privacy": privacy, "model": model}
        return own | changes

    def write_file(self) -> Path:
        """Write the shipped deployments, with this site's paths in the place of the shipped ones."""
        content = yaml.safe_load(SHIPPED.read_text())
        steps = {"config.model.training.steps": {"at_least": 1, "at_most": 100_000}}
        for one in content["deployments"]:
            if one["name"] == "nightly":
                one["parameters"]["config"] = self.config("night-{night}")
                one["allow"] |= steps | {"partitions": {"one_of": ["sequential"]}}
            if one["name"] == "ad-hoc":
                one["parameters"] = {"config": {"model": self.config("")["model"]}}
                within = {"within": [str(self.folder)]}
                one["allow"] |= {f"config.{name}": within for name in ("data", "schema", "out")} | steps
                one["allow"]["config.privacy.account"] = {"one_of": ["clinic"]}
        self.file.write_text(yaml.safe_dump(content))
        return self.file

    def deploy(self) -> None:
        """Register the deployments."""
        words = [sys.executable, "-m", "nacre", "deploy", "--file", str(self.write_file())]
        done = subprocess.run(words, env=self.environment(self.home), cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start the worker that reads data."""
        return self._start(["worker", "--file", str(self.file)], self.environment(self.home))

    def start_train_worker(self, home: Path) -> subprocess.Popen[bytes]:
        """Start the worker that does not, with nothing of Prefect in its environment."""
        known = ("PREFECT_", "NACRE_", "PG")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(known)}
        above = read_only(self.home / "control")
        return self._start(["train-worker", "--home", str(home)], {**environment, "PYTHONPATH": str(ROOT)}, above)

    def _start(
        self, words: list[str], environment: dict[str, str], above: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        with open(self.log(len(self.workers)), "wb") as log:
            command = [*above, sys.executable, "-m", "nacre", *words]
            worker = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def log(self, number: int = 0) -> Path:
        """Return where a worker's log lies."""
        return self.folder / f"worker-{number}.log"

    def ask_for(self, deployment: str, **parameters: Any) -> str:
        """Ask for a flow run; return its id."""
        return self.ask_with(deployment, parameters=parameters)

    def ask_with(self, deployment: str, **said: Any) -> str:
        """Ask for a flow run with anything that the server takes."""
        found = self.api.get(f"deployments/name/{deployment}")
        wanted = {"state": {"type": "SCHEDULED"}, **said}
        made: str = self.api.ask(f"deployments/{found['id']}/create_flow_run", wanted)["id"]
        return made

    def wait_for(self, flow_run: str, state: str = "COMPLETED", seconds: float = WAIT) -> dict[str, Any]:
        """Wait for a state of a flow run."""

        def there() -> bool:
            now = self.api.get(f"flow_runs/{flow_run}")
            assert now["state_type"] not in {"FAILED", "CRASHED"} - {state}, now["state"]["message"]
            return bool(now["state_type"] == state)

        wait_until(there, seconds)
        found: dict[str, Any] = self.api.get(f"flow_runs/{flow_run}")
        return found

    def kinds(self, run: str) -> list[str]:
        """Return the kinds of the ledger's entries about a run."""
        entries = self.ledger.entries()
        paid = {entry.charge for entry in entries if entry.run == run}
        return [entry.kind for entry in entries if entry.charge in paid]

    def open(self) -> None:
        """Write the data, open its account and register the deployments."""
        write_clinic(self.folder, rows=60)
        self.home.mkdir()
        self.ledger.open_account("clinic", dataset="clinic", budget_cap=CAP)
        self.deploy()

    def close(self) -> None:
        """Kill the workers that are left."""
        for worker in self.workers:
            if worker.poll() is None:
                kill(worker)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all its children at once, as a power cut does."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        member.send_signal(signal.SIGKILL)
    process.wait()
    psutil.wait_procs(family, 20)
