"""The pipeline end to end, on a small table: what it leaves, what it charges, and what it needs."""

import json
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.codec.encode import Codec
from dpmodels.hand_off.manifest import CARD, CONTRACT, PAGES
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.registry import create
from dpmodels.methods.tables.pearl import Pearl
from dpmodels.releases.release import read_release
from flows.config import SynthesizeConfig
from flows.synthesize import carry_out, pipeline, start, synthesize
from tasks.engine.encoded import EncodedTable
from tasks.run.store import Run
from tests.kit.support import charges, digest, make_schema, run_cli, servers_of, synthesize_words, write_clinic

pytestmark = pytest.mark.processes


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    write_clinic(tmp_path)
    return tmp_path


def config(folder: Path, **options: object) -> SynthesizeConfig:
    settings = {
        "data": folder / "clinic.parquet",
        "schema": folder / "clinic.yaml",
        "out": folder / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-5},
        "runtime": {"home": folder / "home", "prefect": False},
        **options,
    }
    return SynthesizeConfig.build(settings, folder / "config.yaml")


def test_the_hand_off_accounts_for_itself(clinic):
    code, out, _ = run_cli(*synthesize_words(clinic, rows=150))
    assert code == 0 and "synthetic table" in out
    hand_off = clinic / "out"
    files = {"synthetic", "manifest.json", "schema.yaml", "report.html", "report.json", "checks.html", CARD, *PAGES}
    files.add(CONTRACT)
    assert {path.name for path in hand_off.iterdir()} == files
    table = pq.read_table(hand_off / "synthetic")
    assert table.num_rows == 150 and table.schema.equals(Codec(make_schema()).output_schema)
    manifest = json.loads((hand_off / "manifest.json").read_text())
    assert manifest["asked"] == {"epsilon": 1.0, "delta": 1e-5} and 0.999 < float(manifest["spent"]["epsilon"]) <= 1
    assert [entry["kind"] for entry in manifest["ledger"]["entries"]] == ["reserve", "draw", "seal", "commit"]
    assert set(manifest["artifacts"]) == (files - {"manifest.json", "synthetic"}) | {"synthetic/part-00000.parquet"}
    assert all(digest(hand_off / name) == sha256 for name, sha256 in manifest["artifacts"].items())
    assert "age" in (hand_off / "report.html").read_text()


def test_the_default_method_goes_from_table_to_hand_off(tmp_path):
    write_clinic(tmp_path)
    settings = {"model": {"training": {"components": 8, "steps": 5}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 0, err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["method"] == "nacre" and 0.999 < float(manifest["spent"]["epsilon"]) <= 1
    assert charges(tmp_path / "home") == ["reserve", "draw", "seal", "commit"]
    assert pq.read_table(tmp_path / "out" / "synthetic").schema.equals(Codec(make_schema()).output_schema)


def test_the_default_number_of_rows_is_the_released_one(clinic):
    run = synthesize(config(clinic))
    rows = pq.read_table(run.settings.out / "synthetic").num_rows
    release = read_release(run.released / "release.parquet").value
    _, counts = Pearl().of(release.line).unpack(release.vector)
    assert rows == max(1, round(counts.sum()))


def test_one_run_is_one_charge_and_the_next_is_refused_before_any_row_is_read(clinic):
    assert run_cli(*synthesize_words(clinic))[0] == 0
    assert charges(clinic / "home") == ["reserve", "draw", "seal", "commit"]
    content = bytearray((clinic / "clinic.parquet").read_bytes())
    content[4:1000] = bytes(996)  # the rows are unreadable, and names and types are not: the refusal comes first
    (clinic / "clinic.parquet").write_bytes(content)
    assert "damaged" in run_cli(*synthesize_words(clinic, out=clinic / "second", home=clinic / "new"))[2]
    code, _, err = run_cli(*synthesize_words(clinic, out=clinic / "second"))
    assert code == 1 and "requested epsilon=1" in err and "remaining epsilon=0" in err
    assert charges(clinic / "home") == ["reserve", "draw", "seal", "commit"]
    assert not (clinic / "second").exists()


def test_a_named_account_must_be_open_and_pays_until_its_cap(clinic):
    code, _, err = run_cli(*synthesize_words(clinic, account="study"))
    assert code == 1 and "account study is not open" in err
    home = clinic / "home"
    opened = ("--schema", clinic / "clinic.yaml", "--epsilon", 1.5, "--delta", 1e-5, "--home", home)
    assert run_cli("ledger", "open", "study", *opened)[0] == 0
    for number, expected in enumerate((0, 0, 1)):  # 1 and 1 compose to 1.46, a third does not fit
        words = synthesize_words(clinic, account="study", out=clinic / f"out-{number}", again="for a test")
        assert run_cli(*words)[0] == expected
    assert charges(home).count("commit") == 2
    code, out, _ = run_cli("ledger", "show", "study", "--home", home)
    assert code == 0 and out.count("commit") == 2
    assert run_cli("ledger", "verify", "--home", home)[0] == 0


def test_verify_names_a_release_that_was_changed(clinic):
    run = synthesize(config(clinic))
    (run.released / "release.parquet").write_bytes(b"other")
    code, _, err = run_cli("ledger", "verify", "--home", clinic / "home")
    assert code == 1 and "release.parquet was changed" in err


def test_plan_reads_no_row_and_writes_nothing(clinic):
    (clinic / "clinic.parquet").write_bytes(b"no table at all")
    words = ["plan", "--details", *[w for w in synthesize_words(clinic)[1:] if w != "--no-prefect"]]
    code, out, err = run_cli(*words)
    assert "noise_multiplier=3.7306" in out and "opens with this run, cap epsilon=1 at delta=1e-5" in out
    assert code == 1 and "a run would refuse the data" in err  # by what the file says of its columns
    assert not (clinic / "home").exists()


def test_resuming_a_finished_run_changes_nothing(clinic):
    run = synthesize(config(clinic))
    before = digest(run.settings.out), charges(run.home)
    assert run_cli("resume", run.name, "--home", run.home, "--no-prefect")[0] == 0
    assert (digest(run.settings.out), charges(run.home)) == before


def test_the_seed_repeats_training_and_sampling_but_never_the_noise(clinic):
    home = clinic / "home"
    opened = ("--schema", clinic / "clinic.yaml", "--epsilon", 9, "--delta", 1e-5, "--home", home)
    assert run_cli("ledger", "open", "clinic", *opened)[0] == 0
    first = synthesize(config(clinic, out=clinic / "a"))
    second = synthesize(config(clinic, out=clinic / "b"))
    releases = [pq.read_table(run.released / "release.parquet")["value"].to_numpy() for run in (first, second)]
    assert (releases[0] != releases[1]).mean() > 0.99
    # a run that is given the first one's release ends in the same table
    copy = Run(home=home, name="copy")
    copy.create(first.settings.model_copy(update={"out": clinic / "c", "paid_by": first.name}), first.plan)
    shutil.copy(first.place("sanitize"), copy.place("sanitize"))
    copy.finish("sanitize")
    pipeline(copy, lambda stage, *handles: stage(*handles))
    assert digest(clinic / "c" / "synthetic") == digest(clinic / "a" / "synthetic")


def test_the_zones_are_closed_to_others(clinic):
    run = synthesize(config(clinic))
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in (run.home, run.sensitive, run.sensitive.parent))


def test_the_internal_report_stays_inside_and_says_so(clinic):
    run = synthesize(config(clinic))
    internal = json.loads((run.sensitive / "internal-report.json").read_text())
    assert internal["banner"].startswith("SENSITIVE") and "a release that nobody charged" in internal["banner"]
    assert {one["status"] for one in internal["metrics"].values()} == {"done"}
    assert (run.sensitive / "internal-report.html").read_text().count("SENSITIVE") >= 2
    assert not list(run.released.rglob("internal*")) and not list(run.settings.out.rglob("internal*"))


def test_an_exact_comparison_is_left_out_on_request(clinic):
    code, out, err = run_cli(*synthesize_words(clinic), "--no-internal-report")
    assert code == 0, err
    assert "internal" not in out and not list((clinic / "home").rglob("internal*"))


@pytest.mark.nightly  # tests/tasks/test_stage.py and test_server.py look at stages and at what a server keeps
def test_under_prefect_the_run_is_one_flow_run_and_a_planted_string_reaches_no_one(clinic, capfd, caplog):
    planted = "zQ7-unmistakable-Xw9"
    table = pq.read_table(clinic / "clinic.parquet")
    wards = pa.array([planted if i == 3 else ward for i, ward in enumerate(table["ward"].to_pylist())])
    pq.write_table(table.set_column(2, "ward", wards), clinic / "clinic.parquet")
    refused = start(config(clinic))  # the schema does not list the planted value, so ingest fails
    with pytest.raises(Exception, match="column ward"):
        carry_out(refused, prefect=True)
    schema = make_schema()
    columns = schema.model_dump()["columns"]
    columns["ward"] |= {"outside": "other", "other": "west"}
    (clinic / "clinic.yaml").write_text(make_schema(columns=columns).to_yaml())
    run = carry_out(start(config(clinic)), prefect=True)
    with sqlite3.connect(clinic / "home" / "prefect" / "prefect.db") as database:
        (flows,) = database.execute("select count(*) from flow_run").fetchone()
        tasks = [name for (name,) in database.execute("select name from task_run")]
        states = dict(database.execute("select state_type, count(*) from flow_run group by state_type"))
    assert flows == 2 and states == {"FAILED": 1, "COMPLETED": 1}
    assert len(tasks) == 1 + 7
    assert not servers_of(clinic / "home")
    told = "".join(capfd.readouterr()) + caplog.text
    public = [path for path in clinic.rglob("*") if path.is_file() and "sensitive" not in path.parts]
    public.remove(clinic / "clinic.parquet")
    assert run.released / "release.parquet" in public and clinic / "home" / "prefect" / "prefect.db" in public
    assert planted not in told
    assert not [path for path in public if planted.encode() in path.read_bytes()]


def test_an_account_is_found_by_what_it_is_about(clinic):
    home = clinic / "home"
    opened = ("--schema", clinic / "clinic.yaml", "--epsilon", 5, "--delta", 1e-5, "--home", home)
    assert run_cli("ledger", "open", "the-clinic", *opened)[0] == 0
    assert run_cli(*synthesize_words(clinic))[0] == 0
    assert Ledger(home / "ledger.sqlite").balance("the-clinic").charges == 1


@pytest.mark.parametrize("target", [None, "age", "smoker"])
def test_other_targets_and_none(tmp_path, target):
    write_clinic(tmp_path, target=target)
    assert run_cli(*synthesize_words(tmp_path))[0] == 0
    internal = next((tmp_path / "home").rglob("internal-report.json"))
    utility = json.loads(internal.read_text())["metrics"]["utility of the target"]
    assert utility.get("result", {}).get("metric") == {None: None, "age": "r2", "smoker": "auroc"}[target]
    assert target or utility["status"] == "skipped"


def test_a_user_level_unit_keeps_its_rows_and_multiplies_the_noise(tmp_path):
    write_clinic(tmp_path, unit={"user": "patient", "max_rows": 2})
    table = pq.read_table(tmp_path / "clinic.parquet")
    table = table.set_column(0, "patient", pa.array([i // 5 for i in range(len(table))]))
    pq.write_table(table, tmp_path / "clinic.parquet")
    run = synthesize(config(tmp_path))
    assert sum(map(len, EncodedTable(run.sensitive / "encoded", run.plan.release.table))) == 2 * 40
    lines = [one.plan.release for one in (run, start(config(tmp_path / "..", **_record_unit(tmp_path))))]
    users, records = (next(create(line.method, {}, {}).steps(line)).l2_sensitivity for line in lines)
    assert users == 2 * records


def _record_unit(folder: Path) -> dict[str, object]:
    other = folder / "record"
    data, schema, _ = write_clinic(other)
    shutil.copy(other / "config.yaml", folder.parent / "config.yaml")
    return {"data": data, "schema": schema, "out": other / "out", "runtime": {"home": other / "home"}}
