"""Write the bill of materials of nacre with all its extras, in CycloneDX 1.6, as JSON.

    python -m supply.sbom [FILE]

Versions and licenses are those of what is installed, hashes those of ``requirements.txt``. There is no time and no
random number in it, so that two installations of the same files give the same bytes.
"""

import re
import sys
import uuid
from importlib.metadata import version
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.utils import canonicalize_name
from packaging.version import Version

from supply.installed import PROJECT, ROOT, graph
from supply.licenses import license_of

EXTRA = "all"


def hashes() -> dict[str, HashType]:
    """Return by distribution the hash of the file that was tested."""
    pattern = re.compile(r"^(\S+)==\S+ --hash=sha256:([0-9a-f]{64})$", re.M)
    pairs = pattern.findall((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    return {canonicalize_name(name): HashType(alg=HashAlgorithm.SHA_256, content=digest) for name, digest in pairs}


def component(name: str, release: str, license_id: str, hash_of_file: HashType | None) -> Component:
    """Describe one distribution."""
    purl = PackageURL("pypi", name=name, version=release)
    return Component(
        name=name,
        version=release,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        licenses=[LicenseFactory().make_from_string(license_id)],
        hashes=[hash_of_file] if hash_of_file else [],
    )


def bill() -> str:
    """Return the bill of materials.

    Raises:
        LookupError: a distribution names no license.
    """
    needs, by_name = graph(EXTRA), hashes()
    root = component("nacre", PROJECT["version"], PROJECT["license"], None)
    parts = {"nacre": root} | {
        name: component(name, Version(version(name)).public, license_of(name), by_name.get(name))
        for name in sorted({name for name, _ in needs} - {"nacre"})
    }
    bom = Bom(components=[part for part in parts.values() if part is not root])
    bom.metadata.component, bom.metadata.timestamp = root, None  # type: ignore[assignment]
    for name, part in parts.items():
        asked = set().union(*(names for (owner, _), names in needs.items() if owner == name))
        bom.register_dependency(part, [parts[each] for each in sorted(asked - {name})])
    refs = " ".join(sorted(str(part.purl) for part in parts.values()))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, refs)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / f"nacre-{PROJECT['version']}.cdx.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(bill(), encoding="utf-8")
    print(out)
