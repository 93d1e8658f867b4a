"""What a release gives for nothing after its hand-off: rows under conditions, and its noisy tables."""

import json
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.codec.derive import derive
from dpmodels.contract.schema import Schema
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.methods.registry import create
from dpmodels.pages.page import percent
from dpmodels.releases.release import read_release
from dpmodels.report.groups.means import ALIKE, DOUBTED, DROWNED
from tasks.run.store import Run
from tests.kit.errors import refused
from tests.kit.support import charges, digest, make_schema, make_table, run_cli, synthesize_words, write_clinic

QUICK = {"nacre": {"components": 8, "steps": 20}, "privbayes": {}, "pearl": None}


@pytest.fixture(scope="module", params=["nacre", "privbayes"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("runs"), request.param)


def made(folder: Path, method: str, **changes: object) -> Path:
    """Run one quick synthesis by a method; return its home."""
    write_clinic(folder, **changes)
    if (training := QUICK[method]) is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump({"model": {"method": method, "training": training}}))
    code, _, err = run_cli(*synthesize_words(folder, target_epsilon=8))
    assert code == 0, err
    return folder / "home"


def only(method: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("home", [method], indirect=True)


def name_of(home: Path) -> str:
    (settings,) = (home / "control").glob("*/settings.json")
    return settings.parent.name


def sample(home: Path, out: Path, *words: object) -> tuple[int, str, str]:
    return run_cli("sample", name_of(home), "--rows", 300, "--out", out, "--home", home, *words)


def handed_over_by(home: Path) -> int:
    """Return how many rows the hand-off of the home's run has."""
    return len(nacre.Result(Run(home=home, name=name_of(home)).settings.out).table)


@only("nacre")
def test_rows_under_conditions_come_without_a_charge_and_say_where_they_are_from(home, tmp_path):
    before, ledger = charges(home), digest(home / "ledger.sqlite")
    where = ("--where", "sick=yes", "--where", "age > 60", "--where", "dose != null")
    code, out, err = sample(home, tmp_path / "sick.parquet", *where)
    assert code == 0, err
    assert "300, drawn by nacre" in out and "nothing was charged" in out and "% of what it draws" in out
    table = pq.read_table(tmp_path / "sick.parquet")
    frame = table.to_pandas()
    assert len(frame) == 300 and set(frame.sick) == {"yes"} and frame.age.min() > 60 and not frame.dose.isna().any()
    handed_over = handed_over_by(home)
    assert frame.patient.tolist() == list(range(handed_over + 1, handed_over + 301))  # so both can be put together
    footer = json.loads(pq.ParquetFile(tmp_path / "sick.parquet").metadata.metadata[b"nacre.sample"])
    assert footer["where"] == ["sick=yes", "age > 60", "dose != null"] and footer["run"] == name_of(home)
    assert any(footer["release"] in entry.model_dump_json() for entry in nacre.ledger(home).entries())
    assert (charges(home), digest(home / "ledger.sqlite")) == (before, ledger)
    python = nacre.sample(name_of(home), 300, where=["sick=yes", "age > 60", "dose != null"], home=home)
    assert python.equals(frame)


@only("nacre")
def test_true_and_false_of_python_are_conditions_as_they_are(home):
    for value in (True, np.False_, "True"):
        assert set(nacre.sample(name_of(home), 20, where={"smoker": value}, home=home).smoker) == {str(value) == "True"}
    assert len(nacre.sample(name_of(home), 20, where="smoker!=True", home=home)) == 20


@only("nacre")
def test_identifiers_go_on_after_the_hand_off_or_where_they_are_told_to(home, tmp_path):
    handed_over = handed_over_by(home)
    code, out, err = sample(home, tmp_path / "first.parquet")
    assert code == 0 and f"after those of {handed_over:,} rows" in out and f"--after {handed_over + 300}" in out, err
    code, out, err = sample(home, tmp_path / "second.parquet", "--seed", 9, "--after", handed_over + 300, "--json")
    assert code == 0 and json.loads(out)["after"] == handed_over + 300, err
    both = pd.concat(pq.read_table(tmp_path / f"{name}.parquet").to_pandas() for name in ("first", "second"))
    assert both.patient.tolist() == list(range(handed_over + 1, handed_over + 601))
    again = nacre.sample(name_of(home), 300, after=0, home=home)
    assert again.patient.tolist() == list(range(1, 301))
    with refused(InvalidArgument, "lie between 0 and"):
        nacre.sample(name_of(home), 3, after=-1, home=home)


@only("nacre")
def test_without_conditions_the_rows_are_those_of_a_plain_sample(home, tmp_path):
    code, out, err = sample(home, tmp_path / "all.parquet", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 300 and json.loads(out)["share"] == 1
    assert nacre.sample(name_of(home), 300, home=home).equals(pq.read_table(tmp_path / "all.parquet").to_pandas())


@only("nacre")
def test_a_hand_off_stands_for_the_run_that_made_it(home, tmp_path):
    run, folder = name_of(home), Run.find(home, name_of(home)).settings.out
    for words in (("sample", "--rows", 20, "--out"), ("marginals", "--out")):
        files = [tmp_path / f"{words[0]}-{which}.csv" for which in ("name", "folder")]
        for file, which in zip(files, (run, folder), strict=True):
            code, _, err = run_cli(words[0], which, *words[1:], file, "--home", home)
            assert code == 0, err
            assert (f"{folder} is of run {run}" in err) == (which == folder)
        assert files[0].read_bytes() == files[1].read_bytes()
    assert run_cli("report", folder, "--home", home)[:2] == run_cli("report", run, "--home", home)[:2]
    code, _, err = run_cli("sample", folder, "--rows", 5, "--out", tmp_path / "x.csv", "--home", tmp_path / "other")
    assert code == 1 and f"no run {run} under" in err


REFUSED = {
    "age": "`age` is no condition",
    "smoker is true": "has a sign and no word for it; write such as `smoker=true`",
    "ward is not North": "write such as `ward!=north`",
    "age is 5 and sick": "give each by itself, as 'age is 5' and 'sick'",
    "smokr": "a value, such as `age>0`; did you mean `smoker`?",
    "aeg > 3": "`aeg > 3`: there is no column aeg; did you mean `age`?",
    "height > 3": "`height > 3`: there is no column height, but age, ward, dose, smoker, sick",
    "patient = 3": "column patient is not modeled",
    "age > 100": "a value of column age must lie between 0 and 99",
    "age = 3.5": "column age has whole numbers only",
    "age < old": "old is no number",
    "age = null": "column age is never null, so leave this condition out",
    "dose > null": "null has no order",
    "dose = 1.234": "column dose keeps 2 decimals",
    "ward = suoth": "suoth is no value of column ward; it has north, south, west; did you mean `south`?",
    "ward < south": "its values have no order",
    "smoker = 1": "1 is no value of column smoker; it has false, true",
    "age > 99": "no value of column age meets this; a value must lie between 0 and 99",
}


@only("nacre")
@pytest.mark.parametrize("where", REFUSED)
def test_what_cannot_be_met_is_refused_in_one_sentence_and_leaves_no_file(home, tmp_path, where, monkeypatch):
    monkeypatch.setattr("tasks.stages.draw_rows.read_generator", None)  # it is refused before anything is drawn
    code, out, err = sample(home, tmp_path / "none.parquet", "--where", where)
    assert (code, out, err.count("\n")) == (1, "", 1) and REFUSED[where] in err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(nacre.NacreError):
        nacre.sample(name_of(home), 300, where=where, home=home)


@only("nacre")
def test_a_generator_that_is_not_the_received_one_is_not_drawn_from(home, tmp_path):
    record = home / "control" / name_of(home) / "received.json"
    kept = record.read_text()
    record.write_text(json.dumps(json.loads(kept) | {"generator.safetensors": "0" * 64}))
    code, _, err = sample(home, tmp_path / "x.parquet")
    record.write_text(kept)
    assert code == 1 and "was changed after it was checked" in err and list(tmp_path.iterdir()) == []


@only("nacre")
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_file_that_finds_no_room_is_named(home, tmp_path, ending):
    hand_off, out = home.parent / "out", tmp_path / f"rows.{ending}"
    with small_files():
        for words in (
            ("sample", name_of(home), "--rows", 300, "--out", out, "--home", home),
            ("export", hand_off, out),
        ):
            code, _, err = run_cli(*words)
            assert (code, err.count("\n")) == (1, 1) and f"while writing {out.name}; free space" in err, err
    assert list(tmp_path.iterdir()) == []


@contextmanager
def small_files() -> Iterator[None]:
    """Let this process write no file above a hundred bytes, nor a compiled module, which would be cut off for ever."""
    before, compiles = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = compiles


@only("nacre")
def test_a_file_that_is_there_is_kept(home, tmp_path):
    (tmp_path / "mine.parquet").write_text("mine")
    code, _, err = sample(home, tmp_path / "mine.parquet")
    assert code == 1 and "is there already" in err and (tmp_path / "mine.parquet").read_text() == "mine"


@only("privbayes")
def test_a_generator_without_weights_is_sampled_by_rejection(home, tmp_path):
    code, _, err = sample(home, tmp_path / "few.parquet", "--where", "age>=50", "--where", "ward=north")
    assert code == 0, err
    frame = pq.read_table(tmp_path / "few.parquet").to_pandas()
    assert len(frame) == 300 and frame.age.min() >= 50 and set(frame.ward) == {"north"}


def columns_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return which columns each row of all noisy tables is about."""
    names = frame[[name for name in frame if name.startswith("column_")]].to_numpy().tolist()
    return [tuple(one for one in row if isinstance(one, str)) for row in names]


def true_counts(row: pd.Series, data: pd.DataFrame) -> int:
    """Count the real rows in the combination of cells that a row of the noisy tables is about."""
    held = np.ones(len(data), dtype=bool)
    sides = [(row[f"column_{one}"], row[f"cell_{one}"], row[f"low_{one}"], row[f"high_{one}"]) for one in range(1, 9)
             if isinstance(row.get(f"column_{one}"), str)]  # fmt: skip
    for name, cell, low, high in sides:
        if cell == "null":
            held &= data[name].isna()
        elif cell == "exactly 0":
            held &= data[name] == 0
        elif not np.isnan(low):
            held &= data[name].between(low, high) & ((data[name] != 0) | (name == "age"))
        else:
            held &= data[name].astype(str).str.lower().isin(cell.split(" | "))
    return int(held.sum())


def test_the_noisy_tables_are_the_real_counts_with_noise_of_the_error_they_state(home, tmp_path, request):
    before, ledger = charges(home), digest(home / "ledger.sqlite")
    code, out, err = run_cli("marginals", name_of(home), "--out", tmp_path / "t.parquet", "--home", home, "--json")
    assert code == 0, err
    frame = pq.read_table(tmp_path / "t.parquet").to_pandas()
    facts = json.loads(out)
    assert (facts["counts"], facts["tables"]) == (len(frame), frame.table.nunique())
    assert any(facts["release"] in entry.model_dump_json() for entry in nacre.ledger(home).entries())
    data = make_table(200).to_pandas()
    kinds = {kind: frame[frame.kind == kind] for kind in ("measured", "combined")}
    # five standard deviations of the size of 360 independent errors; combined counts are few and share tables
    for kind, (low, high) in {"measured": (0.8, 1.2), "combined": (0.3, 2.2)}.items():
        some = kinds[kind].sample(min(len(kinds[kind]), 400), random_state=0)
        scores = [(row["count"] - true_counts(row, data)) / row.standard_error for _, row in some.iterrows()]
        assert low < np.sqrt(np.mean(np.square(scores))) < high
    names = [name for name in data if name != "patient"]
    by_class = [("sick", name) for name in names if name != "sick"] * ("[nacre]" in request.node.name)
    assert max(map(len, columns_of(kinds["measured"]))) >= 2
    assert set(columns_of(kinds["combined"])) == {*((name,) for name in names), *by_class}
    assert (charges(home), digest(home / "ledger.sqlite")) == (before, ledger)
    assert nacre.marginals(name_of(home), home=home).equals(frame)


def tidy_errors(frame: pd.DataFrame, columns: tuple[str, ...], data: pd.DataFrame) -> list[float]:
    """Return how far each count is from that of the real rows, in its standard errors."""
    bounds = {side: [frame.get(f"{name}_{side}") for name in columns] for side in ("low", "high")}
    cells = frame[list(columns)].astype(str).replace({"True": "true", "False": "false"})
    rows = pd.DataFrame(
        {
            f"{what}_{place}": values
            for place, name in enumerate(columns, 1)
            for what, values in {
                "column": [name] * len(frame),
                "cell": cells[name].tolist(),
                **{
                    side: np.nan if each[place - 1] is None else each[place - 1].tolist()
                    for side, each in bounds.items()
                },
            }.items()
        }
    )
    true = rows.apply(true_counts, axis=1, data=data)
    return ((frame["count"] - true) / frame["standard_error"]).tolist()


def test_one_column_or_two_are_laid_out_a_row_a_cell_with_the_error_they_state(home):
    data, run = make_table(200).to_pandas(), name_of(home)
    whole = nacre.marginals(run, home=home)
    pairs = {pair for names in columns_of(whole) for pair in combinations(names, 2)}
    errors = []
    for columns in [*(("age",), ("ward",), ("dose",), ("smoker",), ("sick",)), *pairs]:
        frame = nacre.marginals(run, *columns, home=home)
        assert not frame.duplicated(list(columns)).any() and frame["share"].sum() == pytest.approx(1)
        assert [name for name in frame if name in data] == list(columns)
        errors += tidy_errors(frame, columns, data)
    # five standard deviations of the size of as many independent errors; a column's counts share tables with another's
    assert len(pairs) > 1 and len(errors) > 30 and 0.5 < np.sqrt(np.mean(np.square(errors))) < 1.8
    for name in ("age", "dose"):
        numbers = nacre.marginals(run, name, home=home).set_index(name)
        assert (numbers.index[numbers[f"{name}_mean"].isna()] == "null").all()
        numbers = numbers.dropna()
        wide = numbers[f"{name}_low"] < numbers[f"{name}_high"]  # a group of one value does not spread
        assert (numbers.loc[wide, f"{name}_stddev"] != 0).any() == wide.any()
        assert numbers[f"{name}_mean"].between(numbers[f"{name}_low"], numbers[f"{name}_high"]).all()
    columns = max(pairs)
    turned = nacre.marginals(run, *reversed(columns), home=home)
    matrix = nacre.marginals(run, *columns, home=home).pivot(index=columns[0], columns=columns[1], values="count")
    again = turned.pivot(index=columns[0], columns=columns[1], values="count")
    assert matrix.notna().all(axis=None) and matrix.equals(again)
    assert nacre.marginals(run, list(columns), home=home).equals(nacre.marginals(run, *columns, home=home))
    age = nacre.marginals(run, "age", home=home)
    assert age["age_low"].is_monotonic_increasing and age["age"].cat.categories.tolist() == age["age"].tolist()


def test_counts_of_columns_are_printed_and_written_as_python_has_them(home, tmp_path):
    words, before = ("marginals", name_of(home)), charges(home)
    whole = nacre.marginals(name_of(home), home=home)
    for columns in (("age",), max(tuple(names[:2]) for names in columns_of(whole) if len(names) > 1)):
        frame = nacre.marginals(name_of(home), *columns, home=home)
        code, out, err = run_cli(*words, *columns, "--home", home)
        assert code == 0, err
        first = frame.iloc[0]
        assert all(name in out for name in frame) and f"{first['count']:.1f}" in out and str(first[columns[0]]) in out
        assert f"{first['standard_error']:.1f}" in out and f"{first['share']:.4f}" in out
        rows = json.loads(run_cli(*words, *columns, "--home", home, "--json")[1])
        assert [row["count"] for row in rows] == frame["count"].tolist() and list(rows[0]) == list(frame)
        out = tmp_path / f"{columns[0]}.parquet"
        code, said, err = run_cli(*words, *columns, "--out", out, "--home", home, "--json")
        assert code == 0 and json.loads(said)["counts"] == len(frame), err
        assert pq.read_table(out).to_pandas().equals(frame)
        assert json.loads(said)["release"] == pq.read_schema(out).metadata[b"nacre.release"].decode()
    code, out, err = run_cli(*words, "--home", home)
    assert (code, out) == (1, "") and "--out is missing: name a file" in err
    code, _, err = run_cli(*words, "aeg", "--home", home)
    assert code == 1 and "did you mean `age`" in err and charges(home) == before


def test_means_by_group_are_those_of_the_real_rows_within_the_interval_up_to_a_long_tail(tmp_path):
    rng, rows = np.random.default_rng(5), 12_000
    cause = rng.choice(["fire", "water", "theft", "flood"], rows, p=[0.2, 0.4, 0.399, 0.001])
    scale = pd.Series(cause).map({"fire": 9, "water": 8, "theft": 7, "flood": 9}).to_numpy()
    paid = np.where(rng.random(rows) < 0.3, 0, np.exp(scale + rng.standard_normal(rows))).clip(0, 500_000).round(2)
    data = pd.DataFrame({"cause": cause, "paid": pd.Series(paid).where(rng.random(rows) < 0.9)})
    columns = {
        "cause": {"type": "categorical", "values": ["fire", "water", "theft", "flood"]},
        "paid": {"type": "number", "min": 0, "max": 500_000, "round": 2, "zero_inflated": True, "nullable": True},
    }
    schema, home = json.dumps({"name": "claims", "columns": columns}), tmp_path / "home"
    made = nacre.synthesize(data, schema, epsilon=1, delta=1e-5, home=home, training=QUICK["nacre"])
    before = charges(home)
    means, true = nacre.means(made, "paid", by="cause"), data.groupby("cause").paid.mean()
    assert list(means)[:3] == ["cause", "mean", "within"] and charges(home) == before
    assert means.cause.dtype == object and (means.cause + means.cause.map(len).map(str)).iloc[0] == "fire4"
    assert means.cause.tolist() == ["fire", "water", "theft", "flood"] and means.index.tolist() == [0, 1, 2, 3]
    means = means.set_index("cause")
    assert means.loc["flood"].drop(["count", "reason"]).isna().all()  # twelve rows: fewer than noise amounts to
    known = means.drop("flood")
    assert "below 4 standard errors" in means.loc["flood"].reason and known.reason.isin(["", DOUBTED]).all()
    apart = (known["mean"] - true[known.index]) / known.standard_error
    assert (apart.abs() < 4).all() and (apart.abs() < 1.96).sum() >= 2
    assert (known.standard_error < 1.5 * true[known.index]).all()
    assert np.allclose(known.standard_error, np.hypot(known.noise, known.inside)) and (known.inside > 0).all()
    assert np.allclose(known["count"], data.groupby("cause").paid.count()[known.index], atol=700)
    _have_totals(made, data, means)
    several = nacre.means(made, "paid", by=["cause"], home=home)
    assert several.set_index("cause").equals(means)
    whole = nacre.means(made, "paid")  # of all rows
    assert (
        whole["column"].tolist() == ["paid"]
        and abs(whole["mean"].iloc[0] - data.paid.mean()) < 4 * whole.standard_error.iloc[0]
    )
    assert whole.standard_error.iloc[0] < data.paid.mean()
    for column, by, says in (
        ("cause", "paid", "column cause has no numbers"),
        ("paid", "paid", "name each of the columns paid, paid once"),
        ("paid", "couse", "did you mean `cause`"),
    ):
        with refused(Unsuitable, says):
            nacre.means(made, column, by=by)


def _have_totals(made: nacre.Result, data: pd.DataFrame, means: pd.DataFrame) -> None:
    """Hold totals to those of the real rows; the last group of these is too small to have one."""
    totals = nacre.means(made, "paid", by="cause", total=True).set_index("cause")
    assert totals.drop(columns=["total", "total_within"]).equals(means)
    assert totals.total.equals((means["mean"] * means["count"]).rename("total")) and totals.total.isna().sum() == 1
    off = totals.total - data.groupby("cause").paid.sum()[totals.index]
    assert (off.abs() < 2 * totals.total_within).sum() == 3
    assert (totals.total_within > means["count"] * means.within).sum() == 3  # nobody knows how many rows there are
    whole = nacre.means(made, "paid", total=True).iloc[0]
    assert abs(whole.total - data.paid.sum()) < 2 * whole.total_within < whole.total
    code, out, err = run_cli("means", made.run, "paid", "--by", "cause", "--total", "--home", made.home)
    assert code == 0 and "total_within" in out and f"{round(totals.total['fire'], -5):,.0f}"[:4] in out, err


@only("nacre")
def test_a_count_of_a_group_is_the_same_whatever_command_says_it(home):
    name = name_of(home)
    of_ward = nacre.marginals(name, "ward", home=home).set_index("ward").likely
    both = nacre.marginals(name, "sick", "ward", home=home)
    assert (both.likely >= 0).all() and list(both)[-1] == "likely"
    summed = both.groupby("ward", observed=True).likely.sum()
    means = nacre.means(name, "sick", by="ward", total=True, home=home).set_index("ward")
    assert np.allclose(summed[of_ward.index], of_ward, rtol=1e-4, atol=0.1)
    assert np.allclose(means["count"][of_ward.index], of_ward, rtol=1e-4, atol=0.1)
    yes = both[both.sick == "yes"].set_index("ward").likely[means.index]
    assert np.allclose(means.total, yes, rtol=1e-4, atol=0.1)


def test_means_of_dates_are_moments_and_their_groups_have_bounds(tmp_path):
    rng, rows, start = np.random.default_rng(6), 8_000, pd.Timestamp("1960-01-01")
    size = rng.integers(0, 100, rows)
    days = pd.to_timedelta((rng.beta(2, 3, rows) * 7_000 + size * 20).astype(int), unit="D")
    data = pd.DataFrame({"size": size, "built": pd.Series(start + days).where(rng.random(rows) < 0.9)})
    columns = {
        "size": {"type": "integer", "min": 0, "max": 99},
        "built": {"type": "datetime", "min": "1960-01-01", "max": "1984-12-31", "nullable": True},
    }
    schema, home = json.dumps({"name": "houses", "columns": columns}), tmp_path / "home"
    made = nacre.synthesize(data, schema, epsilon=2, delta=1e-5, home=home, training=QUICK["nacre"])
    before, means = charges(home), nacre.means(made, "built", by={"size": None})
    assert list(means)[:5] == ["size", "size_low", "size_high", "mean", "within"] and len(means) > 3
    known = means[means["mean"].notna()]
    true = [
        data.built[data["size"].between(low, high)].mean()
        for low, high in zip(known.size_low, known.size_high, strict=True)
    ]
    apart = (known["mean"] - pd.Series(true, known.index)).abs()
    assert len(known) > 3 and (apart < 2 * known.within).all() and (apart < known.within).mean() >= 0.8
    assert (known.within < pd.Timedelta(days=1500)).all() and (known.within > pd.Timedelta(days=10)).all()
    with refused(Unsuitable, "built says nothing, since it holds dates"):
        nacre.means(made, "built", by="size", total=True)
    assert all(pd.api.types.is_timedelta64_dtype(means[one]) for one in ("within", "standard_error", "noise", "inside"))
    assert set(means.reason) <= {"", ALIKE, DROWNED}  # no date is close to a 0, which 1970 is to the reckoning
    decades = nacre.means(made, "size", by={"built": ["1960-01-01", "1972-01-01", "1985-01-01"]})
    assert decades.built[0].startswith("1960-01-01 to 197") and decades["mean"][0] < decades["mean"][1]
    assert decades.built[2] == "null" and len(decades) == 3
    whole = nacre.means(made, "built")
    assert abs(whole["mean"][0] - data.built.mean()) < 2 * whole.within[0] and charges(home) == before
    cells = nacre.marginals(made, "built").dropna(subset="built_low")
    assert (cells.built_low <= cells.built_mean).all() and (
        cells.built_mean < cells.built_high + pd.Timedelta("1D")
    ).all()
    labels = cells.built.astype(str).str.split(" to ")
    assert (labels.str[0] == cells.built_low.astype(str)).all() and (
        labels.str[-1] == cells.built_high.astype(str)
    ).all()
    code, out, err = run_cli("marginals", made.run, "built", "--home", home, "--json")
    assert code == 0 and json.loads(out)[0]["built_low"] == str(cells.built_low[0].date()), err
    assert "1960-01-01 00:00" not in repr(cells)


@only("nacre")
def test_the_mean_of_a_boolean_is_the_share_of_true(home):
    counts = nacre.marginals(name_of(home), "ward", "smoker", home=home)
    counts = counts.pivot(index="ward", columns="smoker", values="count")
    means = nacre.means(name_of(home), "smoker", by="ward", home=home).set_index("ward")
    known = means["mean"].notna()
    assert (known[means.reason == ""]).all() and (means.reason[~known] != "").all()
    shares = counts[True] / (counts[True] + counts[False])
    off = (means["mean"] - shares)[known].abs()
    assert (off <= means.within[known]).all() and (means.inside.dropna() == 0).all()
    one = nacre.means(name_of(home), "smoker", home=home)
    assert len(one) == 1 and one["count"].iloc[0] == pytest.approx(means["count"].sum(), rel=1e-4)
    assert one["mean"].iloc[0] == pytest.approx(np.average(means["mean"], weights=means["count"]), rel=1e-4)


@only("nacre")
def test_the_mean_of_a_category_is_its_share_and_of_yes_and_no_that_of_yes(home):
    name = name_of(home)
    counts = nacre.marginals(name, "ward", "sick", home=home).pivot(index="ward", columns="sick", values="count")
    means = nacre.means(name, "sick", by="ward", home=home).set_index("ward")
    known = means.index[means["mean"].notna()]
    shares = counts["yes"] / (counts["yes"] + counts["no"])
    assert len(known) and ((means["mean"] - shares.clip(0, 1)).abs() <= means.within)[known].all()
    assert (means.within[known] == 1.96 * means.noise[known]).all()
    one = nacre.means(name, "sick", home=home)
    assert one["mean"][0] == pytest.approx(np.average(means["mean"], weights=means["count"]), rel=1e-4)
    wards = nacre.marginals(name, "ward", home=home).set_index("ward")["count"]
    north = nacre.means(name, "ward", value="north", home=home)
    assert north["mean"][0] == pytest.approx(wards["north"] / wards.sum(), abs=north["within"][0])
    assert (means.attrs["value"], north.attrs["value"]) == ("yes", "north")
    printed = run_cli("means", name, "sick", "--by", "ward", "--home", home)[1]
    assert all(percent(one) in printed for one in means["mean"][known])  # as a report has it
    code, out, err = run_cli("means", name, "sick", "--by", "age=0,41.5", "--home", home, "--json")
    assert code == 0 and {one["value"] for one in json.loads(out)} == {"yes"}
    assert "the share of rows whose sick is yes" in err and "beyond the edges is left out: age above" in err
    assert north["count"][0] == pytest.approx(one["count"][0]) == pytest.approx(wards.sum(), rel=0.05)
    for column, value, says in (
        ("ward", None, r"`nacre.marginals\(RUN, 'ward'\)` has shares, and `value=CATEGORY` asks for one"),
        ("ward", "nroth", "does not count nroth of ward by itself; .*did you mean `north`"),
        ("age", 3, "column age has numbers or dates, whose mean needs no value"),
    ):
        with refused(Unsuitable, says):
            nacre.means(name, column, value=value, home=home)


@only("nacre")
def test_ranges_of_a_number_are_joined_to_those_of_the_caller(home):
    name, before = name_of(home), charges(home)
    cells = nacre.marginals(name, "age", "smoker", home=home)
    middle, edge = (cells.age_low + cells.age_high) / 2, float(cells.age_low.max())
    edges = [float(cells.age_low.min()), edge, float(cells.age_high.max())]
    means = nacre.means(name, "smoker", by={"age": edges}, home=home)
    assert charges(home) == before and means.age.tolist() == [
        f"{low:g} to {high:g}" for low, high in zip(means.age_low, means.age_high, strict=True)
    ]
    assert (means.age_low[0], means.age_high.iloc[-1]) == (edges[0], edges[2]) and len(means) == 2
    for group, is_in in zip(means.itertuples(), (middle < edge, middle >= edge), strict=True):
        one = cells[is_in]
        noise = (one.standard_error**2).sum() ** 0.5
        assert abs(group.count - one["count"].sum()) < 4 * noise  # which all tables tell
        if not np.isnan(group.mean):
            share = one[one.smoker]["count"].sum() / one["count"].sum()
            assert abs(group.mean - share) <= group.within and 0 < group.noise <= noise / group.count
    beyond = nacre.means(name, "smoker", by={"age": [-50, *edges]}, home=home)
    assert beyond.equals(means) and 1 < len(nacre.means(name, "smoker", by={"age": 20}, home=home)) < 8
    wide = nacre.means(name, "smoker", by={"age": np.int64(1000)}, home=home)
    noise = (cells.standard_error**2).sum() ** 0.5
    assert len(wide) == 1 and abs(wide["count"][0] - cells["count"].sum()) < 4 * noise
    by_both = nacre.means(name, "smoker", by={"ward": None}, home=home)
    assert by_both.equals(nacre.means(name, "smoker", by="ward", home=home))
    for by, says in (
        ({"age": [5, 5, 9]}, "edges of age are none: write edges that rise"),
        ({"age": "0-18"}, "age is given no edges"),
        ({"age": -5}, "or a width above 0"),
        ({"ward": [0, 1]}, "column ward has no numbers or dates to join"),
        ({"age": [edges[0], edges[0] + 0.01]}, r"no range of age whose middle lies from .* to .*\.01: make"),
        ({"age": ["a", "b"]}, "the edges of age must be numbers"),
    ):
        with refused(Unsuitable, says):
            nacre.means(name, "smoker", by=by, home=home)
    narrow = nacre.means(name, "smoker", by={"age": [edges[0], edges[0] + 0.01, 150]}, home=home)
    (empty,) = narrow.index[narrow.reason == "no counted range has its middle in it"]
    assert len(narrow) == 2 and narrow["mean"].isna().tolist() == [place == empty for place in range(2)]
    assert any("no counted range has its middle in the bands of age" in note for note in narrow.attrs["notes"])
    with refused(Unsuitable, "J of smoker is counted as true: ask for `value` true"):
        nacre.means(name, "smoker", by="ward", value="J", home=home)


@only("nacre")
@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (("aeg",), "counts no column aeg, but sick, age, ward, dose, smoker; did you mean `age`"),
        (("patient",), "column patient is not modeled, so not counted: the release counts sick, age, ward"),
        ((["age", "ward"], "dose"), "columns must be names"),
        (("age", "age"), "name each of the columns age, age once"),
        (("age", "ward", "dose"), "counts age and ward and dose in no table together; a call of"),
    ],
)
def test_columns_that_are_not_counted_are_named_with_those_that_are(home, columns, says):
    with refused(Unsuitable, says):
        nacre.marginals(name_of(home), *columns, home=home)


def test_without_a_target_a_pair_is_added_up_over_neither_of_its_columns(tmp_path):
    home = made(tmp_path, "nacre", target=None)
    run = Run.find(home, name_of(home))
    tables = create("nacre", run.plan.release.measurement, {}).tables(read_release(run.read("sanitize")).value)
    pairs = [table for table in tables if len(table.names) == 2]
    assert len(pairs) == 10 and all(pair.over([name]) is None for pair in pairs for name in pair.names)


@pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
def test_a_number_makes_the_groups_of_the_report_unless_each_counted_value_is_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    persons = rng.integers(1, 48, 9000)
    frame = pd.DataFrame({"persons": persons, "price": (10 * persons + rng.normal(0, 20, 9000)).clip(0, 600).round()})
    columns = {
        "persons": {"type": "integer", "min": 1, "max": 48},
        "price": {"type": "integer", "min": 0, "max": 600},
    }
    schema = {"name": "stays", "columns": columns, "workload": [{"columns": ["price", "persons"]}]}
    home = tmp_path / "home"
    made = nacre.synthesize(frame, schema, epsilon=4, delta=1e-5, home=home, rows=50, internal_report=False)
    before = charges(home)
    (stated,) = (one for one in made.report.facts["groups"] if (one["column"], one["by"]) == ("price", "persons"))
    means, each = nacre.means(made, "price", by="persons"), nacre.means(made, "price", by={"persons": None})
    assert means.persons.tolist() == [label for group in stated["groups"] for label in group["labels"]]
    assert means["mean"].tolist() == pytest.approx([group["released"] for group in stated["groups"]], rel=1e-3)
    assert 4 < len(means) < 10 < len(each) and means.persons_high.tolist()[:-1] < means.persons_low.tolist()[1:]
    assert (means.persons_low[0], means.persons_high.iloc[-1]) == (1, 48)
    (note,) = means.attrs["notes"]
    assert "as in a report; `by={'persons': None}` has each by itself" in note and "notes" not in each.attrs
    code, out, err = run_cli("means", made.run, "price", "--by", "persons", "--home", home, "--json")
    assert code == 0 and [row["persons"] for row in json.loads(out)] == means.persons.tolist()
    assert "`--by persons=each` has each by itself" in err
    code, out, err = run_cli("means", made.run, "price", "--by", "persons=each", "--home", home, "--json")
    assert code == 0 and len(json.loads(out)) == len(each) and "each by itself" not in err and charges(home) == before


def test_a_figure_makes_way_for_a_column_of_its_name(tmp_path):
    data, schema, _ = write_clinic(tmp_path)
    table = pq.read_table(data)
    schema.write_text(schema.read_text().replace("ward:", "count:"))
    renamed = table.rename_columns(["count" if name == "ward" else name for name in table.column_names])
    made = nacre.synthesize(renamed, schema, epsilon=8, delta=1e-5, home=tmp_path / "home", method="moments")
    frame = nacre.marginals(made, "count")
    assert frame["count"].tolist() == ["north", "south", "west"] and frame["count_"].sum() == pytest.approx(200, abs=60)
    means = nacre.means(made, "age", by="count")
    assert means["count"].tolist() == ["north", "south", "west"] and means["count_"].sum() == pytest.approx(200, abs=60)


def test_means_of_derived_columns_follow_from_the_counts_of_those_that_they_are_of(tmp_path):
    table, schema = make_table(3000), yaml.safe_load(make_schema().to_yaml())
    derived = {
        "ages": {"type": "derived", "formula": "age * 2"},
        "given": {"type": "derived", "formula": "dose * age / 10"},
        "fee": {
            "type": "derived",
            "formula": "age * {'true': 3, 'false': 1}[smoker] + {'north': 9, 'south': 5, 'west': 1}[ward]",
        },
        "site": {"type": "derived", "of": "ward", "values": {"north": "A", "south": "A", "west": "B"}},
        "beds": {"type": "derived", "of": "ward", "values": {"north": 10, "south": 20, "west": 40}},
        "bill": {"type": "derived", "formula": "dose * {'true': 3, 'false': 1}[smoker] + age"},
        "odd": {"type": "derived", "formula": "age % 2"},
        "three": {"type": "derived", "formula": "age * dose * {'true': 3, 'false': 1}[smoker]"},
    }
    schema["columns"] |= derived
    del schema["target"]
    contract = Schema.model_validate(schema)
    for name in derived:
        table = table.append_column(name, derive(contract.derived[name], contract.columns, table))
    made = nacre.synthesize(table, contract, epsilon=30, delta=1e-5, home=tmp_path / "home", training=QUICK["nacre"])
    frame, before = table.to_pandas(), charges(tmp_path / "home")

    def off(column: str, by: str | None = None, value: object = None) -> pd.Series:
        means = nacre.means(made, column, by=by, value=value).set_index(by or "column")
        values = frame[column] if value is None else (frame[column] == value).astype(float)
        true = values.groupby(frame[by] if by else [column] * len(frame)).mean()  # groups are called as in the data
        if by:
            assert true.index.tolist() == means.index.tolist(), by
            assert by == "site" or true.index.dtype == means.index.dtype, by
        true = true.reindex(means.index)
        assert (means.within < 0.6 * true).all(), (column, by)
        return (means["mean"] - true) / means.within.clip(lower=1e-6)

    asked = [("ages",), ("ages", "smoker"), ("ages", "site"), ("given",), ("fee",), ("fee", "smoker")]
    asked += [("beds",), ("beds", "smoker"), ("beds", "site"), ("age", "site"), ("dose", "beds")]
    asked += [("site", "smoker", "A"), ("site", None, "B"), ("beds", "smoker", 40), ("beds", None, 20)]
    far = {one: worst for one in asked if (worst := off(*one).abs().max()) > 2}
    assert not far
    assert charges(tmp_path / "home") == before
    for column, by, says in (
        ("odd", "ward", "counts age in ranges of several values each, of which `age % 2` cannot be told"),
        ("given", "ward", "^given follows from dose and age, which the release counts in no table together with ward"),
        ("three", None, "^three follows from age, dose and smoker, which the release counts in no table together: of"),
        ("bill", None, "these have different rows, since some of its columns have nulls"),
        ("givn", None, "did you mean `given`"),
        ("age", "given", "column given is derived from dose and age, and not counted"),
        ("dose", "ages", "group by age itself"),
    ):
        with refused(Unsuitable, says):
            nacre.means(made, column, by=by)
    with refused(Unsuitable, r"^column ages is derived from age, and not counted .+: ask for age, or take"):
        nacre.marginals(made, "ages")
    for where, wards in (("site=A", {"north", "south"}), ("site!=A", {"west"}), ("beds=20.0", {"south"})):
        assert {*nacre.sample(made, 60, where=where).ward} == wards
    with refused(Unsuitable, "no value of column ward stands for C; site has A, B"):
        nacre.sample(made, 5, where="site=C")
    words = ("means", made.run, "ages", "--by", "site", "--by", "age=0,40,100", "--home", tmp_path / "home")
    code, out, err = run_cli(*words, "--json")
    assert code == 0, err
    assert json.loads(out) == nacre.means(made, "ages", by={"site": None, "age": [0, 40, 100]}).to_dict("records")
    code, out, err = run_cli(*words, "--out", tmp_path / "means.csv")
    assert code == 0 and "means in" in out and next(iter(pd.read_csv(tmp_path / "means.csv"))) == "site", err
    code, out, err = run_cli(*words, "--out", tmp_path / "komma.csv", "--text", '{decimal: ","}')
    assert code == 0 and re.search(r"^A;0 to \d+;0;\d+;\d+,\d{1,5};", (tmp_path / "komma.csv").read_text(), re.M), err
    begins = f"{pd.read_csv(tmp_path / 'means.csv')['age_low'].drop_duplicates().iloc[1]:.10g}"
    assert ("bands begin for age at 0, " + begins in err) == (begins != "40")
    code, out, err = run_cli("means", made.run, "ages", "--by", "age=0,b", "--home", tmp_path / "home")
    assert code == 1 and "the edges in age=0,b are none" in err


def test_a_release_that_counts_only_classes_gives_these_and_one_that_counts_nothing_is_refused(tmp_path):
    home = made(tmp_path, "pearl")
    frame = nacre.marginals(name_of(home), home=home)
    assert frame["column_1"].tolist() == ["sick"] * 2 and frame["cell_1"].tolist() == ["no", "yes"]
    assert not {"column_2", "columns", "cells"} & {*frame}
    assert set(frame.kind) == {"measured"}
    no_target = make_schema(target=None)
    (tmp_path / "clinic.yaml").write_text(no_target.to_yaml())
    code, _, err = run_cli(*synthesize_words(tmp_path, out=tmp_path / "two", home=tmp_path / "home2"))
    assert code == 0, err
    code, out, err = run_cli(
        "marginals", name_of(tmp_path / "home2"), "--out", tmp_path / "n.parquet", "--home", tmp_path / "home2"
    )
    assert (code, out, err.count("\n")) == (1, "", 1) and "holds no counts of columns" in err
    assert not (tmp_path / "n").exists()


@only("nacre")
@pytest.mark.parametrize("ending", ["csv", "arrow", "jsonl"])
def test_the_ending_says_in_which_format_rows_and_tables_are_written(home, tmp_path, ending):
    rows, tables = tmp_path / f"rows.{ending}", tmp_path / f"tables.{ending}"
    code, _, err = sample(home, rows)
    assert code == 0, err
    code, _, err = run_cli("marginals", name_of(home), "--out", tables, "--home", home)
    assert code == 0, err
    read = {"csv": pd.read_csv, "arrow": pd.read_feather, "jsonl": lambda file: pd.read_json(file, lines=True)}[ending]
    expected, frame = nacre.sample(name_of(home), 300, home=home), read(rows)
    assert list(frame) == list(expected) and frame.age.tolist() == expected.age.tolist()
    assert frame.ward.tolist() == expected.ward.tolist()
    counts = nacre.marginals(name_of(home), home=home)
    assert np.allclose(read(tables)["count"], counts["count"])
    for name in ("column_1", "cell_1", "column_2", "cell_2"):
        written, expected = (
            each[name].astype(object).fillna("null" if "cell" in name else "") for each in (read(tables), counts)
        )
        assert written.tolist() == expected.tolist()


@only("nacre")
@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.csv.gz"])
def test_an_ending_that_names_no_format_is_refused_before_anything_is_written(home, tmp_path, name):
    code, _, err = sample(home, tmp_path / name)
    assert code == 1 and "end in .parquet, .csv, .arrow or .jsonl" in err
    code, _, err = run_cli("marginals", name_of(home), "--out", tmp_path / name, "--home", home)
    assert code == 1 and ".jsonl" in err
    assert list(tmp_path.iterdir()) == []
