"""The command that writes a hand-off down as registries and catalogs know it."""

from pathlib import Path
from typing import Annotated

import typer

from flows.command_line.options import AsJson, Home
from flows.command_line.printing import echo
from flows.sections import HOME

app = typer.Typer()


@app.command()
def disclose(
    hand_off: Annotated[str, typer.Argument(metavar="RUN|HAND_OFF", help="Hand-off, or the run that made it.")],
    out: Annotated[Path, typer.Option(help="New folder for the records.")],
    curator: Annotated[str, typer.Option(help="Who publishes it.")] = "",
    use: Annotated[str, typer.Option(help="What it is for. (default: its purpose)")] = "",
    region: Annotated[str, typer.Option(help="Region that the data describes, or whose law applies.")] = "",
    why: Annotated[str, typer.Option(help="Why this unit, this epsilon and this delta.")] = "",
    url: Annotated[str, typer.Option(help="Where the hand-off is published. (default: its folder)")] = "",
    signing_key: Annotated[Path | None, typer.Option(help="ed25519 private key (PEM) that signs the records.")] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write a hand-off's record for OpenDP's registry of deployments, and one in Croissant for catalogs of data sets.

    Example: nacre disclose hand-off --out disclosure --curator "City of Ghent" --region Belgium --why "See the DPIA"
    """
    from dpmodels.hand_off.catalogs.disclosure import Answers
    from flows.command_line.console import say
    from tasks.stages.disclose import disclose as write
    from tasks.stages.disclose import hand_off_of

    (folder, bucket), answers = hand_off_of(home or HOME, hand_off), Answers(curator, use, region, why)
    paths = [str(path) for path in write(folder, out, answers, url, bucket, signing_key)]
    record, declared = (
        Path(paths[0]).read_text("utf-8"),
        {"use": "use: TODO", "why": "justification: TODO", "curator": "- TODO"},
    )
    left = [name for name in answers.left if name not in declared or declared[name] in record]
    if left and not as_json:
        echo(f"{paths[0]} has a TODO left, which only a person can answer: {', '.join(left)}", err=True)
    say(f"written: {', '.join(paths)}", {"records": paths, "left": left}, as_json)
