"""Runs that the version before has begun: their plans are of format 1, and their report's line is a file of its own."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.moments import Moments
from dpmodels.errors import ArtifactError
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.quick import QUICK
from dpmodels.methods.registry import create
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.formats import NACRE_OF_2, RULES_OF_1, read_plan
from dpmodels.releases.plan import Line, Plan, canonical_hash
from dpmodels.releases.state import DrawState
from flows.config import SynthesizeConfig
from flows.synthesize import start
from tasks.run.accounts import desk_of, reserve
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tasks.stages.sanitize import sanitize
from tests.kit.support import charges, make_records, make_schema, make_table, measured, run_cli, write_clinic
from tests.releases.make_golden import GOLDEN

pytestmark = pytest.mark.processes

FOLDER = GOLDEN / "FORMAT-1"


def of_format_1(line: Line) -> dict[str, Any]:
    """Write a line of nacre or of a report as the version before wrote a plan."""
    kept = {key: value for key, value in line.model_dump(mode="json").items() if key in ("method", "budget", "event")}
    rules = {*RULES_OF_1.get(line.method, {}), "fine_cells" if line.method == "report" else ""}
    measurement = {key: value for key, value in line.measurement.items() if key not in rules}
    l2_sensitivity = Nacre().of(line).l2_sensitivity if line.method == "nacre" else 1
    return {
        **kept,
        "table": line.table.model_dump(mode="json"),
        "measurement": measurement,
        "fingerprint": line.fingerprint,
        "noise_multiplier": gaussian_noise_multiplier(line.budget),
        "l2_sensitivity": l2_sensitivity,
    }


def begun(folder: Path) -> tuple[Run, list[dict[str, Any]]]:
    """Start a run, and leave its plan as the version before did."""
    write_clinic(folder)
    (folder / "config.yaml").write_text("{model: {measurement: {pooled_share: null}}}")  # there were no residuals
    settings = {
        "data": folder / "clinic.parquet",
        "schema": folder / "clinic.yaml",
        "out": folder / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-5, "report_epsilon": 0.5},
        "runtime": {"home": folder / "home", "prefect": False},
        "model": {
            "method": "nacre",
            "measurement": {**QUICK["nacre"].measurement, "zooms": 0},  # there were none
            "training": QUICK["nacre"].training,
        },
    }
    run = start(SynthesizeConfig.build(settings, folder / "config.yaml"))
    old = [of_format_1(line) for line in run.plan.lines]
    for name, plan in zip(("plan.json", "report-plan.json"), old, strict=True):
        (run.control / name).write_text(json.dumps(plan, indent=1))
    return run, old


def test_a_run_of_the_version_before_goes_on_and_its_lines_keep_their_hashes(tmp_path):
    run, old = begun(tmp_path)
    assert [line.name for line in run.plan.lines] == ["release", "report"]
    assert run.plan.release.former.scale == (old[0]["l2_sensitivity"], old[0]["noise_multiplier"])
    code, out, err = run_cli("resume", run.name, "--home", run.home, "--no-prefect")
    assert code == 0, out + err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["plan_sha256"] == canonical_hash(old[0])
    assert manifest["report"]["plan_sha256"] == canonical_hash(old[1])
    assert verify_hand_off(tmp_path / "out").faults == [] and charges(run.home).count("commit") == 2
    written = pq.read_schema(run.place("sanitize")).metadata[b"nacre.plan"]
    assert read_plan(written).release == run.plan.release  # what is written keeps where it comes from
    assert Plan.model_validate_json(run.plan.model_dump_json()) == run.plan


def test_a_draw_that_the_version_before_left_half_done_is_refused_in_one_sentence_and_kept(tmp_path):
    run, _ = begun(tmp_path)
    ingested, desk = ingest(run), desk_of(run)
    reserve(run)
    desk.ledger.begin_draw(desk.charge.key)
    path = run.sensitive / f"draw-{desk.charge.key}.safetensors"
    owner = {"charge": desk.charge.key, "plan": run.plan.release.hash}
    save_file({"look/0": torch.arange(3)}, path, metadata=owner)
    with pytest.raises(ArtifactError, match="resume the run with that version") as caught:
        sanitize(run, ingested)
    assert ". " not in str(caught.value).replace(path.name, "") and path.exists()
    assert Ledger(run.ledger).find(desk.charge.key).state == "drawing"
    with pytest.raises(ArtifactError, match="begun by another version"):
        DrawState(path.parent, desk.charge.key, run.plan.release.hash)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.parquet")), ids=lambda path: path.stem)
def test_every_golden_plan_of_format_1_is_a_line_with_all_of_its_rules(path):
    text = pq.read_schema(path).metadata[b"nacre.plan"]
    line, old = read_plan(text).release, json.loads(text)
    assert line.hash == canonical_hash(old) and line.budget.epsilon == old["budget"]["epsilon"]
    assert line.measurement.items() >= {k: v for k, v in old["measurement"].items() if v is not None}.items()
    assert (line.former.scale is not None) == (line.method in ("nacre", "privbayes"))
    assert read_plan(Plan(lines=(line,)).model_dump_json()).release == line


def test_a_line_that_was_planned_before_nacre_zoomed_has_no_zooms_keeps_its_hash_and_is_still_drawn(tmp_path):
    text = pq.read_schema(GOLDEN / "FORMAT-2" / "nacre.parquet").metadata[b"nacre.plan"]
    line, old = read_plan(text).release, Plan.model_validate_json(text).release
    assert "zooms" not in old.measurement and line.measurement["zooms"] == 0
    assert (line.hash, line.event) == (old.hash, old.event)
    again = read_plan(Plan(lines=(line,)).model_dump_json()).release
    assert again == line and again.hash == old.hash
    system, records = (
        create("nacre", line.measurement, {}),
        Codec(line.table).encode(make_table(50).select(list(line.table.columns))),
    )
    release, ledger = measured(system, tmp_path / "run", line, records)
    assert [event.mechanism for event in line.event.events] == ["fine one-way", "one- and two-way"]
    assert len(system.sums(release.value)) == 2 and old.hash in json.dumps(ledger.entries()[1].content)


def test_a_line_that_was_planned_before_nacre_measured_residuals_is_of_counts_and_is_still_drawn(tmp_path):
    system = create("nacre", {**QUICK["nacre"].measurement, "pooled_share": None}, {})
    planned = system.plan(make_schema(), PrivacyBudget(epsilon=1.0, delta=1e-5))
    measurement = {key: value for key, value in planned.measurement.items() if key != "pooled_share"}
    old = planned.model_copy(update={"measurement": measurement})
    line = read_plan(Plan(lines=(old,)).model_dump_json()).release
    assert line.measurement == planned.measurement and line.measurement["zooms"] and line.hash == old.hash
    release, _ = measured(create("nacre", line.measurement, {}), tmp_path / "run", line, make_records(50))
    assert type(system.sums(release.value)[-1].embedding) is Moments


def test_a_line_of_a_workload_that_was_planned_before_it_cut_columns_keeps_cells_and_hash_and_is_still_drawn(tmp_path):
    schema, budget = make_schema(workload=[{"columns": ["age", "ward"]}]), PrivacyBudget(epsilon=1.0, delta=1e-5)
    planned = create("nacre", {**QUICK["nacre"].measurement, "asked_cells": False}, {}).plan(schema, budget)
    assert planned.measurement.pop("asked_cells") is False
    line = read_plan(Plan(lines=(planned,)).model_dump_json()).release
    assert line.measurement["asked_cells"] is False and line.hash == planned.hash
    assert create("nacre", QUICK["nacre"].measurement, {}).plan(schema, budget).measurement["asked_cells"] is True
    assert "asked_cells" not in create("nacre", {}, {}).plan(make_schema(), budget).measurement
    release, _ = measured(create("nacre", line.measurement, {}), tmp_path / "run", line, make_records(50))
    assert release.value.line.hash == planned.hash


def test_a_warm_start_that_was_planned_before_nacre_zoomed_has_no_zooms():
    system = create("p3gm", {**QUICK["p3gm"].measurement, "warm_share": 0.3}, {})
    line = system.plan(make_schema(), PrivacyBudget(epsilon=1.0, delta=1e-5))
    warm = {key: value for key, value in line.measurement["warm"].items() if key not in NACRE_OF_2}
    old = line.model_copy(update={"measurement": {**line.measurement, "warm": warm}})
    found = read_plan(Plan(lines=(old,)).model_dump_json()).release
    assert found.measurement["warm"] == {**warm, **NACRE_OF_2} and found.hash == old.hash


def test_a_night_is_a_part_and_lines_are_about_the_same_data():
    schema = Schema.model_validate({**make_schema(partition="ward").model_dump(), "unit": "record"})
    night = schema.of_partition("north")
    assert (schema.part, night.part) == ("", "ward")
    line = read_plan(pq.read_schema(FOLDER / "nacre.parquet").metadata[b"nacre.plan"]).release
    other = line.model_copy(update={"name": "other", "contract": night})
    for lines in ((line, line), (line, other)):
        with pytest.raises(ValueError, match="names of their own and are about the same data"):
            Plan(lines=lines)
