"""Users and their rows from the command line to a hand-off of two tables that join, under one charge."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import nacre
from dpmodels.audit.made import shop
from dpmodels.contract.remarks import FIRST_ROWS, MORE_ROWS
from dpmodels.errors import Unsuitable
from dpmodels.pages.glance import warnings_of
from dpmodels.pages.notes import notes_of
from dpmodels.report.terms import ROWS_ALONE
from tests.kit.kills import only_run
from tests.kit.support import charges, digest, run_cli, synthesize_words, write_clinic

pytestmark = pytest.mark.processes

FITTER = "model: {measurement: {fine_cells: 16}, training: {components: 16, directions: 2, steps: 5}}\n"
USERS = 60


def words(folder: Path, **options: object) -> list[object]:
    """Write a small shop, and return the words of its run."""
    parents, orders = shop.make_tables(80)
    pq.write_table(parents, folder / "customers.parquet")
    pq.write_table(orders, folder / "orders.parquet")
    (folder / "shop.yaml").write_text(shop.SCHEMA_TEXT)
    (folder / "config.yaml").write_text(FITTER)
    # With noise for ε = 1, eighty users may be released as users without any rows, once in some hundred runs.
    given = {"parents": folder / "customers.parquet", "rows": USERS, "target_epsilon": 10, **options}
    return synthesize_words(folder, data=folder / "orders.parquet", schema=folder / "shop.yaml", **given)


def joins(folder: Path, users: int = USERS) -> None:
    """See that both tables have their columns, and that their keys join."""
    parents, children = (pq.read_table(folder / name) for name in ("parents", "children"))
    assert parents.column_names == ["customer", "age", "region"] and parents.num_rows == users
    assert children.column_names == ["customer", "number", "placed", "product", "price", "rating"]
    keys = parents["customer"].combine_chunks()
    assert len(pc.unique(keys)) == users and len(pc.unique(children["number"])) == len(children)
    assert len(children) and pc.all(pc.is_in(children["customer"], value_set=keys)).as_py()
    assert pc.max(children.group_by("customer").aggregate([("price", "count")])["price_count"]).as_py() <= 6


@pytest.fixture(scope="module")
def shop_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, which the tests take more out of."""
    folder = tmp_path_factory.mktemp("shop")
    code, _, err = run_cli(*words(folder))
    assert code == 0, err
    return folder


def test_a_broken_rule_names_no_way_out_that_is_refused_beside_users(tmp_path):
    given = words(tmp_path)
    (tmp_path / "shop.yaml").write_text(shop.SCHEMA_TEXT.replace("max: 89", "max: 30"))
    code, _, err = run_cli(*given)
    assert code == 1 and "or write `outside: clip`" in err and "reject-row" not in err


def test_a_run_hands_over_two_tables_under_one_charge(shop_run):
    joins(shop_run / "out" / "synthetic")
    assert charges(shop_run / "home") == ["reserve", "draw", "seal", "commit"]
    for command, status in (("verify", 3), ("validate", 0)):
        code, out, err = run_cli(command, shop_run / "out")
        assert code == status, out + err
    manifest = json.loads((shop_run / "out" / "manifest.json").read_text())
    assert manifest["unit"] == "user (customer, at most 6 rows)" and manifest["method"] == "nacre"
    assert {f"synthetic/{name}/part-00000.parquet" for name in ("parents", "children")} <= manifest["artifacts"].keys()


def test_the_reports_say_how_many_children_a_user_has(shop_run):
    report = json.loads((shop_run / "out" / "report.json").read_text())
    assert report["synthetic_rows"] == USERS and ROWS_ALONE not in report["not_promised"]
    (children,) = [column for column in report["columns"] if column["name"] == "children"]
    made = pq.read_table(shop_run / "out" / "synthetic" / "children")["customer"].to_pylist()
    shares = [0] * 7
    for user in range(1, USERS + 1):
        shares[made.count(user)] += 1
    assert children["labels"] == [str(n) for n in range(7)]
    assert children["synthetic"] == pytest.approx([share / USERS for share in shares], abs=1e-6)
    (region,) = [column for column in report["columns"] if column["name"] == "region"]
    parents = pq.read_table(shop_run / "out" / "synthetic" / "parents")["region"].to_pylist()
    assert region["synthetic"] == pytest.approx([parents.count(r) / USERS for r in region["labels"]], abs=1e-6)
    sensitive = shop_run / "home" / "sensitive" / only_run(shop_run)
    internal = json.loads((sensitive / "internal-report.json").read_text())
    assert {name: one["status"] for name, one in internal["metrics"].items()}["marginals"] == "done"


def test_more_users_are_drawn_and_the_release_is_fitted_again_for_nothing(shop_run, tmp_path):
    run, before = only_run(shop_run), charges(shop_run / "home")
    code, _, err = run_cli("sample", run, "--rows", 40, "--out", tmp_path / "more", "--home", shop_run / "home")
    assert code == 0, err
    joins(tmp_path / "more", 40)
    assert b"nacre.sample" in pq.read_metadata(tmp_path / "more" / "parents" / "part-00000.parquet").metadata
    place = ("--rows", 10, "--out", tmp_path / "no", "--home", shop_run / "home")
    code, _, err = run_cli("sample", run, *place, "--where", "age>60")
    assert code == 1 and "no condition can be set" in err and not (tmp_path / "no").exists()
    fitter = "model: {training: {components: 16, directions: 2, steps: 5}}\n"
    (tmp_path / "fitter.yaml").write_text(fitter)
    release = shop_run / "home" / "released" / run / "release.parquet"
    place = ("--out", tmp_path / "fitted", "--home", tmp_path / "home", "--rows", 30)
    code, _, err = run_cli("fit", release, *place, "--config", tmp_path / "fitter.yaml", "--no-prefect")
    assert code == 0, err
    joins(tmp_path / "fitted" / "synthetic", 30)
    assert charges(shop_run / "home") == before
    code, _, err = run_cli("marginals", run, "--out", tmp_path / "m.parquet", "--home", shop_run / "home")
    assert code == 0, err
    assert "children" in pq.read_table(tmp_path / "m.parquet")["column_1"].to_pylist()


def test_python_gives_both_tables(shop_run):
    result = nacre.Result(shop_run / "out")
    assert len(result.parents) == USERS and set(result.table["customer"]) <= set(result.parents["customer"])
    with pytest.raises(Unsuitable, match="copy these folders"):
        result.export(shop_run / "elsewhere")
    with pytest.raises(Unsuitable, match="must be a path") as caught:
        nacre.synthesize(result.table, shop.SCHEMA_TEXT, parents=result.parents, epsilon=1, delta=1e-5)
    assert "region" not in str(caught.value)


def test_a_hand_off_whose_keys_do_not_join_is_noticed(shop_run, tmp_path):
    folder = tmp_path / "out"
    for file in (shop_run / "out").rglob("*"):
        if file.is_file():
            (folder / file.relative_to(shop_run / "out")).parent.mkdir(parents=True, exist_ok=True)
            (folder / file.relative_to(shop_run / "out")).write_bytes(file.read_bytes())
    place = folder / "synthetic" / "children" / "part-00000.parquet"
    children = pq.read_table(place)
    pq.write_table(children.set_column(0, "customer", pa.array([USERS + 5] * len(children))), place)
    assert run_cli("verify", folder)[0] == 1
    code, out, err = run_cli("validate", folder)
    assert code == 1 and "must not be null" in out + err


def test_orders_alone_and_sequences_need_no_parents_table(tmp_path):
    given = words(tmp_path, parents=None)
    parents, orders = shop.make_tables(80)
    pq.write_table(orders.join(parents, "customer"), tmp_path / "orders.parquet")
    code, _, err = run_cli(*given)
    assert code == 0, err
    joins(made := tmp_path / "out" / "synthetic")
    each, their = (pq.read_table(made / name)["customer"].to_pylist() for name in ("parents", "children"))
    assert set(each) == set(their)  # as in one flat file, in which no user is without a row
    schema = shop.make_schema(name="visits", users={"order": "placed"})
    (tmp_path / "shop.yaml").write_text(schema.to_yaml())
    more = ("--rows", 20, "--out", tmp_path / "sequences", "--open", "--again", "the same orders in their sequence")
    code, _, err = run_cli(*given[:-2], *more)
    assert code == 0, err
    made = pq.read_table(tmp_path / "sequences" / "synthetic" / "children").to_pandas()
    assert not (tmp_path / "sequences" / "synthetic" / "parents").exists()
    assert made["customer"].nunique() == 20 and {"age", "region"} <= set(made.columns)
    assert made.groupby("customer")["placed"].apply(lambda own: own.is_monotonic_increasing).all()
    assert run_cli("validate", tmp_path / "sequences")[0] == 0


def orphaned(folder: Path) -> None:
    place = folder / "customers.parquet"
    pq.write_table(pq.read_table(place).slice(40), place)


def doubled(folder: Path) -> None:
    place = folder / "customers.parquet"
    table = pq.read_table(place)
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), place)


def outside(folder: Path) -> None:
    place = folder / "customers.parquet"
    table = pq.read_table(place)
    pq.write_table(table.set_column(1, "age", pa.array([1777] * len(table))), place)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [(orphaned, "parents' table lacks"), (doubled, "each user once"), (outside, "column age")],
)
def test_tables_that_do_not_fit_are_refused_before_any_charge_without_a_value(tmp_path, spoil, rule):
    given = words(tmp_path)
    spoil(tmp_path)
    code, out, err = run_cli(*given)
    assert code == 1 and rule in " ".join(err.split()) and "nothing was charged" in " ".join(err.split())
    assert "1777" not in out + err and charges(tmp_path / "home") == []
    assert not (tmp_path / "out").exists()


def test_options_that_do_not_go_together_are_refused_before_the_data_is_read(tmp_path):
    given = words(tmp_path)
    (tmp_path / "config.yaml").write_text("model: {}\n")
    digests = digest(tmp_path / "orders.parquet")
    for more, rule in (
        (("--method", "pearl"), "be nacre for a schema with `users`"),
        (("--report-epsilon", 1), "only the report on a table, or on a tree of tables"),
        (("--parents", tmp_path / "nowhere.parquet"), "does not exist"),
    ):
        code, _, err = run_cli(*given, *more)
        assert code == 1 and rule in " ".join(err.split())
    (tmp_path / "shop.yaml").write_text(shop.make_schema(users={"order": "placed"}).to_yaml())
    code, _, err = run_cli(*given)
    assert code == 1 and "must be left out" in " ".join(err.split())
    assert digest(tmp_path / "orders.parquet") == digests and not (tmp_path / "home" / "released").exists()


def test_rows_of_users_without_the_key_say_that_they_are_no_users(tmp_path):
    write_clinic(tmp_path, unit={"user": "patient", "max_rows": 2})
    given = synthesize_words(tmp_path)
    for words_ in (["plan", *given[1:2], *given[3:]], given):
        code, out, err = run_cli(*words_)
        assert code == 0 and "belongs to anybody" in " ".join((out + err).split()), err
    assert ROWS_ALONE in json.loads((tmp_path / "out" / "report.json").read_text())["not_promised"]


def test_that_only_the_first_row_of_a_user_was_used_stands_in_the_report(tmp_path):
    write_clinic(tmp_path, unit={"user": "patient"})
    assert run_cli(*synthesize_words(tmp_path))[0] == 0
    assert json.loads((tmp_path / "out" / "report.json").read_text())["cautions"] == [FIRST_ROWS]


@pytest.mark.parametrize(
    ("unit", "begins", "sentence"),
    [
        ({"user": "patient"}, "warning: ", FIRST_ROWS),
        ({"user": "patient", "max_rows": 1}, "note: ", FIRST_ROWS),
        ({"user": "patient", "max_rows": 2}, "note: ", MORE_ROWS.format(rows=2)),
    ],
)
def test_how_many_rows_of_a_user_are_used_is_a_note_where_the_schema_says_it(tmp_path, unit, begins, sentence):
    schema = write_clinic(tmp_path, unit=unit)[1]
    if "max_rows" not in unit:
        text = re.sub(r"unit: .*", "unit: {user: patient}", schema.read_text())
        schema.write_text(text)
    code, _, err = run_cli(*synthesize_words(tmp_path))
    lines = [line for line in err.splitlines() if sentence in " ".join(line.split())]
    assert code == 0 and lines == [begins + sentence]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (sentence in warnings_of(report)) == (sentence == FIRST_ROWS) and report["cautions"] == [sentence]
    assert (sentence in notes_of(report)) == (sentence != FIRST_ROWS)
