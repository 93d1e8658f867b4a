"""Types that a person gives, and drafts that leave to a discovery what it can find; no row is looked at for either."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.header import DoubtfulNames
from dpmodels.authoring.lint import load_draft
from dpmodels.authoring.tree_draft import draft_all
from dpmodels.errors import InvalidArgument, Unsuitable
from tests.kit.errors import refused
from tests.kit.support import run_cli

NAMES = "patient,admitted,age,Ward No,bill,readmitted"
WHOLE = "patient=identifier admitted=datetime age=integer:0:120, Ward No=categorical,bill=number readmitted=boolean"
OPEN = {"min": "discover", "max": "discover"}
YEARS = {"min": date(1970, 1, 1), "max": date(2099, 12, 31)}


def columns(data: Path, **public: object) -> dict[str, dict[str, object]]:
    """Draft a table, and return its columns as YAML has them."""
    read = yaml.safe_load(draft(data, public_facts=PublicFacts(**public)))["columns"]  # type: ignore[arg-type]
    assert isinstance(read, dict)
    return read


def test_types_are_given_in_one_line_and_bounds_with_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(NAMES + "\n")
    assert columns(tmp_path / "t.csv", types=WHOLE) == {
        "patient": {"type": "identifier"},
        "admitted": {"type": "datetime", **YEARS, "resolution": "day", "confirm": "TODO"},
        "age": {"type": "integer", "min": 0, "max": 120},
        "Ward No": {"type": "categorical", "values": "TODO"},
        "bill": {"type": "number", "min": "TODO", "max": "TODO"},
        "readmitted": {"type": "boolean"},
    }
    days = columns(tmp_path / "t.csv", types="admitted=datetime:2020-01-01:2021-12-31 age=number:-1.5:2")
    assert days["admitted"]["max"] == date(2021, 12, 31) and days["age"]["min"] == -1.5
    assert days["bill"] == {"type": "number", "min": "TODO", "max": "TODO"}


def test_values_and_nulls_are_given_with_the_types(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(NAMES + "\n")
    line = (
        "age=integer:0:120?, Ward No=categorical:'north wing'|south? bill=number:0:9.5? "
        "readmitted=boolean? patient=categorical:1|2|3 admitted=datetime:2020-01-01:2021-12-31?"
    )
    given = {
        "age": {"type": "integer", "min": 0, "max": 120, "nullable": True},
        "Ward No": {"type": "categorical", "values": ["north wing", "south"], "nullable": True},
        "bill": {"type": "number", "min": 0, "max": 9.5, "nullable": True, "zero_inflated": True},
        "readmitted": {"type": "boolean", "nullable": True},
        "patient": {"type": "categorical", "values": [1, 2, 3]},
        "admitted": {
            "type": "datetime",
            "min": date(2020, 1, 1),
            "max": date(2021, 12, 31),
            "resolution": "day",
            "nullable": True,
        },
    }
    assert columns(tmp_path / "t.csv", types=line) == given
    ward = columns(tmp_path / "t.csv", types={"Ward No": "categorical:O'Neil house|a, b?", "bill": "categorical:01|2"})
    assert ward["Ward No"] == {"type": "categorical", "values": ["O'Neil house", "a, b"], "nullable": True}
    assert ward["bill"]["values"] == ["01", "2"]
    marked = columns(tmp_path / "t.csv", types="bill=number? Ward No=categorical:a|b", discover=True)
    assert marked["bill"] == {"type": "number", **OPEN, "nullable": True} and marked["Ward No"]["values"] == ["a", "b"]


def test_values_and_nulls_that_are_given_go_before_those_that_are_documented(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Ward No,age\n")
    (document := tmp_path / "d.csv").write_text("name,type,values,required\nWard No,text,a|b,yes\nage,text,1|2,yes\n")
    given = columns(tmp_path / "t.csv", document=document, types="Ward No=categorical:b|c? age=categorical")
    assert given["Ward No"] == {"type": "categorical", "values": ["b", "c"], "nullable": True}
    assert given["age"]["values"] in (["1", "2"], [1, 2]) and "nullable" not in given["age"]


TYPED = pa.table(
    {
        "start": ["2024-01-31"],
        "stop": pa.array(["2024-01-31"]).dictionary_encode(),
        "ok": ["yes"],
        "grade": pa.array([1], pa.int8()),
        "share": [0.5],
        "day": [date(2024, 1, 31)],
        "late": [timedelta(seconds=1)],
        "empty": pa.nulls(1),
    }
)
DAYS = {"type": "datetime", "min": date(2010, 1, 1), "max": date(2026, 9, 30), "resolution": "day"}


def test_types_go_before_those_of_a_typed_file(tmp_path: Path) -> None:
    pq.write_table(TYPED, tmp_path / "t.parquet")
    (tmp_path / "doc").mkdir()
    (document := tmp_path / "doc" / "d.csv").write_text("name,type,min,max,values\ngrade,int,0,9,\nok,text,,,a|b\n")
    types = "start=datetime:2010-01-01:2026-09-30 stop=datetime:2010-01-01:2026-09-30 ok=boolean grade=number:1:6"
    given = columns(
        tmp_path / "t.parquet", document=document, types=types + " share=integer day=identifier empty=number"
    )
    assert given["start"] == given["stop"] == DAYS and given["ok"] == {"type": "boolean"}
    assert given["grade"] == {"type": "number", "min": 1.0, "max": 6.0}
    assert (given["share"]["type"], given["day"], given["empty"]["type"]) == (
        "integer",
        {"type": "identifier"},
        "number",
    )
    codes = columns(tmp_path / "t.parquet", types="grade=categorical:1|2 start=categorical:1|2")
    assert codes["grade"] == {"type": "categorical", "values": [1, 2], "dtype": "int8"}
    assert codes["start"] == {"type": "categorical", "values": ["1", "2"]}


@pytest.mark.parametrize(
    ("types", "holds"),
    [
        ("grade=datetime", "whole numbers"),
        ("start=integer:0:9", "text"),
        ("stop=number", "text"),
        ("share=boolean", "numbers"),
        ("day=categorical", "dates"),
        ("late=number", "duration"),
    ],
)
def test_a_type_that_no_run_reads_of_a_file_is_refused(tmp_path: Path, types: str, holds: str) -> None:
    pq.write_table(TYPED, tmp_path / "t.parquet")
    with refused(InvalidArgument, f"another type: of {holds}", name="types"):
        draft(tmp_path / "t.parquet", public_facts=PublicFacts(types=types))


def test_text_that_is_documented_as_dates_is_drafted_as_dates(tmp_path: Path) -> None:
    (tmp_path / "doc").mkdir()
    (document := tmp_path / "doc" / "d.csv").write_text(
        "name,type,min,max\nstart,date,2010-01-01,2026-09-30\nstop,Kalender,2010-01-01,2026-09-30\nok,moment,,\n"
    )
    pq.write_table(TYPED, tmp_path / "t.parquet")
    drawn = columns(tmp_path / "t.parquet", document=document)
    assert drawn["start"] == drawn["stop"] == DAYS
    assert (drawn["ok"]["type"], drawn["ok"]["resolution"]) == ("datetime", "second")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_text_that_is_drafted_as_dates_is_read_as_dates(tmp_path: Path, ending: str) -> None:
    table = TYPED.select(["start", "stop"])
    if ending == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    else:
        with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
            file.write_table(table)
    (tmp_path / "doc").mkdir()
    (document := tmp_path / "doc" / "d.csv").write_text(
        "name,type,min,max\nstart,date,2010-01-01,2026-09-30\nstop,Datum,2010-01-01,2026-09-30\n"
    )
    schema = draft(tmp_path / f"t.{ending}", public_facts=PublicFacts(document=document, name="t"))
    (tmp_path / "s.yaml").write_text(schema)
    code, out, _ = run_cli("validate", tmp_path / f"t.{ending}", "--schema", tmp_path / "s.yaml")
    assert code == 0 and "must lie between 2010-01-01 and 2026-09-30" in " ".join(out.split())


def test_documented_bounds_stay_where_the_word_for_the_type_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("rooms,dose,share,customer_id,visits\n")
    rows = "rooms;Gizmo;1–9\ndose;Gizmo;0-3\nshare;;0.1-0.5\ncustomer_id;Gizmo;1-99999\nvisits;;>= 2000\n"
    (document := tmp_path / "d.csv").write_text("name;type;range\n" + rows)
    drawn = columns(tmp_path / "t.csv", document=document)
    assert drawn == {
        "rooms": {"type": "integer", "min": 1, "max": 9, "confirm": "TODO"},
        "dose": {"type": "TODO", "min": 0, "max": 3},
        "share": {"type": "number", "min": 0.1, "max": 0.5, "confirm": "TODO"},
        "customer_id": {"type": "identifier", "confirm": "TODO"},
        "visits": {"type": "integer", "min": 2000, "max": "TODO"},
    }
    left = columns(tmp_path / "t.csv", document=document, discover=True)
    assert left["rooms"] == {"type": "integer", "min": 1, "max": 9}
    assert left["visits"] == {"type": "integer", "min": 2000, "max": "discover"}
    text = draft(tmp_path / "t.csv", public_facts=PublicFacts(document=document))
    assert "min: 0, max: 3 as documented" in text and "suggested, as a count; to take it" in text


@pytest.mark.parametrize(
    ("types", "rule"),
    [
        ("height=integer", "name columns as the data does; height is none of them$"),
        ("readmited=boolean", "readmited is none of them; did you mean readmitted?"),
        ("bull=integer", "bull is none of them; did you mean bill?"),
        (
            "age=intt",
            r"^types=age=intt must have one of these types: .*, or date, .* of age is none; did you mean integer\?$",
        ),
        ("age=flot", r"did you mean number\?$"),
        ("age=zzzzz", "that of age is none$"),
        ("Ward No=categorical:F,M", r"one value; write Ward No=categorical:F\|M$"),
        (
            "Ward No=categorical:F,M age=integer",
            r"^types=Ward No=categorical:F,M must .* write Ward No=categorical:F\|M$",
        ),
        ({"Ward No": "text:F, M"}, r"write Ward No=text:F\|M$"),
        ("Ward No=categorical:F=female|M=male", r"what they stand for: write Ward No=categorical:F\|M$"),
        ({"bill": "number:9:1", "age": "integer"}, "^types=bill=number:9:1 must have bounds"),
        ({"bill": "number", "aeg": "integer"}, "^types=aeg=integer must name columns as the data does; aeg is none"),
        ("age", "be pairs such as"),
        ("age=integer:1", "have a colon between the smaller and the larger bound, as in integer:0:120$"),
        ("age=integer:0-120?", r"have a colon between the smaller and the larger bound: write integer:0:120\?$"),
        ({"admitted": "date:2020-01-01 to 2021-12-31"}, "bound: write date:2020-01-01:2021-12-31$"),
        ("=integer", "be pairs such as"),
        ("age=integer:9:1", "the smaller first; age has not"),
        ("age=integer:2020-01-01:2021-01-01", "the smaller first; age has not"),
        ("age=integer:0:1e999", "the smaller first; age has not"),
        ("admitted=datetime:1:2", "the smaller first; admitted has not"),
        ("readmitted=boolean:0:1", "leave readmitted without bounds"),
        ("readmitted=boolean:a|b?", "leave readmitted without bounds"),
        ("Ward No=categorical:a||b", "be pairs such as"),
        ("Ward No=categorical:", "be pairs such as"),
        ("Ward No=categorical:'a", "be pairs such as"),
        ("age=integer:0:1:2", "have a colon between the smaller and the larger bound, as in integer:0:120$"),
        (["age"], r"^types=\['age'\] must be words by the names of columns, such as"),
        ({"age": ["integer", 0, 9]}, r"^types=age=\['integer', 0, 9\] must be words by the names"),
        ({"age": ("integer",)}, "be words by the names of columns"),
        ({1: "integer"}, "be words by the names of columns"),
    ],
)
def test_types_that_cannot_be_meant_are_told_what_may_be(tmp_path: Path, types: Any, rule: str) -> None:
    (tmp_path / "t.csv").write_text(NAMES + "\n")
    with refused(InvalidArgument, rule, name="types"):
        draft(tmp_path / "t.csv", public_facts=PublicFacts(types=types))


def test_words_of_data_frames_and_documents_are_types(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,d,e,f,g\n")
    given = {"a": "int64:0:9?", "b": "bool", "c": "float:1.5:2", "d": "str:<=50K|>50K", "e": "datetime64[ns]"}
    drawn = columns(tmp_path / "t.csv", types={**given, "f": "decimal(8,2):1:9", "g": "date:2020-01-01:2021-01-01"})
    assert drawn["a"] == {"type": "integer", "min": 0, "max": 9, "nullable": True} and drawn["b"]["type"] == "boolean"
    assert drawn["c"] == {"type": "number", "min": 1.5, "max": 2.0}
    assert drawn["d"] == {"type": "categorical", "values": ["<=50K", ">50K"]}
    assert (drawn["e"]["type"], drawn["e"]["resolution"]) == ("datetime", "second")
    assert drawn["f"]["round"] == 2 and drawn["g"]["resolution"] == "day"


def test_a_datetime_keeps_the_times_that_its_column_has(tmp_path: Path) -> None:
    moments = {"seen": pa.array([datetime(2024, 1, 1, 5)], pa.timestamp("us")), "day": [date(2024, 1, 1)]}
    pq.write_table(pa.table(moments), tmp_path / "t.parquet")
    ends = ":2020-01-01:2029-12-31"
    drawn = columns(tmp_path / "t.parquet", types=f"seen=datetime{ends} day=datetime{ends}")
    assert drawn["day"]["resolution"] == "day" and drawn["seen"] == {
        "type": "datetime",
        "min": date(2020, 1, 1),
        "max": date(2029, 12, 31),
        "resolution": "second",
        "dtype": "timestamp[us]",
    }
    text = draft(tmp_path / "t.parquet", public_facts=PublicFacts(types=f"seen=datetime{ends}"))
    assert "# times are cut to the second; or write resolution: day, hour or minute\n  seen:" in text
    assert columns(tmp_path / "t.parquet", types=f"seen=date{ends}")["seen"]["resolution"] == "day"
    keys = {"type": "datetime", "min": date(2020, 1, 1)}
    assert columns(tmp_path / "t.parquet", types={"seen": keys})["seen"]["resolution"] == "second"
    minute = {**keys, "resolution": "minute"}
    assert columns(tmp_path / "t.parquet", types={"seen": minute})["seen"]["resolution"] == "minute"


def test_a_type_may_be_the_keys_of_a_schema(tmp_path: Path) -> None:
    table = pa.table({"temp": [36.5], "born": [1980], "code": pa.array([1], pa.int8()), "seen": [datetime(2024, 1, 1)]})
    pq.write_table(table, tmp_path / "t.parquet")
    temp = {"type": "number", "min": 30, "max": 45, "round": 1, "nullable": True}
    age = {"type": "derived", "formula": "year(seen) - born"}
    late = {"type": "integer", "min": 0, "max": 99, "computed": "born % 100"}
    code = {"type": "int", "min": 1}
    drawn = columns(tmp_path / "t.parquet", types={"age": age, "temp": temp, "late": late, "code": code})
    assert [*drawn] == ["temp", "born", "code", "seen", "age", "late"]
    assert (drawn["temp"], drawn["age"], drawn["late"]) == (temp, age, late)
    assert drawn["code"] == {"type": "integer", "min": 1, "max": "TODO", "dtype": "int8"}
    values = {"type": "categorical", "values": ["F,M", "b"]}
    assert columns(tmp_path / "t.parquet", types={"code": {**values, "values": [300, 400]}})["code"]["values"] == [
        300,
        400,
    ]
    (tmp_path / "t.csv").write_text("code,fee\n")
    assert columns(tmp_path / "t.csv", types={"code": values})["code"] == values
    fee = {"type": "number", "min": "discover"}
    marked = columns(tmp_path / "t.csv", types={"fee": fee}, discover=True)["fee"]
    assert marked == {"type": "number", "min": "discover", "max": "discover"}
    assert columns(tmp_path / "t.csv", types={"fee": fee})["fee"]["max"] == "TODO"


def test_keys_that_are_given_whole_win_over_what_words_say(tmp_path: Path) -> None:
    table = {"fee": [1.5], "age": [3], "temp": pa.array([1.0], pa.float32()), "tip": [Decimal("1.25")]}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    words = "- fee: amount in euros, 0 to 900, sometimes missing\n- age: integer, 18 to 90, may be missing\n"
    (tmp_path / "codes.md").write_text(f"{words}- temp: 1 decimal, 3 to 4\n")
    whole = {"fee": {"type": "number", "min": 0, "max": 500}, "age": {"type": "integer", "min": 1, "max": 9}}
    whole |= {"temp": {"type": "number", "min": 30, "max": 45}, "tip": {"type": "number", "min": 1, "max": 9}}
    document = tmp_path / "codes.md"
    text = draft(tmp_path / "t.parquet", public_facts=PublicFacts(types=whole, document=document))
    of_file = {"temp": {"dtype": "float32"}, "tip": {"dtype": "decimal(3, 2)", "round": 2}}
    assert yaml.safe_load(text)["columns"] == {name: {**keys, **of_file.get(name, {})} for name, keys in whole.items()}
    says = "# not added to the keys that are given, though its description says it: "
    assert f"{says}nullable: true\n" in text and f"{says}round: 1\n" in text and "# zero_inflated: true if any" in text
    part = {"fee": {"type": "number", "min": 0}}
    drawn = columns(tmp_path / "t.parquet", types=part, document=document)["fee"]
    assert drawn == {"type": "number", "min": 0, "max": 900.0, "nullable": True, "zero_inflated": True}


def test_columns_of_several_tables_may_be_derived(tmp_path: Path) -> None:
    (tmp_path / "firm").mkdir()
    pq.write_table(pa.table({"customer_id": [1], "age": [3]}), tmp_path / "firm" / "customer.parquet")
    pq.write_table(pa.table({"customer_id": [1], "price": [3.5]}), tmp_path / "firm" / "item.parquet")
    tens = {"type": "derived", "formula": "age // 10"}
    text = draft_all(tmp_path / "firm", public_facts=PublicFacts(types={"customer.tens": tens}))
    assert yaml.safe_load(text)["tables"]["customer"]["columns"]["tens"] == tens
    with refused(InvalidArgument, "custmer.tens is none of them", name="types"):
        draft_all(tmp_path / "firm", public_facts=PublicFacts(types={"custmer.tens": tens}))
    with refused(InvalidArgument, "must be left out", name="unit"):
        draft_all(tmp_path / "firm", public_facts=PublicFacts(unit="customer_id"))
    assert "parent" in draft_all(tmp_path / "firm", public_facts=PublicFacts(unit="record"))


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"type": "number", "mn": 3}, r"column age: mn is no key here; did you mean `min`\?$"),
        ({"type": "integer", "min": 0, "max": 9, "round": 2}, "round is no key here; decimals are of `type: number`$"),
        ({"type": "float", "min": "x"}, "column age: min must be a number$"),
        ({"type": "number", "min": 9, "max": 3}, "column age: min 9.0 is not below max 3.0"),
        ({"min": 9}, "column age: has no type; write one of categorical, .*derived$"),
        ({"type": "derived", "formula": "2 +* 3"}, "column age: formula `2 [+][*] 3` is no formula"),
        ({"type": "number", "min": object()}, "column age: YAML cannot write min of it"),
        (
            {"type": "categorical", "values": {"a", "b"}},
            "column age: YAML cannot write values of it; use text, .+lists",
        ),
        ({"type": "categorical", "values": [b"a"]}, "column age: YAML cannot write values of it"),
        ({"type": "integer", "min": 0, "max": 10**401}, "column age: YAML cannot write max of it"),
        ({"type": "categorical", "values": ["\ud800"]}, "column age: YAML cannot write values of it"),
    ],
)
def test_keys_that_no_schema_has_are_refused_by_their_column(tmp_path: Path, keys: Any, says: str) -> None:
    (tmp_path / "t.csv").write_text(NAMES + "\n")
    with refused(Unsuitable, says):
        draft(tmp_path / "t.csv", public_facts=PublicFacts(types={"bill": "number", "age": keys}))


def test_a_draft_hides_the_persons_whom_a_column_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("subject,age\n")
    out = run_cli("schema", "init", tmp_path / "t.csv", "--unit", "subject", "--max-rows", "4")[1]
    read = yaml.safe_load(out)
    assert read["unit"] == {"user": "subject", "max_rows": 4} and read["columns"]["subject"] == {"type": "identifier"}
    one = yaml.safe_load(draft(tmp_path / "t.csv", public_facts=PublicFacts(unit="subject")))
    assert one["unit"] == {"user": "subject", "max_rows": 1}
    for asked, name, says in (
        ({"unit": "subjet"}, "unit", r"be a column of the data; did you mean `subject`\?$"),
        ({"max_rows": 4}, "max_rows", "go with `unit`"),
        ({"unit": "subject", "max_rows": 0}, "max_rows", "be 1 or more"),
    ):
        with refused(InvalidArgument, says, name=name):
            draft(tmp_path / "t.csv", public_facts=PublicFacts(**asked))  # type: ignore[arg-type]
    plain = draft(tmp_path / "t.csv", public_facts=PublicFacts())
    assert draft(tmp_path / "t.csv", public_facts=PublicFacts(unit="record")) == plain  # which it is anyway
    (tmp_path / "u.csv").write_text("record,age\n")
    assert "user: record" in draft(tmp_path / "u.csv", public_facts=PublicFacts(unit="record"))


def test_names_that_types_are_given_for_are_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("in 2019,1999\n")
    assert columns(tmp_path / "t.csv", types="in 2019=integer:0:9 1999=boolean").keys() == {"in 2019", "1999"}


def test_a_text_file_leaves_to_discovery_what_its_names_or_a_person_say(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{NAMES},email,lat,what\n")
    found = columns(tmp_path / "t.csv", discover=True, types="readmitted=boolean Ward No=categorical")
    assert found == {
        "patient": {"type": "identifier"},
        "admitted": {"type": "datetime", **OPEN, "resolution": "day"},
        "age": {"type": "integer", **OPEN},
        "Ward No": {"type": "categorical", "values": "discover"},
        "bill": {"type": "number", **OPEN},
        "readmitted": {"type": "boolean"},
        "email": {"type": "identifier"},
        "lat": {"type": "number", **OPEN, "round": 6},
        "what": {"type": "TODO"},
    }
    text = draft(tmp_path / "t.csv", public_facts=PublicFacts(discover=True))
    assert "# taken by its name for an age in years: check it; {min: 0, max: 120} would cost nothing\n  age:" in text
    accepted = columns(tmp_path / "t.csv", discover=True, accept=True)
    assert accepted["age"] == {"type": "integer", "min": 0, "max": 120} and accepted["bill"] == found["bill"]


def test_every_type_of_a_file_is_left_to_a_discovery_that_takes_the_draft(tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": pa.array([1], pa.int16()),
            "b": pa.array([0.5], pa.float32()),
            "c": pa.array(["x"]).dictionary_encode(),
            "d": pa.array([date(2020, 1, 1)]),
            "e": pa.array([datetime(2020, 1, 1, 5)], pa.timestamp("us", "Europe/Berlin")),
            "f": pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
            "g": pa.array([time(5)], pa.time32("s")),
            "h": pa.array([timedelta(seconds=5)], pa.duration("ms")),
            "email": pa.array(["x"]),
            "i": pa.array([True]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    text = draft(tmp_path / "t.parquet", public_facts=PublicFacts(discover=True))
    (tmp_path / "t.yaml").write_text(text)
    wanted = load_draft(tmp_path / "t.yaml")[1].wanted
    assert "".join(wanted) == "abcdefgh" and "TODO" not in yaml.safe_dump(yaml.safe_load(text))
    assert wanted["e"].keys == ("min", "max") and "# times are cut to the second; or write" in text
    pq.write_table(
        pa.table({"stay": [[1]], "pixels": pa.array([[0] * 4], pa.list_(pa.uint8(), 4))}), tmp_path / "n.parquet"
    )
    nested = columns(tmp_path / "n.parquet", discover=True)
    assert nested["stay"] == {"type": "TODO"} and nested["pixels"]["height"] == "TODO"


def test_columns_of_several_tables_are_called_by_their_table(tmp_path: Path) -> None:
    (tmp_path / "firm").mkdir()
    pq.write_table(pa.table({"customer_id": [1], "age": [3]}), tmp_path / "firm" / "customer.parquet")
    pq.write_table(pa.table({"customer_id": [1], "price": [3.5]}), tmp_path / "firm" / "item.parquet")
    public = PublicFacts(types="item.price=number:0:99", discover=True)
    tables = yaml.safe_load(draft_all(tmp_path / "firm", public_facts=public))["tables"]
    assert tables["item"]["columns"]["price"] == {"type": "number", "min": 0.0, "max": 99.0, "zero_inflated": True}
    assert tables["customer"]["columns"]["age"] == {"type": "integer", **OPEN}
    with refused(InvalidArgument, "price is none of them", name="types"):
        draft_all(tmp_path / "firm", public_facts=PublicFacts(types="price=number"))


def test_a_column_of_whole_numbers_may_be_given_as_a_list(tmp_path: Path) -> None:
    pq.write_table(pa.table({"code": pa.array([1], pa.int64()), "x": [1]}), tmp_path / "t.parquet")
    found = columns(tmp_path / "t.parquet", types="code=categorical", discover=True)
    assert found["code"] == {"type": "categorical", "values": "discover"}


def test_the_columns_stand_on_the_first_screen(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(NAMES + "\n")
    lines = draft(tmp_path / "t.csv").splitlines()
    assert lines.index("columns:") < 10 and all(len(line) <= 120 for line in lines[:10])
    assert lines.index("# The types and their keys, of which docs/schema.md has all:") > lines.index(
        "  readmitted: {type: boolean, confirm: TODO}"
    )


def test_the_columns_of_no_known_type_are_named_with_the_option_that_gives_them_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,what,sex,other thing\n")
    err = run_cli("schema", "init", tmp_path / "t.csv", "--discover-all")[2]
    assert "no type is known of what, other thing: --types 'what=categorical' gives one" in err
    assert "no type is known" not in run_cli("schema", "init", tmp_path / "t.csv")[2]
    (tmp_path / "u.csv").write_text("age,sex\n")
    assert "no type is known" not in run_cli("schema", "init", tmp_path / "u.csv", "--discover-all")[2]


def test_a_slip_in_a_type_shows_no_value_of_a_file_without_a_header(tmp_path: Path) -> None:
    data = tmp_path / "visits.csv"
    data.write_text("Alice,flu,1987\nBob,cold,1990\n")
    with pytest.raises(DoubtfulNames) as refusal:
        draft(data, public_facts=PublicFacts(types="Alcie=categorical"))
    assert "Alice" not in str(refusal.value)
