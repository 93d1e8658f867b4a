"""Nights that are declared disjoint are: whatever files they are given, a row is read in one of them at most."""

import json
import shutil
import stat
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.fingerprint import Fingerprint
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, InvalidArgument, LedgerError, Unsuitable
from dpmodels.gate.expectations import Gate
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from dpmodels.reading.ingest import transform_encode
from dpmodels.reading.load import load_parts
from flows.config import SynthesizeConfig
from flows.kinds.tables import prepare
from flows.night import synthesize_night
from flows.partitions import check_nights
from flows.synthesize import carry_out, pipeline, start
from tasks.engine.encoded import EncodedTable
from tasks.run.store import Run
from tests.kit.errors import refused
from tests.kit.every_kind import make
from tests.kit.support import make_schema, make_table, write_clinic

DAYS = [date(2026, 1, day) for day in (1, 2, 3, 4)]
SEEN = {"type": "datetime", "min": date(2026, 1, 1), "max": date(2026, 12, 31)}
VISITS = """
name: visits
partition: seen
columns:
  seen: {type: datetime, min: 2026-01-01, max: 2026-12-31, resolution: minute, nullable: true}
  age: {type: integer, min: 0, max: 99}
"""


def clinic_schema(seen: dict[str, object] | None = None, **changes: object) -> Schema:
    columns = make_schema().model_dump(mode="python")["columns"]
    return make_schema(**{"columns": {"seen": seen or SEEN, **columns}, "partition": "seen", **changes})


def write_visits(folder: Path, rows: int = 80) -> None:
    """Write one table of four days, and the clinic's schema with its partition column."""
    write_clinic(folder)
    (folder / "clinic.yaml").write_text(clinic_schema().to_yaml())
    write_days(folder / "clinic.parquet", [DAYS[row % 4] for row in range(rows)])
    (folder / "home").mkdir()
    cap = PrivacyBudget(epsilon=1, delta=1e-5)
    Ledger(folder / "home" / "ledger.sqlite").open_account("clinic", dataset="clinic", budget_cap=cap)


def write_days(path: Path, days: list[date], seed: int = 0) -> None:
    pq.write_table(make_table(len(days), seed).append_column("seen", pa.array(days)), path)


def config(folder: Path, out: str, data: str = "clinic.parquet", **privacy: object) -> SynthesizeConfig:
    settings = {
        "data": folder / data,
        "schema": folder / "clinic.yaml",
        "out": folder / out,
        "privacy": {"target_epsilon": 1, "delta": 1e-5, "account": "clinic", **privacy},
        "runtime": {"home": folder / "home", "prefect": False, "threads": 1},
    }
    return SynthesizeConfig.build(settings, folder / "config.yaml")


def night(folder: Path, day: date, data: str = "clinic.parquet") -> Run:
    run = start(config(folder, f"out-{day}", data), f"clinic-{day}", str(day))
    pipeline(run, lambda stage, *handles: stage(*handles))
    return run


def rows_of(run: Run) -> Records:
    return Records.concat(list(EncodedTable(run.sensitive / "encoded", run.plan.release.table)))


def test_of_one_file_given_every_night_each_row_is_read_in_one_night(tmp_path: Path):
    write_visits(tmp_path)
    runs = [night(tmp_path, day) for day in DAYS]
    assert [len(rows_of(run)) for run in runs] == [20] * 4  # each row was read in one night
    table = pq.read_table(tmp_path / "clinic.parquet")
    for run, day in zip(runs, DAYS, strict=True):
        own = table.filter(pa.compute.equal(table["seen"], day))
        assert np.array_equal(rows_of(run).states, Codec(run.plan.release.table).encode(own).states)
        assert set(pq.read_table(run.settings.out / "synthetic")["seen"].to_pylist()) == {day}
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    assert ledger.balance("clinic").spent_epsilon <= 1 and ledger.verify() == []
    assert ledger.balance("clinic").children == tuple(f"clinic/seen={day}" for day in DAYS)


def test_a_table_whose_day_alone_was_changed_is_refused_before_anything_is_charged(tmp_path: Path):
    write_visits(tmp_path)
    table = make_table(60)
    for day, rows in ((DAYS[0], table), (DAYS[1], table.take(np.random.default_rng(0).permutation(60)))):
        pq.write_table(rows.append_column("seen", pa.array([day] * 60)), tmp_path / f"{day}.parquet", row_group_size=17)
    night(tmp_path, DAYS[0], f"{DAYS[0]}.parquet")
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    before = len(ledger.entries())
    with refused(DataError, "the rows of another partition", column=""):
        night(tmp_path, DAYS[1], f"{DAYS[1]}.parquet")
    assert ledger.entries()[before:] == []
    run = Run.find(tmp_path / "home", f"clinic-{DAYS[0]}")
    pipeline(run, lambda stage, *handles: stage(*handles))  # the same partition may go on, and be ingested again
    (run.control / "stages" / "sanitize.json").unlink()
    shutil.rmtree(run.settings.out)
    (run.sensitive / "encoded").rename(run.sensitive / "away")
    pipeline(run, lambda stage, *handles: stage(*handles))
    write_days(tmp_path / "other.parquet", [DAYS[1]] * 60, seed=1)  # nor is the partition that was refused barred
    (tmp_path / "home" / "control" / f"clinic-{DAYS[1]}" / "settings.json").unlink()
    night(tmp_path, DAYS[1], "other.parquet")
    remembered = [path for path in (tmp_path / "home" / "sensitive" / ".partitions").rglob("*") if path.is_file()]
    assert len(remembered) == 3 and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in remembered)


def encoded(path: Path, schema: Schema, folder: Path) -> list[tuple[object, ...]]:
    folder.mkdir()
    transform_encode(load_parts(path, schema, 7), Gate(schema, raw=True), folder)
    records = Records.concat(list(EncodedTable(folder, schema)))
    return list(zip(*(codes.tolist() for codes in records.codes), strict=True))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("place", [0, 25, 60])
@pytest.mark.nightly_if("60-csv", "0-csv", "25-parquet")  # beside each place and each form
def test_a_row_more_changes_one_partition_by_one_row(tmp_path: Path, place: int, kind: str):
    schema, table = clinic_schema(), make_table(61)
    whole = table.append_column("seen", pa.array([DAYS[row % 3] for row in range(61)]))
    less = pa.concat_tables([whole.slice(0, place), whole.slice(place + 1)])
    write = pq.write_table if kind == "parquet" else pyarrow.csv.write_csv
    for name, each in (("whole", whole), ("less", less)):
        write(each, tmp_path / f"{name}.{kind}")
    changed = 0
    for day in DAYS[:3]:
        part = schema.of_partition(str(day))
        more, fewer = (
            encoded(tmp_path / f"{name}.{kind}", part, tmp_path / f"{name}-{day}") for name in ("whole", "less")
        )
        changed += len(more) - len(fewer)
        own = DAYS[place % 3] == day
        assert len(more) - len(fewer) == own
        if own:
            more.pop(place // 3)
        assert more == fewer
    assert changed == 1


MOMENTS = [
    datetime(2025, 12, 31, 23, 59, 59, 999_999),
    datetime(2026, 1, 1),
    datetime(2026, 1, 1, 23, 59, 59, 999_999),
    datetime(2026, 1, 2),
    None,
    datetime(2027, 1, 1),
]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_moment_is_in_the_partition_of_its_day_and_null_in_none(tmp_path: Path, unit: str, kind: str):
    seen = pa.array(MOMENTS, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
    table = pa.table({"seen": seen, "age": list(range(6))})
    (pq.write_table if kind == "parquet" else pyarrow.csv.write_csv)(table, tmp_path / f"t.{kind}")
    schema, found = make(VISITS), {}
    for day in ("2026-01-01", "2026-01-02"):
        found[day] = [row[1] for row in encoded(tmp_path / f"t.{kind}", schema.of_partition(day), tmp_path / day)]
    assert found == {"2026-01-01": [1, 2], "2026-01-02": [3]}


def test_a_moment_before_1970_is_in_its_own_day(tmp_path: Path):
    schema = make(VISITS.replace("2026-01-01", "1960-01-01"))
    moments = [datetime(1969, 12, 30, 23, 59), datetime(1969, 12, 31, 0, 1), datetime(1970, 1, 1)]
    pq.write_table(pa.table({"seen": moments, "age": [1, 2, 3]}), tmp_path / "t.parquet")
    rows = encoded(tmp_path / "t.parquet", schema.of_partition("1969-12-31"), tmp_path / "out")
    assert [row[1] for row in rows] == [2]


def test_a_moment_with_a_zone_is_refused_since_its_day_depends_on_the_reader(tmp_path: Path):
    part = make(VISITS).of_partition("2026-01-01")
    moments = pa.array([datetime(2026, 1, 1)], pa.timestamp("us", tz="Asia/Tokyo"))
    pq.write_table(pa.table({"seen": moments, "age": [1]}), tmp_path / "t.parquet")
    with refused(DataError, "times without a zone", column="seen"):
        load_parts(tmp_path / "t.parquet", part, 7)
    (tmp_path / "t.csv").write_text("seen,age\n2026-01-01T10:00:00+09:00,1\n")
    with refused(DataError, "must hold dates in every row", column="seen"):
        encoded(tmp_path / "t.csv", part, tmp_path / "out")


WARDS = "name: w\npartition: ward\ncolumns:\n  ward: {0}\n  age: {{type: integer, min: 0, max: 99}}\n"


@pytest.mark.parametrize(
    ("column", "kind", "rows"),
    [
        ("{type: categorical, values: [a, b]}", pa.string(), [1, 4]),
        ("{type: categorical, values: [a, b], nullable: true}", pa.dictionary(pa.int8(), pa.string()), [1, 4]),
        ("{type: categorical, values: [a, b], outside: other, other: a}", pa.string_view(), [1, 4]),
        ("{type: identifier}", pa.large_string(), [1, 4]),
    ],
)
def test_a_category_is_a_partition_and_what_is_not_listed_is_in_none(tmp_path: Path, column: str, kind, rows):
    table = pa.table({"ward": pa.array(["b", "a", None, "zebra", "a", " a"], kind), "age": list(range(6))})
    pq.write_table(table, tmp_path / "t.parquet")
    part = make(WARDS.format(column)).of_partition("a")
    assert [row[-1] for row in encoded(tmp_path / "t.parquet", part, tmp_path / "out")] == rows


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([date(2026, 1, 2), date(2026, 1, 1), None], pa.date32()),
        ([datetime(2026, 1, 2), datetime(2026, 1, 1, 23, 59), None], pa.timestamp("us")),
        (["2026-01-02", "2026-01-01", None], pa.string()),
        (["2026-01-02", "2026-01-01", None], pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_a_dropped_column_may_tell_days_apart(tmp_path: Path, values: list[object], kind: pa.DataType):
    pq.write_table(pa.table({"ward": pa.array(values, kind), "age": [0, 1, 2]}), tmp_path / "t.parquet")
    part = make(WARDS.format("{type: identifier}")).of_partition("2026-01-01")
    assert encoded(tmp_path / "t.parquet", part, tmp_path / "out") == [(1,)]


@pytest.mark.parametrize("other", ["no day", None, "2026-02-30T10:00:00"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_of_json_lines_one_row_puts_no_other_into_another_partition(tmp_path: Path, other: str | None, place: int):
    """Left to itself, Arrow reads text as moments where all of it is moments, and a moment is in its day."""
    text = VISITS.replace(
        "{type: datetime, min: 2026-01-01, max: 2026-12-31, resolution: minute, nullable: true}", "{0}"
    )
    schema = make(text.replace("{0}", "{type: identifier}")).of_partition("2026-01-01")
    rows = [{"seen": f"2026-01-01{time}", "age": age} for age, time in enumerate(("T10:00:00", ""))]
    held = []
    for index, table in enumerate((rows, [*rows[:place], {"seen": other, "age": 50}, *rows[place:]])):
        path = tmp_path / f"{index}.jsonl"
        path.write_text("\n".join(map(json.dumps, table)))
        found = [batch for part in load_parts(path, schema, 10) for batch in part.reveal()]
        held.append([age for batch in found for age in batch.column("age").to_pylist()])
    assert held[0] == held[1]


def test_a_dropped_column_of_fractions_tells_nothing_apart(tmp_path: Path):
    pq.write_table(pa.table({"ward": [1.0], "age": [0]}), tmp_path / "t.parquet")
    with refused(DataError, "to tell partitions apart", column="ward"):
        encoded(tmp_path / "t.parquet", make(WARDS.format("{type: identifier}")).of_partition("1"), tmp_path / "out")


def test_rows_of_other_partitions_are_held_to_nothing_and_those_of_none_are_no_data(tmp_path: Path):
    table = pa.table({"seen": [datetime(2026, 1, 1), datetime(2026, 1, 2)], "age": [1, 8675309]})
    pq.write_table(table, tmp_path / "t.parquet")
    schema = make(VISITS)
    assert len(encoded(tmp_path / "t.parquet", schema.of_partition("2026-01-01"), tmp_path / "a")) == 1
    with refused(DataError, "age must lie"):
        encoded(tmp_path / "t.parquet", schema.of_partition("2026-01-02"), tmp_path / "b")
    with refused(DataError, "no rows", column=""):
        encoded(tmp_path / "t.parquet", schema.of_partition("2026-01-03"), tmp_path / "c")


def test_the_whole_table_is_read_without_a_value(tmp_path: Path):
    write_visits(tmp_path)
    run = start(config(tmp_path, "out"))
    pipeline(run, lambda stage, *handles: stage(*handles))
    assert len(rows_of(run)) == 80 and run.settings.account == "clinic" and run.plan.release.table.name == "clinic"


def test_the_partition_is_in_the_plan_and_its_hash(tmp_path: Path):
    write_visits(tmp_path)
    plans = [prepare(config(tmp_path, "out"), str(day)).lines[0] for day in DAYS]
    assert [plan.table.partition.value for plan in plans] == list(map(str, DAYS))
    assert len({plan.hash for plan in plans} | {plan.table.hash for plan in plans}) == 8
    written = Schema.model_validate_json(plans[0].table.model_dump_json())
    assert written == plans[0].table == parse(plans[0].table.to_yaml())[0]
    with pytest.raises(Unsuitable, match="without a value"):
        written.of_partition(str(DAYS[1]))


def test_a_schema_without_a_partition_keeps_its_hash():
    assert make_schema().hash == "9097aca5396d3c159dc456d7e42f282e17bc3a7ca14156c5d97079121751801e"


def test_partitions_by_two_columns_are_not_disjoint_and_neither_are_those_of_before(tmp_path: Path):
    write_visits(tmp_path)
    carry_out(start(config(tmp_path, "a"), "a", str(DAYS[0])), prefect=False)
    columns = clinic_schema().model_dump(mode="python")["columns"]
    left = {**SEEN, "min": date(2025, 1, 1), "max": date(2027, 1, 1)}
    other = make_schema(columns={"left": left, **columns}, partition="left")
    (tmp_path / "clinic.yaml").write_text(other.to_yaml())
    rows = pq.read_table(tmp_path / "clinic.parquet")
    pq.write_table(rows.append_column("left", rows["seen"]), tmp_path / "clinic.parquet")
    with pytest.raises(LedgerError, match="told apart otherwise"):
        start(config(tmp_path, "b"), "b", str(DAYS[1]))
    old = tmp_path / "old"
    write_visits(old)
    ledger, cap = Ledger(old / "home" / "ledger.sqlite"), PrivacyBudget(epsilon=1, delta=1e-5)
    ledger.open_account("clinic/2026-01-01", dataset="clinic-2026-01-01", budget_cap=cap, parent="clinic")
    with pytest.raises(LedgerError, match=r"told apart otherwise \(clinic/2026-01-01\)"):
        start(config(old, "b"), "b", str(DAYS[1]))


@pytest.mark.parametrize(
    ("data", "out", "partitions", "schema", "name", "says"),
    [
        ("d", "out", "disjoint", {}, "out", r"hold \{night\}"),
        ("{night}", "out", "sequential", {}, "out", r"hold \{night\}"),
        ("d", "{night}", "sequential", {}, "data", r"hold \{night\}"),
        ("{night}", "{night}", "disjoint", {"partition": None}, "partitions", "sequential, unless"),
        ("d", "{night}", "disjoint", {"partition": None}, "partitions", "sequential, unless"),
    ],
)
def test_nights_that_would_read_or_write_the_same_are_refused(
    tmp_path: Path, data: str, out: str, partitions: str, schema: dict[str, object], name: str, says: str
):
    write_visits(tmp_path)
    (tmp_path / "clinic.yaml").write_text(clinic_schema().model_copy(update=schema).to_yaml())
    with refused(InvalidArgument, says, name=name):
        synthesize_night.fn(config(tmp_path, out, data), partitions, DAYS[0])
    assert not list((tmp_path / "home").glob("released/*"))


def test_users_and_nights_that_add_up_need_no_partition_column(tmp_path: Path):
    write_visits(tmp_path)
    nightly = config(tmp_path, "{night}", "{night}.parquet")
    check_nights(nightly, make_schema(), disjoint=False)
    check_nights(config(tmp_path, "{night}"), clinic_schema(), disjoint=True)
    by_user = make_schema(unit={"user": "patient", "max_rows": 2})
    check_nights(nightly, by_user, disjoint=False)
    with refused(InvalidArgument, "unit of users", name="partitions", value="disjoint"):
        check_nights(nightly, by_user, disjoint=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"partition": "nobody"}, "`nobody` is no column of this schema"),
        ({"partition": "age"}, "`age` must be a datetime"),
        ({"partition": "smoker"}, "`smoker` must be a datetime"),
        ({"partition": "patient"}, "`patient` must be a datetime"),  # regenerated: no value of it is the row's
        ({"partition": "sick"}, "`sick` must not be the target"),
        ({"partition": {"column": "ward", "value": "east"}}, "`ward` has no partition east"),
        ({"partition": "ward", "unit": {"user": "patient", "max_rows": 2}}, "goes with `unit: record`"),
        ({"partition": "ward", "target": None, "columns": {"ward": {"type": "categorical", "values": ["a"]}}}, "only"),
    ],
)
def test_a_partition_that_could_not_tell_rows_apart_is_a_fault_of_the_schema(change: dict[str, object], words: str):
    text = yaml.safe_dump({**yaml.safe_load(make_schema().to_yaml()), **change})
    schema, faults = parse(text)
    assert schema is None and [fault.where for fault in faults] == ["partition"]
    assert words in faults[0].message


def test_a_fingerprint_is_of_rows_and_not_of_their_order_or_their_day():
    schema, secret = clinic_schema(), b"s" * 32
    table = make_table(500).append_column("seen", pa.array([DAYS[0]] * 500))
    later = table.set_column(6, "seen", pa.array([DAYS[1]] * 500))
    codec = Codec(schema)

    def digest(*tables: pa.Table, key: bytes = secret) -> str:
        found = Fingerprint(schema, key)
        for each in tables:
            found.add(codec.encode(each))
        return found.digest

    whole = digest(table)
    assert digest(table.slice(300), table.slice(0, 300)) == digest(later) == whole
    assert digest(table, key=b"t" * 32) != whole != digest(table.slice(1))
    changed = table.set_column(1, "age", pa.array([*table["age"].to_pylist()[:-1], 99 - table["age"][-1].as_py()]))
    assert digest(changed) != whole
    swapped = table.set_column(4, "smoker", table["smoker"].take(pa.array([1, 0, *range(2, 500)])))
    assert (digest(swapped) == whole) == (table["smoker"][0] == table["smoker"][1])
    assert digest(table.slice(0, 1), table.slice(0, 1), table) != digest(table, table.slice(1, 1), table.slice(1, 1))


def test_two_columns_do_not_part_one_account_however_the_runs_are_timed(tmp_path: Path):
    """Both were started before either was charged: the account is opened when it is charged, and looks again."""
    write_visits(tmp_path)
    by_day = start(config(tmp_path, "day"), "by-day", str(DAYS[0]))
    (tmp_path / "clinic.yaml").write_text(clinic_schema(partition="ward").to_yaml())
    by_ward = start(config(tmp_path, "ward"), "by-ward", "north")
    carry_out(by_day, prefect=False)
    with pytest.raises(LedgerError, match="told apart otherwise"):
        carry_out(by_ward, prefect=False)
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    assert [account.name for account in ledger.accounts()] == ["clinic", f"clinic/seen={DAYS[0]}"]
