"""Hand-offs that hang together file by file and lie all the same, in ways that whoever receives one can see."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import GaussianEvent
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.generators.constraints import caution_of_rules
from dpmodels.hand_off.check_maker import is_later, is_version
from dpmodels.hand_off.check_words import are_cautions, is_comparison, is_like
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.approval import ApprovalRequest
from dpmodels.ledger.store import digest as ledger_digest
from dpmodels.limits import LARGEST_REPORT
from dpmodels.methods.federations.classifier import KNOWN_AS
from dpmodels.methods.registry import METHODS
from dpmodels.pages.page import LAYOUT
from dpmodels.privacy import PrivacyUnit
from dpmodels.report.federated import CLASSIFIERS, Rated, compare_all
from dpmodels.report.fidelity import drowned, lost_in_noise
from tests.hand_off.make_golden import GOLDEN
from tests.kit.cells import Cells, make
from tests.kit.manifests import UNCHARGED, facts, forged, rewritten, write_manifest
from tests.kit.support import write_key

Json = dict[str, Any]
TABLE, USERS, EMBEDDED = (GOLDEN / "LAYOUT-26" / name for name in ("laid-out", "users", "embedded"))
TARGETED, DERIVED = GOLDEN / "LAYOUT-26" / "targeted", GOLDEN / "LAYOUT-26" / "derived"
FEDERATION, SCORED = GOLDEN / "FORMAT-7" / "laid-out-federation", GOLDEN / "LAYOUT-26" / "discovered"
ELSE = "report.json says something else than manifest.json and schema.yaml make of"
OTHER_CAUTIONS = "the cautions in manifest.json are not those of its price, unit and trust"
SIGNED = GOLDEN / "FORMAT-10" / "approved-clients"
"""By an officer, for the last two of three clients."""


def faults(folder: Path, change: Callable[[Json], object]) -> list[str]:
    whole = facts()
    change(whole)
    (folder / MANIFEST).write_text(json.dumps(whole))
    return verify_hand_off(folder).faults


def test_parallel_events_that_are_nested_cost_no_memory(hand_off: Path) -> None:
    """Each level wrote the one below as text within text, which doubles its quotes: 3 KiB were gigabytes."""
    event: Json = {"kind": "pure", "epsilon": 0.5}
    for level in range(20):
        event = {"kind": "parallel", "by": "x", "events": [event, {"kind": "gaussian", "noise_multiplier": 50 + level}]}
    found = faults(hand_off, lambda whole: whole.update(events=[event]))
    assert "the events cost far more than was asked for, or are more than any plan has" in found


def test_a_life_in_which_anything_but_the_draw_is_said_twice_is_a_fault(hand_off: Path) -> None:
    """A charge is sealed at most once: two seals are two artifacts for one price."""
    for kind in ("reserve", "seal", "commit"):

        def twice(whole: Json, kind: str = kind) -> None:
            entries = whole["ledger"]["entries"]
            place = next(place for place, entry in enumerate(entries) if entry["kind"] == kind)
            later = [{**entry, "seq": entry["seq"] + 100} for entry in entries[place:]]
            entries[place + 1 :] = later

        assert any("not a complete life" in fault for fault in faults(hand_off, twice)), kind

    def drawn_again(whole: Json) -> None:
        entries = whole["ledger"]["entries"]
        entries[2:] = [{**entry, "seq": entry["seq"] + 100} for entry in entries[1:]]

    assert faults(hand_off, drawn_again) == []


def test_one_payment_does_not_pay_for_release_and_report(hand_off: Path) -> None:
    def borrowed(whole: Json) -> None:
        line = ("asked", "spent", "events", "plan_sha256", "ledger")
        whole["report"] |= {name: whole[name] for name in line}
        whole["total_spent"]["epsilon"] = "1.483399471219"

    assert any("one charge" in fault for fault in faults(hand_off, borrowed))


@pytest.mark.parametrize(
    ("place", "said"),
    [("privacy/spent_epsilon", 0.1), ("privacy/unit", "user (age, at most 3 rows)"), ("hashes/plan_sha256", "0" * 64)],
)
def test_a_report_that_says_another_price_than_the_manifest_is_a_fault(
    hand_off: Path, place: str, said: object
) -> None:
    report = json.loads((hand_off / "report.json").read_text())
    section, field = place.split("/")
    report[section][field] = said
    (hand_off / "report.json").write_text(json.dumps(report))
    sha256 = hashlib.sha256((hand_off / "report.json").read_bytes()).hexdigest()
    assert any(
        "report.json" in fault for fault in faults(hand_off, lambda w: w["artifacts"].update({"report.json": sha256}))
    )


@pytest.mark.parametrize("charged", [True, False])
def test_a_report_whose_hashes_are_no_map_is_a_fault(tmp_path: Path, charged: bool) -> None:
    golden = GOLDEN / "LAYOUT-26" / "laid-out" if charged else UNCHARGED

    def without_hashes(content: bytes) -> bytes:
        return json.dumps({**json.loads(content), "hashes": ""}).encode()

    folder = rewritten(golden, tmp_path / "own", "report.json", without_hashes)
    assert verify_hand_off(folder).faults == [f"{ELSE} hashes"]


def test_a_schema_of_another_hash_than_the_manifest_names_is_a_fault(hand_off: Path) -> None:
    """Its unit is what the reader takes the price to be for."""
    text = (hand_off / "schema.yaml").read_text().replace("unit: record", "unit: {user: age, max_rows: 5}")
    (hand_off / "schema.yaml").write_text(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    assert any(
        "schema.yaml" in fault for fault in faults(hand_off, lambda w: w["artifacts"].update({"schema.yaml": sha256}))
    )


@pytest.mark.parametrize(
    ("field", "said"),
    [("unit", "user (age, at most 3 rows)"), ("adjacency", "replace_one"), ("data_set", "somebody-elses")],
)
def test_a_price_that_is_said_to_be_for_another_unit_than_the_schema_has_is_a_fault(
    hand_off: Path, field: str, said: str
) -> None:
    """The report and the card say the same, and every hash is that of its file."""
    files, wrong = {}, json.dumps({field: said})[1:-1]
    for path in hand_off.glob("*.json"):
        text, right = path.read_text(), json.dumps({field: facts()[field]})[1:-1]
        path.write_text(text.replace(right, wrong))
        files[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()

    def lie(whole: Json) -> None:
        whole[field] = said
        whole["artifacts"] |= {name: files[name] for name in whole["artifacts"] if name in files}

    assert faults(hand_off, lie) == ["the manifest says another data set, unit or adjacency than schema.yaml"]


def test_a_caution_moves_no_cursor(tmp_path: Path) -> None:
    """Terminals take the signs from 0x80 on for commands as well, which could wipe out what was printed before."""
    folder = tmp_path / "own"
    shutil.copytree(GOLDEN / "FORMAT-3" / "embedded", folder, ignore=shutil.ignore_patterns("*.sig"))
    whole = facts(folder)
    whole["cautions"] = ["what is not hidden\x9b2J\u202e"]
    (folder / MANIFEST).write_text(json.dumps(whole))
    assert verify_hand_off(folder).cautions == ["what is not hidden\\x9b2J\\u202e"]


@pytest.mark.parametrize(
    "change",
    [
        {"method": "federated-scores"},
        {"unprotected": None},
        {"ledger": {"charge": "0" * 64}},
        {"release_sha256": "0" * 64},
        {"asked": {"epsilon": 1, "delta": 0}, "spent": {"epsilon": "0", "delta": 0}},
        {"uncharged": None},
        {"dropped": {"north": "it was late"}},
        {"trust": "local"},
    ],
)
def test_a_manifest_without_a_charge_says_nothing_else(tmp_path: Path, change: Json) -> None:
    folder = tmp_path / "own"
    shutil.copytree(UNCHARGED, folder)
    told = facts(folder) | change
    write_manifest(folder, {name: value for name, value in told.items() if value is not None})
    assert verify_hand_off(folder).faults


def test_a_price_does_not_make_models_private_that_were_trained_without_noise(tmp_path: Path) -> None:
    """Manifest and report are of one mind; the classifier, or the method, knows better."""
    trained = (UNCHARGED / "classifier.safetensors").read_bytes()
    folder = rewritten(FEDERATION, tmp_path / "own", "classifier.safetensors", lambda content: trained)
    assert "the manifest states an epsilon of a classifier that was trained without any noise" in (
        verify_hand_off(folder).faults
    )
    write_manifest(folder, facts(folder) | {"method": "federated-scores"})
    assert any(fault.startswith("scores alone were released") for fault in verify_hand_off(folder).faults)


@pytest.mark.parametrize("golden", [TABLE, FEDERATION, EMBEDDED, SCORED], ids=lambda folder: folder.name)
def test_what_is_made_again_and_not_changed_is_no_fault(tmp_path: Path, golden: Path) -> None:
    assert verify_hand_off(forged(golden, tmp_path / "own", lambda *all_of_it: None)).faults == []


def unsigned(lie: Callable[[Json, Json, Json], None]) -> Callable[[Json, Json, Json], None]:
    """Leave the officer's approval out as well, which is of other figures."""

    def change(manifest: Json, report: Json, card: Json) -> None:
        lie(manifest, report, card)
        del manifest["approved"]
        card["accounts"][0]["approved"] = None

    return change


@pytest.mark.parametrize("part", ["user", "document", "client"])
def test_the_price_of_a_table_is_for_nothing_smaller(tmp_path: Path, part: str) -> None:
    """A file beside the table that has the name of an embedding was enough to have a price for each user."""
    stray = tmp_path / "own" / "embeddings" / "part-00000.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"any")

    def lie(manifest: Json, report: Json, card: Json) -> None:
        manifest["part"] = part
        paid = [manifest["ledger"]["account"], manifest["plan_sha256"], manifest["run"], part]
        report["hashes"]["ledger_charge"] = manifest["ledger"]["charge"] = ledger_digest(paid)

    assert verify_hand_off(forged(TABLE, tmp_path / "own", unsigned(lie))).faults[:2] == [
        "embeddings/part-00000.parquet is no file that is made by this schema.yaml",
        f"the price is for each {part}, and nothing here is charged for each by itself",
    ]


@pytest.mark.parametrize("name", ["schema.yaml", "report.json"])
def test_what_a_check_holds_against_the_manifest_cannot_be_left_out(tmp_path: Path, name: str) -> None:
    """Without the schema a hand-off could have been of any kind, and its pages were compared with nothing."""
    shutil.copytree(TABLE, tmp_path / "own")
    (tmp_path / "own" / name).unlink()
    whole = facts(tmp_path / "own")
    del whole["artifacts"][name]
    write_manifest(tmp_path / "own", whole)
    assert f"manifest.json lists no {name}, which every hand-off has" in verify_hand_off(tmp_path / "own").faults


def loose_delta(manifest: Json) -> None:
    """Release the records of one client with a probability of nine in ten."""
    event = GaussianEvent(noise_multiplier=0.3)
    spent = spent_epsilon([event], Decimal("0.9"))
    lines = {"asked": {"epsilon": 2.9, "delta": 0.9}, "spent": {"epsilon": str(spent), "delta": 0.9}}
    manifest["clients"][1] |= {**lines, "events": [event.model_dump(mode="json")]}


def loose_whole(manifest: Json) -> None:
    """Say of all clients what none of them paid for."""
    manifest["events"] = [{"kind": "gaussian", "noise_multiplier": 1.390593470580471}]


def without_part(manifest: Json) -> None:
    """Leave out that one client's price is for each record at that client."""
    line = manifest["clients"][1]
    del line["part"]
    line["ledger"]["charge"] = ledger_digest([line["ledger"]["account"], line["plan_sha256"], line["run"]])
    manifest["ledger"]["charge"] = ledger_digest([each["ledger"]["charge"] for each in manifest["clients"]])


@pytest.mark.parametrize("lie", [loose_delta, loose_whole, without_part])
def test_the_price_of_a_federation_is_that_of_each_of_its_clients(tmp_path: Path, lie: Callable[[Json], None]) -> None:
    def change(manifest: Json, report: Json, card: Json) -> None:
        lie(manifest)
        report["hashes"]["ledger_charge"] = manifest["ledger"]["charge"]

    (fault,) = verify_hand_off(forged(FEDERATION, tmp_path / "own", change)).faults
    assert fault == (
        "the manifest's cost is not that of the client that spent most"
        if lie is loose_whole
        else "client south has another delta or part than the manifest"
    )


def test_a_client_that_is_left_out_is_missed(tmp_path: Path) -> None:
    """Whoever is left out may be the one that spent most, or whose charge no officer signed."""

    def change(manifest: Json, report: Json, card: Json) -> None:
        left = manifest["clients"].pop()
        assert left["client"] not in (manifest.get("dropped") or {})

    faults = verify_hand_off(forged(FEDERATION, tmp_path / "own", change)).faults
    assert any(fault.endswith("is in one of schema.yaml and the manifest alone") for fault in faults)


def unpaid(manifest: Json, report: Json) -> None:
    """Leave the line out that paid for the scores."""
    del manifest["report"]
    manifest["total_spent"]["epsilon"] = "1.348264997788"
    report["privacy"]["total_epsilon"] = 1.348264997788


def price_of_the_release(manifest: Json, report: Json) -> None:
    """Let the noise of the release stand for that of the scores."""
    unpaid(manifest, report)
    report["charged"] |= {"event": report["privacy"]["event"], "spent_epsilon": 1e-6, "target_epsilon": 1e-6}


def not_charged(manifest: Json, report: Json) -> None:
    """Say that they were not charged for."""
    unpaid(manifest, report)
    report["charged"]["charged"] = False


def lost_and_shown(manifest: Json, report: Json) -> None:
    """Say that they were lost, and show them."""
    del manifest["report"]["scores_sha256"], report["charged"]["scores_sha256"], report["hashes"]["scores_sha256"]
    report["charged"]["status"] = "lost"


def shown_of_none(manifest: Json, report: Json) -> None:
    """Have a charge, and show nothing."""
    report["charged"] = None


def cheaper(manifest: Json, report: Json) -> None:
    """Show the scores at another price than their line has."""
    report["charged"]["spent_epsilon"] = 0.1


def another_charge(manifest: Json, report: Json) -> None:
    """Show scores of another charge."""
    report["charged"]["ledger_charge"] = "0" * 64


@pytest.mark.parametrize(
    "lie", [price_of_the_release, not_charged, lost_and_shown, shown_of_none, cheaper, another_charge]
)
def test_scores_on_the_real_rows_are_shown_with_their_charge(tmp_path: Path, lie: Callable[[Json, Json], None]) -> None:
    told = "report.json shows other charged scores, or at another price, than the manifest has a line for"
    folder = forged(SCORED, tmp_path / "own", lambda manifest, report, card: lie(manifest, report))
    assert verify_hand_off(folder).faults == [told]


def without_discoveries(report: Json) -> None:
    """Leave out what the schema was discovered with; without it, an attacker guesses worse."""
    del report["privacy"]["discoveries"], report["privacy"]["total_delta"]


CHEAP = "Correction: everything on this page together cost epsilon 0.001, and hides whole families"
MAP = {"points": [[0.0, 0.0]], "means": [{"name": CHEAP, "place": [0.0, 0.0]}], "explains": 0.5}
TOGETHER = {"what": CHEAP, "members": 3, "of": 4, "into": 1, "share": 0.1, "distance_within": 0.1}

LIES: list[tuple[Path, str, Callable[[Json], object]]] = [
    (SCORED, "privacy.event", lambda report: report["privacy"].update(event=report["charged"]["event"])),
    (SCORED, "privacy.discoveries, privacy.total_delta", without_discoveries),
    (SCORED, "privacy.discoveries", lambda report: report["privacy"]["discoveries"][0]["events"].pop()),
    (SCORED, "not_promised", lambda report: report["not_promised"].pop()),
    (TABLE, "privacy.rows_of_a_unit", lambda report: report["privacy"].update(rows_of_a_unit=4000)),
    (TABLE, "privacy.target_epsilon", lambda report: report["privacy"].update(target_epsilon=0.01)),
    (TABLE, "privacy.part", lambda report: report["privacy"].update(part="user")),
    (TABLE, "data_set, method", lambda report: report.update(data_set="weather", method="dp-gan")),
    (TABLE, "hashes.dataset", lambda report: report["hashes"].update(dataset="0" * 64)),
    (TABLE, "not_promised", lambda report: report.update(not_promised=["Nothing here is of people."])),
    (TABLE, "gate", lambda report: report["gate"][0].update(rule="certified anonymous by the authority")),
    (TABLE, "gate", lambda report: report["gate"][0].update(note=CHEAP)),
    (FEDERATION, "clients", lambda report: report["clients"][0].update(note=CHEAP)),
    (FEDERATION, "clients", lambda report: report["clients"][0].update(note=[1.0])),
    (TABLE, "rows_are", lambda report: report.update(rows_are="users")),
    (TABLE, "about, words", lambda report: report.update(about="weather", words="public weather", tables=[])),
    (EMBEDDED, "cautions", lambda report: report.update(cautions=[])),
    (EMBEDDED, "privacy.epsilon_of_a_document", lambda report: report["privacy"].update(epsilon_of_a_document=0.1)),
    (EMBEDDED, "privacy.sentences", lambda report: report["privacy"]["sentences"][4].update(right_guesses=0.5)),
    (EMBEDDED, "privacy.part", lambda report: report["privacy"].update(part="user")),
    (EMBEDDED, "not_promised", lambda report: report.update(not_promised=[])),
    (
        FEDERATION,
        "privacy.event",
        lambda report: report["privacy"].update(event=report["privacy"]["event"]["events"][0]),
    ),
    (FEDERATION, "privacy.rows_of_a_unit", lambda report: report["privacy"].update(rows_of_a_unit=10)),
    (FEDERATION, "trust", lambda report: report.update(trust="central")),
    (FEDERATION, "sizes_are_public", lambda report: report.update(sizes_are_public=True)),
    (FEDERATION, "cautions, not_promised", lambda report: report.update(cautions=[], not_promised=[])),
    (FEDERATION, "clients", lambda report: report["clients"][0].update(epsilon=0.1)),
    (FEDERATION, "clients", lambda report: report["clients"].append(report["clients"][0])),
    (FEDERATION, "classes", lambda report: report["classes"][0].update(name="weather")),
    (TABLE, "cautions", lambda report: report.update(cautions=[CHEAP])),
    (TABLE, "drowned", lambda report: report.update(drowned=CHEAP)),
    (TABLE, "drowned", lambda report: report.update(drowned=f"{lost_in_noise(0.5)} {CHEAP}")),
    (EMBEDDED, "drowned", lambda report: report.update(drowned=CHEAP)),
    (FEDERATION, "drowned", lambda report: report.update(drowned=CHEAP)),
    (TABLE, "correction", lambda report: report.update(correction=CHEAP)),
    (EMBEDDED, "correction", lambda report: report.update(correction=CHEAP)),
    (FEDERATION, "correction", lambda report: report.update(correction=CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][0].update(name=CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][0].update(type=CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][0].update(correction=CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][4].update(cells=CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][0]["labels"].__setitem__(0, CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][1]["labels"].__setitem__(0, CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][0]["axis"].update(note=CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][0]["axis"]["ticks"].__setitem__(0, [0.0, CHEAP])),
    (TABLE, "columns", lambda report: report["columns"][4]["largest_cell"].update(label=CHEAP)),
    (TABLE, "columns", lambda report: report["columns"][4].update(counted_together=TOGETHER)),
    (TABLE, "columns", lambda report: report["columns"][0].update(discovered_bounds=["min"])),
    (TABLE, "columns", lambda report: report["columns"].pop()),
    (TABLE, "columns", lambda report: report["columns"].reverse()),
    (TABLE, "fit", lambda report: report["fit"][0].update(look=CHEAP)),
    (TABLE, "fit", lambda report: report["fit"].append(report["fit"][0])),
    (TABLE, "sample_sheet", lambda report: report.update(sample_sheet="data:image/png;base64,AAAA")),
    (TABLE, "sample_classes", lambda report: report.update(sample_classes=[CHEAP])),
    (TABLE, "map", lambda report: report.update(map=MAP)),
    (SCORED, "charged", lambda report: report["charged"].update(target=CHEAP)),
    (SCORED, "charged", lambda report: report["charged"].update(correction=CHEAP)),
    (SCORED, "charged", lambda report: report["charged"]["columns"][1].update(name=CHEAP)),
    (SCORED, "charged", lambda report: report["charged"]["columns"][1].update(cells=CHEAP)),
    (SCORED, "charged", lambda report: report["charged"]["columns_with_target"].pop()),
    (SCORED, "charged", lambda report: report["charged"]["classifiers"][0].update(model=CHEAP)),
    (SCORED, "charged", lambda report: report["charged"]["classifiers"][0]["scores"][0].update(score=CHEAP)),
    (FEDERATION, "compared", lambda report: report["compared"].update(words=CHEAP)),
    (FEDERATION, "compared", lambda report: report["compared"].update(classifiers=[{"name": CHEAP, "accuracy": 1.0}])),
    (EMBEDDED, "clusters", lambda report: report["clusters"][0].update(words=CHEAP)),
    (EMBEDDED, "headline", lambda report: report.update(headline=CHEAP)),
    (TABLE, "headline", lambda report: report.update(headline="Shares within 1 % in all 5 category columns.")),
    (TABLE, "columns", lambda report: report["columns"][0].update(verdict="shares within 1\N{NO-BREAK SPACE}%")),
    (TABLE, "columns", lambda report: report["columns"][0].update(table=CHEAP)),
    (USERS, "columns", lambda report: report["columns"][0].update(table="children")),
    (DERIVED, "derived", lambda report: report["derived"][0].update(words=CHEAP)),
    (DERIVED, "derived", lambda report: report["derived"][0]["mean"].update(synthetic=-7.0)),
    (DERIVED, "derived", lambda report: report["derived"][0]["mean"].update(synthetic_stddev=-5.0)),
    (DERIVED, "derived", lambda report: report["derived"][0]["mean"].update(words=CHEAP)),
    (DERIVED, "derived", lambda report: report["derived"][0].update(unseen={"means": [9.0, 0.5]})),
    (DERIVED, "derived", lambda report: report["derived"][0].update(follows=[CHEAP])),
    (DERIVED, "derived", lambda report: report["derived"][0].update(quantiles_within=0.01)),
    (DERIVED, "derived", lambda report: report["derived"][1].update(rank_distance_in_groups=-5)),
    (DERIVED, "derived", lambda report: report["derived"][0].update(rank_distance_in_groups=0.01)),
    (DERIVED, "derived", lambda report: report["derived"][0].update(ordered=7)),
    (DERIVED, "derived", lambda report: report["derived"][0].update(values=99)),
    (DERIVED, "derived", lambda report: report["derived"][2].update(synthetic=[-5.0, 6.0])),
    (DERIVED, "derived", lambda report: report["derived"][2].update(synthetic=[0.05, 0.05])),
    (DERIVED, "derived", lambda report: report["derived"][2].update(labels=["A", "A"])),
    (DERIVED, "derived, wholes", lambda report: report.update(derived=[])),
    (DERIVED, "derived, wholes", lambda report: report["derived"][0].update(name="weight")),
    (DERIVED, "derived", lambda report: report["derived"][1].update(rank_distance_in_groups=0.001)),
    (DERIVED, "derived", lambda report: report["derived"][1]["labels"].__setitem__(0, CHEAP)),
    (DERIVED, "derived", lambda report: report["derived"][1]["axis"].update(note=CHEAP)),
    (DERIVED, "derived", lambda report: report["derived"][2]["labels"].__setitem__(0, "C")),
    (DERIVED, "derived", lambda report: report["derived"][2].update(table="parents")),
    (DERIVED, "derived", lambda report: report["derived"].append(report["derived"][0])),
    (DERIVED, "derived", lambda report: report["derived"][2].update(verdict=CHEAP)),
    (USERS, "pairs", lambda report: report["pairs"].update(words=CHEAP)),
    (USERS, "pairs", lambda report: report["pairs"]["tables"][0].update(words=CHEAP)),
    (USERS, "pairs", lambda report: report["pairs"]["tables"][0]["labels"][0][0].append(CHEAP)),
    (USERS, "pairs", lambda report: report["pairs"]["tables"][0]["labels"][1][1].append(CHEAP)),
    (TARGETED, "rates", lambda report: report["rates"].update(words=CHEAP)),
    (TARGETED, "rates", lambda report: report["rates"]["columns"][0].update(words=CHEAP)),
    (TARGETED, "rates", lambda report: report["rates"]["columns"][0]["labels"][0].append(CHEAP)),
    (DERIVED, "groups", lambda report: report["groups"][0].update(words=CHEAP)),
    (DERIVED, "asked_rates", lambda report: report["asked_rates"][0].update(words=CHEAP)),
    (DERIVED, "asked_rates", lambda report: report["asked_rates"][0]["columns"][0]["labels"][0].append(CHEAP)),
    (DERIVED, "groups", lambda report: report["groups"][0].update(by="age")),
    (DERIVED, "groups", lambda report: report["groups"][0]["groups"][0].update(words=CHEAP)),
    (DERIVED, "groups", lambda report: report["groups"][0]["groups"][0].update(labels=[CHEAP])),
    (DERIVED, "groups", lambda report: report["groups"][-1]["groups"][0].update(labels=["C"])),
    (DERIVED, "groups", lambda report: report["groups"][0]["groups"][0].update(reason=CHEAP)),
]


@pytest.mark.parametrize(("golden", "fact", "lie"), LIES, ids=[f"{lie[0].name}: {lie[1]}" for lie in LIES])
def test_a_report_says_nothing_else_than_what_was_paid_for(
    tmp_path: Path, golden: Path, fact: str, lie: Callable[[Json], object]
) -> None:
    """Of these pages `nacre verify` said VERIFIED, if the manifest was signed anew."""

    def change(manifest: Json, report: Json, card: Json) -> None:
        manifest["layout"] = LAYOUT
        lie(report)

    assert verify_hand_off(forged(golden, tmp_path / "own", change)).faults == [f"{ELSE} {fact}"]


@pytest.mark.parametrize("golden", [EMBEDDED, FEDERATION, SIGNED, TABLE], ids=lambda folder: folder.name)
def test_the_cautions_are_those_of_the_price_and_the_unit(tmp_path: Path, golden: Path) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        manifest["cautions"] = ["STRONG: whole documents and all that a user wrote are hidden as well."]
        if golden != TABLE:
            report["cautions"] = manifest["cautions"]

    assert OTHER_CAUTIONS in verify_hand_off(forged(golden, tmp_path / "own", lie)).faults


@pytest.mark.parametrize("old", ["FORMAT-3/embedded", "FORMAT-4/federation"])
def test_the_cautions_of_earlier_formats_are_held_as_well(tmp_path: Path, old: str) -> None:
    shutil.copytree(GOLDEN / old, tmp_path / "own", ignore=shutil.ignore_patterns("*.sig"))
    whole = facts(tmp_path / "own")
    whole["cautions"][0] = "STRONG: everything is hidden."
    write_manifest(tmp_path / "own", whole)
    assert verify_hand_off(tmp_path / "own").faults == [OTHER_CAUTIONS]


def test_cautions_are_the_remarks_of_the_contract_and_what_its_rules_did_to_the_rows() -> None:
    """What the rules did is in figures, so of that caution the words are held."""
    schema = make().model_copy(update={"unit": PrivacyUnit(kind="user", user="start", max_rows=1)})
    rules = caution_of_rules(Never(schema), 300, 0)
    assert schema.remarks and are_cautions([*schema.remarks, rules], schema) and are_cautions([*schema.remarks], schema)
    for lies in ([rules], [*schema.remarks, rules, rules], [*schema.remarks, f"{rules} {CHEAP}"], [CHEAP], None, CHEAP):
        assert not are_cautions(lies, schema), lies
    assert are_cautions(None, make()) and not are_cautions([CHEAP], make())


class Never(Cells):
    """Draws nothing but stays that end before they begin."""

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        return Codec(self.schema).from_cells(np.tile(np.array([[31, 0, 0]], dtype=np.int32), (rows, 1)), rng)


def test_what_nacre_says_of_drowned_data_and_of_classifiers_is_no_lie() -> None:
    sentences = [drowned([], 0, 1), lost_in_noise(0)]
    for said in (drowned([], 1234, 56789.2), drowned([], -3, 10), lost_in_noise(1.2345)):
        assert said and is_like(said, sentences) and not is_like(f"{said}. {CHEAP}", sentences)
    assert set(KNOWN_AS.values()) == set(CLASSIFIERS)
    rated = [Rated(name, np.arange(200) % number > 0) for number, name in enumerate(KNOWN_AS.values(), 3)]
    for method in METHODS:
        for some in (rated, rated[::-1], rated[:1], [Rated(one.name) for one in rated]):
            compared = compare_all(method, some)
            assert is_comparison(compared, method), compared["words"]
            assert not is_comparison({**compared, "words": CHEAP}, method)


def without_price(manifest: Json, report: Json) -> None:
    """Say that the models travelled as they were trained, and that the charges are of scores alone."""
    manifest |= {"method": "federated-scores", "unprotected": "No epsilon holds."}
    for name in ("asked", "spent", "events"):
        del manifest[name]
    report["privacy"] |= dict.fromkeys(("delta", "spent_epsilon", "total_epsilon"))


@pytest.mark.parametrize("family", [False, True])
@pytest.mark.parametrize("priced", [False, True])
def test_an_old_approval_does_not_cover_a_federation(tmp_path: Path, family: bool, priced: bool) -> None:
    """Where no epsilon holds there is no line of the whole, so every approval of anything covered all lines."""
    key, public = write_key(tmp_path / "dana.pem")
    shutil.copytree(FEDERATION, tmp_path / "own")
    whole, report = facts(tmp_path / "own"), json.loads((tmp_path / "own" / "report.json").read_text())
    if not priced:
        without_price(whole, report)
    old = ApprovalRequest("a" * 64, "toy", "20260101-aaaaaaaaaa", ("b" * 64,), family=family)
    whole["approved"] = old.approve("Dana", key).model_dump(mode="json")
    if family:
        whole["approved_as"] = {"account": "toy", "run": old.run}
    else:
        whole["run"], whole["ledger"]["account"] = old.run, "toy"
    write_manifest(tmp_path / "own", whole)
    found = verify_hand_off(tmp_path / "own", officer_key=public)
    assert "Dana" not in found.approved and any("approv" in fault for fault in found.faults)


DECLARED = GOLDEN / "LAYOUT-26" / "laid-out"
ANOTHER_PRICE = "the officer signed for another unit, target, noise or schema than the manifest has"


def less_noise(manifest: Json, report: Json, card: Json) -> None:
    """Say that four times the noise was drawn, and what that costs."""
    event = manifest["events"][0]
    event["noise_multiplier"] *= 4
    spent = spent_epsilon([GaussianEvent(noise_multiplier=event["noise_multiplier"])], 1e-5)
    manifest["spent"]["epsilon"] = str(spent)


def another_unit(manifest: Json, report: Json, card: Json) -> None:
    """Say that a user was hidden, where a record was."""
    manifest["unit"] = report["privacy"]["unit"] = "user (patient, at most 1 row)"


def another_schema(manifest: Json, report: Json, card: Json) -> None:
    manifest["schema_sha256"] = "0" * 64


@pytest.mark.parametrize("lie", [less_noise, another_unit, another_schema])
def test_an_officer_signed_for_the_figures_that_a_recipient_reads(
    tmp_path: Path, lie: Callable[[Json, Json, Json], None]
) -> None:
    assert ANOTHER_PRICE in verify_hand_off(forged(DECLARED, tmp_path / "own", lie)).faults


def test_what_an_officer_signed_is_what_is_declared(tmp_path: Path) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        manifest["declared"]["recipient"] = card["given"]["recipient"] = "Everybody"
        card["hand_off"]["approved"].pop("declared")

    assert verify_hand_off(DECLARED).faults == []
    assert verify_hand_off(forged(DECLARED, tmp_path / "own", lie)).faults == [
        "the officer signed another declaration than this one of purpose, recipient and the like"
    ]


def test_an_approval_of_plans_alone_is_no_signature_of_a_declaration(tmp_path: Path) -> None:
    key, _ = write_key(tmp_path / "dana.pem")
    request = ApprovalRequest("a" * 64, "toy", "run", ("b" * 64,), declared="c" * 64)
    alone, whole = replace(request, declared="").approve("Dana", key), request.approve("Dana", key)
    assert request.is_signed(alone) and request.is_signed(whole) and "declared" not in alone.model_dump()
    for forgery in (alone.model_copy(update={"declared": "c" * 64}), whole.model_copy(update={"declared": ""})):
        assert not request.is_signed(forgery)
    assert not replace(request, declared="d" * 64).is_signed(whole)


def test_an_approval_of_one_client_covers_no_other(tmp_path: Path) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        for each in (manifest["clients"], card["accounts"]):
            each[0]["approved"] = each[1]["approved"]

    assert verify_hand_off(forged(SIGNED, tmp_path / "own", lie)).faults == [
        "the officer's approval is not a signature of this run and its plan"
    ]


@pytest.mark.parametrize("golden", [TABLE, SCORED, FEDERATION, SIGNED], ids=lambda folder: folder.name)
def test_the_pages_name_no_officer_whose_signature_is_not_there(tmp_path: Path, golden: Path) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        card["accounts"][-1]["approved"] = {"officer": "Dana Roe", "public_key": "A" * 43 + "="}

    (fault,) = verify_hand_off(forged(golden, tmp_path / "own", lie)).faults
    assert fault.startswith("model-card.json names an officer whose signature for account ")


@pytest.mark.parametrize("golden", [TABLE, FEDERATION], ids=lambda folder: folder.name)
def test_the_card_tells_of_every_account_that_paid(tmp_path: Path, golden: Path) -> None:
    def change(manifest: Json, report: Json, card: Json) -> None:
        card["accounts"].pop()
        card["books"] = card.get("books", [])[: len(card["accounts"])]

    folder = forged(golden, tmp_path / "own", change)
    assert verify_hand_off(folder).faults == [
        "model-card.json tells of an account that did not pay, or not of one that did"
    ]


EARLIER = {"day": "2026-01-01", "run": "a", "epsilon": "0.1", "delta": "0"}
BOOKS = [
    {"books": [{"spent": ["500"]}]},
    {"books": [{"spent": ["-1"]}]},
    {"books": [{"spent": ["0.02", "0.01"]}]},
    {"books": [{"expires": "1900-01-01"}]},
    {"books": [{}, {}]},
    {"books": [{"note": "approved by NIST"}]},
    {"owner": "NIST"},
    {"expires": "2099-01-01"},
    {"earlier": [{**EARLIER, "spent": "0.1"}]},
]


@pytest.mark.parametrize("lie", BOOKS, ids=str)
def test_what_is_said_of_an_account_beside_its_standing_is_what_a_ledger_says(tmp_path: Path, lie: Json) -> None:
    def change(content: bytes) -> bytes:
        card = json.loads(content)
        spent = lie.get("books", [{}])[0].get("spent", ())
        if spent:
            card["accounts"][0] |= {"charges": len(spent), "earlier": [EARLIER] * len(spent), "before": "0.9"}
        card["books"] = lie.get("books", card["books"])
        card["accounts"][0] |= {key: value for key, value in lie.items() if key != "books"}
        return json.dumps(card).encode()

    found = verify_hand_off(rewritten(TABLE, tmp_path / "own", "model-card.json", change)).faults
    assert found == ["model-card.json is not as nacre writes it"]


@pytest.mark.parametrize("accounts", [[1], 1, ["a"], None])
def test_accounts_of_any_shape_are_a_fault_and_no_traceback(tmp_path: Path, accounts: object) -> None:
    def change(content: bytes) -> bytes:
        return json.dumps(json.loads(content) | {"accounts": accounts}).encode()

    found = verify_hand_off(rewritten(TABLE, tmp_path / "own", "model-card.json", change)).faults
    assert found == ["model-card.json is not as nacre writes it"]


@pytest.mark.parametrize("layout", [2, 99])
@pytest.mark.parametrize("field", ["before", "after", "cap", "remaining", "delta"])
@pytest.mark.parametrize("amount", ["1E+1000000", "-1", "1E+40", "Infinity"])
def test_an_amount_that_no_ledger_has_is_a_fault(tmp_path: Path, layout: int, field: str, amount: str) -> None:
    def lie(content: bytes) -> bytes:
        card = json.loads(content)
        card["accounts"][0][field] = amount
        return json.dumps(card).encode()

    folder = rewritten(TABLE, tmp_path / "own", "model-card.json", lie)
    write_manifest(folder, facts(folder) | {"layout": layout})
    assert verify_hand_off(folder).faults == ["model-card.json is not as nacre writes it"]


def dearer(manifest: Json, report: Json, card: Json) -> None:
    """Have more noise in the plan that the officer signed than in what is handed over."""
    spent = spent_epsilon([GaussianEvent(noise_multiplier=0.12)], Decimal("1e-5"))
    manifest["events"] = [{"kind": "gaussian", "noise_multiplier": 0.12}]
    manifest["asked"]["epsilon"], manifest["spent"]["epsilon"] = 80.0, str(spent)
    report["privacy"] |= dict.fromkeys(("spent_epsilon", "total_epsilon"), float(spent))
    report["privacy"] |= {"target_epsilon": 80.0, "event": GaussianEvent(noise_multiplier=0.12).model_dump(mode="json")}


def beyond_its_cap(manifest: Json, report: Json, card: Json) -> None:
    """Say that the account could spend more than it may."""
    card["accounts"][0]["after"] = "2.01"


@pytest.mark.parametrize("lie", [dearer, beyond_its_cap])
def test_what_an_account_had_spent_is_what_this_cost_and_within_its_cap(
    tmp_path: Path, lie: Callable[[Json, Json, Json], None]
) -> None:
    (fault,) = verify_hand_off(forged(TABLE, tmp_path / "own", unsigned(lie))).faults
    assert fault.startswith(
        "the events cost far more" if lie is dearer else "account clinic had spent more than its cap"
    )


def test_a_client_that_had_spent_less_than_it_paid_is_a_fault(tmp_path: Path) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        card["accounts"][1]["after"] = "2.9"

    (fault,) = verify_hand_off(forged(FEDERATION, tmp_path / "own", lie)).faults
    assert fault == "account wards.south had spent less, after this, than this cost"


def test_an_account_that_had_spent_more_before_this_than_after_it_is_a_fault(tmp_path: Path) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        card["accounts"][1]["before"] = "50"

    (fault,) = verify_hand_off(forged(FEDERATION, tmp_path / "own", lie)).faults
    assert fault == "account wards.south had spent more before this than after it"


@pytest.mark.parametrize(
    ("golden", "amounts", "fault"),
    [
        (TABLE, {"remaining": "100"}, "another amount left"),
        (TABLE, {"right_guesses": 0.5}, "tell less, or more"),
        (TABLE, {"right_guesses": 0.9999}, "tell less, or more"),
        (TABLE, {"remaining": "1.7"}, "another amount left"),
        (TABLE, {"cap": "0.999999989119"}, "another amount left"),
        (TABLE, {"cap": "1000000", "remaining": "1000.1"}, "another amount left"),
        (TABLE, {"delta": "2"}, "a delta that no ledger has"),
        (EMBEDDED, {"remaining": "1"}, "another amount left"),
        (EMBEDDED, {"cap": "12"}, "another amount left"),
        (EMBEDDED, {"before": "0.5"}, "another amount after this than before it and by this"),
        (EMBEDDED, {"after": "11", "cap": "11"}, "another amount after this than before it and by this"),
    ],
)
def test_what_an_account_has_left_is_what_its_cap_and_its_spending_leave(
    tmp_path: Path, golden: Path, amounts: Json, fault: str
) -> None:
    """The statement for a data-protection officer lays these amounts out, and says why the rest is not cap - spent."""
    faults = verify_hand_off(
        forged(golden, tmp_path / "own", lambda manifest, report, card: card["accounts"][0].update(amounts))
    ).faults
    assert [fault in one for one in faults] == [True], faults


PARENT = {"account": "wards", "cap": "3.0", "delta": "0.00001", "spent": "2.999999966254"}
ABOVE: list[tuple[Path, list[Json], str]] = [
    (
        FEDERATION,
        [PARENT | {"spent": "0.001"}],
        "account wards, above the one that paid, has spent less",
    ),
    (FEDERATION, [PARENT | {"spent": "40"}], "account wards, above the one that paid, has spent more than its cap"),
    (FEDERATION, [PARENT, PARENT], "model-card.json has one account twice among the payer and those above it"),
    (FEDERATION, [PARENT | {"account": "wards.north"}], "model-card.json has one account twice among the payer and"),
    (FEDERATION, [PARENT | {"account": "wards\nnorth"}], "model-card.json is not as nacre writes it"),
    (FEDERATION, [PARENT | {"account": "w" * 501}], "model-card.json is not as nacre writes it"),
    (FEDERATION, [PARENT | {"words": "any"}], "model-card.json is not as nacre writes it"),
    (FEDERATION, [PARENT | {"delta": "1E+9"}], "model-card.json is not as nacre writes it"),
    (FEDERATION, [PARENT | {"cap": "Infinity"}], "model-card.json is not as nacre writes it"),
    (TABLE, [PARENT | {"spent": "0.5"}], "account wards, above the one that paid, has spent less"),
]


@pytest.mark.parametrize(("golden", "above", "fault"), ABOVE)
def test_what_accounts_above_the_payer_had_spent_holds_what_this_cost(
    tmp_path: Path, golden: Path, above: list[Json], fault: str
) -> None:
    folder = forged(golden, tmp_path / "own", lambda manifest, report, card: card.update(above=above))
    (only,) = verify_hand_off(folder).faults
    assert only.startswith(fault)


def test_an_account_above_none_that_paid_is_a_fault(tmp_path: Path) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        card |= {"accounts": [], "above": [PARENT]}

    folder = forged(FEDERATION, tmp_path / "own", lie)
    assert verify_hand_off(folder).faults == ["model-card.json has accounts above one that paid, and none that paid"]


def test_a_report_with_a_delta_of_its_own_is_a_fault(hand_off: Path) -> None:
    """At a delta of a half its scores cost nothing, which the page would say."""

    def lie(whole: Json) -> None:
        whole["report"]["asked"]["delta"] = whole["report"]["spent"]["delta"] = 0.5
        whole["report"]["spent"]["epsilon"] = "0"

    assert any("another delta than the release" in fault for fault in faults(hand_off, lie))


@pytest.mark.parametrize("version", ["0.3.0", "0.1.0"])
def test_a_method_that_nacre_never_had_is_a_fault_unless_a_later_version_made_it(tmp_path: Path, version: str) -> None:
    def lie(manifest: Json, report: Json, card: Json) -> None:
        manifest["method"] = report["method"] = "no noise at all"
        manifest["nacre_version"] = version

    check = verify_hand_off(forged(TABLE, tmp_path / "own", lie))
    said = "no method of this version of nacre is called no noise at all"
    assert (check.faults, said in check.notes) == (([], True) if version == "0.3.0" else ([said], False))


@pytest.mark.parametrize("version", ["the one that hides families", "1." * 60 + "0", "0.2.0\u202e", "", "v"])
def test_a_version_that_is_none_is_a_fault(tmp_path: Path, version: str) -> None:
    shutil.copytree(TABLE, tmp_path / "own")
    write_manifest(tmp_path / "own", facts(tmp_path / "own") | {"nacre_version": version})
    assert any("nacre_version" in fault for fault in verify_hand_off(tmp_path / "own").faults)


def test_versions_are_those_of_packages_and_ordered_by_their_numbers() -> None:
    for version in ("0.1.0", "0.2.0", "1!2.0rc1", "0.3.0.dev4+g12ab34c", "2.0a1.post2"):
        assert is_version(version), version
    assert is_later("99.0") and is_later("0.10.0") and not is_later("0.2.0") and not is_later("0.1.9")


@pytest.mark.parametrize("day", ["2026-02-30", "the day before", "20261124", "2026-11-24 or so", "2026-11-24T", ""])
def test_a_day_that_is_none_is_a_fault(hand_off: Path, day: str) -> None:
    assert any("day" in fault for fault in faults(hand_off, lambda w: w["ledger"]["entries"][1].update(day=day)))


def test_days_that_run_backwards_are_noted(hand_off: Path) -> None:
    """A clock may have been wrong, as the ledger's own check says too; so it is no fault."""
    whole = facts()
    whole["ledger"]["entries"][0]["day"] = "2999-01-01"
    (hand_off / MANIFEST).write_text(json.dumps(whole))
    check = verify_hand_off(hand_off)
    assert not check.faults and any("run backwards" in note for note in check.notes)
    assert not any("run backwards" in note for note in verify_hand_off(TABLE).notes)


@pytest.mark.parametrize("golden", [TABLE, FEDERATION], ids=lambda folder: folder.name)
def test_a_report_of_a_stranger_takes_little_memory(tmp_path: Path, golden: Path) -> None:
    """One letter beyond the first planes makes four bytes of each, and a text was there several times at once."""

    def fill(manifest: Json, report: Json, card: Json) -> None:
        manifest["layout"] = LAYOUT
        (report["gate"][0] if golden == TABLE else report["measurement"])["more"] = (
            "x" * (LARGEST_REPORT - 2**16) + "\U0001f600"
        )

    folder = forged(golden, tmp_path / "own", fill)
    code = (
        "import re, sys; from pathlib import Path; from dpmodels.hand_off.verify import verify_hand_off\n"
        "found = verify_hand_off(Path(sys.argv[1]))\n"
        "print(found.faults[0], re.search('VmHWM:\\s*([0-9]+)', Path('/proc/self/status').read_text())[1], sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    fault, kilobytes = done.stdout.split("|")
    assert "larger than any is" in fault and int(kilobytes) < 256 * 2**10


def test_a_file_that_is_read_is_not_believed_by_its_digest_alone(tmp_path: Path) -> None:
    """In an object store a report that was too large to be fetched was hashed there, and read by nobody."""
    shutil.copytree(TABLE, tmp_path / "own")
    (tmp_path / "own" / "report.json").unlink()
    elsewhere = {"report.json": facts(TABLE)["artifacts"]["report.json"]}
    assert verify_hand_off(tmp_path / "own", elsewhere=elsewhere).faults == [
        "report.json is larger than any of its kind"
    ]


@pytest.mark.parametrize("golden", [TABLE, EMBEDDED, SCORED], ids=lambda path: path.name)
def test_the_page_of_the_checks_says_what_the_schema_asks_and_that_it_holds(tmp_path: Path, golden: Path) -> None:
    forged(golden, tmp_path / "honest", lambda manifest, report, card: manifest.update(layout=LAYOUT))
    if not (golden / "checks.html").exists():
        return
    count = b' class="number">'
    changes: dict[str, Callable[[bytes], bytes]] = {
        "other": lambda page: b"<h1>epsilon = 0.001, all 500 rules hold</h1><script>alert(1)</script>",
        "verdict": lambda page: page.replace(b"all ", b"all 1", 1),
        "cell": lambda page: page.replace(count, count + b"none of ", 1),
    }
    for name, change in changes.items():
        folder = rewritten(TABLE, tmp_path / name, "checks.html", change)
        found = verify_hand_off(folder).faults
        (fault,) = found
        assert fault.startswith("checks.html says something else than that all rules of schema.yaml hold, "), name


def test_a_table_without_the_page_of_its_checks_is_a_fault(tmp_path: Path) -> None:
    folder = tmp_path / "without"
    shutil.copytree(TABLE, folder)
    (folder / "checks.html").unlink()
    manifest = facts(folder)
    del manifest["artifacts"]["checks.html"]
    write_manifest(folder, manifest)
    assert verify_hand_off(folder).faults == ["checks.html is missing, the page of the checks that report.json names"]


def test_a_layout_that_no_version_so_far_has_is_a_fault(tmp_path: Path) -> None:
    assert verify_hand_off(forged(TABLE, tmp_path / "new", lambda m, r, c: m.update(layout=99))).faults == [
        f"no version up to nacre {facts(TABLE)['nacre_version']} lays pages out by layout 99"
    ]
    later = forged(TABLE, tmp_path / "later", lambda m, r, c: m.update(layout=99, nacre_version="99.0.0"))
    assert verify_hand_off(later).faults == []


def test_every_remark_is_told_and_hand_offs_of_an_earlier_layout_that_were_told_less_are_in_order(
    tmp_path: Path,
) -> None:
    columns = {"fee": {"type": "integer", "min": -9, "max": 9, "scale": "log", "outside": "reject-row"}}
    schema = Schema.model_validate(
        {"name": "x", "columns": columns | {"twice": {"type": "derived", "formula": "2 * fee"}}}
    )
    left_out, coarse = schema.remarks
    assert are_cautions([left_out, coarse], schema)
    assert not any(are_cautions(one, schema) for one in ([coarse, left_out], [coarse], [], None, [left_out]))

    def told(manifest: Json, report: Json, _: Json) -> None:
        manifest["layout"], report["cautions"] = LAYOUT - 1, ["what an earlier version said"]

    assert verify_hand_off(forged(TABLE, tmp_path / "own", told)).faults == []
