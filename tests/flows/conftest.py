"""A Prefect server that lasts, for the tests that read back what it keeps."""

from collections.abc import Iterator

import pytest

from tests.kit.api import Api, prefect_api_server


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with prefect_api_server(tmp_path_factory.mktemp("prefect")) as api:
        yield api
