"""The commands that hand the flows to Prefect."""

from pathlib import Path
from typing import Annotated

import typer

from flows.command_line.options import AsJson, Home
from flows.command_line.printing import echo
from flows.config import HOME

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
    from flows.with_prefect.deploy import SHIPPED, read_deployments
    from flows.with_prefect.deploy import deploy as register

    place = (file or SHIPPED).absolute()
    if show:
        return print_json(read_deployments(place)) if as_json else echo(place.read_text(encoding="utf-8"), nl=False)
    made = register(place, automations, notify, aside=as_json)
    if as_json:
        return print_json({"deployments": [one["name"] for one in read_deployments(place)], "automations": made})
    for name in made:
        echo(f"automation {name}")


@app.command()
def serve(
    file: DeploymentsFile = None,
    home: Home = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the server and its UI, on loopback.")] = 4200,
) -> None:
    """Run a Prefect server and all deployments on this one machine, until it is stopped.

    Example: nacre serve --home state
    """
    from flows.with_prefect.deploy import SHIPPED, serve_here

    serve_here((file or SHIPPED).absolute(), home or HOME, port)
