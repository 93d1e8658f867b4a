"""The flow of a document set: one run that embeds its documents, and one charge, however often it is started."""

from flows.config import EmbedConfig
from flows.table import take_to_hand_off
from flows.with_prefect.worker import deployed, own_name


@deployed("embed-documents")
def embed_document_set(config: EmbedConfig) -> str:
    """Make a private embedding of every document: one charge, however often this flow run is started.

    Args:
        config: the documents, the public documents, the budget and the hand-off.
    """
    return take_to_hand_off(own_name(), config)
