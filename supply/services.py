"""The services of a compose file as processes with mounts of their own, where no engine runs containers.

Each runs as its image's user, in a layer of its own over the image's root, and sees the volumes, files and configs that
the file gives it at their targets, and nothing else of this machine. All share one loopback device, and know by name
those with whom they share a network; a service without a network shares nothing.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from supply.image import Image
from supply.installed import ROOT
from supply.packages import run

COMPOSE = ROOT / "deployments" / "compose.yaml"
VARIABLE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)(?:(:[?-])([^}]*))?\})")
KEYS = {"build", "command", "configs", "depends_on", "environment", "healthcheck", "image", "network_mode", "networks"}
KEYS |= {"ports", "profiles", "restart", "volumes"}
"""What a service may say; ports are published as they are, because all services share one loopback device."""
GRACE = 10.0
"""Seconds that Compose gives a service to stop."""


@dataclass(frozen=True)
class Mount:
    """What a service sees at a target: a folder or a file of this machine."""

    source: Path
    target: str
    read_only: bool = False

    def lines(self) -> list[str]:
        """Return the lines of a shell that mount it below the folder where the shell is."""
        source, target = shlex.quote(str(self.source)), shlex.quote(self.target.lstrip("/"))
        place = f"mkdir -p {target}" if self.source.is_dir() else f'mkdir -p "$(dirname {target})"; touch {target}'
        return [place, f"mount --bind {source} {target}", *[f"mount -o remount,bind,ro {target}"] * self.read_only]


def interpolate(content: Any, variables: Mapping[str, str]) -> Any:
    """Fill variables in wherever a text names them, as Compose does.

    Raises:
        SystemExit: one has no value, and the text says that it must have one.
    """
    if isinstance(content, dict):
        return {key: interpolate(value, variables) for key, value in content.items()}
    if isinstance(content, list):
        return [interpolate(value, variables) for value in content]

    def value_of(match: re.Match[str]) -> str:
        dollar, bare, name, sign, text = match.groups()
        if dollar:
            return "$"
        value = variables.get(bare or name, "")
        if not value and sign == ":?":
            raise SystemExit(f"{name} has no value: {text}")
        return value or (text if sign == ":-" else "")

    return VARIABLE.sub(value_of, content) if isinstance(content, str) else content


def order(services: Mapping[str, Any]) -> list[str]:
    """Return the names of services, each after those that it depends on."""
    return list(
        TopologicalSorter({name: list(one.get("depends_on", ())) for name, one in services.items()}).static_order()
    )


def networks(service: Mapping[str, Any]) -> set[str]:
    """Return the networks of a service."""
    return set() if service.get("network_mode") == "none" else set(service.get("networks", ["default"]))


@dataclass
class Project:
    """The services of a compose file, as they run."""

    content: dict[str, Any]
    images: dict[str, Image]
    state: Path
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.services: dict[str, Any] = self.content["services"]
        if unknown := {key for one in self.services.values() for key in one} - KEYS:
            raise SystemExit(f"{COMPOSE.name} has {sorted(unknown)}, which nobody taught this to follow")
        for name in ("layer", "volumes", "configs", "hosts", "logs"):
            (self.state / name).mkdir()

    def image(self, name: str) -> Image:
        """Return the image of a service."""
        return self.images[self.services[name]["image"]]

    def mounts(self, name: str) -> list[Mount]:
        """Return what a service sees beside its image: configs, volumes, and the names of its neighbors."""
        service, mounts = self.services[name], []
        for one in service.get("configs", ()):
            config = self.content["configs"][one["source"]]
            text = config["content"] if "content" in config else (COMPOSE.parent / config["file"]).read_text()
            source = self.state / "configs" / one["source"]
            source.write_text(text)
            mounts.append(Mount(source, one["target"], True))
        for one in service.get("volumes", ()):
            source, target, *mode = one.split(":")
            path = Path(source) if source.startswith("/") else self.volume(source, self.image(name), target)
            mounts.append(Mount(path, target, mode == ["ro"]))
        near = [other for other, one in self.services.items() if networks(one) & networks(service)]
        hosts = self.state / "hosts" / name
        hosts.write_text("".join(f"127.0.0.1 {other}\n" for other in ["localhost", *near]))
        return [*mounts, Mount(hosts, "/etc/hosts", True)]

    def volume(self, name: str, image: Image, target: str) -> Path:
        """Return a named volume; a new one takes over who owns the folder that it covers."""
        volume, covered = self.state / "volumes" / name, image.root / target.lstrip("/")
        if name not in self.content["volumes"]:
            raise SystemExit(f"{COMPOSE.name} declares no volume {name}")
        if not volume.exists():
            volume.mkdir()
            if covered.is_dir():
                shutil.copystat(covered, volume)
                os.chown(volume, covered.stat().st_uid, covered.stat().st_gid)
        return volume

    def start(self, name: str, words: Sequence[str] = ()) -> None:
        """Start a service, or one command in its place."""
        service, image, layer = self.services[name], self.image(name), self.state / "layer"
        alone = ["--net"] if service.get("network_mode") == "none" else []
        words = list(words) or service.get("command") or json.loads(image.command)
        lines = ["ip link set lo up", f"mount -t tmpfs layer {layer}", f"cd {layer}", "mkdir upper work root"]
        lines += [f"mount -t overlay -o lowerdir={image.root},upperdir=upper,workdir=work overlay root", "cd root"]
        lines += ["mount -t proc proc proc", "mount --rbind /dev dev"]
        lines += [line for one in self.mounts(name) for line in one.lines()]
        lines += ["pivot_root . media", "umount --lazy /media", f"exec {shlex.join(image.inside(words, Path('/')))}"]
        apart = ["unshare", "--mount", "--ipc", "--uts", "--pid", "--fork", "--kill-child", *alone]
        with open(self.log(name), "ab") as log:
            self.running[name] = subprocess.Popen(
                [*apart, "sh", "-ec", "\n".join(lines)], env=self.environment(name), stdin=-3, stdout=log, stderr=log
            )
        self.starts[name] = self.starts.get(name, 0) + 1

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment of a service's processes."""
        return self.image(name).variables() | {
            key: str(one) for key, one in self.services[name].get("environment", {}).items()
        }

    def log(self, name: str) -> Path:
        """Return where a service's log lies."""
        return self.state / "logs" / name

    def within(self, name: str, words: Sequence[str]) -> list[str]:
        """Return a command that runs words beside a running service, as ``exec`` does."""
        number = self.running[name].pid
        spaces = ["--mount", "--ipc", "--uts", "--net", f"--pid=/proc/{number}/ns/pid_for_children"]
        return ["nsenter", f"--target={number}", *spaces, *self.image(name).inside(words, Path("/"))]

    def execute(self, name: str, words: Sequence[str], status: int = 0) -> str:
        """Run words beside a running service and return what they printed."""
        return run(self.within(name, words), status, env=self.environment(name))

    def healthy(self, name: str, test: Sequence[str] = ()) -> bool:
        """Tell whether a service passes its own test, or another."""
        words = test or self.services[name]["healthcheck"]["test"]
        command = self.within(name, words[1:])
        return not subprocess.run(command, env=self.environment(name), capture_output=True, check=False).returncode

    def wait(self, condition: Callable[[], bool], what: str, tries: int = 300, interval: float = 1.0) -> None:
        """Look again until a condition holds, and start again what ended and is to be restarted.

        Raises:
            SystemExit: it did not hold in all those tries.
        """
        for _ in range(tries):
            time.sleep(interval)
            for name, process in list(self.running.items()):
                if process.poll() is not None and self.services[name].get("restart") == "unless-stopped":
                    self.start(name)
            if condition():
                return
        raise SystemExit(f"{what}: it did not come to that")

    def ready(self, name: str) -> None:
        """Wait until what a service depends on is as the service asks."""
        for other, one in self.services[name].get("depends_on", {}).items():
            if one["condition"] == "service_healthy":
                check = self.services[other]["healthcheck"]
                interval = float(check["interval"].removesuffix("s"))
                self.wait(lambda: self.healthy(other), f"{other} is healthy", check["retries"], interval)  # noqa: B023
            else:
                self.finish(other)

    def finish(self, name: str) -> str:
        """Wait until a service has ended well, and return its log."""
        self.wait(lambda: self.running[name].poll() is not None, f"{name} has ended")
        if self.running[name].returncode:
            raise SystemExit(f"{name} ended with {self.running[name].returncode}")
        return self.log(name).read_text()

    def up(self) -> None:
        """Start every service that is in no profile, as ``up --detach`` does."""
        for name in order(self.services):
            if not self.services[name].get("profiles"):
                self.ready(name)
                self.start(name)
                print(f"started {name}", flush=True)

    def once(self, name: str, words: Sequence[str] = ()) -> str:
        """Run a service, or a command in its place, to its end and return its log, as ``run --rm`` does."""
        self.ready(name)
        self.log(name).unlink(missing_ok=True)
        self.start(name, words)
        return self.finish(name)

    def down(self) -> None:
        """Ask services to stop, the last one first, and end those that do not."""
        for name, process in reversed(self.running.items()):
            try:
                (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                os.kill(int(first), signal.SIGTERM)
                process.wait(GRACE)
            except (OSError, ValueError):
                continue
            except subprocess.TimeoutExpired:
                print(f"{name} did not stop within {GRACE:.0f} seconds")
            process.kill()
