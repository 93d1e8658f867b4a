"""Anchors of a ledger's head at a place that is appended to only: a folder or an object store.

NACRE_ANCHOR names the place; each run then looks at its newest anchor before anything is charged. NACRE_ANCHOR_KEY is
the file of the public key (PEM) that anchors must be signed with.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from dpmodels.artifact import sync
from dpmodels.errors import ArtifactError, LedgerError, NacreError
from dpmodels.keys import key_text, public_key
from dpmodels.ledger.anchor import LARGEST_ANCHOR, Anchor, SignedAnchor
from dpmodels.ledger.ledger import Ledger
from dpmodels.reading.data_files import check_place, is_uri
from tasks.engine.progress import LOG
from tasks.run.bucket import Bucket
from tasks.run.signing import passphrase_of

PLACE, KEY = "NACRE_ANCHOR", "NACRE_ANCHOR_KEY"
NAME = re.compile(r"anchor-\d{12}-[0-9a-f]{16}\.json")
DAY = 86_400


def write_anchor(ledger: Ledger, uri: str, key: Path) -> tuple[Anchor, str]:
    """Sign where a ledger stands, and write it beside the earlier anchors; return the anchor and its file's name.

    Nothing is ever overwritten. A head that is anchored already stays as it is.

    Raises:
        NacreError: the place cannot be written, the key cannot sign, or the ledger lacks what it last signed for there.
    """
    check_place(uri, "anchor")
    anchor = Anchor.of(ledger)
    content, names = anchor.signed(key, passphrase_of(key)).encode(), _names(uri)
    if anchor.name in names:
        return anchor, anchor.name
    public = json.loads(content)["public_key"]
    earlier = (SignedAnchor.read(Bucket(uri).read(name, LARGEST_ANCHOR), public) for name in reversed(names))
    newest = next(filter(None, earlier), None)
    if newest and (fault := newest.fault(ledger)):  # a newer anchor would hide what was put back
        raise LedgerError(f"{fault}; nothing was anchored. Put the newest copy of the ledger back")
    if is_uri(uri):
        Bucket(uri).write(content, anchor.name)
    else:
        _write_new(Path(uri) / anchor.name, content)
    return anchor, anchor.name


def anchor_faults(ledger: Ledger, uri: str, key: Path) -> tuple[int, list[str]]:
    """Count the anchors at a place, and name every one that the ledger lacks or that a public key did not sign."""
    names, public = _names(uri), key_text(public_key(key, "public_key"))
    faults = [fault for name in names for fault in _faults(ledger, uri, name, public)]
    return len(names), faults if names else [f"there is no anchor at {uri}"]


def check_anchored(ledger: Ledger) -> None:
    """Refuse a ledger that lacks what was anchored last, where this process was told of a place of anchors.

    Raises:
        LedgerError: it does, or there is no anchor of a ledger that has entries.
    """
    if not (uri := os.environ.get(PLACE)):
        return
    if not (key := os.environ.get(KEY)):
        raise LedgerError(f"{PLACE} names a place, and {KEY} no public key (PEM) by which its anchors are known")
    names = _names(uri)
    if not names and ledger.head() is not None:
        raise LedgerError(f"there is no anchor at {uri}; nothing was charged. Make one: nacre ledger anchor {uri}")
    for name in names[-1:]:
        for fault in _faults(ledger, uri, name, key_text(public_key(Path(key), KEY))):
            raise LedgerError(f"{fault}; nothing was charged. Put the newest copy of the ledger back")


def anchor_after(ledger: Ledger, key: Path | None) -> None:
    """Anchor the ledger after a hand-off, where this process was told of a place and the run signs; else only warn."""
    if not (uri := os.environ.get(PLACE)) or key is None:
        return
    try:
        write_anchor(ledger, uri, key)
    except NacreError as error:  # the hand-off is complete; the next run says it again
        LOG.warning("the ledger was not anchored: %s", error)


def _faults(ledger: Ledger, uri: str, name: str, key: str) -> Iterator[str]:
    anchor = SignedAnchor.read(Bucket(uri).read(name, LARGEST_ANCHOR), key)
    if anchor is None or anchor.name != name:
        yield f"{name} at {uri} is not an anchor that is signed with this key"
    elif fault := anchor.fault(ledger):
        yield fault


def _names(uri: str) -> list[str]:
    """List the anchors at a place, by position."""
    return sorted(name for name in Bucket(uri).names() if NAME.fullmatch(name))


def _write_new(path: Path, content: bytes) -> None:
    """Write a file that was not there; its time is the beginning of the day, as in a hand-off."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
        day = time.time() // DAY * DAY
        os.utime(path, (day, day))
        sync(path)
        sync(path.parent)
    except OSError as error:
        raise ArtifactError(f"the anchor {path} cannot be written: {error.strerror}") from None
