"""Ingest out of core: parts, the gate's witnesses, and a bound on memory that the table's size does not move."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.privacy import Sensitive
from dpmodels.reading import formats
from dpmodels.reading.ingest import transform_encode
from dpmodels.reading.load import load_parts
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import Threads
from tasks.kinds.tables import check_raw
from tests.kit.errors import refused
from tests.kit.every_kind import make
from tests.kit.support import make_schema, make_table

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


def encoded(parts: list[Sensitive], schema: Schema, folder: Path, threads: int = 1) -> Records:
    folder.mkdir()
    gate = Gate(schema, raw=True)
    transform_encode(parts, gate, folder, Threads(threads).map)
    assert not gate.broken and {outcome.checked for outcome in gate.outcomes} == {5000}
    return Records.concat(list(EncodedTable(folder, schema)))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_folder_is_encoded_in_parts_to_the_rows_it_holds(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(formats, "PART_ROWS", 900)
    table, schema, data = make_table(5000), make_schema(), tmp_path / "data"
    data.mkdir()
    pq.write_table(table.slice(0, 3100), data / "a.parquet", row_group_size=500)
    pq.write_table(table.slice(3100), data / "b.parquet", row_group_size=500, use_dictionary=False)
    parts = load_parts(data, schema, 64)
    assert len(parts) == 4 + 2
    found, whole = encoded(parts, schema, tmp_path / "out", threads), Codec(schema).encode(table)
    assert np.array_equal(found.states, whole.states) and np.array_equal(found.values, whole.values)
    assert len(list((tmp_path / "out").iterdir())) == 6


WITNESSED = """
name: witnessed
columns:
  a: {type: integer, min: 0, max: 99}
  b: {type: integer, min: 0, max: 99, nullable: true, max_null_share: 0.25}
  c: {type: categorical, values: [x, y], outside: other, other: x}
  d: {type: datetime, min: 2020-01-01, max: 2020-12-31, nullable: true}
constraints: [a <= b]
"""


def witnessed(rows: int, rng: np.random.Generator) -> pa.Table:
    low, high = np.sort(rng.integers(0, 100, (2, rows)), axis=0)
    return pa.table(
        {
            "a": low,
            "b": pa.array(high, mask=np.arange(rows) % 5 == 0),
            "c": rng.choice(["x", "y", "z"], rows),
            "d": pa.array(np.datetime64("2020-01-01") + rng.integers(0, 366, rows), mask=rng.random(rows) < 0.1),
        }
    )


def test_the_suite_sees_few_rows_and_they_are_enough(monkeypatch):
    schema, seen = make(WITNESSED), []
    gate, run = Gate(schema, raw=True), Gate._validate
    monkeypatch.setattr(Gate, "_validate", lambda self, frame: seen.append(len(frame["a"])) or run(self, frame))
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert gate.check_encoded(witnessed(1000, rng).to_batches()[0])
    assert not seen
    gate.settle()
    assert not gate.broken and sum(seen) < 300
    assert {outcome.checked for outcome in gate.outcomes} == {20_000}
    assert [outcome.failed for outcome in gate.outcomes if outcome.rule.share < 1] == [4000]


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("a", 100, "a must lie"),
        ("a", -1, "a must lie"),
        ("a", None, "a must not be null"),
        ("b", 0, "`a <= b` must hold"),
    ],
)
def test_one_bad_row_in_one_batch_is_found_whoever_looks(column, value, rule):
    schema, rng = make(WITNESSED), np.random.default_rng(1)
    tables = [witnessed(200, rng) for _ in range(5)]
    index = tables[3].schema.get_field_index(column)
    values = tables[3][column].to_pylist()
    values[77] = value
    tables[3] = tables[3].set_column(index, column, pa.array(values, tables[3][column].type))
    gate = Gate(schema, raw=True)  # as if the codec had let it pass: the witnesses still break the rule
    for table in tables:
        gate.check_encoded(table.to_batches()[0])
    gate.settle()
    assert any(rule in str(each) for each in gate.broken)


def test_nulls_are_counted_over_all_parts(tmp_path):
    schema, rng = make(WITNESSED), np.random.default_rng(2)
    good = witnessed(400, rng)
    empty = good.set_column(1, "b", pa.nulls(400, pa.int64()))
    transform_encode([Sensitive(iter(good.to_batches()))], Gate(schema, raw=True), tmp_path)
    parts = [Sensitive(iter(table.to_batches())) for table in (good, empty)]
    with refused(DataError, "b may be null in 25 % of the rows at most"):
        transform_encode(parts, Gate(schema, raw=True), tmp_path)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_the_first_rows_of_a_user_stay_whatever_the_batches(tmp_path, kind):
    users = np.random.default_rng(3).integers(0, 400, 5000)
    table = make_table(5000).set_column(0, "patient", pa.array(users).cast(kind))
    table = table.set_column(1, "age", pa.array(np.arange(5000) % 100))
    pq.write_table(table, tmp_path / "users.parquet", row_group_size=700)
    schema = make_schema(unit={"user": "patient", "max_rows": 3})
    earlier: dict[int, int] = {}
    stay = []
    for row, user in enumerate(users.tolist()):
        earlier[user] = earlier.get(user, 0) + 1
        stay += [row] if earlier[user] <= 3 else []
    for batch_rows in (64, 5000):
        (part,) = load_parts(tmp_path / "users.parquet", schema, batch_rows)
        kept = pa.concat_tables(
            [pa.Table.from_batches([batch]) for batch in part.reveal()], promote_options="permissive"
        )
        assert kept["age"].to_pylist() == (np.array(stay) % 100).tolist()


CHILD = """
import resource, sys
from pathlib import Path
from dpmodels.gate.expectations import Gate
from dpmodels.reading.ingest import transform_encode
from dpmodels.reading.load import load_parts
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.summation import transform_sum
from dpmodels.privacy import Sensitive
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import Threads
from tasks.kinds.tables import check_raw
from tests.kit.support import make_schema

def pipeline(data, folder):
    folder.mkdir()
    transform_encode(load_parts(data, make_schema(), 20_000), Gate(make_schema(), raw=True), folder, Threads(2).map)
    table = EncodedTable(folder, make_schema(), Threads(2))
    transform_sum(Moments(Partition.fine(make_schema(), 16), 3, 5, 1), Sensitive(table))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

small, large, folder = map(Path, sys.argv[1:])
print(pipeline(small, folder / "small"), pipeline(large, folder / "large"))
"""


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_table(tmp_path):
    table = make_table(20_000)
    pq.write_table(pa.concat_tables([table] * 3), tmp_path / "small.parquet")
    with pq.ParquetWriter(tmp_path / "large.parquet", table.schema) as writer:  # one row group of two million rows
        writer.write_table(pa.concat_tables([table] * 100), row_group_size=2**22)
    raw = 100 * table.nbytes
    places = [tmp_path / "small.parquet", tmp_path / "large.parquet", tmp_path]
    done = subprocess.run([sys.executable, "-c", CHILD, *places], cwd=ROOT, capture_output=True, text=True, check=True)
    small, large = (int(kilobytes) * 1024 for kilobytes in done.stdout.split())
    assert raw > 75e6 and large - small < raw / 4, (raw, large - small)


TWO_ROUNDS = """
name: rounds
columns:
  id: {type: identifier}
  age: {type: integer, min: 0, max: 120}
  first: {type: number, min: 0, max: 10}
  last: {type: number, min: 0, max: 10}
  seen: {type: datetime, min: 2020-01-01, max: 2022-01-01}
  ward: {type: categorical, values: [a, b]}
  sick: {type: boolean}
  whole: {type: derived, formula: age + first}
constraints: [first <= last, when sick then age > 10]
"""
BROKEN_ROWS = """id,age,first,last,seen,ward,sick,whole
1,200,1,2,2021-02-03,a,true,201
2,50,x,2,2021-02-03,b,false,51
3,50,1,2,03.02.2021,zz,,51
4,5,1,2,2021-02-03,a,true,6
"""


def test_a_column_of_another_type_hides_no_fault_of_the_others(tmp_path):
    (data := tmp_path / "rows.csv").write_text(BROKEN_ROWS)
    with refused(DataError, column="") as caught:
        check_raw(str(data), make(TWO_ROUNDS), 2)
    about = [" ".join(fault.split()[:3]) for fault in caught.value.faults]
    assert about[:2] == ["column first: must", "column seen: must"]  # of two batches
    rest = ["column age must", "column ward must", "column sick must"]
    assert sorted(about[2:]) == sorted([*rest, "`when sick then"])  # and nothing of what follows from `first`
    assert not any(value in str(caught.value) for value in ("200", "zz", "03.02"))


def test_what_is_no_column_is_said_once(tmp_path):
    (data := tmp_path / "rows.csv").write_text(BROKEN_ROWS.replace("age", "edad"))
    with refused(DataError, column="age", faults=()):
        check_raw(str(data), make(TWO_ROUNDS), 2)


def test_typed_columns_are_named_with_the_values_of_others(tmp_path):
    table = pa.table({"age": ["x"], "first": ["y"], "last": [99.0]})
    pq.write_table(table, data := tmp_path / "rows.parquet")
    columns = TWO_ROUNDS.partition("  seen")[0].replace("  id: {type: identifier}\n", "")
    with refused(DataError) as caught:
        check_raw(str(data), make(columns), 2)
    assert [fault.split()[1] for fault in caught.value.faults] == ["age:", "first:", "last"]
