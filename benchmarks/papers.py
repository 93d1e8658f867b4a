"""Run the commands that print what docs/papers.md compares with the five papers, one after another."""

import os
import shlex
import subprocess
import sys
from argparse import Namespace

from benchmarks.common import ROOT, parse

PAPERS = {
    "pearl": (
        "adult --protocols p3gm pearl --methods pearl dp-merf",
        "archive.merf",
        "archive.pearl",
        "archive.pearl_power",
        "archive.modes",
    ),
    "p3gm": (
        "archive.p3gm",
        "archive.p3gm_protocol",
        "archive.p3gm --parts images --methods p3gm dp-vae --epsilon 1000",
        "tables --tables creditcard --methods p3gm dp-vae --epsilon 1000",
        "tables --tables isolet --methods p3gm --epsilon 2.5",
        "tables --tables creditcard --methods privbayes",
    ),
    "dpkg": ("archive.dpkg",),
    "sentdp": ("sentdp", "archive.recoders"),
    "fedaux": ("archive.fedaux",),
}
"""By paper, the modules of this folder and their words; without words a module prints all of its parts."""
KEPT = {f"MALLOC_{name}_THRESHOLD_": str(2**34) for name in ("TRIM", "MMAP")}
"""By which glibc keeps the memory that it has, which halves the time of some convolutions and changes no figure."""


def main() -> None:
    """Run the commands of one paper, or of all."""
    args: Namespace = parse(__doc__, lambda parser: parser.add_argument("--paper", choices=list(PAPERS)))
    for paper in [args.paper] if args.paper else PAPERS:
        for words in PAPERS[paper]:
            command = [sys.executable, "-m", *shlex.split(f"benchmarks.{words}"), *(["--quick"] if args.quick else [])]
            print("python -m", *command[2:], flush=True)
            subprocess.run(command, cwd=ROOT, check=True, env=KEPT | os.environ)


if __name__ == "__main__":
    main()
