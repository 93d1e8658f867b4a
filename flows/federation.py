"""The flow of a federation that is deployed: one charge a client, however often it is started."""

from flows.config import FederateConfig
from flows.table import take_to_hand_off
from flows.with_prefect.worker import deployed, own_name


@deployed("federate")
def federate_clients(config: FederateConfig) -> str:
    """Make a classifier of what every client releases: one charge a client, however often this flow run is started.

    Args:
        config: the clients, the public records, the budget of each and the hand-off.
    """
    return take_to_hand_off(own_name(), config)
