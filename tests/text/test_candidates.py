"""The file of public candidates: it says the same of every document wherever it is read, or it is refused."""

import numpy as np
import pytest
from safetensors.numpy import load, save

from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.text.candidates import KEY, Recipe, Sketching, make_candidates, read_candidates
from dpmodels.text.passages import Passages
from dpmodels.text.recoder import check_exact, train_recoder
from tests.kit.documents import SMALL, embedded, make_contract, make_public, make_texts


def test_a_file_of_candidates_is_read_as_it_was_written(tmp_path):
    made = make_public(tmp_path)
    (tmp_path / "public.safetensors").write_bytes(made.to_bytes())
    found = read_candidates(tmp_path / "public.safetensors")
    assert (found.sha256, found.encoder, found.recipe) == (made.sha256, made.encoder, SMALL)
    assert found.embeddings.shape == (12, 24) and found.points.shape == (12, 6) and found.directions.shape == (6, 5)
    vectors = np.random.default_rng(0).normal(size=(9, 24))
    assert np.array_equal(found.recoder(vectors), made.recoder(vectors)) and found.recoder(vectors).any()
    assert np.allclose(np.linalg.norm(found.directions, axis=0), 1, atol=1e-3)


def test_a_recoder_is_exact_however_many_numbers_an_embedding_has() -> None:
    vectors = np.random.default_rng(0).standard_normal((80, 6000)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    documents = Passages([str(number) for number in range(40)], np.zeros(40, np.int32), vectors, np.arange(41) * 2)
    recoder = train_recoder(documents, 3, (8,), seed=0)
    check_exact(*recoder.weights)
    assert recoder(vectors).any()


def test_a_recoder_moves_documents_of_one_subject_together(tmp_path):
    made = make_public(tmp_path)
    contract = make_contract()
    (batch,) = embedded(make_texts(40, seed=2), tmp_path, contract, 99).reveal()

    def apart(points: np.ndarray) -> float:
        means = np.array([points[batch.ends[at] : batch.ends[at + 1]].mean(axis=0) for at in range(len(batch))])
        sea, fair = means[::2], means[1::2]
        spread = np.sqrt(sea.var(axis=0).sum() + fair.var(axis=0).sum())
        return float(np.linalg.norm(sea.mean(axis=0) - fair.mean(axis=0)) / spread)

    assert apart(made.recoder(batch.vectors)) > 1.2 * apart(batch.vectors)


def test_without_hidden_layers_sentences_stay_where_they_are(tmp_path):
    made = make_public(tmp_path, SMALL.model_copy(update={"hidden": ()}))
    assert np.allclose(made.points, made.embeddings, atol=1e-4) and not made.recoder.weights


def test_public_documents_that_are_too_short_are_no_candidates(tmp_path):
    contract = make_contract()
    texts = [*make_texts(20, seed=1, sentences=2), *make_texts(3, seed=2, sentences=3)]
    public = embedded(texts, tmp_path / "some", contract).reveal()
    assert len(make_candidates(public, contract.encoder, SMALL)) == 3
    with pytest.raises(Unsuitable, match="at least two public documents"):
        make_candidates(public, contract.encoder, SMALL.model_copy(update={"least_sentences": 4}))


@pytest.mark.parametrize("texts", [["A b. C d. E f."] * 3, ["! ! !. ? ?. !!", "?. !. ."], ["A b. C d.", "E f. G h."]])
def test_public_documents_may_be_few_and_alike(tmp_path, texts):
    contract, recipe = make_contract(), Recipe(least_sentences=1, sketch=Sketching(epsilon=1, steps=5))
    made = make_candidates(embedded(texts, tmp_path, contract).reveal(), contract.encoder, recipe)
    sums = made.sketch.sums(np.ones((3, 24), dtype=np.float32), np.array([0, 1, 3]))
    assert len(made) == len(texts) and np.isfinite(made.points).all()
    assert np.isfinite(made.sketch.read(sums, np.array([1, 2]))).all()


@pytest.mark.parametrize("damage", ["missing", "cut", "other", "format", "weights", "lattice", "lengths"])
def test_a_file_that_is_not_as_it_was_written_is_refused(tmp_path, damage):
    made = make_public(tmp_path)
    path, content = tmp_path / "public.safetensors", made.to_bytes()
    tensors = dict(load(content))
    about = '{"format": 1, "encoder": ' + made.encoder.model_dump_json() + ', "recipe": {}}'
    match damage:
        case "cut":
            content = content[: len(content) // 2]
        case "other":
            content = save(tensors)
        case "format":
            content = save(tensors, {KEY: about.replace('"format": 1', '"format": 2')})
        case "weights":
            content = save({**tensors, "w/0": tensors["w/0"] + 2.0**9}, {KEY: about})
        case "lattice":
            content = save({**tensors, "directions": tensors["directions"] + 2.0**-30}, {KEY: about})
        case "lengths":
            content = save({**tensors, "points": tensors["points"][1:]}, {KEY: about})
    if damage != "missing":
        path.write_bytes(content)
    with pytest.raises(ArtifactError):
        read_candidates(path)
