"""Synthetic figures that are not those of the rows in the folder, though facts and pages hang together."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.hand_off.recount import check_rows
from dpmodels.hand_off.recount.groups import Values
from dpmodels.hand_off.recount.rows import HandedOver
from dpmodels.hand_off.recount.trees import differing_in_tree
from dpmodels.hand_off.verify import verify_hand_off
from tests.hand_off.make_golden import GOLDEN
from tests.kit.manifests import Json, forged

NEWEST = GOLDEN / "LAYOUT-26"
SAYS, MAKE_IT = "report.json says that in the synthetic rows ", "the rows in synthetic/ make it"


def swapped(figures: list[Any]) -> None:
    """Exchange the first two figures of a list that differ."""
    other = next(place for place, one in enumerate(figures) if one != figures[0])
    figures[0], figures[other] = figures[other], figures[0]


def of(report: Json, key: str, name: str) -> Json:
    return next(one for one in report[key] if one["name"] == name)


def moved_group(report: Json) -> None:
    report["groups"][0]["groups"][0]["synthetic"] += 0.01


def shares_of_a_pair(report: Json) -> None:
    """Exchange two shares of the second of two rows of a table, which leaves all sums over its rows."""
    table = next(one for one in report["pairs"]["tables"] if len({*one["synthetic"][0]}) > 1)
    swapped(table["synthetic"][0])


LIES: list[tuple[str, Callable[[Json], object], str]] = [
    ("derived", lambda report: swapped(of(report, "columns", "age")["synthetic"]), "the share of age: "),
    ("derived", lambda report: swapped(of(report, "columns", "ward")["synthetic"]), "the share of ward: "),
    ("discovered", lambda report: swapped(of(report, "columns", "dose")["synthetic"]), "the share of dose: "),
    ("derived", lambda report: of(report, "columns", "age")["mean"].update(synthetic=50.0), "the mean of age is 50,"),
    ("derived", lambda report: swapped(report["rates"]["columns"][0]["synthetic"]), "the rate of sick = "),
    ("derived", lambda report: swapped(report["asked_rates"][0]["columns"][0]["synthetic"]), "the rate of smoker = "),
    ("users", lambda report: swapped(of(report, "columns", "rating")["synthetic"]), "the share of rating: "),
    ("derived", moved_group, "the mean of "),
    ("derived", shares_of_a_pair, "the share of "),
]


@pytest.mark.parametrize(("golden", "change", "figure"), LIES)
def test_a_synthetic_figure_that_the_rows_do_not_have_is_a_fault(
    tmp_path: Path, golden: str, change: Callable[[Json], object], figure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other checks see of it is left out: a forger who keeps to them is caught by the rows."""
    from dpmodels.hand_off import check_words

    monkeypatch.setattr(check_words, "impossible", lambda *_: ())
    (fault,) = verify_hand_off(forged(NEWEST / golden, tmp_path / "own", lambda _, report, __: change(report))).faults
    assert fault.startswith(SAYS + figure)
    assert MAKE_IT in fault


def made_anew(golden: str, folder: Path) -> Path:
    """Return a hand-off with the pages of today."""
    return forged(NEWEST / golden, folder / "own", lambda *_: None)


@pytest.mark.parametrize("golden", ["derived", "targeted", "discovered", "laid-out", "users"])
def test_the_figures_of_an_honest_hand_off_are_those_of_its_rows(tmp_path: Path, golden: str) -> None:
    check = verify_hand_off(made_anew(golden, tmp_path))
    assert (check.faults, [one for one in check.notes if "counted again" in one]) == ([], [])


def test_of_rows_that_do_not_lie_in_the_folder_it_is_said_that_they_were_not_counted(tmp_path: Path) -> None:
    folder = made_anew("derived", tmp_path)
    part = "synthetic/part-00000.parquet"
    digest = json.loads((folder / "manifest.json").read_text())["artifacts"][part]
    shutil.rmtree(folder / "synthetic")
    check = verify_hand_off(folder, elsewhere={part: digest})
    assert check_rows.ELSEWHERE in check.notes
    assert check.faults == []


def test_of_more_rows_than_are_counted_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_rows, "MOST", 29)
    assert check_rows.TOO_MANY.format(most=29) in verify_hand_off(made_anew("derived", tmp_path)).notes


def test_a_count_of_many_rows_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, folder = list[Any](), made_anew("derived", tmp_path)

    @contextmanager
    def bar(title: str) -> Iterator[Callable[[float, float], None]]:
        shown.append(title)
        yield lambda done, total: shown.append((done, total))

    assert verify_hand_off(folder, bar=bar).faults == [] and not shown
    monkeypatch.setattr(check_rows, "MANY", 29)
    assert verify_hand_off(folder, bar=bar).faults == [] and shown[:2] == ["counting", (30, 30)]


SHOP = Tree.model_validate(
    {
        "name": "shop",
        "tables": {
            "customer": {
                "key": "id",
                "columns": {
                    "id": {"type": "identifier", "keep": "regenerate"},
                    "age": {"type": "integer", "min": 0, "max": 99},
                },
            },
            "visit": {
                "key": "number",
                "parent": "customer",
                "most": 3,
                "columns": {
                    "number": {"type": "identifier", "keep": "regenerate"},
                    "id": {"type": "identifier"},
                    "kind": {"type": "categorical", "values": ["a", "b"]},
                },
            },
        },
    }
)


@pytest.mark.parametrize(("synthetic", "differ"), [([0.75, 0.25], 0), ([2 / 3, 1 / 3], 2)])
def test_in_a_tree_each_unit_weighs_one_whatever_its_rows(tmp_path: Path, synthetic: list[float], differ: int) -> None:
    customers, visits = {"id": [1, 2], "age": [40, 60]}, {"number": [1, 2, 3], "id": [1, 1, 2], "kind": [*"aba"]}
    for name, rows in (("customer", customers), ("visit", visits)):
        (tmp_path / "synthetic" / name).mkdir(parents=True)
        pq.write_table(pa.table(rows), tmp_path / "synthetic" / name / "part-00000.parquet")
    kind = {"table": "visit", "name": "visit.kind", "labels": ["a", "b"], "synthetic": synthetic}
    parts = [f"synthetic/{name}/part-00000.parquet" for name in SHOP.tables]
    rows = HandedOver(tmp_path, parts, SHOP.flat_of(SHOP.root))
    assert rows.count() == 5
    assert len(list(differing_in_tree({"columns": [kind]}, rows, SHOP))) == differ


def columns_of(**columns: Json) -> Schema:
    return Schema.model_validate({"name": "some", "unit": "record", "columns": columns})


def test_rows_are_in_the_groups_that_their_values_are_called_by() -> None:
    whole = columns_of(age={"type": "integer", "min": 0, "max": 99, "nullable": True, "zero_inflated": True})
    values = Values.of(whole.columns["age"], pa.array([0, 5, 9, 10, None]))
    inside = values.groups([["1 to 9"], ["10 to 99", "null"], ["exactly 0"]])
    assert inside.sure.astype(int).tolist() == [[0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1, 0, 0, 0, 0]]
    assert inside.is_known.all()


def test_a_value_at_the_end_of_a_range_that_is_written_with_four_digits_may_be_in_it() -> None:
    real = columns_of(dose={"type": "number", "min": 0, "max": 10})
    inside = Values.of(real.columns["dose"], pa.array([1.2, 1.23449, 1.2347, 2.0])).groups([["0 to 1.234"]])
    assert inside.sure.tolist() == [[True, False, False, False]]
    assert inside.maybe.tolist() == [[True, True, False, False]]


def test_categories_that_are_not_named_may_be_any() -> None:
    towns = columns_of(town={"type": "categorical", "values": ["Gent", "Brugge"], "nullable": True})
    inside = Values.of(towns.columns["town"], pa.array(["Gent", None, "Brugge"])).groups([["Gent", "null"], ["2 more"]])
    assert inside.sure.astype(int).tolist() == [[1, 1, 0], [0, 0, 0]]
    assert np.array_equal(inside.maybe[1], [True] * 3)
