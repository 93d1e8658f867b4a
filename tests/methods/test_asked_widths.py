"""What figures will be within is said before a charge, by public noise scales, and as a release then has it."""

import pytest

from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import create
from dpmodels.methods.tables.asked_widths import GROUPS, IN_95_OF_100, Width, widths_of
from dpmodels.privacy import PrivacyBudget
from flows.widths import MEANT, as_facts, of_middle_rows, planned_widths

COLUMNS = {
    "kind": {"type": "categorical", "values": list("abc")},
    "site": {"type": "categorical", "values": list("defg")},
    "late": {"type": "boolean"},
    "amount": {"type": "number", "min": 0, "max": 1000, "round": 2},
}
ASKED = [{"columns": ["amount", "kind"]}, {"columns": ["kind", "site"]}, {"columns": ["late", "amount"]}]


def schema(**keys: object) -> Schema:
    return Schema.model_validate({"name": "sales", "columns": COLUMNS, **keys})


def widths(rows: int, epsilon: float = 1.0, **keys: object) -> dict[str, Width]:
    system = create("nacre", {}, {})
    line = system.plan(schema(**keys), PrivacyBudget(epsilon=epsilon, delta=1e-5))
    return {one.asked: one for one in widths_of(system.of(line), line, rows)}


def test_each_entry_of_a_workload_says_of_which_of_its_figures_it_will_be_within_what() -> None:
    every = widths(10_000, workload=ASKED)
    assert list(every) == ["amount by kind", "kind by site", "late by amount"]
    assert [(len(one.shares), len(one.means)) for one in every.values()] == [(0, 2), (2, 0), (2, 2)]
    assert all(wide > narrow for one in every.values() for wide, narrow in filter(None, (one.shares, one.means)))


def test_a_share_is_within_what_the_noise_of_its_pair_makes_of_the_rows_of_a_group() -> None:
    system = create("nacre", {}, {})
    line = system.plan(schema(workload=ASKED), PrivacyBudget(epsilon=1, delta=1e-5))
    (noise,) = (value for name, value in system.noise(line).items() if "(kind by site)" in name)
    wide = widths(10_000, workload=ASKED)["kind by site"].shares
    assert wide == pytest.approx([IN_95_OF_100 * noise / (part * 10_000) for part in GROUPS], rel=0.2)


def test_more_rows_and_more_budget_make_figures_narrower() -> None:
    def means(rows: int, epsilon: float) -> float:
        return widths(rows, epsilon, workload=ASKED)["amount by kind"].means[0]

    assert means(1_000, 1) > 5 * means(10_000, 1) > 5 * means(10_000, 2)


def test_a_target_has_rates_in_groups_of_every_column_and_means_by_its_classes() -> None:
    (one,) = widths(10_000, target="late").values()
    assert one.asked == "any column by late" and 0 < one.shares[1] < one.shares[0] < 1 and 0 < one.means[1] < 1


def test_nothing_is_said_of_what_states_no_such_figures() -> None:
    assert widths(1_000) == {}
    system = create("privbayes", {}, {})
    assert planned_widths(system.plan(schema(target="late"), PrivacyBudget(epsilon=1, delta=1e-5))) == []
    assert as_facts([]) == {}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (None, [1_000, 10_000, 100_000]),
        ({"min": 10}, [1_000, 10_000, 100_000]),
        ({"min": 20_000}, [20_000, 100_000]),
        ({"max": 5_000}, [1_000, 5_000]),
        ({"min": 9_000, "max": 20_000}, [9_000, 20_000]),
        ({"min": 16_000, "max": 16_000}, [16_000]),
    ],
)
def test_widths_are_of_the_rows_that_a_schema_says(rows: dict[str, int] | None, said: list[int]) -> None:
    keys = {} if rows is None else {"rows": rows}
    line = create("nacre", {}, {}).plan(schema(workload=ASKED[:1], **keys), PrivacyBudget(epsilon=1, delta=1e-5))
    assert [one.rows for one in planned_widths(line)] == said


def test_lines_leave_out_what_says_nothing() -> None:
    every = [Width("late by kind", 1_000, (0.6, 0.123), ()), Width("pay by kind", 2_000, (), (2.0, 1.5))]
    assert as_facts(every) == {
        "figures within": MEANT,
        "of 1,000 rows": "late by kind: shares unknown and ±12 points",
        "of 2,000 rows": "pay by kind: means unknown",
    }


def test_means_are_said_in_the_unit_of_their_column_too_where_it_is_one() -> None:
    (one,) = widths(10_000, workload=ASKED[:1]).values()
    assert (one.number, one.largest_stddev) == ("amount", 500.0)
    facts = as_facts([one._replace(means=(0.25, 0.0313)), Width("a by b", 10_000, (), (0.25, 1.5))])
    assert facts["of 10,000 rows"].split("\n") == [
        "amount by kind: means ±0.25 and ±0.031 standard deviations (at most ±120 and ±16 amount)",
        "a by b: means ±0.25 and unknown standard deviations (at most ±12 and unknown % of its range)",
    ]


def test_a_plan_in_short_has_the_figures_for_one_number_of_rows() -> None:
    facts = as_facts([Width("a by b", rows, (0.1, 0.05), ()) for rows in (1_000, 10_000, 100_000)])
    assert list(facts) == ["figures within", "of 1,000 rows", "of 10,000 rows", "of 100,000 rows"]
    assert list(of_middle_rows(facts)) == ["of 10,000 rows"] and of_middle_rows({"charge": "1"}) == {}
