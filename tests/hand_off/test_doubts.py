"""Hand-offs whose figures are each possible, and that leave out doubts, parts, rules or noise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmodels.contract.schema import Schema
from dpmodels.hand_off.check_report import LESS_NOISE
from dpmodels.hand_off.columns.check_doubts import are_doubted, has_its_doubts
from dpmodels.hand_off.columns.check_joint import are_joint_figures
from dpmodels.hand_off.columns.check_parts import is_due
from dpmodels.hand_off.columns.check_rates import are_rates
from dpmodels.hand_off.columns.fixed import cells_of
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.report.warned import doubt
from dpmodels.report.within import rate_within
from tests.hand_off.make_golden import GOLDEN
from tests.kit.manifests import Json, forged

TARGETED, DERIVED, USERS = (GOLDEN / "LAYOUT-26" / name for name in ("targeted", "derived", "users"))
EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
ELSE = "report.json says something else than manifest.json and schema.yaml make of"
FIGURES = "report.json has figures that no release has:"
RULED = Schema.model_validate(
    {
        "name": "visits",
        "columns": {
            "act": {"type": "categorical", "values": ["visit", "pharmacy"]},
            "area": {"type": "categorical", "values": ["north", "south"]},
            "remote": {"type": "categorical", "values": ["no", "yes"]},
        },
        "constraints": ["when act = pharmacy then remote = no"],
    }
)


def remeasured(rates: Json) -> None:
    """Say within what rates are that were changed."""
    figures = zip(rates["released"], rates["stddev"], rates["synthetic"], strict=True)
    rates["within"] = [rate_within(*one) for one in figures]


def without_doubts(report: Json) -> None:
    for one in report["columns"]:
        one.pop("avoid", None), one.pop("warning", None), one.pop("resolved", None)


def moved(report: Json) -> None:
    rates = report["rates"]["columns"][0]
    rates["released"][0] += 3 * rates["stddev"][0]
    remeasured(rates)


def quieter(report: Json) -> None:
    for rates in report["rates"]["columns"]:
        rates["stddev"], rates["synthetic"] = [one / 30 for one in rates["stddev"]], [*rates["released"]]
        remeasured(rates)


def turned(report: Json) -> None:
    rates = report["rates"]["columns"][2]
    for key in ("released", "stddev", "synthetic", "share", "within"):
        rates[key].reverse()


def without_reasons(report: Json) -> None:
    for one in (group for means in report["groups"] for group in means["groups"]):
        one["reason"] = ""


def resized(report: Json) -> None:
    groups = report["groups"][0]["groups"]
    groups[0]["share"], groups[1]["share"] = groups[1]["share"], groups[0]["share"]


def swapped(report: Json) -> None:
    first, second = report["groups"][0]["groups"]
    first["labels"], second["labels"] = second["labels"], first["labels"]


def unmoved(report: Json) -> None:
    for means in report["groups"]:
        for one in means["groups"]:
            one["within"] = 0.0


def surer(report: Json) -> None:
    report["columns"][2]["released_stddev"] = [one / 100 for one in report["columns"][2]["released_stddev"]]


def narrower(report: Json) -> None:
    for means in report["groups"]:
        for one in means["groups"]:
            one["within"] = float(f"{one['within'] / 20:.3g}")


def figure(name: str, key: str, **facts: float) -> Callable[[Json], object]:
    """Return a change of the mean or the 99 % quantile of a column."""
    return lambda report: next(one for one in report["columns"] if one["name"] == name)[key].update(facts)


MISSING = "of which a part is missing"
LIES: list[tuple[Path, str, Callable[[Json], object]]] = [
    (USERS, f"{ELSE} columns", without_doubts),
    (TARGETED, f"{FIGURES} rates", moved),
    (EXAMPLE, f"{FIGURES} rates", quieter),
    (EXAMPLE, f"{FIGURES} rates", turned),
    (DERIVED, f"{FIGURES} groups", without_reasons),
    (EXAMPLE, f"{FIGURES} groups", resized),
    (EXAMPLE, f"{FIGURES} groups", swapped),
    (EXAMPLE, f"{FIGURES} groups", unmoved),
    (EXAMPLE, f"{FIGURES} columns.ethnicity.released_stddev", surer),
    (EXAMPLE, f"{FIGURES} groups", narrower),
    (EXAMPLE, f"{FIGURES} columns.earned_78.p99", figure("earned_78", "p99", estimate=9000.0)),
    (EXAMPLE, f"{FIGURES} columns.age.mean", figure("age", "mean", expected_error=0.01)),
    (EXAMPLE, f"{ELSE} fit", lambda report: report.update(fit=[])),
    (DERIVED, f"{FIGURES} asked, {MISSING}", lambda report: report.pop("asked")),
    (DERIVED, f"{FIGURES} asked_rates, {MISSING}", lambda report: report.pop("asked_rates")),
    (DERIVED, f"{FIGURES} derived, {MISSING}", lambda report: report["derived"].pop()),
    (TARGETED, f"{FIGURES} rates, {MISSING}", lambda report: report.pop("rates")),
    (TARGETED, f"{FIGURES} rates, {MISSING}", lambda report: report["rates"]["columns"].pop()),
    (
        TARGETED,
        LESS_NOISE,
        lambda report: report["noise_stddev"].update({"records in a cell of one column, at each zoom": 1.0}),
    ),
    (TARGETED, f"{ELSE} columns", lambda report: report["columns"][0]["axis"].update(beyond=True)),
    (DERIVED, f"{ELSE} derived", lambda report: report["derived"][1]["axis"]["edges"].reverse()),
]


@pytest.mark.parametrize(("golden", "fault", "lie"), LIES, ids=[f"{one[0].name}: {one[1]}" for one in LIES])
def test_what_is_left_out_of_a_report_is_missed(
    tmp_path: Path, golden: Path, fault: str, lie: Callable[[Json], object]
) -> None:
    folder = forged(golden, tmp_path / "own", lambda manifest, report, card: lie(report))
    assert any(one.startswith(fault) for one in verify_hand_off(folder).faults)


@pytest.mark.parametrize("golden", [TARGETED, DERIVED, USERS, EXAMPLE], ids=lambda folder: folder.name)
def test_nothing_is_missed_where_nothing_was_changed(tmp_path: Path, golden: Path) -> None:
    assert verify_hand_off(forged(golden, tmp_path / "own", lambda manifest, report, card: None)).faults == []


CLASSES = {"ordered": False, "labels": ["a", "b"], "released": [0.6, 0.4]}


@pytest.mark.parametrize(("records", "is_missed"), [(2000.0, True), (100.0, False)])
def test_a_joint_table_without_its_rates_is_missed_where_noise_could_not_hide_them(
    records: float, is_missed: bool
) -> None:
    names = [*RULED.columns]
    report: Json = {"columns": [{"name": one, **CLASSES} for one in names], "released_records": records}
    report |= {"noise_stddev": {f"records in pairs ({' by '.join(names)})": 10.0}, "asked_rates": [{"target": 2}]}
    assert is_due(names, report) is is_missed


def test_a_column_whose_mean_is_open_says_so_and_so_do_its_groups() -> None:
    table = Schema.model_validate({"name": "x", "columns": {"fee": {"type": "number", "min": 0, "max": 900}}})
    errors: Json = {"mean": {"estimate": 90.0, "expected_error": None, "expected_error_if_thinning_out": 9.0}}
    errors |= {"p99": {"estimate": 300.0, "expected_error": 1.0}}
    errors |= {"unseen": {"records": 9.0, "share": 0.1, "means": [80.0, 300.0], "open": True}}
    doubted = doubt(table.modelled["fee"], errors)
    assert doubted is not None
    facts = {"released": [], **errors, "avoid": [*doubted.figures], "warning": doubted.sentence.capitalize()}
    facts["warning"] = doubted.sentence[0].upper() + doubted.sentence[1:]
    assert has_its_doubts(facts, table.modelled["fee"])
    for lie in ({"avoid": []}, {"warning": ""}, {"warning": facts["warning"].replace("300", "95")}, {"unseen": {}}):
        assert not has_its_doubts(facts | lie, table.modelled["fee"]), lie
    group = {"released": 90.0, "within": 1.0, "reason": ""}
    means = {"column": "fee", "groups": [group, {**group, "released": 20.0}]}
    assert not are_doubted(means, {"columns": [{"name": "fee", **facts}]}, table)
    assert are_doubted(means, {"columns": [{"name": "fee"}]}, table)
    alike = {"column": "fee", "groups": [{**group, "within": 40.0}, {**group, "within": 41.0}]}
    assert not are_doubted(alike, {"columns": [{"name": "fee"}]}, table)


def test_a_column_of_one_value_is_not_doubted() -> None:
    """Its mean "may be anywhere from 7 to 7", and narrower bounds were advised."""
    table = Schema.model_validate({"name": "x", "columns": {"sole": {"type": "integer", "min": 7, "max": 7}}})
    errors = {"mean": {"estimate": 7.0, "expected_error": 0.0}, "unseen": {"means": [7.0, 7.0], "far": True}}
    assert doubt(table.modelled["sole"], errors) is None


def ruled(**rates: Any) -> tuple[Json, Json]:
    """Return rates of remote acts by their kind, of which a rule fixes one at 0, and the report that they are in."""
    column = {"ordered": False, "released_stddev": [0.002, 0.002]}
    shares = {"act": [0.5, 0.5], "area": [0.4, 0.6], "remote": [0.9, 0.1]}
    labels = {name: list(one.keys) for name, one in RULED.modelled.items()}
    columns = [
        {"name": name, "labels": labels[name], "released": one, "synthetic": one, **column}
        for name, one in shares.items()
    ]
    by = {"column": 0, "labels": [["visit"], ["pharmacy"]], "share": [0.5, 0.5], "released": [0.2, 0.0]}
    by |= {"stddev": [0.004, 0.0], "synthetic": [0.2, 0.0]} | rates
    remeasured(by)
    of = {"target": 2, "class": "yes", "columns": [by]}
    noise = {"records in a cell": 10.0}
    return of, {"columns": columns, "noise_stddev": noise, "released_records": 5000.0, "asked_rates": [of]}


@pytest.mark.parametrize(
    "lie",
    [
        {"released": [0.15, 0.05]},
        {"synthetic": [0.15, 0.05]},
        {"stddev": [0.004, 0.004]},
        {"stddev": [0.0, 0.0]},
        {"share": [0.3, 0.7], "released": [0.33, 0.0]},
    ],
    ids=str,
)
def test_a_rate_that_a_rule_fixes_is_that_and_no_other_is_exact(lie: Json) -> None:
    honest, report = ruled()
    assert are_rates(honest, report, RULED, of_values=True)
    rates, report = ruled(**lie)
    assert not are_rates(rates, report, RULED, of_values=True)


def three(**of_first: Any) -> list[Json]:
    """Return the rates of remote acts by kind and area."""
    group = {"share": 0.2, "released": 0.2, "within": 0.04, "synthetic": 0.2, "reason": ""}
    none = {"released": 0.0, "within": 0.0, "synthetic": 0.0}
    sides = {("visit", "north"): {}, ("visit", "south"): {"share": 0.3}}
    sides |= {("pharmacy", "north"): none, ("pharmacy", "south"): {"share": 0.3, **none}}
    groups = [{"labels": [[one], [other]], **group, **said} for (one, other), said in sides.items()]
    groups[0] |= of_first
    return groups


def test_what_is_by_two_columns_adds_up_to_what_is_by_one_and_keeps_rules() -> None:
    _, report = ruled()
    table = {"columns": ["act", "area", "remote"], "place": 0, "column": "remote", "by": ["act", "area"]}

    def holds(groups: list[Json], **more: Any) -> bool:
        return are_joint_figures({**report, "joint": [{**table, "class": "yes", "groups": groups, **more}]}, RULED)

    assert holds(three())
    assert not holds(three(released=0.6)) and not holds(three(within=0.0)) and not holds(three(within=0.0001))
    assert not holds(three(share=0.4)) and not holds(three()[::-1])
    wrong = three()
    wrong[2] |= {"released": 0.3, "within": 0.04}
    assert not holds(wrong)
    wrong[2] |= {"released": 0.0, "within": 0.0, "synthetic": 0.3}
    assert not holds(wrong)


def test_ranges_beside_states_without_a_value_have_cells_of_one_number() -> None:
    """What stood behind a state had fewer cells than the column, so that no such hand-off was verified."""
    column = Schema.model_validate(
        {"name": "x", "columns": {"fee": {"type": "integer", "min": 0, "max": 9, "zero_inflated": True}}}
    ).modelled["fee"]
    cells = cells_of(column, [["exactly 0"], ["1 to 9"]])
    assert [one is not None and len(one) for one in cells] == [column.size, column.size]
    assert np.sum(cells[0]) == 1
