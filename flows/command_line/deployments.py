"""The commands that hand the flows to Prefect."""

from pathlib import Path
from typing import Annotated

import typer

from flows.command_line.options import Home
from flows.config import HOME

app = typer.Typer()
DeploymentsFile = Annotated[
    Path | None, typer.Option("--file", help="Deployments (YAML). (default: the ones nacre ships)")
]


@app.command()
def deploy(
    file: DeploymentsFile = None,
    show: Annotated[bool, typer.Option("--show", help="Only print the file, to be copied and changed.")] = False,
) -> None:
    """Register the deployments with the Prefect server of PREFECT_API_URL; their schedules are inactive as shipped.

    Example: PREFECT_API_URL=http://127.0.0.1:4200/api nacre deploy
    """
    from flows.with_prefect.deploy import SHIPPED
    from flows.with_prefect.deploy import deploy as register

    if show:
        typer.echo((file or SHIPPED).read_text(encoding="utf-8"), nl=False)
    else:
        register((file or SHIPPED).absolute())


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
