"""Embed documents privately: the pipeline of ``nacre embed-documents``, called from Python."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

from dpmodels.privacy import Sensitive
from dpmodels.reading.frames import load_given, transform_write
from flows.config import EmbedConfig
from nacre.given import SchemaLike, path_of, schema_file
from nacre.keywords import EmbeddingSettings, started, takes_settings
from nacre.places import Place
from nacre.result import Result
from nacre.running import take_to_hand_off

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@takes_settings(EmbedConfig, "documents", "candidates")
def embed_documents(
    documents: "pd.DataFrame | pa.Table | Place",
    candidates: "pd.DataFrame | pa.Table | Place",
    *,
    epsilon: float,
    contract: SchemaLike | None = None,
    columns: Mapping[str, Any] | None = None,
    **settings: Unpack[EmbeddingSettings],
) -> Result:
    """Make a private embedding of each document with the help of public documents; delta is 0.

    Epsilon hides what ONE sentence of a document says. k sentences together are hidden with k times as much at worst,
    so for a whole document epsilon = 10 is weak. ``nacre.synthesize`` on a contract that protects documents or users
    hides these with less.

    Args:
        documents: a pandas DataFrame, a pyarrow Table, or the path, the pattern or the URI of files. Private.
        candidates: the same of PUBLIC documents with the same columns. What is made of them is handed over, and nothing
            of them may come from the private documents.
        epsilon: for each document, or for all documents of a user where the contract names a column of users.
        contract: a path, YAML text or a dictionary; or give ``columns``.
        columns: what a contract would say: name, id, text or embedding, user, most_documents, language, most_sentences,
            encoder, dim.
        settings: see below; what is left out is as for ``synthesize``.

    Privacy:
        Documents given in memory are kept as ``nacre.synthesize`` keeps rows.

    Raises:
        NacreError: the message says what is wrong, in one sentence with no private value.
    """
    private, path = Sensitive(documents), path_of(documents)
    del documents  # an error from here on shows no documents, even if its local variables are shown
    written = nullcontext() if contract is None else schema_file(contract)
    with _public_file(candidates) as public, written as file:
        fields = {**settings, "candidates": public, "contract": file, "target_epsilon": epsilon}
        fields |= {"columns": dict(columns or {})}
        run = started(EmbedConfig, "documents", path, private, fields, (alarms := list[str]()).append)
    return take_to_hand_off(run, alarms)


@contextmanager
def _public_file(candidates: Any) -> Iterator[str | Path]:
    """Lend public documents as a file; those that are given in memory are written to a temporary one."""
    if (path := path_of(candidates)) is not None:
        yield path
        return
    with TemporaryDirectory() as folder:
        transform_write(load_given(Sensitive(candidates)), file := Path(folder) / "candidates.parquet")
        yield file
