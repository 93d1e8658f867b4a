"""What a person asks a draft to be: the name of its data set, and the column that rows should teach to predict."""

import re

from dpmodels.authoring.facts import TODO
from dpmodels.contract.discovery import columns_of
from dpmodels.errors import InvalidArgument, near
from dpmodels.plain_yaml import read_yaml, write_yaml


def check_name(name: str) -> None:
    """Refuse the name of a data set that no schema takes, with one that it does."""
    if name not in ("", TODO) and not re.fullmatch(r"[a-z0-9_-]+", name):
        fitting = re.sub(r"[^a-z0-9_-]+", "_", name.lower()).strip("_")
        written = f", such as {fitting}" if fitting else ""
        raise InvalidArgument("name", name, f"have lowercase letters, digits, _ and - alone{written}")


def with_target(text: str, target: str) -> str:
    """Name the target of a draft, if there is one; of several tables it is a table and its column."""
    if not target:
        return text
    columns = columns_of(read_yaml(text))
    if target not in columns:
        raise InvalidArgument("target", target, f"be a column of the data{near(target, columns)}")
    line = write_yaml({"target": target}).rstrip()
    if "# target: COLUMN" in text:
        return text.replace("# target: COLUMN", line, 1)
    return text.replace("\ntables:\n", f"\n{line}\ntables:\n", 1)
