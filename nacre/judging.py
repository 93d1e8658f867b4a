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

    with _as_files(data) as place, _as_schema(schema) as file:
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

    from dpmodels.comparison.report import Options
    from tasks.engine.engines import cores
    from tasks.run.runs import new_comparison
    from tasks.stages.evaluate import Place as Zone
    from tasks.stages.evaluate import compare as judge

    contract: Any = load_schema(schema)
    with ExitStack() as stack:
        places = [stack.enter_context(_as_files(table, f"table-{number}")) for number, table in enumerate(tables, 1)]
        rows, held_out = (stack.enter_context(_as_files(each)) if each is not None else None for each in (real, test))
        options = Options(workers=min(8, cores()))
        file = judge(Zone(sensitive=new_comparison(home_of(home))), places, str(rows), held_out, contract, options)
    facts = json.loads(file.read_text(encoding="utf-8"))
    scores = pd.DataFrame(
        {"score": one["score"], "better": one["better"], "real rows": one["real"], **one["tables"]}
        for one in facts["scores"]
    )
    scores.attrs["page"] = str(file.with_suffix(".html"))
    return scores


@contextmanager
def _as_files(data: Any, name: str = "rows") -> Iterator[str]:
    """Lend a table as files; what lies in memory is written where its owner alone reads it, and deleted afterwards."""
    if isinstance(data, Result):
        data = data.folder
    if (path := path_of(data)) is not None:
        yield path
        return
    from dpmodels.reading.frames import load_given, transform_write

    rows = load_given(Sensitive(data))
    del data
    with TemporaryDirectory() as folder:
        transform_write(rows, file := Path(folder) / f"{name}.parquet")
        yield str(file)


@contextmanager
def _as_schema(schema: SchemaLike | None) -> Iterator[Path | None]:
    if schema is None:
        yield None
        return
    with schema_file(schema) as file:
        yield file
