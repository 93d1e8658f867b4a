"""The noise of counts of pairs of merged cells, by the names that plans and reports give it."""

from collections.abc import Mapping, Sequence

import numpy as np

from dpmodels.contract.workload import Tables, pair_weights
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.products import Products

PAIR = "records in a pair of merged cells of two columns"
ABOUT = f"{PAIR}, about"
SMALL = "where a class is small"
SMALL_CLASS = f"{PAIR}, {SMALL}"
HALVES = "records in two halves of two columns, about"


def measure_of(name: str, noise: Mapping[str, float]) -> str:
    """Say of which pairs a figure that is stated as `about` is the mean, and how large it gets; else nothing.

    A release takes from the noise of pairs what it gives to first moments where a class turns out small.
    """
    if "about" not in name:
        return ""
    most, text = noise.get(name.replace("about", SMALL)), "the mean over such pairs"
    text += " if no class is small" if PAIR in name else ""
    return f"{text}, and up to {most:.4g} if one is" if most else text


def pair_noise(second: Moments, steps: float, workload: Sequence[Tables]) -> dict[str, float]:
    """Return the mean noise_stddev of a count of a pair: of pairs in general, and of each set that is asked for.

    ``steps``: the standard deviation of the noise, in lattice steps. Units: records.
    """
    if isinstance(second, Products):
        return {HALVES: steps * float(second.count_stddevs[0][second.pairs].mean())}
    names, (class_stddevs, stddevs), paired = second.partition.names, second.count_stddevs, np.triu(second.paired)
    if not paired.any():
        return {}
    weights = pair_weights(workload, names)
    plain = paired & (weights == 1) if (paired & (weights == 1)).any() else paired
    noise = {f"{PAIR} and class, about": float(class_stddevs[plain].mean())} if second.partition.classes > 1 else {}
    noise |= {ABOUT: float(stddevs[plain].mean())}
    for tables in workload:
        asked = np.zeros_like(paired)
        asked[tuple(np.array(list(tables.pairs(names)), dtype=int).reshape(-1, 2).T)] = True
        if not (asked & paired).any():
            continue
        noise[f"{PAIR} that the workload asks for ({tables.text}), about"] = float(stddevs[asked].mean())
    return {name: steps * stddev for name, stddev in noise.items()}
