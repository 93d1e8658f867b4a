"""DP-MERF (Harder, Adamczewski, Park; AISTATS 2021): PEARL's frame with fixed random Fourier features and no critic.

This is a baseline: every frequency looks at every column, and all frequencies have one public bandwidth. Otherwise it
has the corrections of PEARL.
"""

from typing import Literal

from dpmodels.embeddings.fourier import FourierSpec
from dpmodels.generators.reconstruction import TrainingSpec
from dpmodels.methods.tables.pearl import Pearl, PearlMeasurement


class DpMerfMeasurement(PearlMeasurement):
    """Random Fourier features of one bandwidth."""

    frequencies: FourierSpec = FourierSpec()


class DpMerfTraining(TrainingSpec):
    """Training without a critic."""

    critic: Literal[False] = False


def dp_merf(measurement: DpMerfMeasurement, training: DpMerfTraining) -> Pearl:
    """Return DP-MERF."""
    return Pearl(measurement, training, "dp-merf")
