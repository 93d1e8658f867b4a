"""A manifest is read as it was written, for ever; whatever else lies in its place is told in sentences."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nacre
from dpmodels.errors import ArtifactError
from dpmodels.hand_off.lines import ManifestError
from dpmodels.hand_off.manifest import MANIFEST, NEWEST, parse_manifest, read_manifest
from dpmodels.hand_off.signature import UNSOUND
from dpmodels.hand_off.verification import Verification
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.limits import LARGEST_MANIFEST
from tests.hand_off.make_golden import GOLDEN, SHAPES
from tests.kit.manifests import CHARGED, UNCHARGED, Json, facts
from tests.kit.support import run_cli

ADOPTED = GOLDEN / "FORMAT-1" / "adopted"  # of a run that a command which is gone took over
FOLDERS = [CHARGED, ADOPTED, *(GOLDEN / number / name for number, shapes in SHAPES.items() for name in shapes)]
golden = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
SAYS = {
    "hand-off": {"report", "total_spent"},
    "adopted": set(),
    "approved": {"approved"},
    "lost-scores": {"report", "total_spent"},
    "sampled-again": {"sampled_again_as"},
    "fitted-again": {"fitted_again_as"},
    "fitted-elsewhere": {"fitted_again_as", "left_out"},
    "embedded": {"approved", "approved_as", "part", "cautions"},
    "federation": {"part", "cautions", "clients", "dropped"},
    "card": {"approved"},
    "card-elsewhere": {"fitted_again_as", "left_out"},
    "card-embedded": {"approved", "approved_as", "part", "cautions"},
    "card-federation": {"part", "cautions", "clients", "dropped"},
    "declared": {"approved", "declared"},
    "laid-out": {"approved", "declared"},
    "laid-out-embedded": {"approved", "approved_as", "part", "cautions"},
    "laid-out-federation": {"part", "cautions", "clients", "dropped"},
    "approved-clients": {"part", "cautions", "clients"},
    "contract": {"approved", "declared"},
    "signed-declaration": {"approved"},
    "signed-clients": {"part", "cautions", "clients"},
    "contract-users": set(),
    "users": set(),
    "targeted": set(),
    "derived": set(),
    "discovered": {"report", "discoveries", "total_spent"},
    "sheet-federation": {"part", "cautions", "clients", "dropped"},
}


@golden
def test_every_shape_is_read_written_as_it_was_and_verified(folder: Path) -> None:
    written, manifest = (folder / MANIFEST).read_text(), read_manifest(folder)
    assert json.loads(manifest.to_json()) == json.loads(written) and (
        folder.parent.name in (f"FORMAT-{manifest.format}", f"LAYOUT-{manifest.layout}")
    )
    assert manifest.to_json() == written or manifest.approved  # whose fields the ledger sorts
    optional = {field for shape in SAYS.values() for field in shape}
    assert json.loads(written).keys() & optional == SAYS[folder.name]
    assert (manifest.run is None) == folder.name.endswith("elsewhere")
    found = verify_hand_off(folder)
    assert found.faults == [] and found.files == len(manifest.artifacts) >= 4 and run_cli("verify", folder)[0] == 3
    assert nacre.Result(folder).spent.epsilon == manifest.whole_cost.epsilon and repr(nacre.Result(folder))
    assert manifest.made_by


def test_a_hand_off_without_a_price_is_still_verified_and_nothing_else_reads_it() -> None:
    written, manifest = (UNCHARGED / MANIFEST).read_text(), parse_manifest((UNCHARGED / MANIFEST).read_bytes())
    assert manifest.format == 9 and manifest.to_json() == written
    found = verify_hand_off(UNCHARGED)
    assert found.faults == [] and found.files == len(manifest.artifacts) and "were not compared" in found.notes[0]
    assert found.budget == f"NONE: {manifest.unprotected}" and "does not make it private" in found.budget
    assert found.unit == "none: nothing is hidden" and found.account == "none: no account was charged"
    code, out, err = run_cli("verify", UNCHARGED)
    assert code == 3 and "NONE: NO EPSILON HOLDS" in out and "NO EPSILON HOLDS" in err
    with pytest.raises(ArtifactError, match="without a price"):
        nacre.Result(UNCHARGED)


def test_what_is_left_out_is_said_and_no_fault() -> None:
    elsewhere = verify_hand_off(GOLDEN / "FORMAT-2" / "fitted-elsewhere")
    at_hand = verify_hand_off(GOLDEN / "FORMAT-2" / "fitted-again")
    assert "does not say which account paid" in elsewhere.charge and "of account clinic" in at_hand.charge
    lost = read_manifest(GOLDEN / "FORMAT-1" / "lost-scores")
    assert [line.sealed for line in lost.lines] == [True, False]


def judged(folder: Path, content: str | bytes) -> list[str]:
    """Return the faults of a folder whose manifest is this; every one of them is a sentence, however it is told."""
    (folder / MANIFEST).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, _, err = run_cli("verify", folder)
    assert code == 1 and "Traceback" not in err and "Error:" not in err and "\x1b" not in err and len(err) < 4000
    try:
        return verify_hand_off(folder).faults
    except ManifestError:
        raise
    except ArtifactError as error:
        return [str(error)]


def changed(place: str, value: object) -> str:
    """Return the manifest with another value at a place."""
    whole = facts()
    *above, last = place.split("/")
    part: Any = whole
    for name in above:
        part = part[int(name) if name.isdigit() else name]
    part[int(last) if last.isdigit() else last] = value
    return json.dumps(whole)


@pytest.mark.parametrize("name", [name for name in facts() if name != "report"])
def test_a_field_that_is_missing_or_of_another_type_is_named(hand_off: Path, name: str) -> None:
    without = facts()
    del without[name]
    assert any(name in fault for fault in judged(hand_off, json.dumps(without)))
    for value in (None, [[]], "\x1b[31m", -1, True):
        assert any(name in fault or "events" in fault for fault in judged(hand_off, changed(name, value))), value


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ("asked/epsilon", -1, "asked.epsilon .* greater than 0"),
        ("asked/epsilon", float("nan"), "asked.epsilon .* finite"),
        ("asked/epsilon", 1e400, "asked.epsilon .* (finite|1000)"),
        ("asked/delta", 5e-324, "the events cost far more"),
        ("asked/delta", -0.5, "asked.delta .* greater than or equal to 0"),
        ("spent/epsilon", "1e999999999", "spent.epsilon .* digits"),
        ("spent/epsilon", "NaN", "spent.epsilon .* finite"),
        ("spent/epsilon", 10**4000, "spent.epsilon .* digits"),
        ("spent/epsilon", "-0.9", "spent.epsilon .* greater than or equal to 0"),
        ("spent/delta", 1e-9, "the events cost epsilon"),
        ("report/spent/epsilon", "0.1", "the manifest says 0.1"),
        ("total_spent/epsilon", "0.7", "together, the manifest says 0.7"),
        ("events", [], "events .* at least 1"),
        ("report/events", [], "report.events .* at least 1"),
        ("events/0", {"kind": "\x1b[31mmine", "noise_multiplier": 1}, "events.0 .* a kind that this version"),
        ("events/0", {"kind": "gaussian", "noise_multiplier": "3"}, "events.0.gaussian.noise_multiplier"),
        ("events/0", {"kind": "gaussian", "noise_multiplier": 1e-4}, "the events cost far more"),
        ("events/0", {"kind": "gaussian", "noise_multiplier": 1e12}, "the events cost epsilon=0E-12"),
        ("events", [1] * 100_000, r"events\.0"),
        ("ledger/entries", [], "ledger.entries .* at least 1"),
        ("ledger/entries/0/seq", 10**30, "ledger.entries.0.seq"),
        ("ledger/entries/0/kind", "void", "ledger.entries.0.kind"),
        ("ledger/entries/0/kind", "seal", "not a complete life"),
        ("ledger/charge", "0" * 64, "not that of this plan and run"),
        ("ledger/account", None, "does not say why"),
        ("release_sha256", "0" * 63 + "\n", "release_sha256"),
        ("report", None, "report and total_spent"),
        ("format", 0, "format"),
        ("format", NEWEST, "fields of another"),
        ("\x1b[31mtrust me", 1, r"\\x1b\[31mtrust me, which nacre does not write"),
        ("artifacts/schema.yaml", "0" * 64, "schema.yaml was changed"),
    ],
)
def test_a_field_with_an_impossible_value_is_named(hand_off: Path, place: str, value: object, told: str) -> None:
    faults = judged(hand_off, changed(place, value))
    assert any(re.search(told, fault) for fault in faults), faults


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("part", "not that of this plan and run"),
        ("approved_as", "not a signature of this run"),
        ("approved", "approved_as, and no field approved"),
        ("cautions", "lacks the field cautions"),
    ],
)
def test_nothing_can_be_left_out_of_a_hand_off_of_embedded_documents(tmp_path: Path, field: str, told: str) -> None:
    shutil.copytree(GOLDEN / "FORMAT-3" / "embedded", tmp_path / "own")
    whole = facts(tmp_path / "own")
    del whole[field]
    assert any(told in fault for fault in judged(tmp_path / "own", json.dumps(whole)))


NAMES = [
    "../own/schema.yaml",
    "/etc/passwd",
    "synthetic/../schema.yaml",
    "synthetic//part-00000.parquet",
    "synthetic/part-٠٠٠٠٠.parquet",
    "schema.yaml\n",
    "manifest.json",
    "\x1b[31mred",
    "",
    "a" * 9999,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_elsewhere_is_followed_nowhere(hand_off: Path, name: str) -> None:
    whole = facts()
    whole["artifacts"][name] = "0" * 64
    (fault,) = judged(hand_off, json.dumps(whole))
    assert fault.endswith("is no file that nacre hands over") and fault.isprintable() and len(fault) < 200


def nested(depth: int) -> str:
    inner = json.dumps(facts()["events"][0])
    return '{"kind": "composed", "events": [' * depth + inner + "]}" * depth


@pytest.mark.parametrize("part", ["hospital", "document", "client"])
def test_a_price_for_each_of_what_is_not_charged_apart_is_refused(hand_off: Path, part: str) -> None:
    """A maker of a hand-off could have had ``verify`` print a price for each hospital, where it is for all rows."""
    faults = judged(hand_off, json.dumps(facts() | {"part": part, "format": 3}))
    assert any(f"for each {part}" in fault or "field part" in fault for fault in faults)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no JSON"),
        ("[]", "not one JSON object"),
        ("{", "no JSON"),
        ("[" * 10**6, "nested too deep"),
        (json.dumps(facts()).replace('"events": [', f'"events": [{nested(10**4)}, ', 1), "nested too deep"),
        ('{"asked": 1, "asked": 1}', "the field asked twice"),
        (json.dumps(facts()).replace('"spent": {', '"spent": {"epsilon": "0.1", ', 1), "the field epsilon twice"),
        (json.dumps(facts()).encode("utf-16"), "no JSON"),
        (b"\xff\xfe{}", "no JSON"),
        ("{" + " " * (100 * 2**20), "larger than 4 MiB"),
        ('{"format": 17}', "of format 17, later than 16: use a newer nacre"),
        ('{"format": 1' + "0" * 4000 + "}", "of format 100000000, later"),
        ('{"format": true}', "the field format"),
    ],
    ids=range(13),
)
def test_what_is_no_manifest_is_told_in_one_sentence(hand_off: Path, content: str | bytes, told: str) -> None:
    faults = judged(hand_off, content)
    assert told in faults[0] and (len(faults) == 1 or told == "the field format")
    with pytest.raises(ArtifactError, match=told.split(":")[0]):
        nacre.Result(hand_off)
    assert len(content) <= LARGEST_MANIFEST or told == "larger than 4 MiB"


def test_events_that_are_nested_as_deep_as_can_be_read_are_reckoned(hand_off: Path) -> None:
    (hand_off / MANIFEST).write_text(json.dumps(facts() | {"events": [json.loads(nested(80))]}))
    (fault,) = verify_hand_off(hand_off).faults
    assert fault.startswith("report.json says something else") and fault.endswith(" privacy.event")


@pytest.mark.parametrize(
    "events",
    [
        [{"kind": "sampled_gaussian", "noise_multiplier": 1, "sampling_probability": 0.01, "steps": 10**7}],
        [{"kind": "sampled_gaussian", "noise_multiplier": 0.1, "sampling_probability": 0.99, "steps": 10**7}],
        [{"kind": "pure", "epsilon": 1e-6 * (1 + place)} for place in range(2000)],
    ],
    ids=["long", "beyond what a float holds", "of many kinds"],
)
@pytest.mark.timeout(20)
def test_events_that_would_take_for_ever_are_refused_at_once(hand_off: Path, events: list[Json]) -> None:
    told = "more than a check has time to price" if len(events) > 1 else "cost far more than was asked"
    assert any(told in fault for fault in judged(hand_off, changed("events", events)))


@pytest.mark.parametrize(
    "change",
    [
        {"left_out": None},
        {"fitted_again_as": None},
        {"run": "a-run"},
        {"sampled_again_as": "another"},
        {"format": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_nothing_can_be_left_out_silently(tmp_path: Path, change: Json) -> None:
    shutil.copytree(GOLDEN / "FORMAT-2" / "fitted-elsewhere", tmp_path / "own")
    (fault,) = judged(tmp_path / "own", json.dumps(facts(tmp_path / "own") | change))
    assert fault.startswith("manifest.json ")


@pytest.mark.parametrize("content", ["[" * 4000, "x" * 10**6, "[]", '{"public_key": [], "signature": {}}'])
def test_what_is_no_signature_is_a_fault(hand_off: Path, content: str) -> None:
    (hand_off / "manifest.sig").write_text(content)
    whole = verify_hand_off(CHARGED)
    assert verify_hand_off(hand_off) == Verification(
        faults=["manifest.sig is not a signature of this manifest"],
        files=5,
        charge=whole.charge,
        budget=whole.budget,
        unit=whole.unit,
        days=whole.days,
        agreed=whole.agreed,
        approved=whole.approved,
        signature=UNSOUND,
        notes=["the pages of format 1 were not compared with the figures; they have their hashes"],
    )


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: (path.unlink(), path.symlink_to(CHARGED / MANIFEST))])
def test_a_manifest_that_is_missing_or_a_link_is_one_sentence(hand_off: Path, spoil: Callable[[Path], object]) -> None:
    spoil(hand_off / MANIFEST)
    code, _, err = run_cli("verify", hand_off)
    assert code == 1 and "has no manifest.json that can be read" in err and "Traceback" not in err
