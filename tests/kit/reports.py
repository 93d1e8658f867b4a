"""Facts of a publishable report without a pipeline: a release made as the systems make it, and rows beside it."""

import numpy as np
import pyarrow as pa

from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.gate.expectations import Gate
from dpmodels.mechanisms import gaussian
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Keep, Sum
from dpmodels.releases.walk import Walk, values_of
from dpmodels.report.bins import CellTally
from dpmodels.report.charged import Scores
from dpmodels.report.charged_facts import charged_facts
from dpmodels.report.fidelity import Measured
from dpmodels.report.report import summarise
from dpmodels.report.verdicts import judged
from tests.kit.support import make_schema

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)


class Drawn(Walk):
    """Draws sums of embeddings as the draw does, without a ledger."""

    def __init__(self, line: Line, records: Records) -> None:
        super().__init__(line)
        self.records = records

    def sum(self, step: Sum, scale: tuple[int, float], data: object) -> np.ndarray:
        return gaussian._sampler(step.embedding.lattice_sum(self.records).numpy(), lattice_noise_stddev(*scale))

    def keep(self, step: Keep) -> np.ndarray:
        return step.integers()

    def choose(self, *_: object) -> np.ndarray:
        raise NotImplementedError

    def choose_each(self, *_: object) -> np.ndarray:
        raise NotImplementedError

    def sum_each(self, *_: object) -> np.ndarray:
        raise NotImplementedError

    def count_keys(self, *_: object) -> tuple[pa.Table, np.ndarray]:
        raise NotImplementedError

    def train(self, *_: object) -> np.ndarray:
        raise NotImplementedError


def release_of(system, records: Records, schema: Schema) -> Release:
    """Release as the system does, without a ledger."""
    line = system.plan(schema, BUDGET.model_copy(update={"unit": schema.unit}))
    taken = list(values_of(Drawn(line, records).take(system.steps(line), line.event, None)))
    vector = np.concatenate([values for step, values in taken if isinstance(step, Sum)])
    kept = [values for step, values in taken if isinstance(step, Keep)]
    return Release(line=line, vector=vector, entry="the-entry", chosen=np.concatenate([vector[:0], *kept]))


def facts_of(system, records: Records, made: Records, schema: Schema | None = None, scores: bool = False) -> dict:
    schema = schema or make_schema()
    release = release_of(system, records, schema)
    charged = None
    if scores:
        charged = {"status": "measured", "charged": True}
        charged |= charged_facts(release_of(Scores(synthetic=[made]), records, schema))
    gate = Gate(schema, raw=False, rows=len(made))
    gate.check(Codec(schema).decode(made))
    measured = Measured.of(release)
    tally = CellTally(measured.codec)
    tally.add(made)
    return judged(summarise(measured, tally, [made], gate.results(), "0" * 64, charged))
