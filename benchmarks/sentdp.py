"""Private embeddings of single documents, as in SentDP's figure 4 and beyond, and the collection-level release.

Public: the train file of a data set, of which candidates, recoder, sketches and classifier are made. Protected: those
documents of the test file that have at least ten sentences, ``--documents`` of them at most. The score is the macro-F1
of a logistic regression. A trial draws every document's embedding anew; public choices have one seed. The guarantee
of a row is pure epsilon for one sentence that is replaced, but for metric privacy, whose epsilon promises less.
newsgroups-nine is nearest to the paper's set: nine categories, and documents of two sentences or more. Of AG News,
whose articles have one or two sentences, eight of one class make a document; agnews-short has them as they are. The
collection-level part protects the train file: a classifier learns from synthetic embeddings, at epsilon 1 for a whole
document, and is judged on the test file.
"""

import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Table, parse, report
from benchmarks.sentdp_corpus import (
    MOST,
    SOURCES,
    Corpus,
    boxed,
    classifier,
    load,
    of,
    part_of,
    read,
    reading_of,
    recoded_means,
    taken,
)
from dpmodels.arrays import Floats
from dpmodels.codec.embedded import BITS, Embedded, on_sphere
from dpmodels.contract.documents import Documents
from dpmodels.generators.points import PointModel
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.mechanisms.choices import select_each
from dpmodels.mechanisms.exponential import pure_scale
from dpmodels.mechanisms.k_norm import k_norm_scale, measure_k_norm
from dpmodels.methods.documents.document_moments import DocumentMomentsSystem
from dpmodels.privacy import PrivacyBudget, PrivacyUnit, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from dpmodels.text.depth import TukeyDepth
from dpmodels.text.encoders import describe_encoder, load_encoder
from dpmodels.text.passages import Passages
from dpmodels.text.recoder import on_lattice
from dpmodels.text.sentences import split_sentences
from dpmodels.text.sketch import SENSITIVITY, best_dim, train_sketch

Draw = Callable[["Corpus", float, int], float]
STEP = 2.0**-BITS
COLLECTION = PrivacyBudget(epsilon=1.0, delta=1e-5, unit=PrivacyUnit(kind="document"))
EPSILONS = (5.0, 10.0, 25.0)
SWEEP = (2.0, 5.0, 10.0, 25.0, 50.0)
BINS = ((2, 5), (5, 10), (10, 15), (15, 20), (20, 30), (30, MOST + 1))
VOCABULARY = 8000
"""Words of word-level metric privacy: the most frequent tokens of the public documents."""
WORD_DOCUMENTS = 100
ALIKE = 3000
"""Public documents that go through the noise, for the classifier that is trained on such."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--sets", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--documents", type=int, default=1000, help="protected documents of a data set, at most")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS), help="of the first table")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the public choices")
    parser.add_argument("--encoder", default="wordllama", help="of sentences; words and collections have wordllama's")
    parser.add_argument("--most", type=int, help="documents of a file that are read, at most; all of them if left out")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep embedded sentences there between runs")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="also draw the sweeps, as an SVG file")


def draw_candidates(corpus: Corpus, epsilon: float, trial: int) -> float:
    """DeepCandidate as in the paper: one candidate for each document, classified in the recoder's space."""
    chosen = select_each(Sensitive(corpus.depths), scale=pure_scale(2, epsilon)).value
    return corpus.score(corpus.recoded.predict(corpus.candidates.points[chosen]))


def draw_sketches(corpus: Corpus, epsilon: float, trial: int) -> float:
    """Sketches, read as embeddings, before the classifier of ordinary public embeddings."""
    return corpus.score(corpus.plain.predict(noisy_means(corpus, corpus.protected, epsilon)))


def draw_sketches_alike(corpus: Corpus, epsilon: float, trial: int) -> float:
    """The same, before a classifier of public embeddings that went through the same noise."""
    made = classifier_alike(corpus, epsilon)
    return corpus.score(made.predict(noisy_means(corpus, corpus.protected, epsilon)))


@lru_cache
def classifier_alike(corpus: Corpus, epsilon: float) -> LogisticRegression:
    rows = np.flatnonzero(corpus.public.counts >= SOURCES[corpus.name].least_public)
    public = taken(corpus.public, rows[:ALIKE])
    return classifier(noisy_means(corpus, public, epsilon), public.labels)


def noisy_means(corpus: Corpus, documents: Passages, epsilon: float) -> NDArray[np.float32]:
    sketch = corpus.sketch(epsilon)
    sums = sketch.sums(documents.vectors, documents.ends)
    return sketch.read(
        measure_k_norm(Sensitive(sums), scale=k_norm_scale(SENSITIVITY, epsilon)).value, documents.counts
    )


def draw_truncated(corpus: Corpus, epsilon: float, trial: int) -> float:
    """Truncation (Li and Clifton): sentences in a box of public quantiles, Laplace noise on their mean."""
    low, high, made = corpus.box
    counts = np.maximum(corpus.protected.counts, 1)[:, np.newaxis]
    noise = np.random.default_rng(trial).laplace(size=(len(counts), len(low)))
    means = boxed(corpus.protected, low, high).means()
    return corpus.score(made.predict(means + len(low) * (high - low) / (counts * epsilon) * noise))


def draw_words(corpus: Corpus, epsilon: float, trial: int) -> float:
    """Word-level metric privacy (Feyisetan et al.): every word moves to the word nearest to it and its noise.

    The words are the tokens of the encoder, whose vectors have a norm of about 14; epsilon is for a distance of 1.
    """
    words, documents, frequent = tokens_of(corpus)
    vectors = words[frequent]
    rng = np.random.default_rng(trial)
    labels, means, half = corpus.protected.labels[: len(documents)], [], np.square(vectors).sum(axis=1) / 2
    for sentences in documents:
        flat = np.concatenate([*sentences, np.zeros(0, dtype=np.int64)])
        direction = rng.normal(size=(len(flat), vectors.shape[1])).astype(np.float32)
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        radius = rng.gamma(vectors.shape[1], 1 / epsilon, size=(len(flat), 1)).astype(np.float32)
        moved = np.argmax((words[flat] + radius * direction) @ vectors.T - half, axis=1)
        ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
        totals = np.array([vectors[own].sum(axis=0) for own in np.split(moved, ends) if len(own)])
        means.append((totals / np.maximum(np.linalg.norm(totals, axis=1, keepdims=True), 1e-9)).mean(axis=0))
    return float(f1_score(labels, corpus.plain.predict(np.array(means)), average="macro"))


@lru_cache
def tokens_of(corpus: Corpus) -> tuple[NDArray[np.float32], list[list[NDArray[np.int64]]], NDArray[np.int64]]:
    """Return the vectors of all tokens, the tokens of each protected sentence, and the most frequent public tokens."""
    from wordllama import WordLlama

    folder = Path(str(__import__("wordllama").__file__)).parent
    model = WordLlama.load(cache_dir=folder, disable_download=True)

    def tokens(text: str) -> NDArray[np.int64]:
        return np.array(model.tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    seen = np.bincount(np.concatenate([tokens(text) for text in corpus.public_texts[:3000]]))
    documents = [[tokens(one) for one in split_sentences(text, "en", MOST)] for text in corpus.texts[:WORD_DOCUMENTS]]
    return np.asarray(model.embedding, dtype=np.float32), documents, np.argsort(-seen)[:VOCABULARY]


WORDS = f"words, metric privacy ({WORD_DOCUMENTS} documents)"
ROWS: dict[str, Draw] = {
    "sketches (ours)": draw_sketches,
    "sketches, classifier trained alike": draw_sketches_alike,
    "DeepCandidate (paper)": draw_candidates,
    "truncation + Laplace": draw_truncated,
    WORDS: draw_words,
}
DRAWN = ("sketches (ours)", "DeepCandidate (paper)", "truncation + Laplace", WORDS)
COLOURS = ("#33658a", "#d1495b", "#5b8c5a", "#8f6b2e")
DIRECTIONS = (5, 10, 25, 50, 100)
TUNED_ON = 500
"""Public documents on which the number of directions is tuned."""


def guess(corpus: Corpus) -> float:
    """Return the paper's random guess: the sum of the squared shares of the classes."""
    return float(np.square(np.bincount(corpus.public.labels) / len(corpus.public)).sum())


def table_part(args: Namespace) -> list[Table]:
    """Macro-F1 by method and epsilon, with what is lost against the mean without privacy."""
    made = []
    for name in args.sets:
        corpus = of(name, args)
        counts = corpus.protected.counts
        size = f"{len(counts)} documents of {counts.min()} sentences or more, {np.median(counts):g} in the median"
        columns = [f"epsilon {one:g}" for one in EPSILONS]
        table = Table(f"{name}: macro-F1, {size}", ["embedding", *columns, *(f"lost at {one:g}" for one in EPSILONS)])
        best = corpus.score(corpus.plain.predict(corpus.protected.means()))
        table.add("mean, not private", *[best] * 3, *["–"] * 3)
        for method in args.rows:
            cells = [[ROWS[method](corpus, epsilon, trial) for trial in range(args.trials)] for epsilon in EPSILONS]
            table.add(method, *cells, *(best - float(np.mean(cell)) for cell in cells))
        table.add("random guess", *[guess(corpus)] * 3, *[best - guess(corpus)] * 3)
        made.append(table)
    return made


def sweep_part(args: Namespace) -> list[Table]:
    """The paper's figure 4: macro-F1 against epsilon, and against the number of sentences at epsilon 10."""
    made = []
    for name in args.sets:
        corpus = of(name, args)
        best = corpus.score(corpus.plain.predict(corpus.protected.means()))
        table = Table(f"{name}: macro-F1 by epsilon", ["epsilon", "not private", *DRAWN])
        for epsilon in SWEEP:
            trials = [[ROWS[row](corpus, epsilon, trial) for trial in range(args.trials)] for row in DRAWN]
            table.add(f"{epsilon:g}", best, *trials)
        counted = Table(f"{name}: macro-F1 by sentences, epsilon 10", ["sentences", "documents", "not private", *DRAWN])
        _, wide, _, texts = load(name, reading_of(args))
        for low, high in BINS:
            rows = np.flatnonzero((wide.counts >= low) & (wide.counts < high))[: args.documents // 2]
            if len(rows) < 50:
                continue
            part = part_of(taken(wide, rows), [texts[row] for row in rows], corpus)
            trials = [[ROWS[row](part, 10.0, trial) for trial in range(args.trials)] for row in DRAWN]
            best = part.score(part.plain.predict(part.protected.means()))
            counted.add(f"{low}-{high - 1}", len(rows), best, *trials)
        made += [table, counted]
        if args.plots:
            plot(args.plots / f"sentdp-{name}.svg", name, [table, counted])
    return made


def directions_part(args: Namespace) -> list[Table]:
    """DeepCandidate by the number of its directions, on public documents, which may tune it, and on protected ones."""
    made = []
    for name in args.sets:
        corpus = of(name, args)
        rows = np.flatnonzero(corpus.public.counts >= SOURCES[name].least)[:TUNED_ON]
        public = part_of(taken(corpus.public, rows), [corpus.public_texts[row] for row in rows], corpus)
        columns = [f"{what}, epsilon {one:g}" for one in EPSILONS for what in ("public", "protected")]
        table = Table(f"{name}: DeepCandidate's macro-F1 by the number of directions", ["directions", *columns])
        width = corpus.candidates.points.shape[1]
        for number in DIRECTIONS:
            directions = np.random.default_rng(args.seed).normal(size=(width, number))
            directions = on_lattice(directions / np.linalg.norm(directions, axis=0))
            for part in (public, corpus):
                part.depths = part.depths_along(directions, part.protected)
            cells = [
                [draw_candidates(part, epsilon, trial) for trial in range(args.trials)]
                for epsilon in EPSILONS
                for part in (public, corpus)
            ]
            table.add(str(number), *cells)
        made.append(table)
    return made


def network_part(args: Namespace) -> list[Table]:
    """DeepCandidate as judged by a network of four layers, as in the paper, beside logistic regression."""
    made = []
    for name in args.sets:
        corpus = of(name, args)
        x, y = recoded_means(corpus.candidates, corpus.public), corpus.public.labels
        layers = MLPClassifier((256, 256, 256), early_stopping=True, max_iter=100, random_state=args.seed)
        judges = {
            "logistic regression": corpus.recoded,
            "network of four layers": make_pipeline(StandardScaler(), layers).fit(x, y),
        }
        protected = recoded_means(corpus.candidates, corpus.protected)
        head = ["judge", "recoded mean, not private", *(f"epsilon {one:g}" for one in EPSILONS)]
        table = Table(f"{name}: macro-F1 of DeepCandidate", head)
        for words, judge in judges.items():
            points = judge.predict(corpus.candidates.points)
            cells = []
            for epsilon in EPSILONS:
                scale = pure_scale(2, epsilon)
                chosen = [select_each(Sensitive(corpus.depths), scale=scale).value for _ in range(args.trials)]
                cells.append([corpus.score(points[one]) for one in chosen])
            table.add(words, corpus.score(judge.predict(protected)), *cells)
        made.append(table)
    return made


def plot(path: Path, name: str, sweeps: Sequence[Table]) -> None:
    """Draw a column of the paper's figure 4 side by side: by epsilon, and by sentences."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "nacre"}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True)
    for panel, table, label in zip(axes, sweeps, ("epsilon", "sentences, epsilon 10"), strict=True):
        first, places = table.columns.index("not private"), range(len(table.rows))
        panel.plot(places, [cells[first] for cells in table.rows], "--", color="#555555", label="mean, not private")
        for at, (colour, row) in enumerate(zip(COLOURS, DRAWN, strict=True), first + 1):
            values = np.array([cells[at] for cells in table.rows])
            panel.errorbar(places, values.mean(1), values.std(1), fmt="o-", color=colour, label=row, capsize=2)
        panel.set_xticks(places, [str(cells[0]) for cells in table.rows])
        panel.set(xlabel=label, ylim=(0, 1.02))
    axes[0].set(ylabel="macro-F1", title=name)
    axes[1].legend(frameon=False, fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def collection_part(args: Namespace) -> list[Table]:
    """A classifier that learned from synthetic embeddings beside one that learned from the real ones, epsilon 1."""
    columns = [
        "data set",
        "documents",
        "classes",
        "real",
        "synthetic, epsilon 1",
        "lost",
        "of three times the rows",
        "lost",
    ]
    table = Table(
        f"Collection-level release, macro-F1, a whole document protected, epsilon 1, delta {COLLECTION.delta:g}",
        columns,
    )
    for name in args.sets:
        public, private, *_ = load(name, reading_of(args))
        real, test = (on_sphere(one.means()) for one in (public, private))
        test = test * STEP
        best = f1_score(private.labels, classifier(real * STEP, public.labels).predict(test), average="macro")
        models = [released_model(Embedded(real, public.labels), trial) for trial in range(args.trials)]
        cells: list[list[float] | float] = []
        for times in (1, 3):
            made = [rows_of(model, times, trial) for trial, model in enumerate(models)]
            found = [f1_score(private.labels, classifier(*rows).predict(test), average="macro") for rows in made]
            cells += [found, float(best - np.mean(found))]
        table.add(name, len(public), int(public.labels.max()) + 1, float(best), *cells)
    return [table]


def rows_of(model: PointModel, times: int, seed: int) -> tuple[Floats, NDArray[np.int32]]:
    """Sample some times the released number of documents."""
    batches = list(model.sample(times * model.default_rows(), seed))
    made = Embedded.concat(batches)
    return made.vectors * STEP, made.labels


def released_model(records: Embedded, seed: int) -> PointModel:
    """Release the moments of embedded documents, and fit a sampler to them."""
    classes = tuple(map(str, range(int(records.labels.max()) + 1)))
    encoder = describe_encoder("wordllama")
    contract = Documents(name="benchmark", text="text", label="label", classes=classes, encoder=encoder)
    system = DocumentMomentsSystem()
    line = system.plan(contract, COLLECTION)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        ledger.open_account("benchmark", dataset=contract.name, budget_cap=COLLECTION)
        charge = Charge(
            account="benchmark",
            dataset=contract.name,
            mechanism=line.method,
            event=line.event,
            budget=COLLECTION,
            plan_hash=line.hash,
            schema_hash=contract.hash,
            run="benchmark",
        )
        staged, released = Path(folder) / "private" / "release.parquet", Path(folder) / "public" / "release.parquet"
        system.measure(Sensitive([records]), line, Desk(ledger, charge, staged, released))
        return system.fit(read_release(released), Craft(seed=seed))


def speed_part(args: Namespace) -> list[Table]:
    """Documents a second of the mechanisms, without the encoder, and sentences a second of the encoders."""
    number, sentences = (50 if args.quick else 400), 15
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(number * sentences, 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ends = np.arange(number + 1) * sentences
    documents = Passages([""] * number, np.zeros(number, dtype=np.int32), vectors, ends)
    points, directions = rng.normal(size=(5000, 64)), rng.normal(size=(64, 50))
    utility = TukeyDepth(points, directions / np.linalg.norm(directions, axis=0), "worst")
    sketch = train_sketch(documents, 10.0, best_dim(10.0), 128, 10, args.seed)
    recoded = rng.normal(size=(number * sentences, 64))
    utility.scores(recoded[:sentences], ends[:2])  # compiles
    left, right = (
        rng.normal(size=(5000, 50)).astype(np.float32),
        rng.normal(size=(50, 40 * sentences)).astype(np.float32),
    )

    table = Table("Documents a second without the encoder, 15 sentences", ["what", "documents/s"], digits=0)
    scores = utility.scores(recoded, ends)
    table.add("depth of m = 5000 candidates along p = 50", rate(lambda: utility.scores(recoded, ends), number))
    drawn = Sensitive(scores)
    table.add("choice of one of 5000", rate(lambda: select_each(drawn, scale=pure_scale(2, 10.0)), number))
    sums = Sensitive(sketch.sums(vectors, ends))
    table.add("sketch of 25 numbers", rate(lambda: sketch.sums(vectors, ends), number))
    table.add("its noise", rate(lambda: measure_k_norm(sums, scale=k_norm_scale(SENSITIVITY, 10.0)), number))

    def products() -> None:
        for _ in range(number // 40):
            left @ right

    table.add("limit: a product of matrices of m x p x 15 terms", rate(products, number // 40 * 40))
    encoders = Table("Sentences a second of the encoders", ["encoder", "sentences/s"], digits=0)
    texts, _ = read(SOURCES["imdb"].protected, SOURCES["imdb"], 1500)
    cut = [one for text in texts[:300] for one in split_sentences(text, "en", MOST)]
    for name in ("wordllama", "hashed"):
        encode = load_encoder(describe_encoder(name))
        encode(cut[:10])
        encoders.add(name, rate(lambda encode=encode: encode(cut), len(cut)))
    return [table, encoders]


def rate(action: Callable[[], object], number: int) -> float:
    began = time.perf_counter()
    action()
    return number / (time.perf_counter() - began)


PARTS = {
    "table": table_part,
    "sweep": sweep_part,
    "directions": directions_part,
    "network": network_part,
    "collection": collection_part,
    "speed": speed_part,
}


def main(argv: Sequence[str] | None = None) -> None:
    args = parse(__doc__, options, argv)
    if args.quick:
        args.trials, args.documents, args.most = 1, min(args.documents, 100), 1500
    tables = [table for part in args.parts for table in PARTS[part](args)]
    report("sentdp", tables, [args.seed], args)


if __name__ == "__main__":
    main()
