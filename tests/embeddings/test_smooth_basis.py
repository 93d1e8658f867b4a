"""The public basis of images is the same on every processor, and the signs of another one are found again."""

import hashlib
import os
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest

from benchmarks.common import ROOT
from dpmodels.audit.made import pictures
from dpmodels.embeddings.image_moments import flipped_bases, smooth_basis
from dpmodels.embeddings.pose import Frame
from dpmodels.errors import ArtifactError
from dpmodels.methods.images.image_moments import NacreImages
from dpmodels.privacy import PrivacyBudget

pytestmark = pytest.mark.processes

SQUARE, WIDE = Frame(28, 28), Frame(8, 12)
KERNELS = ("Prescott", "Nehalem", "Haswell")  # OpenBLAS's, for processors that are older than any that runs this
PRINTED = (
    "import hashlib; from dpmodels.embeddings.image_moments import smooth_basis; "
    "from dpmodels.embeddings.pose import Frame; "
    "print(*(hashlib.sha256(smooth_basis(Frame(*size), 60, s).tobytes()).hexdigest() "
    "for size in ((28, 28), (8, 12)) for s in (0.8, 1.0, 1.5)))"
)


def test_it_is_the_same_for_every_kernel_of_the_library() -> None:
    said = set()
    for kernel in KERNELS:
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-c", PRINTED]
        said.add(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(said) == 1 and len(said.pop().split()) == 6


@pytest.mark.parametrize("frame", [SQUARE, WIDE], ids=["square", "wide"])
def test_every_way_of_turning_odd_functions_round_is_a_basis_of_its_own(frame: Frame) -> None:
    plain = smooth_basis(frame, 20, 1.0)
    ways = list(islice(flipped_bases(frame, 20, 1.0), 64))
    assert len({hashlib.sha256(basis.tobytes()).digest() for _, basis in ways}) == len(ways) > 2
    for flipped, basis in ways:
        assert np.array_equal(smooth_basis(frame, 20, 1.0, flipped), basis)
        assert np.array_equal(np.abs(basis), np.abs(plain))


def test_a_release_of_another_processor_is_read_by_the_signs_that_it_was_measured_by() -> None:
    system, schema = NacreImages(), pictures.make_schema()
    line = system.plan(schema, PrivacyBudget(epsilon=1.0, delta=1e-5, unit=schema.unit))
    assert system.of(line).code.flipped == ((), ())
    size = system.of(line).code
    flipped, basis = list(flipped_bases(size.frame, size.basis.shape[1], system.measurement.smoothness))[-1]
    measured_by = hashlib.sha256(basis.astype("<i8").tobytes()).hexdigest()
    other = line.model_copy(update={"fingerprint": measured_by})
    assert system.of(other).code.flipped == flipped != ((), ())
    assert np.array_equal(system.of(other).code.basis, basis)
    with pytest.raises(ArtifactError):
        system.of(line.model_copy(update={"fingerprint": 64 * "0"}))
