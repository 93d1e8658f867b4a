"""The commands that take more out of a release that is paid for: rows under conditions, noisy tables,
and means.
"""

from pathlib import Path
from typing import Annotated

import typer

from dpmodels.errors import Unsuitable
from flows.command_line.options import TEXT, AsJson, Home, OtherDevice

app = typer.Typer()
Where = Annotated[list[str] | None, typer.Option(help="Condition, such as 'age>60' or 'ward!=north'; all must hold.")]
After = Annotated[
    int | None,
    typer.Option(min=0, max=2**40, help="Rows whose identifiers come before. (default: those of the hand-off)"),
]
NEW_FILE = typer.Option(help="New file; its ending, .parquet, .csv, .arrow or .jsonl, says the format.")
NewFile = Annotated[Path, NEW_FILE]
Columns = Annotated[
    list[str] | None, typer.Argument(help="Columns whose counts together are printed. (default: all tables, to --out)")
]


@app.command()
def sample(
    run: str,
    rows: Annotated[int, typer.Option(min=1, help="Rows to draw.")],
    out: NewFile,
    where: Where = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**31 - 1, help="Seed. (default: the one after the run's)")
    ] = None,
    after: After = None,
    device: OtherDevice = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Draw more rows from a finished run, of certain kinds only if you like; free, as often as you like.

    Example: nacre sample RUN --rows 1000 --where sick=yes --where 'age>60' --out sick.parquet
    """
    from flows.command_line.named_run import run_named
    from flows.command_line.show import show_drawn
    from tasks.stages.draw_rows import write_rows

    stored_run = run_named(run, home)
    drawn = write_rows(stored_run, out, rows, where or (), seed, device or stored_run.settings.device, after)
    show_drawn(drawn, out, as_json)


@app.command()
def marginals(
    run: str,
    columns: Columns = None,
    out: Annotated[Path | None, NEW_FILE] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Write the noisy tables of a run's release as they are, or print those of some columns; free.

    Each count has its standard error. With columns, there is a row for each cell of these columns together.

    Example: nacre marginals RUN --out marginals.parquet, or nacre marginals RUN age income
    """
    from flows.command_line.named_run import run_named
    from flows.command_line.show import show_counts, show_written
    from tasks.stages.noisy_tables import read_counts, write_tables

    stored_run = run_named(run, home)
    if out is not None:
        show_written(write_tables(stored_run, out, columns or ()), out, as_json)
    elif columns:
        show_counts(read_counts(stored_run, columns), as_json)
    else:
        raise Unsuitable("--out is missing: name a file for all tables, or columns whose counts are printed")


@app.command()
def means(
    run: str,
    column: str,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Column whose values make groups; of a number about eight ranges, with age=each every counted value, "
            "or bands, as age=0,18,65,105 or age=10; of categories joined by +, as ward=north+south. Days and times of "
            "day make bands too, as at=08:00,12:30,20:00."
        ),
    ] = None,
    value: Annotated[str | None, typer.Option(help="Category whose share is asked for.")] = None,
    total: Annotated[
        bool, typer.Option("--total", help="Print totals too: of a share, how many rows that is.")
    ] = False,
    out: Annotated[Path | None, NEW_FILE] = None,
    text: Annotated[str, typer.Option(help=TEXT)] = "",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Print means of a column by groups, or shares of a category, with what they are within; free.

    They follow from a run's release: the interval holds the real mean in nineteen releases of twenty.

    Example: nacre means RUN paid --by cause, or nacre means RUN paid --by age=0,18,65,105 --by ward
    """
    from flows.command_line.console import note
    from flows.command_line.named_run import run_named
    from flows.command_line.show_means import show_means, without_nulls
    from tasks.stages.bands import NOTES
    from tasks.stages.means import means, write_means
    from tasks.stages.ranges import groups_of

    if text and out is None:
        raise Unsuitable("--text says how a file is written, so name one with --out")
    groups = groups_of(by or ())
    stored_run = run_named(run, home)
    frame = means(stored_run, column, groups, value, total)
    contract = stored_run.plan.release.contract
    show_means(frame if out is None else write_means(frame, out, text), out, as_json, contract, column)
    for said in filter(None, (*frame.attrs.get(NOTES, ()), without_nulls(contract, column))):
        note(said)
