"""The methods by name; a new system is one entry here."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from dpmodels.errors import InvalidArgument
from dpmodels.generators.reconstruction import TrainingSpec
from dpmodels.synthesizers.pearl import Pearl, PearlMeasurement


def _pearl(measurement: Mapping[str, Any], training: Mapping[str, Any]) -> Pearl:
    return Pearl(PearlMeasurement.model_validate(measurement), TrainingSpec.model_validate(training))


METHODS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Pearl]] = {"pearl": _pearl}


def create(method: str, measurement: Mapping[str, Any], training: Mapping[str, Any]) -> Pearl:
    """Make a synthesizer from its name and its settings.

    Raises:
        InvalidArgument: no such method, or a setting it does not have or may not take.
    """
    if method not in METHODS:
        raise InvalidArgument("method", method, f"be one of {', '.join(METHODS)}")
    try:
        return METHODS[method](measurement, training)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"])) or method
        raise InvalidArgument(name, first["input"], f"satisfy: {first['msg']}") from None
