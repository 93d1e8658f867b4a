"""Disclose a hand-off: the records by which registries and catalogs know it, made of what it says of itself."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

from dpmodels.authoring.lint import parse
from dpmodels.errors import ArtifactError
from dpmodels.hand_off.card import standings, terms
from dpmodels.hand_off.croissant import croissant_of
from dpmodels.hand_off.disclosure import Answers, as_yaml, record_of
from dpmodels.hand_off.manifest import CARD, MANIFEST, read_manifest
from tasks.run.bucket import verify
from tasks.run.ready import check_free
from tasks.run.store import NAME, Run

CROISSANT = "croissant.json"


def hand_off_of(home: Path, name: str) -> tuple[Path, str]:
    """Return the folder of a hand-off that is named by its path, or by the run that made it, and its URI if it has one.

    A run whose hand-off lies in an object store keeps all of it but the table in its folder.
    """
    folder = Path(name)
    if (folder / MANIFEST).exists() or not re.fullmatch(NAME, name):
        return folder, ""
    settings = Run.find(home, name).settings
    return settings.out, settings.bucket


def disclose(hand_off: Path, out: Path, answers: Answers, url: str = "", bucket: str = "") -> list[Path]:
    """Write both records of a hand-off into a new folder, once it was verified; return their paths.

    Args:
        hand_off: its folder, in which nothing is written.
        out: a new folder.
        answers: what a person says of the deployment.
        url: where the hand-off is published; its URI, or its folder as seen from the records, where it is empty.
        bucket: the URI of the hand-off, where it lies in an object store.

    Raises:
        ArtifactError: the hand-off has faults, or there is something at ``out``.
    """
    check_free(out)
    if faults := verify(bucket or hand_off).faults:
        raise ArtifactError(f"{hand_off} is not as it was handed over, and nothing is said of it: {faults[0]}")
    manifest, (contract, _) = read_manifest(hand_off), parse((hand_off / "schema.yaml").read_text(encoding="utf-8"))
    if contract is None:
        raise ArtifactError(f"the schema of {hand_off} cannot be read by this version")
    stood = standings(hand_off) if CARD in manifest.artifacts else []
    day = terms(manifest)["day"] or f"{datetime.now(UTC):%Y-%m-%d}"
    record = record_of(manifest, contract, stood, day, answers)
    place = url or bucket or os.path.relpath(hand_off.absolute(), out.absolute())
    written = {
        f"{record['url_slug'].replace('-', '_')}.yaml": as_yaml(record),
        CROISSANT: json.dumps(croissant_of(manifest, contract, day, place), indent=1),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in written]
