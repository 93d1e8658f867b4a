"""What tests of the stages share."""

import pyarrow.fs as pafs
import pytest

from tests.kit.buckets import Bucket


@pytest.fixture
def store(bucket: Bucket) -> tuple[str, pafs.FileSystem, str]:
    """Return the form of an empty bucket's places, its file system and its name."""
    return bucket.uri("{}"), bucket.system, bucket.name
