"""Whether another order of day, month and year reads every date of a table whose text is read as none."""

from collections.abc import Iterator
from pathlib import Path

from dpmodels.codec.text_values import DATES
from dpmodels.contract.columns import Datetime
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.contract.text_forms.written import with_form
from dpmodels.errors import DataError
from dpmodels.reading.database import Query
from dpmodels.reading.load import RawRows

ORDERS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d")
TIMES = ("%H:%M", "%H:%M:%S")
"""The forms that are tried besides day and month in the other order, and the times that may stand behind them."""
SWAPPED = str.maketrans("dm", "md")
FITS = "with `text: {{{form}}}` in the schema every date of the data is read"
SWAP = ", for day and month stand in the other order"
EITHER = ", and with {others} as well: only whoever wrote the data knows which of the two numbers is the day"
OTHERWISE = (
    "; where the data lies, `nacre validate DATA --schema SCHEMA --raw` says whether every date is read in another "
    "order of day and month"
)
"""What a run says in place of an order that fits, which would tell of all rows."""


def with_check(fault: DataError) -> DataError:
    """Return the fault that a run states, with the command that tries other orders where dates are not read.

    Privacy: it adds the same words whatever the rows hold.
    """
    if f"must hold {DATES[0]} in every row" not in fault.rule:
        return fault
    return DataError(fault.column, f"{fault.rule}{OTHERWISE}", fault.faults, fault.also)


def with_order(fault: DataError, source: str | Path | Query, schema: Schema, batch_rows: int) -> DataError:
    """Return the fault of raw rows with the other form of dates by which every row is read, where there is one.

    Privacy: as ``order_that_fits``.
    """
    if not (order := order_that_fits(source, schema, batch_rows)):
        return fault
    return DataError(fault.column, f"{fault.rule}; {order}", (*fault.faults, order), fault.also)


def order_that_fits(source: str | Path | Query, schema: Schema, batch_rows: int) -> str:
    """Say with which other form of dates every row is read; empty where the schema's own fits, or no other one does.

    Privacy: what it says follows from all rows, so it is for whoever has them at hand, and for no run.
    """
    names = [name for name, column in schema.columns.items() if isinstance(column, Datetime)]
    if not names or schema.image or _is_read(source, dates := _of_dates(schema, names), schema.text, batch_rows):
        return ""
    fitting = dict[str, TextForm]()
    for form in _others(schema.text):
        if str(form.date_format) not in fitting and _is_read(source, dates, form, batch_rows):
            fitting[str(form.date_format)] = form
            if form == _swapped(schema.text):
                return FITS.format(form=_written(form)) + SWAP
    if not fitting:
        return ""
    first, *others = fitting.values()
    said = FITS.format(form=_written(first))
    return said + (EITHER.format(others=" and ".join(f"`{{{_written(one)}}}`" for one in others)) if others else "")


def _of_dates(schema: Schema, names: list[str]) -> Schema:
    """Return the schema of a table of which its dates alone are looked at."""
    return schema.without({*schema.columns} - {*names, str(schema.unit.user)})


def _swapped(form: TextForm | None) -> TextForm | None:
    """Return a form of dates with day and month in the other order; None of one that says nothing of dates."""
    if form is None or not form.is_of_dates:
        return None
    keys = {key: text for key in ("date_format", "datetime_format") if (text := getattr(form, key))}
    return form.model_copy(update={key: text.translate(SWAPPED) for key, text in keys.items()})


def _others(form: TextForm | None) -> Iterator[TextForm]:
    """Yield the forms that are tried, each without times before it is with some."""
    if swapped := _swapped(form):
        yield swapped
    for order in ORDERS:
        for times in (None, *(f"{order} {times}" for times in TIMES)):
            yield (form or TextForm()).model_copy(update={"date_format": order, "datetime_format": times})


def _is_read(source: str | Path | Query, schema: Schema, form: TextForm | None, batch_rows: int) -> bool:
    try:
        for _ in RawRows(source, with_form(schema, form), batch_rows):
            pass
    except DataError:
        return False
    return True


def _written(form: TextForm) -> str:
    keys = [(key, text) for key, text in form.model_dump(exclude_none=True).items() if key.startswith("date")]
    return ", ".join(f'{key}: "{text}"' for key, text in keys)
