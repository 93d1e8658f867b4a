"""Public functions that embed a sentence, each a function of one sentence alone.

The proofs of privacy count how many sentences of a document lie on one side of a candidate: one sentence that is
replaced may move one embedding, and must not move the last bit of another. So nothing here depends on the batch in
which a sentence comes. The words of a static encoder are whole steps of a lattice, whose sums are exact in any order,
and a model of sentence-transformers, whose products round by their shape, sees one sentence at a time.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.artifact import sha256_of
from dpmodels.contract.documents import Encoder
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.late import check_installed

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
"""Embeds sentences; every row has norm 1 up to rounding, or is 0 where the encoder finds nothing. Shapes: [n, dim]."""

WORDLLAMA = "10eaa372b206182c437c18041812c2bde617dd3affe14d1fadf643d6d1e92377"
"""Hash of the weights and the tokenizer that wordllama 0.4.0.post1 brings."""
WORDLESS = "given", "hashed"
"""Encoders that have no table of words."""
PICKLED = {".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"}
"""Suffixes of weights that are unpickled to be read."""
STEP = 2.0**-24
"""The lattice of words; weights of half precision lie on it already."""
MOST_STEPS = 2**31
"""Bound of a word, so that the sums of 2**22 words are exact."""


def load_encoder(spec: Encoder) -> Encode:
    """Load the encoder that a contract names, after comparing the hash of its files.

    Raises:
        Unsuitable: there is no such encoder, or its embeddings have another size.
        ArtifactError: its files are not those that the contract names.
    """
    if spec.name == "given":
        raise Unsuitable("documents that come with embeddings need no encoder; give the name of one to embed text")
    if spec.name == "hashed":
        return lambda sentences: _each(lambda sentence: _hashed(sentence, spec.dim), sentences, spec.dim)
    folder, files = _checked_files(spec)
    if (folder / "modules.json").is_file():
        return _transformer(folder, spec)
    words, tokenizer = _static(folder, files, spec.dim)
    return lambda sentences: _means(words, tokenizer, sentences)


def words_of(spec: Encoder) -> NDArray[np.float64]:
    """Return the words of a static encoder as whole numbers of steps. Shapes: [tokens, dim].

    Raises:
        Unsuitable: the encoder is of another kind.
        ArtifactError: its files are not those that the contract names.
    """
    folder, files = _checked_files(spec) if spec.name not in WORDLESS else (Path(), [])
    if not files or (folder / "modules.json").is_file():
        raise Unsuitable(f"the encoder {spec.name} has no table of words to whiten by; set `whitening` to 0")
    return _static(folder, files, spec.dim)[0]


def describe_encoder(name: str, dim: int = 0) -> Encoder:
    """Return what a contract says of an encoder: its size, unless one is given, and the hash of its files."""
    if name == "hashed":
        return Encoder(name=name, dim=dim or 256)
    folder, files = _files(name)
    if (folder / "modules.json").is_file():
        size = len(_sentence_transformer(folder)("one"))
    else:
        size = _static(folder, files)[0].shape[1]
    return Encoder(name=name, dim=dim or size, sha256=hash_files(folder, files))


def hash_files(folder: Path, files: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and the hashes of files below a folder."""
    hashes = sorted((str(file.relative_to(folder)), sha256_of(file)) for file in files)
    return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()


def _checked_files(spec: Encoder) -> tuple[Path, list[Path]]:
    """Return the folder and the files of an encoder, after comparing their hash with the contract's."""
    folder, files = _files(spec.name)
    digest = hash_files(folder, files)
    if digest != (spec.sha256 or (WORDLLAMA if spec.name == "wordllama" else "")):
        raise ArtifactError(
            f"the files of the encoder {spec.name} have the sha256 {digest}; the contract says otherwise"
        )
    return folder, files


def _files(name: str) -> tuple[Path, list[Path]]:
    """Return the folder of an encoder and the files that it is made of."""
    if name == "wordllama":
        check_installed(["wordllama", "tokenizers"])
        spec = find_spec("wordllama")  # which is not imported: it would set up logging for everyone
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("No module named 'wordllama'", name="wordllama")
        folder = Path(spec.origin).parent
        return folder, [
            folder / "weights" / "l2_supercat_256.safetensors",
            folder / "tokenizers" / "l2_supercat_tokenizer_config.json",
        ]
    folder = Path(name)
    if not folder.is_dir():
        raise InvalidArgument("encoder", name, "be wordllama, hashed, given, or the folder of a model")
    files = [file for file in folder.rglob("*") if file.is_file() and file.name[0] != "."]
    if pickled := [file.name for file in files if file.suffix.lower() in PICKLED]:
        raise Unsuitable(
            f"{folder} holds {pickled[0]}: reading a pickle runs whatever is written in it. Save the model as "
            "safetensors, and remove that file"
        )
    return folder, files


def _static(folder: Path, files: list[Path], dim: int = 0) -> tuple[NDArray[np.float64], Any]:
    """Read the words and the tokenizer of a static encoder, such as wordllama or a model of model2vec.

    Shapes: the words are [tokens, dim], whole numbers of steps of the lattice; a ``dim`` of 0 asks for all there is.

    Raises:
        InvalidArgument, Unsuitable: the words are shorter than that.
    """
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights = [file for file in files if file.suffix == ".safetensors"]
    texts = [file for file in files if file.name.startswith("tokenizer") or "_tokenizer_" in file.name]
    texts = [file for file in texts if not file.name.startswith("tokenizer_config")]
    if len(weights) != 1 or len(texts) != 1:
        raise Unsuitable(f"{folder} must hold a model of sentence-transformers, or of model2vec as safetensors")
    tensors = load_file(weights[0])
    words = tensors.get("embeddings", tensors.get("embedding.weight"))
    if words is None or words.ndim != 2 or not np.issubdtype(words.dtype, np.floating):
        raise Unsuitable(f"{folder} holds no table of words that are floating-point numbers")
    table = words.astype(np.float64)
    if "mapping" in tensors:
        table = table[tensors["mapping"]]
    if "weights" in tensors:
        table = table * tensors["weights"].astype(np.float64)[:, np.newaxis]
    tokenizer = Tokenizer.from_file(str(texts[0]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if table.shape[1] < dim:
        raise InvalidArgument("dim", dim, f"be at most {table.shape[1]}, the size of the embeddings of the encoder")
    steps = np.rint(table[:, : dim or None] / STEP)
    if not np.abs(steps).max(initial=0) < MOST_STEPS:  # which no NaN is
        raise Unsuitable(f"{folder} holds a word whose numbers are not below 128; its sums would not be exact")
    if max(tokenizer.get_vocab().values(), default=0) >= len(steps):
        raise Unsuitable(f"the tokenizer of {folder} knows more words than its table holds")
    return steps, tokenizer


def _means(words: NDArray[np.float64], tokenizer: Any, sentences: Sequence[str]) -> Vectors:
    """Embed each sentence as the direction of the sum of its words.

    The sums are exact: a word is below ``MOST_STEPS``, so up to 2**22 tokens add up without rounding.
    """
    from scipy.sparse import csr_array

    token_ids = [tokens.ids for tokens in tokenizer.encode_batch(list(sentences), add_special_tokens=False)]
    ends = np.cumsum([0, *map(len, token_ids)])
    ids = np.fromiter(chain.from_iterable(token_ids), dtype=np.int64, count=ends[-1])
    return _rows(csr_array((np.ones(len(ids)), ids, ends), shape=(len(token_ids), len(words))) @ words)


def _transformer(folder: Path, spec: Encoder) -> Encode:
    one = _sentence_transformer(folder)
    if len(one("one")) != spec.dim:
        raise InvalidArgument("dim", spec.dim, "be the size of the embeddings of the encoder")

    return lambda sentences: _each(one, sentences, spec.dim)


def _sentence_transformer(folder: Path) -> Callable[[str], NDArray[np.float64]]:
    """Load a model of sentence-transformers, to embed one sentence at a time."""
    from sentence_transformers import SentenceTransformer

    safe = {"use_safetensors": True}
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True, model_kwargs=safe)

    def one(sentence: str) -> NDArray[np.float64]:
        row: NDArray[np.float64] = model.encode([sentence], show_progress_bar=False)[0].astype(np.float64)
        return row

    return one


def _each(one: Callable[[str], NDArray[np.float64]], sentences: Sequence[str], dim: int) -> Vectors:
    """Embed sentence by sentence."""
    return _rows(np.array([one(sentence) for sentence in sentences], dtype=np.float64).reshape(-1, dim))


def _rows(totals: NDArray[np.float64]) -> Vectors:
    """Scale every row to norm 1; a row of zeros stays, and one in which a number is not finite becomes zeros.

    A sketch of what is not a number would be no bounded one.
    """
    totals = np.where(np.isfinite(totals).all(axis=1, keepdims=True), totals, 0.0)
    norms = np.sqrt(np.square(totals).sum(axis=1, keepdims=True))
    return (totals / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def _hashed(sentence: str, dim: int) -> NDArray[np.float64]:
    """Sum public random signs over a sentence's words and pairs of words."""
    words = re.findall(r"\w+", sentence.lower())
    pairs = [f"{first} {second}" for first, second in pairwise(words)]
    total = np.zeros(dim, dtype=np.int64)
    for gram in [*words, *pairs]:
        total += _signs(gram, dim)
    return total.astype(np.float64)


@lru_cache(maxsize=2**16)
def _signs(gram: str, dim: int) -> NDArray[np.int8]:
    """Return the signs of a word, which follow from its hash."""
    bits = hashlib.shake_256(gram.encode("utf-8", "replace")).digest(-(-dim // 8))
    return (2 * np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=dim).astype(np.int8) - 1).astype(np.int8)
