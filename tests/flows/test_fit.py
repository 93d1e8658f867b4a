"""Any release is fitted again for nothing, by its file or its run, and the hand-off says who paid."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import nacre
from dpmodels.codec.encode import Codec
from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.quick import QUICK
from dpmodels.releases.release import read_release
from flows.synthesize import carry_out, pipeline
from tasks.run.fits.changes import UNKNOWN
from tasks.run.receive import sample_again
from tasks.run.refit import forget_fit
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tasks.stages.sanitize import sanitize
from tests.hand_off.make_golden import finished, fitter, started
from tests.kit.every_method import OF_TABLES
from tests.kit.support import charges, digest, run_cli, write_key
from tests.releases.make_golden import GOLDEN

pytestmark = pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")  # chance decides whether so few rows stand out

LIFE = ["reserve", "draw", "seal", "commit"]

OF_THE_FIRST = [method for method in OF_TABLES if (GOLDEN / "FORMAT-1" / f"{method}.parquet").exists()]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run, whose release the tests fit again in copies of its home."""
    return finished(tmp_path_factory.mktemp("done"))


@pytest.fixture
def run(done: Run, tmp_path: Path) -> Run:
    """A copy of the run, in a home whose sensitive zone is gone."""
    shutil.copytree(done.home, tmp_path / "home")
    shutil.rmtree(tmp_path / "home" / "sensitive")
    assert run_cli("ledger", "moved", "--reason", "a copy for a test", "--home", tmp_path / "home")[0] == 0
    return Run.find(tmp_path / "home", done.name)


def fit(folder: Path, release: Path, home: str = "home", *words: object) -> tuple[int, str, str]:
    place = ("--out", folder / "fitted", "--home", folder / home)
    return run_cli("fit", release, *place, "--config", fitter(folder), "--no-prefect", *words)


def entries(run: Run) -> int:
    return len(Ledger(run.ledger).entries())


def cells(shown: str, name: str) -> list[str]:
    """Return what a printed table of changes says in the row of this name."""
    (row,) = [line for line in shown.splitlines() if line.startswith(name)]
    return re.split(r"\s{2,}", row)[1:]


def refused(done: tuple[int, str, str]) -> str:
    """Return the one sentence with which a command refused."""
    code, _, err = done
    assert code == 1 and "Traceback" not in err and len(err.strip().splitlines()) == 1
    return err


def test_a_release_is_fitted_again_for_nothing_and_the_manifest_says_who_paid(run: Run, tmp_path: Path) -> None:
    before = entries(run)
    code, out, err = fit(tmp_path, run.place("sanitize"), "home", "--rows", 50, "--seed", 3, "--format", "csv")
    assert code == 0, err
    assert len((tmp_path / "fitted" / "synthetic.csv").read_text().splitlines()) == 51
    assert entries(run) == before and pq.read_table(tmp_path / "fitted" / "synthetic").num_rows == 50
    manifest, first = read_manifest(tmp_path / "fitted"), read_manifest(run.settings.out)
    assert (manifest.run, manifest.ledger, manifest.spent) == (run.name, first.ledger, first.spent)
    assert manifest.fitted_again_as not in (None, run.name) and manifest.format == 11 and not manifest.left_out
    assert verify_hand_off(tmp_path / "fitted").faults == [] and run_cli("validate", tmp_path / "fitted")[0] == 0
    assert run_cli("ledger", "verify", "--home", run.home)[0] == 0
    figures = json.loads((tmp_path / "fitted" / "report.json").read_text())
    assert cells(out, "synthetic rows") == ["30", "50"] and cells(out, "fitter: seed") == ["0", "3"]
    assert cells(out, "fitter: steps") == ["6", "5"] and "fitter: batch_size" not in out
    assert "nothing was charged: the release is paid for" in out.splitlines()
    assert cells(out, "nacre version") == [manifest.nacre_version] * 2
    distances = [one["distance_to_release"] for one in figures["columns"] if "distance_to_release" in one]
    assert not distances or cells(out, "distance to the release, farthest")[1] == f"{max(distances):.4f}"
    assert cells(out, "left of")[1] == f"{figures['fit'][0]['left']:.3f}"


def test_the_same_settings_make_the_same_table(run: Run, tmp_path: Path) -> None:
    training = run.settings.training
    made = nacre.fit(run.place("sanitize"), rows=30, training=training, home=run.home, out=tmp_path / "fitted")
    assert digest(made.folder / "synthetic") == digest(run.settings.out / "synthetic")
    assert cells(str(made.changes), "fitter: all settings") == ["as now", "as before"]
    rows = [row for row in made.changes.rows if not row[0].startswith("fitter")]
    assert rows and all(before == now for _, before, now in rows)
    assert made.run != run.name and made.spent == nacre.Result(run.settings.out).spent


@pytest.mark.parametrize("method", OF_THE_FIRST)
@pytest.mark.nightly_if("p3gm-ae", "dp-vae", "dp-gm", "dp-merf", "nacre-images")  # beside a method of each sort
def test_a_release_of_the_first_format_is_fitted_from_its_file_alone(tmp_path: Path, method: str) -> None:
    """No run, no ledger and no data: what is not known is left out, and said to be."""
    release = GOLDEN / "FORMAT-1" / f"{method}.parquet"
    (tmp_path / "fitter.yaml").write_text(json.dumps({"model": {"training": QUICK[method].training}}))
    words = ("--out", tmp_path / "out", "--home", tmp_path / "home", "--rows", 40, "--no-prefect")
    code, out, err = run_cli("fit", release, *words, "--config", tmp_path / "fitter.yaml")
    assert code == 0, err
    read, manifest = read_release(release).value, read_manifest(tmp_path / "out")
    assert (manifest.ledger.charge, manifest.plan_sha256) == (read.entry, read.line.hash)
    assert manifest.release_sha256 == digest(release) and manifest.left_out and manifest.method == method
    assert (manifest.run, manifest.ledger.account, manifest.ledger.entries) == (None, None, None)
    assert "not at hand" in out and "paid elsewhere" in out
    table = pq.read_table(tmp_path / "out" / "synthetic")
    assert table.num_rows == 40 and table.schema.equals(Codec(read.line.table).output_schema)
    code, out, err = run_cli("verify", tmp_path / "out")
    assert code == 3 and "does not say" in " ".join(out.split()), err
    assert not (tmp_path / "home" / "ledger.sqlite").exists() and run_cli("validate", tmp_path / "out")[0] == 0


def test_a_fit_declares_what_the_paying_run_did_unless_it_says_otherwise(tmp_path: Path) -> None:
    """The ledger's chain says it; a manifest that lies beside the release, and that others may write, does not."""
    said = {"purpose": "To plan beds.", "legal_basis": "GDPR, Art. 9(2)(j)", "license": "CC BY 4.0", "again": "A test."}
    run = carry_out(started(tmp_path, said), prefect=False)
    manifest = run.settings.out / MANIFEST
    manifest.write_text(manifest.read_text().replace("plan beds", "sell"))
    code, out, err = fit(tmp_path, run.place("sanitize"), "home", "--purpose", "Teaching", "--license", "")
    assert code == 0, err
    declared = {"purpose": "Teaching", "legal_basis": said["legal_basis"]}
    assert read_manifest(tmp_path / "fitted").operator_says == declared
    words = f"legal_basis: as run {run.name} declared in the ledger; give any of them anew to say otherwise"
    assert f"declared: {words}" in out.splitlines()
    training = run.settings.training
    first = nacre.Result(run.settings.out, home=run.home)
    made = nacre.fit(first, training=training, out=tmp_path / "whole", rows=5)
    assert made.manifest.operator_says == {key: text for key, text in said.items() if key != "again"}
    assert "declared purpose, legal_basis, license: as run" in " ".join(repr(made).split())
    elsewhere = nacre.fit(run.place("sanitize"), training=training, home=tmp_path / "b", out=tmp_path / "c", rows=5)
    assert elsewhere.manifest.operator_says == {} and "declared" not in repr(elsewhere)


def test_a_release_from_elsewhere_does_not_disturb_a_home(run: Run, tmp_path: Path) -> None:
    before = entries(run)
    key, public = write_key(tmp_path / "key.pem")
    golden = GOLDEN / "FORMAT-1" / "pearl.parquet"
    code, _, err = fit(tmp_path, golden, "home", "--signing-key", key)
    assert code == 0, err
    assert nacre.verify(tmp_path / "fitted", public).verdict == "VERIFIED"
    assert entries(run) == before and run_cli("ledger", "verify", "--home", run.home)[0] == 0
    name = read_manifest(tmp_path / "fitted").made_by
    assert run_cli("resume", name, "--home", run.home, "--no-prefect")[0] == 0  # finished, and left as it is
    again = sample_again(Run.find(run.home, name), "again", tmp_path / "more", 20, 1)
    pipeline(again, lambda stage, *handles: stage(*handles))
    manifest = read_manifest(tmp_path / "more")
    assert (manifest.fitted_again_as, manifest.run) == ("again", None) and manifest.left_out
    assert verify_hand_off(tmp_path / "more").faults == []


def test_a_run_is_fitted_again_in_its_own_place(done: Run, run: Run, tmp_path: Path) -> None:
    before, old, kept = entries(run), digest(run.place("train")), digest(run.settings.out)
    run.settle(run.settings.model_copy(update={"seed": 5}))
    assert "already holds files" in refused(run_cli("resume", run.name, "--home", run.home, "--refit"))
    words = ("--home", run.home, "--no-prefect", "--refit", "--out", tmp_path / "anew")
    code, out, err = run_cli("resume", run.name, *words)
    assert code == 0, err
    assert cells(out, "fitter: seed") == ["0", "5"] and cells(out, "synthetic rows") == ["30", "30"]
    assert digest(run.place("train")) != old and entries(run) == before
    assert read_manifest(tmp_path / "anew").run == run.name and verify_hand_off(tmp_path / "anew").faults == []
    shutil.rmtree(tmp_path / "anew")
    made = nacre.resume(run.name, home=run.home, refit=True)
    assert made.folder == tmp_path / "anew" and cells(str(made.changes), "fitter: all") == ["as now", "as before"]
    assert digest(done.settings.out) == kept  # what was handed over stays as it is


def test_a_record_of_an_earlier_version_says_less_and_is_no_obstacle(run: Run, tmp_path: Path) -> None:
    (run.released / "stages" / "train.json").write_text(json.dumps({"sha256": digest(run.place("train"))}))
    code, out, err = run_cli("resume", run.name, "--home", run.home, "--no-prefect", "--refit", "--out", tmp_path / "b")
    assert code == 0, err
    assert cells(out, "nacre version")[0] == UNKNOWN and cells(out, "fitter: steps") == [UNKNOWN, "6"]
    record = {"sha256": digest(run.place("train")), "nacre_version": "\x1b[31m9", "settings": {"\x1b": 1}, "seed": 0}
    (run.released / "stages" / "train.json").write_text(json.dumps(record))
    made = nacre.resume(run.name, home=run.home, refit=True, out=tmp_path / "c")
    assert "\x1b" not in str(made.changes) and cells(str(made.changes), "nacre version")[0] == "?[31m9"


def test_a_refit_that_is_cut_off_goes_on(run: Run, tmp_path: Path) -> None:
    forget_fit(run, tmp_path / "anew")
    assert carry_out(Run.find(run.home, run.name), prefect=False).settings.out == tmp_path / "anew"
    assert verify_hand_off(tmp_path / "anew").faults == []


def test_scores_that_were_charged_for_other_rows_are_not_carried_over(tmp_path: Path) -> None:
    run = started(tmp_path, report_epsilon=0.5)
    words = ("resume", run.name, "--home", run.home, "--no-prefect", "--refit", "--out", tmp_path / "b")
    assert "has no sealed release yet" in refused(run_cli(*words))
    sanitize(run, ingest(run))
    assert run_cli(*words)[0] == 0  # nothing was scored before, so the scores are of these rows
    assert charges(run.home).count("commit") == 2
    assert "nacre fit" in refused(run_cli(*words[:-1], tmp_path / "c"))
    assert fit(tmp_path, run.place("sanitize"))[0] == 0
    manifest = read_manifest(tmp_path / "fitted")
    assert manifest.report is None and manifest.run == run.name and charges(run.home).count("commit") == 2
    assert verify_hand_off(tmp_path / "fitted").faults == []


def remade(source: Path, target: Path, **footer: str) -> Path:
    """Write a release again with other words in its footer."""
    table = pq.read_table(source)
    metadata = {**table.schema.metadata, **{f"nacre.{key}".encode(): text.encode() for key, text in footer.items()}}
    pq.write_table(table.replace_schema_metadata(metadata), target)
    return target


def replanned(source: Path, target: Path, **changes: object) -> Path:
    plan = json.loads(pq.read_schema(source).metadata[b"nacre.plan"])
    return remade(source, target, plan=json.dumps(plan | changes))


def test_what_cannot_be_fitted_is_refused_in_one_sentence(tmp_path: Path) -> None:
    golden, other = GOLDEN / "FORMAT-1" / "pearl.parquet", tmp_path / "r.parquet"
    assert "is missing" in refused(fit(tmp_path, tmp_path / "nothing.parquet"))
    assert "cannot be fitted" in refused(fit(tmp_path, tmp_path / "no" / "folder.parquet"))
    other.write_text("age,bill\n1,2\n")
    assert "is no release; name the release.parquet of a run" in refused(fit(tmp_path, other))
    other.write_bytes(golden.read_bytes()[:-100])
    assert "missing or damaged" in refused(fit(tmp_path, other))
    assert "use a newer nacre" in refused(fit(tmp_path, remade(golden, other, format="7")))
    assert "values" in refused(fit(tmp_path, remade(golden, other, values_sha256="0" * 64)))
    assert "does not know" in refused(fit(tmp_path, replanned(golden, other, method="next-year's")))
    unknown = replanned(golden, other, measurement={"frequencies": {"count": 16}, "angles": 3})
    assert "settings that pearl does not take" in refused(fit(tmp_path, unknown))
    assert "does not hold" in refused(fit(tmp_path, replanned(golden, other, fingerprint="0" * 64)))
    assert "names no charge" in refused(fit(tmp_path, remade(golden, other, ledger_entry="mine")))
    assert "scores of a report" in refused(fit(tmp_path, GOLDEN / "FORMAT-1" / "report.parquet"))
    assert "batch_size" in refused(fit(tmp_path, GOLDEN / "FORMAT-1" / "moments.parquet"))  # it has no such setting
    words = ("fit", golden, "--out", tmp_path / "fitted", "--home", tmp_path / "home")
    assert "device" in refused(run_cli(*words, "--device", "abacus"))
    in_a_store = run_cli("fit", golden, "--out", "s3://bucket/fitted", "--format", "csv")
    assert "--format=csv must be left out: a hand-off in an object store" in refused(in_a_store)
    (tmp_path / "own.yaml").write_text("model: {method: pearl}")
    assert "there are training" in refused(run_cli(*words, "--config", tmp_path / "own.yaml"))
    for text, says in (("purpose: x", "under `statement`, as in `statement: {purpose"), ("modl: {}", "mean `model`?")):
        (tmp_path / "own.yaml").write_text(text)
        assert says in refused(run_cli(*words, "--config", tmp_path / "own.yaml"))
    assert "--out is missing" in refused(run_cli("fit", golden))
    assert not (tmp_path / "fitted").exists() and not list((tmp_path / "home").glob("*/*"))


def test_a_release_that_is_not_the_sealed_one_is_refused_where_the_ledger_is_at_hand(run: Run, tmp_path: Path) -> None:
    swapped = remade(run.place("sanitize"), tmp_path / "r.parquet", event="{}")
    assert "sealed and committed" in refused(fit(tmp_path, swapped))
    assert fit(tmp_path, swapped, "elsewhere")[0] == 0  # nobody there can tell, and the hand-off says so
    assert read_manifest(tmp_path / "fitted").left_out


def test_a_link_in_a_releases_place_is_not_followed(run: Run, tmp_path: Path) -> None:
    place = run.place("sanitize")
    shutil.move(place, tmp_path / "moved.parquet")
    place.symlink_to(tmp_path / "moved.parquet")
    assert "is a link" in refused(fit(tmp_path, place))


def test_the_hand_off_of_a_fit_holds_nothing_but_what_is_named(run: Run, tmp_path: Path) -> None:
    assert fit(tmp_path, run.place("sanitize"))[0] == 0
    found = {str(path.relative_to(tmp_path / "fitted")) for path in (tmp_path / "fitted").rglob("*") if path.is_file()}
    assert found == {*read_manifest(tmp_path / "fitted").artifacts, MANIFEST}
    assert charges(run.home) == LIFE
