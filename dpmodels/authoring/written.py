"""Whether a contract reads back from the file that a hand-off has of it, which nobody could trust otherwise."""

from dpmodels.authoring.lint import parse
from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.errors import Unsuitable

LOST = (
    "what is public of {} would not read back from the schema.yaml of a hand-off, which `nacre verify` compares: give "
    "it fewer or shorter values, public rows included, and texts of usual letters"
)


def check_written(contract: Schema | Documents | Tree) -> None:
    """Refuse a contract whose hand-off would be faulty, before anything is charged for it.

    Raises:
        Unsuitable: the YAML that it is written as reads back as another, or as none.
    """
    again, _ = parse(contract.to_yaml())
    if again is None or again.hash != contract.hash:
        raise Unsuitable(LOST.format(contract.name))
