"""What a report says of means and large values: about as far off as it says, and a warning where that is hopeless."""

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.evaluation.pages.glance import glance
from dpmodels.evaluation.published.numbers import doubt, errors_of
from dpmodels.schema.encode import Codec
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.marginals import Marginal
from dpmodels.synthesizers.nacre import Nacre
from tests.reports import release_of

KEYS = {"type": "number", "round": 2, "min": 0, "max": 10_000_000, "scale": "log"}


def test_mean_and_quantile_are_about_as_far_off_as_is_said() -> None:
    values = np.random.default_rng(1).lognormal(6.5, 1, 8000).round(2)
    schema = Schema.model_validate({"name": "t", "columns": {"bill": KEYS, "paid": {"type": "boolean"}}})
    records = Codec(schema).encode(pa.table({"bill": values, "paid": values > 500}))
    ratios = []
    for _ in range(6):
        marginals = Nacre().marginals(release_of(Nacre(), records, schema))
        found = errors_of(marginals.codec.columns["bill"], marginals.columns["bill"])
        true = {"mean": values.mean(), "p99": np.quantile(values, 0.99)}
        ratios.append([abs(found[key]["estimate"] - true[key]) / found[key]["expected_error"] for key in true])
        assert found["mean"]["expected_error"] < 0.1 * true["mean"]
    assert (np.mean(ratios, axis=0) < 4).all()  # 1 by noise alone; how values lie within cells comes on top


@pytest.mark.parametrize("low", [0, -10_000_000])
def test_a_mean_that_noise_exceeds_is_warned_of_unless_it_may_be_nothing(low: int) -> None:
    columns = {"x": {**KEYS, "min": low, "scale": "linear", "cells": 3}, "y": {"type": "boolean"}}
    column = Codec(Schema.model_validate({"name": "t", "columns": columns})).columns["x"]
    noisy = Marginal.plain(np.array([1000.0, -40.0, 10.0]), 60.0)
    errors = {"mean": {"estimate": 10.0, "expected_error": 20.0}, "p99": {"estimate": 50.0, "expected_error": 5.0}}
    assert (doubt(column, errors) is not None) == (low == 0)
    assert errors_of(column, noisy)["mean"]["expected_error"] > 0
    assert errors_of(column, Marginal.plain(np.zeros(3), 60.0)) == {}


def test_the_worst_means_are_named_at_the_end_of_a_run() -> None:
    fact = {"estimate": 200.0, "expected_error": 10.0}
    column = {"name": "bill", "mean": fact, "p99": {"estimate": 1000.0, "expected_error": 200.0}}
    facts = {"privacy": {"spent_epsilon": 1, "delta": 1e-5, "unit": "record"}, "method": "nacre", "columns": [column]}
    said = glance(facts)["means"].replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith("bill ±5 %, its 99 % quantile ±20 %")
