"""Sketches of documents: the noise that is charged, the way back to an embedding, and what one sentence moves."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpmodels.audit.tap import Killed
from dpmodels.errors import Unsuitable
from dpmodels.mechanisms import k_norm
from dpmodels.mechanisms.k_norm import k_norm_scale
from dpmodels.methods.documents.document_sketch import DocumentSketch, DocumentSketchMeasurement
from dpmodels.releases import draw
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from dpmodels.text.candidates import Sketching, read_candidates
from dpmodels.text.sketch import BOUND, SENSITIVITY
from tests.kit.documents import SMALL, budget_of, embedded, make_contract, make_public, make_texts
from tests.kit.support import desk_in

SKETCHING = Sketching(epsilon=10.0, numbers=6, hidden=16, steps=300)


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    return make_public(tmp_path_factory.mktemp("public"), SMALL.model_copy(update={"sketch": SKETCHING}))


def system_of(public) -> DocumentSketch:
    return DocumentSketch(DocumentSketchMeasurement(), public)


def measure(system, texts, folder, contract=None, epsilon=10.0):
    contract = contract or make_contract()
    line = system.plan(contract, budget_of(contract, epsilon))
    documents = embedded(texts, folder / "data", contract, 4)
    return system.measure(documents, line, desk_in(folder, line)).value


def test_a_document_gets_an_embedding_near_those_of_its_subject(tmp_path, public):
    texts = [*make_texts(60, seed=3, sentences=20), "", "One sentence"]
    release = read_release(measure(system_of(public), texts, tmp_path))
    assert release.value.columns["sentences"].to_pylist() == [20] * 60 + [0, 1]
    made = system_of(public).fit(release, Craft())
    made.save(tmp_path / "embedded.parquet")
    table = pq.read_table(tmp_path / "embedded.parquet")
    vectors = np.array(table["embedding"].to_pylist(), dtype=np.float32)
    assert table["id"].to_pylist() == [f"d{index}" for index in range(62)] and np.isfinite(vectors).all()
    sea, fair = vectors[:60:2], vectors[1:60:2]
    between = np.linalg.norm(sea.mean(axis=0) - fair.mean(axis=0))
    assert between > np.sqrt(sea.var(axis=0).sum() + fair.var(axis=0).sum())
    assert set(made.chosen) <= set(range(len(public)))
    turned = made.take(np.array([3, 1]))
    assert turned.ids.to_pylist() == ["d3", "d1"] and turned.released.tolist() == made.released[[3, 1]].tolist()


def test_the_public_file_holds_the_networks(tmp_path, public):
    (tmp_path / "public.safetensors").write_bytes(public.to_bytes())
    found = read_candidates(tmp_path / "public.safetensors")
    vectors, ends = np.random.default_rng(0).normal(size=(9, 24)).astype(np.float32) / 5, np.array([0, 4, 4, 9])
    sums = public.sketch.sums(vectors, ends)
    assert np.array_equal(found.sketch.sums(vectors, ends), sums) and sums.any() and found.sha256 == public.sha256
    assert np.array_equal(found.sketch.read(sums, np.diff(ends)), public.sketch.read(sums, np.diff(ends)))
    with pytest.raises(Unsuitable, match="holds no sketch"):
        system_of(make_public(tmp_path)).plan(make_contract(), budget_of(make_contract()))


@pytest.mark.parametrize("most", [1, 2])
def test_sums_get_the_noise_that_is_charged_and_neighbors_differ_in_one(tmp_path, public, most, monkeypatch):
    contract = make_contract(user="who", most_documents=most)
    texts, seen = make_texts(9, seed=3), {}
    replaced = [*texts[:4], ". ".join(["Horse horse horse", *texts[4].split(". ")[1:]]), *texts[5:]]
    for name, own in (("one", texts), ("other", replaced)):
        taken = seen[name] = []

        def measured(sums, *, scale, taken=taken):
            taken.append((sums.reveal(), scale))
            return k_norm.measure_k_norm(sums, scale=scale)

        monkeypatch.setattr(draw, "measure_k_norm", measured)
        measure(system_of(public), own, tmp_path / name, contract)
    assert {scale for blocks in seen.values() for _, scale in blocks} == {k_norm_scale(SENSITIVITY, 10.0 / most)}
    one, other = (np.concatenate([sums for sums, _ in blocks]) for blocks in seen.values())
    moved = np.abs(one - other).max(axis=1)
    place = 4 if most == 2 else 2  # with one document a user the second of each is left out
    assert moved.argmax() == place and np.count_nonzero(moved) == 1 and moved.max() <= SENSITIVITY == 2 * BOUND


def test_a_draw_that_is_killed_goes_on_with_the_sums_it_kept(tmp_path, public, monkeypatch):
    monkeypatch.setattr(draw, "LEAST_KEPT", 8)
    drawn, left = [], [4]

    def measured(sums, *, scale):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        drawn.append(k_norm.measure_k_norm(sums, scale=scale))
        return drawn[-1]

    monkeypatch.setattr(draw, "measure_k_norm", measured)
    system, contract = system_of(public), make_contract()
    line = system.plan(contract, budget_of(contract))
    documents, desk = embedded(make_texts(30, seed=3), tmp_path / "data", contract, 4), desk_in(tmp_path, line)
    with pytest.raises(Killed):
        system.measure(documents, line, desk)
    release = read_release(system.measure(documents, line, desk).value)
    (answer,) = system.answers(release.value)
    assert np.array_equal(answer, np.concatenate([one.value for one in [*drawn[:2], *drawn[3:]]]))
    assert answer.shape == (30, 6) == (len(release.value.columns), SKETCHING.numbers)
