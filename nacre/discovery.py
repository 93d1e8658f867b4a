"""Find out, under a charge, what a schema's author does not know."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmodels.privacy import Sensitive
from flows.config import SynthesizeConfig
from flows.discover import discover as discover_flow
from flows.discover import stands_out
from flows.settings import placed
from nacre.given import SchemaLike, path_of, schema_file
from nacre.keywords import terms_of
from nacre.places import Place
from nacre.words import warn_of_release
from tasks.run.in_memory import GIVEN

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def discover(
    data: "pd.DataFrame | pa.Table | Place | Any",
    schema: SchemaLike,
    *,
    epsilon: float,
    delta: float,
    query: str = "",
    account: str | None = None,
    allow_large_delta: bool = False,
    home: Place | None = None,
    ledger: str | None = None,
) -> str:
    """Release the keys that a draft of a schema marks with the word ``discover``, and return the completed YAML.

    It warns, before the charge, how many rows a value needs, and after it what of each column was not found or is cut.

    Args:
        data: as for ``synthesize``. Private.
        schema: a draft such as ``{... "ward": {"type": "categorical", "values": "discover"}}``. Public.
        epsilon: of this release, charged once to the account, which must be open.
        delta: likewise.
        query: SQL, whose answer is the table; ``data`` is then the URL of the database.
        account: the account that pays; by default that of the data set.
        allow_large_delta: take a delta above 0.001.
        home: where state lies; by default ``NACRE_HOME``, or ``.nacre``.
        ledger: URL of a shared ledger on PostgreSQL; by default ``NACRE_LEDGER``, or the home's own.

    Privacy:
        One charge for one draft, budget and account: called again, it returns the same text for nothing, whatever the
        data. What was not found stands as TODO. Rows in memory are in the run's sensitive folder until counted.

    Raises:
        NacreError: the draft marks nothing or has faults, no account is open for it, or its cap leaves no room.
    """
    private, path = Sensitive(data), path_of(data)
    del data  # an error from here on shows no rows, even if its local variables are shown
    terms = terms_of({"home": home, "ledger": ledger, "account": account, "allow_large_delta": allow_large_delta})
    terms |= {"data": path or GIVEN, "query": query, "target_epsilon": epsilon, "delta": delta, "out": Path("-")}
    with schema_file(schema) as file:
        config = SynthesizeConfig.build(placed({**terms, "schema": file}))
        warn_of_release(stands_out(config))
        answer = discover_flow(config, None if path else private)
    if lines := [*filter(None, [answer.warning]), *answer.remarks]:
        warn_of_release("\n".join(lines))
    return answer.schema
