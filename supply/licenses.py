"""List the license of everything that is installed with nacre, as SPDX expressions, and judge which may be shipped.

python -m supply.licenses >docs/licenses.md
"""

from functools import cache
from importlib.metadata import PackageMetadata, metadata

from license_expression import LicenseSymbol, LicenseWithExceptionSymbol, Licensing, get_spdx_licensing

from supply.installed import closure

PERMISSIVE = {
    "0BSD", "Apache-2.0", "Artistic-1.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python", "ISC",
    "LicenseRef-BSD", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib",
}  # fmt: skip
OF_FILES = {"MPL-2.0", "LGPL-3.0-only"}
"""Whoever changes such a package passes the changed files on; nacre changes none, and imports them as they are."""
BY_CLASSIFIER = {
    "Apache Software License": "Apache-2.0",
    "Artistic License": "Artistic-1.0",
    "BSD License": "LicenseRef-BSD",
    "GNU General Public License (GPL)": "GPL-2.0-or-later",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
BY_FIELD = {"Apache 2.0": "Apache-2.0", "BSD": "LicenseRef-BSD", "MIT License": "MIT"}
HEAD = """\
# Licenses

What each package that is installed with nacre says of its own license, as an SPDX expression; `LicenseRef-BSD` is a
BSD license whose clauses the package does not count. nacre itself is Apache-2.0. `python -m supply.licenses` made this
page. `tests/architecture/test_supply.py` holds it to what is installed, and each license to those that may be shipped:
permissive ones, and MPL-2.0 and LGPL-3.0, whose packages nacre imports unchanged. Where several are offered, one is
enough.

| package | license | with |
| --- | --- | --- |"""


def license_of(name: str) -> str:
    """Return the SPDX expression of a distribution's license.

    Raises:
        LookupError: the distribution says nothing that is known here.
    """
    stated = metadata(name)
    if expression := _field(stated, "License-Expression"):
        return expression
    classifiers = [each.split(" :: ")[-1] for each in stated.get_all("Classifier") or [] if each.startswith("License")]
    known = dict.fromkeys(BY_CLASSIFIER[each] for each in classifiers if each in BY_CLASSIFIER)
    if known:
        return " OR ".join(known)
    field = _field(stated, "License").splitlines()
    if not field:
        raise LookupError(f"{name} names no license: look it up, and add it here")
    return BY_FIELD.get(field[0], field[0])


def _field(stated: PackageMetadata, key: str) -> str:
    return stated[key].strip() if key in stated else ""


def may_be_shipped(expression: str) -> bool:
    """Return whether a license, or one of those that are offered, may be shipped with nacre."""
    return _allowed(_spdx().parse(expression, validate=False))


@cache
def _spdx() -> Licensing:
    return get_spdx_licensing()  # reads the whole index of licenses


def _allowed(node: object) -> bool:
    if isinstance(node, LicenseWithExceptionSymbol):
        return _allowed(node.license_symbol)
    if isinstance(node, LicenseSymbol):
        return node.key in PERMISSIVE | OF_FILES
    parts = [_allowed(part) for part in node.args]  # type: ignore[attr-defined]
    return any(parts) if type(node).__name__ == "OR" else all(parts)


def page() -> str:
    """Return the page, in Markdown."""
    shipped = closure("all")
    rows = [
        f"| {name} | {license_of(name)} | {'all' if name in shipped else 'dev'} |" for name in sorted(closure("dev"))
    ]
    return "\n".join([HEAD, *rows]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
