"""Noise that is the same in every run, and how true noise is held to its standard deviation."""

import numpy as np
from scipy import stats

from dpmodels.mechanisms.gaussian import Sampler

ALPHA = 1e-6  # a false alarm in a million runs


def has_stddev(sample: np.ndarray, stddev: float) -> bool:
    """Accept if a two-sided chi-square test of the variance and a Kolmogorov-Smirnov test of the shape both accept."""
    quantile = stats.chi2(len(sample)).cdf((sample / stddev).astype(float) @ (sample / stddev))
    shape = stats.kstest(sample / stddev, "norm").pvalue
    return bool(ALPHA / 2 < quantile < 1 - ALPHA / 2 and shape > ALPHA)


def repeated_noise(seed: int = 0) -> Sampler:
    """Return a sampler for ``gaussian._sampler`` that draws the same in every run: for what holds for most noise."""
    noise = np.random.default_rng(seed)
    return lambda values, stddev: values + np.rint(noise.normal(0, stddev, len(values))).astype(np.int64)
