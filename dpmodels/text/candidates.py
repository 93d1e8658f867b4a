"""Public candidates: the embeddings of public documents, one of which is released for each protected document.

They lie in one file with all that their scores need: the recoder, the directions, and the points at which the
candidates lie in its space. The file holds numbers and JSON, and is known by its hash, which is in the plan.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.documents import Encoder
from dpmodels.errors import FileDamaged, Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.text.encoders import Vectors
from dpmodels.text.passages import Passages
from dpmodels.text.recoder import Recoder, check_exact, on_lattice, train_recoder
from dpmodels.text.sketch import Sketch, best_dim, train_sketch

KEY = "nacre.candidates"
MOST_TAUGHT = 20_000
"""Public documents that the recoder learns from, at most; their sentences are held in memory."""


class Sketching(Frozen):
    """How sketches are trained.

    Attributes:
        epsilon: of one document, for which they are trained; numbers: in a sketch, or 0 for the number that suits it.
        hidden, steps: of the networks.
    """

    epsilon: Annotated[float, Field(gt=0, le=1e3)]
    numbers: Annotated[int, Field(ge=0, le=1024)] = 0
    hidden: Annotated[int, Field(ge=1, le=4096)] = 128
    steps: Annotated[int, Field(ge=1)] = 1000


class Recipe(Frozen):
    """How candidates are made of public documents, and are measured.

    Attributes:
        candidates: how many at most; least_sentences: of a public document that becomes a candidate.
        clusters, hidden: of the recoder, which has the paper's four layers; no hidden layers for none.
        projections: directions of the depth.
        sketch: how sketches are trained on the candidates, where they are to be released; None for none.
        seed: of the public choices.
    """

    candidates: Annotated[int, Field(ge=2, le=100_000)] = 5000
    least_sentences: Annotated[int, Field(ge=1)] = 8
    clusters: Annotated[int, Field(ge=1)] = 50
    hidden: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = (256, 256, 256, 256)
    projections: Annotated[int, Field(ge=1, le=4096)] = 50
    sketch: Sketching | None = None
    seed: int = 0


class _About(Frozen):
    format: int = 1
    encoder: Encoder
    recipe: Recipe


@dataclass(frozen=True)
class Candidates:
    """The content of a file of candidates.

    Attributes:
        encoder, recipe: of the embeddings, and how all this was made.
        embeddings: what is released of a candidate, in the space of the encoder.
        points: where the candidates lie in the recoder's space; directions: along which depth is measured there.

    Shapes: embeddings [m, dim], points [m, width], directions [width, p].
    """

    encoder: Encoder
    recipe: Recipe
    embeddings: Vectors
    points: Floats
    directions: Floats
    recoder: Recoder
    sketch: Sketch | None = None

    def __len__(self) -> int:
        return len(self.embeddings)

    def to_bytes(self) -> bytes:
        """Write the file's content; the same candidates are the same bytes."""
        from safetensors.numpy import save

        tensors: dict[str, NDArray[Any]] = {
            "embeddings": self.embeddings,
            "points": self.points,
            "directions": self.directions,
            **_layers("", self.recoder),
        }
        if self.sketch is not None:
            layers = Recoder(
                [*self.sketch.recoder.weights, self.sketch.weights], [*self.sketch.recoder.biases, self.sketch.biases]
            )
            tensors |= _layers("sketch/", layers) | {f"reader/{at}": part for at, part in enumerate(self.sketch.reader)}
        about = _About(encoder=self.encoder, recipe=self.recipe).model_dump_json()
        return save({name: np.ascontiguousarray(part) for name, part in tensors.items()}, {KEY: about})

    @property
    def sha256(self) -> str:
        """The hash of the file, by which a plan names it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def read_candidates(path: Path) -> Candidates:
    """Read a file of candidates.

    Raises:
        ArtifactError: it is missing, damaged, no such file, or holds numbers with which scores would not be exact.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about = _About.model_validate(json.loads((file.metadata() or {})[KEY]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        recoder, sketch = _recoder("", tensors), _sketch(tensors)
        embeddings, points, directions = tensors["embeddings"], tensors["points"], tensors["directions"]
        if about.format != 1 or len({len(embeddings), len(points)}) > 1 or not np.isfinite(embeddings).all():
            raise ValueError
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise FileDamaged(f"file of candidates {path.name}", "make it again") from None
    check_exact(directions)
    return Candidates(about.encoder, about.recipe, embeddings, points, directions, recoder, sketch)


def _layers(prefix: str, recoder: Recoder) -> dict[str, NDArray[Any]]:
    weights = {f"{prefix}w/{at}": weight for at, weight in enumerate(recoder.weights)}
    return weights | {f"{prefix}b/{at}": bias for at, bias in enumerate(recoder.biases)}


def _recoder(prefix: str, tensors: dict[str, Any]) -> Recoder:
    """Read layers, and refuse those whose products would be rounded."""
    depth = sum(name.startswith(f"{prefix}w/") for name in tensors)
    weights, biases = ([tensors[f"{prefix}{name}/{at}"] for at in range(depth)] for name in "wb")
    check_exact(*weights, *[bias[np.newaxis] for bias in biases])
    return Recoder(weights, biases)


def _sketch(tensors: dict[str, Any]) -> Sketch | None:
    if "reader/0" not in tensors:
        return None
    recoder = _recoder("sketch/", tensors)
    reader = (tensors["reader/0"], tensors["reader/1"], tensors["reader/2"], tensors["reader/3"])
    return Sketch(Recoder(recoder.weights[:-1], recoder.biases[:-1]), recoder.weights[-1], recoder.biases[-1], reader)


def _too_few(counts: NDArray[np.int64], least: int) -> str:
    """Say what public documents are like of which fewer than two have enough sentences."""
    longest = int(counts.max(initial=0))
    there = f"there {'is 1 document' if len(counts) == 1 else f'are {len(counts):,} documents'}, the longest of"
    there += f" {longest:,} sentence{'' if longest == 1 else 's'}"
    why = "; a row is a document: put all of its sentences into one row" if longest == 1 and len(counts) > 1 else ""
    why = "; give a row for each document" if len(counts) == 1 else why
    return f"at least two public documents must have {least} sentences or more to be candidates; {there}{why}"


def make_candidates(documents: Iterable[Passages], encoder: Encoder, recipe: Recipe) -> Candidates:
    """Make candidates of public documents, which can be read twice.

    Privacy: reads public documents alone; they must not be those that are to be protected.

    Raises:
        Unsuitable: fewer than two public documents have enough sentences.
    """
    means, counts = _joined((batch.means(), batch.counts) for batch in documents)
    eligible = np.flatnonzero(counts >= recipe.least_sentences)
    if len(eligible) < 2:
        raise Unsuitable(_too_few(counts, recipe.least_sentences))
    random = np.random.default_rng(recipe.seed)
    rows = np.sort(random.permutation(eligible)[: recipe.candidates])
    taught = np.sort(random.permutation(np.flatnonzero(counts))[:MOST_TAUGHT])
    recoder = train_recoder(_some(documents, taught), recipe.clusters, recipe.hidden, recipe.seed)
    points, _ = _joined((_recoded(batch, recoder).means(), batch.counts) for batch in documents)
    directions = random.normal(size=(recipe.projections, points.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return Candidates(
        encoder,
        recipe,
        means[rows].astype(np.float32),
        on_lattice(points[rows]),
        on_lattice(directions.T),
        recoder,
        _trained(documents, rows, recipe.sketch, recipe.seed) if recipe.sketch else None,
    )


def _trained(documents: Iterable[Passages], rows: Whole, sketching: Sketching, seed: int) -> Sketch:
    """Train sketches on the public documents that are candidates."""
    numbers = sketching.numbers or best_dim(sketching.epsilon)
    return train_sketch(_some(documents, rows), sketching.epsilon, numbers, sketching.hidden, sketching.steps, seed)


def _some(documents: Iterable[Passages], rows: Whole) -> Passages:
    """Hold the sentences of some documents in memory; of each the place is given, in ascending order."""
    parts, begin = [], 0
    for batch in documents:
        parts.append(batch.subset(rows[(rows >= begin) & (rows < begin + len(batch))] - begin))
        begin += len(batch)
    ids = [name for part in parts for name in part.ids]
    labels, vectors = (np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "vectors"))
    return Passages(ids, labels, vectors, np.append(0, np.cumsum(np.concatenate([part.counts for part in parts]))))


def _joined(parts: Iterable[tuple[Floats, NDArray[np.int64]]]) -> tuple[Floats, NDArray[np.int64]]:
    rows, counts = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(counts)


def _recoded(batch: Passages, recoder: Recoder) -> Passages:
    return Passages(batch.ids, batch.labels, recoder(batch.vectors).astype(np.float32), batch.ends)
