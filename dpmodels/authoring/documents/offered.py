"""What documents say of rows and of the table as a whole, written into a draft for a person to confirm."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from dpmodels.authoring.column import CONFIRM, IF_ZEROS, MAY_BE_ANSWERS, SUGGESTED, ColumnDraft, may_hold_zeros
from dpmodels.authoring.documents.fitted import CENTS
from dpmodels.authoring.documents.rules import Rule, none_clauses, rules_in, zero_clauses
from dpmodels.authoring.documents.spans import Span, span_in
from dpmodels.authoring.documents.worded import ANSWERS
from dpmodels.authoring.facts import TODO, Facts
from dpmodels.authoring.source import Source
from dpmodels.authoring.suggest import OPEN_NUMBER, ZEROS, advice_on
from dpmodels.authoring.type_words import names_money
from dpmodels.contract.base import is_text
from dpmodels.contract.formula import names_in as operands
from dpmodels.contract.text_forms.text_form import TextForm, as_written
from dpmodels.limits import MOST_RULES
from dpmodels.plain_yaml import write_yaml

OF_SPAN = "the days that its description says (`{clause}`)"
TO_TAKE = "to take it, delete `, confirm: TODO`"
BOTH = "to take both, delete `, confirm: TODO` here and at {other}"
NOT_A_RULE = "not read as a rule: `{clause}`; where it holds in every row, write it under `constraints` or as a formula"
OF_ZERO_CLAUSE = "zeros are kept exactly, for its description has them: `{clause}`"
OF_NONE_CLAUSE = "null is allowed, for its description says who has none: `{clause}`"
OF_ANSWERS = (
    "{words} of the file come back as true and false; to have the same words back, write "
    "`{{type: categorical, values: [{values}]}}`"
)
OF_ROWS = 'rows: {{min: {least}, max: {most}}}  # "{words}" ({title}); a run refuses other numbers'
TO_TAKE_ROWS = ". To take it, delete `# `"
OF_TEXT = "  # as {title} says or writes them; check it against the file, since text in another form is refused"
OF_RULES = """\
# Rules that descriptions say in words. Every row of the data must keep those that you take: `nacre validate DATA
# --schema THIS_FILE --raw` says whether they do. To take one, delete `# ` before it and before `constraints:`.
"""
ACCEPTED = "# Rules that descriptions say in words, accepted as suggestions: every row of the data must keep them.\n"
OF_NUMBERS = ("decimal", "thousands")
OF_CENTS = "two decimals, as numbers in its formula have"
ARITHMETIC = re.compile(r"(?!.*//)(?:[\s\d.,()+*/-]|\b(?:min|max)\b(?=\s*\()|[^\W\d]\w*\b(?!\s*\())+")
"""A formula of sums, products and quotients, or the smallest or largest of them."""
CONVERSE = "only if that is meant too"


def with_said(
    columns: Mapping[str, ColumnDraft],
    facts: Mapping[str, Facts],
    types: Mapping[str, pa.DataType | None],
    accept: bool,
) -> tuple[dict[str, ColumnDraft], list[str]]:
    """Return the columns of a draft with what their descriptions say of others, and the lines of its rules."""
    descriptions = {name: one.description for name, one in facts.items() if name in columns and one.description}
    drafts = dict(columns)
    for name in descriptions:
        keys = {one: draft.keys for one, draft in drafts.items()}
        if facts[name].keys is None and (span := span_in(name, descriptions[name], keys)):
            drafts = dict(_with_days(name, span, drafts, accept))
    for name, clause in zero_clauses({name: one.keys for name, one in drafts.items()}, descriptions).items():
        if facts[name].keys is None:
            drafts[name] = _with_zeros(drafts[name], clause, descriptions[name], accept)
    for name, clause in none_clauses({name: one.keys for name, one in drafts.items()}, descriptions).items():
        if facts[name].keys is None and facts[name].nullable is None:
            nullable = {**drafts[name].keys, "nullable": True}
            drafts[name] = ColumnDraft(nullable, (*drafts[name].remarks, OF_NONE_CLAUSE.format(clause=clause)))
    rules, unread = rules_in({name: one.keys for name, one in drafts.items()}, descriptions)
    for name, clauses in unread.items():
        remarks = (NOT_A_RULE.format(clause=clause) for clause in clauses)
        drafts[name] = replace(drafts[name], remarks=(*drafts[name].remarks, *remarks))
    for name, one in drafts.items():
        is_words = name in types and (types[name] is None or is_text(types[name]))
        if one.keys["type"] == "boolean" and is_words:
            drafts[name] = replace(one, remarks=(*one.remarks, _of_answers(descriptions.get(name, ""))))
    return drafts, [*_rule_lines(rules[:MOST_RULES], accept)]


def in_cents(columns: Mapping[str, ColumnDraft]) -> dict[str, ColumnDraft]:
    """Round to cents what a formula reckons of numbers with two decimals, as files of money do, unless others are said.

    What compares, counts or rounds by itself gives no such numbers.
    """
    drafts = dict(columns)
    for name, one in columns.items():
        formula = str(one.keys.get("formula", ""))
        if not ARITHMETIC.fullmatch(formula) or "round" in one.keys or one.keys.get("dtype") == "int64":
            continue
        decimals = [columns[each].keys.get("round") for each in operands(formula) if each in columns]
        if CENTS in decimals:
            drafts[name] = ColumnDraft({**one.keys, "round": CENTS}, (*one.remarks, OF_CENTS))
    return drafts


def _with_zeros(column: ColumnDraft, clause: str, description: str, accept: bool) -> ColumnDraft:
    """Keep the zeros that a clause speaks of exactly; what is open, and called an amount, is drafted as a number."""
    keys, remarks = dict(column.keys), list(column.remarks)
    if keys["type"] == TODO and names_money(description):
        keys = {**OPEN_NUMBER, **{key: value for key, value in keys.items() if key != "type"}}
        offer = "a suggestion that was accepted: " if accept else SUGGESTED
        remarks += [f"{offer}an amount; {advice_on(keys)}"]
    if keys["type"] != "number" or not may_hold_zeros(keys):
        return column
    remarks = [one.replace(ZEROS, "") for one in remarks if one != IF_ZEROS]
    return ColumnDraft({**keys, "zero_inflated": True}, (*remarks, OF_ZERO_CLAUSE.format(clause=clause)))


def _with_days(
    date: str, span: Span, columns: Mapping[str, ColumnDraft], accept: bool
) -> Iterator[tuple[str, ColumnDraft]]:
    """Yield the columns of a draft, of which one date follows from another by the days between, a column beside it."""
    mark: dict[str, Any] = {} if accept else dict(CONFIRM)
    because = OF_SPAN.format(clause=span.clause)
    for name, one in columns.items():
        if name != date:
            yield name, one
            continue
        kept = tuple(remark for remark in one.remarks if not remark.startswith(SUGGESTED) and remark != MAY_BE_ANSWERS)
        offer = "a suggestion that was accepted: " if accept else SUGGESTED
        taken = "" if accept else f"; {BOTH.format(other=span.name)}"
        yield date, ColumnDraft({**span.date, **mark}, (*kept, f"{offer}{because}{taken}"))
        yield span.name, ColumnDraft({**span.days, **mark}, (f"not in the file: the days that {date} follows by",))


def _of_answers(description: str) -> str:
    """Say that answers come back as true and false, in the words that a description has for them."""
    match = ANSWERS.search(description)
    pair = [match[1], match[2]] if match else ["Y", "N"]
    return OF_ANSWERS.format(
        words=" and ".join(pair) if match else "yes and no", values=", ".join(map(json.dumps, pair))
    )


def _rule_lines(rules: Sequence[Rule], accept: bool) -> Iterator[str]:
    """Write rules as lines that a person takes by deleting what makes them comments; none is live unless accepted."""
    if not rules:
        return
    yield (ACCEPTED if accept else OF_RULES).rstrip()
    mark = "" if accept else "# "
    yield f"{mark}constraints:"
    for rule in rules:
        line = write_yaml([rule.text], default_flow_style=False, width=10_000).rstrip()
        words = f'{rule.column}: "{rule.clause}"' + (f", {CONVERSE}" if rule.is_converse else "")
        lines = f"{line}  # {_plain(words)}".splitlines()  # of a value with a line end in it there are several
        yield "\n".join(f"{'# ' if rule.is_converse else mark}{one}" for one in lines)


def _plain(words: str) -> str:
    """Write words of a document so that they end no line of a comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in words).split())


def table_lines(
    sources: Sequence[Source],
    types: Mapping[str, pa.DataType | None],
    given: TextForm | None,
    is_parted_by_commas: Callable[[], bool],
    accept: bool = False,
) -> Iterator[str]:
    """Yield what documents say of the number of rows, and of how text is written, as a key.

    The number of rows is a comment unless suggestions are accepted and no other document says another one. Commas that
    part the fields of the data stand before no decimals, however the document writes them. What a person says of text
    goes before what documents do.
    """
    counted = [one for one in sources if one.rows]
    is_taken = accept and len(counted) == 1
    for source in counted:
        least, most, words = source.rows or (0, 0, "")
        line = OF_ROWS.format(least=least, most=most, words=_plain(words.replace('"', "'")), title=source.title)
        yield line if is_taken else f"# {line}{TO_TAKE_ROWS}"
    form = next((one for one in sources if one.form), None)
    if form and any(dtype is None for dtype in types.values()):
        is_left_out = given is not None or (form.form.get("decimal") == "," and is_parted_by_commas())
        said = {key: mark for key, mark in form.form.items() if key not in OF_NUMBERS or not is_left_out}
        stated = as_written(given)["text"] if given else {}
        line = write_yaml({"text": {**said, **stated}}, default_flow_style=None, width=10_000).rstrip()
        yield from [line + OF_TEXT.format(title=form.title)] * bool(said.keys() - stated.keys())
