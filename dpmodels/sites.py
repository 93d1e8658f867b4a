"""Files of a web server, over https, as a file system of Arrow's."""

from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

AHEAD = 2**20
"""Bytes that are asked for beyond what a reader wants."""


class Site(pafs.FSSpecHandler):  # type: ignore[misc]  # pyarrow has no types
    """Opens files without asking first whether they are there, since that is a request for the whole of each."""

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Open a file for reading at any place; raises FileNotFoundError."""
        return pa.PythonFile(self.fs.open(path, mode="rb"), mode="r")

    def open_input_stream(self, path: str) -> pa.PythonFile:
        """Open a file for reading from front to back; raises FileNotFoundError."""
        return self.open_input_file(path)


def open_sites() -> pafs.FileSystem:
    """Return the file system of all web servers, whose paths are URLs; raises ImportError without fsspec."""
    import fsspec

    # its other cache drops what is ahead of a reader that goes from front to back, and fetches it again
    server: Any = fsspec.filesystem("https", cache_type="readahead", block_size=AHEAD)
    return pafs.PyFileSystem(Site(server))
