"""DeepCandidate: what is charged, what is kept of a draw that is killed, and that only choices differ."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from scipy.special import softmax

from dpmodels.accounting.events import ComposedEvent, PureEvent
from dpmodels.audit.tap import Killed
from dpmodels.errors import ArtifactError, DataError, InvalidArgument, Unsuitable
from dpmodels.mechanisms import choices
from dpmodels.mechanisms.exponential import pure_scale
from dpmodels.privacy import Adjacency, Released
from dpmodels.releases import draw
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft
from dpmodels.text.recoder import on_lattice
from tests.kit.documents import budget_of, embedded, make_contract, make_public, make_system, make_texts
from tests.kit.errors import refused
from tests.kit.support import desk_in

ODD = ["", "One sentence", "\x00\ufdd0 e\u0301. \U0010ffff", "long " * 400_000, "a. " * 50]


@pytest.fixture(scope="module")
def candidates(tmp_path_factory):
    return make_public(tmp_path_factory.mktemp("public"))


def measure(system, texts, folder, contract=None, epsilon=10.0, batch_rows=4):
    contract = contract or make_contract()
    line = system.plan(contract, budget_of(contract, epsilon))
    documents = embedded(texts, folder / "data", contract, batch_rows)
    desk = desk_in(folder, line)
    path = system.measure(documents, line, desk).value
    return path, desk


def test_a_release_names_a_candidate_for_each_document_and_is_read_later(tmp_path, candidates):
    texts = [*make_texts(40, seed=3), *ODD]
    path, desk = measure(make_system(candidates), texts, tmp_path)
    release = read_release(path)
    found = make_system(candidates).fit(release, Craft())
    assert release.value.columns.column_names == ["id", "sentences"]
    assert found.ids.to_pylist() == [f"d{index}" for index in range(len(texts))]
    found.save(tmp_path / "embedded.parquet")
    table = pq.read_table(tmp_path / "embedded.parquet")
    assert table.column_names == ["id", "embedding", "candidate", "epsilon", "unit"]
    chosen = table["candidate"].to_numpy()
    assert np.array_equal(np.array(table["embedding"].to_pylist(), dtype=np.float32), candidates.embeddings[chosen])
    assert set(table["unit"].to_pylist()) == {"sentence of a document"} and set(table["epsilon"].to_pylist()) == {10.0}
    assert desk.ledger.balance("a").spent_epsilon == Decimal(10)
    other = make_system(make_public(tmp_path, candidates.recipe.model_copy(update={"seed": 1})))
    with pytest.raises(ArtifactError, match=candidates.sha256):
        other.fit(release, Craft())


def test_the_choices_follow_the_formula_of_the_paper(tmp_path, candidates):
    """The same document many times over: its candidates are as frequent as exp(epsilon depth / 2) says."""
    text, number, epsilon = make_texts(1, seed=5)[0], 3000, 3.0
    contract = make_contract()
    path, _ = measure(make_system(candidates), [text] * number, tmp_path, epsilon=epsilon, batch_rows=500)
    (batch, *_) = embedded([text], tmp_path / "one", contract).reveal()
    above = np.array([
        [(points @ v >= f @ v).sum() for v in candidates.directions.T]
        for points in [candidates.recoder(batch[0])]
        for f in on_lattice(candidates.points)
    ])  # fmt: skip
    depth = np.minimum(above, len(batch[0]) - above).min(axis=1)
    seen = np.bincount(read_release(path).value.vector, minlength=len(candidates))
    expected = number * softmax(epsilon * depth / 2)
    assert depth.max() >= 1 and stats.chisquare(seen, expected).pvalue > 1e-6


@pytest.mark.parametrize("texts", [[""], ["One sentence"]])
def test_where_there_is_nothing_to_choose_by_any_candidate_is_chosen(tmp_path, candidates, texts):
    path, _ = measure(make_system(candidates), texts * 3000, tmp_path, epsilon=100.0, batch_rows=999)
    seen = np.bincount(read_release(path).value.vector, minlength=len(candidates))
    assert seen.sum() == 3000 and stats.chisquare(seen).pvalue > 1e-6


def test_data_without_documents_are_refused(tmp_path, candidates):
    with refused(DataError, "no documents", column=""):
        measure(make_system(candidates), make_texts(0, seed=0), tmp_path)


@pytest.mark.parametrize(("most", "each"), [(1, 10.0), (2, 5.0), (3, 3.33333333333)])
def test_the_documents_of_a_user_share_the_epsilon(tmp_path, candidates, most, each):
    contract = make_contract(user="who", most_documents=most)
    system = make_system(candidates)
    line = system.plan(contract, budget_of(contract))
    one = PureEvent(epsilon=each)
    assert line.part == "user" and line.event == (one if most == 1 else ComposedEvent(events=(one,) * most))
    path, desk = measure(system, make_texts(6, seed=3), tmp_path, contract)
    assert len(read_release(path).value.vector) == (3 if most == 1 else 6)
    assert Decimal("9.99") < desk.ledger.balance("a").spent_epsilon <= 10


@pytest.mark.parametrize("utility", ["worst", "sum"])
def test_choices_get_the_scale_that_is_charged(tmp_path, candidates, utility, monkeypatch):
    seen: list[float] = []
    monkeypatch.setattr(choices, "_chooser", lambda rows, scale: seen.append(scale) or np.zeros(len(rows), dtype=int))
    contract = make_contract(user="who", most_documents=2)
    measure(make_system(candidates, utility=utility), make_texts(3, seed=3), tmp_path, contract)
    sensitivity = {"worst": 2, "sum": 2 * candidates.directions.shape[1]}[utility]
    assert seen == [pure_scale(sensitivity, 5.0, adjacency=Adjacency.REPLACE_ONE)] == [2 * sensitivity / 5.0]


def test_neighbors_differ_in_the_scores_of_one_document(tmp_path, candidates, monkeypatch):
    """With the same choices, whatever a run leaves is the same but for one document's scores."""
    texts = make_texts(9, seed=3)
    replaced = [*texts[:4], ". ".join(["Horse horse horse", *texts[4].split(". ")[1:]]), *texts[5:]]
    scores: dict[str, list[np.ndarray]] = {}
    for name, own in (("one", texts), ("other", replaced)):
        taken = scores[name] = []
        monkeypatch.setattr(choices, "_chooser", lambda rows, _, t=taken: t.extend(rows) or np.ones(len(rows), int))
        path, _ = measure(make_system(candidates), own, tmp_path / name)
        taken.append(np.frombuffer(path.read_bytes(), dtype=np.uint8))
    differ = [not np.array_equal(*pair) for pair in zip(scores["one"], scores["other"], strict=True)]
    assert differ == [index == 4 for index in range(9)] + [False]
    assert 0 < np.abs(scores["one"][4] - scores["other"][4]).max() <= 2


def test_a_draw_that_is_killed_goes_on_with_the_choices_it_kept(tmp_path, candidates, monkeypatch):
    monkeypatch.setattr(draw, "LEAST_KEPT", 8)
    drawn: list[np.ndarray] = []
    left = [4]

    def choose(rows: np.ndarray, scale: float) -> np.ndarray:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        drawn.append(choices.exact_choices(rows, scale))
        return drawn[-1]

    monkeypatch.setattr(choices, "_chooser", choose)
    system, contract = make_system(candidates), make_contract()
    line = system.plan(contract, budget_of(contract))
    documents, desk = embedded(make_texts(30, seed=3), tmp_path / "data", contract, 4), desk_in(tmp_path, line)
    with pytest.raises(Killed):
        system.measure(documents, line, desk)
    assert len(drawn) == 3  # of which two were kept together
    assert [entry.kind for entry in desk.ledger.entries()][-2:] == ["reserve", "draw"]  # so it cannot be voided
    path = system.measure(documents, line, desk).value
    kept = np.concatenate([*drawn[:2], *drawn[3:]])
    assert np.array_equal(read_release(path).value.vector, kept) and len(kept) == 30
    assert not list((tmp_path / "private").glob("draw-*"))


def test_more_choices_than_parts_are_not_sealed(tmp_path, candidates, monkeypatch):
    two = pa.table({"id": ["a", "b"]})
    monkeypatch.setattr("dpmodels.methods.documents.deep_candidate.public_columns", lambda data: two)
    with pytest.raises(ArtifactError, match="another number of parts"):
        measure(make_system(candidates), make_texts(3, seed=3), tmp_path)


@pytest.mark.parametrize(
    ("contract", "budget", "name"),
    [
        ({"protects": "document"}, {}, "protects"),
        ({}, {"delta": 1e-6}, "delta"),
        ({}, {"epsilon": 200.0}, "epsilon"),
        ({"user": "who", "most_documents": 10**7}, {}, "most_documents"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_the_plan(candidates, contract, budget, name):
    documents = make_contract(**contract)
    with refused(InvalidArgument, name=name):
        make_system(candidates).plan(documents, budget_of(documents, **budget))
    with refused(Unsuitable, "another encoder"):
        make_system(candidates).plan(other := make_contract(encoder={"name": "hashed", "dim": 25}), budget_of(other))


def test_choices_for_parts_are_refused_where_their_number_is_hidden(tmp_path, candidates):
    system, contract = make_system(candidates), make_contract()
    line = system.plan(contract, budget_of(contract))
    release = read_release(measure(system, make_texts(2, seed=1), tmp_path)[0]).value
    for change in ({"part": ""}, {"budget": line.budget.model_copy(update={"adjacency": "add_or_remove_one"})}):
        changed = release.model_copy(update={"line": line.model_copy(update=change)})
        with pytest.raises(ArtifactError, match="how many there are"):
            system.fit(Released(changed), Craft())
