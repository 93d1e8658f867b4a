"""Write ``constraints.txt``, the versions that were tested together, and ``requirements.txt``, their files by hash.

    python -m supply.pins REPORT

REPORT is what ``pip install --report`` says of a fresh installation; ``make constraints`` makes it.
"""

import json
import sys
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from supply.installed import ROOT

VERSIONS = (
    "# The versions that were tested together, on Python 3.11 with the CPU build of torch; "
    "`make constraints` renews them."
)
FILES = """\
# The very files that were tested together, on Linux (x86-64) with Python 3.11; `make constraints` renews them:
#   python -m pip install --require-hashes --no-deps -r requirements.txt
# The file of torch is its build for the CPU: let pip find it by PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS."""
CUDA = ("nvidia", "cuda", "triton")


def lines(report: Path) -> tuple[list[str], list[str]]:
    """Return the lines of both files.

    Raises:
        SystemExit: the installation took packages of CUDA, or a file that has no hash.
    """
    pins, files = dict[str, str](), dict[str, str]()
    for entry in json.loads(report.read_text(encoding="utf-8"))["install"]:
        name, version = entry["metadata"]["name"], Version(entry["metadata"]["version"]).public
        if canonicalize_name(name) in ("nacre", "pip"):
            continue
        if name.startswith(CUDA):
            raise SystemExit(f"{name} is for CUDA: have pip find the CPU build of torch")
        digest = entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest is None:
            raise SystemExit(f"{name} is no file with a hash: install it from a package index")
        pins[name] = f"{name}=={version}"
        files[name] = f"{name}=={version} --hash=sha256:{digest}"
    order = sorted(pins, key=canonicalize_name)
    return [VERSIONS, *(pins[name] for name in order)], [FILES, *(files[name] for name in order)]


def main() -> None:
    """Write both files."""
    for name, content in zip(("constraints.txt", "requirements.txt"), lines(Path(sys.argv[1])), strict=True):
        (ROOT / name).write_text("\n".join(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
