"""A Prefect server that somebody else started: whether it answers, and to whom."""

import os
from functools import cache

from dpmodels.errors import NacreError
from tasks.engine.progress import LOG


def configured_url() -> str:
    """Return the API URL of Prefect's environment or active profile, empty when there is none."""
    from prefect.settings import get_current_settings

    return get_current_settings().api.url or os.environ.get("PREFECT_API_URL", "")


def check_configured(url: str) -> None:
    """Check that a server which is not ours answers us, and warn if it answers everybody.

    Raises:
        NacreError: it does not answer, or not to us.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        problem = client.api_healthcheck()
    if problem is not None:
        raise NacreError(
            f"Prefect is configured for the server {url}, which does not answer ({type(problem).__name__}); "
            "start it, unset PREFECT_API_URL, or run with --no-prefect"
        )
    check_access(url)


def check_access(url: str) -> None:
    """Check the string that is set for the configured server, and warn if it asks for none.

    Raises:
        NacreError: it asks for another one.
    """
    if _status() in (401, 403):
        raise NacreError(
            f"the Prefect server {url} asks for its string: set PREFECT_API_AUTH_STRING; that of `nacre serve` lies in "
            "its home, in prefect/credential"
        )
    warn_if_open(url)


@cache
def warn_if_open(url: str) -> None:
    """Say once that a server does what anybody asks, if it answers a request without a credential."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_KEY, temporary_settings

    with temporary_settings({PREFECT_API_AUTH_STRING: None, PREFECT_API_KEY: None}):
        status = _status()
    if status == 200:
        LOG.warning(
            "the Prefect server %s asks for no credential: whoever reaches it, every web page in a browser beside it "
            "too, can start runs; set PREFECT_SERVER_API_AUTH_STRING there (docs/production.md)",
            url,
        )


def _status() -> int:
    """Ask the configured server for its version; return the HTTP status, or 0 without an answer."""
    from prefect.client.orchestration import get_client

    try:
        with get_client(sync_client=True) as client:
            client.api_version()
    except Exception as fault:  # of Prefect's client or of the library below it
        return int(getattr(getattr(fault, "response", None), "status_code", 0))
    return 200
