"""Bounds of time, on machines of different speed."""

import time

REFERENCE = 0.1
"""The processor seconds that the loop below takes where the bounds were set."""


def slowness() -> float:
    """Return how much slower than there this machine runs Python now, or 1 where it is as fast."""
    began = time.process_time()
    total = 0
    for number in range(2_000_000):
        total += number & 7
    return max(1.0, (time.process_time() - began) / REFERENCE)
