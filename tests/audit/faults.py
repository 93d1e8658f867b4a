"""Faults of the kinds that audits of published libraries found, each planted into the real code for a moment.

Each is a few lines that replace something of the product. Beside it stand what it stands for, on what it is tried, and
the check of the audit that must notice it. ``docs/audit.md`` has the same list; a test keeps the two equal.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.audit.audit import budget_finding, made, named_steps, neighbors_findings
from dpmodels.audit.conduct import conduct_findings
from dpmodels.audit.data import data_of, quick_plan
from dpmodels.audit.findings import Finding
from dpmodels.audit.gaussians import drawn, reach_finding
from dpmodels.audit.naming import naming_findings
from dpmodels.audit.optimum import optimum_findings
from dpmodels.audit.replay import replayed
from dpmodels.audit.selection import k_norm_findings, sampler_finding
from dpmodels.audit.subjects import Subject, of_client, of_discovery, of_letters, of_line, of_method
from dpmodels.audit.tap import replaced
from dpmodels.audit.training import training_findings
from dpmodels.codec.records import Records
from dpmodels.embeddings import summation
from dpmodels.embeddings.image_moments import CODE_BITS, DIRECTION_BITS, ImageMoments
from dpmodels.embeddings.interactions import Interactions
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.photo_moments import PhotoMoments
from dpmodels.embeddings.products import Products
from dpmodels.embeddings.residuals import Residuals
from dpmodels.mechanisms import choices, gaussian, threshold
from dpmodels.mechanisms.dp_sgd import randomness, training
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.mechanisms.threshold import Bringing
from dpmodels.methods.images.image_moments import ImageLooks, NacreImages
from dpmodels.methods.images.photo_moments import PhotoLooks
from dpmodels.methods.quick import QUICK
from dpmodels.methods.registry import create
from dpmodels.methods.tables import looks as nacre_looks
from dpmodels.methods.tables.looks import Looks
from dpmodels.methods.tables.thresholded_counts import Counting
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases import draw, walk
from dpmodels.releases import steps as steps_room
from dpmodels.releases import system as system_room
from dpmodels.releases.plan import Line
from dpmodels.releases.state import DrawState
from dpmodels.statistics.class_moments import ClassMoments, pack
from dpmodels.statistics.logistic import Logistic
from dpmodels.statistics.symmetric import DIAGONAL
from flows.audit import flow_findings
from tasks.kinds import tables as of_tables
from tasks.stages import validate

Run = Callable[[Path], list[Finding]]
Plant = Callable[[ExitStack], None]


@dataclass(frozen=True)
class Fault:
    """A fault: its name, what it stands for, the check that must notice it, and on what."""

    name: str
    stands_for: str
    check: str
    run: Run
    plant: Plant

    @contextmanager
    def planted(self) -> Iterator[None]:
        with ExitStack() as stack:
            self.plant(stack)
            yield


FAULTS = list[Fault]()


def fault(check: str, run: Run) -> Callable[[Plant], Plant]:
    """Add a fault, whose docstring says in one line what it stands for."""

    def add(plant: Plant) -> Plant:
        FAULTS.append(Fault(plant.__name__.replace("_", " "), (plant.__doc__ or "").rstrip("."), check, run, plant))
        return plant

    return add


def put(stack: ExitStack, place: Any, name: str, value: Any) -> None:
    stack.enter_context(replaced(place, name, value))


# On what faults are tried: a subject with few neighbors, and a part of its audit.


def few(subject: Subject, *numbers: int) -> Subject:
    """Keep the data set and some of its neighbors."""
    return replace(subject, worlds=[subject.worlds[number] for number in (0, *numbers)])


def neighbors_of(subject: Callable[[], Subject]) -> Run:
    """Replay neighbors, and see how far they move what noise is added to."""

    def run(folder: Path) -> list[Finding]:
        own = subject()
        budget = budget_finding(own)
        if not budget.holds:
            return [budget]
        replay = replayed(own, folder)
        reaches = [reach_finding(name, step, least=0.5) for name, step in named_steps(replay)]
        return [budget, *neighbors_findings(replay), *reaches]

    return run


def noise_of(subject: Callable[[], Subject]) -> Run:
    return lambda folder: [
        drawn(step, full=False).finding(name, full=False)
        for name, step in named_steps(replayed(subject(), folder))
        if step.kind == "gaussian"
    ]


def training_of(subject: Callable[[], Subject]) -> Run:
    def run(folder: Path) -> list[Finding]:
        own = subject()
        steps = [step for step in replayed(own, made(folder / "replay")).steps if step.kind == "sgd"]
        return training_findings(own, steps, folder / "training", full=False)[0]

    return run


def conduct_of(subject: Callable[[], Subject]) -> Run:
    return lambda folder: conduct_findings(subject(), folder)


def draws_of(subject: Callable[[], Subject]) -> Run:
    def run(folder: Path) -> list[Finding]:
        name, step = next(named_steps(replayed(subject(), folder)))
        return [sampler_finding(name, step, 2000)] if step.kind == "choices" else k_norm_findings(name, step, 2000)[0]

    return run


def table() -> Subject:
    return few(of_method("moments"), 1, 5)


def pearl() -> Subject:
    return few(of_method("pearl"), 1, 5)


def images() -> Subject:
    return few(of_method("nacre-images"), 1, 2)


def photos() -> Subject:
    return few(of_method("nacre-photos"), 1, 2)


def visits() -> Subject:
    return few(of_discovery(), 1, 3)


def users() -> Subject:
    return few(of_method("moments", rows_of_a_user=2), 1)


def two_looks() -> Subject:
    return few(of_method("nacre"), 1)


def asked() -> Subject:
    """Return nacre under a workload, at a budget at which runs have cells to tell apart."""
    schema = data_of("nacre").make_schema(workload=[{"by": "ward", "weight": 9}])
    return few(of_line("nacre", quick_plan("nacre", schema, epsilon=100.0)), 1)


def asked_jointly() -> Subject:
    """Return nacre under a workload that asks for a joint table, which is its second look here: there are no zooms."""
    schema = data_of("nacre").make_schema(workload=[{"columns": ["age", "dose", "smoker"], "joint": True, "weight": 9}])
    return few(of_line("nacre", quick_plan("nacre", schema, epsilon=100.0)), 1)


def wide() -> Subject:
    """Return nacre on a table that counts as a wide one, at a budget at which it still measures products."""
    system = create("nacre", {**QUICK["nacre"].measurement, "paired_columns": 2}, {})
    schema = data_of("nacre").make_schema(workload=[{"by": "ward", "weight": 3}])
    line = system.plan(schema, PrivacyBudget(epsilon=1.0, delta=1e-5))
    return few(replace(of_line("nacre", line), system=system), 1)


def trained() -> Subject:
    return few(of_method("dp-vae"), 1)


def clustered() -> Subject:
    return few(of_method("dp-gm"), 1, 2, 3, 4)


def moments_of_a_client() -> Subject:
    return few(of_client("federated-moments"), 3)


def heads_of_a_client() -> Subject:
    return few(of_client("federated-heads"), 2, 5)


def letters() -> Subject:
    return few(of_letters("deep-candidate"), 1, 2)


def sketches() -> Subject:
    return few(of_letters("document-sketch"), 7)


TABLES = (table, pearl, images, photos, visits, users, trained, clustered)
NEIGHBORS = {
    subject: neighbors_of(subject)
    for subject in (*TABLES, asked, asked_jointly, wide, moments_of_a_client, heads_of_a_client, letters)
}
NOISE, TRAINING = noise_of(table), training_of(trained)
CONDUCT = {subject: conduct_of(subject) for subject in (table, pearl, two_looks, visits)}
CHOICES, SKETCHES = draws_of(letters), draws_of(sketches)


def names(folder: Path) -> list[Finding]:
    return list(naming_findings(visits(), folder))


def heads(folder: Path) -> list[Finding]:
    return optimum_findings()


def whole_run(folder: Path) -> list[Finding]:
    return flow_findings("moments", folder / "flow")


# Noise and its scale.


@fault("noise", NOISE)
def noise_is_two_thirds(stack: ExitStack) -> None:
    """The sampler adds two thirds of the noise that it is asked for."""
    real = gaussian._sampler
    put(stack, gaussian, "_sampler", lambda values, scale: real(values, scale * 2 / 3))


@fault("sensitivity", NEIGHBORS[table])
def scale_is_two_thirds(stack: ExitStack) -> None:
    """The sampler is asked for two thirds of the noise that is charged."""
    real = gaussian.lattice_noise_stddev
    put(stack, gaussian, "lattice_noise_stddev", lambda *asked: real(*asked) * 2 / 3)


@fault("noise", NOISE)
def one_noise_for_all_coordinates(stack: ExitStack) -> None:
    """One draw is added to every coordinate of a vector."""
    real = gaussian._sampler

    def same(values: np.ndarray, scale: float) -> np.ndarray:
        return values + (real(values[:1], scale) - values[:1])

    put(stack, gaussian, "_sampler", same)


@fault("noise", NOISE)
def noise_is_laplace(stack: ExitStack) -> None:
    """The noise has the variance that is charged and another law."""

    def drawn_of(values: np.ndarray, scale: float) -> np.ndarray:
        return values + np.rint(np.random.default_rng().laplace(0, scale / 2**0.5, values.shape)).astype(np.int64)

    put(stack, gaussian, "_sampler", drawn_of)


@fault("seeds", CONDUCT[table])
def seed_reaches_the_noise(stack: ExitStack) -> None:
    """The noise follows from a public seed."""

    def seeded(values: np.ndarray, scale: float) -> np.ndarray:
        return values + np.rint(np.random.default_rng(0).normal(0, scale, values.shape)).astype(np.int64)

    put(stack, gaussian, "_sampler", seeded)


@fault("budget", NEIGHBORS[images])
def a_look_forgets_its_share(stack: ExitStack) -> None:
    """Each of two looks is charged as if it had the whole budget."""
    real = NacreImages.event

    def event(own: NacreImages, design: ImageLooks, budget: Any) -> Any:
        found = real(own, design, budget)
        first = found.events[0].model_copy(update={"noise_multiplier": found.events[1].noise_multiplier})
        return found.model_copy(update={"events": (first, found.events[1])})

    put(stack, NacreImages, "event", event)


# Sensitivities.


@fault("sensitivity", NEIGHBORS[moments_of_a_client])
def sensitivity_without_counts(stack: ExitStack) -> None:
    """The count of a record is left out of its norm."""
    real = ClassMoments.__init__

    def made(own: ClassMoments, *given: Any, **named: Any) -> None:
        real(own, *given, **named)
        own.l2_sensitivity = int((own.l2_sensitivity**2 - own.count_step**2) ** 0.5)

    put(stack, ClassMoments, "__init__", made)


@fault("sensitivity", NEIGHBORS[users])
def a_user_counts_as_one_row(stack: ExitStack) -> None:
    """The sensitivity of a user's rows is that of one row."""
    real = Moments.__init__
    put(stack, Moments, "__init__", lambda own, cells, one, two, rows, *rest: real(own, cells, one, two, 1, *rest))


@fault("sensitivity", NEIGHBORS[asked])
def a_workload_weighs_nothing(stack: ExitStack) -> None:
    """Pairs that a workload asks for have their weight in the sum, and not in the norm."""
    real = nacre_looks.scaled_to
    put(stack, nacre_looks, "scaled_to", lambda *given: real(*given[:5]))
    put(stack, Residuals, "squared_norm", property(lambda own: Moments.squared_norm.__get__(own)))


@fault("sensitivity", NEIGHBORS[asked_jointly])
def interactions_of_half_the_norm(stack: ExitStack) -> None:
    """An interaction adds its steps and a half to the sum, and its steps to the norm."""
    real = Interactions.__init__

    def half(own: Interactions, *given: Any, **named: Any) -> None:
        real(own, *given, **named)
        own.scales = [scale * 3 // 2 for scale in own.scales]

    put(stack, Interactions, "__init__", half)


@fault("sensitivity", NEIGHBORS[asked_jointly])
def joint_tables_weigh_nothing(stack: ExitStack) -> None:
    """Joint tables that a workload asks for have their weight in the sum, and not in the planned norm."""
    real = Looks.__init__

    def planned(own: Looks, *given: Any) -> None:
        real(own, *given)
        own.joint_norms = [9 * norm for norm in own.joint_norms]

    put(stack, Looks, "__init__", planned)
    put(stack, Interactions, "squared_norm", property(lambda own: 1))


@fault("sensitivity", NEIGHBORS[asked_jointly])
def groups_by_what_was_not_released(stack: ExitStack) -> None:
    """The groups of a joint table are chosen by the exact counts of the first look."""
    kept, real = with_exact_sum(stack), Partition.groups

    def chosen(own: Partition, index: int, histogram: np.ndarray, most: int) -> np.ndarray:
        groups, exact = real(own, index, histogram, most), kept[-1] if kept else np.zeros(1, dtype=np.int64)
        odd = int((exact // exact[exact > 0].min()).sum()) // len(own.sizes) % 2 if exact.any() else 0
        return groups.max() - groups if odd else groups

    put(stack, Partition, "groups", chosen)


@fault("sensitivity", NEIGHBORS[wide])
def products_of_half_the_norm(stack: ExitStack) -> None:
    """A product adds its steps and a half to the sum, and its steps to the norm."""
    real = Products.__init__

    def half(own: Products, *given: Any, **named: Any) -> None:
        real(own, *given, **named)
        own.scales = own.scales * 3 // 2

    put(stack, Products, "__init__", half)


@fault("sensitivity", NEIGHBORS[wide])
def products_that_a_workload_weighs_for_nothing(stack: ExitStack) -> None:
    """Products that a workload asks for have their weight in the sum, and not in the planned norm."""
    real = Looks.products_in

    def unscaled(own: Looks, *given: Any) -> Products:
        own.squares = own.pairs
        return real(own, *given)

    put(stack, Looks, "products_in", unscaled)
    put(stack, Products, "squared_norm", property(lambda own: 1))


def with_records(stack: ExitStack, change: Callable[[Records], Records]) -> None:
    """Have records changed before they are summed."""
    real = summation.sum_records
    changed = lambda embedding, device, batches: real(embedding, device, [change(batch) for batch in batches])  # noqa: E731
    put(stack, summation, "sum_records", changed)


@fault("sensitivity", NEIGHBORS[pearl])
def bounds_from_data(stack: ExitStack) -> None:
    """Values are scaled by the largest that there is, not by a public bound."""

    def scaled(records: Records) -> Records:
        return Records(records.states, records.values / np.maximum(records.values.max(axis=0), 1e-9))

    with_records(stack, scaled)


@fault("sensitivity", NEIGHBORS[pearl])
def categories_from_data(stack: ExitStack) -> None:
    """Categories are numbered in the order in which they occur."""

    def numbered(records: Records) -> Records:
        states = records.states.copy()
        column = next((place for place in range(states.shape[1]) if len(set(states[:, place])) == 3), 0)
        order = list(dict.fromkeys(states[:, column].tolist()))
        states[:, column] = [order.index(state) for state in states[:, column]]
        return Records(states, records.values)

    with_records(stack, numbered)


def with_exact_sum(stack: ExitStack) -> list[np.ndarray]:
    """Keep what was summed where whoever comes later finds it."""
    real, kept = summation.transform_sum, list[np.ndarray]()

    def summed(*given: Any) -> Any:
        total = real(*given)
        kept.append(total.reveal())
        return total

    put(stack, steps_room, "transform_sum", summed)
    return kept


@fault("neighbors", NEIGHBORS[images])
def a_mean_without_noise(stack: ExitStack) -> None:
    """What is kept beside the noisy sums follows from the exact ones."""
    kept, real = with_exact_sum(stack), ImageLooks.choose
    put(stack, ImageLooks, "choose", lambda own, first, noise: real(own, kept[-1], noise))


@fault("sensitivity", NEIGHBORS[wide])
def halves_by_what_was_not_released(stack: ExitStack) -> None:
    """The halves of a column are chosen by the exact counts of the first look."""
    kept, real = with_exact_sum(stack), nacre_looks.halves_of

    def chosen(histograms: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        first, *others = real(histograms)
        odd = int((kept[-1] // kept[-1][kept[-1] > 0].min()).sum()) // len(histograms) % 2 if kept else 0
        return first * (1 - 2 * odd), *others

    put(stack, nacre_looks, "halves_of", chosen)


@fault("sensitivity", NEIGHBORS[images])
def second_look_clipped_about_the_true_center(stack: ExitStack) -> None:
    """The second look takes the exact centers off the records, and says that it took the released ones."""
    kept, real = with_exact_sum(stack), ImageLooks.second

    def second(own: ImageLooks, chosen: np.ndarray) -> ImageMoments:
        found = real(own, chosen)
        if kept:
            exact = np.split(own.choose(kept[-1], 1.0), [chosen.size - found.clip.centres.size - 1])[1][:-1]
            found.clip = replace(found.clip, centres=exact.reshape(found.clip.centres.shape))
        return found

    put(stack, ImageLooks, "second", second)


@fault("sensitivity", NEIGHBORS[images])
def residual_in_a_wrong_norm(stack: ExitStack) -> None:
    """Residuals are clipped, and checked, by their largest coordinate."""

    def bounded(own: ImageMoments, codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
        centred = (codes - own.clip.centres[labels]).astype(np.float64)
        turned = np.trunc(np.ldexp(centred @ own.clip.directions.astype(np.float64), -DIRECTION_BITS))
        norm = np.abs(turned).max(axis=1)
        return np.trunc(turned * (2.0**CODE_BITS / np.maximum(norm, own.clip.radius))[:, None]).astype(np.int64)

    def total(own: ClassMoments, z: np.ndarray, label: np.ndarray) -> np.ndarray:
        means = np.zeros((own.classes, 1 + own.size), dtype=np.int64)
        seconds = [np.zeros(own.size * (own.size + 1) // 2, dtype=np.int64) for _ in range(own.matrices)]
        for c in np.unique(label):
            members = z[label == c]
            means[c] += np.array([len(members) * own.count_step, *(members.sum(axis=0) * own.mean_step)])
            seconds[0 if own.pooled else c] += pack(members.T @ members)
        return np.concatenate([means.ravel(), *seconds])

    put(stack, ImageMoments, "bounded", bounded)
    put(stack, ClassMoments, "total", total)


@fault("order", CONDUCT[pearl])
def sums_in_float32(stack: ExitStack) -> None:
    """Features are added up as floats, whose rounding depends on who came before."""

    def summed(embedding: Any, device: str, batches: Any) -> np.ndarray:
        total = np.zeros(embedding.dim, dtype=np.float32)
        for batch in batches:
            total += embedding.lattice_sum(batch).numpy().astype(np.float32)
        return total.astype(np.int64)

    put(stack, summation, "sum_records", summed)


@fault("sensitivity", NEIGHBORS[heads_of_a_client])
def regularized_too_weakly(stack: ExitStack) -> None:
    """The optimum is that of a thirtieth of the regularization that the bound is proved for."""
    real = Logistic.solve

    def solve(own: Logistic, phi: np.ndarray, targets: np.ndarray) -> Any:
        return real(replace(own, strength=own.strength / 30, most=len(phi), tolerance=0.1), phi, targets)

    put(stack, Logistic, "solve", solve)


@fault("optimum", heads)
def the_optimizer_stops_early(stack: ExitStack) -> None:
    """What is released is no optimum, whatever the proof says of one."""
    real = Logistic.solve

    def solve(own: Logistic, phi: np.ndarray, targets: np.ndarray) -> Any:
        found = real(own, phi, targets)
        return found if found is None else 0.97 * found

    put(stack, Logistic, "solve", solve)


@fault("sensitivity", NEIGHBORS[photos])
def a_matrix_of_all_classes_that_costs_nothing(stack: ExitStack) -> None:
    """A photograph is in two matrices of squares, and its norm is that of one."""
    real = PhotoMoments.__init__

    def made(own: PhotoMoments, *given: Any) -> None:
        real(own, *given)
        counts, means = own.count_step**2, (own.mean_step << CODE_BITS) ** 2
        own.l2_sensitivity = int((counts + means + (DIAGONAL << 2 * CODE_BITS) ** 2) ** 0.5)

    put(stack, PhotoMoments, "__init__", made)


@fault("neighbors", NEIGHBORS[photos])
def photographs_about_their_true_center(stack: ExitStack) -> None:
    """The center and the radius of the second look follow from the exact sums of the first."""
    kept, real = with_exact_sum(stack), PhotoLooks.choose
    put(stack, PhotoLooks, "choose", lambda own, first, noise: real(own, kept[-1], noise))


# Names that the data has, and discovery.


@fault("sensitivity", NEIGHBORS[visits])
def rows_that_count_for_nothing(stack: ExitStack) -> None:
    """The norm of a row has its keys, and not that it is one more row."""

    def sensitivity(own: Counting) -> int:
        return int(own.contract.unit.max_rows * own.spec.steps_per_row * len(own.contract.wanted) ** 0.5)

    put(stack, Counting, "l2_sensitivity", property(sensitivity))


@fault("names", names)
def a_threshold_for_users_of_one_row(stack: ExitStack) -> None:
    """The threshold is that for records, where a user brings several rows with one name."""
    for name in ("threshold", "shown"):
        real = getattr(Bringing, name)
        put(stack, Bringing, name, lambda own, *asked, real=real: real(replace(own, rows=1), *asked))


@fault("names", names)
def names_at_half_the_threshold(stack: ExitStack) -> None:
    """Names are released from half of the count that the plan says."""
    real = draw.measure_thresholded
    halved = lambda counts, *, threshold, **asked: real(counts, threshold=threshold // 2, **asked)  # noqa: E731
    put(stack, draw, "measure_thresholded", halved)


@fault("order", CONDUCT[visits])
def names_in_the_order_of_the_rows(stack: ExitStack) -> None:
    """Names are released in the order in which they were met, which tells whose row came first."""
    put(stack, threshold, "pc", SimpleNamespace(sort_indices=lambda named, keys: pa.array(range(len(named)))))


# DP-SGD.


@fault("training", TRAINING)
def noise_of_a_step_is_two_thirds(stack: ExitStack) -> None:
    """The noise of DP-SGD is two thirds of what its steps are charged for."""
    real = training.rounded_gaussian
    put(stack, training, "rounded_gaussian", lambda own, count, stddev: real(own, count, stddev * 2 / 3))


@fault("training", TRAINING)
def shuffled_batches(stack: ExitStack) -> None:
    """Batches are of one size, and charged as Poisson samples."""

    def batch(own: Any, rows: int, probability: float) -> np.ndarray:
        order = np.argsort(own.words(rows), kind="stable")
        return np.sort(order[: round(rows * probability)])

    put(stack, randomness.KeyStream, "poisson_batch", batch)


@fault("training", TRAINING)
def a_step_draws_what_another_drew(stack: ExitStack) -> None:
    """The randomness of a step follows from its key alone."""
    real = randomness.KeyStream.__init__
    put(stack, randomness.KeyStream, "__init__", lambda own, key, step: real(own, key, 0))


@fault("training", TRAINING)
def shared_latent_draws(stack: ExitStack) -> None:
    """Latent draws are dealt out by a record's place in its batch."""
    real = training.record_normals
    put(stack, training, "record_normals", lambda key, step, rows, count: real(key, step, np.arange(len(rows)), count))


@fault("training", TRAINING)
def gradients_are_averaged_over_the_true_batch(stack: ExitStack) -> None:
    """The sum is divided by the size of the batch before there is noise, and multiplied by the expected one."""
    real = DpSgd._clipped_sum

    def averaged(own: DpSgd, data: Any, batch: np.ndarray) -> np.ndarray:
        total = real(own, data, batch)
        expected = own.spec.sampling_probability * own.noise.records
        return np.rint(total * (expected / max(1, len(batch)))).astype(np.int64)

    put(stack, DpSgd, "_clipped_sum", averaged)


@fault("neighbors", NEIGHBORS[trained])
def the_batch_divides_by_its_true_size(stack: ExitStack) -> None:
    """The noisy sum is divided by the size of the private batch."""
    real, sizes = randomness.KeyStream.poisson_batch, [1]

    def batch(own: Any, rows: int, probability: float) -> np.ndarray:
        found = real(own, rows, probability)
        sizes[0] = max(1, len(found))
        return found

    down = DpSgd._descend

    def descend(own: DpSgd, noisy: np.ndarray) -> None:
        own.noise = replace(own.noise, records=sizes[0] / own.spec.sampling_probability)
        down(own, noisy)

    put(stack, randomness.KeyStream, "poisson_batch", batch)
    put(stack, DpSgd, "_descend", descend)


@fault("neighbors", NEIGHBORS[trained])
def the_divisor_is_the_private_number(stack: ExitStack) -> None:
    """The expected batch is reckoned from the private number of records."""
    real = DpSgd.train

    def train(own: DpSgd, rows: Any) -> Iterator[int]:
        own.noise = replace(own.noise, records=float(len(rows.reveal()[0])))
        yield from real(own, rows)

    put(stack, DpSgd, "train", train)


@fault("parts", NEIGHBORS[clustered])
def a_part_charged_once_for_two(stack: ExitStack) -> None:
    """Two trainings read the same records, and are charged as if these were disjoint."""

    def parts(own: Any, step: Any, data: Any) -> list[Any]:
        own.trainings = len(step.programmes)
        return [next(iter(step.by(data)))] * own.trainings

    put(stack, draw._Drawing, "parts", parts)


# Choices.


@fault("choices", CHOICES)
def choices_at_half_the_scale(stack: ExitStack) -> None:
    """Options are drawn with twice the epsilon that is charged."""
    real = choices._chooser
    put(stack, choices, "_chooser", lambda scores, scale: real(scores, scale / 2))


@fault("sensitivity", NEIGHBORS[letters])
def scores_that_are_called_monotonic(stack: ExitStack) -> None:
    """The factor of two is left out where a sentence is replaced."""
    real = walk.pure_scale
    put(stack, walk, "pure_scale", lambda sensitivity, epsilon, **named: real(sensitivity, epsilon, monotonic=True))


@fault("choices", SKETCHES)
def the_cube_is_too_small(stack: ExitStack) -> None:
    """The K-norm mechanism draws at half its scale."""
    real = draw.measure_k_norm
    put(stack, draw, "measure_k_norm", lambda vectors, *, scale: real(vectors, scale=scale / 2))


# What leaves beside the noise.


@fault("neighbors", NEIGHBORS[table])
def delta_from_the_number_of_rows(stack: ExitStack) -> None:
    """What a release says of its delta is one over the private number of rows."""
    real, measure = draw.write_release, draw.draw
    rows = [1]

    def counted(system: Any, records: Any, *rest: Any) -> Any:
        rows[0] = sum(map(len, records.reveal()))
        return measure(system, records, *rest)

    def written(path: Path, line: Line, *rest: Any) -> None:
        budget = line.budget.model_copy(update={"delta": 1 / rows[0]})
        real(path, line.model_copy(update={"budget": budget}), *rest)

    put(stack, draw, "write_release", written)
    put(stack, system_room, "draw", counted)


@fault("neighbors", NEIGHBORS[table])
def a_cache_named_by_the_raw_data(stack: ExitStack) -> None:
    """A file is named by a hash of the records."""
    measure = draw.draw

    def cached(system: Any, records: Any, line: Line, desk: Any) -> Any:
        content = b"".join(batch.states.tobytes() for batch in records.reveal())
        place = measure(system, records, line, desk)
        place.value.with_name(f"cache-{hashlib.sha256(content).hexdigest()[:16]}").touch()
        return place

    put(stack, system_room, "draw", cached)


@fault("neighbors", NEIGHBORS[table])
def a_log_with_a_preview(stack: ExitStack) -> None:
    """A log line shows the last record."""

    def shown(records: Records) -> Records:
        logging.getLogger("nacre").debug("last record %s", records.values[-1])
        return records

    with_records(stack, shown)


@fault("flow", whole_run)
def a_report_with_an_exact_number(stack: ExitStack) -> None:
    """The publishable report states the number of rows without noise."""
    real = validate.summarise

    def summarised(*given: Any) -> dict[str, Any]:
        return {**real(*given), "records": ROWS[-1]}

    ROWS = [0]
    seen = summation.sum_records

    def counted(embedding: Any, device: str, batches: Any) -> np.ndarray:
        held = list(batches)
        ROWS.append(sum(map(len, held)))
        return seen(embedding, device, held)

    put(stack, summation, "sum_records", counted)
    put(stack, validate, "summarise", summarised)


@fault("flow", whole_run)
def an_identifier_in_the_log(stack: ExitStack) -> None:
    """A run warns of the identifier of a record."""
    real = of_tables.load_parts

    def loaded(path: Path, *rest: Any) -> Any:
        logging.getLogger("nacre").warning("read %s", pq.read_table(path)["patient"][-1])
        return real(path, *rest)

    put(stack, of_tables, "load_parts", loaded)


# Charges.


@fault("resume", CONDUCT[two_looks])
def a_retry_draws_anew(stack: ExitStack) -> None:
    """What a failed attempt drew is forgotten, and drawn again."""
    put(stack, DrawState, "keep_vector", lambda own, vector: None)


@fault("resume", CONDUCT[table])
def a_retry_is_not_charged(stack: ExitStack) -> None:
    """A failed attempt gets its charge back although it drew noise."""
    real = draw._Drawing._once

    def once(own: Any, *given: Any) -> np.ndarray:
        own.begun = True
        try:
            return real(own, *given)
        except Exception:
            own.desk.ledger.void(own.desk.charge.key, "it failed")
            raise

    put(stack, draw._Drawing, "_once", once)
