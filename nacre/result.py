"""The result of a run: the synthetic table, the report, and what was spent."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

from dpmodels import amounts
from dpmodels.errors import ArtifactError, NacreError, Unsuitable, near
from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from nacre.notebook import facts_as_html, first_rows_as_html
from nacre.places import Place, home_of
from nacre.reporting import Report, read_page
from nacre.verified import Verified, verify
from nacre.words import in_python

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from dpmodels.methods.federations.classifier import FederatedClassifier
    from tasks.run.fits.changes import Changes
    from tasks.run.store import Run

T = TypeVar("T")
EXAMPLE = "demo/home"
LONGEST_LINE = 240
"""Letters of a warning that a terminal shows of a result; ``warnings`` has all of them."""


class Spent(NamedTuple):
    """What was charged: the release, and the scores of the report if they were asked for."""

    epsilon: Decimal
    delta: Decimal


class Result:
    """A hand-off, your own or one that you received; nothing in it is private.

    Attributes:
        folder: the folder of the hand-off.
        manifest: the content of ``manifest.json``.
        changes: what another fit of an old release changed; None unless ``nacre.fit`` or a refit made this.
        home: of the run that made it, in which ``nacre.sample``, ``marginals``, ``means`` and ``resume`` find it again:
            given, or ``NACRE_HOME`` or ``.nacre`` if the run is there, or that which one of these calls was given.
        opened: says that the run opened its account, and how its cap is raised; empty of every other run.
    """

    opened = ""

    @in_python
    def __init__(self, folder: Place, changes: "Changes | None" = None, home: Place | None = None) -> None:
        self.folder, self.changes = Path(folder), changes
        if not self.folder.exists():
            raise ArtifactError(f"{self.folder} does not exist")
        self.manifest = read_manifest(self.folder)
        self.home = home_of(home) if home else _usual_home(self.manifest.made_by)

    @property
    def run(self) -> str:
        """The name of the run that made the hand-off."""
        return self.manifest.made_by

    @property
    def spent(self) -> Spent:
        """What was charged for the hand-off: epsilon, rounded up, and delta."""
        spent = self.manifest.whole_cost
        return Spent(spent.epsilon, Decimal(repr(spent.delta)))

    @cached_property
    def table(self) -> "pd.DataFrame":
        """The synthetic rows, or the embedded documents, read from the hand-off when they are first asked for.

        Of users and their rows these are the rows; ``parents`` are the users. A tree has ``tables`` instead.
        """
        names = self._folders
        if (len(names) > 1 and "children" not in names) or self.manifest.clients:
            raise Unsuitable(self._instead)
        return _read_parquet(self._rows / "children" if "children" in names else self._rows, _to_pandas)

    @cached_property
    def tables(self) -> "dict[str, pd.DataFrame]":
        """The synthetic rows of every table of a tree by its name, read when they are first asked for.

        Users and their rows are ``parents`` and ``children``; a single table has the name of the data set.
        """
        return self._each(_to_pandas) or {self.manifest.data_set: self.table}

    @cached_property
    def arrow(self) -> "pa.Table | dict[str, pa.Table]":
        """The synthetic rows as a pyarrow Table, in the types of the Parquet files; of several tables a dictionary."""
        return self._each(lambda table: table) or _read_parquet(self._rows, lambda table: table)

    @cached_property
    def polars(self) -> "pl.DataFrame | dict[str, pl.DataFrame]":
        """The synthetic rows as a polars DataFrame, which no extra installs; of several tables a dictionary."""
        try:
            import polars as pl
        except ImportError:
            raise Unsuitable("polars is not installed: pip install polars, or read `table` or `arrow`") from None

        def frame_of(table: "pa.Table") -> pl.DataFrame:
            return pl.DataFrame(table)

        return self._each(frame_of) or _read_parquet(self._rows, frame_of)

    @property
    def _rows(self) -> Path:
        """The folder of what was synthesized, or of the embeddings."""
        return self.folder / ("embeddings" if self.manifest.part else "synthetic")

    def _each(self, form: "Callable[[pa.Table], T]") -> dict[str, T]:
        """Read every one of several tables; nothing of a single table."""
        return {name: _read_parquet(self._rows / name, form) for name in self._folders}

    @cached_property
    def _folders(self) -> tuple[str, ...]:
        """The folders of tables that the synthetic data consists of; none of a single table."""
        from dpmodels.authoring.lint import load_contract
        from dpmodels.codec.flat import tables_of

        synthetic = self.folder / "synthetic"
        if not synthetic.is_dir() or not any(path.is_dir() for path in synthetic.iterdir()):
            return ()
        return tables_of(load_contract(self.folder / "schema.yaml"))

    @property
    def _instead(self) -> str:
        """Say what the hand-off has, and by which attribute that is read, to whoever asked for another."""
        names = self._folders
        if self.manifest.clients:
            return "the hand-off is a classifier: read it by `classifier`"
        if self.manifest.part:
            return "the hand-off has the embeddings of documents: read them by `table`"
        if "children" in names:
            return "the hand-off has users and their rows: read them by `parents` and `table`"
        if names:
            return f"the hand-off has {len(names)} tables ({', '.join(names)}): read them by `tables`"
        return "the hand-off is one table: read it by `table`"

    @cached_property
    def parents(self) -> "pd.DataFrame":
        """The synthetic users, one row each, of a table of users and their rows."""
        if self.manifest.clients or (self._rows.is_dir() and "parents" not in self._folders):
            raise Unsuitable(self._instead)
        return _read_parquet(self.folder / "synthetic" / "parents", _to_pandas)

    @cached_property
    def classifier(self) -> "FederatedClassifier":
        """The classifier of a federation, read from the hand-off when it is first asked for."""
        if not self.manifest.clients:
            raise Unsuitable(self._instead)
        from dpmodels.methods.federations.classifier import FederatedClassifier

        return FederatedClassifier.load(self.folder / "classifier.safetensors")

    @cached_property
    def report(self) -> Report:
        """The publishable report."""
        return Report(self.folder)

    @property
    def drowned(self) -> str:
        """What says that the whole release hardly stands out of its noise, and what to do; empty where it does."""
        from dpmodels.pages.advice import drowned_in_words

        return _plain(drowned_in_words(self.report.facts))

    @property
    def warnings(self) -> list[str]:
        """What the report warns of, as a terminal prints it: the release, clients, worst columns and rows."""
        from flows.description import warnings_in

        return [*filter(None, [self.drowned]), *map(_plain, warnings_in(self.report.facts))]

    @property
    def notes(self) -> list[str]:
        """What the page notes, since the schema declares it: how many rows of a user are used, and what is left out."""
        from dpmodels.pages.notes import notes_of

        return list(map(_plain, notes_of(self.report.facts)))

    @property
    def _others(self) -> list[str]:
        """What the report warns of beside what is said of the whole release."""
        return [warning for warning in self.warnings if warning != self.drowned]

    @cached_property
    def statement(self) -> str:
        """The page for a data-protection officer; hand-offs of earlier versions have none."""
        return read_page(self.folder / "statement.html")

    @in_python
    def export(
        self,
        to: Place,
        by: str | Sequence[str] = (),
        png: bool = False,
        replace: bool = False,
        text: str | Mapping[str, str] = "",
    ) -> str:
        """Copy the synthetic table to a file, a folder, a URI or an open table, whole or not at all.

        A file is of the format that its ending says: .parquet, .csv, .arrow, .jsonl, .xlsx or .duckdb. A folder has one
        for each value of ``by``. A table is ``delta:FOLDER`` or ``iceberg:CATALOG.db#NAMESPACE.TABLE``; with
        ``replace`` the rows are the next snapshot of one that was exported before. Return where the rows are read.

        With ``png``, write its images as PNG files, in a folder for each label. ``text`` says how numbers and dates of
        a .csv file are written, as the key of a schema does: ``{"decimal": ",", "date_format": "%d.%m.%Y"}``.
        """
        from tasks.stages.export import export

        return export(self.folder, str(to), (by,) if isinstance(by, str) else by, png, replace, text)

    def verify(self, public_key: Place | None = None, officer_key: Place | None = None) -> Verified:
        """Check every file, the budget, the pages and the signature; see ``nacre.verify``."""
        return verify(self.folder, public_key, officer_key)

    if not TYPE_CHECKING:  # a type checker knows the attributes, and is to refuse others itself

        def __getattr__(self, name: str) -> NoReturn:
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            hint = "" if name.startswith("_") else near(name, known)
            raise AttributeError(f"a Result has no attribute {name!r}{hint}", name=name)

    def __repr__(self) -> str:
        from dpmodels.pages.glance import sentences_in_short

        warning = f"  WARNING {_cut(self.drowned)}\n" if self.drowned else ""
        sentences = sentences_in_short(self.report.facts) if self.report.facts.get("headline") else []
        facts = (
            {"in short": f"\n  {'':8} ".join(one[:1].upper() + one[1:] for one in sentences if one)}
            if sentences
            else {}
        )
        facts |= self._in_short()
        if others := self._others:
            first = _cut(others[0].split("\n")[0])
            more = "; `warnings` has all" if len(others) > 1 or first != others[0] else ""
            facts["warnings"] = f"{len(others)}{more}; the first: {first}"
        if self.notes:
            facts["notes"] = "; ".join(map(_cut, self.notes))
        facts["report"] = str(self.report.path)
        lines = "\n".join(f"  {name:8} {text}" for name, text in facts.items())
        return f"<nacre hand-off of {self.manifest.data_set}\n{warning}{lines}>"

    def _repr_html_(self) -> str:
        """Say what came of the run and what it cost, as a terminal does, above the first rows."""
        from dpmodels.pages.glance import IN_SHORT, glance

        seen = {**glance(self.report.facts), "WARNING": self.drowned, **self._in_short()}
        others = "\n".join(self._others)
        files = {"report": str(self.report.path), "warnings": others, "notes": "\n".join(self.notes)}
        what = ("WARNING", IN_SHORT, "made", "spent", "account", "declared", "hides", "checks")
        names = (*what, "warnings", "notes", "folder", "report")
        facts = {name: text for name in names if (text := {**seen, **files}.get(name))}
        links = {"report": self.report.path.absolute().as_uri()}
        return facts_as_html(f"hand-off of {self.manifest.data_set}", facts, links) + self._first_rows()

    def _first_rows(self) -> str:
        """Show the first rows of the table, or of the first private one of several."""
        if not self._folders:
            return first_rows_as_html("the first rows", self._rows)
        from dpmodels.authoring.lint import load_contract

        name = getattr(load_contract(self.folder / "schema.yaml"), "root", self._folders[0])
        caption = f"the first rows of {name}, of the tables {', '.join(self._folders)}"
        return first_rows_as_html(caption, self._rows / name)

    def _in_short(self) -> dict[str, str]:
        """Say what was made, what it cost in the digits of the command line, what it hides, and where it lies."""
        manifest, spent, facts = self.manifest, self.spent, self.report.facts
        if manifest.clients:
            product = f"a classifier of {len(facts['classes'])} classes with {len(manifest.clients)} clients"
        elif manifest.part:
            product = f"{facts['documents']} embeddings"
        else:
            kind = facts.get("rows_are", "rows")
            product = f"{facts['synthetic_rows']} synthetic {kind}, {len(facts['columns'])} modeled columns"
        cost = f"epsilon={amounts.spent(spent.epsilon)}, delta={amounts.written(spent.delta)}"
        return {
            "made": f"{product}, by {manifest.method}; run {self.run}",
            "spent": f"{cost}, account {manifest.ledger.account or '(left out)'}",
            **({"account": self.opened} if self.opened else {}),
            **({"declared": self.changes.taken_over} if self.changes and self.changes.declared else {}),
            "hides": manifest.adjacency.of(manifest.unit),
            "folder": str(self.folder),
        }


def _plain(text: str) -> str:
    """Return a sentence of a page with spaces that may be searched for."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def _cut(text: str) -> str:
    """Return the words of a warning that one reads in a line."""
    return shorten(text, LONGEST_LINE, placeholder=" …")


def run_of(run: str | Result, home: Place | None) -> "Run":
    """Return a run that is given by its name or by what it handed over."""
    from tasks.run.store import Run

    try:
        stored_run = Run.find(home_of(home or home_known(run)), name_of(run))
    except ArtifactError:
        if not isinstance(run, Result) and os.path.isfile(os.path.join(run, MANIFEST)):
            raise Unsuitable(f"{run} is the folder of a hand-off: open it as nacre.Result({str(run)!r})") from None
        if home or not isinstance(run, Result) or run.home:
            raise
        fact = f"the hand-off {run.folder} does not say where its run lies, and it is not under {home_of(None)}"
        raise Unsuitable(f"{fact}: pass the home in which {run.run} was made, as in home={EXAMPLE!r}") from None
    if isinstance(run, Result) and run.home is None:
        run.home = stored_run.home
    return stored_run


def _usual_home(run: str) -> Path | None:
    """Return the home of the environment if a run is in it; a hand-off that was received has its run elsewhere."""
    from tasks.run.store import Run

    with suppress(NacreError, OSError):
        return Run.find(home_of(None), run).home
    return None


def home_known(run: str | Result) -> Path | None:
    """Return the home of a result's run, where that is known."""
    return run.home if isinstance(run, Result) else None


def name_of(run: str | Result) -> str:
    """Return the name of a run that is given by its name or by what it handed over."""
    return run.run if isinstance(run, Result) else run


def _read_parquet(path: Path, form: "Callable[[pa.Table], T]") -> T:
    """Read a table in the form of one library."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return form(pq.read_table(path))
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        raise ArtifactError(f"{path} is missing, or cannot be read as Parquet") from None


def _to_pandas(table: "pa.Table") -> "pd.DataFrame":
    from nacre.listing import to_pandas

    return to_pandas(table)
