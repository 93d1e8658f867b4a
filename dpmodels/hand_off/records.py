"""The records of a hand-off in a folder of their own: what they were made of, who signed them, and the check of both.

    NAME.yaml         for OpenDP's registry of deployments                    hand_off/catalogs/disclosure.py
    croissant.json    for catalogs of data sets                               hand_off/croissant.py
    records.json      the manifest that they are of, what a person answered, and the digest of each
    records.sig       the signature of records.json, by the key that signs manifests

A record follows from the manifest, the schema, the accounts of the model card and the answers, so whoever has the
hand-off makes it again, and a field that says something else is seen, signed or not. Records that another version wrote
are held to their digests, which rest on the signature, so the signer's key must be named.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain
from dpmodels.frozen import Frozen
from dpmodels.hand_off.catalogs.disclosure import Answers, as_yaml, record_of
from dpmodels.hand_off.croissant import croissant_of
from dpmodels.hand_off.manifest import Manifest, printable
from dpmodels.hand_off.signature import check_signature
from dpmodels.ledger.records import Standing
from dpmodels.limits import LARGEST_LISTING
from dpmodels.releases.contract import Contract

CROISSANT, RECORDS, RECORDS_SIGNATURE = "croissant.json", "records.json", "records.sig"

UNKNOWN = (
    "the records are of nacre {}, which may write them in other words: name the key that signed them (--public-key)"
)


class Records(Frozen):
    """What the records of a hand-off were made of.

    Attributes:
        nacre_version: the version that wrote them; another may write them in other words.
        manifest_sha256: of the manifest's file.
        day: of publication.
        place: where the hand-off lies, as seen from the records.
        answers: what a person said of the deployment, by question.
        records: the SHA-256 of each record, by the name of its file.
    """

    format: Literal[1] = 1
    nacre_version: str
    manifest_sha256: str
    day: str
    place: str
    answers: dict[str, str]
    records: dict[str, str]


def records_of(
    manifest: Manifest, contract: Contract, standings: Sequence[Standing], day: str, place: str, answers: Answers
) -> dict[str, str]:
    """Write both records of a hand-off, by the names of their files."""
    record = record_of(manifest, contract, standings, day, answers)
    return {
        f"{record['url_slug'].replace('-', '_')}.yaml": as_yaml(record),
        CROISSANT: json.dumps(croissant_of(manifest, contract, day, place), indent=1),
    }


def list_of(texts: Mapping[str, str], manifest: bytes, day: str, place: str, answers: Answers) -> str:
    """Write down what records were made of, with the digest of each."""
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    digest = hashlib.sha256(manifest).hexdigest()
    facts = Records(
        nacre_version=version("nacre"),
        manifest_sha256=digest,
        day=day,
        place=place,
        answers=asdict(answers),
        records=digests,
    )
    return facts.model_dump_json(indent=1)


def check_records(
    folder: Path, content: bytes, manifest: Manifest, contract: Contract, standings: Sequence[Standing], key: str
) -> Iterator[str]:
    """Yield what is wrong with the records in a folder; a key that is named must have signed them.

    Args:
        folder: of the records.
        content: bytes of the hand-off's manifest, as read in ``manifest``.
        manifest: of the hand-off.
        contract: of the hand-off.
        standings: where the accounts of its model card stood.
        key: the signer's public key; empty for any or none.
    """
    try:
        listed = _read(folder, RECORDS)
        facts = Records.model_validate_json(listed)
        answers = Answers(**facts.answers)
    except (OSError, ArtifactError, ValidationError, TypeError):
        yield f"{folder} has no {RECORDS} that can be read, as nacre disclose writes it"
        return
    try:
        check_signature(folder, listed, key, RECORDS_SIGNATURE, RECORDS)
    except ArtifactError as fault:
        yield str(fault)
    if facts.manifest_sha256 != hashlib.sha256(content).hexdigest():
        yield f"{RECORDS} is of another hand-off, whose manifest has the SHA-256 {facts.manifest_sha256[:64]}"
        return
    digests = facts.records
    if facts.nacre_version != version("nacre"):
        if not key:
            yield UNKNOWN.format(printable(facts.nacre_version))
    else:
        made = records_of(manifest, contract, standings, facts.day, facts.place, answers)
        digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in made.items()}
        if digests != facts.records:
            yield f"{RECORDS} lists other records than those that follow from the hand-off and its answers"
    for name, digest in digests.items():
        try:
            same = hashlib.sha256(_read(folder, name)).hexdigest() == digest
        except (OSError, ArtifactError):
            yield f"{printable(name)} is not among the records, or cannot be read"
        else:
            if not same:
                yield f"{printable(name)} says something else than the hand-off and the answers in {RECORDS} do"


def _read(folder: Path, name: str) -> bytes:
    with open_plain(folder, folder / name) as file:
        content: bytes = file.read(LARGEST_LISTING)
    return content
