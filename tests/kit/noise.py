"""How noise is held to its standard deviation."""

import numpy as np
from scipy import stats

ALPHA = 1e-6  # a false alarm in a million runs


def has_stddev(sample: np.ndarray, stddev: float) -> bool:
    """Accept if a two-sided chi-square test of the variance and a Kolmogorov-Smirnov test of the shape both accept."""
    quantile = stats.chi2(len(sample)).cdf((sample / stddev).astype(float) @ (sample / stddev))
    shape = stats.kstest(sample / stddev, "norm").pvalue
    return bool(ALPHA / 2 < quantile < 1 - ALPHA / 2 and shape > ALPHA)
