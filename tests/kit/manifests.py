"""A hand-off, and its manifest written anew."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmodels.hand_off.manifest import MANIFEST, own_digest
from tests.hand_off.make_golden import GOLDEN
from tests.kit.support import digest
from tests.releases import make_golden

CHARGED = make_golden.GOLDEN / "FORMAT-1" / "hand-off"
UNCHARGED = GOLDEN / "FORMAT-9" / "uncharged"
"""Handed over by a version that did so without a price."""


Json = dict[str, Any]


def facts(folder: Path = CHARGED) -> Json:
    found: Json = json.loads((folder / MANIFEST).read_text())
    return found


def rewritten(folder: Path, copy: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """Copy a hand-off without its signature, with one file changed and named in the manifest as it is now."""
    shutil.copytree(folder, copy)
    (copy / "manifest.sig").unlink(missing_ok=True)
    (copy / name).write_bytes(change((copy / name).read_bytes()))
    manifest = facts(copy)
    manifest["artifacts"][name] = digest(copy / name)
    write_manifest(copy, manifest)
    return copy


def write_manifest(folder: Path, content: Json) -> None:
    """Write a manifest with the digest of what it says now, as whoever changes one on purpose does."""
    digests = {"sha256": own_digest(content)} if "sha256" in content else {}
    (folder / MANIFEST).write_text(json.dumps(content | digests))
