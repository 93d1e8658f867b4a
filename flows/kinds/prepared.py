"""What a run of any kind is to be, before there is one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpmodels.releases.contract import Contract
from dpmodels.releases.plan import Line, Plan
from dpmodels.releases.system import System
from tasks.run.source import Source


@dataclass(frozen=True)
class Prepared:
    """What is planned from public inputs alone.

    Attributes:
        contract: of the whole data set, or of the whole federation.
        lines: what is charged. Of a federation a line for each client, in their order; none where nothing is drawn.
        clients: by client of a federation where its own data lie; empty for every other kind.
        files: public ones that the run keeps in its control zone.
        settings: of the run, instead of those that the configuration says or beside them.
        system: of the first line, where it is made with public files and not of the plan alone.
    """

    contract: Contract
    lines: Sequence[Line]
    clients: Mapping[str, Source] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    system: System[Any] | None = None

    @property
    def plan(self) -> Plan:
        """What is charged in all."""
        return Plan(lines=tuple(self.lines), about=None if self.lines else self.contract)

    @property
    def by_client(self) -> dict[str, Line]:
        """The line of each client; empty where nothing is drawn, and for every other kind."""
        return dict(zip(self.clients, self.lines, strict=True)) if self.clients and self.lines else {}

    @property
    def plans(self) -> dict[str, Plan]:
        """What each party is charged, by client; of a run that is no federation by the empty name."""
        if not self.clients:
            return {"": self.plan}
        if self.lines:
            return {name: Plan(lines=(line,)) for name, line in self.by_client.items()}
        if self.contract.kind != "federation":
            raise ValueError("only a federation has clients")
        return {name: Plan(lines=(), about=self.contract.of(name)) for name in self.clients}


class Preparation(Protocol):
    """What a kind of configuration is asked before there is a run; each is a module of this room."""

    IS_SLOW: bool
    """Whether `prepare` makes something of public files that takes long."""

    def check_paths(self, config: Any, has_data: bool) -> None:
        """Refuse paths that no run could read, and, before anything slow is made, options that no run could have.

        ``has_data``: paths of private files too.
        """

    def prepare(self, config: Any, partition: str) -> Prepared:
        """Plan from public inputs alone; a partition is the value of one part of a table."""

    def are_stated(self, config: Any, prepared: Prepared) -> bool:
        """Tell whether files say names and types of their columns without a look at a record."""

    def check_data(self, config: Any, prepared: Prepared) -> None:
        """Hold names and types in private files to the contract; reads no rows."""
