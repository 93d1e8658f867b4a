"""What the terminal says of bands that begin elsewhere than they were asked to."""

import pandas as pd

from flows.command_line.show_means import moved_bands


def test_bands_that_begin_where_the_nearest_counted_range_does_are_named() -> None:
    means = pd.DataFrame(
        {"age_low": [0.0, 22.0, 22.0, None], "day_low": pd.to_datetime(["2025-01-02", "2025-06-06"] * 2)}
    )
    says = "the release counts ranges, and joins them whole: bands begin for "
    assert moved_bands(means, {"age": ["0", "18", "65"]}) == says + "age at 0, 22"
    assert moved_bands(means, {"age": [0, 22, 65], "ward": None}) == ""
    assert moved_bands(means, {"age": 10}) == ""
    days = {"day": ["2025-01-01", "2025-06-01", "2026-01-01"], "age": [0, 18, 65]}
    assert moved_bands(means, days) == f"{says}day at 2025-01-02, 2025-06-06 and for age at 0, 22"
