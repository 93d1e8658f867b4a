"""Counts of some columns out of tables of more: what is added up, in which order, and of which noise."""

import numpy as np
import pytest

from dpmodels.methods.parts.marginals import NoisyTable

COUNTS = np.arange(24.0).reshape(2, 3, 4)
NAMES, CELLS = ("sick", "age", "ward"), (np.arange(2), np.arange(3), np.arange(4))


def table(**terms: object) -> NoisyTable:
    return NoisyTable(NAMES, CELLS, COUNTS, 3.0, **terms)


def test_all_columns_in_another_order_are_the_same_counts() -> None:
    turned = table().over(("ward", "sick", "age"))
    assert turned.names == ("ward", "sick", "age") and (turned.counts == COUNTS.transpose(2, 0, 1)).all()
    assert [len(cells) for cells in turned.cells_of] == [4, 2, 3] and (turned.stddev == 3).all()


def test_independent_noise_adds_up_over_whatever_is_left_out() -> None:
    errors = np.arange(1.0, 25.0).reshape(2, 3, 4)
    some = NoisyTable(NAMES, CELLS, COUNTS, errors, independent=True).over(("ward", "age"))
    assert (some.counts == COUNTS.sum(axis=0).T).all()
    assert np.allclose(some.stddev, np.sqrt((errors**2).sum(axis=0)).T)
    one = table(independent=True).over(("age",))
    assert (one.counts == COUNTS.sum(axis=(0, 2))).all() and np.allclose(one.stddev, 3 * np.sqrt(8))


def test_noise_that_classes_share_is_taken_as_it_is_known() -> None:
    parts = {frozenset(): 1.0, frozenset({"age", "ward"}): 4.0, frozenset(NAMES): 4.0}
    of_classes = table(by_class=True, variances=parts)
    pair = of_classes.over(("age", "ward"))
    assert (pair.counts == COUNTS.sum(axis=0)).all() and np.allclose(pair.stddev, np.sqrt(2 * 2 * 5))
    assert of_classes.over(("sick", "age")) is None and of_classes.over(("age",)) is None
    own = table(by_class=True).over(("ward", "age"))
    assert own is not None and np.allclose(own.stddev, 3 * np.sqrt(2))


@pytest.mark.parametrize("names", [("age", "ward"), ("sick",), ("age", "dose")])
def test_counts_whose_noise_is_not_known_are_not_added_up(names: tuple[str, ...]) -> None:
    assert table().over(names) is None
