"""Check the files of a hand-off: each is the one that its manifest names, and says what the manifest says."""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from dpmodels.authoring.lint import parse
from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain, sha256_plain, size_plain
from dpmodels.hand_off.manifest import CARD, MANIFEST, MOST_FAULTS, Manifest, printable
from dpmodels.hand_off.signature import SIGNATURE
from dpmodels.hand_off.verified import Verified
from dpmodels.limits import LARGEST_CARD, LARGEST_PAGE, LARGEST_REPORT, LARGEST_YAML, read_json
from dpmodels.releases.contract import Contract

HANDED_OVER = re.compile(
    r"(synthetic(/(parents|children))?|embeddings)/part-[0-9]{5}\.parquet|synthetic\.(csv|arrow|jsonl)|"
    r"classifier\.safetensors|soft-labels\.parquet|schema\.yaml|report\.html|report\.json|checks\.html|model-card\.json|model-card\.html|statement\.html|data-sheet\.html"
)
DEEPEST = 2
LARGEST = {"schema.yaml": LARGEST_YAML, "report.json": LARGEST_REPORT, CARD: LARGEST_CARD}
"""What is read whole; pages have a limit as well. Tables and models are as large as whoever sent them made them."""
MOST_STRANGE = 10_000
"""Files that somebody added are counted so far."""


def check_files(folder: Path, artifacts: dict[str, str], elsewhere: Mapping[str, str], verified: Verified) -> None:
    """Compare every file with the manifest; a file that nacre never hands over is a fault even if it is listed."""
    names = artifacts.keys() | {MANIFEST, SIGNATURE}
    strange = (name for name in chain(_listed(folder), elsewhere) if name not in names)
    unknown = sorted(islice(strange, MOST_STRANGE))
    verified.faults += [f"{printable(name)} is not in the manifest" for name in unknown[:MOST_FAULTS]]
    if len(unknown) > MOST_FAULTS:
        least = "at least " if len(unknown) == MOST_STRANGE else ""
        verified.faults.append(f"{least}{len(unknown) - MOST_FAULTS} more files are not in the manifest")
    for name, sha256 in artifacts.items():
        if not HANDED_OVER.fullmatch(name):
            verified.faults.append(f"{printable(name)} is no file that nacre hands over")
        elif name not in elsewhere and not os.path.lexists(folder / name):
            verified.faults.append(f"{name} is missing")
        else:
            _check_file(folder, name, sha256, elsewhere.get(name), verified)


def _listed(folder: Path, inside: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the files and links of a hand-off; a folder deeper than any of ours is named, and not looked into."""
    with os.scandir(folder / inside) as entries:
        for entry in entries:
            name = os.path.join(inside, entry.name)
            if depth < DEEPEST and entry.is_dir(follow_symlinks=False):
                yield from _listed(folder, name, depth + 1)
            else:
                yield name


def _check_file(folder: Path, name: str, sha256: str, elsewhere: str | None, verified: Verified) -> None:
    most = LARGEST.get(name, LARGEST_PAGE if name.endswith(".html") else None)
    try:
        if elsewhere is None and most is not None and size_plain(folder, folder / name) > most:
            verified.faults.append(f"{name} is larger than any of its kind")
        elif (sha256_plain(folder, folder / name) if elsewhere is None else elsewhere) == sha256:
            verified.files += 1
        else:
            verified.faults.append(f"{name} was changed")
    except (ArtifactError, OSError):
        verified.faults.append(f"{name} is a link, or cannot be read as a plain file")


def check_classifier(folder: Path, manifest: Manifest, verified: Verified) -> None:
    """Check that no epsilon is stated of a classifier that says itself that none holds."""
    try:
        with open_plain(folder, folder / "classifier.safetensors") as file:
            head = read_json(file.read(min(int.from_bytes(file.read(8), "little"), LARGEST_CARD)))
        unprotected = "unprotected" in read_json(head["__metadata__"]["nacre"].encode())
    except (ArtifactError, OSError):
        return  # a table has none; whether the file is the one that was written is for the check of all files
    except (ValueError, KeyError, TypeError, AttributeError):
        verified.faults.append("classifier.safetensors does not say of itself what nacre writes")
        return
    if unprotected and manifest.has_price:
        verified.faults.append("the manifest states an epsilon of a classifier that was trained without any noise")


def check_report(folder: Path, manifest: Manifest, verified: Verified) -> None:
    """Check that the report's figures are about this release, this unit and this price."""
    try:
        with open_plain(folder, folder / "report.json") as file:
            report = read_json(file.read(LARGEST_REPORT))
        figures = [report["privacy"][name] for name in ("unit", "adjacency", "delta", "spent_epsilon", "total_epsilon")]
        figures.append(report["privacy"].get("total_delta", report["privacy"]["delta"]))
        names = ("plan_sha256", "schema_sha256", "release_sha256", "ledger_charge")
        figures += [report["hashes"][name] if manifest.is_charged else report["hashes"].get(name) for name in names]
    except (ArtifactError, OSError):
        return  # the check of all files reports that it is missing
    except (ValueError, KeyError, TypeError, AttributeError):
        figures = []
    priced: list[float | None] = [None] * 4
    if manifest.has_price:
        spent, whole = manifest.price.spent, manifest.whole_cost
        priced = [spent.delta, float(spent.epsilon), float(whole.epsilon), whole.delta]
    true = [manifest.unit, manifest.adjacency, *priced, manifest.plan_sha256]
    if figures != [*true, manifest.schema_sha256, manifest.release_sha256, manifest.ledger.charge]:
        verified.faults.append("report.json is about another release, unit or price than the manifest")


def check_schema(folder: Path, manifest: Manifest, verified: Verified) -> Contract | None:
    """Check that the schema is the one that was planned for and that the price is for its unit; return the schema."""
    try:
        with open_plain(folder, folder / "schema.yaml") as file:
            schema, _ = parse(file.read(LARGEST_YAML + 1).decode())
    except (ArtifactError, OSError):
        return None  # the check of all files reports that it is missing
    except (ValueError, RecursionError):
        schema = None
    if schema is None or schema.hash != manifest.schema_sha256:
        verified.faults.append("schema.yaml is not the schema that the manifest names")
    elif (manifest.data_set, manifest.unit, manifest.adjacency) != (schema.name, str(schema.unit), schema.adjacency):
        verified.faults.append("the manifest says another data set, unit or adjacency than schema.yaml")
    return schema
