"""A contract with how its raw tables are written, and without: a plan, a release and a hand-off never say it."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.text_form import TextForm

Forms = Mapping[str, TextForm]
"""By table how its text is written, where a schema says so; of one that is no tree by the empty name."""
AnyContract = TypeVar("AnyContract")


def forms_of(contract: Any) -> dict[str, TextForm]:
    """Return how a contract's raw tables are written."""
    forms: dict[str, TextForm | None] = {"": contract.text} if contract.is_table else {}
    if contract.kind == "tree":
        forms = {name: contract.text_of(name) for name in contract.tables}
    return {name: form for name, form in forms.items() if form is not None}


def forms_in(draft: Mapping[str, Any]) -> dict[str, TextForm]:
    """Return the same of a schema's file that was checked and leaves something to be discovered."""
    tables = {"": draft} if "columns" in draft else draft["tables"]
    written = {name: table.get("text", draft.get("text")) for name, table in tables.items()}
    return {name: TextForm.model_validate(form) for name, form in written.items() if form is not None}


def with_form(schema: Schema, form: TextForm | None) -> Schema:
    """Return the schema of a table that is written in a form, or in none but the usual one."""
    if schema.text == form:
        return schema
    fields = {name: getattr(schema, name) for name in Schema.model_fields}
    return Schema.model_construct(**{**fields, "text": form})  # it was checked, and of what is cached nothing is kept


def with_forms(contract: AnyContract, forms: Forms) -> AnyContract:
    """Return a contract of which each table is written in its form, and one that has none in the usual one."""
    every: Any = contract
    if every.is_table:
        return cast(AnyContract, with_form(every, forms.get("")))
    if every.kind != "tree" or (every.text is None and forms_of(every) == forms):
        return contract
    tables = {name: one.model_copy(update={"text": forms.get(name)}) for name, one in every.tables.items()}
    fields = {name: getattr(every, name) for name in type(every).model_fields}
    return cast(AnyContract, type(every).model_construct(**{**fields, "tables": tables, "text": None}))
