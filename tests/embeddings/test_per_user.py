"""A user moves a weighed sum as far as one record does, whatever number of rows the user has."""

import numpy as np
import pytest

from dpmodels.audit.data import inserted
from dpmodels.audit.made import shop
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.per_user import UserMoments, UserResiduals, UserZoomCounts
from dpmodels.embeddings.products import UserProducts, halves_of
from dpmodels.embeddings.zoom import Zoom
from tests.kit.records import SCHEMA, user_of

FINE = Partition.fine(SCHEMA.flat, 8)
EMBEDDINGS = {
    "counts": UserMoments(FINE, 70_001, 0, 1),
    "pairs": UserMoments(FINE, 70_001, 65_537, 1),
    "residuals": UserResiduals(FINE, 70_001, 65_537 << 4, 1, None, (8, 3)),
    "products": UserProducts(FINE, halves_of([np.ones(size, int) for size in FINE.sizes]), 70_001, 65_537, 1),
    "zoom": UserZoomCounts(Zoom.coarse(FINE, 4, 16), 1),
}


@pytest.mark.parametrize("place", [0, 40, -1])
@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("name", EMBEDDINGS)
def test_a_user_inserted_anywhere_moves_a_sum_by_one_record_at_most(name, number, place):
    embedding, crowd = EMBEDDINGS[name], shop.make_records(40)
    before = embedding.lattice_sum(crowd).numpy()
    for alike in (True, False):
        user = user_of(number, alike)
        after = embedding.lattice_sum(inserted(crowd, user, place % (len(crowd) + 1))).numpy()
        moved = np.linalg.norm((after - before).astype(np.float64))
        assert moved <= embedding.l2_sensitivity
        assert number > 1 or moved > 0.999 * embedding.l2_sensitivity  # the bound is reached, so it is not loose
        assert (after - before == embedding.lattice_sum(user).numpy()).all()  # nobody else moves


def test_rows_alike_in_all_but_their_position_nearly_reach_the_bound():
    embedding = EMBEDDINGS["counts"]
    moved = np.linalg.norm(embedding.lattice_sum(user_of(6, alike=True)).numpy().astype(np.float64))
    assert 0.9 < moved / embedding.l2_sensitivity <= 1


def test_every_user_weighs_one_in_every_column():
    embedding, crowd = EMBEDDINGS["pairs"], shop.make_records(40)
    counts = embedding.unpack(embedding.lattice_sum(crowd).numpy())[0][0]
    for column in np.split(counts, FINE.offsets[1:-1]):
        assert column.sum() == pytest.approx(40, rel=1e-4)


def test_rows_that_are_not_weighed_would_move_a_sum_too_far():
    """The test above can fail: the same rows in a sum that does not weigh them move it by several records."""
    plain, user = Moments(FINE, 70_001, 0, 1), user_of(6, alike=True)
    moved = np.linalg.norm(plain.lattice_sum(user).numpy().astype(np.float64))
    assert moved > 5 * plain.l2_sensitivity
