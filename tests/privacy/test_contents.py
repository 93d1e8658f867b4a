"""The same data under another name is no second budget: it is refused, unless the operator says why, for good."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.audit.made import shop
from dpmodels.errors import AccountMissing, ContentCharged, NacreError
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from flows.config import FederateConfig, SynthesizeConfig
from flows.planning import MayOpen
from flows.synthesize import pipeline, start
from tasks.kinds.clients import CHARGED
from tasks.run.contents import _files, _key
from tasks.run.store import Run
from tasks.stages.federate import take_part
from tasks.stages.ingest import ingest
from tests.kit.errors import refused
from tests.kit.open_tables import cells, database, delta, iceberg, place_of, workbook
from tests.kit.support import make_schema, make_table, run_cli, write_clinic
from tests.kit.wards import NAMES, make_ward, write_wards


def asked(
    folder: Path,
    out: str,
    data: str = "clinic.parquet",
    schema: str = "clinic.yaml",
    may_open: MayOpen = MayOpen.YES,
    query: str = "",
    privacy: dict[str, float] | None = None,
    **said: str,
) -> Run:
    """Start a run that may open the account of its data set."""
    settings = {
        "data": data if query else folder / data, "query": query, "schema": folder / schema, "out": folder / out,
        "rows": 40, "statement": said,
        "privacy": privacy or {"target_epsilon": 0.5, "delta": 1e-5},
        "runtime": {"home": folder / "home", "device": "cpu", "prefect": False, "internal_report": False},
    }  # fmt: skip
    return start(SynthesizeConfig.build(settings, folder / "config.yaml"), may_open=may_open)


def go(run: Run) -> Run:
    pipeline(run, lambda stage, *handles: stage(*handles))
    return run


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """Release a table once, and write the same table's schema under another name."""
    write_clinic(tmp_path, 60)
    (tmp_path / "visits2.yaml").write_text(make_schema(name="visits2").to_yaml())
    go(asked(tmp_path, "first"))
    return tmp_path


def ledger_of(folder: Path) -> Ledger:
    return Ledger(folder / "home" / "ledger.sqlite")


def test_only_the_first_run_of_a_home_opens_an_account_by_itself(tmp_path: Path) -> None:
    write_clinic(tmp_path, 60)
    (tmp_path / "visits2.yaml").write_text(make_schema(name="visits2").to_yaml())
    settings = {"data": tmp_path / "clinic.parquet", "privacy": {"target_epsilon": 0.5, "delta": 1e-5}}
    settings |= {"runtime": {"home": tmp_path / "home", "device": "cpu", "prefect": False}}

    def config(out: str, schema: str) -> SynthesizeConfig:
        return SynthesizeConfig.build({**settings, "out": tmp_path / out, "schema": tmp_path / schema}, None)

    with refused(AccountMissing, "deployed", account="clinic"):  # as a deployed flow run does
        start(config("none", "clinic.yaml"), may_open=MayOpen.NO)
    assert start(config("first", "clinic.yaml")).settings.opens is not None
    Ledger(tmp_path / "home" / "ledger.sqlite").open_account(
        "clinic", dataset="clinic", budget_cap=make_cap(tmp_path), note="by hand"
    )
    with refused(AccountMissing, "--open", account="visits2"):
        start(config("second", "visits2.yaml"))
    assert start(config("second", "visits2.yaml"), may_open=MayOpen.YES).settings.opens is not None


def test_of_two_first_runs_that_wait_side_by_side_one_opens_an_account(tmp_path: Path) -> None:
    write_clinic(tmp_path, 60)
    (tmp_path / "visits2.yaml").write_text(make_schema(name="visits2").to_yaml())
    first = asked(tmp_path, "first", may_open=MayOpen.FIRST)
    second = asked(tmp_path, "second", schema="visits2.yaml", may_open=MayOpen.FIRST, again="It is another study.")
    go(first)
    with refused(AccountMissing, "nothing was charged", account="visits2"):
        go(second)
    ledger_of(tmp_path).open_account("visits2", dataset="visits2", budget_cap=make_cap(tmp_path))
    assert (go(second).settings.out / MANIFEST).exists()


def make_cap(folder: Path) -> object:
    from dpmodels.privacy import PrivacyBudget

    return PrivacyBudget(epsilon=3, delta=1e-5)


@pytest.mark.parametrize(
    "how", ["named", "copied", "reordered", "with columns in another order", "with another schema"]
)
def test_the_same_data_under_another_name_is_refused_before_the_charge(clinic: Path, how: str) -> None:
    data = "clinic.parquet"
    if how == "copied":
        data = "other.parquet"
        shutil.copy(clinic / "clinic.parquet", clinic / data)
    elif how == "reordered":
        data = "other.parquet"
        table = pq.read_table(clinic / "clinic.parquet")
        pq.write_table(table.take(list(reversed(range(len(table))))), clinic / data)
    elif how == "with columns in another order":
        data = "other.parquet"
        table = pq.read_table(clinic / "clinic.parquet")
        pq.write_table(table.select(table.column_names[::-1]), clinic / data)
        schema = yaml.safe_load((clinic / "visits2.yaml").read_text())
        schema["columns"] = dict(reversed(schema["columns"].items()))
        (clinic / "visits2.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    elif how == "with another schema":
        schema = yaml.safe_load((clinic / "visits2.yaml").read_text())
        name, column = next((name, one) for name, one in schema["columns"].items() if one["type"] == "integer")
        schema["columns"][name] = {**column, "max": column["max"] + 1}
        (clinic / "visits2.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
    run = asked(clinic, "second", data, "visits2.yaml")
    with refused(ContentCharged, dataset="visits2", other="clinic", account="clinic"):
        go(run)
    assert [account.name for account in ledger_of(clinic).accounts()] == ["clinic"]


@pytest.mark.parametrize("form", ["delta", "iceberg", "duckdb", "excel"])
def test_the_same_rows_in_an_open_table_are_no_second_budget(tmp_path: Path, form: str) -> None:
    table = pq.read_table(write_clinic(tmp_path, 60)[0])
    (tmp_path / "visits2.yaml").write_text(make_schema(name="visits2").to_yaml())
    ingest(asked(tmp_path, "first"))
    ledger_of(tmp_path).open_account("clinic", dataset="clinic", budget_cap=make_cap(tmp_path))
    write = {
        "delta": lambda: str(delta(tmp_path / "visits", table)),
        "iceberg": lambda: place_of(iceberg(tmp_path, table)),
        "duckdb": lambda: database(tmp_path / "clinic.duckdb", table),
        "excel": lambda: str(workbook(tmp_path / "c.xlsx", cells(table))),
    }
    with refused(ContentCharged, dataset="visits2", account="clinic"):
        ingest(asked(tmp_path, "second", write[form](), "visits2.yaml"))


def test_the_operators_reason_stands_in_the_entry_and_in_the_hand_off(clinic: Path) -> None:
    run = go(asked(clinic, "second", schema="visits2.yaml", again="The board agreed to a second study."))
    reserve = next(e for e in ledger_of(clinic).entries(account="visits2") if e.kind == "reserve")
    assert reserve.content["declared"] == {"again": "The board agreed to a second study."}
    manifest = json.loads((run.settings.out / MANIFEST).read_text())
    assert manifest["declared"] == reserve.content["declared"]


def test_a_reason_for_a_second_budget_does_not_bar_the_first(clinic: Path) -> None:
    ledger_of(clinic).change_cap("clinic", epsilon=3, reason="room for more")
    go(asked(clinic, "second", schema="visits2.yaml", again="The board agreed to a second study."))
    ledger_of(clinic).change_cap("visits2", epsilon=3, reason="room for more")
    ingest(asked(clinic, "more"))
    with refused(ContentCharged, account="clinic"):  # a reason is one run's
        ingest(asked(clinic, "third", schema="visits2.yaml"))
    ingest(asked(clinic, "still"))
    (clinic / "visits3.yaml").write_text(make_schema(name="visits3").to_yaml())
    with refused(ContentCharged, account="clinic"):
        go(asked(clinic, "fourth", schema="visits3.yaml"))


def test_what_is_no_second_budget_is_not_refused(clinic: Path) -> None:
    ledger = ledger_of(clinic)
    cap = ledger.change_cap("clinic", epsilon=3, reason="room for more").cap
    ingest(asked(clinic, "again"))  # the same data set, a second time
    ledger.open_account("ward", dataset="visits2", budget_cap=cap, parent="clinic")
    ingest(asked(clinic, "child", schema="visits2.yaml"))  # below the account that paid
    pq.write_table(make_table(60, seed=5), clinic / "others.parquet")
    (clinic / "visits3.yaml").write_text(make_schema(name="visits3").to_yaml())
    ingest(asked(clinic, "others", "others.parquet", "visits3.yaml"))  # other rows


def test_what_another_account_was_charged_for_meanwhile_is_refused_at_the_charge(tmp_path: Path) -> None:
    write_clinic(tmp_path, 60)
    (tmp_path / "visits2.yaml").write_text(make_schema(name="visits2").to_yaml())
    first = asked(tmp_path, "first")
    ingest(first)  # and is cut off here
    go(asked(tmp_path, "second", schema="visits2.yaml"))
    with refused(ContentCharged, account="visits2"):
        go(first)
    assert [one.name for one in ledger_of(tmp_path).accounts()] == ["visits2"]
    ledger_of(tmp_path).open_account("clinic", dataset="clinic", budget_cap=make_cap(tmp_path))
    ledger_of(tmp_path).change_cap("visits2", epsilon=3, reason="room for more")
    ingest(asked(tmp_path, "fourth", schema="visits2.yaml"))  # what was refused bars nobody


def test_a_file_that_is_not_read_hides_nothing(clinic: Path) -> None:
    (folder := clinic / "table").mkdir()
    shutil.copy(clinic / "clinic.parquet", folder / "part-0.parquet")
    for name in ("_SUCCESS", ".hidden"):
        (folder / name).write_text("beside")
    secret = b"of the test"
    assert _files(str(folder), secret) == _files(str(clinic / "clinic.parquet"), secret) != set()
    assert _files(f"file://{clinic}/clin*.parquet", secret) == _files(str(folder), secret)
    with pytest.raises(ContentCharged):
        ingest(asked(clinic, "second", data="table", schema="visits2.yaml"))


def test_what_was_never_charged_is_no_budget(tmp_path: Path) -> None:
    write_clinic(tmp_path, 60)
    (tmp_path / "typo.yaml").write_text(make_schema(name="clinc").to_yaml())
    ingest(asked(tmp_path, "typo", schema="typo.yaml"))
    ingest(asked(tmp_path, "right"))


def test_what_is_remembered_is_keyed_and_for_its_owner_alone(clinic: Path) -> None:
    zone = clinic / "home" / "sensitive" / ".contents"
    files = [path for path in zone.rglob("[!.]*") if path.is_file()]
    assert len(files) == 3 and zone.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    from dpmodels.artifact import sha256_of

    assert not any(sha256_of(clinic / "clinic.parquet") in str(file) for file in files)


MODELS = {
    "local": {"method": "federated-moments", "extractor": {"features": 4, "width": 4, "pretraining": None}},
    "central": {"trust": "central"},
}
MODELS["central"] |= MODELS["local"]


def join(folder: Path, out: str, clients: dict[str, Path], trust: str = "local", **changes: object) -> Run:
    """Have clients of one federation take part, each with the data that are named."""
    given = yaml.safe_load((folder / "federation.yaml").read_text())
    given |= {"clients": clients, "out": folder / out, "model": MODELS[trust], **changes}
    run = start(FederateConfig.build(given, None))
    pipeline(run, lambda stage, *handles: stage(*handles))
    return run


@pytest.fixture(scope="module", params=MODELS)
def wards(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a federation that used up its cap, with room for each of its clients, and who is trusted."""
    folder = tmp_path_factory.mktemp("wards")
    write_wards(folder, 60)
    join(folder, "out", {name: folder / name for name in NAMES}, request.param)
    return folder, request.param


def entries_of(folder: Path) -> list[tuple[str, str]]:
    return [(entry.account, entry.kind) for entry in ledger_of(folder).entries()]


@pytest.mark.nightly_if("local")  # beside a server that is trusted, where one release is of all
def test_clients_under_other_names_are_no_second_budget(wards: tuple[Path, str], tmp_path: Path) -> None:
    folder, trust = wards
    shutil.copytree(folder / "south", tmp_path / "copied")
    shutil.copytree(folder / "west", tmp_path / "beside")
    pq.write_table(make_ward(20, 20), tmp_path / "beside" / "more.parquet")
    before = entries_of(folder)
    with pytest.raises(NacreError, match="only 0 of 3") as refusal:
        clients = {"north2": folder / "north", "copied": tmp_path / "copied", "beside": tmp_path / "beside"}
        join(folder, "again", clients, trust)
    assert str(refusal.value).count(CHARGED) == 3 and entries_of(folder) == before


@pytest.mark.nightly_if("central")
def test_swapped_clients_are_refused_and_the_same_ones_are_not(wards: tuple[Path, str]) -> None:
    folder, trust = wards
    ledger = ledger_of(folder)
    for name in ("wards", *(f"wards.{name}" for name in NAMES)):
        ledger.change_cap(name, epsilon=20, reason="room for more")
    before = entries_of(folder)
    swapped = dict(zip(NAMES, (folder / "south", folder / "west", folder / "north"), strict=True))
    with pytest.raises(NacreError, match="only 0 of 3"):
        join(folder, "swapped", swapped, trust)
    assert entries_of(folder) == before
    join(folder, "second", {name: folder / name for name in NAMES}, trust)
    renamed = {f"{name}3": folder / name for name in NAMES}
    said = {"statement": {"again": "The board agreed to a second study."}}
    run = join(folder, "third", renamed, trust, **said)
    reserve = next(entry for entry in ledger.entries(account="wards.north3") if entry.kind == "reserve")
    assert reserve.content["declared"] == said["statement"] and (run.settings.out / MANIFEST).exists()


def test_two_children_of_one_account_do_not_read_the_same(clinic: Path) -> None:
    ledger = ledger_of(clinic)
    cap = ledger.change_cap("clinic", epsilon=3, reason="room for more").cap
    pq.write_table(make_table(60, seed=5), clinic / "others.parquet")
    for name in ("ward", "lab"):
        ledger.open_account(name, dataset=f"{name}s", budget_cap=cap, parent="clinic")
        (clinic / f"{name}.yaml").write_text(make_schema(name=f"{name}s").to_yaml())
    ingest(asked(clinic, "ward", "others.parquet", "ward.yaml"))
    with refused(ContentCharged, account="ward"):
        ingest(asked(clinic, "lab", "others.parquet", "lab.yaml"))
    ingest(asked(clinic, "again", "others.parquet", "ward.yaml"))


def test_what_an_earlier_version_remembered_bars_no_client(tmp_path: Path) -> None:
    """It wrote down the uppermost account and the federation's name for every client."""
    write_wards(tmp_path, 60)
    join(tmp_path, "out", {name: tmp_path / name for name in NAMES})
    ledger = ledger_of(tmp_path)
    for file in (tmp_path / "home" / "sensitive" / ".contents").glob("*/[!.]*"):
        file.unlink()
        (file.parent / _key("wards")).write_bytes(b"wards\nwards")
    for name in ("wards", *(f"wards.{name}" for name in NAMES)):
        ledger.change_cap(name, epsilon=20, reason="room for more")
    join(tmp_path, "second", {name: tmp_path / name for name in NAMES})
    given = yaml.safe_load((tmp_path / "federation.yaml").read_text()) | {"model": MODELS["local"]}
    given |= {"clients": {f"{name}2": tmp_path / name for name in NAMES}, "out": tmp_path / "third"}
    run = start(FederateConfig.build(given, None))
    with refused(ContentCharged, dataset="wards.north2", account="wards.north"):
        take_part(run.parties[0])  # which is all that a client of Flower does


def test_another_bound_on_a_users_rows_is_no_new_budget(tmp_path: Path) -> None:
    write_clinic(tmp_path, 60)
    text = make_schema(unit={"user": "patient", "max_rows": 2}).to_yaml()
    (tmp_path / "two.yaml").write_text(text)
    (tmp_path / "three.yaml").write_text(text.replace("max_rows: 2", "max_rows: 3"))
    go(asked(tmp_path, "first", schema="two.yaml"))
    three = make_schema(unit={"user": "patient", "max_rows": 3}).unit
    cap = PrivacyBudget(epsilon=1, delta=1e-5, unit=three)
    ledger_of(tmp_path).open_account("clinic3", dataset="clinic", budget_cap=cap)
    with pytest.raises(ContentCharged):
        go(asked(tmp_path, "second", schema="three.yaml"))
    assert ledger_of(tmp_path).balance("clinic3").spent_epsilon == 0
    go(asked(tmp_path, "again", schema="three.yaml", again="agreed by the board"))


def test_an_account_by_another_unit_is_a_second_budget_once_the_first_was_charged(tmp_path: Path) -> None:
    """What hides a user hides each of their rows, so both would be spent on every record."""
    write_clinic(tmp_path, 60)
    users = make_schema(unit={"user": "patient", "max_rows": 2})
    (tmp_path / "users.yaml").write_text(users.to_yaml())
    by_user = PrivacyBudget(epsilon=1, delta=1e-5, unit=users.unit)
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    ingest(asked(tmp_path, "first"))  # which opens the account, and is charged for later
    ledger.open_account("people", dataset="clinic", budget_cap=by_user)
    ingest(asked(tmp_path, "second", schema="users.yaml"))  # nothing was spent by the other unit
    go(asked(tmp_path, "first"))
    with refused(ContentCharged, account="clinic"):
        go(asked(tmp_path, "third", schema="users.yaml"))
    assert ledger.balance("people").spent_epsilon == 0
    (tmp_path / "three.yaml").write_text(users.to_yaml().replace("max_rows: 2", "max_rows: 3"))
    words = ("ledger", "open", "more", "--schema", tmp_path / "three.yaml", "--epsilon", 1, "--delta", 1e-5)
    code, _, err = run_cli(*words, "--home", tmp_path / "home")
    assert (
        code == 0
        and err.count(
            "warning: account clinic has spent epsilon=0.5 on the same data set by record, add_or_remove_one. Such"
        )
        == 1
    )
    go(asked(tmp_path, "again", schema="users.yaml", again="a record was the wrong unit"))
    assert ledger.balance("people").spent_epsilon
    assert str(ContentCharged("d", "d", "people")).startswith(
        "account people was charged for this data by another unit or adjacency"
    )


def test_what_another_unit_paid_for_meanwhile_bars_a_run_that_has_read_its_rows(tmp_path: Path) -> None:
    """However little it paid: an account of a large delta spends an epsilon of 0 on a cheap release."""
    write_clinic(tmp_path, 60)
    users = make_schema(unit={"user": "patient", "max_rows": 2})
    (tmp_path / "users.yaml").write_text(users.to_yaml())
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    for name, unit in (("clinic", make_schema().unit), ("people", users.unit)):
        ledger.open_account(name, dataset="clinic", budget_cap=PrivacyBudget(epsilon=1, delta=1e-3, unit=unit))
    waiting = asked(tmp_path, "first", schema="users.yaml")
    ingest(waiting)
    cheap = {"target_epsilon": 0.004, "delta": 1e-6}
    go(asked(tmp_path, "second", privacy=cheap))
    assert ledger.balance("clinic").spent_epsilon == 0 and ledger.is_charged("clinic")
    with refused(ContentCharged, account="clinic"):
        go(waiting)
    assert not ledger.is_charged("people")


def test_users_by_another_column_are_no_new_budget(tmp_path: Path) -> None:
    write_clinic(tmp_path, 60)
    schema = make_schema(unit={"user": "patient", "max_rows": 2})
    (tmp_path / "clinic.yaml").write_text(schema.to_yaml())
    (tmp_path / "renamed.yaml").write_text(schema.to_yaml().replace("patient", "person"))
    table = pq.read_table(tmp_path / "clinic.parquet")
    names = ["person" if name == "patient" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), tmp_path / "renamed.parquet")
    go(asked(tmp_path, "first"))
    cap = PrivacyBudget(epsilon=1, delta=1e-5, unit=schema.unit.model_copy(update={"user": "person"}))
    ledger_of(tmp_path).open_account("clinic3", dataset="clinic", budget_cap=cap)
    with pytest.raises(ContentCharged):
        go(asked(tmp_path, "second", "renamed.parquet", "renamed.yaml"))
    assert ledger_of(tmp_path).balance("clinic3").spent_epsilon == 0


def test_a_table_of_a_database_in_a_file_is_one_content_whatever_is_asked_of_it(tmp_path: Path) -> None:
    write_clinic(tmp_path, 60)
    frame, data = pq.read_table(tmp_path / "clinic.parquet").to_pandas(), f"sqlite:///{tmp_path / 'clinic.db'}"
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as database:
        frame.to_sql("visits", database, index=False)
        frame.sample(frac=0.5, random_state=0).to_sql("others", database, index=False)
    for number in (1, 2, 3):
        (tmp_path / f"schema{number}.yaml").write_text(make_schema(name=f"clinic{number}").to_yaml())
    go(asked(tmp_path, "first", data, "schema1.yaml", query="visits"))
    with pytest.raises(ContentCharged):
        go(asked(tmp_path, "second", data, "schema2.yaml", query="select * from Visits where age > 20"))
    go(asked(tmp_path, "third", data, "schema3.yaml", query="others"))


def test_the_table_of_users_is_a_content_beside_their_rows(tmp_path: Path) -> None:
    parents, orders = shop.make_tables(80)
    pq.write_table(parents, tmp_path / "customers.parquet")
    fitter = {"measurement": {"fine_cells": 16}, "training": {"components": 16, "directions": 2, "steps": 5}}
    for number in (1, 2):
        pq.write_table(orders.slice(number), tmp_path / f"orders{number}.parquet")
        (tmp_path / f"shop{number}.yaml").write_text(shop.SCHEMA_TEXT.replace("name: shop", f"name: shop{number}"))
    settings = {
        "parents": tmp_path / "customers.parquet", "rows": 40, "model": fitter,
        "privacy": {"target_epsilon": 0.5, "delta": 1e-5},
        "runtime": {"home": tmp_path / "home", "device": "cpu", "prefect": False, "internal_report": False},
    }  # fmt: skip

    def of(number: int) -> Run:
        files = {"data": tmp_path / f"orders{number}.parquet", "schema": tmp_path / f"shop{number}.yaml"}
        config = SynthesizeConfig.build({**settings, **files, "out": tmp_path / f"out{number}"})
        return start(config, may_open=MayOpen.YES)

    go(of(1))
    with pytest.raises(ContentCharged):
        go(of(2))
