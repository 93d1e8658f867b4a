"""Names that a version of nacre gives to mechanisms and to the quantities that noise is added to.

Pages print them, and no manifest has the settings that they follow from; so each has a place here, which a test holds
against what every method plans (tests/hand_off/test_product.py).
"""

import re

from dpmodels.contract.federation import CENTRAL
from dpmodels.contract.tree import TABLE_NAME

MECHANISMS = {
    "",
    "basis",
    "center",
    "certainty head",
    "certainty scores alone",
    "classifying head",
    "counts of keys",
    "DP-PCA",
    "DP-SGD",
    "exponential, as the Gaussian that covers it",
    "fine one-way",
    "joint tables",
    "mean",
    "moments by class",
    "moments of the classes",
    "names of keys",
    "one- and two-way",
    "records in a class",
    "records in a cluster and class",
    "scales",
    "scores on the real rows",
    "tables of the network",
    "zoom",
    CENTRAL,
}
NUMBERED = re.compile(r"(DP-EM|DP k-means) [0-9]{1,4}")
"""Mechanisms of an algorithm that looks more than once."""
WITHIN = ", where one record adds at most 1"
NOISES = {
    "documents in a class, second look",
    "documents, first look",
    "images in a class",
    "images in a class, first look",
    "images in a class, second look",
    "images, first look",
    "number of records in a class",
    "records in a cell of a table of average size",
    "records in a cell of one column and class",
    "records in a cell of one column, at each zoom",
    "records in a fine cell of one column",
    "records in a fine cell of one column and class",
    "records in a merged cell of one column and class, at most",
    "records in a pair of cells of two columns and class",
    "records in a pair of merged cells of two columns and class, about",
    "records in a pair of merged cells of two columns and class, at most",
    "records in a pair of merged cells of two columns, about",
    "records in a pair of merged cells of two columns, where a class is small",
    "records in two halves of two columns, about",
    "score of a family, in records (Gumbel)",
    "sum of a coordinate over a class, where the clip norm is 1",
    "sum of a coordinate over all documents, whose norm is 1",
    "sum of a cosine or sine over a class, in units of one record",
    "sum of codes over all images, where the clip norm is 1",
    "sum of squares of a code over a class, where the clip norm is 1",
    "sum of squares of a code over all images, where the clip norm is 1",
    "sum of squares of a coordinate over all documents, where the clip norm is 1",
    f"gradient of a step{WITHIN}",
}
ASKED_FOR = "records in a pair of merged cells of two columns that the workload asks for ({text}), about"
JOINT = "records by which a cell of the joint table that the workload asks for ({text}) departs from its pairs, at most"
OF_TABLE = re.compile(f"{TABLE_NAME[:-1]}: ")


def is_mechanism(text: str) -> bool:
    """Tell whether a mechanism of some method has this name, at a table of a tree with the table's name before it."""
    text = OF_TABLE.sub("", text)
    return text in MECHANISMS or NUMBERED.fullmatch(text) is not None


def is_noise(text: str, workload: tuple[str, ...] = ()) -> bool:
    """Tell whether some method adds noise to a quantity of this name; ``workload``: texts of the contract's tables."""
    text, asked_for = OF_TABLE.sub("", text), {each.format(text=one) for one in workload for each in (ASKED_FOR, JOINT)}
    of_look = text.endswith(WITHIN) and is_mechanism(text.removesuffix(WITHIN))
    return text in NOISES | asked_for or of_look
