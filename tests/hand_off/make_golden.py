"""Make the golden hand-offs, one of every shape that a manifest has; what is there already is never made again.

python -m tests.hand_off.make_golden
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.audit.made import shop
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.derive import derive
from dpmodels.ledger.ledger import Ledger
from flows import federate
from flows.config import FederateConfig, SynthesizeConfig
from flows.synthesize import carry_out, pipeline, start
from tasks.run.accounts import charges_of, sign_run
from tasks.run.receive import sample_again
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tasks.stages.sanitize import sanitize
from tests.kit.letters import embed_words, write_letters
from tests.kit.support import run_cli, write_clinic, write_key
from tests.kit.wards import NAMES, write_wards

GOLDEN = Path(__file__).parent / "golden"
ROWS = 30


def started(folder: Path, said: Mapping[str, str] = MappingProxyType({}), **privacy: object) -> Run:
    """Start a run on a small table, of which its operator says something or nothing."""
    data, schema, file = write_clinic(folder)
    privacy = {"target_epsilon": 1.0, "delta": 1e-5, **privacy}
    options = {"data": data, "schema": schema, "out": folder / "out", "rows": ROWS, "privacy": privacy}
    options["statement"] = dict(said)
    runtime = {"home": folder / "home", "prefect": False}
    return start(SynthesizeConfig.build({**options, "runtime": runtime}, file))


def finished(folder: Path) -> Run:
    """Make a run that has nothing special."""
    return carry_out(started(folder), prefect=False)


def lost_scores(folder: Path) -> Path:
    """Lose the scores of the report once their draw began."""
    run = started(folder, report_epsilon=0.5)
    sanitize(run, ingest(run))
    Ledger(run.ledger).begin_draw(charges_of(run)[1].key)
    shutil.rmtree(run.sensitive)
    return carry_out(run, prefect=False).settings.out


def approved(folder: Path, said: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Have an officer sign."""
    write_clinic(folder)
    key, public = write_key(folder / "dana.pem")
    home = ("--home", folder / "home")
    terms = ("--schema", folder / "clinic.yaml", "--epsilon", 2, "--delta", 1e-5)
    named = ("--name", "Dana", "--key", public, "--reason", "the board asked for it")
    assert run_cli("ledger", "open", "clinic", *terms, *home)[0] == 0
    assert run_cli("ledger", "officer", "clinic", *named, *home)[0] == 0
    run = started(folder, said)
    sign_run(run, key)
    return carry_out(run, prefect=False).settings.out


def declared(folder: Path) -> Path:
    """Say everything that an operator may say of a hand-off."""
    said = {"purpose": "To plan beds.", "recipient": "The board", "license": "CC BY 4.0", "retention": "A month."}
    said["contact"], said["again"] = "privacy@clinic.example", "The first hand-off was lost."
    said["controller"], said["why"] = "Clinic of Ghent", "The board chose them."
    said["subjects"], said["legal_basis"] = "Patients of the clinic, 2019 to 2024", "GDPR, Art. 9(2)(j)"
    said["recipient_retention"] = "A year."
    said["special_categories"], said["release_retention"] = "sick, dose: health", "As long as the study."
    said["signer"] = "A. Peeters, data steward"
    said["compatibility"], said["minors"] = "Research, Art. 89(1)", "None: patients are adults"
    said["information"], said["processor"] = "A leaflet at admission", "None: the clinic runs it itself"
    return approved(folder, said)


def embedded(folder: Path) -> Path:
    """Embed documents, each under its share of one charge, which an officer signs as a family's."""
    write_letters(folder, 12)
    key, public = write_key(folder / "dana.pem")
    home = ("--home", folder / "home")
    contract = folder / "letters.yaml"
    contract.write_text("name: letters\nprotects: sentence\ntext: text\nencoder: {name: hashed, dim: 8}\n")
    terms = ("--schema", contract, "--epsilon", 10, "--delta", 0)
    named = ("--name", "Dana", "--key", public, "--reason", "the board asked for it")
    assert run_cli("ledger", "open", "letters", *terms, *home)[0] == 0
    assert run_cli("ledger", "officer", "letters", *named, *home)[0] == 0
    assert run_cli(*embed_words(folder, contract=contract, encoder=None, dim=None))[0] == 5
    (settings,) = (folder / "home" / "control").glob("*/settings.json")
    run = Run.find(folder / "home", settings.parent.name)
    sign_run(run, key)
    return carry_out(run, prefect=False).settings.out


def federation(folder: Path, **changes: object) -> Path:
    """Make a classifier of what three wards release, one of which sends nothing usable and is dropped."""
    config = write_wards(folder, **changes)
    pq.write_table(pa.table({"nothing": [1]}), folder / NAMES[-1] / "records.parquet")
    code, _, err = run_cli("federate", config)
    assert code == 0, err
    return folder / "out"


def approved_clients(folder: Path) -> Path:
    """Have an officer sign for two clients, each of which is charged by itself; another took part before."""
    run = start(FederateConfig.build({}, write_wards(folder)))
    federate.take_part(run.parties[0])
    key, public = write_key(folder / "dana.pem")
    named = ("--name", "Dana", "--key", public, "--reason", "the board asked for it", "--home", folder / "home")
    assert run_cli("ledger", "officer", "wards", *named)[0] == 0
    for party in run.parties[1:]:
        sign_run(party, key)
    return carry_out(run, prefect=False).settings.out


def sampled_again(folder: Path) -> Path:
    """Sample another run's generator again."""
    again = sample_again(finished(folder), "again", folder / "more", ROWS, 7)
    pipeline(again, lambda stage, *handles: stage(*handles))
    return again.settings.out


def fitted_again(folder: Path) -> Path:
    """Fit a run's release again where the ledger is at hand."""
    return fitted(folder, finished(folder), "home")


def fitted_elsewhere(folder: Path) -> Path:
    """Fit a run's release again where nothing but its file is at hand."""
    return fitted(folder, finished(folder), "elsewhere")


def fitted(folder: Path, run: Run, home: str) -> Path:
    """Fit the release of a run again from the command line."""
    words = ("fit", run.released / "release.parquet", "--out", folder / "more", "--home", folder / home)
    code, out, err = run_cli(*words, "--rows", ROWS, "--seed", 7, "--no-prefect", "--config", fitter(folder))
    assert code == 0, out + err
    return folder / "more"


def fitter(folder: Path) -> Path:
    """Write settings with which PEARL is fitted in a moment."""
    training = {"steps": 5, "batch_size": 32, "frequencies_per_step": 16, "network": {"hidden_dim": 16}}
    (folder / "fitter.yaml").write_text(json.dumps({"model": {"training": training}}))
    return folder / "fitter.yaml"


def of_users(folder: Path) -> Path:
    """Make two tables, of customers and of their orders."""
    customers, orders = shop.make_tables(60)
    paths = [folder / "customers.parquet", folder / "orders.parquet"]
    for table, path in zip((customers, orders), paths, strict=True):
        pq.write_table(table, path)
    (folder / "shop.yaml").write_text(shop.make_schema().to_yaml())
    return synthesized(folder, paths[1], "--parents", paths[0], "--schema", folder / "shop.yaml")


def targeted(folder: Path) -> Path:
    """Make a table of which the rates of a target are stated."""
    data, schema, _ = write_clinic(folder, rows=3000)
    return synthesized(folder, data, "--schema", schema)


def derived(folder: Path) -> Path:
    """Make a table with columns that follow from one, and from two."""
    data, schema, _ = write_clinic(folder, rows=3000)
    content = json.loads(load_schema(schema).model_dump_json(exclude_defaults=True))
    formulas = {"decade": "age // 10", "weight": "age * dose"}
    content["columns"] |= {name: {"type": "derived", "formula": formula} for name, formula in formulas.items()}
    content["columns"]["letter"] = {"type": "derived", "of": "sick", "values": {"no": "A", "yes": "B"}}
    content["workload"] = [{"columns": ["smoker", "age"]}]
    schema.write_text(json.dumps(content))
    columns, table = load_schema(schema), pq.read_table(data)
    for name, column in columns.derived.items():
        table = table.append_column(name, derive(column, columns.columns, table))
    pq.write_table(table, data)
    return synthesized(folder, data, "--schema", schema)


def synthesized(folder: Path, *words: object) -> Path:
    """Run nacre's default with a quick fit, from the command line."""
    quick = {"measurement": {"fine_cells": 16}, "training": {"components": 16, "directions": 2, "steps": 5}}
    (folder / "config.yaml").write_text(json.dumps({"model": quick}))
    words = ("synthesize", *words, "--rows", ROWS, "--config", folder / "config.yaml", "--epsilon", 2, "--delta", 1e-5)
    code, out, err = run_cli(*words, "--no-prefect", "--out", folder / "out", "--home", folder / "home", "--open")
    assert code == 0, out + err
    return folder / "out"


def discovered(folder: Path) -> Path:
    """Make a table by a schema that a discovery completed, with a charged report."""
    data, schema, file = write_clinic(folder, rows=3000)
    home = ("--home", folder / "home")
    terms = ("--schema", schema, "--epsilon", 5, "--delta", 1e-4)
    assert run_cli("ledger", "open", "clinic", *terms, *home)[0] == 0
    content = json.loads(load_schema(schema).model_dump_json(exclude_defaults=True))
    content["columns"]["ward"]["values"] = "discover"
    (folder / "draft.yaml").write_text(json.dumps(content))
    words = ("schema", "discover", data, "--schema", folder / "draft.yaml", "--epsilon", 1, "--delta", 1e-6, *home)
    code, out, err = run_cli(*words)
    assert code == 0, err
    schema.write_text(out)
    privacy = {"target_epsilon": 1.0, "delta": 1e-5, "report_epsilon": 0.5}
    options = {"data": data, "schema": schema, "out": folder / "out", "rows": ROWS, "privacy": privacy}
    runtime = {"home": folder / "home", "prefect": False}
    run = start(SynthesizeConfig.build({**options, "runtime": runtime}, file))
    return carry_out(run, prefect=False).settings.out


SHAPES: dict[str, dict[str, Callable[[Path], Path]]] = {
    "FORMAT-1": {
        "approved": approved,
        "lost-scores": lost_scores,
        "sampled-again": sampled_again,
    },
    "FORMAT-2": {"fitted-again": fitted_again, "fitted-elsewhere": fitted_elsewhere},
    "FORMAT-3": {"embedded": embedded},
    "FORMAT-4": {"federation": federation},
    "FORMAT-5": {
        "card": approved,
        "card-elsewhere": fitted_elsewhere,
        "card-embedded": embedded,
        "card-federation": federation,
    },
    "FORMAT-6": {"declared": declared, "sheet-federation": federation},
    "FORMAT-7": {"laid-out": declared, "laid-out-embedded": embedded, "laid-out-federation": federation},
    "FORMAT-8": {"discovered": discovered},
    "FORMAT-10": {"approved-clients": approved_clients},
    "FORMAT-11": {"contract": declared, "contract-users": of_users},
    "FORMAT-16": {"declared": declared},
    "FORMAT-15": {"declared": declared},
    "FORMAT-14": {"declared": declared},
    "FORMAT-13": {"declared": declared},
    "FORMAT-12": {"signed-declaration": approved, "signed-clients": approved_clients},
    "LAYOUT-2": {"laid-out": declared},
    "LAYOUT-3": {"laid-out": declared},
    "LAYOUT-4": {"laid-out": declared},
    "LAYOUT-5": {"laid-out": declared},
    "LAYOUT-6": {"laid-out": declared},
    "LAYOUT-7": {"laid-out": declared},
    "LAYOUT-8": {"laid-out": declared, "users": of_users, "embedded": embedded, "federation": federation},
    "LAYOUT-9": {"laid-out": declared, "users": of_users, "embedded": embedded, "federation": federation},
    "LAYOUT-10": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
    },
    "LAYOUT-11": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
    },
    "LAYOUT-12": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
    },
    "LAYOUT-13": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
    },
    "LAYOUT-14": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
    },
    "LAYOUT-15": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
    },
    "LAYOUT-16": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
    },
    "LAYOUT-17": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-18": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-19": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-20": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-21": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-22": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-23": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-24": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-25": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
    "LAYOUT-26": {
        "laid-out": declared,
        "users": of_users,
        "embedded": embedded,
        "federation": federation,
        "discovered": discovered,
        "targeted": targeted,
        "derived": derived,
    },
}
"""A manifest with a charged report is beside the golden releases, and FORMAT-9, without a price, is made no more.
What is made now is of the newest format."""


def main() -> None:
    """Make what is missing."""
    for number, shapes in SHAPES.items():
        for name, make in shapes.items():
            if not (place := GOLDEN / number / name).exists():
                with tempfile.TemporaryDirectory() as folder:
                    shutil.copytree(make(Path(folder)), place)


if __name__ == "__main__":
    main()
