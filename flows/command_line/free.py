"""The commands that take more out of a release that is paid for: rows under conditions, and its noisy tables."""

from pathlib import Path
from typing import Annotated

import typer

from flows.command_line.options import AsJson, Home, OtherDevice
from flows.sections import HOME

app = typer.Typer()
Where = Annotated[list[str] | None, typer.Option(help="Condition, such as 'age>60' or 'ward!=north'; all must hold.")]
NewFile = Annotated[Path, typer.Option(help="New file; its ending, .parquet, .csv, .arrow or .jsonl, says the format.")]


@app.command()
def sample(
    run: str,
    rows: Annotated[int, typer.Option(min=1, help="Rows to draw.")],
    out: NewFile,
    where: Where = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**31 - 1, help="Seed. (default: the one after the run's)")
    ] = None,
    device: OtherDevice = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Draw more rows from a finished run, of certain kinds only if you like; free, as often as you like.

    Example: nacre sample RUN --rows 1000 --where sick=yes --where 'age>60' --out sick.parquet
    """
    from flows.command_line.show import show_drawn
    from tasks.run.store import Run
    from tasks.stages.draw_rows import write_rows

    stored_run = Run.find(home or HOME, run)
    show_drawn(write_rows(stored_run, out, rows, where or (), seed, device or stored_run.settings.device), out, as_json)


@app.command()
def marginals(run: str, out: NewFile, home: Home = None, as_json: AsJson = False) -> None:
    """Write the noisy tables of a run's release as they are, with the standard error of each count; free.

    Example: nacre marginals RUN --out marginals.parquet
    """
    from flows.command_line.show import show_written
    from tasks.run.store import Run
    from tasks.stages.noisy_tables import write_tables

    show_written(write_tables(Run.find(home or HOME, run), out), out, as_json)
