"""Names for the arrays that most rooms handle."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Indices = NDArray[np.int32]
Mask = NDArray[np.bool_]
