"""Faults by which somebody who knows the audit would slip by it: each did so once, and the audit was mended for it."""

import os
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dpmodels.audit.audit import users_findings
from dpmodels.audit.findings import Finding
from dpmodels.audit.subjects import of_method
from dpmodels.codec.records import Records
from dpmodels.embeddings import summation
from dpmodels.embeddings.cell_counts import CellCounts
from dpmodels.embeddings.moments import Moments
from dpmodels.generators.sampling import Sampler
from dpmodels.hand_off import writer
from dpmodels.ledger import store, weighing
from dpmodels.mechanisms import choices, gaussian
from dpmodels.mechanisms.dp_sgd.adaptive import STEP_BITS
from dpmodels.mechanisms.dp_sgd.clipping import FACTOR_BITS
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from flows.audit import flow_findings
from tasks.engine import encoded
from tasks.kinds import classifier, each_document, federation
from tasks.kinds import tables as of_tables
from tests.audit.faults import (
    CHOICES,
    CONDUCT,
    FAULTS,
    NEIGHBORS,
    NOISE,
    TRAINING,
    fault,
    put,
    table,
    two_looks,
    whole_run,
    with_exact_sum,
)

__all__ = ["FAULTS"]  # with those of the other file


def scored_run(folder: Path) -> list[Finding]:
    return flow_findings("moments", folder / "flow", report_epsilon=0.5)


def run_of_letters(folder: Path) -> list[Finding]:
    return flow_findings("deep-candidate", folder / "flow")


def run_of_clients(folder: Path) -> list[Finding]:
    return flow_findings("federated-moments", folder / "flow")


def of_users(folder: Path) -> list[Finding]:
    return list(users_findings(of_method("moments", epsilon=4.0), folder))


def counted(stack: ExitStack) -> list[int]:
    """Keep the numbers of rows that were summed where whoever comes later finds them."""
    real, rows = summation.sum_records, [0]

    def summed(embedding: Any, device: Any, batches: Any) -> np.ndarray:
        held = list(batches)
        rows.append(sum(map(len, held)))
        return real(embedding, device, held)

    put(stack, summation, "sum_records", summed)
    return rows


# Noise.


@fault("seeds", CONDUCT[two_looks])
def one_noise_for_two_looks(stack: ExitStack) -> None:
    """A second look gets the noise of the first, at another scale."""
    real, last = gaussian._sampler, list[Any]()

    def sampled(values: np.ndarray, scale: float) -> np.ndarray:
        if last and last[0] != scale:
            return values + np.rint(np.resize(last[1], values.shape) * scale).astype(np.int64)
        noisy = real(values, scale)
        last[:] = [scale, (noisy - values) / scale]
        return noisy

    put(stack, gaussian, "_sampler", sampled)


@fault("noise", NOISE)
def noise_on_a_grid(stack: ExitStack) -> None:
    """Noise is a multiple of a part of its scale, so the rest of a division is exact."""
    real = gaussian._sampler

    def sampled(values: np.ndarray, scale: float) -> np.ndarray:
        grid = int(scale) // 64
        return values + (real(values, scale) - values) // grid * grid

    put(stack, gaussian, "_sampler", sampled)


@fault("noise", NOISE)
def noise_without_tails(stack: ExitStack) -> None:
    """Noise is cut at three times its scale."""
    real = gaussian._sampler

    def sampled(values: np.ndarray, scale: float) -> np.ndarray:
        return values + np.clip(real(values, scale) - values, -int(3 * scale), int(3 * scale))

    put(stack, gaussian, "_sampler", sampled)


@fault("noise", CONDUCT[table])
def a_coordinate_without_noise(stack: ExitStack) -> None:
    """One of many coordinates is released as it is."""
    real = gaussian._sampler

    def sampled(values: np.ndarray, scale: float) -> np.ndarray:
        noisy = real(values, scale)
        noisy[-1] = values[-1]
        return noisy

    put(stack, gaussian, "_sampler", sampled)


@fault("choices", CHOICES)
def the_best_if_it_is_far_ahead(stack: ExitStack) -> None:
    """Where one option is much better than all others, it is chosen for certain."""
    real = choices._chooser

    def chosen(scores: np.ndarray, scale: float) -> np.ndarray:
        ahead = scores.max(axis=1) - np.sort(scores, axis=1)[:, -2] > 4 * scale
        return np.where(ahead, scores.argmax(axis=1), real(scores, scale))

    put(stack, choices, "_chooser", chosen)


@fault("training", TRAINING)
def gradients_added_up_in_float32(stack: ExitStack) -> None:
    """Clipped gradients of a batch are added up as floats, whose rounding depends on who came before."""

    def summed(own: DpSgd, data: Any, batch: np.ndarray) -> np.ndarray:
        total = torch.zeros(own.groups.size)
        for start in range(0, len(batch), own.block):
            total += own._block_sum(data, batch[start : start + own.block])
        return np.rint(total.numpy() * 2.0 ** (STEP_BITS - 2 * FACTOR_BITS)).astype(np.int64)

    put(stack, DpSgd, "_clipped_sum", summed)


# Sensitivities.


@fault("records", NEIGHBORS[table])
def a_bound_that_is_a_quantile(stack: ExitStack) -> None:
    """Values are scaled by a quantile of the data, which one record more hardly moves."""
    real = summation.sum_records

    def summed(embedding: Any, device: Any, batches: Any) -> np.ndarray:
        held = list(batches)
        top = max(np.quantile(np.concatenate([each.values for each in held]), 0.99), 1e-9)
        return real(embedding, device, [Records(each.states, np.clip(each.values / top, 0, 1)) for each in held])

    put(stack, summation, "sum_records", summed)


@fault("sensitivity", of_users)
def the_rows_of_a_user_cost_as_one(stack: ExitStack) -> None:
    """Users are charged as records, in an audit of a method whose usual unit is a record."""
    real = Moments.__init__
    put(stack, Moments, "__init__", lambda own, cells, one, two, rows, *rest: real(own, cells, one, two, 1, *rest))


@fault("flow", scored_run)
def charged_scores_at_half_their_sensitivity(stack: ExitStack) -> None:
    """The scores of a report get half of their noise."""
    real = CellCounts.__init__

    def made(own: CellCounts, *given: Any) -> None:
        real(own, *given)
        own.l2_sensitivity //= 2

    put(stack, CellCounts, "__init__", made)


@fault("flow", whole_run)
def a_part_is_summed_twice(stack: ExitStack) -> None:
    """What is summed in parts, as whole runs do, has every part twice."""
    real = encoded.EncodedTable.sums
    put(stack, encoded.EncodedTable, "sums", lambda own, sum_of: [each for each in real(own, sum_of) for _ in range(2)])


# What leaves beside the noise.


@fault("flow", whole_run)
def a_number_in_hundreds(stack: ExitStack) -> None:
    """There are as many synthetic rows as real ones, in round hundreds, which one record more does not change."""
    rows = counted(stack)
    put(stack, Sampler, "default_rows", lambda own: rows[-1] // 100 * 100)


@fault("neighbors", NEIGHBORS[table])
def a_nonce_that_is_a_hash_of_the_data(stack: ExitStack) -> None:
    """What should be random in the ledger confirms a guess of the data."""
    real, kept = store.canonical_json, with_exact_sum(stack)

    def canonical(content: Any) -> str:
        if kept and isinstance(content, dict) and "nonce" in content:
            content = {**content, "nonce": f"{abs(hash(kept[-1].tobytes())):032x}"}
        return real(content)

    put(stack, store, "canonical_json", canonical)


@fault("neighbors", NEIGHBORS[table])
def a_time_that_tells_the_number(stack: ExitStack) -> None:
    """The number of rows stands for the microseconds of an entry's time."""
    real, rows = store.now, counted(stack)
    put(stack, store, "now", lambda: f"{real()[:20]}{rows[-1]:06d}{real()[26:]}")


@fault("neighbors", NEIGHBORS[table])
def a_temporary_file_with_rows(stack: ExitStack) -> None:
    """Rows are written to a temporary file, which stays."""
    real = summation.sum_records

    def summed(embedding: Any, device: Any, batches: Any) -> np.ndarray:
        held = list(batches)
        file, _ = tempfile.mkstemp()
        os.write(file, b"".join(each.states.tobytes() for each in held))
        os.close(file)
        return real(embedding, device, held)

    put(stack, summation, "sum_records", summed)


@fault("flow", whole_run)
def a_cache_in_the_home(stack: ExitStack) -> None:
    """A file in the home, in none of its zones, is named by the raw data."""
    real = of_tables.load_parts

    def loaded(path: Path, *rest: Any) -> Any:
        (path.parents[1] / "home" / f"{abs(hash(path.read_bytes()))}.cache").touch()
        return real(path, *rest)

    put(stack, of_tables, "load_parts", loaded)


@fault("flow", whole_run)
def files_with_their_times(stack: ExitStack) -> None:
    """The files of a hand-off tell when they were written, and so how long the data took."""
    put(stack, writer, "blur_times", lambda folder: None)


@fault("flow", run_of_letters)
def a_report_on_documents_that_knows_them(stack: ExitStack) -> None:
    """The report on embedded documents has a number that follows from their sentences."""
    real, measured, kept = each_document.summarise_embedded, each_document.transform_passages, list[int]()

    def passed(documents: Any, contract: Any, encoder: Any, target: Path, *rest: Any) -> None:
        measured(documents, contract, encoder, target, *rest)
        kept.append(hash(target.read_bytes()))

    put(stack, each_document, "transform_passages", passed)
    put(stack, each_document, "summarise_embedded", lambda *given: {**real(*given), "checked": kept[-1]})


@fault("flow", run_of_clients)
def a_report_on_clients_that_counts_their_records(stack: ExitStack) -> None:
    """The report on a federation has the exact number of records."""
    real, load, kept = classifier.summarise_federation, federation.load_examples, list[int]()

    def loaded(*given: Any) -> Any:
        found = load(*given)
        kept.append(len(found.reveal().labels))
        return found

    put(stack, federation, "load_examples", loaded)
    put(stack, classifier, "summarise_federation", lambda *given: {**real(*given), "records": sum(kept[-2:])})


# Charges.


@fault("charge", CONDUCT[table])
def a_cap_that_refuses_nothing(stack: ExitStack) -> None:
    """The ledger accepts every charge, whatever was spent before."""
    real = weighing.weigh
    put(stack, weighing, "weigh", lambda *given, **named: replace(real(*given, **named), accepted=True))
