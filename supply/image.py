"""Follow deployments/Dockerfile step by step in a clean root, where no engine runs containers, and try the result.

    python -m supply.image FOLDER [--bind FOLDER ...]

It takes a user who may mount and change roots, and debootstrap. The base image is stood for by a minimal Debian with
the Python that the Dockerfile names; every other instruction is carried out as it is written. Then, as the image's
user, its command is run, and a small table is synthesized and verified. What pip is told by variables named PIP_...
holds there too, and folders that it looks into are bound.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from supply.installed import ROOT
from supply.packages import CONSISTENT, RUN, SCHEMA, run, tracked

DOCKERFILE = ROOT / "deployments" / "Dockerfile"
RELEASES = {"3.11": "bookworm", "3.13": "trixie"}
"""Debian's releases by their Python."""
PACKAGES = ("python3", "python3-pip", "python3-venv", "ca-certificates")
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NETWORK = ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt")


@dataclass
class Image:
    """A root that instructions change, and what they said of the processes in it."""

    root: Path
    user: str = "root"
    folder: str = "/"
    command: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, words: Sequence[str], user: str = "", status: int = 0) -> str:
        """Run a command inside and return what it printed; its folder and its environment are the image's."""
        return run(self.inside(words, self.root, user), status, env=self.variables(user))

    def inside(self, words: Sequence[str], root: Path, user: str = "") -> list[str]:
        """Return a command that runs these words in the image's folder, where the image's root lies at ``root``."""
        user = user or self.user
        return ["chroot", f"--userspec={user}:{user}", str(root), "/usr/bin/env", "-C", self.folder, *words]

    def variables(self, user: str = "") -> dict[str, str]:
        """Return the environment of a command inside."""
        user = user or self.user
        home = "/root" if user == "root" else f"/home/{user}"
        return {"PATH": SEARCHED, "HOME": home, "LC_ALL": "C.UTF-8", **self.environment}

    def copy(self, words: Sequence[str]) -> None:
        """Copy what git knows of files and folders of the repository."""
        *sources, target = words
        for name in tracked():
            for source in sources:
                if name == source or name.startswith(f"{source}/"):
                    inner = name.removeprefix(source).lstrip("/") or Path(name).name
                    place = self.root / target.lstrip("/") / inner
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, place)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield a Dockerfile's instructions with what follows them, on one line each."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


def follow(image: Image, name: str, rest: str) -> None:
    """Carry one instruction out.

    Raises:
        SystemExit: it is of a kind that the Dockerfile did not have so far, or it failed.
    """
    print(f"{name} {rest}", flush=True)
    if name == "FROM":
        begin(image, rest)
    elif name == "RUN":
        image.run(["sh", "-c", rest])
    elif name == "COPY":
        image.copy(rest.split())
    elif name in {"ENV", "ARG"}:
        pairs = re.findall(r'(\w+)=("[^"]*"|\S*)', rest)
        image.environment |= {key: os.environ.get(key, value.strip('"')) for key, value in pairs}
    elif name == "USER":
        image.user = rest
    elif name == "WORKDIR":
        image.folder = rest
    elif name == "CMD":
        image.command = rest
    else:
        raise SystemExit(f"{DOCKERFILE.name} has {name}, which nobody taught this to follow")


def begin(image: Image, base: str) -> None:
    """Make a minimal Debian that stands for an image of Python."""
    version = re.fullmatch(r"python:(\d+\.\d+)-slim", base)
    if not version or version[1] not in RELEASES:
        raise SystemExit(f"no Debian is known that stands for {base}")
    run(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", RELEASES[version[1]], str(image.root)])
    (image.root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for name in NETWORK:
        if (Path("/") / name).exists():
            shutil.copy(Path("/") / name, image.root / name)
    image.environment |= {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    image.environment["PIP_BREAK_SYSTEM_PACKAGES"] = "1"  # Debian's Python is Debian's; an image of Python is ours


def make(root: Path, folders: Sequence[str]) -> Image:
    """Follow the Dockerfile in a root that is not there yet, and try what came of it."""
    image = Image(root)
    first, *others = instructions(DOCKERFILE.read_text(encoding="utf-8"))
    follow(image, *first)
    with mounted(root, ["/proc", "/dev", *folders]):
        for one in others:
            follow(image, *one)
        attempt(image)
    return image


def recall(root: Path) -> Image:
    """Return the image whose root was made earlier, with what the Dockerfile says of its processes."""
    image = Image(root)
    for name, rest in instructions(DOCKERFILE.read_text(encoding="utf-8")):
        if name in {"ENV", "USER", "WORKDIR", "CMD"}:
            follow(image, name, rest)
    return image


@contextmanager
def mounted(root: Path, folders: Sequence[str]) -> Iterator[None]:
    """Bind folders of this machine into the root, and take them away again."""
    with ExitStack() as stack:
        for folder in folders:
            place = root / folder.lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
            run(["mount", "--bind", folder, str(place)])
            stack.callback(subprocess.run, ["umount", "--lazy", str(place)], check=True)
        yield


def attempt(image: Image) -> None:
    """Run the image's command, and make a hand-off of a small table, as its user."""
    words = re.findall(r'"([^"]*)"', image.command)
    print(first_line(image.run(words)))
    home = image.root / "home" / image.user
    (home / "schema.yaml").write_text(SCHEMA)
    rows = "".join(f"{'east' if row % 3 else 'west'},{row % 90}\n" for row in range(900))
    (home / "table.csv").write_text("ward,age\n" + rows)
    image.run(["nacre", "synthesize", *RUN.split(), "--no-prefect"])
    print(first_line(image.run(["nacre", "verify", "hand-off"], status=CONSISTENT)))
    for folder, owner in (("/srv/nacre/sensitive", "700"), ("/mnt/nacre/released", "700")):
        if (mode := image.run(["stat", "--format=%a", folder]).strip()) != owner:
            raise SystemExit(f"{folder} has mode {mode}")


def first_line(text: str) -> str:
    """Return the first line with anything in it."""
    return next(line.strip() for line in text.splitlines() if line.strip())


def main(argv: Sequence[str] | None = None) -> None:
    """Follow the Dockerfile and try what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="the root, which must not be there yet")
    parser.add_argument("--bind", nargs="*", default=[], help="folders of this machine that pip looks into")
    args = parser.parse_args(argv)
    if args.folder.exists():
        raise SystemExit(f"{args.folder} is there already")
    make(args.folder, args.bind)
    print("every instruction was carried out, and what came of it works", file=sys.stderr)


if __name__ == "__main__":
    main()
