"""A client of a Flower federation: it agrees to what it is asked, charges its own account, and sends what it released.

    SuperNode --node-config 'nacre="/etc/nacre/north.yaml"'

The server is not trusted. A client agrees to a contract that its operator wrote down, and refuses any other before it
opens its data: were it to read its records under whatever classes or sizes a server asks for, each refusal would tell
something of the records, uncharged. Home, ledger and account are the client's own.
"""

import hashlib
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flwr.app import Message
from flwr.clientapp import ClientApp
from pydantic import Field

from dpmodels.artifact import make_folder, write_whole
from dpmodels.contract.dropped import DISAGREED, FAILED
from dpmodels.contract.federation import Federation
from dpmodels.errors import NacreError, Unsuitable
from dpmodels.files import Place
from dpmodels.hand_off.payments import payment
from dpmodels.methods.federations.records import RecordsSpec
from dpmodels.reading.data_files import check_place
from dpmodels.releases.plan import Line, Plan
from flows.config import HandOverConfig
from flows.planning import account_for, bind, make_budget, open_home
from flows.sections import ClientPrivacyConfig
from nacre.flower.messages import Answer, Offer
from tasks.kinds.clients import shielded
from tasks.kinds.federation import PUBLIC, about
from tasks.run.accounts import charges_of
from tasks.run.home import ledger_of
from tasks.run.settings import Opening
from tasks.run.source import Source
from tasks.run.store import Run, party_name
from tasks.stages.federate import take_part


class AgreedPrivacyConfig(ClientPrivacyConfig):
    """The most that one release may cost, and the cap of the account, which no server can set."""

    cap_epsilon: float = Field(description="Cap of the account at this delta, where it is not open yet.")


class ClientConfig(HandOverConfig):
    """What a client's operator agrees to; the keys mean what they mean in the server's configuration."""

    OPTIONS = frozenset()

    name: str = Field(description="Name of the federation.")
    client: str = Field(description="The client's own name in it.")
    data: Place = Field(
        description="Its own data: path, pattern or URI of Parquet, CSV, Arrow or JSON lines, or of a database."
    )
    query: str = Field(default="", description="Of a database: the query that it answers, or the name of a table.")
    size: int | None = Field(default=None, description="Its number of records, if that is public.")
    most_records: int = Field(default=20_000, ge=1, description="Most records of a client.")
    classes: list[str] = Field(description="The classes of records, by name.")
    records: RecordsSpec = Field(description="label and inputs: columns; shape: of images.")
    privacy: AgreedPrivacyConfig
    out: Place = Field(default=".", description="Not used: a client hands nothing over.")


def answer(config: ClientConfig, offer: Offer) -> Answer:
    """Release what the offer asks for, if the client agrees to it; an offer that was answered is answered again.

    Privacy: whatever fails, the answer says so in one of a few fixed sentences, for Flower would send the error's text.
    """
    try:
        line = agreed(config, offer)
    except Exception as error:  # of an offer that cannot be read, whatever its fault; no data was opened yet
        return failed(config.client, error, DISAGREED)
    answers, run = list[Answer](), party(config, offer, line)

    def release(run: Run) -> None:
        take_part(run)
        (charge,) = charges_of(run)
        answers.append(Answer(config.client, "", run.name, run.read("sanitize"), payment(ledger_of(run), charge)))

    try:
        if not run.exists:
            create(run, config, offer, line)
    except Exception as error:
        return failed(config.client, error)
    reason = shielded(release, run)
    # what broke once the data was read is logged in the fixed words as well: Flower decides who reads a client's log
    return answers[0] if answers else failed(config.client, NacreError(reason), reason)


def failed(client: str, error: Exception, reason: str = FAILED) -> Answer:
    """Answer in fixed words; the log of the client's operator, who alone can mend it, has the sentence."""
    sentence = str(error) if isinstance(error, NacreError) else reason  # what others say may quote a record
    logging.getLogger(__name__).error("nacre: client %s is dropped: %s", client, sentence)
    return Answer(client, reason)


def agreed(config: ClientConfig, offer: Offer) -> Line:
    """Return the client's line of an offer.

    Raises:
        Unsuitable: it asks for another contract than the client agreed to, or for more than the client would spend.
    """
    name = f"{config.name}.{config.client}"
    for line in offer.plan.lines:
        if line.contract.name == name and _agrees(config, about(line), line, offer):
            return line
    raise Unsuitable(f"no line of the offer is one that {name} agrees to; compare both configurations")


def _agrees(config: ClientConfig, contract: Federation, line: Line, offer: Offer) -> bool:
    theirs = contract.size, contract.most_records, list(contract.classes), offer.part.records
    ours = config.size, config.most_records, config.classes, config.records
    cheap = line.budget.epsilon <= config.privacy.target_epsilon and line.budget.delta <= config.privacy.delta
    return theirs == ours and cheap


def party(config: ClientConfig, offer: Offer, line: Line) -> Run:
    """Return the client's run for a line, in the client's own home; a line has one run, however often it is offered."""
    whole = f"{config.name}-{hashlib.sha256(line.hash.encode() + offer.public).hexdigest()[:12]}"
    home, url = config.runtime.home.absolute(), config.runtime.ledger or ""
    return Run(home=home, name=party_name(whole, config.client), ledger_url=url)


def create(run: Run, config: ClientConfig, offer: Offer, line: Line) -> None:
    """Create the client's run, which opens the account with the client's own cap when it is charged, if it is not open.

    Raises:
        NacreError: the home or its ledger is not in order.
    """
    agreed_cap, budget = config.privacy.cap_epsilon, line.budget
    cap = make_budget(agreed_cap, config.privacy.delta, budget.unit, "privacy.cap_epsilon", budget.adjacency)
    capped = line.model_copy(update={"budget": cap})
    above, opens = account_for(open_home(config), config.privacy, about(line).whole, [capped])
    note = "a client of a federation, opened with the cap that its own configuration names"
    opening = {"opens": Opening(cap=cap, note=note, parent=above), "account": f"{above}.{config.client}"}
    federation = run.name.removesuffix(party_name("", config.client))
    terms: dict[str, Any] = {"rows": None, "training": {}, "federation": federation, "above": opens}
    source = Source(config.data, config.query)
    if source.query:
        source.check()
    else:  # whether there are files is looked at as the records are read, so that this is one of the fixed sentences
        check_place(source.data)
    settings = bind(config, **terms, **opening, **asdict(source.settled))
    control = run.model_copy(update={"name": federation}).control
    make_folder(control)
    write_whole(control / PUBLIC, lambda part: part.write_bytes(offer.public))
    run.create(settings, Plan(lines=(line,)))


def respond(message: Any, context: Any) -> Any:
    """Answer a message of the server's."""
    try:
        config, offer = ClientConfig.build({}, Path(str(context.node_config["nacre"]))), Offer.unpack(message.content)
        reply = answer(config, offer)
    except Exception as error:
        reply = failed("", error)
    return Message(reply.pack(), reply_to=message)


app = ClientApp()
app.train()(respond)
