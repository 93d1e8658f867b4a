"""What is said beside means: of which category they are shares, where bands lie, and what these leave out."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

VALUE, BANDS, NOTES = "value", "bands", "notes"
"""Under which a frame's ``attrs`` have the category of shares, the bands of each column, and sentences."""


NO_RANGE = "no counted range has its middle in it"
"""Why a band has no mean."""


class Bands(NamedTuple):
    """The bands that the ranges of a column were joined to.

    Attributes:
        begins: where each begins, in order.
        end: where the last ends.
        is_cut: whether an edge lies within a counted range, so that a band begins or ends elsewhere.
        leaves_lower: whether values below the first edge are left out.
        leaves_higher: whether values from the last edge on are left out.
        uncounted: the edges of those between its ends in which no counted range has its middle.
    """

    begins: tuple[str, ...]
    end: str
    is_cut: bool
    leaves_lower: bool
    leaves_higher: bool
    uncounted: tuple[tuple[Any, Any, str], ...] = ()


def said_of(attrs: Mapping[Hashable, Any], column: str) -> dict[Hashable, Any]:
    """Return what a frame of means of a column says in ``attrs``: the category, if any, and sentences of the rest."""
    value, bands = attrs.get(VALUE), attrs.get(BANDS, {})
    shares = [] if value is None else [f"each mean is the share of rows whose {column} is {value}"]
    notes = [*shares, *filter(None, (moved_bands(bands), left_out(bands), uncounted(bands)))]
    said: dict[Hashable, Any] = {} if value is None else {VALUE: value}
    return said | ({NOTES: notes} if notes else {})


def moved_bands(bands: Mapping[str, Bands]) -> str:
    """Say where bands lie of which one begins or ends elsewhere than it was asked to, since ranges are joined whole."""
    moved = [
        f"{name} at {', '.join(one.begins)} (the last ends at {one.end})"
        for name, one in bands.items()
        if one.is_cut and one.begins
    ]
    if not moved:
        return ""
    return f"the release counts ranges, and joins them whole: bands begin for {' and for '.join(moved)}"


def left_out(bands: Mapping[str, Bands]) -> str:
    """Say which values lie beyond the edges of bands, and so are in no mean; empty of none."""
    beyond = list[str]()
    for name, one in bands.items():
        sides = (
            {f"below {one.begins[0]}": one.leaves_lower, f"above {one.end}": one.leaves_higher} if one.begins else {}
        )
        if left := [side for side, is_left in sides.items() if is_left]:
            beyond.append(f"{name} {' and '.join(left)}")
        elif not one.begins and (one.leaves_lower or one.leaves_higher):
            beyond.append(f"all of {name}")
    return f"what lies beyond the edges is left out: {' and '.join(beyond)}" if beyond else ""


def uncounted(bands: Mapping[str, Bands]) -> str:
    """Say in which bands no counted range has its middle; empty of none."""
    of = [f"{name} from {', '.join(each[2] for each in one.uncounted)}" for name, one in bands.items() if one.uncounted]
    return f"no counted range has its middle in the bands of {' and of '.join(of)}: make them wider" if of else ""


def with_uncounted(means: "pd.DataFrame", name: str, ends: Sequence[str], bands: Bands) -> "pd.DataFrame":
    """Add a row with a reason, and no figures, for each band that is not counted of the one column of groups."""
    import pandas as pd

    if not bands.uncounted:
        return means
    low, high = ends
    rows = [{name: said, low: start, high: end, "reason": NO_RANGE} for start, end, said in bands.uncounted]
    whole = pd.concat([means, pd.DataFrame(rows).astype(means[[low, high]].dtypes.to_dict())], ignore_index=True)
    return whole.sort_values(low, kind="stable", ignore_index=True)
