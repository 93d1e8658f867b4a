"""The kinds of data by name: the module that the stages ask of each, and the files that it hands over.

A method says which kind it is for (``registry``). A new kind is one module and one line; see docs/add-a-kind.md.
"""

from typing import NamedTuple

TABLE = r"synthetic/part-[0-9]{5}\.parquet|synthetic\.(csv|arrow|jsonl)"
TREE = r"synthetic/[a-z][a-z0-9_]*/part-[0-9]{5}\.parquet"
USERS = r"synthetic/(parents|children)/part-[0-9]{5}\.parquet"
EMBEDDINGS, CLASSIFIER = r"embeddings/part-[0-9]{5}\.parquet", r"classifier\.safetensors|soft-labels\.parquet"
NOTHING = r"(?!)"
TABLES = ("table", "images", "users")
SYNTHESIZED = (*TABLES, "tree", "documents")
"""Kinds of contract that one method of synthesis after the other may be for."""


class Kind(NamedTuple):
    """What everybody must know of a kind of data.

    Attributes:
        module: of tasks/kinds, which the stages ask and import only when they need it.
        product: a regular expression of the names of the files in a hand-off that this kind makes.
        contracts: the kinds of contract that it may be made of.
        command: that starts its runs.
    """

    module: str
    product: str
    contracts: tuple[str, ...] = TABLES
    command: str = "synthesize"


KINDS: dict[str, Kind] = {
    "table": Kind("tables", TABLE),
    "images": Kind("tables", TABLE),
    "users": Kind("users", USERS),
    "tree": Kind("trees", TREE, ("tree",)),
    "documents": Kind("documents", TABLE, ("documents",)),
    "each document": Kind("each_document", EMBEDDINGS, ("each document",), "embed-documents"),
    "federation": Kind("classifier", CLASSIFIER, ("federation",), "federate"),
    "discovery": Kind("discovery", NOTHING, ("discovery",), "schema discover"),
}
