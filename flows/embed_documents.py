"""The flow of embedded documents: prepare -> ingest -> sanitize -> report -> hand over.

The candidates, the recoder and the encoder are made from public documents before anything is planned, so that the plan
names them by their hash. One stage alone draws, under the only charge: one for all documents.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from dpmodels.authoring.lint import load_contract
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.errors import Unsuitable, refused
from dpmodels.methods.documents.document_sketch import DocumentSketch
from dpmodels.methods.documents.each_document import EachDocument
from dpmodels.privacy import Sensitive
from dpmodels.reading.frames import transform_write
from dpmodels.releases.plan import Line
from dpmodels.text.candidates import Candidates, Recipe, Sketching
from dpmodels.text.reading import load_documents
from flows.config import EmbedConfig
from flows.planning import MayOpen, create_run, make_budget
from tasks.kinds.each_document import CANDIDATES, hashes_of, load_public, refuse_overlap, system_with
from tasks.run.in_memory import GIVEN
from tasks.run.ready import check_ready
from tasks.run.store import Run

HIDES_NO_SENTENCES = (
    "the contract protects {0}s, and embedding each document hides a sentence; write `protects: sentence`, or take the "
    "collection-level release, which hides a whole {0} for less epsilon: nacre synthesize --method moments"
)


@dataclass(frozen=True)
class Prepared:
    """What is planned, and the system with the public candidates that the plan names."""

    line: Line
    candidates: Candidates
    system: EachDocument


def start(
    config: EmbedConfig,
    name: str = "",
    given: Sensitive[pa.RecordBatchReader] | None = None,
    may_open: MayOpen = MayOpen.FIRST,
) -> Run:
    """Check everything public, ask the ledger, and create the run; reads public documents only and charges nothing.

    Documents ``given`` in memory are written to the run's sensitive folder once the run is created.

    Raises:
        NacreError: the run would fail for a public reason, or the budget is exhausted.
    """
    check_ready(config.runtime.device, config.out, config.runtime.signing_key)
    if given is None:
        refuse_overlap(config.documents, config.candidates)
        load_documents(config.documents, contract_of(config))
    prepared = prepare(config)
    further: dict[str, Any] = {"data": config.documents.absolute(), "public_sha256": hashes_of(config.candidates)}
    files = {CANDIDATES: prepared.candidates.to_bytes()}
    run = create_run(config, [prepared.line], name, files=files, may_open=may_open, rows=None, training={}, **further)
    if given is not None:
        transform_write(given, run.sensitive / GIVEN)
    return run


def prepare(config: EmbedConfig) -> Prepared:
    """Make the candidates, and plan from them and other public inputs alone.

    Raises:
        NacreError: an input has faults, or the budget cannot be asked for.
    """
    contract, model = contract_of(config), config.model
    budget = make_budget(config.privacy.target_epsilon, 0.0, contract.unit, adjacency=contract.adjacency)
    try:
        recipe = Recipe(**model.recipe)
    except ValidationError as error:
        raise refused(error, whole="recipe") from None
    if model.method == DocumentSketch.method and recipe.sketch is None:
        shared = contract.most_documents if contract.user else 1
        recipe = recipe.model_copy(update={"sketch": Sketching(epsilon=budget.epsilon / shared)})
    candidates = load_public(config.candidates, contract, recipe)
    system = system_with(model.method, model.measurement, candidates)
    return Prepared(system.plan(contract, budget), candidates, system)


def contract_of(config: EmbedConfig) -> Documents:
    """Read the contract of the documents, or write one from the columns that were named.

    Raises:
        NacreError: there are both, the contract has faults, or it does not protect sentences.
    """
    columns = {key: value for key, value in config.columns.model_dump().items() if value is not None}
    if config.contract is None:
        return _described(config.documents, columns)
    if columns:
        raise Unsuitable(f"give a contract, or what it would say ({', '.join(columns)}), and not both")
    contract = load_contract(config.contract)
    if contract.is_table:
        raise Unsuitable(f"{config.contract} is the schema of a table; embedding needs a contract of documents")
    if contract.protects != "sentence":
        raise Unsuitable(HIDES_NO_SENTENCES.format(contract.protects))
    return contract


def _described(documents: Path, columns: dict[str, Any]) -> Documents:
    """Write the contract of documents from the columns that were named; its name is that of the file."""
    from dpmodels.text.encoders import describe_encoder

    encoder, dim = columns.pop("encoder", ""), columns.pop("dim", 0)
    name = re.sub(r"[^a-z0-9_-]+", "-", documents.stem.lower()).strip("-")
    if not name and "name" not in columns:
        raise Unsuitable(f"the file name {documents.name} holds no sign of a-z or 0-9; name the data set with `name`")
    columns = {"name": name, **({} if "embedding" in columns else {"text": "text"}), **columns}
    try:
        model = (
            Encoder(name="given", dim=dim) if "embedding" in columns else describe_encoder(encoder or "wordllama", dim)
        )
        return Documents(protects="sentence", encoder=model, **columns)
    except ValidationError as error:
        raise refused(error, whole="columns") from None
