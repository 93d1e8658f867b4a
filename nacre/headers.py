"""The names of the columns of a frame, which whoever passed it may see beside those of its schema."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import signature
from typing import Any, NamedTuple

from dpmodels.errors import NacreError

FRAMES = {"pandas", "polars"}


class Header(NamedTuple):
    """What one frame of a call calls its columns, and the schema of the call.

    Privacy: the names stay with whoever made the frame; no error of a flow holds one, nor does this hold a row.
    """

    names: tuple[str, ...]
    schema: Any

    @classmethod
    def of(cls, function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> "Header | None":
        """Return the names in the one frame of a call with a schema; None of any other call."""
        try:
            given = signature(function).bind(*args, **keywords).arguments
        except TypeError:
            return None
        given |= given.get("settings", {})
        data, schema = given.get("data"), given.get("schema")
        columns = getattr(data, "columns", ()) if type(data).__module__.partition(".")[0] in FRAMES else ()
        if isinstance(schema, Mapping):  # of which the names alone are kept, for it may be rows that stand in its place
            schema = dict.fromkeys(name for name in schema.get("columns", ()) if isinstance(name, str))
        elif not isinstance(schema, str | os.PathLike) and type(schema).__name__ != "Schema":
            return None
        return cls(tuple(name for name in columns if isinstance(name, str)), schema)

    def named(self, text: str) -> str:
        """Name the columns that the schema lacks in an error that counts them.

        A frame that has no column of the schema, or one whose name does not look like one, may have values for names.
        """
        from dpmodels.codec.encode import LISTED
        from dpmodels.codec.names import NEARNESS, listed, looks_like_a_name, unknown_in

        declared = self._declared()
        unknown = unknown_in(declared, self.names)
        if not unknown or not set(self.names) & set(declared) or not all(map(looks_like_a_name, self.names)):
            return text
        return NEARNESS.sub("", text).replace(LISTED, f": {listed(unknown)}")

    def _declared(self) -> list[str]:
        """Return the names of the schema; none where it cannot be read."""
        from nacre.given import load_schema

        if isinstance(self.schema, dict):
            return list(self.schema)
        with suppress(NacreError):
            return list(getattr(load_schema(self.schema), "columns", ()))
        return []
