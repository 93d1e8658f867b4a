"""What a person asks a draft to be: its name, whose presence it hides, what rows teach, and how text is written."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dpmodels.authoring.facts import TODO
from dpmodels.contract.discovery.discovery import columns_of
from dpmodels.contract.text_forms.text_form import TextForm, as_written
from dpmodels.errors import InvalidArgument, near
from dpmodels.plain_yaml import YamlFault, read_yaml, write_yaml

MOST_NAMED = 20
"""Columns of a draft that a refusal names."""
NO_MAPPING = "it has no key, such as decimal, with a colon behind it"
KEYS = tuple(TextForm.model_fields)
LISTED = ", ".join(KEYS)
OF_SEVERAL = "be left out, as `max_rows`: of several tables, the units are the rows of the one without a parent"


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
        meant = near(target, columns) or f": {', '.join(list(columns)[:MOST_NAMED])}"
        raise InvalidArgument("target", target, f"be a column of the data{meant}")
    line = write_yaml({"target": target}).rstrip()
    if "# target: COLUMN" in text:
        return text.replace("# target: COLUMN", line, 1)
    return text.replace("\ntables:\n", f"\n{line}\ntables:\n", 1)


def form_of(text: str | Mapping[str, Any]) -> TextForm | None:
    """Return how text is written, of a mapping such as the key ``text`` of a schema has, or of its YAML."""
    if not text:
        return None
    try:
        content = read_yaml(text) if isinstance(text, str) else dict(text)
        empty = [key for key, value in content.items() if value is None] if isinstance(content, Mapping) else []
        if isinstance(content, Mapping) and not empty:
            return TextForm.model_validate(content)
        said = f"{empty[0]} is empty; put its value in quotes" if empty else NO_MAPPING
    except YamlFault:
        said = _no_yaml(str(text))
    except ValidationError as error:
        said = _fault(error.errors()[0])
    raise InvalidArgument("text", text, f'be a mapping such as {{decimal: ",", date_format: "%d.%m.%Y"}}: {said}')


def _no_yaml(text: str) -> str:
    """Say what is wrong with text that cannot be read, most often a brace or a blank that is not there."""
    for opening, closing in ("{}", "[]"):
        if text.count(opening) != text.count(closing):
            return f"it has {text.count(opening)} of `{opening}` and {text.count(closing)} of `{closing}`"
    return "it is no YAML, in which a colon and a blank stand between a key and its value, which is in quotes"


def _fault(error: ErrorDetails) -> str:
    """Say what is wrong with a key, as of any key of a schema."""
    key, kind = ".".join(map(str, error["loc"])), error["type"]
    if kind == "extra_forbidden":
        return f"{key} is no key here{near(key, KEYS) or f'; the keys are {LISTED}'}"
    if kind == "literal_error":
        return f"{key} must be {error['ctx']['expected']}"
    return f"{key} {error['msg'].removeprefix('Value error, ')}".strip()


def with_text(text: str, form: TextForm | None) -> str:
    """Write into a draft how its raw text is written, above its columns or its tables."""
    if form is None or re.search(r"^text: ", text, re.MULTILINE):  # with what documents say beside
        return text
    line = write_yaml(as_written(form), default_flow_style=None, width=10_000).rstrip()
    return re.sub(r"^(?=(columns|tables):$)", lambda _: f"{line}\n", text, count=1, flags=re.MULTILINE)


def check_unit(unit: str, max_rows: int | None, columns: Iterable[str] | None) -> None:
    """Refuse a unit that no column names; ``columns`` are those of one table, or None where there are several."""
    if columns is None and (unit or max_rows is not None):
        raise InvalidArgument("unit", unit or max_rows, OF_SEVERAL)
    if unit and columns is not None and unit not in (names := list(columns)):
        raise InvalidArgument("unit", unit, f"be a column of the data{near(unit, names)}")
    if max_rows is not None and not unit:
        raise InvalidArgument("max_rows", max_rows, "go with `unit`, the column that tells persons apart")
    if max_rows is not None and max_rows < 1:
        raise InvalidArgument("max_rows", max_rows, "be 1 or more, the rows of one person that are used")


def unit_line(unit: str, max_rows: int | None, otherwise: str) -> str:
    """Write the line of the unit: a user whom a column names, or a record, with what may stand ``otherwise``."""
    if not unit:
        return f"unit: record  # {otherwise}"
    user = write_yaml({"unit": {"user": unit, "max_rows": max_rows or 1}}, default_flow_style=None, width=10_000)
    return user.rstrip() + "  # all rows of one are hidden, and max_rows of them used"
