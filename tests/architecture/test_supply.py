"""What is installed by hash is what was pinned, each license may be shipped, and the bill of materials is whole."""

import json
import re

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from supply import licenses, pins, sbom
from supply.installed import ROOT, closure

LINE = re.compile(r"(\S+==\S+) --hash=sha256:[0-9a-f]{64}")


def test_every_pin_has_the_hash_of_one_file() -> None:
    versions = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    files = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert [match[1] if (match := LINE.fullmatch(line)) else line for line in files] == versions


def test_pins_are_made_of_a_report_and_nothing_of_cuda_or_without_a_hash_is_taken(tmp_path) -> None:
    def entry(name: str, version: str, **info: object) -> dict[str, object]:
        return {"metadata": {"name": name, "version": version}, "download_info": info}

    digest = {"archive_info": {"hashes": {"sha256": "0" * 64}}}
    report = tmp_path / "report"
    report.write_text(json.dumps({"install": [entry("torch", "2.13.0+cpu", **digest), entry("nacre", "0.1.0")]}))
    versions, files = pins.lines(report)
    assert versions[1:] == ["torch==2.13.0"] and files[1:] == ["torch==2.13.0 --hash=sha256:" + "0" * 64]
    for bad in (entry("nvidia-nccl-cu12", "2.1", **digest), entry("numpy", "2.4.6", dir_info={})):
        report.write_text(json.dumps({"install": [bad]}))
        with pytest.raises(SystemExit):
            pins.lines(report)


def test_the_page_lists_the_license_of_everything_that_is_installed() -> None:
    page = (ROOT / "docs" / "licenses.md").read_text(encoding="utf-8")
    missing = [line for line in licenses.page().splitlines() if line not in page.splitlines()]
    assert missing == [], "python -m supply.licenses >docs/licenses.md"


def test_every_license_may_be_shipped() -> None:
    rows = re.findall(r"^\| (\S+) \| (.+?) \| (all|dev) \|$", (ROOT / "docs" / "licenses.md").read_text(), re.M)
    assert len(rows) >= len(closure("all")) > 100
    assert [name for name, expression, _ in rows if not licenses.may_be_shipped(expression)] == []


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("Artistic-1.0 OR GPL-2.0-or-later", True),
        ("MIT AND GPL-2.0-or-later", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MPL-2.0 AND (AGPL-3.0-only OR MIT)", True),
        ("Proprietary", False),
    ],
)
def test_a_license_that_binds_the_whole_product_is_refused(expression: str, allowed: bool) -> None:
    assert licenses.may_be_shipped(expression) is allowed


def test_the_bill_of_materials_is_valid_and_names_every_file_by_its_hash() -> None:
    text = sbom.bill()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert text == sbom.bill()  # no time, no random number
    content = json.loads(text)
    parts = {part["name"]: part for part in content["components"]}
    assert set(parts) == closure("all")
    assert [name for name, part in parts.items() if not part["hashes"] or not part["licenses"]] == []
    asked = {each["ref"]: each.get("dependsOn", []) for each in content["dependencies"]}
    assert parts["opendp"]["purl"] in asked[content["metadata"]["component"]["bom-ref"]]
