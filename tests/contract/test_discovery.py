"""A draft that marks what is to be discovered: refused everywhere else, completed without touching anything beside."""

import json

import pytest

from dpmodels.audit.made import firm
from dpmodels.authoring.completion import ReleasedKeys, complete
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.lint import lint, load_contract, load_draft, load_named, parse
from dpmodels.contract.columns import copy_of
from dpmodels.contract.discovery.discovery import MARKABLE, editor_schema
from dpmodels.contract.discovery.discovery_charge import DiscoveryCharge
from dpmodels.errors import SchemaError

DRAFT = """\
# what is known
name: visits
unit: {user: patient, max_rows: 4}
constraints: [start <= end]
columns:
  patient: {type: identifier}
  ward: {type: categorical, values: discover}  # of the north house
  fee:
    type: number
    min: 0
    max: discover
    round: 2
  age: {type: integer, min: discover, max: discover, dtype: uint8, nullable: true, max_null_share: discover}
  start: {type: datetime, min: discover, max: discover}
  end: {type: datetime, min: 2020-01-01, max: discover}
  twice: {type: derived, formula: age * 2}
"""
NOTHING = ReleasedKeys((), None, None, 0.5, 1000.0, 0.0, 10.0, 60.0)


def found(**given: object) -> ReleasedKeys:
    return ReleasedKeys(**{**NOTHING.__dict__, **given})  # type: ignore[arg-type]


FOUND = {
    "ward": found(values=("no", "north")),
    "fee": found(low=0.0, high=0.05),
    "age": found(low=0.0, high=500.0, null_share=0.07),
    "start": found(low=2020.0, high=2023.0),
    "end": found(low=2020.0, high=2024.0),
}
CHARGE = DiscoveryCharge(
    charge="0" * 63 + "1",
    account="visits",
    run="discover-1",
    unit="record",
    epsilon=0.1,
    delta=1e-6,
    events=({"kind": "gaussian", "noise_multiplier": 40.0}, {"kind": "threshold", "delta": 5e-7}),
    plan_sha256="2" * 64,
    release_sha256="3e5" + "3" * 61,
)
OF_USERS = CHARGE.model_copy(update={"unit": "user (patient, at most 4 rows)"})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "draft.yaml"
    path.write_text(DRAFT)
    return path


def test_one_sentence_that_names_the_command_refuses_it_everywhere_else(path):
    (fault,) = lint(path)
    assert fault.line == 7 and "nacre schema discover DATA --schema THIS_FILE" in fault.message
    with pytest.raises(SchemaError, match="waits for a charged release: nacre schema discover"):
        load_contract(path)
    assert load_named(path).name == "visits"


def test_its_contract_holds_what_is_asked_and_nothing_else(path):
    text, contract = load_draft(path)
    assert text == DRAFT and contract.unit.max_rows == 4
    asked = {name: (wanted.counts, wanted.keys) for name, wanted in contract.wanted.items()}
    assert asked == {
        "ward": ("values", ("values",)),
        "fee": ("cells", ("max",)),
        "age": ("cells", ("min", "max", "max_null_share")),
        "start": ("years", ("min", "max")),
        "end": ("years", ("max",)),
    }
    path.write_text(DRAFT.replace("round: 2", "round: 3").replace("# what is known", ""))
    assert load_draft(path)[1].hash == contract.hash


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("dtype: uint8", "dtypo: uint8", "columns.age.dtypo"),
        ("nullable: true, ", "", "columns.age.max_null_share"),
        ("max: discover\n    round", "max: TODO\n    round", "columns.fee.max"),
        ("{type: identifier}", "{type: identifier, keep: discover}", "columns.patient.keep"),
        ("dtype: uint8", "dtype: uint7", "columns.age.dtype"),
    ],
)
def test_other_faults_are_told_beside_it(path, old, new, where):
    assert old in DRAFT
    path.write_text(DRAFT.replace(old, new))
    assert where in [fault.where for fault in lint(path)]
    with pytest.raises(SchemaError, match=where):
        load_draft(path)


def test_a_schema_that_marks_nothing_is_no_draft(path):
    path.write_text("name: a\ncolumns: {x: {type: categorical, values: [discover]}}")
    assert lint(path) == []
    with pytest.raises(SchemaError, match="marks nothing"):
        load_draft(path)


def test_what_was_found_is_written_and_the_rest_stays():
    made = complete(DRAFT, FOUND, "charged release RUN, epsilon=0.1, delta=1e-06", OF_USERS)
    schema, faults = parse(made.text)
    assert schema is not None, faults
    assert schema.columns["ward"].values == ("no", "north", "other")
    assert schema.columns["ward"].outside == schema.columns["ward"].other == "other"
    assert (schema.columns["fee"].min, schema.columns["fee"].max, schema.columns["fee"].outside) == (0, 0.05, "clip")
    age = schema.columns["age"]
    assert (age.min, age.max, age.max_null_share) == (0, 255, 0.07)  # at most what its dtype holds
    start, end = schema.columns["start"], schema.columns["end"]
    assert [str(day) for day in (start.min, start.max, end.min, end.max)] == [
        "2020-01-01", "2023-12-31", "2020-01-01", "2024-12-31",
    ]  # fmt: skip
    assert schema.sources == (
        "charged release RUN, epsilon=0.1, delta=1e-06: values of ward; max of fee; min, max, max_null_share of age; "
        "min, max of start; max of end",
    )
    assert "# of the north house" in made.text and made.text.startswith("# what is known\nname: visits\n")
    assert made.remarks == ()


@pytest.mark.parametrize(
    "given", ["sources: [a book]\n", "sources:\n  - a book\n", "sources:\n- a book\n", "sources: []\n"]
)
def test_sources_that_are_there_stay(given):
    schema, faults = parse(complete(DRAFT.replace("columns:", given + "columns:"), FOUND, "RUN", OF_USERS).text)
    assert schema is not None, faults
    assert [source.split(":")[0] for source in schema.sources] == (["RUN", "a book"] if "book" in given else ["RUN"])


LONG = "name: a\ncolumns:\n  x:\n    type: categorical\n    values: |-\n      discover\n    nullable: true\n"


@pytest.mark.parametrize(
    "text",
    ['{"name": "a", "columns": {"x": {"type": "categorical", "values": "discover"}}}', LONG],
    ids=["json", "block"],
)
def test_a_draft_in_braces_or_with_a_block_is_completed_too(text):
    schema, faults = parse(complete(text, {"x": found(values=("1", "b"))}, "RUN", CHARGE).text)
    assert schema is not None and schema.columns["x"].values == ("1", "b", "other"), faults


def test_numbers_that_were_found_leave_rows_out_or_beside_users_end_the_run_and_both_is_told():
    text = "name: a\n{}columns:\n  who: {{type: identifier, keep: {}}}\n  x: {{type: categorical, values: discover}}\n"
    parts = complete(text.format("", "drop"), {"x": found(values=(1, 2.5))}, "RUN", CHARGE)
    assert parse(parts.text)[0].columns["x"].outside == "nearest" and "becomes the nearest" in parts.remarks[0]
    small = complete(text.format("", "drop"), {"x": found(values=(1e-05, 2.5, 1e22))}, "RUN", CHARGE)
    assert parse(small.text)[0].columns["x"].values == (1e-05, 2.5, 1e22)
    alone = complete(text.format("", "drop"), {"x": found(values=(1, 2))}, "RUN", CHARGE)
    assert "outside: reject-row" in alone.text and "rows that hold another are left out" in alone.remarks[0]
    users = "unit: {user: who, max_rows: 2}\nusers: {}\n"
    charge = CHARGE.model_copy(update={"unit": "user (who, at most 2 rows)"})
    beside = complete(text.format(users, "regenerate"), {"x": found(values=(1, 2))}, "RUN", charge)
    schema, faults = parse(beside.text)
    assert schema is not None and schema.columns["x"].outside == "refuse", faults
    assert "a row that holds another ends the run" in beside.remarks[0]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("values: discover", (1, 2), {"values": (1, 2), "outside": "reject-row"}),
        ("values: discover", (True,), {"values": (True,), "outside": "reject-row"}),
        ("values: discover, outside: other, other: rest", ("a",), {"values": ("a", "rest"), "other": "rest"}),
        ("values: discover, outside: other, other: a", ("a",), {"values": ("a",), "other": "a"}),
        ("values: discover, outside: refuse", ("no", "1"), {"values": ("no", "1"), "outside": "refuse"}),
        ("values: discover, outside: nearest", ("1.5", "2"), {"outside": "other", "other": "other"}),
        ("outside: nearest, values: discover, dtype: float32", ("1.5",), {"outside": "other", "dtype": None}),
        ("values: discover, dtype: float32, outside: reject-row", ("b",), {"outside": "reject-row", "dtype": None}),
        ("values: discover, outside: other, other: rest", (1, 2), {"outside": "reject-row", "other": None}),
        ("values: discover, outside: other, other: rest", (1.5,), {"outside": "nearest", "other": None}),
        ("values: discover, dtype: string", (1, 2), {"outside": "reject-row", "dtype": None}),
        ("values: discover, dtype: float32", (1.5, 123456792), {"outside": "nearest", "dtype": "float32"}),
        ("values: discover, dtype: float32", (1.5, 1e39), {"outside": "nearest", "dtype": None}),
        ("values: discover", ("other", 'a"b', "\u00e9, #: x"), {"other": "(other)"}),
        ("values: discover", tuple(f"value {n}" for n in range(500)), {"outside": "other"}),
    ],
)
def test_values_come_back_as_they_were_whatever_they_are(column, values, expected):
    text = f"name: a\ncolumns:\n  x: {{type: categorical, {column}}}\n  y: {{type: boolean}}\n"
    completion = complete(text, {"x": found(values=values)}, "RUN", CHARGE)
    made, schema, faults = completion.text, *parse(completion.text)
    assert schema is not None, faults
    assert schema.columns["x"].values[: len(values)] == values
    assert {key: getattr(schema.columns["x"], key) for key in expected} == expected
    assert max(map(len, made.splitlines())) < 200
    told = [remark.split(" did not fit what was found")[0] for remark in completion.remarks if "did not fit" in remark]
    keys = [key for key in ("outside", "other", "dtype") if key in expected and f"{key}:" in column]
    assert set(" ".join(told).removeprefix("column x: ").split(" and ")) - {""} == {
        key for key in keys if f"{key}: {expected[key]}" not in column
    }


@pytest.mark.parametrize(
    ("column", "explained"),
    [
        ("values: discover", True),
        ("values: discover, outside: refuse", False),
        ("values: discover, outside: reject-row", False),
        ("values: discover, outside: other, other: rest", False),
    ],
)
def test_a_target_is_told_why_it_has_one_more_class_and_how_it_has_none(column, explained):
    columns = f"x: {{type: categorical, {column}}}, y: {{type: categorical, values: discover}}"
    labels = found(values=("no", "yes"))
    made = complete(f"name: a\ntarget: x\ncolumns: {{{columns}}}\n", {"x": labels, "y": labels}, "RUN", CHARGE)
    told = [remark for remark in made.remarks if "it is the target, and gets a class `other`" in remark]
    assert bool(told) == explained and not any("column y: it is" in remark for remark in made.remarks)
    assert not explained or ("about 60 rows" in told[0] and "or `outside: reject-row`" in told[0])
    schema, faults = parse(made.text)
    assert schema is not None, faults
    assert (schema.columns["x"].values == ("no", "yes")) == ("outside" in column and "other" not in column)


def test_a_target_of_a_tree_is_offered_no_word_that_leaves_rows_out():
    columns = "{id: {type: identifier}, x: {type: categorical, values: discover}}"
    text = f"name: a\ntarget: t.x\ntables: {{t: {{columns: {columns}}}}}\n"
    (told,) = complete(text, {"t.x": found(values=("no", "yes"))}, "RUN", CHARGE).remarks
    assert "column t.x: it is the target" in told and "`outside: refuse`" in told and "reject-row" not in told


def test_what_was_not_found_is_a_todo_and_is_told():
    made = complete(DRAFT, dict.fromkeys(FOUND, NOTHING), "RUN", OF_USERS)
    assert parse(made.text)[0] is None and made.text.count("TODO") == 7
    assert any("column ward: values could not be found" in remark and "60 rows" in remark for remark in made.remarks)
    odd = complete(DRAFT, {**FOUND, "age": found(low=5.0, high=1.0, unread=900.0)}, "RUN", OF_USERS)
    assert odd.text.count("TODO") == 2 and "900 of 1,000 rows hold what its type does not" in odd.remarks[1]


def test_what_share_of_the_rows_a_found_bound_may_leave_out_is_told_as_the_settings_have_it():
    bounded = {name: found(low=0.0, high=5.0, tail=0.0005, hidden=71.2) for name in FOUND}
    aims = "may lie 0.05% of the rows at each end that was found, and cells of fewer than about 71 rows each"
    remarks = complete(DRAFT, {**FOUND, "fee": bounded["fee"], "age": bounded["age"]}, "RUN", OF_USERS).remarks
    assert [remark.split(" may")[0] for remark in remarks] == [
        "column fee: beyond max",
        "column age: beyond min and max",
    ]
    assert all(aims in remark and "`outside: clip`" in remark for remark in remarks)
    assert not [one for one in complete(DRAFT, dict.fromkeys(FOUND, NOTHING), "RUN", OF_USERS).remarks if aims in one]


def test_editors_are_told_of_the_word():
    written = json.loads(json.dumps(editor_schema()))
    for kind, keys in MARKABLE.items():
        for key in keys:
            assert {"const": "discover"} in written["$defs"][kind.capitalize()]["properties"][key]["anyOf"]


@pytest.mark.parametrize("given", ["", "sources: [a book]\n", "sources:\n- a book\n"])
def test_a_schema_says_what_every_discovery_was_charged(given):
    once = complete(DRAFT.replace("columns:", given + "columns:"), FOUND, "RUN", OF_USERS).text
    again = once.replace("max: 0.05", "max: discover")
    later = OF_USERS.model_copy(update={"charge": "1" * 64, "delta": 1e-9})
    schema, faults = parse(complete(again, {"fee": FOUND["fee"]}, "LATER", later).text)
    assert schema is not None and schema.discovered == (later, OF_USERS), faults
    assert parse(schema.to_yaml())[0] == schema


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"unit": "record"}, "discovered.0.unit"),
        ({"charge": "1" * 63}, "discovered.0.charge"),
        ({"delta": 0}, "discovered.0.delta"),
        ({"events": []}, "discovered.0.events"),
        ({"epsilons": 1}, "discovered.0.epsilons"),
        ({"events": [{"kind": "pure", "epsilon": 1}]}, "discovered.0.events.0"),
    ],
)
def test_lint_holds_what_a_discovery_was_charged_to_its_form(change, where):
    charge = OF_USERS.model_dump(mode="json") | change
    text = complete(DRAFT, FOUND, "RUN", OF_USERS).text
    start, end = text.index("discovered:"), text.index("columns:")
    (fault,) = parse(f"{text[:start]}discovered: [{json.dumps(charge)}]\n{text[end:]}")[1]
    assert fault.where == where, fault
    twice = f"{text[:start]}discovered: {json.dumps([OF_USERS.model_dump(mode='json')] * 2)}\n{text[end:]}"
    assert [one.where for one in parse(twice)[1]] == ["discovered.1.charge"]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("[low <= high]", "[low <= hihg]", "constraints.0"),
        ("[low <= high]", "[fee <= fees]", "constraints.0"),
        ("dtype: float32", 'dtype: "decimal(12, 2)"', "columns.twice.round"),
        ("dtype: float32", "dtype: text", "columns.twice.dtype"),
    ],
)
def test_faults_that_no_discovery_mends_are_told_before_it_is_charged(tmp_path, old, new, where):
    path = tmp_path / "draft.yaml"
    draft = """name: t
constraints: [low <= high]
columns:
  fee: {type: number, min: 0, max: discover, round: 2}
  low: {type: integer, min: 0, max: 5}
  high: {type: integer, min: 0, max: 9}
  twice: {type: derived, formula: 2 * fee, dtype: float32}
"""
    path.write_text(draft)
    assert load_draft(path)[1].wanted
    path.write_text(draft.replace(old, new))
    with pytest.raises(SchemaError) as error:
        load_draft(path)
    assert where in str(error.value)


def test_a_column_whose_name_is_a_number_is_a_fault_beside_constraints(tmp_path):
    path = tmp_path / "draft.yaml"
    path.write_text("name: t\nconstraints: [a <= b]\ncolumns:\n  2020: {type: number, min: 0, max: discover}\n")
    with pytest.raises(SchemaError):
        load_draft(path)


TREE_DRAFT = (
    firm.SCHEMA_TEXT.replace("max: 89", "max: discover")
    .replace("values: [books, games, tools]", "values: discover")
    .replace("{type: number, min: 0, max: 100, round: 2,", "{type: number, min: discover, max: discover, round: 2,")
)
OF_FIRM = CHARGE.model_copy(update={"unit": str(firm.make_schema().unit)})


def test_the_draft_of_a_tree_waits_at_the_line_of_its_table_and_is_completed_there(tmp_path):
    (path := tmp_path / "draft.yaml").write_text("# of the firm\n" + TREE_DRAFT)
    (fault,) = lint(path)
    assert "waits for a charged release" in fault.message and fault.where == "tables.customer.columns.age.max"
    assert "age" in path.read_text().splitlines()[fault.line - 1]
    text, contract = load_draft(path)
    assert list(contract.wanted) == ["customer.age", "purchase.kind", "item.price"]
    assert list(contract.tables) == ["customer", "address", "purchase", "item"]
    findings = {
        "customer.age": found(low=10.0, high=88.0),
        "purchase.kind": found(values=("books", "tools")),
        "item.price": found(low=0.0, high=1000.0),
    }
    tree, faults = parse((made := complete(text, findings, "RUN", OF_FIRM)).text)
    assert tree is not None and tree.kind == "tree", faults
    assert tree.tables["customer"].columns["age"].max == 88
    assert tree.tables["purchase"].columns["kind"].values == ("books", "tools", "other")
    assert tree.sources == ("RUN: max of customer.age; values of purchase.kind; min, max of item.price",)
    assert [one.charge for one in tree.discovered] == [OF_FIRM.charge] and made.text.startswith("# of the firm\n")
    assert parse(tree.to_yaml())[0] == tree
    other_unit, faults = parse(complete(text, findings, "RUN", CHARGE).text)
    assert other_unit is None and "discover again with this unit" in faults[0].message


def test_numbers_that_were_found_in_a_tree_end_the_run_that_meets_another():
    text = TREE_DRAFT.replace("min: discover", "min: 0").replace("max: discover", "max: 100")
    tree, faults = parse(complete(text, {"purchase.kind": found(values=(1, 2))}, "RUN", OF_FIRM).text)
    assert tree is not None and tree.tables["purchase"].columns["kind"].outside == "refuse", faults


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("parent: purchase", "parent: purhcase", "parent"),
        ("most: 3", "most: 3000", "most"),
        ("order: day", "order: kind", "order"),
        ("follows: [kind]", "constraints: [nothing >= day]", "constraints"),
    ],
)
def test_other_faults_of_a_trees_draft_are_told_beside_it(old, new, where):
    assert old in TREE_DRAFT
    _, faults = parse(TREE_DRAFT.replace(old, new))
    assert any(where in fault.where for fault in faults) and any("waits for" in fault.message for fault in faults)


@pytest.mark.parametrize(
    "rule", ["when kind = books then customer.age >= 20", "when customer.age >= 30 then kind = books"]
)
def test_rules_about_what_waits_are_looked_at_when_it_was_found(rule):
    _, faults = parse(TREE_DRAFT.replace("follows: [kind]", f"constraints: [{rule}]"))
    assert [fault.where.rpartition(".")[2] for fault in faults] == ["max"], faults


def test_a_tree_that_discovered_nothing_has_the_hash_that_it_had():
    assert "discovered" not in firm.make_schema().model_dump() and "sources" not in firm.make_schema().model_dump()


def test_what_a_draft_says_of_finishing_it_is_left_out_and_a_persons_words_stay(tmp_path):
    (tmp_path / "t.csv").write_text("age,ward,what\n")
    text = draft(tmp_path / "t.csv", public_facts=PublicFacts(discover=True, types="what=boolean"))
    text = "# decided by Dana\n" + text.replace("columns:\n", "columns:\n  # asked the ward\n")
    made = complete(text, {"age": found(low=0, high=90), "ward": found(values=("a",))}, "RUN", CHARGE).text
    assert "throw this draft away" in text and "throw" not in made and "The types and their keys" not in made
    assert made.startswith("# decided by Dana\nname: t\n") and "# asked the ward\n" in made
    assert "# taken by its name for an age in years" in made and "no further key" not in made


COUNTED_DRAFT = """\
name: bills
target: ward
workload: [{columns: [bill_counted, extra]}]
columns:
  ward: {type: categorical, values: discover}
  base: {type: number, min: 0, max: discover, round: 2}
  extra: {type: number, min: 0, max: 9, round: 2}
  bill: {type: derived, formula: base + extra, round: 2, max: 50}
  group: {type: derived, of: ward, values: {north: 1, other: 0}}
  bill_counted: {type: number, min: 0, max: 9000, round: 2, computed: bill, keep: drop}
  by_ward: {type: number, min: 0, max: 9, computed: "extra * {'north': 1, 'other': 0}[ward]", keep: drop}
"""


def test_a_draft_asks_for_tables_of_what_is_computed_and_counted_beside(tmp_path):
    (path := tmp_path / "draft.yaml").write_text(COUNTED_DRAFT)
    text, contract = load_draft(path)
    assert [fault.where for fault in lint(path)] == ["columns.ward.values"]
    assert contract.columns == ("ward", "base", "extra", "bill", "group")
    found_keys = {"ward": found(values=("north",)), "base": found(low=0.0, high=60.0)}
    schema, faults = parse(complete(text, found_keys, "RUN", CHARGE).text)
    assert schema is not None and schema.workload[0].columns == ("bill_counted", "extra"), faults
    assert copy_of("bill", schema.columns) == "bill_counted" and "by_ward" in schema.modelled
    for old, new, where, words in (
        ("[bill_counted, extra]", "[bill, extra]", "workload.0", "is derived"),
        ("[bill_counted, extra]", "[bill_count, extra]", "workload.0", "did you mean"),
        ("computed: bill,", "computed: bil,", "columns.bill_counted.computed", "is no column of the file"),
        ("formula: base + extra", "formula: base + extras", "columns.bill.formula", "is no column"),
        ("target: ward", "target: bill_counted", "target", "keep: drop"),
    ):
        path.write_text(COUNTED_DRAFT.replace(old, new))
        with pytest.raises(SchemaError) as error:
            load_draft(path)
        (fault,) = error.value.faults
        assert fault.where == where and words in fault.message, fault


def test_a_bound_that_is_a_time_of_day_is_counted_beside_one_that_was_found():
    draft_text = 'name: t\ncolumns:\n  at: {type: integer, min: discover, max: "20:00", dtype: "time32[s]"}\n'
    assert "waits for" in parse(draft_text)[1][0].message
    schema, faults = parse(complete(draft_text, {"at": found(low=100.0)}, "RUN", CHARGE).text)
    assert schema is not None and (schema.columns["at"].min, schema.columns["at"].max) == (100, 72_000), faults
    assert "pattern" in editor_schema()["$defs"]["Integer"]["properties"]["max"]["anyOf"][1]
