"""What a schema was discovered with is part of the price of whatever is made by the schema, wherever it is told."""

import json
import math
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

import nacre
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import EVENT, GaussianEvent
from dpmodels.authoring.lint import parse
from dpmodels.errors import Unsuitable
from dpmodels.hand_off.manifest import CONTRACT, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.store import digest
from dpmodels.releases.discoveries import check_discovery
from tests.hand_off.make_golden import fitter
from tests.kit.drafts import open_account, write_draft
from tests.kit.manifests import facts, write_manifest
from tests.kit.support import charges, run_cli, synthesize_words


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Discover a schema at epsilon 1, delta 1e-6, and synthesize by it at epsilon 1, delta 1e-5."""
    folder = tmp_path_factory.mktemp("made")
    asked = write_draft(folder)
    open_account(folder, epsilon=9, delta=1e-4)
    assert run_cli(*asked, "--out", folder / "new.yaml")[0] == 0
    shutil.move(folder / "new.yaml", folder / "clinic.yaml")
    code, out, _ = run_cli(*synthesize_words(folder))
    assert code == 0 and "epsilon 1.3" in out, out
    return folder


def test_the_schema_says_what_it_was_discovered_with(made: Path) -> None:
    schema, _ = parse((made / "clinic.yaml").read_text())
    (one,) = schema.discovered
    assert (one.epsilon, one.delta, one.unit, one.account) == (1.0, 1e-6, "record", "clinic")
    assert [event.kind for event in one.events] == ["gaussian", "threshold"]
    assert parse(schema.to_yaml())[0] == schema and "discovered" in schema.to_yaml()


def test_the_manifest_has_a_line_for_it_and_the_total_is_of_both(made: Path) -> None:
    manifest = read_manifest(made / "out")
    (line,) = manifest.discoveries
    assert manifest.format == 11 and line.run.startswith("discover-")
    assert [entry.kind for entry in line.ledger.entries] == ["reserve", "draw", "seal", "commit"]
    events = [*manifest.price.events, *line.price.events]
    assert manifest.total_spent.delta == 1.1e-5
    assert manifest.whole_cost.epsilon == spent_epsilon(events, Decimal("1.1e-5")) > Decimal("1.3")
    found = verify_hand_off(made / "out")
    assert found.faults == [] and f"epsilon={manifest.whole_cost.epsilon} at delta=1.1e-05" in found.budget
    assert nacre.Result(made / "out").spent == (manifest.whole_cost.epsilon, Decimal("1.1e-5"))


def lines_edited(made: Path, to: Path, change: Callable[[dict], object]) -> Path:
    """Write the schema with what it says of its discovery changed, in a home of its own or not."""
    content = json.loads(parse((made / "clinic.yaml").read_text())[0].model_dump_json(exclude_defaults=True))
    change(content)
    to.write_text(json.dumps(content))
    return to


def test_report_pages_and_plan_state_the_whole_price(made: Path) -> None:
    manifest, report = read_manifest(made / "out"), json.loads((made / "out" / "report.json").read_text())
    total = float(manifest.whole_cost.epsilon)
    privacy = report["privacy"]
    assert (privacy["total_epsilon"], privacy["total_delta"]) == (total, 1.1e-5)
    assert "come from the declared schema" not in " ".join(report["not_promised"])
    card = json.loads((made / "out" / "model-card.json").read_text())
    assert [one["name"] for one in card["hand_off"]["charges"]] == ["release", "discovery"]
    assert card["hand_off"]["epsilon"] == str(manifest.whole_cost.epsilon) and card["hand_off"]["delta"] == 1.1e-5
    assert card["meaning"]["odds_factor"] == pytest.approx(math.exp(total), rel=1e-5)
    for page in ("statement.html", "model-card.html", "data-sheet.html"):
        text = (made / "out" / page).read_text()
        assert "what the schema was discovered with" in text and f"{total:.3f}"[:4] in text, page
        assert "come from the declared schema" not in text
    text = (made / "out" / "report.html").read_text()
    assert "<code>nacre schema discover</code> released under charge" in text and f"{total:.4g} composed" in text
    code, out, err = run_cli("plan", *synthesize_words(made, out=made / "next")[1:-2], "--home", made / "home")
    assert code == 0 and f"epsilon={manifest.whole_cost.epsilon}" in out.replace("\n", ""), out + err
    assert "charged to clinic before" in " ".join(out.split())


def test_with_a_charged_report_the_total_is_of_all_three(made: Path) -> None:
    code, out, err = run_cli(*synthesize_words(made, out=made / "scored", report_epsilon=0.5, rows=60))
    assert code == 0, out + err
    manifest = read_manifest(made / "scored")
    events = [event for line in manifest.lines for event in line.price.events]
    assert len(manifest.lines) == 3 and manifest.total_spent.epsilon == spent_epsilon(events, Decimal("1.1e-5"))
    assert verify_hand_off(made / "scored").faults == []
    assert "release, charged report and what the schema was" in (made / "scored" / "statement.html").read_text()


@pytest.mark.parametrize("home", ["home", "elsewhere"])
def test_whatever_is_made_of_the_release_again_has_its_price_too(made: Path, home: str) -> None:
    first = read_manifest(made / "out")
    release = made / "home" / "released" / first.run / "release.parquet"
    words = ("--home", made / home, "--rows", 40, "--no-prefect", "--config", fitter(made))
    code, out, err = run_cli("fit", release, "--out", made / f"fit-{home}", *words)
    assert code == 0, out + err
    again, (line,) = read_manifest(made / f"fit-{home}"), read_manifest(made / f"fit-{home}").discoveries
    assert again.whole_cost == first.whole_cost and verify_hand_off(made / f"fit-{home}").faults == []
    assert (line.left_out is None, line.ledger.entries is None) == ((True, False) if home == "home" else (False, True))


def test_a_schema_that_is_carried_to_another_home_states_its_price(made: Path) -> None:
    code, out, err = run_cli(*synthesize_words(made, home=made / "other", out=made / "carried"))
    assert code == 0 and "a new ledger begins in" in err, out + err
    assert "which this ledger does not hold" in " ".join(err.split())
    manifest = read_manifest(made / "carried")
    (line,) = manifest.discoveries
    assert line.ledger.entries is None and "not known here" in line.left_out
    assert manifest.whole_cost == read_manifest(made / "out").whole_cost
    verification = verify_hand_off(made / "carried")
    assert verification.faults == [] and line.charge in verification.notes[0]


def test_a_schema_that_was_stripped_of_its_discovery_is_warned_of_by_the_ledger_that_paid(made: Path, tmp_path) -> None:
    def strip(content: dict) -> None:
        content.pop("discovered")
        content.pop("sources")

    schema = lines_edited(made, tmp_path / "stripped.yaml", strip)
    words = synthesize_words(made, schema=schema, out=tmp_path / "out")
    code, _, err = run_cli(*words)
    assert code == 0 and "was also discovered by discover-" in " ".join(err.split()), err
    code, _, err = run_cli(*synthesize_words(made, out=tmp_path / "whole"), "--again", "to compare the two")
    assert code == 0 and "was also discovered" not in " ".join(err.split()), err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: one["events"][0].update(noise_multiplier=100.0), "its lines under `discovered` were edited"),
        (lambda one: one.update(epsilon=0.1), "events that cost more than its epsilon"),
        (lambda one: one.update(delta=4e-7), "events that cost more than its epsilon"),
        (lambda one: one.update(charge="0" * 64), "not of its account, plan and run"),
        (lambda one: one.update(release_sha256="0" * 64), "its lines under `discovered` were edited"),
        (lambda one: one.clear(), "without its price"),
    ],
)
def test_a_price_that_was_edited_is_refused_before_anything_is_charged(made: Path, tmp_path, change, told) -> None:
    def edit(content: dict) -> None:
        change(content["discovered"][0])
        content["discovered"] = [one for one in content["discovered"] if one]

    schema, before = lines_edited(made, tmp_path / "edited.yaml", edit), charges(made / "home")
    words = synthesize_words(made, schema=schema, out=tmp_path / "out")
    for command in (["plan", *words[1:]], words):
        code, _, err = run_cli(*command)
        assert code == 1 and told in " ".join(err.split()) and "schema discover` again" in " ".join(err.split()), err
    assert charges(made / "home") == before


def test_a_discovery_of_other_data_or_that_was_given_up_pays_for_nothing(made: Path, tmp_path) -> None:
    other = lines_edited(made, tmp_path / "other.yaml", lambda content: content.update(name="other"))
    code, _, err = run_cli("plan", *synthesize_words(made, schema=other)[1:])
    assert code == 1 and "is of data set clinic, and not of other" in " ".join(err.split())
    schema = parse((made / "clinic.yaml").read_text())[0]
    (one,) = schema.discovered
    held = Ledger(made / "home" / "ledger.sqlite").find(one.charge)
    for state in ("voided", "reserved", "drawing"):
        with pytest.raises(Unsuitable, match=f"is {state} in the ledger"):
            check_discovery(one, held.model_copy(update={"state": state}), schema)
    check_discovery(one, held, schema)


def lie(made: Path, to: Path, change: Callable[[dict], object]) -> list[str]:
    """Return the faults of a hand-off whose manifest was changed, and given the digest of what it says now."""
    shutil.copytree(made / "out", to)
    whole = facts(to)
    change(whole)
    write_manifest(to, whole)
    return verify_hand_off(to).faults


def cheaper(whole: dict) -> None:
    (line,) = whole["discoveries"]
    line["events"] = [{"kind": "gaussian", "noise_multiplier": 1e3, "mechanism": ""}]
    line["spent"]["epsilon"] = str(spent_epsilon([GaussianEvent(noise_multiplier=1e3)], Decimal("1e-6")))
    events = [EVENT.validate_python(event) for event in (*whole["events"], *line["events"])]
    whole["total_spent"]["epsilon"] = str(spent_epsilon(events, Decimal("1.1e-5")))


def without(whole: dict) -> None:
    del whole["discoveries"], whole["total_spent"]


def another(whole: dict) -> None:
    (line,) = whole["discoveries"]
    line["run"], line["plan_sha256"] = "discover-mine", "0" * 64
    line["ledger"]["charge"] = digest(["clinic", "0" * 64, "discover-mine"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without, "no line of the manifest has its price"),
        (cheaper, "another price, plan or payer of discovery"),
        (another, "which schema.yaml does not name"),
        (lambda whole: whole["discoveries"][0]["ledger"].update(charge="0" * 64), "not that of this plan and run"),
        (lambda whole: whole["discoveries"][0]["spent"].update(epsilon="0.1"), "the manifest says 0.1"),
        (lambda whole: whole["discoveries"][0]["ledger"].update(account="mine"), "not that of this plan and run"),
        (lambda whole: whole["total_spent"].update(whole["spent"]), "discoveries cost epsilon=1.3"),
        (lambda whole: whole["total_spent"].update(delta=1e-5), "together at delta=1.1e-05"),
        (lambda whole: whole["discoveries"].append(whole["discoveries"][0]), "two lines of the manifest name one"),
        (lambda whole: whole["discoveries"][0]["ledger"].pop("entries"), "ledger.entries and left_out"),
    ],
)
def test_verify_holds_the_price_of_a_discovery_against_the_schema(made: Path, tmp_path, change, told) -> None:
    found = lie(made, tmp_path / "lie", change)
    assert any(told in fault for fault in found), found


def test_a_hand_off_of_before_is_noted(made: Path, tmp_path) -> None:
    """Its schema names the charged release among its sources, and nothing states what that cost."""
    shutil.copytree(made / "out", tmp_path / "old")
    old = lines_edited(made, tmp_path / "old" / "schema.yaml", lambda content: content.pop("discovered"))

    def before(whole: dict) -> None:
        without(whole)
        del whole["artifacts"][CONTRACT]
        whole |= {"format": 7, "schema_sha256": parse(old.read_text())[0].hash}

    (tmp_path / "old" / CONTRACT).unlink()
    whole = facts(tmp_path / "old")
    before(whole)
    write_manifest(tmp_path / "old", whole)
    assert "whose price is in no line" in " ".join(verify_hand_off(tmp_path / "old").notes)
