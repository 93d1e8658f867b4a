"""Documents as one vector each, in a file of the sensitive zone: what the collection-level release sums."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.codec.embedded import Embedded, EmbeddedCodec, on_sphere
from dpmodels.contract.documents import Documents
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.text.encoders import Encode
from dpmodels.text.passages import embed


def transform_points(documents: Sensitive[Any], contract: Documents, encode: Encode | None, target: Path) -> None:
    """Embed each document as the direction of the mean of its sentences, and write all of them to a file.

    Memory: a batch of documents at a time.

    Privacy: Sensitive -> Sensitive; each document is embedded by itself (stability 1). ``target`` must be in the
        sensitive zone. One without a sentence that the encoder finds anything in is the zero vector.

    Raises:
        DataError: there is no document.
    """
    codec, has_rows = EmbeddedCodec(contract), False
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, codec.arrow_schema) as writer:
        for batch in documents.reveal():
            passages = embed(batch, contract, encode)
            if len(passages):
                has_rows = True
                labels = passages.labels.clip(min=0)  # without a column of labels there is one class
                writer.write_batch(codec.to_arrow(Embedded(on_sphere(passages.means()), labels)))
    if not has_rows:
        raise DataError("", "the data holds no documents")
