"""Documents with labels, and their contract."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.contract.documents import Documents
from tests.kit.support import synthesize_words

WORDS = {"good": ["fine", "warm", "sunny", "sweet"], "bad": ["cold", "bitter", "grey", "sour"]}


CONTRACT = {"name": "mails", "text": "body", "label": "kind", "classes": ["good", "bad"]}


ENCODER = {"encoder": {"name": "hashed", "dim": 16}}


def mails(rows: int = 120, seed: int = 0) -> pa.Table:
    """Return mails of one to three sentences whose words tell their kind."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["good", "bad"], rows)
    texts = [". ".join(" ".join(rng.choice(WORDS[kind], 4)) for _ in range(rng.integers(1, 4))) for kind in kinds]
    return pa.table({"id": range(rows), "body": texts, "kind": kinds, "who": rng.integers(0, rows // 2, rows)})


def make_contract(**changes: object) -> Documents:
    return Documents.model_validate({**CONTRACT, **ENCODER, **changes})


def write(folder: Path, table: pa.Table | None = None, **contract: object) -> list[object]:
    """Write mails and their contract; return the words of a run."""
    pq.write_table(mails() if table is None else table, folder / "mails.parquet")
    (folder / "mails.yaml").write_text(make_contract(**contract).to_yaml())
    (folder / "config.yaml").write_text("model: {method: moments}\n")
    return synthesize_words(folder, data=folder / "mails.parquet", schema=folder / "mails.yaml")
