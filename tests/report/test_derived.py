"""What a report says of derived columns: their synthetic values, and within what they are."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.derive import derive
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Categorical
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.monotone import is_monotone, is_monotone_in_each
from dpmodels.contract.numbers import Number
from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.pages.by_column import by_column
from dpmodels.pages.glance import likely_error, likely_of_pair, rank_error
from dpmodels.pages.multiples import column_figure
from dpmodels.pages.report import render
from dpmodels.pages.uses import UNKNOWN
from dpmodels.report.derived.means import _is_exact, counted_mean, ends_of, known_means
from dpmodels.report.derived.shares import IN_GROUPS, MOST_IN_GROUPS, derived_facts, known_within
from dpmodels.report.verdicts import verdict
from tests.kit.reports import facts_of

SCHEMA, _ = parse("""
name: stays
columns:
  ended: {type: datetime, min: 2019-01-01, max: 2021-12-31}
  nights: {type: integer, min: 1, max: 14, nullable: true}
  price: {type: number, min: 0, max: 500, round: 2}
  before: {type: integer, min: 0, max: 3650}
  after: {type: integer, min: 0, max: 3650}
  city: {type: categorical, values: [Rome, Milan, Lyon]}
  began: {type: derived, formula: "add_days(ended, -nights)"}
  total: {type: derived, formula: "price * nights", round: 2}
  change: {type: derived, formula: "price * 100 - 3"}
  day: {type: derived, formula: "weekday(ended)"}
  each: {type: derived, formula: "price / (nights - 5)"}
  between: {type: derived, formula: "after - before"}
  all: {type: derived, formula: "price + nights + before"}
  week: {type: derived, formula: "(after - before) % 7"}
  country: {type: derived, of: city, values: {Rome: IT, Milan: IT, Lyon: FR}}
  is_south: {type: derived, of: city, values: {Rome: true, Milan: false, Lyon: false}}
  nothing: {type: derived, formula: "0 * before"}
""")
assert isinstance(SCHEMA, Schema)
ROWS = 6000


def make_stays(seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 3600, ROWS)
    table = {
        "ended": pa.array(np.datetime64("2019-01-01") + rng.integers(0, 1096, ROWS)),
        "nights": pa.array(rng.integers(1, 15, ROWS), mask=rng.random(ROWS) < 0.1),
        "price": pa.array(rng.gamma(2, 60, ROWS).clip(0, 500).round(2)),
        "before": pa.array(before),
        "after": pa.array(before + rng.integers(0, 50, ROWS)),
        "city": pa.array(rng.choice(["Rome", "Milan", "Lyon"], ROWS, p=[0.5, 0.2, 0.3])),
    }
    computed = {name: derive(SCHEMA.derived[name], SCHEMA.columns, pa.table(table)) for name in SCHEMA.derived}
    return Codec(SCHEMA).encode(pa.table(table | computed))


@pytest.fixture(scope="module")
def real() -> Records:
    return make_stays()


@pytest.fixture(scope="module")
def facts(real: Records) -> dict[str, Any]:
    """Return the report of a release whose synthetic rows are those of another draw of the same table."""
    return facts_of(create("nacre", {}, {}), real, make_stays(1), SCHEMA)


@pytest.fixture(scope="module")
def derived(facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in facts["derived"]}


def test_every_derived_column_is_described_by_its_synthetic_values(derived: dict[str, dict[str, Any]]) -> None:
    assert [*derived] == [*SCHEMA.derived]
    for name, one in derived.items():
        assert sum(one["synthetic"]) == pytest.approx(1, abs=1e-6), name
        assert one["follows"] == [*SCHEMA.derived[name].operands] and len(one["labels"]) == len(one["synthetic"])
    country, is_south = derived["country"], derived["is_south"]
    assert country["labels"] == ["IT", "FR"] and is_south["labels"] == ["true", "false"]
    table = Codec(SCHEMA).decode(make_stays(1))
    assert country["synthetic"][0] == pytest.approx(pc.mean(pc.equal(table["country"], "IT").cast("double")).as_py())
    assert derived["nothing"]["labels"] == ["0"] and derived["nothing"]["synthetic"] == [1.0]
    began = derived["began"]
    assert began["labels"][-1] == "null" and began["synthetic"][-1] == pytest.approx(0.1, abs=0.02)
    assert began["labels"][0].startswith("2018-12-") and began["ordered"] and began["axis"]["ticks"]
    totals = np.nan_to_num(table["total"].to_numpy(), nan=-1.0)
    least, most = map(float, derived["total"]["labels"][5].split(" to "))
    assert derived["total"]["synthetic"][5] == pytest.approx(((totals >= least) & (totals <= most)).mean())


def test_what_follows_from_one_column_is_within_what_that_is(facts: dict[str, Any], derived: dict[str, Any]) -> None:
    columns = {one["name"]: one for one in facts["columns"]}
    assert derived["country"]["shares_within"] == likely_error(columns["city"]) > 0
    assert derived["change"]["quantiles_within"] == rank_error(columns["price"]) > 0
    assert derived["change"]["verdict"].split("; ")[0].endswith(", as of price") and "%" in derived["change"]["verdict"]
    assert not {"shares_within", "quantiles_within"} & {*derived["day"]}  # a weekday keeps no order of days
    assert derived["day"]["verdict"] == "follows from ended: how close it is, is not known"


def test_what_follows_from_two_columns_is_within_what_these_are_together_and_in_groups(
    facts: dict[str, Any], derived: dict[str, Any], real: Records
) -> None:
    names = [one["name"] for one in facts["columns"]]
    table, drawn = Codec(SCHEMA).decode(real), Codec(SCHEMA).decode(make_stays(1))
    for name in ("began", "total"):
        places = sorted(map(names.index, SCHEMA.derived[name].operands))
        (pair,) = [figures for *two, figures in _pairs(facts) if two == places]
        one = derived[name]
        assert 0 < one[IN_GROUPS] <= MOST_IN_GROUPS
        worse = max(rank_error(facts["columns"][place]) for place in places)
        assert one["quantiles_within"] == pytest.approx(likely_of_pair(pair) + worse + one[IN_GROUPS], abs=1e-6)
        values = [
            np.sort(each[name].drop_null().cast("int32" if name == "began" else "double")) for each in (table, drawn)
        ]
        points = np.concatenate(values)
        below = [np.searchsorted(each, points, side="right") / len(each) for each in values]
        assert np.abs(below[0] - below[1]).max() < one["quantiles_within"]
        assert one["verdict"].endswith(f", as of {' and '.join(SCHEMA.derived[name].operands)}")


def test_the_mean_of_a_sum_of_multiples_is_that_sum_of_means_and_is_as_far_off_as_they_are_together(
    facts: dict[str, Any], derived: dict[str, Any], real: Records
) -> None:
    columns, table = {one["name"]: one for one in facts["columns"]}, Codec(SCHEMA).decode(real)
    price, after, before = (columns[name]["mean"] for name in ("price", "after", "before"))
    change, between = derived["change"]["mean"], derived["between"]["mean"]
    for key in ("estimate", "synthetic"):
        assert change[key] == pytest.approx(100 * price[key] - 3, rel=1e-5)
        assert between[key] == pytest.approx(after[key] - before[key], abs=1e-2)
    assert change["expected_error"] == pytest.approx(100 * price["expected_error"], rel=1e-2)
    assert between["expected_error"] == pytest.approx(after["expected_error"] + before["expected_error"], rel=1e-2)
    assert derived["change"]["p99"]["estimate"] == pytest.approx(100 * columns["price"]["p99"]["estimate"] - 3, 1e-5)
    for name, figures in (("change", change), ("between", between)):
        assert abs(pc.mean(table[name]).as_py() - figures["estimate"]) < 4 * figures["expected_error"], name
    for name in ("began", "day", "each", "all", "week", "country"):  # `all` adds what is null in some rows
        assert not {"mean", "p99"} & {*derived[name]}, name
    negative = known_means(Derived(type="derived", formula="2 - nights / 4"), facts["columns"])
    assert "p99" not in negative and negative["mean"]["estimate"] == pytest.approx(
        2 - columns["nights"]["mean"]["estimate"] / 4, rel=1e-4
    )
    for more in ({"round": 0}, {"dtype": "float32"}, {"dtype": "decimal(4, 1)", "round": 1}):
        assert not known_means(Derived(type="derived", formula="price * 1e-6", **more), facts["columns"]), more
    later = known_means(Derived(type="derived", formula="2451545 + before"), facts["columns"])["mean"]
    assert later["estimate"] - 2451545 == pytest.approx(before["estimate"], abs=later["expected_error"] / 50)
    cells = dict(by_column(facts).lines)
    assert cells["change"][1][0].words == cells["price"][1][0].words and cells["day"][1][0].words == UNKNOWN
    assert '<th scope="row">change</th>' in render(facts).partition('<section id="means">')[2].partition("</table>")[0]
    changed = [{**one, "clipped": [0, 500]} for one in facts["columns"]]
    assert not known_means(SCHEMA.derived["change"], changed)


def test_the_mean_of_a_product_follows_from_the_counts_of_its_columns_together(
    facts: dict[str, Any], derived: dict[str, Any], real: Records
) -> None:
    total, table = derived["total"]["mean"], Codec(SCHEMA).decode(real)
    true, price = pc.mean(table["total"]).as_py(), [one for one in facts["columns"] if one["name"] == "price"]
    assert abs(total["estimate"] - true) < 3 * total["expected_error"] < 0.15 * true
    assert total["synthetic"] == pytest.approx(pc.mean(Codec(SCHEMA).decode(make_stays(1))["total"]).as_py(), rel=1e-3)
    column = SCHEMA.derived["total"]
    assert counted_mean(column, SCHEMA.columns, facts["columns"], (true, 5.0), [true + 12])["mean"] == {
        "estimate": pytest.approx(true, abs=0.2), "expected_error": 13.0,
        "synthetic": pytest.approx(true + 12, abs=0.2), "synthetic_stddev": 0.0,
    }  # fmt: skip
    hidden = [one | ({"unseen": {"share": 0.01}} if one in price else {}) for one in facts["columns"]]
    low, high = counted_mean(column, SCHEMA.columns, hidden, (true, 5.0), [true])["unseen"]["means"]
    assert low == pytest.approx(0.99 * true, rel=1e-2) and high == pytest.approx(true + 0.01 * (7000 - true), rel=1e-2)
    hump = Derived(type="derived", formula="before * (3650 - before) / 1000")  # 0 at both bounds, and not between them
    stated = counted_mean(hump, SCHEMA.columns, facts["columns"], (2000.0, 5.0), [2001.0])["mean"]
    assert stated["estimate"] == 2000 and ends_of(str(hump.formula), SCHEMA.columns, 2000.0)[1] > 3300
    changed = [one | ({"clipped": [0, 500]} if one in price else {}) for one in facts["columns"]]
    for columns, reported in ((SCHEMA.columns, changed), (SCHEMA.columns, facts["columns"][:2])):
        assert counted_mean(column, columns, reported, (true, 5.0), [true]) == {}
    assert counted_mean(column, SCHEMA.columns, facts["columns"], (true, 1e-4), [true]) == {}  # its rounding is more


def test_the_mean_of_a_sum_of_which_a_term_has_nulls_follows_from_the_counts_of_both() -> None:
    schema, _ = parse("""
name: costs
columns:
  drugs: {type: integer, min: 0, max: 9, nullable: true}
  pay: {type: integer, min: 0, max: 19}
  cost: {type: derived, formula: drugs + pay}
""")
    assert isinstance(schema, Schema)
    pay = np.random.default_rng(3).integers(0, 20, ROWS)
    table = {"drugs": pa.array(pay // 2, mask=pay > 15), "pay": pa.array(pay)}
    rows = Codec(schema).encode(pa.table(table | {"cost": pa.array(pay // 2 + pay, mask=pay > 15)}))
    told = facts_of(create("nacre", {}, {}), rows, rows, schema)
    (cost,) = told["derived"]
    apart = sum(one["mean"]["estimate"] for one in told["columns"])
    true = float((pay // 2 + pay)[pay <= 15].mean())
    assert apart - true > 1.5 and cost["mean"]["estimate"] == pytest.approx(true, abs=0.6)
    assert abs(cost["mean"]["estimate"] - true) < 3 * cost["mean"]["expected_error"] < 3
    assert not known_means(schema.derived["cost"], told["columns"])


def test_of_what_values_within_a_group_decide_no_error_is_stated(derived: dict[str, Any]) -> None:
    assert derived["between"][IN_GROUPS] > MOST_IN_GROUPS  # the difference of two columns that are nearly one
    for name in ("between", "each", "all", "week"):
        assert "quantiles_within" not in derived[name], name
    for name in ("each", "all", "week"):  # divides by what may be 0, has three columns, repeats
        assert IN_GROUPS not in derived[name], name


def _pairs(facts: dict[str, Any]) -> list[tuple[int, int, list[float]]]:
    return [(first, second, figures) for first, second, *figures in facts["pairs"]["distances"]]


def test_columns_whose_operands_are_not_resolved_have_no_error(facts: dict[str, Any]) -> None:
    columns = [{**one, "warning": "Hidden.", "resolved": False} for one in facts["columns"]]
    for column in SCHEMA.derived.values():
        assert known_within(column, columns, facts["pairs"]["distances"], {IN_GROUPS: 0.01}) == {}
    uncounted = [{key: value for key, value in one.items() if key != "released"} for one in facts["columns"]]
    assert known_within(SCHEMA.derived["country"], uncounted, (), {}) == {}


def test_what_follows_from_values_that_were_changed_says_so(facts: dict[str, Any]) -> None:
    content = SCHEMA.model_dump(exclude_defaults=True)
    content["columns"]["price"]["outside"] = "clip"
    clipping = Schema.model_validate(content)
    of_two = {name: SCHEMA.derived[name] for name in ("change", "total")}
    for one in derived_facts(of_two, Codec(clipping), make_stays(1), facts["columns"]):
        assert one["changed"] == ["price"]
    (change,) = derived_facts({"change": SCHEMA.derived["change"]}, Codec(clipping), make_stays(1), facts["columns"])
    assert verdict(change).endswith(", as of price; values outside of price were changed first; use no 99 % quantile")


def test_what_follows_from_discovered_bounds_has_no_error(facts: dict[str, Any]) -> None:
    assert known_within(SCHEMA.derived["change"], facts["columns"], (), {})
    found = [{**one, "discovered_bounds": ["max"]} for one in facts["columns"]]
    assert known_within(SCHEMA.derived["change"], found, (), {}) == {}


@pytest.mark.parametrize(
    ("formula", "labels"),
    [
        ("before * 1000 + 1700000000000", "1700000"),
        ("year(ended) * 10000000000 + before", "2019000"),
        ("before * 0.001 + 1000000000", "1000000"),
        ("price * 5e-324", ""),
        ("price * 1e-323", ""),
        ("nights * 1e-310", ""),
        ("0.1 * price", "0"),
    ],
)
def test_no_number_is_too_large_or_too_small_for_a_report(formula: str, labels: str) -> None:
    column = Derived(type="derived", formula=formula, round=4 if "0.001" in formula else None)
    made = derived_facts({"x": column}, Codec(SCHEMA), make_stays(), [])
    assert all(one["labels"][0].startswith(labels) for one in made) and (made or not labels)


def test_a_column_that_has_nulls_of_its_own_has_no_error(facts: dict[str, Any]) -> None:
    column = Derived(type="derived", formula="price * 1000000000", round=2, dtype="decimal(12, 2)")
    (made,) = derived_facts({"x": column}, Codec(SCHEMA), make_stays(), facts["columns"])
    assert made["labels"][-1] == "null" and made["synthetic"][-1] > 0.5 and "quantiles_within" not in made


def test_zeros_of_decimals_are_written_as_numbers() -> None:
    column = Derived(type="derived", formula="before * 0", round=2, dtype="decimal(38, 12)")
    (made,) = derived_facts({"x": column}, Codec(SCHEMA), make_stays(), [])
    assert made["labels"] == ["0.000000000000"]


def test_zeros_of_an_amount_stand_apart_and_few_values_or_those_below_zero_do_not() -> None:
    formulas = {"amount": "max(0, price - 100)", "few": "max(0, nights - 10)", "debt": "min(0, price - 100)"}
    columns = {name: Derived(type="derived", formula=formula, round=2) for name, formula in formulas.items()}
    made = {one["name"]: one for one in derived_facts(columns, Codec(SCHEMA), make_stays(), [])}
    amount, table = made["amount"], Codec(SCHEMA).decode(make_stays())
    assert amount["labels"][-1] == "exactly 0" and amount["values"] == len(amount["labels"]) - 1
    assert amount["synthetic"][-1] == pytest.approx((table["price"].to_numpy() <= 100).mean())
    assert "exactly 0" not in made["debt"]["labels"] and made["few"]["labels"][-1] == "null"
    assert "exactly 0" not in made["few"]["labels"] and sum(amount["synthetic"]) == pytest.approx(1, abs=1e-6)


def test_few_numbers_of_a_formula_are_counted_and_drawn_as_a_bar_each() -> None:
    formulas = {"unlock": "1.5 * (nights > 7)", "day": "weekday(ended)", "many": "nights - 20", "looked": None}
    columns = {name: Derived(type="derived", formula=formula) for name, formula in formulas.items() if formula}
    columns["looked"] = Derived(type="derived", of="city", values={"Rome": 1, "Milan": 2.5, "Lyon": 2.5})
    made = {one["name"]: one | {"verdict": ""} for one in derived_facts(columns, Codec(SCHEMA), make_stays(), [])}
    unlock, nights = made["unlock"], Codec(SCHEMA).decode(make_stays())["nights"].to_pandas()
    assert unlock["labels"] == ["0", "1.5", "null"] and unlock["values"] == 2 and unlock["axis"]
    assert unlock["synthetic"] == pytest.approx([(nights <= 7).mean(), (nights > 7).mean(), nights.isna().mean()])
    assert made["day"]["labels"] == [str(day) for day in range(7)] and sum(made["day"]["synthetic"]) == pytest.approx(1)
    for name, labels in (("unlock", 3), ("day", 7), ("looked", 2)):
        figure = column_figure(made[name])
        assert figure.svg.count('class="mark"') == len(figure.rows) == labels and "share of rows per" not in figure.foot
    assert made["many"]["values"] == 14 and "share of rows per" in column_figure(made["many"]).foot


def test_rows_of_different_weight_are_counted_by_it() -> None:
    records, codec = make_stays(), Codec(SCHEMA)
    weights = np.where(records.states[:, 5] == 2, 3.0, 1.0)
    (country,) = derived_facts({"country": SCHEMA.derived["country"]}, codec, records, [], weights)
    lyon = (records.states[:, 5] == 2).mean()
    assert country["synthetic"][1] == pytest.approx(3 * lyon / (3 * lyon + 1 - lyon))
    assert derived_facts({"country": SCHEMA.derived["country"]}, codec, records.take(slice(0, 0)), []) == []


def test_numbers_whose_type_holds_other_decimals_than_are_kept_are_described() -> None:
    schema, _ = parse(
        "name: x\ncolumns:\n  net: {type: number, min: 0, max: 100, round: 2}\n"
        "  both: {type: derived, formula: net * 2, round: 2, dtype: float32}\n"
        "  tenth: {type: derived, formula: net * 1, round: 1, dtype: 'decimal(3, 2)'}\n"
    )
    assert isinstance(schema, Schema)
    net = pa.array([0.33, 9.99, 10.0, 77.77, 99.99])
    table = pa.table({"net": net, "both": pc.multiply(net, 2.0).cast("float32"), "tenth": net})
    records = Codec(schema).encode(table)
    both, tenth = derived_facts(schema.derived, Codec(schema), records, [])
    assert both["labels"][0].startswith("0.66") and sum(both["synthetic"]) == pytest.approx(1)
    assert tenth["labels"][-1] == "null" and tenth["synthetic"][-1] == pytest.approx(0.8)  # 10.00 has four digits


def test_a_page_draws_derived_columns_beside_the_others(facts: dict[str, Any]) -> None:
    page = render(facts)
    for name in SCHEMA.derived:
        assert f">{name}<" in page, name
    assert verdict(facts["derived"][-1]) in page


KEEPS_ORDER = (
    *("x", "-x", "2024 - x", "x // 100", "x / -3", "3 * (x + 1)", "year(x)", "add_days(x, 7)", "max(x, 3)"),
    *("floor(x / 7)", "round(min(x, 2 * 3) * 0.5)", "x * 0"),
)
MAY_NOT = (
    *("x % 7", "weekday(x)", "month(x)", "abs(x)", "1 / x", "x * x", "x - x // 2", "7 // x", "x / 0", "x / (1 - 1)"),
    *("max(x, x + 1)", "days_between(x, y)", "x + y", "abs(x - 3) + 1"),
)


@pytest.mark.parametrize("formula", KEEPS_ORDER)
def test_formulas_that_keep_the_order_of_one_column_are_seen(formula: str) -> None:
    assert is_monotone(formula)


@pytest.mark.parametrize("formula", MAY_NOT)
def test_formulas_that_do_not_keep_it_or_may_not_are_none(formula: str) -> None:
    assert not is_monotone(formula)


IN_EACH = (
    "x + y",
    "x - y",
    "x * y",
    "x / y",
    "add_days(x, -y)",
    "days_between(x, y)",
    "max(0, x - y)",
    "x * 3 - y // 2",
)
NOT_IN_EACH = ("(x + y) % 7", "day(y) - day(x)", "weekday(x) + y", "abs(x - y)", "minute(x) - minute(y)", "x + y - x",
               "(x - y) ** 2")  # fmt: skip


@pytest.mark.parametrize("formula", IN_EACH)
def test_formulas_that_keep_the_order_of_each_column_are_seen(formula: str) -> None:
    assert is_monotone_in_each(formula)


@pytest.mark.parametrize("formula", NOT_IN_EACH)
def test_formulas_that_repeat_keep_no_order(formula: str) -> None:
    assert not is_monotone_in_each(formula)


def test_rounding_adds_nothing_to_a_price_that_is_looked_up_with_as_few_decimals() -> None:
    columns: dict[str, Any] = {
        "tariff": Categorical(type="categorical", values=["day", "night"]),
        "kwh": Number(type="number", min=0, max=9),
    }
    for formula, is_exact in (("{'day': 0.342, 'night': 0.296}[tariff]", True), ("kwh * 0.3", False)):
        assert _is_exact(Derived(type="derived", formula=formula, round=3), columns) is is_exact
    assert not _is_exact(Derived(type="derived", formula="{'day': 0.3421, 'night': 0.2}[tariff]", round=3), columns)
