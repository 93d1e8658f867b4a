"""The public part of a federation, and the records that it is made for: what is read, and what is the same again."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import torch

from dpmodels.contract.federation import Federation
from dpmodels.errors import ArtifactError, DataError, FileDamaged, InvalidArgument
from dpmodels.methods.federations.public_part import ExtractorSpec, PublicPart
from dpmodels.methods.federations.records import RecordsSpec, load_examples, read_public
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Plan
from tasks.kinds.federation import create
from tests.kit.errors import refused
from tests.kit.parties import make_examples
from tests.kit.wards import CLASSES, INPUTS, NAMES, make_ward

SPEC = RecordsSpec(inputs=INPUTS)
QUICK = ExtractorSpec(features=6, width=4, pretraining=None)


def made(auxiliary: torch.Tensor, records: RecordsSpec = SPEC, spec: ExtractorSpec = QUICK) -> PublicPart:
    return PublicPart.make(auxiliary, records, len(CLASSES), spec)


def tensor(table: pa.Table) -> torch.Tensor:
    return torch.from_numpy(np.stack([table[name].to_numpy() for name in INPUTS], axis=1).astype(np.float32))


def contract(public: PublicPart, **given: object) -> Federation:
    clients = [{"name": name} for name in NAMES]
    content = {"name": "wards", "clients": clients, "classes": CLASSES, **public.terms, **given}
    return Federation.model_validate(content)


def test_csv_parquet_and_folders_hold_the_same_records(tmp_path: Path) -> None:
    table, about = make_ward(100, 0), contract(made(tensor(make_ward(100, 9)))).of("north")
    pq.write_table(table, tmp_path / "one.parquet")
    pc.write_csv(table, tmp_path / "one.csv")
    (tmp_path / "many").mkdir()
    for place in range(2):
        pq.write_table(table.slice(50 * place, 50), tmp_path / "many" / f"{place}.parquet")
    wanted = tensor(table)
    for name in ("one.parquet", "one.csv", "many"):
        found = load_examples(tmp_path / name, SPEC, about).reveal()
        assert torch.allclose(found.inputs, wanted)
        assert [CLASSES[place] for place in found.labels] == table["label"].to_pylist()
        assert torch.equal(read_public(tmp_path / name, SPEC), found.inputs)


def test_values_that_are_huge_or_missing_are_not_told_by_a_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Such a warning stands on the terminal of the process, or in the log of whatever runs it."""
    public = made(tensor(make_ward(100, 9)))
    last = [layer for layer in public.features.network.modules() if isinstance(layer, torch.nn.Linear)][-1]
    last.weight.data[:] = 3e38
    last.weight.data[::2] *= -1
    table = make_ward(100, 0)
    hostile = np.resize([1e300, np.nan, -np.inf, 3e38, -1e39], 100)
    pq.write_table(table.set_column(1, "pulse", pa.array(hostile)), tmp_path / "one.parquet")
    found = load_examples(tmp_path / "one.parquet", SPEC, contract(public).of("north")).reveal()
    assert np.abs(public.features.whole(found.inputs)).max() <= 2**12 and not recwarn.list


def test_an_image_is_a_list_in_one_column(tmp_path: Path) -> None:
    images, records = make_examples(80).inputs, RecordsSpec(inputs=("pixels",), shape=(1, 8, 8))
    rows = images.reshape(80, -1).tolist()
    pq.write_table(pa.table({"pixels": rows}), tmp_path / "images.parquet")
    assert torch.equal(read_public(tmp_path / "images.parquet", records), images)
    pq.write_table(pa.table({"pixels": [*rows[:-1], rows[-1][:-1]]}), tmp_path / "images.parquet")
    with refused(DataError, "list of 64 numbers", column="pixels"):
        read_public(tmp_path / "images.parquet", records)
    with refused(InvalidArgument, name="architecture", value="mlp"):
        made(images, records)
    assert made(images, records, QUICK.model_copy(update={"architecture": "resnet8"})).negatives.shape == (80, 6)


def test_the_public_part_is_the_same_from_its_bytes_and_damage_is_seen() -> None:
    public = made(tensor(make_ward(100, 9)))
    content = public.to_bytes()
    found = PublicPart.of_bytes(content)
    assert found.terms == public.terms and found.records == SPEC and found.to_bytes() == content
    z = tensor(make_ward(30, 1))
    assert np.array_equal(found.features.whole(z), public.features.whole(z))
    with pytest.raises(FileDamaged):
        PublicPart.of_bytes(content[:-9])


def test_columns_of_other_units_make_the_same_vectors() -> None:
    table = tensor(make_ward(200, 9)).double()
    other = table * torch.tensor([1.0, 60.0, 1.8, 0.1]) + torch.tensor([0.0, 0.0, 32.0, 5.0])
    vectors = [made(each.float()).negatives for each in (table, other)]
    assert np.corrcoef(np.abs(vectors[0]).ravel(), np.abs(vectors[1]).ravel())[0, 1] > 0.999  # signs of axes may differ


def test_a_plan_of_a_federation_holds_its_contract_once_and_reads_back() -> None:
    about = contract(made(tensor(make_ward(100, 9))))
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5, unit=about.unit, adjacency=about.adjacency)
    system = create("federated-heads", {"records": 100})
    plan = Plan(lines=tuple(system.plan(about.of(name), budget) for name in NAMES))
    text = plan.model_dump_json()
    assert text.count(about.extractor) == 1 and Plan.model_validate_json(text) == plan
    assert plan.clients == NAMES and plan.whole.hash == about.hash
    assert [line.hash for line in Plan.model_validate_json(text).lines] == [line.hash for line in plan.lines]
    other = system.plan(contract(made(tensor(make_ward(100, 8)))).of("south"), budget)
    with pytest.raises(ValueError, match="about the same data"):
        Plan(lines=(plan.lines[0], other))


def test_an_offer_that_states_other_sizes_than_it_holds_is_refused_before_it_is_built() -> None:
    from safetensors.torch import save

    tensors = {"mean": torch.zeros(1), "turn": torch.zeros(1, 1), "radius": torch.tensor(1.0)}
    tensors["negatives"] = torch.zeros(1, 1, dtype=torch.int64)
    for columns, cause in ((["a"], "other records"), ([f"c{n}" for n in range(3000)], "other sizes")):
        model = {"inputs": [3000], "classes": 2**16, "width": 256}
        facts = {"architecture": "mlp", "model": model, "records": {"inputs": columns}}
        with pytest.raises(ArtifactError) as refusal:
            PublicPart.of_bytes(save(tensors, metadata={"nacre": json.dumps(facts)}))
        assert cause in str(refusal.value.__cause__)
