"""Identifiers that no two rows may share: raw tables are held to it over all files, in whatever parts they are read."""

import json
import pickle
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as Picture

import nacre
from dpmodels.authoring.lint import parse
from dpmodels.contract.remarks import FIRST_ROWS, before_a_charge
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.gate.repeats import Repeats
from dpmodels.gate.suite import REPEATED, UNIQUE, suite_for
from dpmodels.reading.database import Query
from dpmodels.reading.ingest import faults_in, transform_check
from dpmodels.reading.load import load_parts
from tasks.kinds.tables import check_raw
from tests.kit.errors import refused
from tests.kit.every_kind import make
from tests.kit.support import run_cli

TEXT = """name: visits
unit: {unit}
columns:
  who: {{type: identifier{more}}}
  note: {{type: identifier}}
  age: {{type: integer, min: 0, max: 99}}
"""
PLAIN, HELD = (make(TEXT.format(unit="record", more=more)) for more in ("", ", unique: true"))
OF_USERS = make(TEXT.format(unit="{user: who}", more=", unique: true"))
SECRET = "Zebulon"


def rows(ids: Sequence[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"who": pa.array(ids, kind), "note": ["same"] * len(ids), "age": [7] * len(ids)})


def written(folder: Path, *tables: pa.Table) -> str:
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return str(folder)


def broken(data: str, schema: Schema = HELD) -> list[str]:
    return [str(rule) for rule in check_raw(data, schema, 2).broken]


@pytest.mark.parametrize("place", [0, 1, 4])
@pytest.mark.parametrize("other", [1, 3, 5])
def test_a_repeated_value_is_a_broken_rule_wherever_it_stands(tmp_path: Path, place: int, other: int) -> None:
    ids = [f"p{number}" for number in range(6)]
    ids[place] = ids[other] = SECRET
    said = [f"column who {REPEATED}"] if place != other else []
    assert broken(written(tmp_path / "one", rows(ids))) == said
    assert broken(written(tmp_path / "two", rows(ids[:3]), rows(ids[3:]))) == said
    assert not broken(written(tmp_path / "one"), PLAIN)
    (tmp_path / "t.csv").write_text("who,note,age\n" + "".join(f"{one},same,7\n" for one in ids))
    assert broken(str(tmp_path / "t.csv")) == said
    lines = [json.dumps({"who": one, "note": "same", "age": 7}) for one in ids]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    assert broken(str(tmp_path / "t.jsonl")) == said
    numbers = [json.dumps({"note": "same", "age": 7, "who": 1000 + ids.index(one)}) for one in ids]
    (tmp_path / "n.jsonl").write_text("\n".join(numbers))
    assert bool(broken(str(tmp_path / "n.jsonl"))) == bool(said)


def test_the_rows_of_a_database_are_held_too(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as opened, opened:
        opened.execute("create table t (who text, note text, age integer)")
        opened.executemany("insert into t values (?, 'same', 7)", [("a",), ("b",), ("a",)])
    for where, faults in (("", [f"column who {REPEATED}"]), (" where rowid < 3", [])):
        query = Query(f"sqlite:///{tmp_path}/t.db", f"select * from t{where}")
        gate = transform_check(load_parts(query, HELD, 2), HELD, map)
        assert [str(rule) for rule in gate.broken] == faults


@pytest.mark.parametrize("first", [[1, 2], [1, None, None], [None, None]])
@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.uint64(), pa.null()])
def test_whole_numbers_of_all_widths_are_the_same_and_nulls_are_not(tmp_path: Path, first: Any, kind: Any) -> None:
    second = [None, None] if kind == pa.null() else [3, 1, None, None]
    data = written(tmp_path / "t", rows(first, pa.int32()), rows(second, kind))
    assert bool(broken(data)) == (1 in first and 1 in second)


def test_missing_ids_of_a_text_file_are_no_repeat(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,note,age\n,x,7\na,x,7\n,x,7\n")
    assert not broken(str(tmp_path / "t.csv"))


def test_dictionaries_are_what_they_stand_for(tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    assert broken(written(tmp_path / "t", rows(["a", "b"], kind), rows(["a"])))
    assert not broken(written(tmp_path / "u", rows(["a", "b"], kind), rows(["c"])))


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ([["7"], [7]], "text in one file and whole numbers in another"),
        ([["7", "7 "]], "without white space around"),
        ([[7.5]], "must hold text or whole numbers"),
        ([[date(2020, 1, 1)]], "must hold text or whole numbers"),
    ],
)
def test_ids_that_may_be_one_under_two_spellings_are_refused(tmp_path: Path, tables: Any, says: str) -> None:
    with refused(DataError, says, column="who"):
        broken(written(tmp_path / "t", *map(rows, tables)))


def test_no_value_is_in_a_refusal_and_every_fault_is_named_at_once(tmp_path: Path) -> None:
    table = rows([SECRET, "b", SECRET])
    data = written(tmp_path / "t", table.set_column(2, "age", pa.array([7, 100, 7])))
    found = list(faults_in(data, HELD, 2))
    assert len(found) == 2 and found[0].startswith(f"column who {REPEATED}; to fix it: ") and "column age" in found[1]
    gate = check_raw(data, HELD, 2)
    assert SECRET not in str(found) + str(gate.results()) and not any("3" in one or "2" in one for one in found[:1])
    with refused(DataError, REPEATED, column="who") as caught:
        list(load_parts(written(tmp_path / "u", table), OF_USERS, 2)[0].reveal())
    assert SECRET not in str(caught.value) and SECRET not in repr(caught.value.__context__)


def test_users_of_one_row_are_not_cut_to_their_first(tmp_path: Path) -> None:
    assert len(list(load_parts(written(tmp_path / "t", rows(["a", "b"])), OF_USERS, 2)[0].reveal())) == 1
    found = list(faults_in(written(tmp_path / "u", rows(["a", "b"]), rows(["a"])), OF_USERS, 2))
    assert len(found) == 1 and REPEATED in found[0]
    assert FIRST_ROWS not in OF_USERS.remarks
    assert FIRST_ROWS in make(TEXT.format(unit="{user: who}", more="")).remarks


def test_a_gate_travels_with_the_values_of_its_part_alone() -> None:
    table = rows([f"{number:0100d}" for number in range(1000)])
    gates, whole = [], Gate(HELD, raw=True)
    for batch in table.to_batches(max_chunksize=10)[:2]:
        gate = pickle.loads(pickle.dumps(whole)).beside()
        gate.check_encoded(batch)
        gates.append(pickle.loads(carried := pickle.dumps(gate)))
        assert len(carried) < 50_000
    for gate in (*gates, gates[0]):
        whole.add(gate)
    whole.settle()
    assert [(one.rule.column, one.failed) for one in whole.outcomes if not one.passed] == [("who", 10)]


def test_of_a_value_a_keyed_hash_of_16_bytes_is_kept() -> None:
    values, other = Repeats(["who"]), Repeats(["who"])
    for one in (values, other):
        one.see(rows([SECRET, "b" * 1000, None, SECRET]))
    carried = pickle.dumps(values)
    assert len(carried) < 600 and SECRET.encode() not in carried
    with pytest.raises(ValueError, match="several secrets"):
        values.add(other)
    assert values.settle() == other.settle() == {"who": 1} and values.settle() == {"who": 0}


@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_repeats_are_counted_among_many(batch_rows: int) -> None:
    values, ids = Repeats(["who"]), np.random.default_rng(5).integers(0, 3000, 4000)
    for batch in rows(ids.tolist()).to_batches(max_chunksize=batch_rows):
        values.see(batch)
    assert values.settle() == {"who": 4000 - len(set(ids.tolist()))}


UUIDS = [bytes(range(one, one + 16)) for one in range(3)]
STORED = pa.array([*UUIDS, None, None], pa.binary(16))


@pytest.mark.parametrize("stored", [STORED, pa.ExtensionArray.from_storage(pa.uuid(), STORED)])
def test_uuids_of_16_bytes_are_identifiers(tmp_path: Path, stored: pa.Array) -> None:
    assert not broken(written(tmp_path / "a", rows(stored)))
    assert broken(written(tmp_path / "b", rows(stored), rows(stored[2:]))) == [f"column who {REPEATED}"]
    of_user = make(TEXT.format(unit="{user: who}", more=""))
    data = written(tmp_path / "c", rows(stored[:3]), rows(stored[1:3]))
    assert sum(map(len, load_parts(data, of_user, 2)[0].reveal())) == 3
    with refused(DataError, "or UUIDs of 16 bytes; write it in one way only", column="who"):
        broken(written(tmp_path / "d", rows(stored), rows([UUIDS[0].hex()])))
    with refused(DataError, r"or UUIDs as `fixed_size_binary\[16\]`", column="who"):
        broken(written(tmp_path / "e", rows(UUIDS[:2], pa.binary())))


OF_IMAGES = make(
    "name: scans\ntarget: sick\ncolumns:\n  who: {type: identifier, unique: true}\n  sick: {type: boolean}\n"
    "  scan: {type: image, height: 8, width: 8}\n"
)


@pytest.mark.parametrize(("ids", "repeats"), [(["a", "b", "c"], 0), (["a", "b", "a"], 1), ([1, 2, 1], 1)])
def test_images_of_arrays_are_held_too(tmp_path: Path, ids: list[Any], repeats: int) -> None:
    scans = np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8)
    np.savez(tmp_path / "t.npz", who=np.array(ids), sick=np.array([True, False, True]), scan=scans)
    assert broken(str(tmp_path / "t.npz"), OF_IMAGES) == [f"column who {REPEATED}"] * repeats


def test_a_folder_of_images_has_no_identifiers_and_is_refused(tmp_path: Path) -> None:
    for label in ("true", "false"):
        (tmp_path / label).mkdir()
        Picture.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / label / "1.png")
    with refused(DataError, "holds an image and a label, and the schema has further columns"):
        broken(str(tmp_path), OF_IMAGES)


def test_synthetic_rows_are_not_held_to_what_is_said_of_raw_ones() -> None:
    kept = make(TEXT.format(unit="record", more=", unique: true, keep: 'text:left out'"))
    assert [rule.column for rule in suite_for(kept, raw=True) if rule.expectation == UNIQUE] == ["who"]
    assert not any(rule.expectation == UNIQUE for rule in suite_for(kept, raw=False))


def test_a_schema_without_the_key_keeps_its_hash() -> None:
    assert PLAIN.hash == "0bafd5a297ab11af20f41d0eccd1bdb26f0a3b6a701bad2c39d425ab3d2e6d49"
    assert make(TEXT.format(unit="record", more=", unique: false")).hash == PLAIN.hash != HELD.hash
    assert make(HELD.to_yaml()).hash == HELD.hash and "unique" not in PLAIN.to_yaml()


def test_the_caution_of_persons_in_several_rows_has_an_answer() -> None:
    (caution,), (advice,) = PLAIN.remarks, before_a_charge(PLAIN)
    assert "identifier who or note is left out" in caution and "`unique: true`" in advice and "who or note" in advice
    (caution,), (advice,) = HELD.remarks, before_a_charge(HELD)
    assert "identifier note is left out" in caution and "who" not in advice.partition(",")[0]
    alone = HELD.model_copy(update={"columns": {name: one for name, one in HELD.columns.items() if name != "note"}})
    assert not alone.remarks and not before_a_charge(alone)
    assert not before_a_charge(OF_USERS)


def test_of_a_table_in_parts_nobody_is_in_one_row_alone() -> None:
    text = TEXT.format(unit="record", more=", unique: true")
    schema = make(f"{text}  ward: {{type: categorical, values: [a, b]}}\npartition: ward\n")
    assert any("identifier who or note" in one for one in schema.remarks) and not before_a_charge(schema)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (TEXT.format(unit="{user: who, max_rows: 2}", more=", unique: true"), "columns.who.unique", "`max_rows: 1`"),
        (TEXT.format(unit="record", more=", unique: 1"), "columns.who.unique", "must be true or false"),
        (
            TEXT.format(unit="{user: who, max_rows: 2}\nusers: {}", more=", keep: regenerate").replace(
                "note: {type: identifier", "note: {type: identifier, unique: true"
            ),
            "columns.note.unique",
            "beside `users`",
        ),
        (
            "name: a\ntables:\n  t: {columns: {who: {type: identifier, unique: true}, ok: {type: boolean}}}\n",
            "tables.t.columns.who.unique",
            "in a tree of tables",
        ),
        (
            "name: a\nid: note\nembedding: vector\nunique: true\nencoder: {name: given, dim: 4}\n",
            "unique",
            "is no key here",
        ),
    ],
)
def test_where_the_key_says_nothing_it_is_refused(text: str, where: str, says: str) -> None:
    contract, faults = parse(text)
    assert contract is None and [fault.where for fault in faults] == [where] and says in faults[0].message


def test_the_command_and_python_hold_a_raw_table_to_it(tmp_path: Path) -> None:
    schema, data = tmp_path / "s.yaml", tmp_path / "t.parquet"
    schema.write_text(HELD.to_yaml())
    pq.write_table(rows([SECRET, "b", SECRET]), data)
    code, out, err = run_cli("validate", data, "--schema", schema)
    assert code == 1 and "who" in out and "broken" in out and SECRET not in out + err
    listed = nacre.validate(data, HELD)
    assert listed[~listed["success"]]["column"].tolist() == ["who"]
    pq.write_table(rows(["a", "b"]), data)
    assert run_cli("validate", data, "--schema", schema)[0] == 0
    assert (
        run_cli("plan", data, "--schema", schema, "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")[0] == 0
    )
