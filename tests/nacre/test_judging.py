"""Runs, rules and comparisons in Python: what the command line says of the same, as frames."""

from pathlib import Path

import pandas as pd
import pytest

import nacre
from tests.kit.support import SCHEMA_TEXT, make_schema, make_table

pytestmark = pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
QUICK = {"method": "moments", "training": {"components": 4, "steps": 3}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> nacre.Result:
    home = tmp_path_factory.mktemp("judged")
    return nacre.synthesize(
        make_table(300).to_pandas(), SCHEMA_TEXT, epsilon=1, delta=1e-5, rows=120, home=home, **QUICK
    )


def test_runs_are_listed_with_what_goes_on(made: nacre.Result, tmp_path: Path) -> None:
    listed = nacre.runs(home=made.home)
    assert listed["name"].tolist() == [made.run] and listed["state"].tolist() == ["handed over"]
    with pytest.raises(nacre.NacreError):
        nacre.runs(home=tmp_path / "nowhere")


def test_rules_hold_of_what_was_made_and_break_where_rows_break_them(made: nacre.Result) -> None:
    rules = nacre.validate(made)
    assert rules["success"].all() and {"ward", "age"} <= set(rules["column"].dropna())
    broken = nacre.validate(made.table.assign(ward="nowhere"), SCHEMA_TEXT)
    assert set(broken[~broken["success"]]["column"].dropna()) == {"ward"}
    with pytest.raises(nacre.NacreError, match="schema"):
        nacre.validate(made.table)


def test_tables_stand_side_by_side_and_the_page_stays_inside(made: nacre.Result) -> None:
    real, worse = make_table(300).to_pandas(), made.table.assign(age=made.table["age"].iloc[0])
    scores = nacre.compare([made, worse], real, make_schema(), test=make_table(80), home=made.home)
    page = Path(scores.attrs["page"])
    assert page.is_relative_to(made.home / "sensitive") and page.exists()
    assert {"score", "better", "real rows"} < set(scores) and len(scores.columns) == 5 and len(scores) > 3
    assert isinstance(scores, pd.DataFrame) and scores.iloc[:, 3:].notna().any().all()
