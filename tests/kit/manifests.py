"""A hand-off, and its manifest written anew."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpmodels.authoring.lint import parse
from dpmodels.hand_off.card import describe
from dpmodels.hand_off.manifest import CARD, CONTRACT, MANIFEST, Manifest, own_digest
from dpmodels.hand_off.odcs import render_contract
from dpmodels.hand_off.pages import render_pages
from dpmodels.pages.glance import weakest
from dpmodels.pages.page import LAYOUT
from dpmodels.report.verdicts import headline_of_documents, judged
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


def verdicts_of(report: Json) -> set[object]:
    """Return the headline of a report, and what it says of its columns."""
    columns = [*report.get("columns", ()), *report.get("derived", ())]
    return {report.get("headline"), *(one.get("verdict") for one in columns)}


def forged(folder: Path, copy: Path, change: Callable[[Json, Json, Json], object]) -> Path:
    """Copy a hand-off with another manifest, report and accounts, and make of them all else that is made of them."""
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    (copy / "manifest.sig").unlink(missing_ok=True)
    manifest, report = facts(copy), json.loads((copy / "report.json").read_text())
    card = json.loads((copy / CARD).read_text())
    before = verdicts_of(report)
    change(manifest, report, card)
    if manifest.get("layout") == LAYOUT and verdicts_of(report) <= before:
        with suppress(Exception):  # of figures of any shape
            report |= {"headline": headline_of_documents(report)} if "clusters" in report else judged(report)
    (copy / "report.json").write_text(json.dumps(report, indent=1))
    model = Manifest.model_validate_json(json.dumps(manifest), strict=True)
    contract, _ = parse((copy / "schema.yaml").read_text())
    assert contract is not None
    made = json.loads(json.dumps(describe(model, contract, report, [], [], weakest(report))))
    made |= {"accounts": card["accounts"], "above": card["above"], "books": card.get("books", [])}
    (copy / CARD).write_text(json.dumps(made, indent=1))
    for name, page in render_pages(made, report).items() if model.has_price else ():
        (copy / name).write_text(page)
    if (copy / CONTRACT).exists():
        (copy / CONTRACT).write_text(render_contract(model, contract))
    files = [path for path in sorted(copy.rglob("*")) if path.is_file() and path.name != MANIFEST]
    write_manifest(copy, manifest | {"artifacts": {str(path.relative_to(copy)): digest(path) for path in files}})
    return copy
