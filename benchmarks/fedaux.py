"""Federations that are private end to end: one release a client, on frozen features, beside sums of moments.

Fashion-MNIST is split over 20 clients by a Dirichlet distribution. MNIST without labels is the public auxiliary data
that a small ResNet is pre-trained on; a fifth of it are negatives. Each client pays epsilon from its own account, at
delta 1e-5 and with private sizes (add or remove one record). The largest epsilon there is stands for no noise.

    FedDF     mean of the clients' logits                 FedAUX      weighted by certainty; sharp: by its eighth power
    moments   Gaussians of the classes from noisy sums; local: noise of every client; central: one noise for all
"""

import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.common import Cell, Table, data_dir, parse, report
from dpmodels.embeddings.frozen import FrozenFeatures, digest_of
from dpmodels.federated.heads import FederatedHeads, HeadsMeasurement, weighted_ensemble
from dpmodels.federated.models import ModelSpec, loaded
from dpmodels.federated.moments_head import MomentsHead, MomentsMeasurement
from dpmodels.federated.partition import dirichlet_split
from dpmodels.federated.pretraining import PretrainingSpec, pretrain
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.release import Release, read_release
from dpmodels.releases.system import System
from dpmodels.schema.federation import Federation
from dpmodels.statistics.component_moments import Points

CLIENTS, CLASSES, NO_NOISE, SHARP = 20, 10, 1000.0, 8.0
SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)
HEAD = ["alpha", "epsilon", "FedDF", "FedAUX", "FedAUX sharp", "moments local", "moments central"]
Arrays = Mapping[str, np.ndarray]


def images(name: str, most: int) -> tuple[torch.Tensor, np.ndarray]:
    """Read images as ink between 0 and 1, and their labels."""
    table = pq.read_table(data_dir() / f"{name}.parquet").slice(0, most)
    ink = table["image"].combine_chunks().flatten().to_numpy().reshape(-1, 1, 28, 28)
    return torch.from_numpy(ink.astype(np.float32) / 255), table["label"].to_numpy().astype(np.int64)


def features(steps: int, rows: int) -> dict[str, Any]:
    """Pre-train on the auxiliary images and map all images."""
    auxiliary, own, test = (images(name, rows) for name in ("mnist_train", "fashion_mnist_train", "fashion_mnist_test"))
    spec = ModelSpec(inputs=(1, 28, 28), classes=CLASSES, width=8)
    settings = PretrainingSpec(steps=steps, batch_size=256, crop=0.5)
    network = loaded("resnet8", spec, pretrain("resnet8", spec, auxiliary[0], settings, 0)).extractor
    frozen = FrozenFeatures.of_public(network, auxiliary[0][:10_000], spec.features)
    mapped = {"auxiliary": frozen.whole(auxiliary[0]), "z": frozen.whole(own[0]), "z_test": frozen.whole(test[0])}
    return {**mapped, "y": own[1], "y_test": test[1], "extractor": np.array(frozen.sha256)}


def measure(system: System[Any], contract: Federation, epsilon: float, held: list[Points]) -> Released[Release]:
    """Measure once, in a ledger and a folder that are then forgotten."""
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=contract.adjacency)
    line = system.plan(contract, budget)
    with tempfile.TemporaryDirectory() as folder:
        ledger, place = Ledger(Path(folder) / "ledger.sqlite"), Path(folder)
        ledger.open_account("a", dataset=contract.name, budget_cap=budget)
        named = {"account": "a", "dataset": contract.name, "mechanism": system.method, "run": "benchmark"}
        charge = Charge(
            **named, event=line.event, budget=budget, plan_hash=line.hash, schema_hash=contract.hash, part=line.part
        )
        (place / "sensitive").mkdir(mode=0o700)
        desk = Desk(ledger, charge, place / "sensitive" / "release", place / "released" / "release")
        return read_release(system.measure(Sensitive(held), line, desk).value)


def row(data: Arrays, alpha: float, epsilon: float, seeds: Sequence[int]) -> list[Cell]:
    """Return the accuracy of every method at one skew and one price, for each seed of the split."""
    found: dict[str, list[float]] = {name: [] for name in HEAD[2:]}
    negatives = data["auxiliary"][: len(data["auxiliary"]) // 5]
    for seed in seeds:
        parts = dirichlet_split(data["y"], CLIENTS, alpha, seed)
        held = {f"c{place}": Points(data["z"][own], data["y"][own]) for place, own in enumerate(parts)}
        contract = Federation(
            name="fashion",
            clients=[{"name": name} for name in held],
            features=data["z"].shape[1],
            classes=[str(label) for label in range(CLASSES)],
            extractor=str(data["extractor"]),
            negatives=len(negatives),
            auxiliary=digest_of(negatives),
        )
        heads = FederatedHeads(HeadsMeasurement(records=len(data["y"]) // CLIENTS), negatives)
        sums = MomentsHead(MomentsMeasurement(pooled=False))
        clients = [heads.heads(measure(heads, contract.of(name), epsilon, [own])) for name, own in held.items()]
        local = [measure(sums, contract.of(name), epsilon, [own]) for name, own in held.items()]
        central = measure(sums, contract, epsilon, list(held.values()))
        logits, sure = zip(
            *[(own.logits(data["z_test"]), own.certainty(data["z_test"])) for own in clients], strict=True
        )
        said = [weighted_ensemble(logits), weighted_ensemble(logits, sure), weighted_ensemble(logits, sure, SHARP)]
        said += [sums.fit(releases).logits(data["z_test"]) for releases in (local, [central])]
        for name, each in zip(HEAD[2:], said, strict=True):
            found[name].append(100 * float((each.argmax(axis=1) == data["y_test"]).mean()))
    return list(found.values())


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=400, help="of contrastive pre-training")
    parser.add_argument(
        "--features", type=Path, metavar="FILE", help="keep the features there, and take them from there"
    )


def main() -> None:
    args = parse(__doc__, configure)
    torch.set_num_threads(1)
    if args.features and args.features.exists():
        data = dict(np.load(args.features))
    else:
        data = features(*((5, 2000) if args.quick else (args.steps, 60_000)))
        if args.features:
            np.savez(args.features, **data)
    seeds, table = QUICK_SEEDS if args.quick else SEEDS, Table("Accuracy on test images, per cent", HEAD, digits=1)
    for alpha in (0.01, 1.0) if args.quick else (0.01, 0.1, 1.0, 100.0):
        for epsilon in (NO_NOISE, 1.0) if args.quick else (NO_NOISE, 3.0, 1.0, 0.5, 0.1):
            table.add(f"{alpha:g}", f"{epsilon:g}", *row(data, alpha, epsilon, seeds))
            print(table.markdown().splitlines()[-1], flush=True)
    report("fedaux", [table], seeds, args)


if __name__ == "__main__":
    main()
