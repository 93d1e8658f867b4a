"""The kinds of data by name: the module that the stages ask of each, and the files that it hands over.

A method says which kind it is for (``registry``). A new kind is one module and one line; see docs/add-a-kind.md.
"""

from typing import NamedTuple

TABLE = r"synthetic/part-[0-9]{5}\.parquet|synthetic\.(csv|arrow|jsonl)"
USERS = r"synthetic/(parents|children)/part-[0-9]{5}\.parquet"
EMBEDDINGS, CLASSIFIER = r"embeddings/part-[0-9]{5}\.parquet", r"classifier\.safetensors|soft-labels\.parquet"
NOTHING = r"(?!)"
TABLES = ("table", "images", "users")


class Kind(NamedTuple):
    """What everybody must know of a kind of data.

    Attributes:
        module: that the stages ask; a name, since a stage imports it only when it needs it.
        product: a regular expression of the names of the files in a hand-off that this kind makes.
        contracts: the kinds of contract that it may be made of.
        command: that starts its runs.
    """

    module: str
    product: str
    contracts: tuple[str, ...] = TABLES
    command: str = "synthesize"


KINDS: dict[str, Kind] = {
    "table": Kind("tasks.kinds.tables", TABLE),
    "images": Kind("tasks.kinds.tables", TABLE),
    "users": Kind("tasks.kinds.users", USERS),
    "documents": Kind("tasks.kinds.documents", TABLE, ("documents",)),
    "each document": Kind("tasks.kinds.each_document", EMBEDDINGS, ("each document",), "embed-documents"),
    "federation": Kind("tasks.kinds.classifier", CLASSIFIER, ("federation",), "federate"),
    "discovery": Kind("tasks.kinds.discovery", NOTHING, ("discovery",), "schema discover"),
}
