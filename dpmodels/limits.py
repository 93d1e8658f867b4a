"""How large a file may be that is read whole, before it is read: the sizes in one place, in bytes.

Each is far above what nacre writes or a person types, and far below what would fill the memory of whoever reads it.
Tables have no such limit: they are as large as their data. A release may be as large as its file allows: noise cannot
be packed. Of headers the libraries refuse more than 100 MB: safetensors of its header, Arrow of each text in a Parquet
file's footer.
"""

import json
from typing import Any

LARGEST_YAML = 2**21
"""A schema, a contract, a configuration or a list of deployments; parsing it takes seconds, not minutes."""
LARGEST_MANIFEST = 2**22
"""Room for the hashes of the files of 5e9 rows."""
LARGEST_SIGNATURE = 2**12
LARGEST_REPORT = 2**24
"""``report.json``, whose sheet of images has at most 9 MB; reading a text may take twelve times its size."""
LARGEST_LISTING = 2**26
"""The digests of a table's files in an object store, or another file of a hand-off there that is fetched to be read."""
LARGEST_CARD = 2**24
LARGEST_KEY = 2**16
"""A key in a PEM file."""
MOST_COLUMNS = 1000
"""Columns of a table of a new run: methods measure pairs of them, or hold all of a record at once."""
MOST_VALUES = 10_000
"""Values that its columns list, all together: some methods multiply them with one another, or with frequencies."""
MOST_RULES = 500
"""Constraints of a schema, each of which is held against the values of its columns when the schema is read."""
LONGEST_NAME = 500
"""Letters of the name of a data set or an account: what a ledger takes."""
LONGEST_CLIENT = 100
"""Letters of the name of a client of a federation, which stands in its account's, in its run's and in the manifest."""
LONGEST_LINE = 2**20
"""The first line of a CSV file, which holds the names; a longer one of JSON is read piece by piece."""
LONGEST_RECORD = 2**22
"""A line of JSON, or a record of a CSV file with its line ends."""
LONGEST_DOCUMENT = 2**25
"""A record of a CSV file of documents."""
LARGEST_RELEASE = 2**34
"""The file of a release, whose values are held in memory all at once."""
UNPACKED_RELEASE, UNPACKED_FACTOR = 2**28, 64
"""Memory that the values of a release may take: so many bytes, and so many for each byte of its file."""
LONGEST_FORMULA, DEEPEST_FORMULA = 1000, 100
"""Characters of a formula in a schema, and parts of it within one another, so that none is too deep to be read."""
LONGEST_LABEL = 2**12
"""Bytes of a label in an ``.npz`` file."""
LARGEST_PAGE = 2**27
"""A page of a hand-off, which holds the report's sheet of images."""
LARGEST_FACTS = 2**23
"""A report or a card but for the sheet of images: what pages are made of, which letters may make six times as long."""
MOST_NODES = 2**18
"""Values in a JSON text that somebody else wrote: each takes some hundred bytes once it is read, however short."""


def nodes(content: bytes) -> int:
    """Count the values in a JSON text, at most."""
    return sum(map(content.count, (b",", b"[", b"{")))


def read_json(content: bytes) -> Any:
    """Read JSON that somebody else wrote, unless it holds so many values that reading it would fill the memory.

    Raises:
        ValueError: it is no JSON text, is nested too deep, or holds more than ``MOST_NODES`` values.
    """
    if nodes(content) > MOST_NODES:
        raise ValueError("more values than can be read at once")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deep") from None
