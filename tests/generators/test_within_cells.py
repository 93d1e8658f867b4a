"""Values change places within the cells that a release counted together, so that small categories keep their rows."""

from dataclasses import dataclass

import numpy as np
import pytest

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.constraints import Rules, sample_valid
from dpmodels.generators.refinements import spares, within_cells
from dpmodels.generators.refinements.within_cells import exchange_in_cells
from dpmodels.generators.sampling import Sampler

COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 99, "nullable": True},
    "ward": {"type": "categorical", "values": ["adults", "children"]},
    "sick": {"type": "boolean"},
}
SCHEMA = Schema.model_validate(
    {
        "name": "clinic",
        "columns": COLUMNS,
        "target": "sick",
        "constraints": ["when ward = children then age < 15", "when age < 5 then ward = children"],
    }
)


def partition_of(schema: Schema) -> Partition:
    """Join the ages to 0 to 29, 30 to 59 and the rest."""
    fine = Partition.fine(schema, 256, conditional=True)
    ages = np.concatenate([np.minimum(np.arange(100) // 30, 2), [3]])
    return Partition(fine.codec, (ages, fine.merge[1]), fine.classes, fine.class_column)


@dataclass
class Mixed(Sampler):
    """Draws a child's ward for so many of those under 30, of whatever age, and for a fifth as many of the others."""

    schema: Schema
    share: float = 0.1
    has_cells: bool = True

    @property
    def merged_cells(self) -> Partition | None:
        return partition_of(self.schema) if self.has_cells else None

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        age = rng.integers(0, 100, rows)
        ward = rng.random(rows) < self.share * np.where(age < 30, 1, 0.2)
        cells = np.stack([np.where(rng.random(rows) < 0.05, 100, age), ward, rng.random(rows) < 0.3], axis=1)
        return partition_of(self.schema).codec.from_cells(cells.astype(np.int32), rng)

    def save(self, path: object) -> None:
        raise NotImplementedError


def counts(records: Records, partition: Partition) -> np.ndarray:
    """Count the rows of each class, merged cell of ages, and ward."""
    cells = partition.cells(records)
    return np.histogramdd(np.column_stack([records.states[:, 2], cells]), (2, 4, 2), [(0, 2), (0, 4), (0, 2)])[0]


def test_what_a_release_counted_stays_and_most_broken_rows_are_mended() -> None:
    model, rules = Mixed(SCHEMA), Rules(SCHEMA)
    drawn, settled = (model.draw(4096, np.random.default_rng(0)) for _ in range(2))
    exchange_in_cells(settled, partition_of(SCHEMA), rules, np.random.default_rng(1))
    assert np.array_equal(counts(drawn, partition_of(SCHEMA)), counts(settled, partition_of(SCHEMA)))
    assert np.array_equal(np.sort(drawn.values[:, 0]), np.sort(settled.values[:, 0]))  # they only change places
    assert np.array_equal(drawn.states, settled.states)
    first, second = rules.implications
    young = partition_of(SCHEMA).cells(drawn)[:, 0] == 0
    for rule, most in ((first, 0.0), (second, 0.15)):  # there are more infants than beds in the children's ward
        before, after = (~rules.keeps(records, rule) & young for records in (drawn, settled))
        assert before.sum() > 50 and after.sum() <= most * 4096
    others = ~young
    assert np.array_equal(drawn.values[others], settled.values[others])  # a cell without such ages mends nobody


def test_rules_looked_at_together_or_one_by_one_exchange_the_same_values(monkeypatch) -> None:
    rules = [f"when age > {age} then age <= {age + 20}" for age in (3, 5)]
    schema = SCHEMA.model_copy(update={"constraints": (*SCHEMA.constraints, *rules)})
    settled = []
    for together in (within_cells.gathered, list):
        monkeypatch.setattr(within_cells, "gathered", together)
        settled.append(Mixed(schema).draw(4096, np.random.default_rng(0)))
        exchange_in_cells(settled[-1], partition_of(schema), Rules(schema), np.random.default_rng(1))
    assert np.array_equal(settled[0].values, settled[1].values)


def test_no_row_breaks_another_rule_for_it() -> None:
    model, rules = Mixed(SCHEMA), Rules(SCHEMA)
    drawn, settled = (model.draw(4096, np.random.default_rng(2)) for _ in range(2))
    exchange_in_cells(settled, partition_of(SCHEMA), rules, np.random.default_rng(3))
    broken = [np.sum([~rules.keeps(rows, rule) for rule in rules.all], axis=0) for rows in (drawn, settled)]
    assert (broken[1] <= broken[0]).all() and broken[1].sum() < 0.6 * broken[0].sum()


@pytest.mark.parametrize(
    ("has_cells", "most_lost", "least", "most"),
    [(True, 1.0, 0.55, 1), (False, 1.0, 0, 0.45), (False, 0.1, 0.5, 1), (True, 0.1, 0.8, 1.1)],
)
def test_a_small_category_keeps_its_rows_by_the_cells_of_a_release_and_by_other_rows(
    has_cells: bool, most_lost: float, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another cell no age is a child's; there other rows, of children who are one, have to stand in."""
    monkeypatch.setattr(spares, "MOST_LOST", most_lost)
    one_rule = Schema.model_validate(SCHEMA.model_dump() | {"constraints": SCHEMA.model_dump()["constraints"][:1]})
    model = Mixed(one_rule, 0.02, has_cells)
    records = Records.concat(list(sample_valid(model, 8192, 0)))
    assert Rules(one_rule).hold(records).all()
    drawn = float((model.draw(8192, np.random.default_rng(0)).states[:, 1] == 1).mean())
    assert least * drawn <= float((records.states[:, 1] == 1).mean()) <= most * drawn
