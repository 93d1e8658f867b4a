"""The flow of a document set: one run that embeds its documents, and one charge, however often it is started."""

from flows.config import EmbedConfig
from flows.embed_documents import start
from flows.planning import MayOpen
from flows.table import go_on
from flows.with_prefect.worker import deployed, find_here, own_name, placed_here


@deployed("embed-documents")
def embed_document_set(config: EmbedConfig) -> str:
    """Make a private embedding of every document: one charge, however often this flow run is started.

    Args:
        config: the documents, the public documents, the budget and the hand-off.
    """
    name = own_name()
    return go_on(find_here(name) or start(placed_here(config), name, may_open=MayOpen.NO))
