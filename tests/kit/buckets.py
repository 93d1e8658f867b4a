"""A bucket of an object store that speaks S3 on loopback, and what a test puts into it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from tests.kit.inputs import KEY, parquet

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "nacre", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_DEFAULT_REGION": "us-east-1"}


class Bucket:
    """An empty bucket, whose credentials lie in the environment, as those of a worker do."""

    def __init__(self, address: str, name: str) -> None:
        self.name = name
        self.system = pafs.S3FileSystem(endpoint_override=address, scheme="http", allow_bucket_creation=True)
        self.system.create_dir(name)

    def uri(self, key: object) -> str:
        return f"s3://{self.name}/{key}?region=us-east-1"

    def put(self, path: Path, key: object = "") -> str:
        """Copy a file or a folder into the bucket; return where it lies."""
        key = key or path.name
        pafs.copy_files(str(path), f"{self.name}/{key}", destination_filesystem=self.system)
        return self.uri(key)

    def delete(self, key: object) -> None:
        self.system.delete_file(f"{self.name}/{key}")

    def write(self, path: Path, table: pa.Table) -> str:
        """Write a table as others are written at a path, and leave it in the bucket alone; return where it lies."""
        file = parquet(path.with_suffix(".parquet"), table)
        uri = self.put(file, str(file).lstrip("/"))
        file.unlink()
        return uri
