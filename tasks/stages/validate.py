"""Validate: a gate and a publishable report, both made from released objects alone."""

import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpmodels.authoring.lint import load_contract, load_to_check
from dpmodels.codec.embedded import codec_of
from dpmodels.contract.helpers import without_helpers
from dpmodels.contract.text_forms.written import with_forms
from dpmodels.errors import ArtifactError, DataError, FileMissing, Unsuitable
from dpmodels.gate.expectations import Verdicts
from dpmodels.gate.made_files import parquet_files, read_batches
from dpmodels.gate.suite import names_tell
from dpmodels.generators.load import load_generator
from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from dpmodels.methods.registry import METHODS
from dpmodels.pages.checks import render_checks
from dpmodels.pages.report import render
from dpmodels.reading.faults.of_dates import with_check
from dpmodels.reading.ingest import with_others
from dpmodels.releases.contract import Contract, table_of
from dpmodels.releases.plan import REPORT
from dpmodels.releases.release import read_release
from dpmodels.report.bins import CellTally
from dpmodels.report.charged_facts import charged_facts, line_facts
from dpmodels.report.fidelity import FIT_ROWS, Measured
from dpmodels.report.report import summarise
from dpmodels.report.verdicts import judged
from tasks.engine.engines import Engine, Threads, cores, open_engine
from tasks.engine.progress import progress_bar
from tasks.kinds.protocol import FileCheck, direct_kind_of, kind_of
from tasks.kinds.tables import check_raw
from tasks.kinds.trees import check_tree
from tasks.kinds.users import check_raw_rows, check_tables
from tasks.run.accounts import desk_of
from tasks.run.bucket import Bucket, Fetched
from tasks.run.receive import Received, receive, reject
from tasks.run.store import MADE, Handle, Run, write_report
from tasks.run.table_inputs import as_parquet, faults_of, is_path, is_raw
from tasks.stages.sample import rows_of
from tasks.stages.stage import stage

BATCH_ROWS = 65_536
NEITHER = (
    "; the file was read with decimal points and ISO dates, and then as `text` in the schema says, and can be read in "
    "neither form"
)
"""Ends what is said of a synthetic file that no form fits."""


@stage("validate", sensitive=False)
def validate(run: Run, release: Handle, product: Handle) -> Handle:
    """Write the publishable report, once a synthetic table was checked against its schema's expectations."""
    if handle := run.finished("validate"):
        return handle
    direct = direct_kind_of(run.plan.release)
    if direct is not None:
        return _finish(run, direct.facts(run, release))
    received = receive(run)
    try:
        return _judge(run, release, received)
    except (ArtifactError, DataError):
        reject(run)  # so that the run goes on once what it received is in order
        raise


def _judge(run: Run, release: Handle, received: Received) -> Handle:
    """Check what was received and write the report.

    Raises:
        ArtifactError: the generator or the table is damaged.
        DataError: the table breaks its schema.
    """
    released = read_release(run.read("sanitize")).value
    contract, settings = released.line.contract, run.settings
    kind = kind_of(contract)
    model = load_generator(received.generator, contract, METHODS[released.line.method].generators)
    rows = rows_of(run, model)
    measured = Measured.of(released)
    check = kind.file_check(contract, rows, settings.batch_rows, measured)
    with progress_bar("validate"), open_engine(settings.threads, run.dask) as engine:
        gate, tally = check_table(received.synthetic, check, engine, received)
    checks = {"checks.html": render_checks(gate)}
    if gate.broken or tally is None:
        write_report(run, checks)
        broken = "; ".join(map(str, gate.broken))
        raise DataError("", f"the synthetic table breaks its schema and is not handed over: {broken}")
    with received.here(most=1) as folder:  # a file holds more rows than are read
        first = first_records(folder, contract, FIT_ROWS)
    facts = summarise(measured, tally, first, gate.results(), release.sha256, charged_section(run))
    facts |= kind.further_facts(measured, first, tally)
    if cautions := [*contract.remarks, *filter(None, [kind.caution_of_rules(model, rows, settings.seed)])]:
        facts["cautions"] = cautions
    return _finish(run, judged(facts), checks)


def _finish(run: Run, facts: Mapping[str, Any], checks: Mapping[str, str] = MappingProxyType({})) -> Handle:
    """Write the report's facts, the page that shows them, and the page of the checks."""
    write_report(run, {**checks, "report.json": json.dumps(facts, indent=1), "report.html": render(facts)})
    return run.finish("validate")


def charged_section(run: Run) -> dict[str, Any] | None:
    """Return the facts of the report's charged section, or of its loss; None for a run that was not asked for one."""
    line = run.plan.report
    if line is None:
        return None
    if handle := run.finished("score"):
        scores = read_release(run.read("score")).value
        return {"status": "measured", "charged": True, **charged_facts(scores), "scores_sha256": handle.sha256}
    reservation = desk_of(run, REPORT).held()
    return {"status": "lost", "charged": reservation is not None and reservation.state != "voided", **line_facts(line)}


def render_again(report: Handle) -> str:
    """Render a publishable report again from its facts, with this version's layout; the hand-off's page stays."""
    return render(json.loads((report.path / "report.json").read_text(encoding="utf-8")))


def check_table(
    path: Path, check: FileCheck, engine: Engine, received: Received | None = None
) -> tuple[Verdicts, CellTally | None]:
    """Check a Parquet file, or a folder of them, against the expectations of a synthetic table.

    What was ``received`` may lie in an object store, from which it is read by whoever checks a file.

    Raises:
        DataError: there is no such file, it is damaged, or a column cannot hold its declared values.
    """
    gate, tally = check.gate(), check.tally()
    if received and received.parts:
        results = engine.map(Fetched(Bucket(received.bucket), check), received.parts.items())
    else:
        results = engine.map(check, parquet_files(path))
    for verdicts, counts in results:
        gate.add(verdicts)
        if tally is not None and counts is not None:
            tally.join(counts)
    gate.settle()
    return gate, tally


def first_records(path: Path, contract: Any, rows: int) -> list[Any]:
    """Read the first rows of a table that fits its contract."""
    codec, read = codec_of(contract), list[Any]()
    for batch in chain.from_iterable(read_batches(file, rows, contract) for file in parquet_files(path)):
        if (missing := rows - sum(map(len, read))) <= 0:
            break
        read.append(codec.encode(batch).take(slice(0, missing)))
    return read


def check_hand_off(data: str | Path, schema_file: Path | None, raw: bool | None = None) -> Verdicts:
    """Check a hand-off against the schema that came with it, or any table against the schema that is named.

    A table with all columns of the schema, those that are dropped included, is held to the rules for raw tables, as is
    one whose columns do not tell, unless it lies in a hand-off; ``raw`` says what whoever asks knows of it.

    Raises:
        Unsuitable: the folder is no hand-off, and no schema is named.
        DataError: there is nothing that can be checked.
    """
    folder, is_one = Path(data), is_path(str(data))
    if not is_one or not (folder / MANIFEST).is_file():
        contract = None if schema_file is None else load_to_check(schema_file)
        if contract is not None and contract.kind == "tree":
            return check_tree(data, contract if raw is not False else with_forms(contract, {}), None)
        if is_one and not folder.exists():
            raise FileMissing(f"{folder} does not exist")
        if contract is None:
            raise Unsuitable(f"{data} is no hand-off with a schema of its own; name a schema with --schema")
        raw = _seems_raw(str(data), contract) if raw is None else raw
        if contract.is_table and contract.users and not (folder / "children").is_dir():
            return check_raw_rows(str(data), table_of(contract), BATCH_ROWS)
        if contract.is_table and not contract.users and raw:
            return check_raw(str(data), contract, BATCH_ROWS)
        return _check_made(data, contract)
    manifest = read_manifest(folder)
    if manifest.part or manifest.clients is not None:
        holds = "embeddings that were made one by one" if manifest.clients is None else "the classifier of a federation"
        raise Unsuitable(f"{folder} holds {holds}, and no table; `nacre verify {folder}` checks all of it")
    contract = load_to_check(schema_file) if schema_file else load_contract(folder / "schema.yaml")
    try:
        rows = int(json.loads((folder / "report.json").read_text(encoding="utf-8"))["synthetic_rows"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError("", f"{folder} has no report.json that can be read") from None
    return _checked(folder / MADE["sample"], without_helpers(contract), rows)


def _check_made(data: str | Path, contract: Contract) -> Verdicts:
    """Check a table that was made: text is read with points and ISO dates, or else as its schema's ``text`` says.

    All rows are read in one form or in the other; of a file that can be read in neither, the faults are those of the
    form in which fewer columns are wrong.

    Raises:
        DataError: see above.
    """
    form = contract.text if contract.is_table and not contract.users else None
    faults = list[DataError]()
    for each in (None,) if form is None else (None, form):
        reading = without_helpers(with_forms(contract, {"": each} if each else {}) if contract.is_table else contract)
        try:
            with as_parquet(data, reading) as table:
                verdicts = _checked(table, reading, None)
        except DataError as fault:
            faults.append(with_check(with_others(fault, faults_of(str(data), reading))))
        else:
            verdicts.form = each
            return verdicts
    fewest = min(faults, key=lambda fault: len(fault.faults))
    if form is None or str(faults[0]) == str(faults[1]):  # what is wrong is not how numbers and dates are written
        raise fewest
    *others, last = fewest.faults or ("",)
    raise DataError(fewest.column, f"{fewest.rule}{NEITHER}", [*others, f"{last}{NEITHER}"] if last else ())


def _seems_raw(data: str, contract: Contract) -> bool:
    """Tell whether a table is raw: by its names, or else by where it lies, for whoever checks one is about to give it.

    Images have no names that tell, and are taken for synthetic ones.
    """
    if not contract.is_table or contract.users:
        return False
    if names_tell(contract):
        return is_raw(data, contract)
    in_hand_off = is_path(data) and any((folder / MANIFEST).is_file() for folder in Path(data).absolute().parents)
    return not contract.image and not in_hand_off


def _checked(path: Path, contract: Contract, rows: int | None) -> Verdicts:
    if contract.kind == "tree":
        return check_tree(path, contract, rows)
    if contract.users:
        return check_tables(path, contract, rows)
    return check_table(path, kind_of(contract).file_check(contract, rows, BATCH_ROWS, None), Threads(cores()))[0]
