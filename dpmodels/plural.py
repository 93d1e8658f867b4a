"""Words in sentences for people."""

OF_VALUES, OF_CATEGORIES = " or ", ", "
"""What stands between the parts of a group's name: of values on an axis a range and states, and categories."""


def counted(number: int, noun: str) -> str:
    """Write how many there are of something, as ``1 fault`` and ``2 faults``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
