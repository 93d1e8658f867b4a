"""How large a file may be that is read whole, before it is read: the sizes in one place, in bytes.

Each is far above what nacre writes or a person types, and far below what would fill the memory of whoever reads it.
Tables and releases have no such limit: they are as large as their data. Of their headers the libraries refuse more than
100 MB: safetensors of its header, Arrow of each text in a Parquet file's footer.
"""

LARGEST_YAML = 2**21
"""A schema, a contract, a configuration or a list of deployments; parsing it takes seconds, not minutes."""
LARGEST_MANIFEST = 2**22
"""Room for the hashes of the files of 5e9 rows."""
LARGEST_SIGNATURE = 2**12
LARGEST_REPORT = 2**26
"""``report.json``, which holds a sheet of images."""
LARGEST_CARD = 2**24
LARGEST_KEY = 2**16
"""A key in a PEM file."""
LONGEST_LINE = 2**20
"""The first line of a CSV file, which holds the names."""
LONGEST_RECORD = 2**22
"""A line of JSON, or a record of a CSV file with its line ends."""
LONGEST_DOCUMENT = 2**25
"""A record of a CSV file of documents."""
