"""What is audited: a system with its plan, a made data set, and neighbors of it that move a release far.

The neighbors of a table have one more record (or user): one for each extreme of the schema, put last, and one of them
first and in the middle. Where a record, or a sentence, is replaced, it is replaced at these places.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.audit.data import OTHERS, crowd, data_of, extremes, inserted, quick_plan, with_users
from dpmodels.audit.made import clients, clinic, letters, shop, visits
from dpmodels.audit.readings import BATCH, LETTERS, read_letters, read_rows
from dpmodels.errors import InvalidArgument
from dpmodels.methods.documents.deep_candidate import DeepCandidate, DeepCandidateMeasurement
from dpmodels.methods.documents.document_sketch import DocumentSketch, DocumentSketchMeasurement
from dpmodels.methods.federations.heads import FederatedHeads, HeadsMeasurement, ScoresMeasurement
from dpmodels.methods.federations.heads_and_moments import BothMeasurement, HeadsAndMoments
from dpmodels.methods.federations.moments_head import MomentsHead
from dpmodels.methods.federations.scores import FederatedScores
from dpmodels.methods.quick import QUICK, quick
from dpmodels.methods.tables.thresholded_counts import DiscoverySystem
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line
from dpmodels.releases.system import System
from dpmodels.statistics.component_moments import Points
from dpmodels.text.encoders import Vectors
from dpmodels.text.passages import Passages

OF_CLIENTS = ("federated-both", "federated-heads", "federated-moments", "federated-scores")
"""What a client of a federation releases."""
ALIKE, MOST = 300, 2
"""Users who are alike, from whom others lie far; and the rows, or letters, of a user that count."""


@dataclass(frozen=True)
class World:
    """One data set, in a word, as batches of what its system reads.

    Attributes:
        aligned: whether every other unit is where it is in the first world, so that batches of DP-SGD can be compared.
    """

    name: str
    batches: Sequence[Any]
    aligned: bool = True


@dataclass(frozen=True)
class Subject:
    """A system, its plan, and the data sets on which it is compared; the first is the one that the rest neighbor.

    Attributes:
        others: data sets that are far from the first, two parts of it where its size is private. With the same releases
            they must leave the same all the same, for nothing else may reach the outside.
    """

    name: str
    system: System[Any]
    line: Line
    worlds: Sequence[World]
    others: Sequence[World] = ()

    @property
    def whole(self) -> World:
        """The data set that the others are neighbors of."""
        return self.worlds[0]


def of_method(method: str, rows_of_a_user: int = 1, epsilon: float = 1.0) -> Subject:
    """Return a method of the registry with its quick settings."""
    data = data_of(method)
    schema = data.make_schema() if rows_of_a_user == 1 else with_users(method, rows_of_a_user)
    return of_line(method, quick_plan(method, schema, epsilon), rows_of_a_user)


def of_line(method: str, line: Line, rows_of_a_user: int = 1) -> Subject:
    """Return a method of the registry under a plan."""
    data = data_of(method)
    table, more = crowd(data), extremes(data)
    middle, end = len(table) // 2, len(table)
    worlds = [World("D", [table])]
    for who, row in [*((who, end) for who in range(len(more))), (0, 0), (0, middle)]:
        added = inserted(table, more.take([who] * rows_of_a_user), row)
        where = {0: "first", middle: "in the middle", end: "last"}[row]
        worlds.append(World(f"extreme {who + 1} {where}", [added], aligned=row == end))
    parts = {"those who are alike": slice(end - OTHERS), "the others": slice(end - OTHERS, end)}
    two = [World(name, [table.take(part)]) for name, part in parts.items()]
    return Subject(method, quick(method), line, worlds, two)


def of_letters(method: str, epsilon: float = 3.0) -> Subject:
    """Return a system that releases something for each document; a neighbor has another sentence somewhere."""
    public = letters.make_public()
    system: System[Any] = (
        DeepCandidate(DeepCandidateMeasurement(), public)
        if method == "deep-candidate"
        else DocumentSketch(DocumentSketchMeasurement(), public)
    )
    all_letters = letters.make_passages(6, sentences=5)
    ends = [sign * axis for axis in np.eye(letters.DIM)[:4] for sign in (1.0, -1.0)]
    sentences_and_ends = [(12, number) for number in range(len(ends))] + [(0, 0), (0, 1), (29, 0), (29, 1)]
    worlds = [
        World(
            f"sentence {sentence + 1} at end {number + 1}", [letters.with_sentence(all_letters, sentence, ends[number])]
        )
        for sentence, number in sentences_and_ends
    ]
    line = system.plan(letters.make_contract(), letters.make_budget(epsilon))
    others = [World("other letters", [letters.make_passages(6, seed=2, sentences=5)])]
    return Subject(method, system, line, [World("D", [all_letters]), *worlds], others)


def of_client(method: str, epsilon: float = 1.0, public: bool = False, records: int = 20_000) -> Subject:
    """Return what a client of a federation releases; with ``public`` sizes a record is replaced, else one is added.

    With this regularization, one record that contradicts many of one kind hardly bends them; there the bound on an
    optimum is nearly reached.
    """
    contract, negatives = clients.make_contract(records, public), clients.make_negatives()
    settings: dict[str, Any] = {"records": records, "score_lambda": 10 / records, "bias": 0.0}
    heads = HeadsMeasurement(**settings, head_lambda=10 / records)
    systems: dict[str, System[Any]] = {
        "federated-both": HeadsAndMoments(BothMeasurement(heads=heads), negatives),
        "federated-heads": FederatedHeads(heads, negatives),
        "federated-moments": MomentsHead(),
        "federated-scores": FederatedScores(ScoresMeasurement(**settings), negatives),
    }
    system = systems[method]
    line = system.plan(contract, PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=contract.adjacency))
    points = clients.make_points(records)
    parts = [slice(records // 2), slice(records // 2, None)]
    others = [Points(points.z[part], points.label[part]) for part in parts]
    if public:
        others = [clients.make_points(records, label=1, seed=1)]
    far = [World("other records", [other]) for other in others]
    return Subject(method, system, line, [World("D", [points]), *_of_points(points, public)], far)


def _of_points(points: Points, public: bool) -> Iterator[World]:
    """Yield neighbors with another record, or one more, at several angles to what is usual."""
    usual, across = np.eye(clients.SIZE)[:2]
    middle, end = len(points.z) // 2, len(points.z) - public
    for share, label, row in (
        *((0.4, label, end) for label in range(clients.CLASSES)),
        *((-0.4, label, end) for label in range(clients.CLASSES)),
        (0.4, 1, 0),
        (0.4, 1, middle),
        (1.0, 1, end),
        (0.0, 1, end),
    ):
        vector = clients.whole_vectors(share * usual + np.sqrt(1 - share**2) * across)
        where = {0: "first", middle: "in the middle", end: "last"}[row]
        z = points.z.copy() if public else np.insert(points.z, row, vector, axis=0)
        labels = points.label.copy() if public else np.insert(points.label, row, label)
        z[row], labels[row] = vector, label
        yield World(f"{share:g} of the usual, class {label}, {where}", [Points(z, labels)])


def of_discovery(epsilon: float = 4.0) -> Subject:
    """Return a discovery; a neighbor has a patient more whose visits are at an end of what is told apart."""
    system, rows = DiscoverySystem(), 300
    line = system.plan(visits.make_contract(), visits.make_budget(epsilon))
    people_and_rows = [*((who, rows) for who in range(len(visits.EXTREMES))), (0, 0), (0, rows // 2)]
    worlds = [World("D", [visits.make_visits(rows)])]
    for who, row in people_and_rows:
        where = {0: "first", rows // 2: "in the middle", rows: "last"}[row]
        more = visits.make_visits(rows, visits.EXTREMES[who], row)
        worlds.append(World(f"extreme {who + 1} {where}", [more]))
    whole = worlds[0].batches[0]
    two = [World(name, [part]) for name, part in (("the first", whole[: rows // 2]), ("the rest", whole[rows // 2 :]))]
    return Subject("discovery", system, line, worlds, two)


def of_rows(epsilon: float = 4.0) -> Subject:
    """Return a table of users as a run reads it; a neighbor has a user more, with twice the rows that count.

    Two of them end a batch, and two begin the next.
    """
    schema, visits_table = with_users("moments", MOST), clinic.make_table(OTHERS)
    whole = visits_table.take([0] * ALIKE + list(range(OTHERS)))
    whole = whole.add_column(0, "who", pa.array(range(len(whole))))
    ends = pa.table(clinic.EXTREMES, schema=visits_table.schema)

    def world(name: str, who: int, row: int) -> World:
        more = ends.take([who] * 2 * MOST).add_column(0, "who", pa.array([-1] * 2 * MOST))
        return World(name, [read_rows(schema, pa.concat_tables([whole[:row], more, whole[row:]]))])

    people_and_rows = [*((who, BATCH - MOST) for who in range(len(ends))), (0, 0), (0, len(whole))]
    worlds = [world(f"extreme {who + 1} at row {row}", who, row) for who, row in people_and_rows]
    parts = {"those who are alike": whole[:ALIKE], "the others": whole[ALIKE:]}
    two = [World(name, [read_rows(schema, part)]) for name, part in parts.items()]
    first = World("D", [read_rows(schema, whole)])
    return Subject("rows-of-users", quick("moments"), quick_plan("moments", schema, epsilon), [first, *worlds], two)


def of_two_tables(joined: bool, epsilon: float = 4.0) -> Subject:
    """Return users and their rows as a run reads them; a neighbor has a user more, with more rows than count, or fewer.

    They come in two files or, ``joined``, in one, which has no user without rows.
    """
    schema, tables = shop.make_schema(), shop.make_crowd(ALIKE, OTHERS)

    def world(name: str, parents: pa.Table, orders: pa.Table) -> World:
        if joined:
            return World(name, [read_rows(schema, orders.join(parents, "customer").sort_by("number"))])
        return World(name, [read_rows(schema, orders, parents)])

    def part(name: str, alike: bool) -> World:
        condition = pc.field("customer") < ALIKE if alike else pc.field("customer") >= ALIKE
        return world(name, *(table.filter(condition) for table in tables))

    most = schema.unit.max_rows
    many = [(0, 2 * most, BATCH - most), (2, most, BATCH - 1), (3, 2 * most, 0)]
    few = [(0, 1, len(tables[1])), (2, 1, 0), (3, 1, BATCH), *([] if joined else [(1, 0, 0)])]
    worlds = [
        world(f"extreme {who + 1} with {rows} rows at {row}", *shop.with_customer(tables, who, rows, row))
        for who, rows, row in many + few
    ]
    name, line = "two-tables-joined" if joined else "two-tables", quick_plan("nacre", schema, epsilon)
    two = [part("those who are alike", True), part("the others", False)]
    return Subject(name, quick("nacre"), line, [world("D", *tables), *worlds], two)


def of_letters_of_users(epsilon: float = 3.0) -> Subject:
    """Return letters of users as a run reads them; a neighbor has another sentence in each letter of one user.

    The user wrote more letters than count. The first of them ends a batch, and the rest are in the next.
    """
    public, user_letters = letters.make_public(), letters.make_passages(3 * LETTERS, sentences=5)
    contract = letters.make_contract(user="who", most_documents=MOST)
    system = DeepCandidate(DeepCandidateMeasurement(), public)
    who = (np.arange(len(user_letters)) + 1) // LETTERS

    def world(name: str, passages: Passages) -> World:
        table = letters.make_table(passages).append_column("who", pa.array(who))
        return World(name, [read_letters(contract, table)])

    def repeated(vector: Vectors) -> Passages:
        other = user_letters
        for letter in np.flatnonzero(who == 1).tolist():
            other = letters.with_sentence(other, int(user_letters.ends[letter]), vector)
        return other

    ends = [sign * axis for axis in np.eye(letters.DIM)[:4] for sign in (1.0, -1.0)]
    worlds = [world(f"sentences of a user at end {number + 1}", repeated(end)) for number, end in enumerate(ends)]
    line = system.plan(contract, letters.make_budget(epsilon))
    far = [world("other letters", letters.make_passages(len(user_letters), seed=2, sentences=5))]
    return Subject("letters-of-users", system, line, [world("D", user_letters), *worlds], far)


AS_READ: dict[str, Callable[[], Subject]] = {
    "rows-of-users": of_rows,
    "two-tables": partial(of_two_tables, joined=False),
    "two-tables-joined": partial(of_two_tables, joined=True),
    "letters-of-users": of_letters_of_users,
}
"""Methods for users, on data that are read as a run reads them: a table, users and their rows, and letters."""
SUBJECTS: dict[str, Callable[[], Subject]] = {
    **{method: partial(of_method, method, epsilon=1.0 if QUICK[method].trained else 4.0) for method in QUICK},
    "deep-candidate": partial(of_letters, "deep-candidate"),
    "document-sketch": partial(of_letters, "document-sketch"),
    "discovery": of_discovery,
    **{method: partial(of_client, method, epsilon=4.0) for method in OF_CLIENTS},
    **AS_READ,
}
"""Everything that has a charge of its own, by the name of its method, or of what it is about."""


def check_method(method: str) -> None:
    """Refuse a name that is no subject's.

    Raises:
        InvalidArgument: there is no such subject.
    """
    if method not in SUBJECTS:
        raise InvalidArgument("method", method, f"be one of {', '.join(SUBJECTS)}")


def subject_of(method: str) -> Subject:
    """Return what is audited for a method.

    Raises:
        InvalidArgument: there is no such method.
    """
    check_method(method)
    return SUBJECTS[method]()
