"""A relation with the target that the rate of one group shows, and no table of both columns."""

from typing import Any

import numpy as np
import pytest

from dpmodels.pages.figures.relations import relations
from dpmodels.pages.uses import WEAKER, uses
from dpmodels.report.verdicts import headline

GROUPS = 10


def report(far: float, synthetic: float, noise: float = 0.02, records: float = 14_000) -> dict[str, Any]:
    """Return a report of a target whose rate is .08 in all hotels but one, and which noise hides in the table."""
    shares = {"distance_to_release": 0.01, "expected_distance": 0.01, "likely_distance": 0.02}
    columns = [
        {"name": name, "type": "categorical", "ordered": False, "labels": labels, "cells": 2, **shares}
        | {"released": [0.9, 0.1], "synthetic": [0.9, 0.1], "stddev": [0.01, 0.01]}
        for name, labels in (("complaint", ["no", "yes"]), ("hotel", ["a", "b"]))
    ]
    rates = {"column": 1, "labels": [[f"h{n}"] for n in range(GROUPS)], "share": [1 / GROUPS] * GROUPS}
    rates |= {"stddev": [noise] * GROUPS, "within": [0.04] * GROUPS}
    rates |= {"released": [far, *[0.08] * (GROUPS - 1)], "synthetic": [synthetic, *[0.08] * (GROUPS - 1)]}
    pairs = {"target": 0, "distances": [[0, 1, 0.01, 0.01, 0.02, 0.02, 0.014, 0.012, 0.012, 0.02]]}
    return {
        "columns": columns,
        "released_records": records,
        "rates": {"target": 0, "class": "yes", "columns": [rates]},
        "pairs": pairs,
    }


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (report(0.16, 0.16), "kept"),
        (report(0.16, 0.1), "weaker"),
        (report(0.16, 0.04), "weaker"),  # to the other side
        (report(0.16, 0.24), "stronger"),
        (report(0.16, 0.16, records=200), "hidden"),  # 1.6 rows are no ground for a normal distribution
        (report(0.16, 0.16, noise=0.05), "hidden"),
        (report(0.13, 0.13), "hidden"),  # 2.4 standard deviations, in one of ten groups
    ],
)
def test_one_group_whose_rate_stands_out_makes_a_relation_with_the_target_certain(
    facts: dict[str, Any], word: str
) -> None:
    (relation,) = relations(facts).values()
    assert relation.released < relation.most
    said = "kept" if relation.is_kept else "stronger" if relation.is_stronger else "hidden"
    assert word == ("weaker" if relation.is_weakened else said)
    ends = "(the target) in 1 of 1 (by hotel = h0 alone, whose rate differs from that of all other rows for certain)."
    assert headline(facts).endswith(ends if word != "hidden" else "(the target) in 0 of 1.")
    found = uses(facts)
    assert found is not None and any(one.startswith(WEAKER) for one in found.care) == (word == "weaker")


def test_in_one_report_of_twenty_at_most_a_group_stands_out_by_noise_and_chance() -> None:
    rng, facts, often = np.random.default_rng(2), report(0.08, 0.08, noise=0.01), 0
    (rates,) = facts["rates"]["columns"]
    for _ in range(400):
        counted = rng.binomial(1400, 0.08, GROUPS) / 1400
        rates["released"] = (counted + rng.normal(0, 0.01, GROUPS)).clip(0, 1).tolist()
        often += next(iter(relations(facts).values())).is_certain
    assert 1 <= often <= 36, often
