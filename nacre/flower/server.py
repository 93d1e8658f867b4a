"""The server of a Flower federation: it offers a plan to the clients, checks what they release, and hands over.

    flwr run "$(python -m nacre.flower)" --run-config 'config="/etc/nacre/federation.yaml"'

The configuration is that of ``nacre federate``; of ``clients`` only the names are used. The server keeps no ledger and
no state: a client that is offered the same plan again sends the same release, which was charged once. So a server that
died is started again, and asks again.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.app import Message
from flwr.serverapp import ServerApp

from dpmodels.contract.dropped import FAILED, LATE, TWICE
from dpmodels.errors import NacreError, Unsuitable
from dpmodels.reading.data_files import is_uri
from flows.config import FederateConfig
from flows.kinds.federations import prepare
from flows.kinds.prepared import Prepared
from nacre.flower.hand_over import Taken, check_answer, hand_over
from nacre.flower.messages import Answer, Offer
from tasks.kinds.federation import PUBLIC
from tasks.run.ready import check_ready

LOOK_SECONDS = 0.5


def federate(config: FederateConfig, grid: Any) -> Path:
    """Have the clients of a federation release once each, and hand over one classifier of it.

    Raises:
        NacreError: the run would fail for a public reason, or fewer clients took part than were asked for.
    """
    if (config.model.trust, config.round.mode) != ("local", "private"):
        raise Unsuitable(
            "over Flower every client draws its own noise, once; central trust and paper mode run here only"
        )
    if is_uri(config.out):
        raise Unsuitable("over Flower a hand-off goes to a folder of the server; copy it to the object store")
    check_ready(config.runtime.device, config.out, config.runtime.signing_key)
    prepared = prepare(config)
    offer = Offer(prepared.plan, prepared.files[PUBLIC])
    usable, dropped = sort_out(prepared, ask(config, offer, grid))
    if len(usable) < config.round.least_clients:
        causes = "; ".join(f"{client}: {reason}" for client, reason in dropped.items())
        raise NacreError(
            f"only {len(usable)} of {len(prepared.lines)} clients took part ({causes}); mend this and run again"
        )
    return hand_over(config, prepared, usable, dropped)


def ask(config: FederateConfig, offer: Offer, grid: Any) -> list[Answer]:
    """Wait until as many clients are there as are to come, send each of them the offer, and return what they answer.

    Who is not there in time is late, and so is who does not answer in as much time again.
    """
    end, nodes = time.monotonic() + config.round.patience, set(grid.get_node_ids())
    while len(nodes) < len(config.clients) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        nodes = set(grid.get_node_ids())
    messages = [Message(offer.pack(), dst_node_id=node, message_type="train") for node in sorted(nodes)]
    replies = grid.send_and_receive(messages, timeout=config.round.patience)
    return [Answer("") if reply.has_error() else Answer.unpack(reply.content) for reply in replies]


def sort_out(prepared: Prepared, answers: Iterable[Answer]) -> tuple[dict[str, Taken], dict[str, str]]:
    """Return what each client released, and why each other one is dropped; whoever is no client is not listened to."""
    answers = list(answers)
    missing = FAILED if any(not answer.client for answer in answers) else LATE
    usable, dropped = {}, {}
    for client, line in prepared.by_client.items():
        mail = [answer for answer in answers if answer.client == client]
        outcome = TWICE if len(mail) > 1 else missing if not mail else mail[0].reason or check_answer(mail[0], line)
        if isinstance(outcome, str):
            dropped[client] = outcome
        else:
            usable[client] = outcome
    return usable, dropped


def main(grid: Any, context: Any) -> None:
    """Run a federation once."""
    federate(FederateConfig.build({}, Path(str(context.run_config["config"]))), grid)


app = ServerApp()
app.main()(main)
