"""What every plan refuses, whatever method makes it."""

import pytest

from dpmodels.audit.data import data_of
from dpmodels.errors import InvalidArgument
from dpmodels.methods.quick import quick
from dpmodels.methods.registry import of_kind
from dpmodels.privacy import Adjacency, PrivacyBudget
from tests.kit.errors import refused


@pytest.mark.parametrize("method", of_kind("table"))
def test_no_method_plans_under_replace_one_until_its_sensitivity_is_proved_there(method: str) -> None:
    schema = data_of(method).make_schema()
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5, unit=schema.unit)
    assert quick(method).plan(schema, budget).budget == budget
    with refused(InvalidArgument, "must be add_or_remove_one", name="adjacency", value=Adjacency.REPLACE_ONE):
        quick(method).plan(schema, budget.model_copy(update={"adjacency": Adjacency.REPLACE_ONE}))
