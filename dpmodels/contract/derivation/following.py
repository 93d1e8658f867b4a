"""Which columns cannot be read where others are not: what is derived of them, and what is computed from them."""

from collections.abc import Collection, Mapping, Set


def unread_with(names: Collection[str], operands: Mapping[str, Set[str]]) -> set[str]:
    """Return columns that are not read, with all that follows from them, whatever the number of steps between.

    Args:
        names: of the columns that are not read.
        operands: of each derived or computed column those that it is made from.
    """
    unread = {*names}
    while more := {name for name, made_from in operands.items() if made_from & unread} - unread:
        unread |= more
    return unread
