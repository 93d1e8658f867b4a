"""Check the files of a hand-off: each is the one that its manifest names, and says what the manifest says."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from dpmodels.authoring.lint import parse
from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain, sha256_plain, size_plain
from dpmodels.hand_off.manifest import CARD, CONTRACT, MANIFEST, MOST_FAULTS, Manifest, printable
from dpmodels.hand_off.odcs import has_contract
from dpmodels.hand_off.signature import OFFICER_SIGNATURE, SIGNATURE
from dpmodels.hand_off.verification import Verification
from dpmodels.limits import LARGEST_CARD, LARGEST_PAGE, LARGEST_REPORT, LARGEST_YAML, read_json
from dpmodels.methods.kinds import KINDS, Kind
from dpmodels.releases.contract import Contract

TOLD = (
    r"schema\.yaml|contract\.odcs\.yaml|report\.json|model-card\.json"
    r"|(report|checks|model-card|statement|data-sheet)\.html"
)
ALWAYS = ("schema.yaml", "report.json")
"""What every hand-off has, and what a check holds against the manifest."""
DEEPEST = 2
CHANGED = "was changed"
"""What is said of a file that is not of its hash."""
LARGEST = {"schema.yaml": LARGEST_YAML, "report.json": LARGEST_REPORT, CARD: LARGEST_CARD, CONTRACT: LARGEST_CARD}
"""What is read whole; pages have a limit as well. Tables and models are as large as whoever sent them made them."""
SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Files that systems put into a folder that somebody looks at; anybody can give others these names."""
MOST_STRANGE = 10_000
"""Files that somebody added are counted so far."""


def check_files(folder: Path, artifacts: dict[str, str], elsewhere: Mapping[str, str], check: Verification) -> None:
    """Compare every file with the manifest; a file that nacre never hands over is a fault even if it is listed."""
    expected = artifacts.keys() | {MANIFEST, SIGNATURE, OFFICER_SIGNATURE}
    strange = (name for name in chain(_listed(folder), elsewhere) if name not in expected)
    unknown = sorted(islice(strange, MOST_STRANGE))
    check.faults += [f"{printable(name)} is not in the manifest{_advice(name)}" for name in unknown[:MOST_FAULTS]]
    if len(unknown) > MOST_FAULTS:
        least = "at least " if len(unknown) == MOST_STRANGE else ""
        check.faults.append(f"{least}{len(unknown) - MOST_FAULTS} more files are not in the manifest")
    lacking = [name for name in ALWAYS if name not in artifacts]
    check.faults += [f"{MANIFEST} lists no {name}, which every hand-off has" for name in lacking]
    for name, sha256 in artifacts.items():
        if not is_handed_over(name):
            check.faults.append(f"{printable(name)} is no file that nacre hands over")
        elif name not in elsewhere and not os.path.lexists(folder / name):
            check.faults.append(f"{name} is missing")
        else:
            _check_file(folder, name, sha256, elsewhere.get(name), check)


def _advice(name: str) -> str:
    return "; systems write such files where folders are shown: delete it" if os.path.basename(name) in SYSTEMS else ""


def _listed(folder: Path, inside: str = "", depth: int = 0) -> Iterator[str]:
    """Yield files, links and empty folders of a hand-off; a folder deeper than any of ours is not looked into."""
    is_empty = bool(inside)
    with os.scandir(folder / inside) as entries:
        for entry in entries:
            is_empty = False
            name = os.path.join(inside, entry.name)
            if depth < DEEPEST and entry.is_dir(follow_symlinks=False):
                yield from _listed(folder, name, depth + 1)
            else:
                yield name
    if is_empty:
        yield inside


def _check_file(folder: Path, name: str, sha256: str, elsewhere: str | None, check: Verification) -> None:
    most = LARGEST.get(name, LARGEST_PAGE if name.endswith(".html") else None)
    try:
        if most is not None and (elsewhere is not None or size_plain(folder, folder / name) > most):
            check.faults.append(f"{name} is larger than any of its kind")
        elif (sha256_plain(folder, folder / name) if elsewhere is None else elsewhere) == sha256:
            check.files += 1
        else:
            check.faults.append(f"{name} {CHANGED}")
    except (ArtifactError, OSError):
        check.faults.append(f"{name} is a link, or cannot be read as a plain file")


def check_classifier(folder: Path, manifest: Manifest, check: Verification) -> None:
    """Check that no epsilon is stated of a classifier that says itself that none holds."""
    try:
        with open_plain(folder, folder / "classifier.safetensors") as file:
            head = read_json(file.read(min(int.from_bytes(file.read(8), "little"), LARGEST_CARD)))
        unprotected = "unprotected" in read_json(head["__metadata__"]["nacre"].encode())
    except (ArtifactError, OSError):
        return  # a table has none; whether the file is the one that was written is for the check of all files
    except (ValueError, KeyError, TypeError, AttributeError):
        check.faults.append("classifier.safetensors does not say of itself what nacre writes")
        return
    if unprotected and manifest.has_price:
        check.faults.append("the manifest states an epsilon of a classifier that was trained without any noise")


def check_schema(folder: Path, manifest: Manifest, check: Verification) -> Contract | None:
    """Check that the schema is the one that was planned for and that the price is for its unit; return the schema."""
    try:
        with open_plain(folder, folder / "schema.yaml") as file:
            schema, _ = parse(file.read(LARGEST_YAML + 1).decode())
    except (ArtifactError, OSError):
        return None  # the check of all files reports that it is missing
    except (ValueError, RecursionError):
        schema = None
    if schema is None or schema.hash != manifest.schema_sha256:
        check.faults.append("schema.yaml is not the schema that the manifest names")
    elif (manifest.data_set, manifest.unit, manifest.adjacency) != (schema.name, str(schema.unit), schema.adjacency):
        check.faults.append("the manifest says another data set, unit or adjacency than schema.yaml")
    if schema is not None:
        _check_kind(manifest, schema, check)
    return schema


def _check_kind(manifest: Manifest, contract: Contract, check: Verification) -> None:
    """Hold the files, and the parts that are said to be charged each by itself, to what the schema describes."""
    by_client = contract.kind == "federation" and manifest.is_charged
    part = "client" if by_client else "" if contract.is_table else contract.part
    kinds = [kind for kind in KINDS.values() if contract.kind in kind.contracts]
    strange = [name for name in manifest.artifacts if is_handed_over(name) and not is_handed_over(name, kinds)]
    strange += [CONTRACT] if CONTRACT in manifest.artifacts and not has_contract(contract) else []
    check.faults += [f"{name} is no file that is made by this schema.yaml" for name in strange[:MOST_FAULTS]]
    if manifest.part and (manifest.part != part or (part == "client" and manifest.clients is None)):
        check.faults.append(f"the price is for each {manifest.part}, and nothing here is charged for each by itself")
    elif part and not manifest.part:
        check.faults.append(f"the manifest does not say that its price is for each {part}, as schema.yaml does")


def is_handed_over(name: str, kinds: Iterable[Kind] = KINDS.values()) -> bool:
    """Tell whether a file of this name may be in a hand-off of data of some kinds."""
    return any(re.fullmatch(pattern, name) for pattern in (TOLD, *(kind.product for kind in kinds)))
