"""A column that gives the target away is named, of the real rows; and no real row is shown unless it was asked for."""

import json

import pytest

from dpmodels.pages.internal import render_internal
from tests.kit.population import draw, judge
from tests.kit.support import run_cli, synthesize_words, write_clinic

SEEN = ("sample rows", "given away")


def finding(real, made) -> dict:
    checks = judge(made, real, None, only=SEEN)["checks"]
    return next(check for check in checks if check["name"] == "one column alone")


@pytest.mark.parametrize("column", ["ward", "rent"])
def test_a_column_that_gives_the_target_away_is_named(column) -> None:
    real, made = draw(3000, 1), draw(3000, 2)
    assert finding(real, made)["holds"]
    away = {"ward": {"yes": "fort", "no": "isle"}, "rent": {"yes": 900.0, "no": 100.0}}[column]
    found = finding(real.assign(**{column: real["ill"].map(away)}), made)
    assert found["holds"] is False and f"{column} alone" in found["finding"] and "real rows" in found["finding"]
    assert finding(real, made.assign(**{column: made["ill"].map(away)}))["holds"], "looked at the synthetic rows"


def test_real_rows_are_shown_only_where_they_were_asked_for(tmp_path) -> None:
    real, made = draw(300, 1).assign(income=77_777.77), draw(300, 2).assign(income=11_111.11)
    quiet, asked = (judge(made, real, None, only=SEEN, real_rows=shown) for shown in (False, True))
    assert "real" not in quiet["metrics"]["sample rows"]["result"]
    assert "77777.77" not in render_internal(quiet) and "11111.11" in render_internal(quiet)
    assert "77777.77" in render_internal(asked) and "11111.11" in render_internal(asked)
    write_clinic(tmp_path)
    code, out, err = run_cli(*synthesize_words(tmp_path), "--json")
    assert code == 0, err
    words = ("report", json.loads(out)["run"], "--internal", "--home", tmp_path / "home", "--json")
    for more in ((), ("--real-rows",)):
        code, out, err = run_cli(*words, *more)
        assert code == 0 and ("real" in json.loads(out)["metrics"]["sample rows"]["result"]) == bool(more), err
