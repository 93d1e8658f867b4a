"""Users are drawn with their rows, and each row by the mixture's weights given its user and its position."""

import numpy as np
import pytest
import torch

from dpmodels.audit.made import shop
from dpmodels.codec.flat import FlatCodec, numbers_of, split
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.load import load_generator
from dpmodels.generators.refinements.present import with_rows
from dpmodels.generators.users import UserModel


def model_of(schema: Schema, probabilities: np.ndarray) -> UserModel:
    partition = Partition.fine(schema.flat, 8)
    detail = [np.ones((1, size)) for size in partition.sizes]
    given = torch.from_numpy(probabilities.astype(np.float32))[None]
    return UserModel(schema, 8, partition, given, detail, torch.tensor([100.0], dtype=torch.float64), "entry")


def random_model(schema: Schema, components: int = 5, seed: int = 0) -> UserModel:
    sizes = Partition.fine(schema.flat, 8).sizes
    rng = np.random.default_rng(seed)
    return model_of(schema, np.concatenate([rng.dirichlet(np.full(s, 0.5), components) for s in sizes], axis=1))


@pytest.mark.parametrize("changes", [{}, {"users": {"columns": ["age"]}}, {"users": {"order": "placed"}}])
def test_every_user_has_its_rows_in_order_and_its_own_columns(changes):
    schema = shop.make_schema(**changes)
    codec, model = FlatCodec(schema), random_model(schema)
    (drawn,) = model.sample(3000, seed=1)
    flat = codec.decode(drawn).to_pandas()
    users = flat.groupby("customer")
    assert len(users) == 3000 and set(flat["customer"]) == set(range(1, 3001))
    assert (users["children"].nunique() == 1).all()
    assert (users.size() == users["children"].first().clip(lower=1)).all()
    for name in schema.users.columns:
        assert (users[name].nunique() == 1).all()
    children = split(schema, codec.decode(drawn))["children"].to_pandas()
    assert children[["placed", "product", "price"]].notna().all().all()  # null stands for no child there
    if schema.users.order:
        assert children.groupby("customer")["placed"].apply(lambda own: own.is_monotonic_increasing).all()


def test_a_child_is_drawn_by_the_weights_of_its_user_and_its_position():
    schema = shop.make_schema(users={"columns": ["age", "region"]})
    model = random_model(schema)
    partition, offsets = model.partition, model.partition.offsets
    (drawn,) = model.sample(16_000, seed=2)
    cells, names = partition.cells(drawn), partition.names
    region, number, position, product = (
        cells[:, names.index(n)] for n in ("region", "children", "position", "product")
    )
    p = model.probabilities[0].numpy().astype(np.float64)
    age = cells[:, names.index("age")]

    def of(name: str, cell: int) -> np.ndarray:
        return p[:, offsets[names.index(name)] + cell]

    checked = 0
    for group in {(a, r, n, j) for a, r, n, j in zip(age, region, number, position, strict=True) if j > 0}:
        rows = (age == group[0]) & (region == group[1]) & (number == group[2]) & (position == group[3])
        if rows.sum() < 400:
            continue
        weights = np.prod(
            [of(n, c) for n, c in zip(("age", "region", "children", "position"), group, strict=True)], axis=0
        )
        for name in ("placed", "product", "price"):  # which have a value, since there is a child
            place = names.index(name)
            weights = weights * p[:, offsets[place] : offsets[place + 1] - 1].sum(axis=1)
        own = p[:, offsets[names.index("product")] :][:, :4]
        expected = (weights / weights.sum()) @ (own / own.sum(axis=1, keepdims=True))
        found = np.bincount(product[rows], minlength=5)[:4] / rows.sum()
        assert found == pytest.approx(expected, abs=4 * np.sqrt(0.25 / rows.sum()))
        checked += 1
    assert checked >= 5


def test_where_no_component_has_all_that_is_given_the_nearest_decides():
    """Component 0 knows the region and 1 the other two; a user of both is drawn by the component that lacks less."""
    schema = shop.make_schema(unit={"user": "customer", "max_rows": 1}, users={"columns": ["age", "region"]})
    sizes, names = Partition.fine(schema.flat, 8).sizes, Partition.fine(schema.flat, 8).names
    blocks = [np.full((2, size), 1.0 / size) for size in sizes]
    for name, cells in {"region": (0, 1), "children": (1, 1), "position": (1, 0), "product": (0, 1)}.items():
        block = np.zeros_like(blocks[names.index(name)])
        block[0, cells[0]] = block[1, cells[1]] = 1
        blocks[names.index(name)] = block
    model = model_of(schema, np.concatenate(blocks, axis=1))
    (drawn,) = model.sample(2000, seed=0)
    cells = model.partition.cells(drawn)
    region, product = cells[:, names.index("region")], cells[:, names.index("product")]
    assert {0, 1} == set(region) and set(product[region == 0]) == {0}
    assert set(product[region == 1]) <= {0, 1}  # of both, one lacks the region and the other the position
    assert np.isfinite(drawn.values).all() and (numbers_of(schema.flat, "children", drawn) == 1).all()


def test_what_is_saved_draws_the_same(tmp_path):
    model = random_model(shop.make_schema())
    model.save(tmp_path / "g")
    again = load_generator(tmp_path / "g")
    assert isinstance(again, UserModel) and again.schema == model.schema
    one, two = (FlatCodec(model.schema).decode(next(m.sample(500, seed=4))) for m in (model, again))
    assert one.equals(two)


@pytest.mark.parametrize("merged", [False, True])
def test_where_each_user_has_rows_none_is_drawn_without_and_all_else_stays(merged):
    schema = shop.make_schema(users={"columns": ["age", "region"]})
    model = random_model(schema, seed=3)
    at, offsets = model.partition.names.index("children"), model.partition.offsets
    if merged:  # the first two numbers of rows share a cell
        merge = [*model.partition.merge]
        merge[at] = np.maximum(merge[at] - 1, 0)
        partition = Partition(model.partition.codec, tuple(merge), 1, None)
        begin, detail = int(offsets[at]), [*model.detail]
        detail[at] = np.ones_like(detail[at])
        detail[at][:, :2] = 0.25, 0.75
        p = model.probabilities
        p = torch.cat([p[:, :, :begin], p[:, :, begin : begin + 2].sum(2, keepdim=True), p[:, :, begin + 2 :]], dim=2)
        model = UserModel(**{**vars(model), "partition": partition, "probabilities": p, "detail": detail})
    (before,), (after,) = model.sample(8000, seed=1), with_rows(model).sample(8000, seed=1)
    flat = schema.flat
    old, new = numbers_of(flat, "children", before), numbers_of(flat, "children", after)
    assert (old == 0).any() and new.min() == 1
    first = [numbers[numbers_of(flat, "position", drawn) <= 1] for drawn, numbers in ((before, old), (after, new))]
    shares = [np.bincount(numbers[numbers > 0], minlength=9) / (numbers > 0).sum() for numbers in first]
    assert np.abs(shares[0] - shares[1]).max() < 0.1
    others = with_rows(random_model(shop.make_schema(users={"order": "placed"})))
    assert with_rows(others) is others
