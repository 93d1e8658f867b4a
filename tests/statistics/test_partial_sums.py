"""Exact sums of parties: one record moves their total by what it moves its own party's, however many there are."""

from pathlib import Path

import numpy as np
import pytest

from dpmodels.errors import Unsuitable
from dpmodels.privacy import Sensitive
from dpmodels.statistics.class_moments import ClassMoments
from dpmodels.statistics.component_moments import Z_BITS
from dpmodels.statistics.partial_sums import load_sums, transform_added, transform_keep

SIZE, CLASSES = 5, 3


def parties(number: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((number, 20, SIZE))
    points = np.rint(points / np.linalg.norm(points, axis=2, keepdims=True) * (2**Z_BITS - 3)).astype(np.int64)
    return [(own, rng.integers(0, CLASSES, len(own))) for own in points]


def total(moments: ClassMoments, held: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    return transform_added(Sensitive([moments.total(z, label) for z, label in held]), moments.dim).reveal()


@pytest.mark.parametrize("number", [1, 3, 40])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_record_moves_the_total_by_no_more_than_a_record_may(number: int, replaced: bool) -> None:
    moments = ClassMoments(CLASSES, SIZE, 0.15, 1.0)
    bound = moments.replaced_sensitivity if replaced else moments.l2_sensitivity
    far = 2**Z_BITS * np.eye(SIZE, dtype=np.int64)[:1]
    moved = []
    for place in range(number):
        held = parties(number)
        z, label = held[place]
        # the record that lies farthest out comes, or takes the place of its opposite in another class
        kept = (np.concatenate([z, -far]), np.append(label, 1)) if replaced else (z, label)
        before = total(moments, [*held[:place], kept, *held[place + 1 :]])
        with_it = np.concatenate([z, far]), np.append(label, 0)
        moved.append(np.linalg.norm(total(moments, [*held[:place], with_it, *held[place + 1 :]]) - before))
    assert max(moved) <= bound
    assert max(moved) > (0.5 if replaced else 0.99) * bound  # a bound half as large would be passed


def test_what_is_kept_is_read_back_and_nothing_else_is_taken_for_a_sum(tmp_path: Path) -> None:
    vector = np.arange(-3, 4, dtype=np.int64)
    transform_keep(Sensitive(vector), tmp_path / "a.npy")
    assert np.array_equal(load_sums([tmp_path / "a.npy"], 7).reveal()[0], vector)
    np.save(tmp_path / "floats.npy", np.zeros(7))
    np.save(tmp_path / "objects.npy", np.array([{}] * 7), allow_pickle=True)
    (tmp_path / "text.npy").write_text("sums")
    for wrong in ("floats", "objects", "text", "missing"):
        with pytest.raises(Unsuitable, match="missing, or is not of the size"):
            load_sums([tmp_path / f"{wrong}.npy"], 7)
    with pytest.raises(Unsuitable):
        load_sums([tmp_path / "a.npy"], 8)
