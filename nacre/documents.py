"""Embed documents privately: the pipeline of ``nacre embed-documents``, called from Python."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dpmodels.privacy import Sensitive
from dpmodels.reading.frames import load_given, transform_write
from flows.config import EmbedConfig, placed
from flows.embed_documents import start
from flows.planning import MayOpen
from nacre.given import SchemaLike, path_of, schema_file
from nacre.ledgers import Place, home_of, url_of
from nacre.result import Result
from nacre.running import take_to_hand_off
from tasks.run.in_memory import GIVEN
from tasks.run.store import new_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def embed_documents(
    documents: "pd.DataFrame | pa.Table | Place",
    candidates: "pd.DataFrame | pa.Table | Place",
    *,
    epsilon: float,
    contract: SchemaLike | None = None,
    columns: Mapping[str, Any] | None = None,
    method: str = "document-sketch",
    account: str | None = None,
    open: bool = False,
    recipe: Mapping[str, Any] | None = None,
    measurement: Mapping[str, Any] | None = None,
    home: Place | None = None,
    ledger: str | None = None,
    out: Place | None = None,
    signing_key: Place | None = None,
    purpose: str = "",
    recipient: str = "",
    license: str = "",
    retention: str = "",
    again: str = "",
) -> Result:
    """Make a private embedding of each document with the help of public documents; delta is 0.

    Epsilon hides what ONE sentence of a document says. k sentences together are hidden with k times as much at worst,
    so for a whole document epsilon = 10 is weak. ``nacre.synthesize`` on a contract that protects documents or users
    hides these with less.

    Args:
        documents: a pandas DataFrame, a pyarrow Table, or the path of Parquet, CSV, Arrow or JSON lines. Private.
        candidates: the same of PUBLIC documents with the same columns. What is made of them is handed over, and nothing
            of them may come from the private documents.
        epsilon: for each document, or for all documents of a user where the contract names a column of users.
        contract: a path, YAML text or a dictionary; or give ``columns``.
        columns: what a contract would say: name, id, text or embedding, user, most_documents, language, most_sentences,
            encoder, dim.
        method: document-sketch, or deep-candidate, which hands over embeddings of public documents.
        account: the account that pays; by default that of the data set.
        open: open the data set's account with this run's budget as its cap, if it has none; a home's first run does so
            by itself.
        recipe: how candidates are made of the public documents, such as how many.
        measurement: settings of the method that are part of the plan.
        home: where state lies; by default ``NACRE_HOME``, or ``.nacre``.
        ledger: URL of a shared ledger on PostgreSQL; by default ``NACRE_LEDGER``, or the home's own.
        out: the hand-off's folder, new or empty; by default ``HOME/hand-offs/RUN``.
        signing_key: ed25519 private key (PEM) that signs the hand-off.
        purpose: what the hand-off is for; the ledger, the manifest and the public pages keep it word for word.
        recipient: who gets it; likewise.
        license: under which terms it is handed over; likewise.
        retention: how long the sensitive zone is kept; likewise.
        again: why data is charged again that another account pays for, or an unfinished run has paid for; likewise.

    Privacy:
        Documents given in memory are kept as ``nacre.synthesize`` keeps rows.

    Raises:
        NacreError: the message says what is wrong, in one sentence with no private value.
    """
    private = Sensitive(documents)
    path = path_of(documents)
    del documents  # an error from here on shows no documents, even if its local variables are shown
    reader = load_given(private) if path is None else None
    name, base = new_name(), home_of(home)
    terms: dict[str, Any] = dict(documents=path or base / "sensitive" / name / GIVEN, target_epsilon=epsilon)
    terms |= dict(out=out or base / "hand-offs" / name, home=base, account=account, prefect=False)
    terms |= dict(method=method, recipe=dict(recipe or {}), measurement=dict(measurement or {}), ledger=url_of(ledger))
    terms |= dict(signing_key=signing_key, purpose=purpose, recipient=recipient, license=license, retention=retention)
    terms |= dict(again=again)
    written = nullcontext() if contract is None else schema_file(contract)
    with _public_file(candidates) as public, written as file:
        settings = placed({**terms, "candidates": public, "contract": file}, EmbedConfig)
        config = EmbedConfig.build({**settings, "columns": dict(columns or {})})
        run = start(config, name, reader, MayOpen.YES if open else MayOpen.FIRST)
    return take_to_hand_off(run)


@contextmanager
def _public_file(candidates: Any) -> Iterator[Path]:
    """Lend public documents as a file; those that are given in memory are written to a temporary one."""
    if (path := path_of(candidates)) is not None:
        yield Path(path)
        return
    with TemporaryDirectory() as folder:
        transform_write(load_given(Sensitive(candidates)), file := Path(folder) / "candidates.parquet")
        yield file
