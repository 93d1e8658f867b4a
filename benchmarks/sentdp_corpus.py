"""The data sets of ``benchmarks.sentdp``: documents, embedded, and what is made of the public ones."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from benchmarks.common import data_dir
from dpmodels.arrays import Floats
from dpmodels.text.candidates import Candidates, Recipe, Sketching, make_candidates
from dpmodels.text.depth import TukeyDepth
from dpmodels.text.encoders import describe_encoder, load_encoder
from dpmodels.text.passages import Passages
from dpmodels.text.sentences import split_sentences
from dpmodels.text.sketch import Sketch, best_dim, train_sketch

FILES = {
    "imdb": ("imdb_train5000", "imdb_test2000"),
    "newsgroups": ("newsgroups20_train", "newsgroups20_test"),
    "agnews": ("agnews_train11300", "agnews_test7600"),
    "agnews-short": ("agnews_train11300", "agnews_test7600"),
}
JOINED = {"agnews": 8}
LEAST = {"agnews-short": 2}
"""Sentences of a document that is judged, or becomes a candidate where 8 are too many."""
MOST = 200


@dataclass
class Corpus:
    """A data set, embedded: its public and its protected documents, and what is made of the public ones."""

    name: str
    public: Passages
    protected: Passages
    texts: list[str]
    public_texts: list[str]
    seed: int

    @cached_property
    def plain(self) -> LogisticRegression:
        """The classifier of ordinary public embeddings."""
        return classifier(self.public.means(), self.public.labels)

    @cached_property
    def candidates(self) -> Candidates:
        recipe = Recipe(seed=self.seed, least_sentences=least_public(self.name))
        return make_candidates([self.public], describe_encoder("wordllama"), recipe)

    @cached_property
    def depths(self) -> NDArray[np.int32]:
        """The depth of every candidate in every protected document."""
        made = self.candidates
        points = made.recoder(self.protected.vectors)
        return TukeyDepth(made.points, made.directions, "worst").scores(points, self.protected.ends)

    @cached_property
    def recoded(self) -> LogisticRegression:
        """The classifier of recoded public documents, as the paper trains it."""
        return classifier(recoded_means(self.candidates, self.public), self.public.labels)

    @cached_property
    def box(self) -> tuple[Floats, Floats, LogisticRegression]:
        """The middle three quarters of the public means, and a classifier of means of sentences in this box."""
        low, high = np.quantile(self.public.means(), (0.125, 0.875), axis=0)
        return low, high, classifier(boxed(self.public, low, high).means(), self.public.labels)

    @lru_cache  # noqa: B019
    def sketch(self, epsilon: float) -> Sketch:
        asked = Sketching(epsilon=epsilon)
        rows = np.flatnonzero(self.public.counts >= least_public(self.name))
        chosen = np.random.default_rng(self.seed).permutation(rows)[: Recipe().candidates]
        return train_sketch(
            taken(self.public, chosen), epsilon, best_dim(epsilon), asked.hidden, asked.steps, self.seed
        )

    def __hash__(self) -> int:
        return id(self)

    def score(self, labels: NDArray[np.int32]) -> float:
        return float(f1_score(self.protected.labels, labels, average="macro"))


def classifier(rows: Floats, labels: NDArray[np.int32]) -> LogisticRegression:
    spread = rows.std()
    made = LogisticRegression(max_iter=300, tol=1e-3, C=0.008 / spread**2 if spread else 1.0)
    return made.fit(rows, labels)


def recoded_means(made: Candidates, documents: Passages) -> Floats:
    return Passages(documents.ids, documents.labels, made.recoder(documents.vectors), documents.ends).means()


def taken(documents: Passages, rows: NDArray[np.int64]) -> Passages:
    counts = documents.counts[rows]
    vectors = np.concatenate([documents[row] for row in rows]) if len(rows) else documents.vectors[:0]
    return Passages(
        [documents.ids[row] for row in rows], documents.labels[rows], vectors, np.append(0, counts.cumsum())
    )


def least_public(name: str) -> int:
    return min(Recipe().least_sentences, LEAST.get(name, 10))


@lru_cache
def load(name: str, quick: bool, cache: Path | None) -> tuple[Passages, Passages, list[str], list[str]]:
    """Read and embed the public and the protected documents of a data set, and return their texts too."""
    texts, labels = zip(*(read(file, JOINED.get(name, 1), quick) for file in FILES[name]), strict=True)
    kept = cache / f"{name}{'-quick' * quick}.npz" if cache else None
    if kept and kept.is_file():
        with np.load(kept) as found:
            parts = [(found[f"vectors{at}"], found[f"ends{at}"]) for at in range(2)]
    else:
        parts = [embedded(part) for part in texts]
        if kept:
            np.savez(kept, **{f"{key}{at}": parts[at][key == "ends"] for at in range(2) for key in ("vectors", "ends")})
    public, private = (
        Passages([str(index) for index in range(len(own))], own, vectors, ends)
        for own, (vectors, ends) in zip(labels, parts, strict=True)
    )
    return public, private, texts[0], texts[1]


@lru_cache
def corpus_of(name: str, documents: int, seed: int, quick: bool, cache: Path | None) -> Corpus:
    """Keep the documents of a data set that are long enough to be judged."""
    public, private, public_texts, texts = load(name, quick, cache)
    rows = np.flatnonzero(private.counts >= LEAST.get(name, 10))[:documents]
    return Corpus(name, public, taken(private, rows), [texts[row] for row in rows], public_texts, seed)


def of(name: str, args: Namespace) -> Corpus:
    return corpus_of(name, args.documents, args.seed, args.quick, args.cache)


def read(file: str, joined: int, quick: bool) -> tuple[list[str], NDArray[np.int32]]:
    """Return the texts and labels of a file; ``joined`` documents of one class become one."""
    table = pd.read_parquet(data_dir() / f"{file}.parquet")
    table = table.sample(frac=1, random_state=0)
    table = table.head(1500 * joined) if quick else table
    if joined > 1:
        rng = np.random.default_rng(0)
        made = [
            ("\n\n".join(block), label)
            for label, own in table.groupby("label")
            for block in np.array_split(rng.permutation(own.text.to_numpy()), max(1, len(own) // joined))
        ]
        table = pd.DataFrame(made, columns=["text", "label"]).sample(frac=1, random_state=0)
    return table.text.tolist(), table.label.to_numpy().astype(np.int32)


def embedded(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    cut = [split_sentences(text, "en", MOST) for text in texts]
    encode = load_encoder(describe_encoder("wordllama"))
    return encode([one for sentences in cut for one in sentences]), np.append(0, np.cumsum([len(one) for one in cut]))


def boxed(one: Passages, low: Floats, high: Floats) -> Passages:
    return Passages(one.ids, one.labels, np.clip(one.vectors, low, high), one.ends)


def part_of(documents: Passages, like: Corpus) -> Corpus:
    """Return other protected documents, with what was made of the public ones."""
    part = Corpus(like.name, like.public, documents, [], [], like.seed)
    part.plain, part.candidates, part.recoded, part.box = like.plain, like.candidates, like.recoded, like.box
    part.sketch = like.sketch  # type: ignore[method-assign]
    return part
