"""Where among the columns of a report those stand that nobody receives."""

from dpmodels.contract.columns import helpers
from dpmodels.contract.schema import Schema


def helper_places(schema: Schema) -> list[int]:
    """Return the places, among the columns that are modeled, of those that are so for the sake of others alone."""
    names = helpers(schema.columns)
    return [place for place, name in enumerate(schema.modelled) if name in names]
