"""Whether a figure is good, to be used with care, or of no use: one word everywhere, by what it is within.

Privacy: post-processing of a publishable report.
"""

GOOD, CARE, BAD = MARKS = ("good", "care", "bad")


def grade(error: float, close: float, far: float) -> str:
    """Return what a figure is whose error is so large: good up to ``close``, and of no use beyond ``far``."""
    return GOOD if error <= close else CARE if error <= far else BAD
