"""The publishable report on embedded documents: what was released, what epsilon means, where the embeddings lie.

Privacy: post-processing of the released choices and of public candidates.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.releases.plan import Line
from dpmodels.report.fidelity import LOST
from dpmodels.report.terms import terms_of_documents
from dpmodels.report.verdicts import headline_of_documents

Floats = NDArray[np.floating[Any]]
CLUSTERS = 12
MOST_POINTS = 1500
"""Points that a map shows: the candidates that most documents chose."""
WITHOUT_SENTENCES = {
    "deep-candidate": "A document without a sentence, or with a single one, has no depth: each candidate is chosen for "
    "it with the same probability, so its embedding says nothing of it.",
    "document-sketch": "The embedding of a document without a sentence is read off noise alone and says nothing of it.",
}
POLICY = (
    "A sentence is what a public rule cuts from the text. Words with which the rule cuts elsewhere, such as an opened "
    "quotation mark, change several sentences or how many there are, and that is not hidden as one sentence is.",
    "Of a document longer than {most} sentences the first {most} are used, and of a sentence its first 10 000 signs.",
    "A sentence in which the encoder finds nothing that it knows is the zero vector.",
    "How many sentences a document has is public under this guarantee; it is not handed over.",
)


def policy_of(contract: Any, method: str) -> list[str]:
    """Say what becomes of documents that the mechanism cannot serve, in sentences."""
    policy = [WITHOUT_SENTENCES[method], *(sentence.format(most=contract.most_sentences) for sentence in POLICY)]
    if contract.user:
        policy.append(f"Of a user the first {contract.most_documents} documents are used; the rest were left out.")
    return policy


def too_short(counts: NDArray[np.int64], least: float) -> str | None:
    """Say that most documents have fewer sentences than it takes; None where they have enough.

    Args:
        counts: of sentences, one a document, which are public where a sentence is protected.
        least: how many it takes, from public inputs.
    """
    if not len(counts) or np.median(counts) >= least:
        return None
    return LOST.format(f"most documents have fewer than about {math.ceil(least)} sentences, which it takes")


def summarise_embedded(
    line: Line,
    entry: str,
    release_sha256: str,
    candidates: Floats,
    nearest: NDArray[np.int64],
    lost: str | None = None,
) -> dict[str, Any]:
    """Collect the publishable facts of a run on documents.

    Args:
        line: what was planned and paid for.
        entry: the ledger's charge.
        release_sha256: of the release's file.
        candidates: the public embeddings.
        nearest: for each document the index of the candidate that it was given, or that lies nearest to its embedding.
        lost: says that the release does not stand out of its noise, where it does not.

    Shapes: candidates [m, dim], nearest [documents].
    """
    counts = np.bincount(nearest, minlength=len(candidates))
    facts = {
        **terms_of_documents(line, release_sha256, entry),
        **({"drowned": lost} if lost else {}),
        "documents": len(nearest),
        "dim": candidates.shape[1],
        "candidates": len(candidates),
        "candidates_chosen": int((counts > 0).sum()),
        "policy": policy_of(line.contract, line.method),
        **_map(candidates, counts),
    }
    return facts | {"headline": headline_of_documents(facts)}


def _map(candidates: Floats, counts: NDArray[np.int64]) -> dict[str, Any]:
    """Lay the chosen candidates out in the two directions in which all candidates vary most, in clusters.

    Directions and clusters are made from the public candidates alone.
    """
    from sklearn.cluster import KMeans

    centered = np.asarray(candidates, dtype=np.float64) - candidates.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered)
    positions = centered @ vectors[:, ::-1][:, :2]
    positions = positions / max(float(np.abs(positions).max(initial=0)), 1e-12)
    if positions.shape[1] < 2:
        positions = np.pad(positions, ((0, 0), (0, 1)))
    number = min(CLUSTERS, len(np.unique(candidates, axis=0)))
    labels = KMeans(number, n_init=1, random_state=0).fit(centered).labels_
    sizes = np.bincount(labels, counts, minlength=number).astype(int)
    indices = np.argsort(-counts, kind="stable")[: min(MOST_POINTS, int((counts > 0).sum()))]
    middles = [positions[labels == one].mean(axis=0) for one in range(number)]
    share = float(values[::-1][:2].sum() / max(float(values.sum()), 1e-12))
    return {
        "map": [[*map(_short, positions[index]), int(counts[index])] for index in indices],
        "map_explains": round(share, 4),
        "clusters": [
            {"documents": int(size), "x": _short(x), "y": _short(y)}
            for size, (x, y) in zip(sizes, middles, strict=True)
        ],
    }


def _short(value: float) -> float:
    return round(float(value), 3)
