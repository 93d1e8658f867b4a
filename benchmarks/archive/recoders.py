"""DeepCandidate by what recodes its sentences: the paper's layers, and what was tried in their place.

A row changes one thing: no recoder, more clusters, layers beside which the sentence itself is kept (a skip connection),
and layers that are trained without clusters, to tell which two halves of sentences are of one document. The mean of
recoded sentences, without privacy, is the ceiling of a row; then a candidate is chosen by depth at each epsilon, where
1000 stands for no noise. Public and protected documents are those of ``benchmarks.sentdp``.
"""

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from torch.nn import Linear, ReLU, Sequential

from benchmarks.common import Table, parse, report
from benchmarks.sentdp_corpus import SOURCES, Corpus, classifier, of
from dpmodels.arrays import Floats, Whole
from dpmodels.mechanisms.choices import select_each
from dpmodels.mechanisms.exponential import pure_scale
from dpmodels.privacy import Sensitive
from dpmodels.text.candidates import Recipe
from dpmodels.text.depth import TukeyDepth
from dpmodels.text.passages import Passages
from dpmodels.text.recoder import on_lattice, train_recoder

Recode = Callable[[NDArray[np.floating]], Floats]
EPSILONS = (5.0, 10.0, 25.0, 1000.0)
BATCH, RATE, TEMPERATURE = 256, 1e-3, 0.1
"""Of the contrastive loss: documents of a step, of which each is told from all others."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=["imdb", "newsgroups"], choices=list(SOURCES))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--documents", type=int, default=1000, help="protected documents of a data set, at most")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the public choices")
    parser.add_argument("--encoder", default="wordllama")
    parser.add_argument("--most", type=int, help="documents of a file that are read, at most; all of them if left out")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep embedded sentences there between runs")


def identity(corpus: Corpus) -> Recode:
    """Keep sentences as they are."""
    return on_lattice


def clustered(corpus: Corpus, clusters: int = Recipe().clusters) -> Recode:
    """Train the paper's layers through the mean of recoded sentences."""
    documents = corpus.public.subset(np.flatnonzero(corpus.public.counts))
    return train_recoder(documents, clusters, Recipe().hidden, corpus.seed)


def many_clusters(corpus: Corpus) -> Recode:
    """Train them on four times as many clusters."""
    return clustered(corpus, 4 * Recipe().clusters)


def skipping(corpus: Corpus) -> Recode:
    """Keep the sentence beside what the paper's layers make of it, both with the same spread."""
    recoder = clustered(corpus)
    spreads = [float(part.std()) for part in (corpus.public.vectors, recoder(corpus.public.vectors))]
    gain = spreads[1] / spreads[0]
    return lambda vectors: np.hstack([recoder(vectors), on_lattice(gain * vectors)])


def contrastive(corpus: Corpus) -> Recode:
    """Train the paper's layers to tell which two halves of sentences are of one document (InfoNCE).

    A linear map behind them, which is left out afterwards, makes what is compared.
    """
    documents = corpus.public.subset(np.flatnonzero(corpus.public.counts >= 2))
    rng, gain = np.random.default_rng(corpus.seed), 1.0 / max(float(documents.vectors.std()), 1e-6)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(corpus.seed)
        layers = [Linear(*sizes) for sizes in pairwise((documents.vectors.shape[1], *Recipe().hidden))]
        head = Linear(Recipe().hidden[-1], Recipe().hidden[-1])
    network = Sequential(*(part for layer in layers for part in (layer, ReLU())))
    parameters = [*network.parameters(), *head.parameters()]
    optimizer, steps = torch.optim.Adam(parameters, RATE), math.ceil(len(documents) / BATCH)
    for _ in range(max(4, math.ceil(300 / steps))):
        for rows in np.array_split(rng.permutation(len(documents)), steps):
            optimizer.zero_grad()
            torch.autograd.backward(told_apart(network, head, documents.subset(rows), gain, rng))
            optimizer.step()

    def recode(vectors: NDArray[np.floating]) -> Floats:
        with torch.no_grad():
            return on_lattice(network(torch.from_numpy(np.asarray(vectors, dtype=np.float32)) * gain).numpy())

    return recode


def told_apart(
    network: Sequential, head: Linear, part: Passages, gain: float, rng: np.random.Generator
) -> torch.Tensor:
    """Return the loss of telling each document's other half among the halves of all documents."""
    recoded = network(torch.from_numpy(part.vectors) * gain)
    document = np.repeat(np.arange(len(part)), part.counts)
    order = np.lexsort((rng.random(len(document)), document))
    place = np.arange(len(document)) - np.repeat(part.ends[:-1], part.counts)
    halves: Whole = np.empty(len(document), dtype=np.int64)
    halves[order] = place % 2
    means = []
    for half in range(2):
        rows = np.flatnonzero(halves == half)
        totals = torch.zeros(len(part), recoded.shape[1]).index_add(0, torch.from_numpy(document[rows]), recoded[rows])
        sentences = torch.from_numpy(np.maximum(np.bincount(document[rows], minlength=len(part)), 1))
        means.append(torch.nn.functional.normalize(head(totals / sentences[:, None]), dim=1))
    return torch.nn.functional.cross_entropy(means[0] @ means[1].T / TEMPERATURE, torch.arange(len(part)))


ROWS: dict[str, Callable[[Corpus], Recode]] = {
    "the paper's": clustered,
    "no recoder": identity,
    "200 clusters": many_clusters,
    "with a skip connection": skipping,
    "contrastive, without clusters": contrastive,
}


def recoded(documents: Passages, recode: Recode) -> Passages:
    return Passages(documents.ids, documents.labels, recode(documents.vectors), documents.ends)


def scores(corpus: Corpus, recode: Recode, trials: int) -> list[list[float]]:
    """Return macro-F1 of the recoded means, and of chosen candidates by epsilon."""
    public, protected = (recoded(part, recode) for part in (corpus.public, corpus.protected))
    means, rng = public.means(), np.random.default_rng(corpus.seed)
    reader = classifier(means, public.labels)
    eligible = np.flatnonzero(public.counts >= SOURCES[corpus.name].least_public)
    points = on_lattice(means[np.sort(rng.permutation(eligible)[: Recipe().candidates])])
    directions = rng.normal(size=(points.shape[1], Recipe().projections))
    directions /= np.linalg.norm(directions, axis=0)
    depth = TukeyDepth(points, directions, "worst")
    utilities = Sensitive(depth.scores(protected.vectors.astype(np.float64), protected.ends))

    def judged(rows: Floats) -> float:
        return float(f1_score(protected.labels, reader.predict(rows), average="macro"))

    def chosen(epsilon: float) -> float:
        return judged(points[select_each(utilities, scale=pure_scale(depth.sensitivity, epsilon)).value])

    return [[judged(protected.means())], *([chosen(epsilon) for _ in range(trials)] for epsilon in EPSILONS)]


def tables(args: Namespace) -> list[Table]:
    """Macro-F1 by data set and recoder."""
    made = []
    for name in args.sets:
        corpus = of(name, args)
        columns = ["recoder", "recoded means, not private", *(f"epsilon {one:g}" for one in EPSILONS)]
        table = Table(f"{name}: macro-F1 of DeepCandidate by its recoder", columns)
        for row in args.rows:
            table.add(row, *scores(corpus, ROWS[row](corpus), args.trials))
        made.append(table)
    return made


def main(argv: Sequence[str] | None = None) -> None:
    args = parse(__doc__, options, argv)
    if args.quick:
        args.trials, args.documents, args.most = 1, min(args.documents, 100), 1500
        args.sets, args.rows = args.sets[:1], args.rows[-2:]
    report("recoders", tables(args), [args.seed], args)


if __name__ == "__main__":
    main()
