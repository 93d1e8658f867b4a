"""Soft labels as Parquet: a row for each public record, a column for each class and each client."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from dpmodels.methods.federations.soft_labels import write_soft_labels


def test_each_record_has_its_number_its_probabilities_and_each_clients_certainty(tmp_path: Path) -> None:
    said = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    sure = {"north": np.linspace(0.1, 0.9, 5), "south": np.full(5, 0.5)}
    write_soft_labels(tmp_path / "soft.parquet", 40, ("a", "b", "c d"), said, sure)
    table = pq.read_table(tmp_path / "soft.parquet")
    names = ["row", *(f"probability of {name}" for name in ("a", "b", "c d"))]
    assert table.column_names == [*names, "certainty of north", "certainty of south"]
    assert table["row"].to_pylist() == [40, 41, 42, 43, 44]
    assert np.array_equal(np.stack([table[name].to_numpy() for name in names[1:]], axis=1), said)
    assert np.array_equal(table["certainty of north"].to_numpy(), sure["north"])
