"""The report on embedded documents: what it says of epsilon, its map, and that it is a page like the others."""

import numpy as np
import pytest

from dpmodels.accounting.events import ComposedEvent, PureEvent
from dpmodels.contract.documents import Documents, Encoder
from dpmodels.pages.report import render
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line
from dpmodels.report.embedded import CLUSTERS, WITHOUT_SENTENCES, summarise_embedded
from dpmodels.report.terms import cautions


def line_of(epsilon: float = 10.0, documents: int = 1) -> Line:
    user = {"user": "author", "most_documents": documents} if documents > 1 else {}
    contract = Documents(
        name="letters", text="text", protects="sentence", encoder=Encoder(name="hashed", dim=8), **user
    )
    event = PureEvent(epsilon=epsilon)
    return Line(
        part=contract.part,
        method="deep-candidate",
        contract=contract,
        budget=PrivacyBudget(epsilon=epsilon * documents, delta=0, unit=contract.unit, adjacency=contract.adjacency),
        event=event if documents == 1 else ComposedEvent(events=(event,) * documents),
        measurement={},
        fingerprint="",
    )


def facts_of(line: Line, candidates: np.ndarray, chosen: list[int]) -> dict:
    return summarise_embedded(line, "the-entry", "0" * 64, candidates, np.array(chosen, dtype=np.int64))


def test_epsilon_is_told_for_a_sentence_and_for_a_document_and_the_warning_is_loud():
    candidates = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    facts = facts_of(line_of(), candidates, [3] * 5 + [7] * 2 + [9])
    assert [one["epsilon"] for one in facts["privacy"]["sentences"]] == [10, 20, 50, 100, 250]
    assert facts["privacy"]["sentences"][-1]["factor"] == "3.75e+108" and facts["documents"] == 8
    page = render(facts)
    notice = page[page.index('class="notice"') : page.index("<header>")]
    assert (
        "WEAK FOR A WHOLE DOCUMENT" in notice
        and "--method moments" not in page
        and WITHOUT_SENTENCES["deep-candidate"][:60] in page
    )
    assert "<script" not in page and page.count('class="point"') == facts["candidates_chosen"] == 3


def test_the_map_shows_each_chosen_candidate_once_and_every_document_is_in_a_cluster():
    candidates = np.random.default_rng(1).normal(size=(100, 8)).astype(np.float32)
    chosen = np.random.default_rng(2).integers(0, 100, 500).tolist()
    facts = facts_of(line_of(), candidates, chosen)
    assert sum(one["documents"] for one in facts["clusters"]) == 500 == sum(point[2] for point in facts["map"])
    assert len(facts["clusters"]) == CLUSTERS and 0 < facts["map_explains"] < 1
    assert max(abs(place) for point in facts["map"] for place in point[:2]) <= 1


@pytest.mark.parametrize("number", [1, 2, 3])
def test_few_or_equal_candidates_are_drawn_all_the_same(number: int):
    facts = facts_of(line_of(), np.ones((number, 1), dtype=np.float32), [0, 0])
    assert len(facts["clusters"]) == 1 and "<svg" in render(facts)


def test_the_documents_of_a_user_add_up_in_what_is_said():
    told = cautions(line_of(2.0, documents=5))
    assert "epsilon=2 hides what ONE sentence" in told[0] and "at most 5 documents costs epsilon=10" in told[1]
