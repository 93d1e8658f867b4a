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
MOST_COLUMNS = 1000
"""Columns of a table of a new run: methods measure pairs of them, or hold all of a record at once."""
MOST_VALUES = 10_000
"""Values that its columns list, all together: some methods multiply them with one another, or with frequencies."""
LONGEST_NAME = 500
"""Letters of the name of a data set or an account: what a ledger takes."""
LONGEST_CLIENT = 100
"""Letters of the name of a client of a federation, which stands in its account's, in its run's and in the manifest."""
LONGEST_LINE = 2**20
"""The first line of a CSV file, which holds the names."""
