"""A server that offers public vectors, or a map to vectors, which are not what the contract says that they are.

Each lie was an exact question about a client's records, or a release with a fraction of the noise that it was charged.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmodels.contract.dropped import FAILED
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import FrozenFeatures
from dpmodels.errors import FileDamaged, Unsuitable
from dpmodels.methods.federations.public_part import PublicPart, features_of, tensors_of
from dpmodels.privacy import Sensitive
from dpmodels.releases.plan import Former, Plan
from dpmodels.statistics.class_moments import ClassMoments
from dpmodels.statistics.component_moments import Points
from dpmodels.statistics.logistic import Logistic, transform_optimum
from tasks.kinds.clients import shielded
from tasks.kinds.federation import PUBLIC, create
from tasks.run.store import Run
from tasks.stages.federate import take_part
from tests.kit.wards import begun, ledger_of

pytestmark = pytest.mark.processes

RECORDS = {"records": 300}


def public_of(run: Run) -> PublicPart:
    return PublicPart.of_bytes((run.control / PUBLIC).read_bytes())


def offer(run: Run, public: PublicPart, method: str = "federated-heads", **lies: object) -> Run:
    """Plan the first client's line of a public part and of a contract that says something else of it."""
    party, line = run.parties[0], run.plan.release
    contract = Federation.model_validate({**line.contract.model_dump(), **public.terms, **lies})
    measurement = RECORDS if method == "federated-heads" else {}
    party.create(party.settings, Plan(lines=(create(method, measurement, public).plan(contract, line.budget),)))
    (run.control / PUBLIC).write_bytes(public.to_bytes())
    return party


def test_more_public_vectors_than_the_contract_counts_do_not_ask_for_a_clients_size(tmp_path: Path) -> None:
    """The number that can be certified was the contract's: a client failed if it held more records than asked for."""
    run = begun(tmp_path)
    public = public_of(run)
    more = replace(public, negatives=np.concatenate([public.negatives] * 5))
    for size in (299, 300):  # it holds 300, and may hold 1000
        party = offer(run, more, negatives=len(more.negatives) + size - 1000)
        assert shielded(take_part, party) == FAILED
    assert not [entry for entry in ledger_of(tmp_path).entries() if entry.kind == "reserve"]


def test_one_feature_that_the_contract_counts_as_a_hundred_is_not_released(tmp_path: Path) -> None:
    """It was copied into the place of every feature: a record moved the release by fifty times what was charged."""
    run = begun(tmp_path)
    public = public_of(run)
    old = public.features
    thin = FrozenFeatures(old.network, old.mean, np.ascontiguousarray(old.turn[:, :1]), old.radius)
    one = replace(public, features=thin, negatives=np.ascontiguousarray(public.negatives[:, :1]))
    party = offer(run, one, "federated-moments", features=100)
    assert shielded(take_part, party) == FAILED and not party.finished("sanitize")
    assert not [entry for entry in ledger_of(tmp_path).entries() if entry.kind == "reserve"]


def test_a_line_that_calls_itself_by_another_hash_is_not_charged(tmp_path: Path) -> None:
    """Only lines of format 1 keep a hash that is not theirs: the ledger would name a plan that there never was."""
    run = begun(tmp_path)
    party, line = run.parties[0], run.parties[0].plan.release
    party.create(party.settings, Plan(lines=(line.model_copy(update={"former": Former(hash="0" * 64)}),)))
    assert shielded(take_part, party) == FAILED
    assert not [entry for entry in ledger_of(tmp_path).entries() if entry.kind == "reserve"]


def test_vectors_of_another_size_have_no_proof_and_are_neither_summed_nor_solved_for() -> None:
    z, label = np.full((3, 1), 4096), np.zeros(3, dtype=np.int64)
    with pytest.raises(Unsuitable, match="of another size"):
        ClassMoments(3, 100, 0.15, 1.0).total(z, label)
    with pytest.raises(Unsuitable, match="of another size"):
        transform_optimum(Logistic(2, 3, 10.0, 0.3, False, 10), Sensitive([Points(z, label)]), 0)


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), 1e-320, float("inf")])
def test_a_clip_norm_that_is_none_does_not_ask_whether_a_value_is_missing(tmp_path: Path, radius: float) -> None:
    """A record that has a missing value is a vector of zeros, and zero by zero passed every norm: its client failed."""
    public = public_of(begun(tmp_path))
    public.features.radius = radius
    with pytest.raises(FileDamaged):
        PublicPart.of_bytes(public.to_bytes())


def test_a_map_that_knows_the_place_of_a_record_is_none(tmp_path: Path) -> None:
    """With a mean for each row of a block a record that is added could move those after it."""
    public = public_of(begun(tmp_path))
    given = tensors_of(public.features)
    for name, wrong in (("mean", given["mean"].repeat(64, 1)), ("turn", given["turn"].repeat(64, 1, 1))):
        with pytest.raises(ValueError, match="not affine"):
            features_of(public.architecture, public.model, {**given, name: wrong})
    with pytest.raises(FileDamaged):
        PublicPart.of_bytes(replace(public, negatives=np.ascontiguousarray(public.negatives[:, :1])).to_bytes())
