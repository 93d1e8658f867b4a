"""What there is, and how good it is: runs, rules of a schema, and tables beside the real rows; nothing is charged."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dpmodels.privacy import Sensitive
from nacre.given import SchemaLike, load_schema, path_of, schema_file
from nacre.ledgers import Place, home_of
from nacre.result import Result

if TYPE_CHECKING:
    import pandas as pd


def runs(*, home: Place | None = None) -> "pd.DataFrame":
    """List the runs of a home, the oldest first: what each was of, how far it is, and what goes on with it.

    Raises:
        NacreError: there is no such home.
    """
    from dataclasses import asdict, fields

    import pandas as pd

    from tasks.run.runs import Listed, list_runs

    return pd.DataFrame(map(asdict, list_runs(home_of(home))), columns=[field.name for field in fields(Listed)])


def validate(data: "pd.DataFrame | Place | Result", schema: SchemaLike | None = None) -> "pd.DataFrame":
    """Hold a table, of whatever tool, against the rules of a schema: a row for each rule, and whether it holds.

    Args:
        data: a hand-off, a path or a URI of files, or rows in memory.
        schema: that of the table; a hand-off has its own.

    Raises:
        NacreError: there is no table, or no schema.
    """
    import pandas as pd

    from tasks.stages.validate import check_hand_off

    given = _taken(data)
    del data  # a traceback of what follows shows no rows
    with _as_files(given) as place, _as_schema(schema) as file:
        results = check_hand_off(place, file).results()
    return pd.DataFrame(results, columns=["column", "rule", "success"])


def compare(
    tables: "Sequence[Place | Result | pd.DataFrame]",
    real: "pd.DataFrame | Place",
    schema: SchemaLike,
    *,
    test: "pd.DataFrame | Place | None" = None,
    home: Place | None = None,
) -> "pd.DataFrame":
    """Judge synthetic tables, of whatever tools, side by side against the real rows: a row for each score.

    The scores are exact figures of the real rows, so they stay inside; to choose among runs by them is a release that
    nobody charged. ``.attrs["page"]`` is their page, in the sensitive zone of ``home``.

    Args:
        tables: hand-offs, paths or URIs of files, or rows in memory, all of one schema.
        real: the rows that they were made from.
        schema: as everywhere.
        test: rows that nothing was made from, which models are scored on.
        home: where the page lies; by default ``NACRE_HOME``, or ``.nacre``.

    Raises:
        NacreError: a table cannot be read, or has other columns than the schema.
    """
    import pandas as pd

    given, has_test = [_taken(each) for each in (*tables, real, test) if each is not None], test is not None
    del tables, real, test  # a traceback of what follows shows no rows
    page = _compared(given, has_test, load_schema(schema), home_of(home))
    facts = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    scores = pd.DataFrame(
        {"score": one["score"], "better": one["better"], "real rows": one["real"], **one["tables"]}
        for one in facts["scores"]
    )
    scores.attrs["page"] = str(page)
    return scores


def _compared(given: "Sequence[str | Sensitive[Any]]", has_test: bool, contract: Any, home: Path) -> Path:
    """Compare tables, which the real rows and perhaps those that were held out follow; return the private page."""
    from dpmodels.comparison.report import Options
    from tasks.engine.engines import cores
    from tasks.run.folders import make_private
    from tasks.run.runs import new_comparison
    from tasks.stages.evaluate import Place as Zone
    from tasks.stages.evaluate import compare as judge

    make_private(zone := new_comparison(home))
    with ExitStack() as stack:
        places = [stack.enter_context(_as_files(each, zone, f"table-{at}")) for at, each in enumerate(given, 1)]
        held_out, rows = places.pop() if has_test else None, places.pop()
        options = Options(workers=min(8, cores()))
        return judge(Zone(sensitive=zone), places, rows, held_out, contract, options).with_suffix(".html")


def _taken(data: Any) -> "str | Sensitive[Any]":
    """Return where the files of a table or of a hand-off lie, or the rows that lie in memory."""
    path = str(data.folder) if isinstance(data, Result) else path_of(data)
    return Sensitive(data) if path is None else path


@contextmanager
def _as_files(data: "str | Sensitive[Any]", zone: Path | None = None, name: str = "rows") -> Iterator[str]:
    """Lend a table as files; what lies in memory is written where its owner alone reads it, and deleted afterwards."""
    if isinstance(data, str):
        yield data
        return
    from dpmodels.reading.frames import load_given, transform_write

    with TemporaryDirectory(dir=zone) as folder:
        transform_write(load_given(data), file := Path(folder) / f"{name}.parquet")
        yield str(file)


@contextmanager
def _as_schema(schema: SchemaLike | None) -> Iterator[Path | None]:
    if schema is None:
        yield None
        return
    with schema_file(schema) as file:
        yield file
