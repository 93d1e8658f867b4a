"""The check of raw rows says which other order of day and month reads every date; no run does."""

from pathlib import Path

import pytest

import nacre
from dpmodels.authoring.lint import parse
from dpmodels.errors import DataError
from dpmodels.reading.ingest import faults_in
from tasks.kinds.tables import check_raw

SCHEMA = """name: t
TEXT
columns:
  day: {type: datetime, min: 2024-01-01, max: 2024-12-31, resolution: RESOLUTION, nullable: true}
  fee: {type: integer, min: 0, max: 9}
"""
BRITISH = 'text: {date_format: "%d/%m/%Y"}'


@pytest.mark.parametrize(
    ("days", "text", "said"),
    [
        (["12/25/2024", "02/03/2024", ""], BRITISH, '`text: {date_format: "%m/%d/%Y"}` in the schema every date'),
        (
            ["12/25/2024", "02/03/2024", ""],
            "",
            '{date_format: "%m/%d/%Y"}` in the schema every date of the data is read',
        ),
        (["25.12.2024"], BRITISH, 'date_format: "%d.%m.%Y"'),
        (["2024-12-25"], BRITISH, 'date_format: "%Y-%m-%d"'),
        (["12/25/2024 08:15"], BRITISH, 'datetime_format: "%m/%d/%Y %H:%M"'),
        (["03/04/2024"], "", 'and with `{date_format: "%m/%d/%Y"}` as well: only whoever wrote the data'),
        (["12/25/2024", "25/12/2024"], BRITISH, ""),
        (["12/25/2024", "tomorrow"], "", ""),
        (["12/25/2024", "02/03/2024"], 'text: {date_format: "%m/%d/%Y"}', None),
    ],
)
def test_an_order_that_reads_every_date_is_named(tmp_path: Path, days: list[str], text: str, said: str | None) -> None:
    resolution = "minute" if ":" in days[0] else "day"
    (data := tmp_path / "t.csv").write_text("day,fee\n" + "".join(f"{day},3\n" for day in days))
    schema, faults = parse(written := SCHEMA.replace("TEXT", text).replace("RESOLUTION", resolution))
    assert schema is not None and not faults
    if said is None:
        assert not check_raw(str(data), schema, 1).broken
        return
    with pytest.raises(DataError) as error:
        check_raw(str(data), schema, 1)
    fault = error.value
    assert (
        said in fault.rule and ("every date of the data is read" in fault.rule) == bool(said) and fault.column == "day"
    )
    assert not any(day and day in str(fault) for day in days)
    assert not any("every date of the data" in one for one in faults_in(str(data), schema, 1))  # which a run tells
    with pytest.raises(DataError) as of_frame:
        nacre.validate(data, written, raw=True)
    assert of_frame.value.rule == fault.rule


def test_it_is_said_of_rows_of_users(tmp_path: Path) -> None:
    (data := tmp_path / "t.csv").write_text("who,day,fee,home\nu1,12/25/2024,3,true\nu1,02/03/2024,4,true\n")
    written = SCHEMA.replace("TEXT", f"{BRITISH}\nunit: {{user: who, max_rows: 2}}\nusers: {{columns: [home]}}")
    written = (
        written.replace("RESOLUTION", "day") + "  who: {type: identifier, keep: regenerate}\n  home: {type: boolean}\n"
    )
    with pytest.raises(DataError) as error:
        nacre.validate(data, written, raw=True)
    assert "for day and month stand in the other order" in str(error.value)


def test_it_is_said_beside_other_faults(tmp_path: Path) -> None:
    (data := tmp_path / "t.csv").write_text("day,fee\n12/25/2024,two\n")
    schema, _ = parse(SCHEMA.replace("TEXT", BRITISH).replace("RESOLUTION", "day"))
    with pytest.raises(DataError) as error:
        check_raw(str(data), schema, 1)
    assert len(error.value.faults) > 2 and "for day and month stand in the other order" in error.value.faults[-1]


@pytest.mark.parametrize("of_users", [False, True])
def test_a_run_says_no_more_than_which_command_tries_other_orders(tmp_path: Path, of_users: bool) -> None:
    (data := tmp_path / "t.csv").write_text("day,fee,who\n12/25/2024,3,u1\n02/03/2024,4,u2\n")
    unit = "\nunit: {user: who, max_rows: 2}\nusers: {columns: [home]}" * of_users
    written = SCHEMA.replace("TEXT", BRITISH + unit).replace("RESOLUTION", "day")
    written += "  who: {type: identifier, keep: regenerate}\n" + "  home: {type: boolean}\n" * of_users
    if of_users:
        data.write_text("day,fee,who,home\n12/25/2024,3,u1,true\n02/03/2024,4,u2,true\n")
    budget = {"epsilon": 1, "delta": 1e-5, "home": tmp_path / "home", "open": True}
    with pytest.raises(DataError) as error:
        nacre.synthesize(data, written, **budget)
    said = "`nacre.validate(DATA, SCHEMA, raw=True)` says whether every date is read in another order of day and month"
    assert said in str(error.value) and "%m/%d/%Y" not in str(error.value)
    (data.parent / "fee.csv").write_text(data.read_text().replace("12/25", "25/12").replace(",3,", ",x,"))
    with pytest.raises(DataError) as error:
        nacre.synthesize(tmp_path / "fee.csv", written, **budget)
    assert "must hold numbers" in str(error.value) and "another order" not in str(error.value)
