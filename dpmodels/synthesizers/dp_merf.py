"""DP-MERF (Harder, Adamczewski, Park; AISTATS 2021): PEARL's frame with fixed random Fourier features and no critic.

The baseline. Every frequency looks at every column and all have one public bandwidth; corrected like PEARL otherwise.
"""

from typing import Literal

from dpmodels.embeddings.fourier import FourierSpec
from dpmodels.generators.reconstruction import TrainingSpec
from dpmodels.synthesizers.pearl import Pearl, PearlMeasurement


class DpMerfMeasurement(PearlMeasurement):
    """Random Fourier features of one bandwidth."""

    frequencies: FourierSpec = FourierSpec()


class DpMerfTraining(TrainingSpec):
    """Training without a critic."""

    critic: Literal[False] = False


def dp_merf(measurement: DpMerfMeasurement, training: DpMerfTraining) -> Pearl:
    """Make the baseline."""
    return Pearl(measurement, training, "dp-merf")
