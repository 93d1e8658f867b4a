"""The data sets of ``benchmarks.sentdp``: documents, embedded, and what is made of the public ones."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from benchmarks.common import data_dir
from dpmodels.arrays import Floats
from dpmodels.contract.documents import Encoder
from dpmodels.text.candidates import Candidates, Recipe, Sketching, make_candidates
from dpmodels.text.depth import TukeyDepth
from dpmodels.text.encoders import describe_encoder, load_encoder
from dpmodels.text.passages import Passages
from dpmodels.text.sentences import split_sentences
from dpmodels.text.sketch import Sketch, best_dim, train_sketch

NINE = (0, 1, 1, 1, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 0, 8, 8, 8, 0)
"""Of 20 newsgroups in alphabetical order: religion, computers, for sale, vehicles, sport, encryption and electronics,
medicine, space, politics. The paper has nine categories of similar groups and does not say which they are."""


@dataclass(frozen=True)
class Source:
    """Where the documents of a data set come from.

    Attributes:
        public, protected: files.
        joined: documents of one class that are put together into one.
        least: sentences of a document that is judged; least_public: of one that becomes a candidate.
        categories: by label, where some labels are one category.
    """

    public: str
    protected: str
    joined: int = 1
    least: int = 10
    least_public: int = Recipe().least_sentences
    categories: tuple[int, ...] = ()


NEWSGROUPS, AGNEWS = ("newsgroups20_train", "newsgroups20_test"), ("agnews_train11300", "agnews_test7600")
SOURCES = {
    "imdb": Source("imdb_train5000", "imdb_test2000"),
    "newsgroups": Source(*NEWSGROUPS),
    "newsgroups-nine": Source(*NEWSGROUPS, least=2, categories=NINE),
    "agnews": Source(*AGNEWS, joined=8),
    "agnews-short": Source(*AGNEWS, least=2, least_public=2),
}
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
    encoder: Encoder

    @cached_property
    def plain(self) -> LogisticRegression:
        """The classifier of ordinary public embeddings."""
        return classifier(self.public.means(), self.public.labels)

    @cached_property
    def candidates(self) -> Candidates:
        recipe = Recipe(seed=self.seed, least_sentences=SOURCES[self.name].least_public)
        return make_candidates([self.public], self.encoder, recipe)

    @cached_property
    def depths(self) -> NDArray[np.int32]:
        """The depth of every candidate in every protected document."""
        return self.depths_along(self.candidates.directions, self.protected)

    def depths_along(self, directions: Floats, documents: Passages) -> NDArray[np.int32]:
        """Return the depth of every candidate in every document. Shapes: [width, p] to [documents, m]."""
        points = self.candidates.recoder(documents.vectors)
        return TukeyDepth(self.candidates.points, directions, "worst").scores(points, documents.ends)

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
        rows = np.flatnonzero(self.public.counts >= SOURCES[self.name].least_public)
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


class Reading(NamedTuple):
    """How a data set is read: at most so many documents of a file, and embedded by which encoder.

    ``cache`` is a folder in which embedded sentences are kept.
    """

    most: int | None
    encoder: str
    cache: Path | None


@lru_cache
def load(name: str, reading: Reading) -> tuple[Passages, Passages, list[str], list[str]]:
    """Read and embed the public and the protected documents of a data set, and return their texts too."""
    source = SOURCES[name]
    texts, labels = zip(*(read(file, source, reading.most) for file in (source.public, source.protected)), strict=True)
    about = f"{name}-{Path(reading.encoder).name}-{reading.most or 'all'}.npz"
    kept = reading.cache / about if reading.cache else None
    if kept and kept.is_file():
        with np.load(kept) as found:
            parts = [(found[f"vectors{at}"], found[f"ends{at}"]) for at in range(2)]
    else:
        parts = [embedded(part, describe_encoder(reading.encoder)) for part in texts]
        if kept:
            np.savez(kept, **{f"{key}{at}": parts[at][key == "ends"] for at in range(2) for key in ("vectors", "ends")})
    public, private = (
        Passages([str(index) for index in range(len(own))], own, vectors, ends)
        for own, (vectors, ends) in zip(labels, parts, strict=True)
    )
    return public, private, texts[0], texts[1]


@lru_cache
def corpus_of(name: str, documents: int, seed: int, reading: Reading) -> Corpus:
    """Keep the documents of a data set that are long enough to be judged."""
    public, private, public_texts, texts = load(name, reading)
    rows = np.flatnonzero(private.counts >= SOURCES[name].least)[:documents]
    encoder = describe_encoder(reading.encoder)
    return Corpus(name, public, taken(private, rows), [texts[row] for row in rows], public_texts, seed, encoder)


def of(name: str, args: Namespace) -> Corpus:
    return corpus_of(name, args.documents, args.seed, reading_of(args))


def reading_of(args: Namespace) -> Reading:
    return Reading(args.most, args.encoder, args.cache)


def read(file: str, source: Source, most: int | None) -> tuple[list[str], NDArray[np.int32]]:
    """Return the texts and labels of a file of a data set."""
    joined = source.joined
    table = pd.read_parquet(data_dir() / f"{file}.parquet")
    table = table.sample(frac=1, random_state=0)
    table = table.head(most * joined) if most else table
    if joined > 1:
        rng = np.random.default_rng(0)
        made = [
            ("\n\n".join(block), label)
            for label, own in table.groupby("label")
            for block in np.array_split(rng.permutation(own.text.to_numpy()), max(1, len(own) // joined))
        ]
        table = pd.DataFrame(made, columns=["text", "label"]).sample(frac=1, random_state=0)
    labels = table.label.to_numpy().astype(np.int32)
    return table.text.tolist(), np.array(source.categories, dtype=np.int32)[labels] if source.categories else labels


def embedded(texts: Sequence[str], encoder: Encoder) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    cut = [split_sentences(text, "en", MOST) for text in texts]
    encode = load_encoder(encoder)
    return encode([one for sentences in cut for one in sentences]), np.append(0, np.cumsum([len(one) for one in cut]))


def boxed(one: Passages, low: Floats, high: Floats) -> Passages:
    return Passages(one.ids, one.labels, np.clip(one.vectors, low, high), one.ends)


def part_of(documents: Passages, texts: list[str], like: Corpus) -> Corpus:
    """Return other protected documents, with what was made of the public ones."""
    part = Corpus(like.name, like.public, documents, texts, like.public_texts, like.seed, like.encoder)
    part.plain, part.candidates, part.recoded, part.box = like.plain, like.candidates, like.recoded, like.box
    part.sketch = like.sketch  # type: ignore[method-assign]
    return part
