"""Check the report of a hand-off: it says what follows from the manifest and the contract.

The price, whom it hides and what is not promised are made again by the functions that a report is made of, in
``report.terms``. The report's figures, among them the size of the noise, follow from no manifest: they rest on whoever
signed.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dpmodels.accounting.events import EVENT, GaussianEvent, leaves
from dpmodels.errors import ArtifactError
from dpmodels.files import open_plain
from dpmodels.hand_off.expected import Facts, expected_cautions, expected_facts
from dpmodels.hand_off.manifest import MANIFEST, MOST_FAULTS, Manifest, printable
from dpmodels.hand_off.verification import Verification
from dpmodels.limits import LARGEST_REPORT, read_json
from dpmodels.releases.contract import Contract

PRICE, SEALED = ("target_epsilon", "delta", "spent_epsilon"), ("charged", "status", "ledger_charge", "scores_sha256")
LOST = {"status", "charged", "event", *PRICE}
"""What is said of scores that were asked for, and that nobody has."""
OTHER_SCORES = "report.json shows other charged scores, or at another price, than the manifest has a line for"
SECTIONS = ("data_set", "method", "privacy", "hashes")
"""What the reports of all formats say alike. Other words are those of a layout, and are held where its pages are."""
OF_COUNTS, ZOOM, AT_EACH_ZOOM = (
    ("records in", "number of records"),
    "zoom",
    "records in a cell of one column, at each zoom",
)
"""What the noise of counts is named, and the event and the noise of a look that only finds where values lie."""
CLOSE = 1e-9
"""How far another version may round a number, relatively."""
LESS_NOISE = f"report.json names less noise than the events in {MANIFEST} make of any count of records"
WHOLE = 0.01
"""By how much the square of a noise at each zoom, in multiples of its event's, may miss the number of columns."""
UNREADABLE = "report.json is not as nacre writes it"


def check_report(folder: Path, manifest: Manifest, contract: Contract, check: Verification) -> None:
    """Check that manifest and report say what follows from the lines, while these have no fault."""
    try:
        with open_plain(folder, folder / "report.json") as file:
            content = file.read(LARGEST_REPORT)
    except (ArtifactError, OSError):
        return  # the check of all files reports that it is missing
    try:
        report = read_json(content)
        if not _shows_its_charge(report, manifest):
            check.faults.append(OTHER_SCORES)
        if not check.faults:
            _check_facts(report, manifest, contract, check)
    except Exception:  # facts of any shape may lie there, as in ``compare_pages``
        check.faults.append(UNREADABLE)


def _check_facts(report: Mapping[str, Any], manifest: Manifest, contract: Contract, check: Verification) -> None:
    """Compare with what is expected: of another layout, whose pages are not compared, the sections alone."""
    from dpmodels.pages.page import LAYOUT

    if manifest.has_price and list(manifest.cautions or ()) != expected_cautions(manifest, contract):
        check.faults.append(f"the cautions in {MANIFEST} are not those of its price, unit and trust")
    expected = expected_facts(manifest, contract, report)
    held = expected.keys() if manifest.layout == LAYOUT else SECTIONS
    if wrong := [name for name in differing(report, expected) if name.partition(".")[0] in held]:
        check.faults.append(says_else(wrong))
    if manifest.layout == LAYOUT and manifest.has_price and not _is_of_events(report, manifest):
        check.faults.append(LESS_NOISE)


def _is_of_events(report: Mapping[str, Any], manifest: Manifest) -> bool:
    """Tell whether the noise that a report names is as much as the events of a manifest make of a count, at least.

    One record changes a count by one or more, so its noise is that multiple of an event's at least; and a zoom counts a
    record once in each column that is looked at closer.
    """
    noises = report.get("noise_stddev") or {}
    events = [one for one in leaves(manifest.price.events) if isinstance(one, GaussianEvent)]
    least = min((one.noise_multiplier for one in events), default=0.0)
    zooms = [one.noise_multiplier for one in events if one.mechanism == ZOOM]
    columns = (noises[AT_EACH_ZOOM] / zooms[0]) ** 2 if zooms and AT_EACH_ZOOM in noises else 1.0
    return (
        all(noise >= least for name, noise in noises.items() if name.startswith(OF_COUNTS))
        and abs(columns - round(columns)) <= WHOLE * columns
        and columns > 1 / 2
    )


def says_else(names: Iterable[str]) -> str:
    """Say which facts of a report are not as they are made."""
    which = ", ".join(sorted(map(printable, names))[:MOST_FAULTS])
    return f"report.json says something else than {MANIFEST} and schema.yaml make of {which}"


def differing(report: Mapping[str, Any], expected: Facts) -> Iterator[str]:
    """Name the facts of a report that are not as expected, those of a section each by itself."""
    for name, value in expected.items():
        told = report.get(name)
        if not isinstance(value, dict):
            yield from () if _agrees(told, value) else (name,)
        elif isinstance(told, dict):
            yield from (f"{name}.{key}" for key in told.keys() | value if not _agrees(told.get(key), value.get(key)))
        else:
            yield name


def _agrees(told: Any, value: Any) -> bool:
    """Tell whether a report says a value; of what is listed by names it may say more."""
    if isinstance(value, dict):
        return isinstance(told, dict) and all(_agrees(told.get(key), one) for key, one in value.items())
    if isinstance(value, list):
        return isinstance(told, list) and len(told) == len(value) and all(map(_agrees, _ordered(told), _ordered(value)))
    if type(told) is not type(value):
        return False
    return math.isclose(told, value, rel_tol=CLOSE) if isinstance(value, float) else bool(told == value)


def _ordered(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda one: str(one.get("name", "")) if isinstance(one, dict) else "")


def _shows_its_charge(report: Mapping[str, Any], manifest: Manifest) -> bool:
    """Tell whether scores on the real rows are shown exactly where a line paid for them, and at its price."""
    scores, line = report.get("charged"), manifest.report
    if scores is None or line is None:
        voided = scores is None or (scores["charged"] is False and scores["status"] == "lost" and scores.keys() <= LOST)
        return line is None and voided
    target, spent, events = line.price
    price = (target.epsilon, target.delta, float(spent.epsilon), events)
    if price != (*(scores[name] for name in PRICE), (EVENT.validate_python(scores["event"]),)):
        return False
    if line.scores_sha256 is None:
        return scores["charged"] is True and scores["status"] == "lost" and scores.keys() <= LOST
    sealed = (True, "measured", line.charge, line.scores_sha256, line.scores_sha256)
    facts = (*(scores[name] for name in SEALED), report["hashes"]["scores_sha256"])
    return facts == sealed
