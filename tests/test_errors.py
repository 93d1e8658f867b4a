"""What a user reads when something is refused: one sentence, of an argument's value or of a fact."""

import pickle
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dpmodels.errors import DataError, InvalidArgument, NacreError, Unsuitable, near, refused, rule_of
from tests.kit import errors


def test_an_arguments_value_is_told_with_its_rule() -> None:
    fault = InvalidArgument("delta", 1.5, "lie strictly between 0 and 1")
    assert str(fault) == "delta=1.5 must lie strictly between 0 and 1"
    assert (fault.name, fault.value, fault.rule) == ("delta", 1.5, "lie strictly between 0 and 1")


def test_a_fact_is_told_as_it_is() -> None:
    fault = Unsuitable("the records hold no images; encode them with a schema that has an image")
    assert str(fault) == fault.fact == "the records hold no images; encode them with a schema that has an image"
    assert not isinstance(fault, InvalidArgument) and str(pickle.loads(pickle.dumps(fault))) == fault.fact


@pytest.mark.parametrize(
    ("word", "names", "meant"),
    [
        ("fee", ["age", "monthly_fee"], "monthly_fee"),
        ("Fee", ["monthly_fee"], "monthly_fee"),
        ("patient_age_in_years", ["ward", "age"], "age"),
        ("end", ["calendar", "contract_end"], "contract_end"),  # whole words before letters
        ("data", ["data_gb_of_the_month", "data_gigabytes"], "data_gigabytes"),  # the shorter one
        ("churn", ["churned", "churn_reason"], "churned"),
        ("of", ["years_of_schooling"], ""),
        ("fee", ["age", "ward"], ""),
    ],
)
def test_the_name_that_was_meant_is_like_it_or_has_it_in_it(word: str, names: list[str], meant: str) -> None:
    assert near(word, names) == (f"; did you mean `{meant}`?" if meant else "")


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid")
    epochs: Annotated[int, Field(ge=1)] = 1
    sizes: Annotated[list[int], Field(min_length=1)] = [1]
    label: Annotated[str, Field(pattern="^[a-z]+$")] = "a"
    shuffle: Literal[False] = False
    bins: int = 2

    @field_validator("bins")
    @classmethod
    def _even(cls, bins: int) -> int:
        if bins % 2:
            raise ValueError("must be even")
        return bins


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ({"epochs": 0}, "be greater than or equal to 1"),
        ({"epochs": "many"}, "be a whole number"),
        ({"epochs": "1e3"}, "be a whole number; YAML takes 1e3 for text: write 1.0e+3"),
        ({"label": 7}, "be text"),
        ({"sizes": []}, "have at least 1 item after validation, not 0"),
        ({"label": "7"}, "match pattern '^[a-z]+$'"),
        ({"shuffle": True}, "be False"),
        ({"bins": 3}, "be even"),
        ({"epoch": 3}, "be left out: there is no such setting"),
    ],
)
def test_what_pydantic_finds_follows_must(setting: dict[str, object], rule: str) -> None:
    with pytest.raises(ValidationError) as found:
        Spec.model_validate(setting)
    assert rule_of(found.value.errors(include_url=False)[0]) == rule


def test_the_first_fault_is_told_with_the_keys_that_lead_to_it() -> None:
    with pytest.raises(ValidationError) as found:
        Spec.model_validate({"bins": 3})
    assert str(refused(found.value)) == "bins=3 must be even"
    assert str(refused(found.value, "model", "training")) == "model.training.bins=3 must be even"
    with pytest.raises(ValidationError) as found:
        Spec.model_validate("none")
    assert refused(found.value, whole="measurement").name == "measurement"


@pytest.mark.parametrize(
    ("error", "says", "fields"),
    [
        (InvalidArgument, "", {"name": "epsilon"}),
        (InvalidArgument, "", {"name": "delta", "value": 1}),
        (InvalidArgument, "", {"column": "delta"}),
        (InvalidArgument, "be positive", {"name": "delta"}),
        (DataError, "", {}),
    ],
)
def test_the_kit_tells_refusals_apart(error: type[NacreError], says: str, fields: dict[str, object]) -> None:
    fault = InvalidArgument("delta", 1.5, "lie strictly between 0 and 1")
    with errors.refused(NacreError, "between 0", name="delta", value=1.5) as caught:
        raise fault
    assert caught.value is fault
    with pytest.raises((AssertionError, AttributeError, InvalidArgument)), errors.refused(error, says, **fields):
        raise fault
    with pytest.raises(pytest.fail.Exception), errors.refused(error, says, **fields):
        pass
