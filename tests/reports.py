"""Facts of a publishable report without a pipeline: a release made as the systems make it, and rows beside it."""

import numpy as np

from dpmodels.evaluation.published.bins import CellTally
from dpmodels.evaluation.published.charged import Scores
from dpmodels.evaluation.published.charged_facts import charged_facts
from dpmodels.evaluation.published.fidelity import Measured
from dpmodels.evaluation.published.report import summarise
from dpmodels.mechanisms.gaussian import discrete_gaussian, lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.draw import walk
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Keep, Step
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.expectations import Gate
from dpmodels.schema.schema import Schema
from tests.support import make_schema

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)


def release_of(system, records: Records, schema: Schema) -> Release:
    """Release as the system does, without a ledger."""
    plan = system.plan(schema, BUDGET.model_copy(update={"unit": schema.unit}))
    vectors, chosen = [], [np.zeros(0, dtype=np.int64)]

    def answer(step: Step) -> np.ndarray:
        if isinstance(step, Keep):
            chosen.append(step.integers)
            return step.integers
        total = step.embedding.lattice_sum(records).numpy()
        stddev = lattice_noise_stddev(step.l2_sensitivity, step.noise_multiplier)
        vectors.append(discrete_gaussian(total, stddev))
        return vectors[-1]

    list(walk(system.programme(plan), answer))
    return Release(plan=plan, vector=np.concatenate(vectors), entry="the-entry", chosen=np.concatenate(chosen))


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
    return summarise(measured, tally, [made], gate.results(), "0" * 64, charged)
