"""The commands that hand the flows to Prefect."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.command_line.options import AsJson, Home
from flows.command_line.printing import echo
from flows.sections import HOME

app = typer.Typer()
DeploymentsFile = Annotated[
    Path | None, typer.Option("--file", help="Deployments (YAML). (default: the ones nacre ships)")
]


@app.command()
def deploy(
    file: DeploymentsFile = None,
    show: Annotated[bool, typer.Option("--show", help="Only print the file, to be copied and changed.")] = False,
    automations: Annotated[
        bool,
        typer.Option("--automations", help="Also mark dead flow runs crashed, and pause schedules of spent accounts."),
    ] = False,
    notify: Annotated[str, typer.Option(help="Notification block, TYPE/NAME, told at 80 % and 100 % of a cap.")] = "",
    as_json: AsJson = False,
) -> None:
    """Register the deployments with the Prefect server of PREFECT_API_URL; their schedules are inactive as shipped.

    Example: PREFECT_API_URL=http://127.0.0.1:4200/api nacre deploy
    """
    from flows.command_line.console import print_json
    from flows.with_prefect.deploy import deploy as register
    from flows.with_prefect.operators import SHIPPED, read_deployments

    path = (file or SHIPPED).absolute()
    if show and as_json:
        return print_json(
            [one.model_dump(mode="json", exclude_defaults=True) for one in read_deployments(path).values()]
        )
    if show:
        return echo(path.read_text(encoding="utf-8"), nl=False)
    names, rules = register(path, automations, notify)
    if as_json:
        return print_json({"deployments": names, "automations": rules})
    for name in names:
        echo(f"deployment {name}")
    for name in rules:
        echo(f"automation {name}")


@app.command()
def worker(
    file: DeploymentsFile = None,
    home: Home = None,
    pool: Annotated[str, typer.Option(help="Work pool to serve.")] = "nacre-cpu",
    limit: Annotated[int, typer.Option(min=1, help="Flow runs at a time.")] = 10,
) -> None:
    """Run what the Prefect server of PREFECT_API_URL says is due, as the file allows; nothing else is believed of it.

    Example: PREFECT_API_URL=http://127.0.0.1:4200/api nacre worker --file mine.yaml
    """
    from flows.with_prefect.deploy import work_here
    from flows.with_prefect.operators import SHIPPED

    if home:
        os.environ["NACRE_HOME"] = str(home.absolute())
    work_here((file or SHIPPED).absolute(), pool, limit)


@app.command("train-worker")
def train_worker(home: Home = None) -> None:
    """Train and sample runs that wait for it, where no data can be read; it knows no Prefect server and no ledger.

    Example: nacre train-worker --home /mnt/nacre
    """
    import logging

    from flows.generate import LOG, serve_waiting
    from flows.settings import home_here
    from tasks.engine.progress import Terminal
    from tasks.run.stopping import stopping

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING, handlers=[Terminal()])
    LOG.setLevel(logging.INFO)
    with stopping() as is_over:
        serve_waiting(home.absolute() if home else home_here(), is_over)


@app.command()
def serve(
    file: DeploymentsFile = None,
    home: Home = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the server and its UI, on loopback.")] = 4200,
    limit: Annotated[int, typer.Option(min=1, help="Flow runs at a time.")] = 10,
) -> None:
    """Run a Prefect server and all deployments on this one machine, until it is stopped; `nacre ui` opens it.

    Example: nacre serve --home state
    """
    from flows.with_prefect.deploy import serve_here
    from flows.with_prefect.operators import SHIPPED

    serve_here((file or SHIPPED).absolute(), home or HOME, port, limit)


def _at_terminal() -> bool:
    return sys.stdout.isatty()


@app.command()
def ui(home: Home = None, as_json: AsJson = False) -> None:
    """Open the UI of the server that `nacre serve` runs for a home; it asks for a password once.

    The password is shown at a terminal only. Elsewhere it is said which file holds it.

    Example: nacre ui --home state
    """
    import webbrowser

    from flows.command_line.console import note, print_json
    from flows.with_prefect.credential import credential, credential_file
    from flows.with_prefect.server import server_of

    url, file = server_of(home or HOME), credential_file(home or HOME)
    if as_json:
        return print_json({"url": url, "credential": str(file)})
    password = credential(home or HOME) if _at_terminal() else f"the line in {file}"
    typer.echo(f"{url} asks for a password, once in each browser: {password}")
    if not webbrowser.open(url):
        note(f"there is no browser here; open {url} in one on this machine, by this address and no other")
