"""Means by groups that agree: least squares, cells that rules leave empty, and what a report then states."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.polynomial import polynomial_of
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_derived import _are_shares
from dpmodels.hand_off.columns.check_groups import are_means
from dpmodels.hand_off.columns.check_sums import add_up, are_wholes
from dpmodels.hand_off.columns.fixed import may_be_sure
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.methods.registry import create
from dpmodels.report.derived.possible import Rules
from dpmodels.report.groups.cells import Inside
from dpmodels.report.groups.least_squares import Sums, estimate
from dpmodels.report.groups.means import BEYOND, LARGER, Measured, Term, judged
from dpmodels.report.groups.reconciled import MeanOfAll, PartMean, errors_of_groups, reconciled, related
from dpmodels.report.groups.wholes import agreeing, of_all_tables
from tests.kit.reports import facts_of

SCHEMA, _ = parse("""
name: pay
constraints:
- when contract = agency then overtime = 0
- when grade = low then bonus = 0
- when contract = agency then review = null
- net <= rate
workload:
- {columns: [contract, base_counted]}
- {columns: [contract, gross_counted]}
- {columns: [contract, paid_counted]}
- {columns: [grade, bonus]}
columns:
  contract: {type: categorical, values: [permanent, fixed, agency]}
  grade: {type: categorical, values: [low, high]}
  review: {type: integer, min: 1, max: 5, nullable: true}
  hours: {type: categorical, values: [20, 40]}
  rate: {type: number, min: 0, max: 50, round: 2}
  net: {type: number, min: 0, max: 50, round: 2}
  overtime: {type: integer, min: 0, max: 100, zero_inflated: true}
  bonus: {type: integer, min: 0, max: 900}
  base: {type: derived, formula: "hours * rate", round: 2}
  paid: {type: derived, formula: "1.5 * overtime * rate", round: 2}
  gross: {type: derived, formula: "hours * rate + (1.5 * overtime * rate * 100) / 100 + bonus", round: 2}
  base_counted: {type: number, min: 0, max: 2000, round: 2, computed: base, keep: drop}
  paid_counted: {type: number, min: 0, max: 7500, round: 2, zero_inflated: true, computed: paid, keep: drop}
  gross_counted: {type: number, min: 0, max: 10400, round: 2, computed: gross, keep: drop}
""")
assert isinstance(SCHEMA, Schema)
ROWS, CONTRACTS = 5000, ("permanent", "fixed", "agency")
RULES = Rules(SCHEMA.implications, SCHEMA.rules, SCHEMA.columns, Codec(SCHEMA).columns)
INSIDE = Inside(RULES, [("contract", {one: np.arange(3) == place for place, one in enumerate(CONTRACTS)})])


def make_pay(seed: int) -> Records:
    rng = np.random.default_rng(seed)
    contract, grade = rng.choice(3, ROWS, p=[0.6, 0.2, 0.2]), rng.choice(2, ROWS)
    hours, rate = rng.choice([20, 40], ROWS), (rng.gamma(9, 2, ROWS) + 3 * contract).clip(0, 50).round(2)
    overtime = (contract < 2) * (rng.random(ROWS) < 0.4) * rng.integers(1, 40, ROWS)
    bonus = grade * rng.integers(100, 400, ROWS)
    base, paid = hours * rate, 1.5 * overtime * rate
    columns: dict[str, Any] = {
        "contract": np.array(CONTRACTS)[contract],
        "grade": np.array(["low", "high"])[grade],
        "review": pa.array(rng.integers(1, 6, ROWS), mask=contract == 2),
        "hours": hours,
        "rate": rate,
        "net": (rate * 0.7).round(2),
        "overtime": overtime,
        "bonus": bonus,
        "base_counted": base.round(2),
        "paid_counted": paid.round(2),
        "gross_counted": (base + paid + bonus).round(2),
    }
    return Codec(SCHEMA).encode(pa.table(columns))


def test_formulas_are_written_out_as_sums_of_products() -> None:
    assert polynomial_of("(52 * b * a * 100) / 100 - 2") == {("a", "b"): pytest.approx(52.0), (): -2.0}
    assert polynomial_of("a - (a - b) * 2 + max(a, b)") == {("a",): -1.0, ("b",): 2.0, ("max(a, b)",): 1.0}
    assert polynomial_of("round(a * 100) / 100 - b") == {("a",): 1.0, ("b",): -1.0}
    assert polynomial_of("a - round(a * b) / 100") == {("a",): 1.0, ("a", "b"): pytest.approx(-0.01)}
    of_price = "round(a * 1.19 * 100) / 100"  # whose rounding is multiplied, where it is, and no longer small
    assert polynomial_of(f"{of_price} * b") == {("b", of_price): 1.0}
    assert polynomial_of("a / b") == {("a / b",): 1.0} and polynomial_of("a - a") == {}


def test_least_squares_weigh_hold_what_is_exact_and_stay_between_bounds() -> None:
    def sums(*rows: tuple[list[float], float, float]) -> Sums:
        of, first, second = zip(*rows, strict=True)
        return Sums(np.array(of), np.array(first), np.array(second))

    low, high = np.zeros(2), np.full(2, 100.0)
    none = Sums(np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    measured = sums(([1, 0], 10, 1), ([1, 0], 20, 2), ([0, 1], 30, 1), ([1, 1], 42, 0))
    means, gains = estimate(measured, none, low, high)
    covariance = (gains * measured.second**2) @ gains.T
    assert means.sum() == pytest.approx(42) and covariance.sum() == pytest.approx(0, abs=1e-9)
    weights = 1 + 1 / 4 + 1  # of x: 10 and 20, and 42 - 30
    assert means[0] == pytest.approx((10 + 20 / 4 + 12) / weights, rel=1e-5)
    assert covariance[0, 0] == pytest.approx(1 / weights, rel=1e-5)
    beyond = sums(([1, 0], -3, 1), ([0, 1], 5, 1), ([1, 1], 10, 1))
    means, gains = estimate(beyond, sums(([1, 0], 0, 100), ([-1, 1], -100, 4)), low, high)
    assert means == pytest.approx([5 / 3, 17 / 3], rel=1e-4)  # x + 3, x - 1 and 2 x - 6 have the least squares
    assert (gains**2).sum(axis=1) == pytest.approx([2 / 3] * 2, rel=1e-5)


def _term(means: list[float], errors: list[float], counts: list[float]) -> Term:
    figures = {"count": counts, "mean": means, "noise": errors, "inside": 0.0, "shift": 0.0, "off": 1.0}
    return Term(pd.DataFrame(figures, index=pd.Index(CONTRACTS)), 0.0, 1e4)


def test_means_agree_with_formulas_and_the_mean_of_all_and_are_off_by_what_is_stated() -> None:
    rng, errors, counts = np.random.default_rng(0), np.array([9.0, 20.0, 30.0]), [3000.0, 1200.0, 800.0]
    truth = {
        name: np.array(one)
        for name, one in (("base", (900.0, 990, 1080)), ("paid", (90.0, 99, 0)), ("bonus", [120.0] * 3))
    }
    truth["gross"] = truth["base"] + truth["paid"] + truth["bonus"]
    all_rows = {name: float(one @ np.array(counts) / sum(counts)) for name, one in truth.items()}
    off = list[Any]()
    for _ in range(200):
        terms = {
            name: _term([*(one + errors * rng.standard_normal(3))], [*errors], counts) for name, one in truth.items()
        }
        terms["paid"].groups.loc["agency", ["mean", "noise"]] = 0.0
        measured = {name: Measured(term, [("", term)], is_dated=False) for name, term in terms.items()}
        wholes = {"gross": MeanOfAll(all_rows["gross"] + 3 * rng.standard_normal(), 3.0)}
        made = {
            name: reconciled({name: measured[name], **measured}, wholes, SCHEMA.columns, INSIDE).groups
            for name in truth
        }
        parts = sum(made[name]["mean"] for name in ("base", "paid", "bonus"))
        assert np.allclose(parts, made["gross"]["mean"]) and made["paid"].loc["agency", ["mean", "noise"]].eq(0).all()
        off.append([(made[name]["mean"] - truth[name]) / made[name]["noise"] for name in ("base", "gross", "bonus")])
        assert (made["gross"]["noise"] < 0.9 * errors).all()
    assert 0.85 < np.std(off) < 1.15  # what is stated of an error is neither too much nor too little


def test_what_two_amounts_are_off_by_alike_is_no_smaller_for_both() -> None:
    """Base and gross of a group whose values are at the far end of a cell are both too small."""

    def within(noise: float, inside: float) -> np.ndarray:
        terms = {name: _term([900.0] * 3, [noise] * 3, [1e3] * 3) for name in ("base", "gross")}
        for term in terms.values():
            term.groups["inside"] = inside
        terms |= {name: _term([0.0] * 3, [0.0] * 3, [1e3] * 3) for name in ("overtime", "bonus", "paid")}
        measured = {name: Measured(term, [("", term)], is_dated=False) for name, term in terms.items()}
        return errors_of_groups(reconciled(measured, {}, SCHEMA.columns, INSIDE).groups)

    assert within(30.0, 0.0) == pytest.approx(30 / 2**0.5, rel=0.01)
    assert within(0.1, 30.0) == pytest.approx(30 * 0.75**0.5, rel=0.01)


def test_a_mean_beyond_those_of_all_cells_stays_where_it_makes_up_the_mean_of_all_rows() -> None:
    term = _term([10.0, 20, 90], [0.1, 0.1, 20], [600.0, 200, 200])._replace(most=100.0)
    measured = {"rate": Measured(term, [("", term)], is_dated=False)}
    columns = {"rate": SCHEMA.columns["rate"].model_copy(update={"max": 500})}
    made = judged(reconciled(measured, {"rate": MeanOfAll(34.0, 3.0, is_exact=True)}, columns, INSIDE))
    assert (made["mean"] * made["count"]).sum() / 1000 == pytest.approx(34) and made["mean"].iloc[2] > 110
    below = measured["rate"]._replace(whole=_term([-1e-9, 2.0, 9.0], [3.0, 1, 9], [600.0, 200, 200]))
    made = judged(reconciled({"rate": below}, {}, columns, INSIDE))  # an end is an end, whatever rounding leaves of it
    assert made["reason"].iloc[0] == LARGER and made["mean"].iloc[0] == 0
    far = judged(reconciled(measured, {"rate": MeanOfAll(64.0, 3.0, is_exact=True)}, columns, INSIDE))
    assert far["reason"].iloc[2] == BEYOND and far["mean"].isna().iloc[2]


def test_means_that_a_rule_orders_are_not_crossed() -> None:
    terms = {"net": _term([30.0, 20, 10], [3.0] * 3, [1.0] * 3), "rate": _term([25.0, 25, 25], [3.0] * 3, [1.0] * 3)}
    measured = {name: Measured(term, [("", term)], is_dated=False) for name, term in terms.items()}
    assert related("net", SCHEMA.columns, SCHEMA.rules)[:2] == ["net", "rate"]
    net = reconciled(measured, {}, SCHEMA.columns, INSIDE).groups["mean"]
    assert net.tolist() == pytest.approx([27.5, 20, 10], abs=0.01)


def test_the_mean_of_several_groups_together_that_another_table_tells_better_moves_them_and_makes_them_surer() -> None:
    rng, counts = np.random.default_rng(1), [600.0, 400.0, 800.0]
    truth, both, off = np.array([20.0, 25.0, 30.0]), np.array([True, True, False]), list[Any]()
    for _ in range(200):
        term = _term([*(truth + rng.normal(0, 4, 3))], [4.0] * 3, counts)
        measured = {"rate": Measured(term, [("", term)], is_dated=False)}
        part = PartMean(both, 22 + rng.normal(0, 0.5), 0.5, 0.0)
        groups = reconciled(measured, {}, SCHEMA.columns, INSIDE, [part]).groups
        off.append((groups["mean"] - truth) / errors_of_groups(groups))
        assert float(groups["mean"].iloc[:2] @ counts[:2]) / 1000 == pytest.approx(part.mean, abs=0.3)
    assert np.std(off, axis=0) == pytest.approx(1, abs=0.15)
    assert (errors_of_groups(groups) < [3.3, 3.5, 4.01]).all()
    alone = reconciled(measured, {}, SCHEMA.columns, INSIDE).groups
    assert errors_of_groups(alone) == pytest.approx(4.0)


def test_a_multiple_of_a_measured_amount_tells_nothing_more_of_it() -> None:
    added, _ = parse("""
name: t
columns:
  a: {type: number, min: 0, max: 10, round: 1}
  vat: {type: derived, formula: "a * 0.19"}
  more: {type: derived, formula: "a + 5", round: 0}
  none: {type: derived, formula: "b + 1"}
  b: {type: integer, min: 0, max: 9, nullable: true}
""")
    assert isinstance(added, Schema)
    a = _term([4.0, 5, 6], [1.0] * 3, [10.0] * 3)
    terms = {
        "a": a,
        "vat": _term([0.76, 0.95, 1.14], [0.19] * 3, [10.0] * 3),
        "more": _term([9.0, 10, 11], [1.0] * 3, [10.0] * 3),
    }
    measured = {
        name: Measured(term, [("" if name == "a" else str(added.derived[name].formula), term)], False)
        for name, term in terms.items()
    }
    wholes = {"a": MeanOfAll(5.0, 2.0), "vat": MeanOfAll(0.95, 0.38)}
    alone = reconciled({"a": measured["a"]}, {"a": wholes["a"]}, added.columns, INSIDE).groups
    beside = {
        name: reconciled({name: measured[name], **measured}, wholes, added.columns, INSIDE).groups for name in terms
    }
    assert beside["a"]["noise"].tolist() == pytest.approx(alone["noise"].tolist())
    assert beside["vat"]["noise"].tolist() == pytest.approx((0.19 * alone["noise"]).tolist(), rel=1e-6)
    assert (beside["more"]["shift"] >= 0.5).all() and not alone["shift"].any()  # it is rounded, perhaps always up
    null = Measured(a, [("b + 1", a)], is_dated=False)
    assert reconciled({"none": null}, {}, added.columns, INSIDE).groups["mean"].tolist() == pytest.approx([4.0, 5, 6])


def test_amounts_that_a_group_shares_out_at_its_own_rate_agree_and_a_share_of_nothing_is_0() -> None:
    claims, _ = parse("""
name: claims
columns:
  contract: {type: categorical, values: [permanent, fixed, agency]}
  cost: {type: number, min: 0, max: 1000, round: 2}
  fund: {type: derived, formula: "round(cost * {'permanent': 50, 'fixed': 75, 'agency': 100}[contract]) / 100"}
  rest: {type: derived, formula: "cost - fund", round: 2}
""")
    assert isinstance(claims, Schema)
    rules = Rules((), (), claims.columns, Codec(claims).columns)
    inside = Inside(rules, INSIDE.columns)
    means = {"cost": [100.0, 220, 310], "fund": [58.0, 150, 290], "rest": [44.0, 61, 7]}
    measured = {
        name: Measured(term := _term(of, [4.0, 8, 12], [3000.0, 1200, 800]), [("", term)], False)
        for name, of in means.items()
    }
    cost, fund, rest = (
        reconciled({name: measured[name], **measured}, {}, claims.columns, inside).groups for name in means
    )
    assert fund["mean"].tolist() == pytest.approx((cost["mean"] * [0.5, 0.75, 1]).tolist(), abs=0.01)
    assert rest["mean"].tolist() == pytest.approx((cost["mean"] * [0.5, 0.25, 0]).tolist(), abs=0.01)
    assert rest["mean"].iloc[2] == rest["noise"].iloc[2] == 0 and (cost["noise"] < [4, 8, 12]).all()
    formula, masks = str(claims.columns["rest"].formula), [np.arange(3) == place for place in range(3)]
    assert [rules.is_settled(formula, "contract", one) for one in masks] == [False, False, True]
    rest_by = [{"labels": [name]} for name in CONTRACTS]
    assert [may_be_sure(claims, "rest", "contract", one["labels"]) for one in rest_by] == [False, False, True]


def test_a_column_of_words_has_no_ends_of_its_own_and_ends_a_table_that_it_is_looked_up_in() -> None:
    inside, table = np.arange(3) == 2, "{'permanent': 1, 'fixed': 2, 'agency': 7}[contract]"
    assert RULES.between("contract", "contract", inside) == (-np.inf, np.inf)
    assert RULES.between(table, "contract", inside) == (7, 7)


def test_what_a_rule_fixes_is_rounded_as_its_values_are() -> None:
    exact = _term([1.8981, 2.0, 3.0], [0.0, 1.0, 1.0], [10.0] * 3)
    columns = {**SCHEMA.columns, "base": SCHEMA.columns["base"].model_copy(update={"round": 1})}
    groups = reconciled({"base": Measured(exact, [("", exact)], is_dated=False)}, {}, columns, INSIDE).groups
    assert groups["mean"].tolist()[0] == 1.9 and groups["shift"].tolist() == pytest.approx([0.0, 0.05, 0.05], rel=0.01)


def test_a_rule_does_not_order_means_of_which_one_is_of_other_rows() -> None:
    columns = {**SCHEMA.columns, "net": SCHEMA.columns["net"].model_copy(update={"nullable": True})}
    assert related("net", columns, SCHEMA.rules) == ["net"]
    assert "rate" in related("net", SCHEMA.columns, SCHEMA.rules)


def test_cells_that_rules_forbid_are_empty_and_others_keep_their_counts() -> None:
    def cleared(*names: str) -> Any:
        cut = [RULES.cut[name] for name in names]
        table = NoisyTable(
            names, tuple(np.arange(one.size) for one in cut), np.full([one.size for one in cut], 7.0), 3.0
        )
        return RULES.cleared(table)

    hours = cleared("contract", "overtime")
    assert not hours.counts[2, :-1].any() and hours.counts[2, -1] == 7 and (hours.counts[:2] == 7).all()
    assert not hours.stddev[2, :-1].any() and hours.stddev[2, -1] == 3
    paid = cleared("paid_counted", "contract")  # follows from overtime, which is 0
    assert not paid.counts[:-1, 2].any() and paid.counts[-1, 2] == 7 and (paid.counts[:, :2] == 7).all()
    review = cleared("contract", "review")
    assert not review.counts[2, :-1].any() and review.counts[2, -1] == 7
    net = cleared("net", "rate").counts
    assert (net[np.triu_indices(len(net))] == 7).all() and not np.tril(net, -2).any()
    assert (cleared("grade", "overtime").counts == 7).all()


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    return facts_of(create("nacre", {}, {}), make_pay(0), make_pay(1), SCHEMA)


def test_a_report_states_exact_means_where_rules_say_them_and_sums_of_its_parts(facts: dict[str, Any]) -> None:
    by = {(one["column"], one["by"]): {g["labels"][0]: g for g in one["groups"]} for one in facts["groups"]}
    agency, low = by["paid", "contract"]["agency"], by["bonus", "grade"]["low"]
    assert (agency["released"], agency["within"]) == (low["released"], low["within"]) == (0.0, 0.0)
    means = {one["name"]: one["mean"] for one in (*facts["columns"], *facts["derived"]) if "mean" in one}
    wholes = [means[name]["estimate"] for name in ("base", "paid", "bonus")]
    assert sum(wholes) == pytest.approx(means["gross"]["estimate"], abs=0.5 * means["gross"]["expected_error"])
    for contract in CONTRACTS:
        base, paid, gross = (by[name, "contract"][contract] for name in ("base", "paid", "gross"))
        assert gross["released"] >= base["released"] + paid["released"] - 0.5
    groups = by["gross", "contract"].values()
    whole = sum(one["share"] * one["released"] for one in groups)
    assert whole == pytest.approx(means["gross_counted"]["estimate"], abs=means["gross_counted"]["expected_error"])


def test_groups_of_all_tables_make_up_one_mean_of_all_rows_that_is_told_best(facts: dict[str, Any]) -> None:
    stated = {one["name"]: one["mean"]["estimate"] for one in (*facts["columns"], *facts["derived"]) if "mean" in one}
    wholes, sums = facts["wholes"], list[float]()
    assert {"rate", "base", "gross", "gross_counted"} <= {*wholes} and are_wholes(facts)
    assert all(stated[name] == mean and error > 0 for name, (mean, error) in wholes.items())
    for one in facts["groups"]:
        if one["column"] in wholes and all(group["released"] is not None for group in one["groups"]):
            made_up = sum(group["share"] * group["released"] for group in one["groups"])
            sums.append(abs(made_up / wholes[one["column"]][0] - 1))
    assert len(sums) > 3 and np.median(sums) < 0.005  # a mean beyond all its cells is set to the nearest of them
    parts = stated["base"] + stated["paid"] + stated["bonus"]
    assert parts == pytest.approx(stated["gross"], rel=0.05)
    for forged in ([stated["rate"] * 1.01, 1.0], [stated["rate"], 0.0], [stated["rate"], True], [stated["rate"]]):
        assert not are_wholes({**facts, "wholes": {**wholes, "rate": forged}})


def test_rates_of_the_target_by_every_column_make_up_the_share_that_is_stated_of_it() -> None:
    targeted = Schema.model_validate({**SCHEMA.model_dump(mode="json", exclude_unset=True), "target": "grade"})
    facts = facts_of(create("nacre", {}, {}), make_pay(0), make_pay(1), targeted)
    rates, grade = facts["rates"], next(one for one in facts["columns"] if one["name"] == "grade")
    whole = [sum(a * b for a, b in zip(one["share"], one["released"], strict=True)) for one in rates["columns"]]
    stated = grade["released"][grade["labels"].index(rates["class"])]
    assert len(whole) > 3 and whole == pytest.approx([stated] * len(whole), abs=1e-4)


def test_of_several_tables_the_one_with_the_least_error_tells_a_mean_of_all_rows() -> None:
    alone, term = {"a": MeanOfAll(10.0, 3.0), "b": MeanOfAll(5.0, 0.1)}, _term([4.0, 9, 16], [0.3] * 3, [2.0, 1.0, 1.0])
    by = {"x": Measured(term, [("", term)], is_dated=False), "date": Measured(term, [("", term)], is_dated=True)}
    told = of_all_tables(
        alone, [("a", "x"), ("a", "date"), ("a", "none"), ("b", "x"), ("c", "x")], lambda _, one: by.get(one)
    )
    assert told["a"].mean == 8.25 and told["a"].is_exact and told["b"][:2] == (5.0, 0.1) and {*told} == {"a", "b"}
    unknown = _term([4.0, float("nan"), 16], [0.3] * 3, [2.0, 1.0, 1.0])
    assert of_all_tables(alone, [("a", "x")], lambda *_: Measured(unknown, [("", unknown)], is_dated=False)) == {}


def test_verify_refuses_means_that_no_row_could_have_by_the_rules(facts: dict[str, Any]) -> None:
    def forged(column: str, by: str, key: str) -> bool:
        other = copy.deepcopy(facts)
        means = next(one for one in other["groups"] if (one["column"], one["by"]) == (column, by))
        means["groups"][{"contract": 2, "grade": 0}[by]][key] = 0.5
        return are_means(other, SCHEMA)

    assert are_means(facts, SCHEMA)
    assert not forged("paid", "contract", "released") and not forged("paid", "contract", "synthetic")
    assert not forged("bonus", "grade", "released")


@pytest.mark.parametrize(
    ("column", "key", "factor"),
    [
        ("gross", "released", 0.5),
        ("gross", "synthetic", 0.8),
        ("net", "synthetic", 1.5),
        ("base", "released", 1.5),
        ("base", "share", 0.0),
    ],
)
def test_verify_refuses_means_that_formulas_rules_and_the_means_of_all_rows_forbid(
    facts: dict[str, Any], column: str, key: str, factor: float
) -> None:
    forged = copy.deepcopy(facts)
    means = next(one for one in forged["groups"] if (one["column"], one["by"]) == (column, "contract"))
    means["groups"][0][key] *= factor
    assert add_up(facts, SCHEMA) and not add_up(forged, SCHEMA)


def test_means_of_derived_columns_move_by_no_more_than_they_are_off() -> None:
    def mean(name: str, estimate: float, error: float) -> dict[str, Any]:
        return {"name": name, "type": "number", "mean": {"estimate": estimate, "expected_error": error}}

    measured = [mean("bonus", 100.0, 1.0)]
    derived = [mean("base", 1000.0, 10.0), mean("paid", 100.0, 10.0), mean("gross", 1000.0, 10.0)]
    made = {one["name"]: one["mean"]["estimate"] for one in agreeing(derived, measured, SCHEMA.columns, ())}
    assert made == {"base": 990.0, "paid": 90.0, "gross": 1010.0}
    assert agreeing(derived[:1], [], SCHEMA.columns, ()) == derived[:1]


def test_the_ends_of_ranges_may_read_alike_where_they_are_neighbors_and_nowhere_else() -> None:
    column = Derived(type="derived", formula="a * 0.19")
    facts = {"labels": ["24.17", "24.17", "24.18"], "synthetic": [0.5, 0.25, 0.25], "ordered": True, "values": 3}
    assert _are_shares(facts, column)
    assert not _are_shares({**facts, "labels": ["24.17", "24.18", "24.17"]}, column)
    assert not _are_shares({**facts, "ordered": False}, column)
