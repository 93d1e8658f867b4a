"""Figures of the normal distribution that errors are stated by."""

import math

HALF_NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal."""
