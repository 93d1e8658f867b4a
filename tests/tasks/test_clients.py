"""The processes of a federation's clients: what anybody else on their machine sees of them."""

import urllib.error
import urllib.request

import pytest

from tasks.kinds.clients import _workers


@pytest.mark.slow
@pytest.mark.parametrize("page", ["metrics", "health"])
def test_a_clients_process_tells_nothing_of_itself_over_http(page: str) -> None:
    """Its memory stood there for everybody on the machine, and grows with its records."""
    pytest.importorskip("distributed")
    with _workers(["north"]) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{worker['services']['dashboard']}/{page}", timeout=10)
