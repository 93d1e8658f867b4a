"""What there is, and how good it is: runs, rules of a schema, and tables beside the real rows; nothing is charged."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence, ValuesView
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dpmodels.authoring.lint import load_contract
from dpmodels.errors import Unsuitable, in_words
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.privacy import Sensitive
from dpmodels.reading.public import load_public_frames
from nacre.calls import call_of, called
from nacre.given import SchemaLike, load_schema, path_of, schema_file, with_public_rows
from nacre.places import Place, home_of
from nacre.result import Result
from nacre.words import argument

if TYPE_CHECKING:
    import pandas as pd

    from dpmodels.gate.expectations import Verdicts

    Table = Place | Result | pd.DataFrame | Mapping[str, Any] | Any
SYNTHETIC = "`{}` is a hand-off, and must be a table of real rows: write compare(hand_off, real_rows, schema)"
Taken = str | Sensitive[Any]
"""Where the files of a table or of a hand-off lie, or the rows that lie in memory."""


def runs(home: Place | None = None) -> "pd.DataFrame":
    """List the runs of a home, the oldest first: what each was of, how far it is, and what goes on with it.

    The column ``run`` has the names that ``nacre.resume`` and ``nacre.sample`` take; ``next`` is the call that goes on,
    or the command that removes a run, for which there is no call.

    Raises:
        NacreError: there is no such home.
    """
    from dataclasses import astuple, fields, replace

    from nacre.listing import Listing
    from tasks.run.runs import Listed, list_runs

    place = home_of(home)
    names = ["run" if field.name == "name" else field.name for field in fields(Listed)]
    listed = (replace(one, why=in_words(one.why, argument, call_of), next=called(one.next)) for one in list_runs(place))
    return Listing(map(astuple, listed), columns=names)


def validate(data: "Table", schema: SchemaLike | None = None, *, raw: bool | None = None) -> "pd.DataFrame":
    """Hold a table, of whatever tool, against the rules of a schema: a row for each rule, and whether it holds.

    It is shown with the rules that fail, and the number of those that hold; the frame has all. ``failing_rows`` of
    ``rows`` break a rule; both are null for a rule about the table as a whole. What fails alone is
    ``rules[~rules["success"]]``, where ``advice`` says of a formula by how much raw rows differ from it, and what to
    write; it is empty elsewhere. Of raw rows, the last lines say what ``outside`` leaves out or changes. A synthetic
    file is read with points and ISO dates, or where it cannot be as the schema's ``text`` says: ``attrs["notes"]`` then
    say so.

    Args:
        data: a hand-off, a path or a URI of files, or rows in memory; of a tree of tables a dictionary of frames.
        schema: that of the table; a hand-off has its own.
        raw: whether it is held to the rules for raw tables, or to those for synthetic ones. By default its columns
            tell; where no column of the schema is dropped or computed, all but what lies in a hand-off is raw.

    Privacy: exact counts of the rows that are given, as on the terminal: those of private rows stay inside.

    Raises:
        NacreError: there is no table, or no schema.
    """
    from nacre.listing import RuleListing
    from tasks.stages.validate import check_hand_off

    given = _taken(data)
    del data  # a traceback of what follows shows no rows
    if schema is None and not isinstance(given, str):
        raise Unsuitable("rows in memory bring no schema: name theirs, as in validate(frame, schema)")
    with _as_schema(schema, given) as (file, rows), _as_files(rows, contract=_contract_of(file, rows)) as place:
        gate = check_hand_off(place, file, raw)
    frame = RuleListing(_judged(gate), columns=["column", "rule", "success", "failing_rows", "rows", "advice"])
    frame = RuleListing(frame.astype({"failing_rows": "Int64", "rows": "Int64"}))
    if gate.form is not None:
        frame.attrs["notes"] = [f"the table is read with {gate.form.in_words}, as `text` in the schema says"]
    return frame


def _judged(gate: "Verdicts") -> Iterator[tuple[str | None, str, bool, int | None, int | None, str]]:
    """Yield the rules, with the advice on a formula beside the rule that it breaks, and then what policies do."""
    from dpmodels.gate.policies import Policy

    advice, policies = dict[str, list[str]](), list[tuple[str, str]]()
    for one in gate.policies:
        if isinstance(one, Policy):
            policies.append((one.name, one.text))
        else:
            advice.setdefault(one.name, []).append(one.text)
    for outcome in gate.by_severity:
        counts = (outcome.failed, outcome.checked) if outcome.rule.columns else (None, None)
        said = [] if outcome.passed else advice.pop(outcome.rule.column, [])
        yield outcome.rule.column or None, outcome.text, outcome.passed, *counts, "; ".join(said)
    policies += [(name, text) for name, texts in advice.items() for text in texts]
    yield from ((name, text, True, None, None, "") for name, text in policies)


def compare(
    tables: "Table | Sequence[Table] | Mapping[str, Table]",
    real: "Table",
    schema: SchemaLike,
    *,
    test: "Table | None" = None,
    home: Place | None = None,
) -> "pd.DataFrame":
    """Judge synthetic tables, of whatever tools, side by side against the real rows: a row for each score.

    ``better`` says what is good, ``real rows`` what as many other real rows give, and of several tables ``best`` which
    comes nearest. ``.attrs["verdicts"]`` is a sentence on each table, which is shown below the scores,
    ``.attrs["checks"]`` what each check found, and ``.attrs["page"]`` the page of all, in the sensitive zone of
    ``home``.

    Privacy: exact figures of the real rows, so they stay inside; to choose among runs by them is a release that nobody
    charged.

    Args:
        tables: a hand-off, a path or a URI of files, or rows in memory; a list of them; or a dictionary, whose keys
            then name the columns of the scores. All are of one schema. Rows of a tree are a dictionary of frames.
        real: the rows that they were made from.
        schema: as everywhere.
        test: rows that nothing was made from, which models are scored on.
        home: where the page lies; by default that of the first result among the tables, ``NACRE_HOME``, or ``.nacre``.

    Raises:
        NacreError: a table cannot be read, or has other columns than the schema.
    """
    from nacre.compared import scores_of

    labels, given, whole, known = *_labelled(tables), _taken(tables), _home_among(tables)
    rows, held_out = _taken(real), None if test is None else _taken(test)
    for name, each in (("real", rows), ("test", held_out)):
        if isinstance(each, str) and (Path(each) / MANIFEST).is_file():
            raise Unsuitable(SYNTHETIC.format(name))
    del tables, real, test  # a traceback of what follows shows no rows
    contract = load_schema(schema)
    if contract.kind == "tree" and set(contract.tables) <= set(labels):  # the tables of one tree
        labels, given = [], [whole]
    _check_labels(labels, given)
    page = _compared(labels, given, rows, held_out, contract, home_of(home or known))
    facts = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    return scores_of(facts, str(page), not labels and len(given) > 1 and Sensitive in map(type, given))


def _labelled(tables: Any) -> tuple[list[Any], list[Taken]]:
    """Return the tables that were given, and what a dictionary calls them; no labels of a list or of one table."""
    if isinstance(tables, Mapping):
        return list(tables), [_taken(table) for table in tables.values()]
    several = isinstance(tables, Sequence | ValuesView | Generator) and path_of(tables) is None
    return [], [_taken(table) for table in (tables if several else [tables])]


def _home_among(tables: Any) -> Path | None:
    """Return the home of the first result among tables, where one is known."""
    listed = tables.values() if isinstance(tables, Mapping) else tables
    several = listed if isinstance(listed, list | tuple | ValuesView) else [listed]
    return next((one.home for one in several if isinstance(one, Result) and one.home), None)


def _check_labels(labels: Sequence[Any], given: Sequence[Taken]) -> None:
    """Refuse labels that cannot head a column; no message quotes one, which may be a value of the data."""
    if not given:
        raise Unsuitable("there is no table to compare; give one, a list, or a dictionary of name and table")
    if not all(isinstance(label, str) and label for label in labels):
        raise Unsuitable("the keys of the dictionary must be text, since they name the tables")
    from nacre.compared import BEST, FIGURES

    if set(labels) & set(taken := (*FIGURES, BEST)):
        raise Unsuitable(f"the keys of the dictionary name the tables: use others than {', '.join(taken)}")


def _compared(
    labels: Sequence[str], given: Sequence[Taken], real: Taken, test: Taken | None, contract: Any, home: Path
) -> Path:
    """Compare tables with the real rows and perhaps those that were held out; return the private page."""
    from dpmodels.comparison.report import Options
    from tasks.engine.engines import cores
    from tasks.run.folders import make_private
    from tasks.run.runs import new_comparison
    from tasks.stages.evaluate import Place as Zone
    from tasks.stages.evaluate import compare as judge

    make_private(zone := new_comparison(home))
    with ExitStack() as stack:

        def lend(rows: Taken, name: str) -> str:
            return stack.enter_context(_as_files(rows, zone, name, contract))

        if contract.kind == "tree" and not isinstance(real, str):
            contract, real = load_public_frames(contract, real)
        places = [lend(each, f"table-{at}") for at, each in enumerate(given, 1)]
        held_out = None if test is None else lend(test, "test")
        options = Options(workers=min(8, cores()))
        target = judge(Zone(sensitive=zone), places, lend(real, "real"), held_out, contract, options, labels)
        return target.with_suffix(".html")


def _taken(data: Any) -> Taken:
    """Return where the files of a table or of a hand-off lie, or the rows that lie in memory."""
    path = str(data.folder) if isinstance(data, Result) else path_of(data)
    return Sensitive(data) if path is None else path


@contextmanager
def _as_files(data: Taken, zone: Path | None = None, name: str = "rows", contract: Any = None) -> Iterator[str]:
    """Lend a table as files; what lies in memory is written where its owner alone reads it, and deleted afterwards.

    Of a tree, whose ``contract`` says so, it is a folder with a file for each private table.
    """
    if isinstance(data, str):
        yield data
        return
    from dpmodels.reading.frames import load_given, load_tables, transform_write, transform_write_tables

    with TemporaryDirectory(dir=zone) as folder:
        if contract is not None and contract.kind == "tree":
            _, private = load_public_frames(contract, data)
            columns = {table: branch.columns for table, branch in contract.tables.items()}
            transform_write_tables(load_tables(private, list(contract.tables), columns), Path(folder) / name)
            yield str(Path(folder) / name)
            return
        rows = load_given(data, columns=getattr(contract, "columns", ()))
        transform_write(rows, file := Path(folder) / f"{name}.parquet")
        yield str(file)


@contextmanager
def _as_schema(schema: SchemaLike | None, rows: Taken) -> Iterator[tuple[Path | None, Taken]]:
    """Lend a schema as a file, with the public rows that are among the frames of a tree, and the private frames."""
    if schema is None:
        yield None, rows
        return
    with schema_file(schema) as file:
        if isinstance(rows, str):
            yield file, rows
            return
        with with_public_rows(file, rows) as lent:
            yield lent


def _contract_of(file: Path | None, rows: Taken) -> Any:
    """Read the contract of rows in memory, which says whether they are several tables."""
    return None if file is None or isinstance(rows, str) else load_contract(file)
