"""The k-marginal score: equal tables have all of it, tables that share nothing none, and one moved pair its part."""

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import nist


def table(**columns: str) -> pd.DataFrame:
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


def test_equal_tables_have_all_of_it_and_strange_ones_none() -> None:
    real = table(SEX="1212", MSP="1122", HISP="0000")
    assert nist.score(real, real.iloc[::-1]) == 1000
    assert nist.score(real, table(SEX="3434", MSP="3344", HISP="1111")) == 0


def test_one_of_four_rows_that_moves_in_one_of_three_columns_costs_a_fourth_of_two_of_three_pairs() -> None:
    real = table(SEX="1212", MSP="1122", HISP="0000")
    moved = table(SEX="1212", MSP="1122", HISP="0001")
    assert nist.score(real, moved) == pytest.approx(1000 * (1 - (0.25 + 0.25) / 3))


def test_pairs_are_looked_at_within_a_puma() -> None:
    real = table(PUMA="aabb", SEX="1212", MSP="1212")
    assert nist.score(real, table(PUMA="aabb", SEX="1122", MSP="1122")) == 500


def test_numbers_are_cut_at_percentiles_and_what_is_none_stays_apart() -> None:
    ages = [str(age) for age in range(100)]
    real = pd.DataFrame({"AGEP": ages, "POVPIP": [*ages[:98], "N", "501"]})
    assert set(nist.coded("AGEP", real["AGEP"], real["AGEP"])) == set(range(20))
    assert len(set(nist.coded("POVPIP", real["POVPIP"], real["POVPIP"]))) == 20
    beyond = pd.Series(["500", "-3"])
    low, high = nist.coded("AGEP", real["AGEP"], beyond)[-2:][::-1]
    assert (low, high) == tuple(nist.coded("AGEP", real["AGEP"], pd.Series(["0", "99"]))[-2:])


def test_a_schema_follows_from_the_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {
        "PUMA": {"values": {"25-00503": "a town", "01-01301": "a county"}},
        "NOC": {"values": {"N": "none", "0": "none", "min": 1, "max": 3}},
        "POVPIP": {"values": {"N": "none", "min": 0, "max": 500, "501": "above"}},
    }
    monkeypatch.setattr(nist, "dictionary", lambda: words)
    columns = nist.schema_of(["PUMA", "NOC", "POVPIP"])["columns"]
    assert columns["PUMA"] == {"type": "categorical", "values": ["01-01301"]}
    assert columns["NOC"]["values"] == ["N", "0", "1", "2", "3"]
    assert columns["POVPIP"] == {"type": "integer", "min": 0, "max": 501, "nullable": True}


def test_a_submission_has_the_table_in_its_own_codes_and_says_what_was_done(tmp_path: Path) -> None:
    made = pd.DataFrame({"PUMA": ["01-01301"] * 2, "SEX": ["1", "2"], "PINCP": ["N", "500"], "DENSITY": ["9", "9"]})
    nist.write_submission(tmp_path / "new", made, "simple", 0.5, True, 2, 901.26)
    name = "nacre-national2019-simple-epsilon-0.5-workload-by-puma-2"
    facts = json.loads((tmp_path / "new" / f"{name}.json").read_text())
    again = pd.read_csv(tmp_path / "new" / f"{name}.csv", dtype=str, keep_default_na=False)
    assert again.equals(made) and facts["features"] == list(made) and facts["epsilon"] == 0.5
    assert facts["k-marginal score, re-implemented"] == 901.3 and "DENSITY" in facts["not synthesized"]
