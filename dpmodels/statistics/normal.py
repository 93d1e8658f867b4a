"""Figures of the normal distribution that errors are stated by."""

import math

HALF_NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal."""
NORMAL_95 = 1.959964
"""What the absolute value of a standard normal exceeds in one of twenty."""
