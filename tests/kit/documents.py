"""Small documents, public and protected, and what the tests of DeepCandidate make of them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.contract.documents import Documents
from dpmodels.methods.documents.deep_candidate import DeepCandidate, DeepCandidateMeasurement
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.text.candidates import Candidates, Recipe, make_candidates
from dpmodels.text.encoders import load_encoder
from dpmodels.text.passages import PassageFile, transform_passages
from dpmodels.text.reading import load_documents

WORDS = {"sea": ["ship", "wave", "salt", "gull", "tide"], "fair": ["horse", "crowd", "drum", "sugar", "wheel"]}
SMALL = Recipe(candidates=12, least_sentences=3, clusters=2, hidden=(8, 6), projections=5)


def make_texts(number: int, seed: int, sentences: int = 6) -> list[str]:
    """Return texts about the sea and about the fair in turn, each sentence of three words."""
    rng = np.random.default_rng(seed)
    subjects = [list(WORDS.values())[index % 2] for index in range(number)]
    return [" ".join(" ".join(rng.choice(words, 3)) + "." for _ in range(sentences)) for words in subjects]


def make_contract(**given) -> Documents:
    encoder = {"name": "hashed", "dim": 24}
    return Documents.model_validate(
        {"name": "letters", "text": "body", "protects": "sentence", "encoder": encoder, **given}
    )


def embedded(texts: list[str], folder: Path, contract: Documents, batch_rows: int = 4) -> Sensitive[PassageFile]:
    """Write documents, read them, and embed their sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = [f"d{index}" for index in range(len(texts))]
    columns = {"id": pa.array(ids, pa.string()), "body": pa.array(texts, pa.string())}
    if contract.user:
        columns[contract.user] = [index // 2 for index in range(len(texts))]
    pq.write_table(pa.table(columns), folder / "docs.parquet")
    raw = load_documents(folder / "docs.parquet", contract, batch_rows)
    return transform_passages(raw, contract, load_encoder(contract.encoder), folder / "embedded.arrow")


def make_public(folder: Path, recipe: Recipe = SMALL) -> Candidates:
    contract = make_contract()
    public = embedded(make_texts(30, seed=1), folder / "public-documents", contract)
    return make_candidates(public.reveal(), contract.encoder, recipe)


def make_system(candidates: Candidates, **measurement) -> DeepCandidate:
    return DeepCandidate(DeepCandidateMeasurement.model_validate(measurement), candidates)


def budget_of(contract: Documents, epsilon: float = 10.0, delta: float = 0.0) -> PrivacyBudget:
    return PrivacyBudget(epsilon=epsilon, delta=delta, adjacency=contract.adjacency, unit=contract.unit)
