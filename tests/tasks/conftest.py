"""What tests of the stages share: an object store on loopback."""

from collections.abc import Iterator
from secrets import token_hex

import pyarrow.fs as pafs
import pytest


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, pafs.FileSystem, str]]:
    """Start an object store with an empty bucket; yield the form of its places, its file system and the bucket."""
    server = pytest.importorskip("moto.server", reason="needs pip install 'moto[server]'")
    for name, value in {"ACCESS_KEY_ID": "nacre", "SECRET_ACCESS_KEY": "key", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    address = "{}:{}".format(*running.get_host_and_port())
    system = pafs.S3FileSystem(endpoint_override=address, scheme="http", allow_bucket_creation=True)
    system.create_dir(bucket := f"made-{token_hex(4)}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{address}")
    yield f"s3://{bucket}/{{}}?region=us-east-1", system, bucket
    running.stop()
