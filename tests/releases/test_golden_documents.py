"""What was paid for lasts: releases about single documents, and the public file that they name, are read for ever."""

import json

import numpy as np
import pytest

from dpmodels.text.candidates import read_candidates
from tests.releases.make_golden_documents import GOLDEN, PUBLIC, facts_of, systems

FACTS = json.loads((GOLDEN / "facts.json").read_text())


def test_the_public_file_is_read_and_written_to_the_same_bytes():
    assert read_candidates(PUBLIC).to_bytes() == PUBLIC.read_bytes()
    assert FACTS.keys() == systems(read_candidates(PUBLIC)).keys()


@pytest.mark.parametrize("method", sorted(FACTS))
def test_a_release_is_read_and_embeds_its_documents_as_it_did(method):
    stated = dict(FACTS[method])
    found = facts_of(systems(read_candidates(PUBLIC))[method], GOLDEN / f"{method}.parquet")
    assert np.allclose(found.pop("embeddings"), stated.pop("embeddings"), rtol=0, atol=1e-5)
    assert found.items() <= stated.items()
