"""The public functions of a sentence: sizes and hashes, and that no bit depends on the batch."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from dpmodels.contract.documents import Encoder
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.text import encoders
from dpmodels.text.encoders import describe_encoder, load_encoder
from tests.kit.errors import refused

SENTENCES = [
    "I really liked the film, although it was rather long.",
    "",
    "Yes.",
    "\x00\ufdd0 e\u0301 \U0010ffff",
    "नमस्ते कैसे हो, これは文です",
    "word " * 300,
    "Yes.",
]


def static_model(folder: Path, **extra: np.ndarray) -> Path:
    """Write a model as model2vec does: one table of words and a tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: index for index, word in enumerate(["[UNK]", "yes", "no", "film"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    table = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    save_file({"embeddings": table, **extra}, folder / "model.safetensors")
    return folder


def every_encoder(tmp_path: Path) -> list[Encoder]:
    model = describe_encoder(str(static_model(tmp_path / "model")))
    return [describe_encoder("wordllama"), describe_encoder("hashed"), Encoder(name="hashed", dim=13), model]


def test_an_embedding_is_a_function_of_one_sentence_to_the_last_bit(tmp_path):
    for spec in every_encoder(tmp_path):
        encode = load_encoder(spec)
        together = encode(SENTENCES)
        assert together.shape == (len(SENTENCES), spec.dim) and together.dtype == np.float32
        alone = np.concatenate([encode([sentence]) for sentence in SENTENCES])
        order = np.random.default_rng(1).permutation(700) % len(SENTENCES)
        shuffled = encode([SENTENCES[index] for index in order])
        assert np.array_equal(together, alone) and np.array_equal(shuffled, together[order])
        norms = np.linalg.norm(together.astype(np.float64), axis=1)
        assert np.all((np.abs(norms - 1) < 1e-6) | (norms == 0)) and norms[1] == 0 and norms[0] > 0
        assert encode([]).shape == (0, spec.dim)


def test_wordllama_gives_what_its_own_package_gives():
    ours = load_encoder(describe_encoder("wordllama"))(SENTENCES[:1])
    assert "wordllama" not in sys.modules  # to import it sets up logging, for everyone
    import wordllama
    from wordllama import WordLlama

    theirs = WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    assert np.allclose(ours, theirs.embed(SENTENCES[:1], norm=True), atol=1e-6)
    smaller = load_encoder(describe_encoder("wordllama", 64))(SENTENCES[:1])
    assert np.allclose(smaller, ours[:, :64] / np.linalg.norm(ours[:, :64]), atol=1e-6)


def test_the_hash_is_that_of_all_files_and_is_compared(tmp_path):
    folder = static_model(tmp_path / "model")
    spec = describe_encoder(str(folder))
    assert (spec.dim, describe_encoder(str(static_model(tmp_path / "copy"))).sha256) == (8, spec.sha256)
    with pytest.raises(ArtifactError, match=spec.sha256):
        load_encoder(spec.model_copy(update={"sha256": ""}))
    with pytest.raises(ArtifactError):
        load_encoder(Encoder(name="wordllama", dim=256, sha256="0" * 64))
    assert load_encoder(Encoder(name="wordllama", dim=256))(["Yes."]).shape == (1, 256)
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text().replace("film", "firm"))
    with pytest.raises(ArtifactError, match="the contract says otherwise"):
        load_encoder(spec)


def test_a_model_may_weigh_its_words_and_map_its_tokens(tmp_path):
    weights, mapping = np.array([0, 1, 2, 3], dtype=np.float32), np.array([0, 2, 1, 3])
    folder = static_model(tmp_path / "model", weights=weights, mapping=mapping)
    table = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    expected = 1 * table[2] + 2 * table[1]
    found = load_encoder(describe_encoder(str(folder)))(["yes no nothing"])[0]
    assert np.allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (np.ones((3, 8)), "more words than its table"),  # a token beyond the table would be read from other memory
        (np.full((4, 8), 128.0), "not below 128"),
        (np.full((4, 8), np.nan), "not below 128"),
        (np.full((4, 8), np.inf), "not below 128"),
    ],
)
def test_a_table_of_which_sums_are_not_exact_is_refused(tmp_path, table, said):
    folder = static_model(tmp_path / "model", embeddings=table.astype(np.float32))
    with pytest.raises(Unsuitable, match=said):
        describe_encoder(str(folder))


def test_what_is_not_a_number_is_zero_in_its_own_row_alone():
    """A model of the operator's may return such numbers; the sketch of one would be as large as any integer."""
    rows = encoders._rows(np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 0.0], [3.0, 4.0]]))
    assert rows.tolist() == [[0, 0], [0, 0], [0, 0], [np.float32(0.6), np.float32(0.8)]]


def test_what_is_no_encoder_is_refused(tmp_path):
    with refused(InvalidArgument, name="encoder", value=str(tmp_path / "none")):
        load_encoder(Encoder(name=str(tmp_path / "none"), dim=3))
    with pytest.raises(Unsuitable, match="must hold a model"):
        describe_encoder(str(tmp_path))
    with pytest.raises(Unsuitable, match="need no encoder"):
        load_encoder(Encoder(name="given", dim=3))
    with refused(InvalidArgument, "at most 256", name="dim", value=300):
        load_encoder(describe_encoder("wordllama").model_copy(update={"dim": 300}))
