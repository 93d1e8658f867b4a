"""Each document by itself in the stages: it is cut into sentences, which are embedded, and has a release of its own.

What is public is made before the run: the candidates lie in the run's control zone, and the plan names their hash.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pyarrow.compute as pc

from dpmodels.contract.documents import Documents
from dpmodels.errors import ArtifactError, DataError, Unsuitable
from dpmodels.late import check_installed
from dpmodels.methods.documents.each_document import EachDocument, EmbeddedDocuments
from dpmodels.methods.registry import of_kind, system_of
from dpmodels.privacy import Sensitive
from dpmodels.reading.data_files import check_place, find_files
from dpmodels.reading.links import share_rows
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from dpmodels.report.embedded import summarise_embedded, too_short
from dpmodels.text.candidates import Candidates, Recipe, make_candidates, read_candidates
from dpmodels.text.encoders import Encode, load_encoder
from dpmodels.text.passages import PassageFile, transform_passages
from dpmodels.text.reading import load_documents
from tasks.engine.engines import Engine
from tasks.engine.progress import progress_bar
from tasks.kinds.documents import documents_of
from tasks.run.accounts import desk_of
from tasks.run.store import Handle, Run

SYNTHESIZED = COMPARED = False
CANDIDATES, PASSAGES = "candidates.safetensors", "passages.arrow"
BATCH_ROWS = 256
"""Documents that are cut and encoded at once, however large the run's batches of rows may be."""

EMBEDDINGS = "embeddings"
FILE_ROWS = 2**17


def load_public(data: str, contract: Documents, recipe: Recipe) -> Candidates:
    """Read public documents and make the candidates of them; reads no private data.

    Raises:
        NacreError: the documents cannot be read, or too few are long enough.
    """
    check_place(data, "candidates")
    check_installed(["sklearn", "torch", *(["sentencex"] if contract.text else [])])
    public = contract.model_copy(update={"user": "", "most_documents": 1, "label": "", "classes": ()})
    with TemporaryDirectory() as folder, progress_bar("candidates"):
        target = Path(folder) / "public.arrow"
        transform_passages(load_documents(data, public, BATCH_ROWS), public, encoder_of(public), target)
        return make_candidates(PassageFile(target), contract.encoder, recipe)


def system_with(method: str, measurement: Mapping[str, Any], candidates: Candidates) -> EachDocument:
    """Make a system with the public candidates at hand.

    Raises:
        InvalidArgument: there is no such method, or it refuses a setting.
    """
    return cast(EachDocument, system_of(method, measurement, public=candidates, among=of_kind("each document")))


def system(run: Run) -> EachDocument:
    """Return the system of a run with the candidates that its plan names.

    Raises:
        ArtifactError: the candidates were changed.
    """
    line, candidates = run.plan.release, read_candidates(run.control / CANDIDATES)
    if candidates.sha256 != line.measurement["candidates"]:
        raise ArtifactError(f"the candidates of run {run.name} are not those that its plan names; start a new run")
    return system_with(line.method, line.measurement, candidates)


def encode(run: Run, folder: Path) -> None:
    """Cut the documents into sentences and embed each of them.

    Raises:
        Unsuitable: a file of the candidates is one of the documents.
    """
    settings, contract = run.settings, documents_of(run.plan.release)
    if not settings.query and set(hashes_of(settings.data)) & set(settings.public_sha256):
        raise Unsuitable(
            "a file of the candidates is also one of the documents that are to be protected; it must not be"
        )
    try:
        source = settings.source.rows
        documents = load_documents(source, contract, min(settings.batch_rows, BATCH_ROWS))
        transform_passages(documents, contract, encoder_of(contract), folder / PASSAGES)
    except DataError as fault:
        raise DataError(fault.column, f"{fault.rule}; nothing was charged") from None


def records(run: Run, encoded: Path | None, engine: Engine) -> Sensitive[Any]:
    """Return the embedded sentences of each document."""
    return Sensitive(PassageFile((encoded or run.sensitive) / PASSAGES))


def encoder_of(contract: Documents) -> Encode | None:
    """Load the encoder of a contract, or none where the documents come with embeddings."""
    return load_encoder(contract.encoder) if contract.text else None


def hashes_of(data: str) -> list[str]:
    """Hash every file of a data set."""
    return sorted(file.digest("sha256").hex() for file in find_files(data))


def refuse_overlap(documents: str, candidates: str) -> None:
    """Refuse candidates that are the documents, whatever links lead to them; opens no file.

    Raises:
        Unsuitable: they share a file.
    """
    check_place(candidates, "candidates")
    private, public = (
        [identity for file in find_files(data) for identity in file.identities] for data in (documents, candidates)
    )
    if share_rows(private, public):
        raise Unsuitable(f"{candidates} holds documents that are to be protected; candidates must be public documents")


def facts(run: Run, release: Handle) -> dict[str, Any]:
    """Say what was released of the documents, of the choices and of the public candidates."""
    product, line = embedded(run), run.plan.release
    charge = desk_of(run).charge.key
    lost = None
    if "sentences" in product.columns.column_names:  # releases of earlier versions do not have it
        lost = too_short(product.columns["sentences"].to_numpy(), system(run).least_units(line))
    return summarise_embedded(line, charge, release.sha256, product.candidates.embeddings, product.chosen, lost)


def write(run: Run, folder: Path) -> None:
    """Write the embedded documents, ordered by their public ids."""
    product, embeddings = embedded(run), folder / EMBEDDINGS
    embeddings.mkdir()
    order = pc.sort_indices(product.ids)
    for number, begin in enumerate(range(0, max(len(order), 1), FILE_ROWS)):
        rows = order[begin : begin + FILE_ROWS].to_numpy().astype(np.int64)
        product.take(rows).save(embeddings / f"part-{number:05d}.parquet")


def embedded(run: Run) -> EmbeddedDocuments:
    """Look up what was chosen for each document (post-processing)."""
    return system(run).fit(read_release(run.read("sanitize")), Craft())
