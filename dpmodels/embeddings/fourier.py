"""Random Fourier features of a Gaussian kernel, as in DP-MERF: one bandwidth; every frequency sees the whole record.

    phi(x) = ( e^{i t_j . x} )_j / sqrt(k),        t_j ~ N(0, 1 / bandwidth^2)

They are a characteristic function at frequencies of another law: norm bound, integer lattice and sums are those of
embeddings/characteristic.py.

Source: Rahimi and Recht, "Random features for large-scale kernel machines" (2007).
"""

from typing import Annotated, Literal

from pydantic import Field

from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction, Frequencies, FrequencySpec


class FourierSpec(Frequencies):
    """The public description of the frequencies.

    Attributes:
        bandwidth: of the kernel, where a category's coordinate and a value's whole interval have length 1.
    """

    kind: Literal["fourier_features"] = "fourier_features"
    bandwidth: Annotated[float, Field(gt=0)] = 1.0


class FourierFeatures(CharacteristicFunction):
    """k frequencies of one normal law over all of a layout's design coordinates."""

    def __init__(self, spec: FourierSpec, layout: Layout) -> None:
        scale = 1 / spec.bandwidth
        law = {"scale_low": scale, "scale_high": scale, "value_scale": 1.0, "columns_per_frequency": 0}
        super().__init__(FrequencySpec.model_validate({"count": spec.count, "seed": spec.seed, **law}), layout)
