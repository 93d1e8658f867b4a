"""A sensitive value does not leave by accident: not pickled, not copied, not printed, not serialised."""

import copy
import json
import pickle
from collections.abc import Callable

import cloudpickle
import pytest
from pydantic import BaseModel, ConfigDict

from dpmodels.privacy import Released, Sensitive

CANARY = "Zebulon-Quillfeather-1874"


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    table: Sensitive


@pytest.mark.parametrize("dump", [pickle.dumps, cloudpickle.dumps, copy.copy, copy.deepcopy])
def test_it_is_never_pickled(dump: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="never pickled"):
        dump(Sensitive(CANARY))


@pytest.mark.parametrize("dump", [pickle.dumps, cloudpickle.dumps, copy.deepcopy])
def test_nor_inside_something_else(dump: Callable[[object], object]) -> None:
    for value in ([Sensitive(CANARY)], {"a": (Sensitive(CANARY),)}, Released(Sensitive(CANARY))):
        with pytest.raises(TypeError, match="never pickled"):
            dump(value)


def test_nor_in_a_closure() -> None:
    value = Sensitive(CANARY)
    with pytest.raises(TypeError, match="never pickled"):
        cloudpickle.dumps(lambda: value)


@pytest.mark.parametrize("show", [repr, str, format, ascii, "{0} {0!r}".format, lambda x: f"{[x]} { ({'a': x})!r}"])
def test_it_is_never_shown(show: Callable[[object], str]) -> None:
    text = show(Sensitive(CANARY))
    assert "redacted" in text and CANARY not in text


def test_it_has_nothing_to_look_into() -> None:
    value = Sensitive(CANARY)
    with pytest.raises(TypeError):
        vars(value)
    with pytest.raises(TypeError):
        json.dumps(value)
    assert value != Sensitive(CANARY)
    assert CANARY not in json.dumps(value, default=str)


def test_pydantic_does_not_serialise_it() -> None:
    holder = Holder(table=Sensitive(CANARY))
    assert CANARY not in repr(holder)
    with pytest.raises(Exception, match="Sensitive") as caught:
        holder.model_dump_json()
    assert CANARY not in str(caught.value)


def test_a_released_value_may_go_anywhere() -> None:
    assert pickle.loads(pickle.dumps(Released(CANARY))).value == CANARY
    assert CANARY in repr(Released(CANARY))
