"""Disclose a hand-off: the records by which registries and catalogs know it, made of what it says of itself."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from dpmodels.authoring.lint import parse
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.hand_off.card import standings, terms
from dpmodels.hand_off.catalogs.disclosure import Answers
from dpmodels.hand_off.manifest import CARD, MANIFEST, Manifest, read_bytes, read_manifest
from dpmodels.hand_off.records import RECORDS, RECORDS_SIGNATURE, check_records, list_of, records_of
from dpmodels.hand_off.signature import sign_manifest
from dpmodels.keys import key_text
from dpmodels.keys import public_key as read_public_key
from dpmodels.ledger.records import Standing
from dpmodels.releases.contract import Contract
from tasks.run.bucket import verify
from tasks.run.ready import check_free
from tasks.run.signing import check_signing_key, passphrase_of
from tasks.run.store import NAME, Run


def hand_off_of(home: Path, name: str) -> tuple[Path, str]:
    """Return the folder of a hand-off that is named by its path, or by the run that made it, and its URI if it has one.

    A run whose hand-off lies in an object store keeps all of it but the table in its folder.
    """
    folder = Path(name)
    if (folder / MANIFEST).exists() or not re.fullmatch(NAME, name):
        return folder, ""
    settings = Run.find(home, name).settings
    return settings.out, settings.bucket


def disclose(
    hand_off: Path, out: Path, answers: Answers, url: str = "", bucket: str = "", key: Path | None = None
) -> list[Path]:
    """Write both records of a hand-off into a new folder, once it was verified; return their paths.

    Args:
        hand_off: its folder, in which nothing is written.
        out: a new folder.
        answers: what a person says of the deployment.
        url: where the hand-off is published; its URI, or its folder as seen from the records, where it is empty.
        bucket: the URI of the hand-off, where it lies in an object store.
        key: the private key that signs the list of the records.

    Raises:
        ArtifactError: the hand-off has faults, or there is something at ``out``.
        InvalidArgument: the key cannot sign.
    """
    check_free(out)
    if key:
        check_signing_key(key)
    if faults := verify(bucket or hand_off).faults:
        raise ArtifactError(f"{hand_off} is not as it was handed over, and nothing is said of it: {faults[0]}")
    manifest, contract, stood = _facts(hand_off)
    day = terms(manifest)["day"] or f"{datetime.now(UTC):%Y-%m-%d}"
    place = url or bucket or os.path.relpath(hand_off.absolute(), out.absolute())
    written = records_of(manifest, contract, stood, day, place, answers)
    listed = list_of(written, read_bytes(hand_off), day, place, answers)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in {**written, RECORDS: listed}.items():
        (out / name).write_text(text, encoding="utf-8")
    if key:
        sign_manifest(out, key, passphrase_of(key), RECORDS, RECORDS_SIGNATURE)
    return [out / name for name in written]


def verify_records(hand_off: Path, records: Path, public_key: Path | None = None) -> list[str]:
    """Return what is wrong with the records of a hand-off in a folder, once this was verified.

    Raises:
        ArtifactError: its schema cannot be read by this version.
        Unsuitable: the hand-off is no folder here.
    """
    if not (hand_off / MANIFEST).is_file():
        raise Unsuitable(f"records are held against a hand-off in a folder: download {hand_off} first")
    manifest, contract, stood = _facts(hand_off)
    key = key_text(read_public_key(public_key)) if public_key else ""
    return list(check_records(records, read_bytes(hand_off), manifest, contract, stood, key))


def _facts(hand_off: Path) -> tuple[Manifest, Contract, list[Standing]]:
    manifest, (contract, _) = read_manifest(hand_off), parse((hand_off / "schema.yaml").read_text(encoding="utf-8"))
    if contract is None:
        raise ArtifactError(f"the schema of {hand_off} cannot be read by this version")
    return manifest, contract, standings(hand_off) if CARD in manifest.artifacts else []
