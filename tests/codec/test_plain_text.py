"""Numbers and dates of text in the form that a schema declares: read exactly, or refused without their value."""

import re
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from dpmodels.codec.plain_text import UNREAD, plain_text, with_plain_text
from dpmodels.codec.text_values import cast_columns, cast_text
from dpmodels.contract.text_forms.plain_columns import PlainMoment, PlainNumber
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import DataError
from tests.kit.errors import refused

GERMAN = TextForm(decimal=",", thousands=".")
COMMA = TextForm(decimal=",")
US = TextForm(thousands=",")
SWISS = TextForm(thousands="'")
FRENCH = TextForm(decimal=",", thousands="\u202f")
POUNDS, EUROS = TextForm(decimal=".", thousands=",", currency="£"), GERMAN.model_copy(update={"currency": "€"})
DAYS = TextForm(date_format="%d.%m.%Y")
MOMENTS = TextForm(date_format="%d.%m.%Y", datetime_format="%d.%m.%Y %H:%M")
UNPARTED = TextForm(date_format="%Y%m%d", datetime_format="%Y%m%dT%H%M%S.%f")
NO_DAYS = [
    "29.02.2023",
    "31.12.20211",
    "31.12.21",
    "31.12.2021x",
    "x31.12.2021",
    "2021-12-31",
    "31/12/2021",
    "1.13.2021",
]
NO_DAYS += ["32.01.2021", "00.01.2021", "31.12.2021 09:05", "31.12.2021 x", "31.12.2021\n1"]
ZONED = TextForm(datetime_format="%d.%m.%Y %H:%M%z")


def test_numbers_are_read_as_their_form_writes_them() -> None:
    for form, read in {
        GERMAN: {"1.234.567,8": 1234567.8, "-1.234": -1234, "+5,25": 5.25, " 12 ": 12, "1234,5": 1234.5, "1,5e3": 1500},
        COMMA: {"0,5": 0.5, ",5": 0.5, "5,": 5, "-0,0": 0, "1234567": 1234567},
        US: {"1,234.5": 1234.5, "12": 12, "-1,000": -1000},
        SWISS: {"1'234.5": 1234.5, "1\u2019234": 1234},
        FRENCH: {"1\u202f234,5": 1234.5, "1\u00a0234 567": 1234567, "\u00a012\u00a0": 12},
        TextForm(decimal="."): {"1.500": 1.5},
        POUNDS: {
            "£12.50": 12.5,
            "-£1,200.00": -1200,
            "£-3": -3,
            "£ 4": 4,
            "1,000": 1000,
            "5£": 5,
            "£1,234,567": 1234567,
        },
        EUROS: {"12,50 €": 12.5, "1.200,00\u00a0€": 1200, "€3": 3, "-4€": -4},
        TextForm(decimal=".", currency="CHF"): {"CHF 4.50": 4.5, "4.50 CHF": 4.5},
    }.items():
        assert cast_text(pa.array(list(read)), pa.float64(), "x", form).to_pylist() == list(read.values()), form
        empty = pa.array(["", " ", "NA", "NULL", None])
        assert cast_text(empty, pa.float64(), "x", form).null_count == len(empty)


def test_a_number_in_another_form_is_refused_and_never_read_as_another_number() -> None:
    for form, texts in {
        GERMAN: "1.2.3 12.34 1.2345 1234.567 0.123 01.234 .123 1..234 1.234. 1,234.5 1,2,3 1.234,5€ . , - 1e 1_0 inf",
        COMMA: "1.234 1.5 1,234,567 1 234",
        US: "1.234,5 12,34 1,2345 1,,234 ,5 0,123",
        SWISS: "1,234.5 1.234'5 '234",
        FRENCH: "1.234 1'234",
        TextForm(decimal="."): "1,5 1.500.000",
        POUNDS: "£ ££1 £1£ -£-1 $5 £1.200,00 1£2 £x",
        EUROS: "12.50€ €12€ €",
    }.items():
        for text in texts.split():
            if form is COMMA and text in ("1", "234"):
                continue
            with refused(DataError, re.escape(f"written {form.numbers_in_words}, as its `text` says"), column="x") as e:
                cast_text(pa.array(["1", text]), pa.float64(), "x", form)
            assert f"'{text}'" not in str(e.value) and text not in str(e.value).split(), (form, text)


def test_dates_are_read_as_their_form_writes_them_from_the_first_letter_to_the_last() -> None:
    day, minute = datetime(2021, 12, 31), datetime(2021, 12, 31, 9, 5)
    for form, read in {
        DAYS: {"31.12.2021": day, "1.2.2022": datetime(2022, 2, 1), "2021-12-31 09:05": minute, "29.02.2024": None},
        MOMENTS: {"31.12.2021 09:05": minute, "31.12.2021 9:05": minute, " 31.12.2021 ": day},
        UNPARTED: {"20211231": day, "20211231T090500.25": minute.replace(microsecond=250_000)},
        TextForm(date_format="%m/%d/%Y"): {"12/31/2021": day},
        TextForm(datetime_format="%d.%m.%Y, %H:%M Uhr"): {"31.12.2021, 09:05 Uhr": minute, "2021-12-31": day},
    }.items():
        wanted = [datetime(2024, 2, 29) if one is None else one for one in read.values()]
        assert cast_text(pa.array(list(read)), pa.timestamp("us"), "x", form).to_pylist() == wanted, form
        assert cast_text(pa.array(["", "NA", None]), pa.timestamp("us"), "x", form).null_count == 3
    zoned = cast_text(pa.array(["31.12.2021 09:05+01:00", "31.12.2021 08:05Z"]), pa.timestamp("us", "UTC"), "x", ZONED)
    assert zoned[0] == zoned[1]
    for form, texts in {
        DAYS: NO_DAYS,
        MOMENTS: ["31.12.2021 24:00", "31.12.2021 09:60", "31.12.2021 09:05:00", "2021-12-31 09:05"],
        UNPARTED: ["2021123", "2021121", "202112310"],
        ZONED: ["31.12.2021 09:05"],
    }.items():
        for text in texts:
            kind = pa.timestamp("us", "UTC") if form is ZONED else pa.timestamp("us")
            with refused(DataError, re.escape(f"written {form.dates_in_words}, as its `text` says"), column="x") as e:
                cast_text(pa.array([text]), kind, "x", form)
            assert text not in str(e.value) or text in form.dates_in_words, (form, text)


def test_each_field_is_read_by_itself_whatever_stands_beside_it() -> None:
    texts = ["1.234", "1,5", None, "NA", "1.2", "7"]
    alone = [plain_text(pa.array([one], pa.string()), pa.float64(), GERMAN)[0].as_py() for one in texts]
    assert plain_text(pa.array(texts), pa.float64(), GERMAN).to_pylist() == alone
    assert alone == ["1234", "1.5", None, UNREAD, UNREAD, "7"]
    sliced = pa.array(["31.12.2021", "x", None, "1.2.2022"]).slice(1)
    assert plain_text(sliced, pa.timestamp("us"), DAYS).to_pylist() == [UNREAD, None, "2022-02-01"]
    batch = pa.RecordBatch.from_pydict({"a": ["1.234,5"], "b": ["1.2.2022"], "c": ["1.234"], "d": ["true"]})
    kinds = {"a": pa.float64(), "b": pa.timestamp("us"), "c": pa.string(), "d": pa.bool_()}
    form = TextForm(decimal=",", thousands=".", date_format="%d.%m.%Y")
    assert cast_columns(batch, kinds, form=form).to_pylist() == [
        {"a": 1234.5, "b": datetime(2022, 2, 1), "c": "1.234", "d": True}
    ]
    assert date(2022, 2, 1) == cast_text(pa.array(["1.2.2022"]), pa.timestamp("us"), "b", form)[0].as_py().date()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ({"thousands": "."}, 'must be another mark than `thousands`: write decimal: ","'),
        ({"decimal": ",", "thousands": ","}, 'write decimal: "."'),
        ({"decimal": ";"}, "Input should be"),
        ({"currency": "£"}, "goes with `decimal`"),
        ({"decimal": ".", "currency": "pounds"}, "a sign such as £"),
        ({"thousands": "_"}, "Input should be"),
        ({"date_format": "%d.%m.%y"}, "must not have %y"),
        ({"date_format": "%d.%m"}, "must have %Y"),
        ({"date_format": "dd.mm.yyyy"}, "must have %d and %m and %Y"),
        ({"date_format": "%d.%b.%Y"}, "has no directive %b; there are %d, %m, %Y"),
        ({"date_format": "%d.%m.%Y %H:%M"}, "has no directive %H"),
        ({"date_format": "%d.%m.%Y%d"}, "each directive once"),
        ({"date_format": "%d.%m.20%Y"}, "must have no digits"),
        ({"date_format": "%d.%m.%Y%"}, "no single %"),
        ({"date_format": "%d.%m.%%%Y"}, "has no directive %%"),
        ({"date_format": ""}, "must have %d"),
        ({"datetime_format": "%d.%m.%Y"}, "must have %H and %M"),
        ({"datetime_format": "%d.%m.%Y %H:%M.%f"}, "%f behind %S"),
        ({"datetime_format": "%d.%m.%Y %H:%M:%S%f"}, "with a mark between them"),
        ({"datetime_format": "%d.%m.%Y %H:%M:%f%S"}, "%f behind %S"),
        ({"date_format": "%d.%m.%Y "}, "must not begin or end with a blank"),
        ({"decimals": ","}, "Extra inputs"),
    ],
)
def test_a_form_that_could_be_read_in_two_ways_is_refused(content: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(fault)):
        TextForm.model_validate(content)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_discovery_reads_missing_words_as_null_and_one_damaged_field_as_unread(kind: pa.DataType) -> None:
    """Otherwise the nulls that it counts would depend on the form, and one record on whether it counts at all."""
    raw = [b"31.12.2021", b"NA", b"\xff\xfe", b"1.2.2022", None, b" "]
    plain = pa.array(raw, pa.binary() if kind == pa.string() else pa.large_binary())
    damaged = pa.Array.from_buffers(kind, len(raw), plain.buffers())
    form = TextForm(decimal=",", date_format="%d.%m.%Y")
    columns = {"d": PlainMoment(type="identifier"), "n": PlainNumber(type="identifier")}
    batch = pa.RecordBatch.from_arrays([damaged, damaged], ["d", "n"])
    read = with_plain_text(batch, columns, form).to_pydict()
    assert read["d"] == ["2021-12-31", None, UNREAD, "2022-02-01", None, None]
    assert read["n"] == [UNREAD, None, UNREAD, UNREAD, None, None]
