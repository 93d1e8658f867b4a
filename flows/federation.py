"""The flow of a federation that is deployed: one charge a client, however often it is started."""

from flows.config import FederateConfig
from flows.federate import start
from flows.planning import MayOpen
from flows.table import go_on
from flows.with_prefect.worker import deployed, find_here, own_name, placed_here


@deployed("federate")
def federate_clients(config: FederateConfig) -> str:
    """Make a classifier of what every client releases: one charge a client, however often this flow run is started.

    Args:
        config: the clients, the public records, the budget of each and the hand-off.
    """
    name = own_name()
    return go_on(find_here(name) or start(placed_here(config), name, may_open=MayOpen.NO))
