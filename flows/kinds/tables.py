"""Tables, tables of users, images and collections of documents: what is synthesized, prepared of a schema."""

import os
from pathlib import Path

from dpmodels.authoring.lint import load_for_run
from dpmodels.authoring.written import check_written
from dpmodels.codec.encode import Codec
from dpmodels.codec.flat import tables_of
from dpmodels.contract.text_forms.written import forms_of, with_forms
from dpmodels.errors import DataError, InvalidArgument
from dpmodels.methods.registry import method_for, synthesized, system_of
from dpmodels.reading.data_files import find_files, is_uri
from dpmodels.reading.database import Query, check_database, check_query, names_of_query
from dpmodels.reading.pictures import is_pictures
from dpmodels.reading.public import check_public, count_unlisted, load_public_files
from dpmodels.reading.tree_files import place_of
from dpmodels.releases.discoveries import check_priced
from dpmodels.report.charged import Scores, read_measurement
from flows.config import SynthesizeConfig
from flows.kinds.prepared import Prepared
from flows.planning import check_delta, make_budget
from tasks.kinds.protocol import kind_of_line
from tasks.kinds.tables import refuse_computed
from tasks.run.bucket import local
from tasks.run.source import PASSWORD, Source

IS_SLOW = False
NAMED_WITHOUT_ROWS = ("sqlite", "duckdb", "postgresql")
"""Databases that plan a query whose answer has no rows without reading any."""

UNREAD = "; no value was looked at: `nacre validate` names whatever else is wrong"

NOT_IN_A_STORE = "be left out: a hand-off in an object store has its table as Parquet; export it once it is there"
OF_ONE_TABLE = "be left out: what is handed over are several tables"


def check_paths(config: SynthesizeConfig, has_data: bool) -> None:
    """Refuse data that no run could read, by its place alone, and one file of a table in an object store.

    Raises:
        NacreError: there is no data, or a URI holds a secret.
    """
    if config.format and local(config.out) is None:
        raise InvalidArgument("format", config.format, NOT_IN_A_STORE)
    if has_data:
        Source(config.data, config.query).check()


def prepare(config: SynthesizeConfig, partition: str = "") -> Prepared:
    """Plan the release, and the report's charged scores if they were asked for."""
    contract = load_for_run(config.table_schema)
    unlisted, forms = dict[str, int](), forms_of(contract)
    if contract.kind == "tree" and contract.public:
        check_public(filled := load_public_files(contract, config.data))
        contract, unlisted = filled, count_unlisted(contract, config.data)
    contract = with_forms(contract, {})  # what is planned, paid for and handed over is the same in any form
    check_written(contract)
    if contract.is_table and partition:
        contract = contract.of_partition(partition)
    if config.format and tables_of(contract):
        raise InvalidArgument("format", config.format, OF_ONE_TABLE)
    if config.query and contract.kind == "tree":
        raise InvalidArgument("query", config.query, "be left out: a tree of tables is read from files, a table each")
    name = method_for(contract, config.model.method)
    method = system_of(name, config.model.measurement, config.model.training, among=synthesized())
    if (contract.is_table or contract.kind == "tree") and config.rows and (faults := contract.too_few(config.rows)):
        raise InvalidArgument("rows", config.rows, f"be fewer: {' '.join(faults[0])}")
    if config.parents and (contract.users is None or not contract.users.columns):
        rule = "be left out: the schema does not say which columns are the users' own (`users: {columns: [...]}`)"
        raise InvalidArgument("parents", config.parents, rule)
    if config.parents:
        Source(config.parents).check()
    privacy, scores = config.privacy, read_measurement(config.report)
    budget = make_budget(privacy.target_epsilon, privacy.delta, contract.unit)
    check_delta(privacy.delta, privacy.allow_large_delta)
    check_priced(contract, privacy.delta)
    lines = [method.plan(contract, budget)]
    if privacy.report_epsilon is not None:
        if contract.users or not (contract.is_table or contract.kind == "tree"):
            rule = "be left out: only the report on a table, or on a tree of tables, has charged scores"
            raise InvalidArgument("report_epsilon", privacy.report_epsilon, rule)
        budget = make_budget(privacy.report_epsilon, privacy.delta, contract.unit, "report_epsilon")
        lines.append(Scores(scores).plan(contract, budget))
    of_users = contract.users if contract.is_table else None
    is_flat = of_users is not None and bool(of_users.columns) and not config.parents  # each user has a row then
    training = {"training": {"each_has_rows": True} | config.model.training} if is_flat else {}
    settings = {**places_of(config), "text_forms": forms, "unlisted": unlisted, **training}
    return Prepared(contract, lines, settings=settings)


def places_of(config: SynthesizeConfig) -> dict[str, str]:
    """Return where the data lies, as a run finds it from any folder."""
    return {
        "data": Source(config.data, config.query).settled.data,
        "parents": config.parents and Source(config.parents).settled.data,
    }


def check_data(config: SynthesizeConfig, prepared: Prepared) -> None:
    """Hold the columns of files to the schema; of a query their names, where no row is read for them."""
    contract = with_forms(prepared.contract, prepared.settings.get("text_forms", {}))
    if not config.query:
        try:
            kind_of_line(prepared.lines[0]).check_columns(contract, config.data, config.parents)
        except DataError as fault:
            hint = UNREAD if fault.column and (contract.is_table or contract.kind == "tree") else ""
            raise DataError(fault.column, fault.rule + hint, fault.faults) from None
    elif contract.is_table and check_database(config.data).get_backend_name() in NAMED_WITHOUT_ROWS:
        answered = contract if contract.users is None else contract.children if config.parents else contract.joined
        names = names_of_query(without_rows(Source(config.data, config.query)))
        refuse_computed(contract, names)
        if answered.raw.keys() - names:  # one too many may be one of two that have one name
            Codec(answered).check_names(names)


def are_stated(config: SynthesizeConfig, prepared: Prepared) -> bool:
    """Tell whether names and types are said by the data; those of JSON lines are read off the first record."""
    contract = prepared.contract
    places = [place_of(config.data, name) for name in contract.tables] if contract.kind == "tree" else [config.data]
    if config.query:
        return True
    files = [find_files(place)[0] for place in (*places, config.parents) if place and not _is_pictures(place)]
    return all(file.format != "json" for file in files)


def _is_pictures(place: str) -> bool:
    return not is_uri(place) and is_pictures(Path(place))


def without_rows(source: Source) -> Query:
    """Return a query whose answer has the columns of another one and no rows.

    Privacy: its condition is false whatever the rows are, so the database reads none, and no value makes it fail.
    """
    text = f"select * from (\n{check_query(source.data, source.query)}\n) as answer where 1 = 0"
    return Query(source.data, text, os.environ.get(PASSWORD, ""))
