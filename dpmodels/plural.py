"""Words in sentences for people."""


def counted(number: int, noun: str) -> str:
    """Write how many there are of something, as ``1 fault`` and ``2 faults``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
