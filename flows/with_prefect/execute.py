"""Run one flow run in this process, as its worker orders: python -m flows.with_prefect.execute.

The order comes on standard input from the worker, which is trusted: which of our flows, and with which parameters. The
server only keeps the states. What it says of results is left unread: a state could name a file and a pickle in it.
"""

import sys
from importlib import import_module
from typing import Any
from uuid import UUID

from dpmodels.frozen import Frozen
from flows.with_prefect.allowance import shown


class Order(Frozen):
    """What a worker has a process of its own run."""

    flow_run: UUID
    flow: str
    parameters: dict[str, Any]


def execute(order: Order) -> None:
    """Run a flow as the flow run of an order."""
    believe_no_results()
    from prefect.engine import handle_engine_signals

    with handle_engine_signals(order.flow_run):
        from prefect.flow_engine import load_flow_run, run_flow
        from prefect.logging.loggers import flow_run_logger

        module, _, name = order.flow.rpartition(".")
        flow = getattr(import_module(module), name)
        flow_run = load_flow_run(order.flow_run)
        logger: Any = flow_run_logger(flow_run=flow_run)
        # as a state, since what a state of the server calls the flow's result is not to be loaded
        run_flow(flow, flow_run=flow_run, parameters=order.parameters, return_type="state", error_logger=logger)


def believe_no_results() -> None:
    """Let this process neither load a result that a server names, nor keep one where a server says.

    Prefect's engine reads results from the file, the block and the serializer that a state names, and pickles errors
    into the storage that the server calls its default.
    """
    from prefect import results, serializers
    from prefect.blocks.core import Block
    from prefect.client.base import PrefectResponse

    plain: Any = PrefectResponse.json

    def without_results(self: PrefectResponse, **kwargs: Any) -> Any:
        return _without_results(plain(self, **kwargs))

    def nowhere() -> None:
        return None

    async def nowhere_async() -> None:
        return None

    PrefectResponse.json = without_results  # type: ignore[method-assign, assignment]
    results._read_server_default_result_storage_block_id = nowhere
    results._aread_server_default_result_storage_block_id = nowhere_async
    serializers.PickleSerializer.loads = _refuse  # type: ignore[method-assign]
    Block._from_block_document = classmethod(_refuse)  # type: ignore[assignment]


def _without_results(content: Any) -> Any:
    """Take out of the states of an answer whatever they call data, and of names what a terminal would obey."""
    if isinstance(content, list):
        return [_without_results(one) for one in content]
    if not isinstance(content, dict):
        return content
    answer = {key: _without_results(value) for key, value in content.items()}
    if isinstance(name := answer.get("name"), str):
        answer["name"] = shown(name)
    return answer | {"data": None} if "state_details" in answer else answer


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a server named something to be loaded; nothing was")


if __name__ == "__main__":
    execute(Order.model_validate_json(sys.stdin.buffer.read()))
