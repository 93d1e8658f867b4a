"""Each document by itself, prepared of its contract and of public documents.

The candidates, the recoder and the encoder are made from public documents before anything is planned, so that the plan
names them by their hash.
"""

import re
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from dpmodels.authoring.lint import load_contract
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.errors import Unsuitable, refused
from dpmodels.methods.documents.document_sketch import DocumentSketch
from dpmodels.privacy import PrivacyUnit
from dpmodels.reading.data_files import is_uri
from dpmodels.text.candidates import Recipe, Sketching
from dpmodels.text.reading import load_documents
from flows.config import EmbedConfig
from flows.kinds.prepared import Prepared
from flows.planning import make_budget
from tasks.kinds.each_document import CANDIDATES, hashes_of, load_public, refuse_overlap, system_with
from tasks.run.source import Source

HIDES_NO_SENTENCES = (
    "the contract protects {0}s, and embedding each document hides a sentence; write `protects: sentence`, or take the "
    "collection-level release, which hides a whole {0} for less epsilon: nacre synthesize --method moments"
)

IS_SLOW = True


def check_paths(config: EmbedConfig, has_data: bool) -> None:
    """Refuse documents that no run could read, or that are the public ones; reads names and types of columns."""
    make_budget(config.privacy.target_epsilon, 0.0, PrivacyUnit())
    if has_data:
        Source(config.documents, config.query).check("documents")
        if not config.query:
            refuse_overlap(config.documents, config.candidates)
            load_documents(config.documents, contract_of(config))


def prepare(config: EmbedConfig, partition: str = "") -> Prepared:
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
    data, public_sha256 = Source(config.documents, config.query).settled.data, hashes_of(config.candidates)
    settings: dict[str, Any] = {"data": data, "public_sha256": public_sha256, "rows": None, "training": {}}
    files = {CANDIDATES: candidates.to_bytes()}
    return Prepared(contract, [system.plan(contract, budget)], files=files, settings=settings, system=system)


def are_stated(config: EmbedConfig, prepared: Prepared) -> bool:
    """Tell that nothing of the data is left to be looked at here."""
    return True


def check_data(config: EmbedConfig, prepared: Prepared) -> None:
    """Check nothing more: the columns were looked at before the candidates were made."""


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
    if contract.kind == "tree" or contract.is_table:
        raise Unsuitable(f"{config.contract} is about {contract.about}; embedding needs a contract of documents")
    if contract.protects != "sentence":
        raise Unsuitable(HIDES_NO_SENTENCES.format(contract.protects))
    return contract


def _described(documents: str, columns: dict[str, Any]) -> Documents:
    """Write the contract of documents from the columns that were named; its name is that of the file."""
    from dpmodels.text.encoders import describe_encoder

    encoder, dim = columns.pop("encoder", ""), columns.pop("dim", 0)
    path = PurePosixPath(documents.partition("?")[0] if is_uri(documents) else documents)
    name = re.sub(r"[^a-z0-9_-]+", "-", path.stem.lower()).strip("-")
    if not name and "name" not in columns:
        raise Unsuitable(f"the file name {path.name} holds no sign of a-z or 0-9; name the data set with `name`")
    columns = {"name": name, **({} if "embedding" in columns else {"text": "text"}), **columns}
    try:
        model = (
            Encoder(name="given", dim=dim) if "embedding" in columns else describe_encoder(encoder or "wordllama", dim)
        )
        return Documents(protects="sentence", encoder=model, **columns)
    except ValidationError as error:
        raise refused(error, whole="columns") from None
