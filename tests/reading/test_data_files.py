"""Where a table may lie: no URI chooses who is sent the worker's credentials."""

import socket
from threading import Thread

import pytest

from dpmodels.errors import DataError, InvalidArgument
from dpmodels.reading.data_files import check_place, find_files, name_of
from tests.kit.errors import refused

ELSEWHERE = [
    "s3://visits/t.csv?endpoint_override={host}&scheme=http",
    "s3://visits/t.csv?endpoint_override={host}",
    "s3://visits/t.csv?scheme=http",
    "s3://visits/t.csv?proxy_options={host}",
    "s3://visits/t.csv?allow_bucket_creation=true",
    "s3://visits/t.csv?region=us@{host}/",
    "s3://visits/t.csv?region=",
    "s3://{host}%2f/t.csv",
    "gs://visits/t.csv?endpoint_override={host}&scheme=http",
    "gs://{host}/t.csv",
    "abfs://{host}/visits/t.csv",
    "abfs://visits@{host}/t.csv",
    "abfss://visits@example.org/t.csv",
    "abfs://account.dfs.core.windows.net.example.org/visits",
    "abfs://visits@account.dfs.core.windows.net/t.csv?enable_tls=false",
    "abfs://visits@account.dfs.core.windows.net/t.csv?blob_storage_authority={host}",
]


@pytest.fixture
def listener():
    """Listen on loopback; yield the address and what came."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                came.append(connection.recv(4096))
                connection.close()

        Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", came


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_place_that_names_another_server_is_refused_before_anything_is_sent(place, listener, monkeypatch) -> None:
    host, came = listener
    for name, value in {"ACCESS_KEY_ID": "nacre", "SECRET_ACCESS_KEY": "key", "SESSION_TOKEN": "token"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with pytest.raises(InvalidArgument) as caught:
        find_files(place.format(host=host))
    assert host not in str(caught.value) and not came


def test_the_environment_names_a_server_over_tls_alone(monkeypatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://192.0.2.1:9000")
    with refused(DataError, "AWS_ENDPOINT_URL must begin with https://", column=""):
        find_files("s3://visits/t.csv?region=us-east-1")


def test_a_place_has_one_name_which_begins_with_that_of_the_place_it_lies_in(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert name_of(f"file://{tmp_path}/a/") == name_of(str(tmp_path / "link")) == f"{tmp_path / 'a'}/"
    assert name_of(str(tmp_path / "link" / "b.csv")).startswith(name_of(str(tmp_path / "a")))
    assert not name_of(str(tmp_path / "ab")).startswith(name_of(str(tmp_path / "a")))
    there = name_of("s3://visits/a?region=us-east-1")
    assert there == name_of("s3://visits/a/?region=eu-west-1") != name_of("s3://visit/a?region=us-east-1")
    assert name_of("s3://visits/a/b.csv?region=us-east-1").startswith(there)
    assert not name_of("s3://visits/ab?region=us-east-1").startswith(there)


def test_bytes_that_cannot_be_read_to_their_end_have_no_digest(tmp_path, bucket) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    here, there = find_files(str(tmp_path / "t.csv")), find_files(bucket.put(tmp_path / "t.csv"))
    assert here[0].digest("sha256") == there[0].digest("sha256") and here[0].identities != there[0].identities
    (tmp_path / "t.csv").unlink(), bucket.delete("t.csv")
    for file in (*here, *there):
        with refused(DataError, "cannot be read to its end", column="") as refusal:
            file.digest("sha256")
        assert refusal.value.__context__ is None


@pytest.mark.parametrize(
    "place",
    ["s3://visits/a/*.csv?region=eu-west-1", "gs://visits-1.org/t.csv", "abfs://v@account.dfs.core.windows.net/t.csv",
     "abfss://account.blob.core.windows.net/visits", "abfs://account@visits/t.csv", "hdfs://name:8020/t.csv", "a.csv"],
)  # fmt: skip
def test_a_place_in_a_store_is_taken(place) -> None:
    check_place(place)
