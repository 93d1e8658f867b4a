"""What can be declared of a release, as the page on the ledger writes it."""

import re
from pathlib import Path

import yaml

from dpmodels.ledger.declared import Declaration
from dpmodels.pages.asked.open_points import counts_of

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"


def test_the_example_declares_all_that_there_is_and_leaves_nothing_open() -> None:
    (block,) = re.findall(r"```yaml\n(# words\.yaml.*?)```", PAGE.read_text(), re.DOTALL)
    said = Declaration(**yaml.safe_load(block)["statement"]).said
    assert [*said, "again"] == list(Declaration.model_fields)
    counts = counts_of(said)
    assert counts["closed"] == len(said) and counts["closed"] + counts["shared"] == counts["all"]
